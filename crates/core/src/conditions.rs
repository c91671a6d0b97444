//! Conditions of a workload, and the write of its status.

use jiff::Timestamp;
use kruise_api::{
    broadcastjob::v1beta1::Condition as JobCondition,
    condition::{Condition, ProgressCondition, StandardCondition},
    time::Time,
    uniteddeployment::v1beta1::LooseCondition,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    effect::{Effect, Patch, Target},
    merge_patch,
    object::ObjectRef,
};

/// A condition of any shape that our kinds have.
pub trait Fact: Sized {
    /// The type.
    fn kind(&self) -> &str;

    /// The status.
    fn status(&self) -> &str;

    /// The reason.
    fn reason(&self) -> &str;

    /// When the status changed last.
    fn since(&self) -> Option<Time>;

    /// A condition that has held since this time.
    fn new(kind: &str, status: &str, reason: Option<&str>, message: Option<&str>, since: Time) -> Self;
}

macro_rules! fact {
    ($($shape:ident),*) => {$(
        impl Fact for $shape {
            fn kind(&self) -> &str {
                &self.kind
            }

            fn status(&self) -> &str {
                &self.status
            }

            fn reason(&self) -> &str {
                self.reason.as_deref().unwrap_or_default()
            }

            fn since(&self) -> Option<Time> {
                self.last_transition_time
            }

            fn new(kind: &str, status: &str, reason: Option<&str>, message: Option<&str>, since: Time) -> Self {
                #[allow(clippy::needless_update, reason = "one of the shapes has another member")]
                Self {
                    kind: kind.to_owned(),
                    status: status.to_owned(),
                    last_transition_time: Some(since),
                    reason: reason.map(str::to_owned),
                    message: message.map(str::to_owned),
                    ..Self::default()
                }
            }
        }
    )*};
}

fact!(Condition, ProgressCondition, JobCondition);

/// All members of this shape may be missing.
impl Fact for LooseCondition {
    fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }

    fn status(&self) -> &str {
        self.status.as_deref().unwrap_or_default()
    }

    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    fn since(&self) -> Option<Time> {
        self.last_transition_time
    }

    fn new(kind: &str, status: &str, reason: Option<&str>, message: Option<&str>, since: Time) -> Self {
        Self {
            kind: Some(kind.to_owned()),
            status: Some(status.to_owned()),
            last_transition_time: Some(since),
            reason: reason.map(str::to_owned),
            message: message.map(str::to_owned),
        }
    }
}

impl Fact for StandardCondition {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn status(&self) -> &str {
        &self.status
    }

    fn reason(&self) -> &str {
        &self.reason
    }

    fn since(&self) -> Option<Time> {
        Some(self.last_transition_time)
    }

    fn new(kind: &str, status: &str, reason: Option<&str>, message: Option<&str>, since: Time) -> Self {
        Self {
            kind: kind.to_owned(),
            status: status.to_owned(),
            observed_generation: None,
            last_transition_time: since,
            reason: reason.unwrap_or(kind).to_owned(),
            message: message.unwrap_or_default().to_owned(),
        }
    }
}

/// The condition of a type.
pub fn get<'c, C: Fact>(conditions: &'c [C], kind: &str) -> Option<&'c C> {
    conditions.iter().find(|condition| condition.kind() == kind)
}

/// Whether the condition of a type is True.
pub fn is_true<C: Fact>(conditions: &[C], kind: &str) -> bool {
    get(conditions, kind).is_some_and(|condition| condition.status() == "True")
}

/// Sets a condition in its place. The time of the last transition changes with the status only.
pub fn set<C: Fact>(
    conditions: &mut Vec<C>,
    kind: &str,
    status: &str,
    reason: Option<&str>,
    message: Option<&str>,
    now: Timestamp,
) {
    let before = get(conditions, kind).filter(|before| before.status() == status);
    let since = before.and_then(Fact::since).unwrap_or(Time(now));
    put(conditions, C::new(kind, status, reason, message, since));
}

/// Puts a condition in the place of the one of the same type, or at the end.
pub fn put<C: Fact>(conditions: &mut Vec<C>, condition: C) {
    match conditions.iter_mut().find(|known| known.kind() == condition.kind()) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// Removes the condition of a type.
pub fn remove<C: Fact>(conditions: &mut Vec<C>, kind: &str) {
    conditions.retain(|condition| condition.kind() != kind);
}

/// Sets a condition that exists only while something fails.
pub fn set_failure<C: Fact>(
    conditions: &mut Vec<C>,
    kind: &str,
    reason: Option<&str>,
    message: Option<&str>,
    now: Timestamp,
) {
    match message {
        Some(message) => set(conditions, kind, "True", reason, Some(message), now),
        None => remove(conditions, kind),
    }
}

/// The write that brings a status up to date, if one is needed. Our manager is the only one that writes it, so it needs no
/// version.
///
/// Zeros are always part of a status, because health checks of other tools take an absent count for "not observed yet". But
/// a zero that others left out is no reason for a write of its own: taking over a cluster writes nothing.
pub fn status_write<S: Serialize>(owner: &ObjectRef, before: Option<&S>, after: &S) -> Option<Effect> {
    let value = |status: &S| serde_json::to_value(status).unwrap_or_default();
    let before = before.map(value).unwrap_or_default();
    let change = merge_patch::between(&before, &value(after))?;
    let is_new_zero = |(name, value): (&String, &Value)| value == 0 && before.get(name).is_none();
    if before.is_object() && change.as_object().is_some_and(|members| members.iter().all(is_new_zero)) {
        return None;
    }
    Some(Effect::Patch {
        target: Target::with_uid(owner.resource, owner.key.clone(), owner.uid.clone()),
        subresource: Some("status"),
        patch: Patch::Merge(json!({"status": change})),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{ObjectKey, POD};

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn the_time_of_a_condition_changes_with_its_status_only() {
        let mut conditions: Vec<Condition> = Vec::new();
        set(&mut conditions, "A", "True", Some("First"), None, time(1));
        set(&mut conditions, "B", "True", None, None, time(2));
        set(&mut conditions, "A", "True", Some("Second"), Some("text"), time(3));
        assert_eq!(conditions.len(), 2);
        assert_eq!((conditions[0].since(), conditions[0].reason()), (Some(Time(time(1))), "Second"));
        set(&mut conditions, "A", "False", None, None, time(4));
        assert_eq!(conditions[0].since(), Some(Time(time(4))));
        set_failure(&mut conditions, "A", None, None, time(5));
        assert_eq!(conditions.len(), 1);
    }

    #[track_caller]
    fn check(before: Option<Value>, after: Value, expected: Option<Value>) {
        let owner = ObjectRef { resource: POD, key: ObjectKey::new("default", "web"), uid: "u".into() };
        let written = status_write(&owner, before.as_ref(), &after).map(|effect| match effect {
            Effect::Patch { subresource: Some("status"), patch: Patch::Merge(patch), .. } => {
                patch["status"].clone()
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn a_status_is_written_when_it_differs_and_zeros_go_along() {
        check(None, json!({"replicas": 0}), Some(json!({"replicas": 0})));
        check(Some(json!({"replicas": 1})), json!({"replicas": 1}), None);
        check(Some(json!({"replicas": 1})), json!({"replicas": 1, "updated": 0}), None);
        check(Some(json!({"replicas": 1})), json!({"replicas": 0}), Some(json!({"replicas": 0})));
        check(
            Some(json!({"replicas": 1})),
            json!({"replicas": 2, "updated": 0}),
            Some(json!({"replicas": 2, "updated": 0})),
        );
    }
}
