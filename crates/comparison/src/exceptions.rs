//! Generates the page about differences between servers and their reasons.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::story::{Apart, Behaviour, Server};

const HEAD: &str = "# Where the embedded API server and a real one differ\n
The test suite of API behaviours (`crates/comparison`) sends the same requests to both. This page lists the behaviours
with different responses and the reason for each. `KRUISE_RECORD=1 cargo test -p kruise-comparison` generates it from
the suite; the test fails when it is out of date.\n";

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
    section(&mut text, "The embedded server differs from every real server", &ours);
    section(&mut text, "Old servers (1.20) differ; the embedded server responds like a recent one", &old);
    section(&mut text, "Behaviours that are not tested on old servers", &new);
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
