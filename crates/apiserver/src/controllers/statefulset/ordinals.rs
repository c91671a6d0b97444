//! The order of a StatefulSet: which pod comes or goes next.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::super::object::{number, text};
use super::super::pods::Pod;
use super::REVISION_LABEL;

/// One pod as the plan sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) ordinal: i64,
    pub(super) revision: String,
    pub(super) finished: bool,
    pub(super) deleting: bool,
    pub(super) ready: bool,
    pub(super) available: bool,
}

impl Seen {
    /// A pod of the set; `None` for a pod whose name has no ordinal.
    pub(super) fn of(set: &Value, pod: &Pod, min_ready: i64, now: Timestamp) -> Option<Self> {
        let rest = pod.record.name.strip_prefix(text(set, "/metadata/name"))?.strip_prefix('-')?;
        let ordinal =
            rest.parse().ok().filter(|ordinal: &i64| *ordinal >= 0 && ordinal.to_string() == rest)?;
        Some(Self {
            name: pod.record.name.to_string(),
            ordinal,
            revision: pod.record.label(REVISION_LABEL).unwrap_or_default().to_owned(),
            finished: pod.is_finished(),
            deleting: pod.record.deleting,
            ready: pod.is_ready() && !pod.is_finished(),
            available: pod.is_available(min_ready, now) && !pod.is_finished(),
        })
    }
}

/// What the set wants.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'s> {
    pub(super) start: i64,
    pub(super) replicas: i64,
    pub(super) ordered: bool,
    pub(super) rolling: bool,
    pub(super) partition: i64,
    pub(super) current: &'s str,
    pub(super) update: &'s str,
}

impl<'s> Wanted<'s> {
    pub(super) fn of(set: &Value, current: &'s str, update: &'s str) -> Self {
        Self {
            start: number(set, "/spec/ordinals/start").unwrap_or(0),
            replicas: number(set, "/spec/replicas").unwrap_or(1),
            ordered: text(set, "/spec/podManagementPolicy") != "Parallel",
            rolling: text(set, "/spec/updateStrategy/type") != "OnDelete",
            partition: number(set, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0),
            current,
            update,
        }
    }

    /// Whether a new pod at an ordinal begins with the new template.
    fn begins_updated(&self, ordinal: i64) -> bool {
        self.current == self.update || !self.rolling || ordinal >= self.start + self.partition
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create { ordinal: i64, updated: bool },
    Delete { name: String },
}

/// Most steps of one plan. Whatever comes of them brings the set back for more.
const BURST: usize = 500;

/// What to do now. In order means: one at a time, and only when all before it are well.
pub(super) fn plan(wanted: &Wanted<'_>, pods: &[Seen]) -> Vec<Step> {
    let end = wanted.start + wanted.replicas;
    let by_ordinal: BTreeMap<i64, &Seen> = pods.iter().map(|pod| (pod.ordinal, pod)).collect();
    let mut steps = Vec::new();
    for ordinal in wanted.start..end {
        match by_ordinal.get(&ordinal) {
            None => steps.push(Step::Create { ordinal, updated: wanted.begins_updated(ordinal) }),
            // A finished pod makes place for a new one.
            Some(pod) if pod.finished && !pod.deleting => steps.push(Step::Delete { name: pod.name.clone() }),
            Some(pod) if pod.deleting || !pod.available => {
                if wanted.ordered {
                    return steps;
                }
                continue;
            }
            Some(_) => continue,
        }
        if wanted.ordered || steps.len() >= BURST {
            return steps;
        }
    }
    let surplus = by_ordinal.values().rev().filter(|pod| pod.ordinal < wanted.start || pod.ordinal >= end);
    let surplus: Vec<&&Seen> = surplus.collect();
    if !surplus.is_empty() {
        for pod in surplus {
            if pod.deleting {
                if wanted.ordered {
                    return steps;
                }
                continue;
            }
            steps.push(Step::Delete { name: pod.name.clone() });
            if wanted.ordered {
                return steps;
            }
        }
    }
    if !steps.is_empty() || !wanted.rolling {
        return steps;
    }
    // From the highest down to the partition: the first old one goes, unless one above it is not well.
    for ordinal in (wanted.start + wanted.partition..end).rev() {
        let Some(pod) = by_ordinal.get(&ordinal) else { return steps };
        if pod.revision != wanted.update && !pod.deleting {
            steps.push(Step::Delete { name: pod.name.clone() });
            return steps;
        }
        if pod.deleting || !pod.available {
            return steps;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pods are written as `ordinal:revision:ready|down|leaving|ended`.
    #[track_caller]
    fn check(wanted: &Wanted<'_>, pods: &str, expected: &str) {
        let pods: Vec<Seen> = pods
            .split_whitespace()
            .map(|word| {
                let parts: Vec<&str> = word.split(':').collect();
                Seen {
                    name: format!("db-{}", parts[0]),
                    ordinal: parts[0].parse().unwrap(),
                    revision: parts[1].to_owned(),
                    finished: parts[2] == "ended",
                    deleting: parts[2] == "leaving",
                    ready: parts[2] == "ready",
                    available: parts[2] == "ready",
                }
            })
            .collect();
        let steps: Vec<String> = plan(wanted, &pods)
            .into_iter()
            .map(|step| match step {
                Step::Create { ordinal, updated } => {
                    format!("create {ordinal}{}", if updated { " new" } else { "" })
                }
                Step::Delete { name } => format!("delete {name}"),
            })
            .collect();
        assert_eq!(steps.join(", "), expected);
    }

    const ORDERED: Wanted<'static> = Wanted {
        start: 0,
        replicas: 3,
        ordered: true,
        rolling: true,
        partition: 0,
        current: "a",
        update: "a",
    };

    #[test]
    fn pods_come_one_after_the_other_and_go_from_the_end() {
        check(&ORDERED, "", "create 0 new");
        check(&ORDERED, "0:a:down", "");
        check(&ORDERED, "0:a:ready", "create 1 new");
        check(&ORDERED, "0:a:ready 1:a:ready 2:a:ready", "");
        let one = Wanted { replicas: 1, ..ORDERED };
        check(&one, "0:a:ready 1:a:ready 2:a:ready", "delete db-2");
        check(&one, "0:a:ready 1:a:ready 2:a:leaving", "");
        check(&one, "0:a:down 1:a:ready", "");
        check(&ORDERED, "0:a:ended 1:a:ready", "delete db-0");
    }

    #[test]
    fn in_parallel_nobody_waits() {
        let parallel = Wanted { ordered: false, ..ORDERED };
        check(&parallel, "1:a:down", "create 0 new, create 2 new");
        let none = Wanted { replicas: 0, ..parallel };
        check(&none, "0:a:ready 1:a:down", "delete db-1, delete db-0");
    }

    #[test]
    fn a_plan_stays_short_however_many_pods_are_wanted() {
        let many = Wanted { ordered: false, replicas: i64::from(i32::MAX), ..ORDERED };
        assert_eq!(plan(&many, &[]).len(), BURST);
    }

    #[test]
    fn an_update_goes_from_the_end_down_to_the_partition() {
        let update = Wanted { update: "b", ..ORDERED };
        check(&update, "0:a:ready 1:a:ready 2:a:ready", "delete db-2");
        check(&update, "0:a:ready 1:a:ready 2:b:down", "");
        check(&update, "0:a:ready 1:a:ready 2:b:ready", "delete db-1");
        let half = Wanted { partition: 2, ..update.clone() };
        check(&half, "0:a:ready 1:a:ready 2:b:ready", "");
        check(&half, "0:a:ready 2:b:ready", "create 1");
        let by_hand = Wanted { rolling: false, ..update };
        check(&by_hand, "0:a:ready 1:a:ready 2:a:ready", "");
        check(&by_hand, "0:a:ready 1:a:ready", "create 2 new");
    }
}
