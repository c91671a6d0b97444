//! Why a ResourceDistribution waits.

use std::collections::BTreeMap;

use super::{
    failures::{Failure, Fault},
    plan::{Ledger, Side, State},
    source::Source,
};
use crate::{
    text::Text,
    waiting::{Reason, Waits, text},
};

/// The namespaces that a reason is about.
pub type Affected = BTreeMap<Reason, Vec<Text>>;

/// The reasons that hold, with their namespaces.
pub fn waits(source: &Source, ledger: &Ledger) -> (Waits, Affected) {
    let mut affected = Affected::new();
    let mut sentences: BTreeMap<Reason, &str> = BTreeMap::new();
    for (namespace, (_, state)) in ledger {
        let State::Failed(failure) = state else { continue };
        let Some((reason, sentence)) = reason(failure) else { continue };
        affected.entry(reason).or_default().push(namespace.clone());
        sentences.entry(reason).or_insert(sentence);
    }
    let all = ledger.values().filter(|(side, _)| *side == Side::Target).count();
    let mut waits = Waits::default();
    for (reason, namespaces) in &affected {
        let sentence = sentences.get(reason).copied().unwrap_or_default();
        waits.add(*reason, phrase(source, *reason, namespaces, all, sentence));
    }
    (waits, affected)
}

fn reason(failure: &Failure) -> Option<(Reason, &str)> {
    match (failure.fault, &failure.reason) {
        (Fault::Conflict, _) => Some((Reason::NameTaken, "")),
        (Fault::Missing, _) => Some((Reason::NamespaceTerminating, "")),
        (_, Some((reason, sentence))) => Some((*reason, sentence)),
        (_, None) => None,
    }
}

fn phrase(source: &Source, reason: Reason, namespaces: &[Text], all: usize, sentence: &str) -> String {
    let (count, names) = (namespaces.len(), text::names(namespaces.iter().map(Text::as_str)));
    let resource = source.kind.resource();
    let agree = |one: &'static str, many: &'static str| if count == 1 { one } else { many };
    let noun = if all == 1 { "namespace" } else { "namespaces" };
    match reason {
        Reason::NameTaken => {
            let (have, kind, name) = (agree("has", "have"), resource.kind, &source.name);
            format!("{count} of {all} {noun} {have} a foreign {kind} {name} ({names})")
        }
        Reason::NamespaceTerminating => {
            let end = agree("does not exist or is being deleted", "do not exist or are being deleted");
            format!("{count} of {all} target {noun} {end} ({names})")
        }
        Reason::QuotaExceeded => {
            let (are, of) = (agree("is", "are"), if count == 1 { singular(source) } else { resource.plural });
            let quota = sentence.split_once(" missing: ").map_or(sentence, |(_, quota)| quota);
            format!("{count} {of} {are} missing: {quota}")
        }
        _ => sentence.to_owned(),
    }
}

fn singular(source: &Source) -> &'static str {
    let plural = source.kind.resource().plural;
    plural.strip_suffix('s').unwrap_or(plural)
}
