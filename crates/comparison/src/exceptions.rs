//! Where servers differ, and why: the list for readers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::story::{Apart, Behaviour, Server};

const HEAD: &str = "# Where the embedded API server and a real one differ\n
The suite of API behaviours (`crates/comparison`) asks both the same questions. This is what they answer differently,
with the reason. It is made from the suite: `KRUISE_RECORD=1 cargo test -p kruise-comparison` writes it, and the test
fails when it is out of date.\n";

/// The document.
pub fn document<'b>(behaviours: impl IntoIterator<Item = &'b Behaviour>) -> String {
    let mut ours: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut old: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut new: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut count = 0;
    for behaviour in behaviours {
        count += 1;
        for (apart, reason) in &behaviour.reasons {
            let group = if *apart == Apart::Embedded { &mut ours } else { &mut old };
            group.entry(reason).or_default().push(&behaviour.name);
        }
        if let Some((_, reason)) = &behaviour.from {
            new.entry(reason).or_default().push(&behaviour.name);
        }
    }
    let mut text = HEAD.to_owned();
    let _ = writeln!(text, "\nThe suite has {count} behaviours.");
    section(&mut text, "The embedded server answers otherwise than any real server", &ours);
    section(
        &mut text,
        "Old servers (1.20) answer otherwise; the embedded server answers as a recent one",
        &old,
    );
    section(&mut text, "Old servers are not asked", &new);
    text
}

fn section(text: &mut String, title: &str, reasons: &BTreeMap<&str, Vec<&str>>) {
    let _ = writeln!(text, "\n## {title}\n");
    if reasons.is_empty() {
        let _ = writeln!(text, "Nothing.");
    }
    for (reason, names) in reasons {
        let _ = writeln!(text, "- {reason}");
        for name in names {
            let _ = writeln!(text, "  - {name}");
        }
    }
}

/// One line for each behaviour that is an exception on this server.
pub fn of<'b>(behaviours: impl IntoIterator<Item = &'b Behaviour>, server: Server) -> Vec<String> {
    let mut lines = Vec::new();
    for behaviour in behaviours {
        let reason = match &behaviour.from {
            Some((_, reason)) if !behaviour.applies(server) => Some(reason),
            _ => behaviour.reasons.iter().find(|(apart, _)| apart.is(server)).map(|(_, reason)| reason),
        };
        lines.extend(reason.map(|reason| format!("EXCEPTION {}: {reason}", behaviour.name)));
    }
    lines
}
