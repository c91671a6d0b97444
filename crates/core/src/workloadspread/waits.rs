//! Why a spread waits.

use kruise_api::workloadspread::v1beta1::{Status, SubsetStatus};

use super::{
    Spread,
    groups::Member,
    reschedule::{CLOSED_FOR, condition, is_closed},
    spread::Most,
};
use crate::waiting::{Reason, Waits, text};

/// What sentences are made from.
pub(super) struct Seen<'a> {
    pub(super) spread: &'a Spread,
    pub(super) most: &'a [Most],
    pub(super) status: &'a Status,
    pub(super) members: &'a [Member],
}

/// The spec cannot be carried out.
pub(super) fn invalid(path: &str, why: &str, waits: &mut Waits) {
    let sentence = format!("the spec cannot be carried out: {path}: {}", text::foreign(why));
    waits.add(Reason::SpecInvalid, sentence);
}

/// Subsets that are closed although they should have more pods, and pods for which no subset has room.
pub(super) fn subsets(seen: &Seen<'_>, waits: &mut Waits) {
    let accounts = &seen.status.subset_statuses;
    for (position, (account, most)) in accounts.iter().zip(seen.most).enumerate() {
        closed(seen, position, account, *most, waits);
    }
    let outside =
        seen.members.iter().filter(|member| member.pod.is_active() && member.subset.is_none()).count();
    let full = accounts.iter().zip(seen.most).map(|(account, most)| match most {
        Most::Pods(most) if i64::from(account.replicas) >= *most => {
            Some(format!("{} {}/{most}", account.name, account.replicas))
        }
        _ => None,
    });
    if let Some(full) = full.collect::<Option<Vec<String>>>().filter(|full| outside > 0 && !full.is_empty()) {
        let names = text::names(full.iter().map(String::as_str));
        let sentence =
            format!("all subsets are full ({names}); {} without a subset", text::pods_are(outside));
        waits.add(Reason::SubsetFull, sentence);
    }
}

fn closed(seen: &Seen<'_>, position: usize, account: &SubsetStatus, most: Most, waits: &mut Waits) {
    let Some(condition) = condition(account).filter(|_| is_closed(account)) else { return };
    let elsewhere = seen
        .members
        .iter()
        .filter(|member| member.pod.is_active() && member.subset.is_none_or(|other| other > position));
    let elsewhere = i64::try_from(elsewhere.count()).unwrap_or(i64::MAX);
    let wanted = match most {
        Most::Pods(most) => (most - i64::from(account.replicas)).max(0),
        Most::Open | Most::Unknown => i64::MAX,
    };
    let moved = elsewhere.min(wanted);
    // Pods in a closed subset that have no node are about to move.
    let waiting = seen.members.iter().filter(|member| {
        member.subset == Some(position) && member.pod.is_active() && member.pod.spec.node_name.is_empty()
    });
    let waiting = i64::try_from(waiting.count()).unwrap_or(i64::MAX);
    if moved == 0 && waiting == 0 {
        return;
    }
    let since = condition.last_transition_time.0;
    let again = since.saturating_add(CLOSED_FOR).unwrap_or(jiff::Timestamp::MAX);
    let (verb, noun) = if moved == 1 { ("is", "replica") } else { ("are", "replicas") };
    let sentence = format!(
        "subset {} cannot take pods since {} ({} of its pods were not scheduled in time); {moved} {noun} {verb} in other \
         subsets, it is tried again at {}",
        seen.spread.subsets.get(position).map_or("", |subset| subset.spec.name.as_str()),
        text::time(since),
        if waiting > 0 { waiting } else { moved },
        text::time(again),
    );
    waits.add(Reason::SubsetUnschedulable, sentence);
}
