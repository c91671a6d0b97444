//! What could not be read is not written.

use std::{borrow::Cow, sync::Arc};

use kruise_core::effect::{Effect, Patch, Target};
use serde_json::Value;

use crate::decode::{Path, Step, Unread};

/// How the groups of our own kinds end.
const OUR_GROUPS: &str = ".kruise.io";

/// An effect without what would write over fields that could not be read. Nothing is left where it wrote nothing else;
/// what may not be written at all is refused with the reason.
pub(super) fn narrowed(
    effect: &Effect,
    known: impl Fn(&Target) -> Option<(Arc<[Unread]>, bool)>,
) -> Result<Option<Cow<'_, Effect>>, String> {
    let as_it_is = Ok(Some(Cow::Borrowed(effect)));
    let (Effect::Patch { target, .. } | Effect::Delete { target, .. }) = effect else { return as_it_is };
    let Some((unread, decides)) = known(target) else { return as_it_is };
    let refused = || {
        let field = unread.first().map(ToString::to_string).unwrap_or_default();
        Err(format!("cannot read {field}; the object is left as it is"))
    };
    match effect {
        // What is ours may be cleared away, whatever is in it: its name and uid are enough to know it.
        Effect::Delete { target, .. } if target.resource.group.ends_with(OUR_GROUPS) => as_it_is,
        _ if decides => refused(),
        Effect::Patch { target, subresource, patch } => {
            let mut patch = patch.clone();
            let mut is_changed = false;
            match &mut patch {
                Patch::Merge(change) => {
                    unread.iter().for_each(|field| is_changed |= strip(change, &field.path.0, false));
                    if is_changed && change.as_object().is_some_and(serde_json::Map::is_empty) {
                        return Ok(None);
                    }
                }
                Patch::Strategic(change) => {
                    unread.iter().for_each(|field| is_changed |= strip(change, &field.path.0, true));
                    if is_changed && change.as_object().is_some_and(serde_json::Map::is_empty) {
                        return Ok(None);
                    }
                }
                Patch::Json(steps) => {
                    let mut paths =
                        steps.as_array().into_iter().flatten().filter_map(|step| step.get("path")?.as_str());
                    if paths.any(|path| unread.iter().any(|field| overlaps(path, &field.path))) {
                        return refused();
                    }
                }
            }
            if !is_changed {
                return as_it_is;
            }
            let (target, subresource) = (target.clone(), *subresource);
            Ok(Some(Cow::Owned(Effect::Patch { target, subresource, patch })))
        }
        _ => as_it_is,
    }
}

/// Takes out of a merge patch what would write over a field. Tells whether there was something. Lists of objects are merged
/// by the server where `by_key`: what they do not name stays.
fn strip(change: &mut Value, path: &[Step], by_key: bool) -> bool {
    let (Value::Object(members), Some((Step::Key(key), rest))) = (change, path.split_first()) else {
        return false;
    };
    let Some(member) = members.get_mut(key) else { return false };
    let keeps_others = |items: &[Value]| by_key && items.iter().all(Value::is_object);
    match member {
        Value::Object(_) if !rest.is_empty() => {
            let is_changed = strip(member, rest, by_key);
            if is_changed && member.as_object().is_some_and(serde_json::Map::is_empty) {
                members.remove(key);
            }
            is_changed
        }
        Value::Array(items) if !rest.is_empty() && keeps_others(items) => false,
        _ => members.remove(key).is_some(),
    }
}

/// Whether a step of a JSON patch at this pointer writes something in a field, or over it.
fn overlaps(pointer: &str, path: &Path) -> bool {
    let own = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
    own.zip(&path.0).all(|(own, step)| match step {
        Step::Key(key) => own == *key,
        Step::Index(index) => own == index.to_string() || own == "-",
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kruise_core::object::{NODE, ObjectKey, POD, Resource};
    use serde_json::json;

    use super::*;

    fn target(resource: Resource) -> Target {
        Target::with_uid(resource, ObjectKey::new("ns", "a"), "u".into())
    }

    fn unread(path: Vec<Step>) -> Arc<[Unread]> {
        vec![Unread { path: Path(path), why: "odd".to_owned() }].into()
    }

    fn conditions() -> Vec<Step> {
        vec![Step::Key("status".to_owned()), Step::Key("conditions".to_owned()), Step::Index(1)]
    }

    /// What is left of a patch.
    #[track_caller]
    fn check(patch: Patch, path: Vec<Step>, expected: Option<Patch>) {
        let effect = Effect::Patch { target: target(POD), subresource: Some("status"), patch };
        let left = narrowed(&effect, |_| Some((unread(path.clone()), false))).expect("it is not refused");
        let left = left.map(|effect| match effect.into_owned() {
            Effect::Patch { patch, .. } => patch,
            _ => unreachable!(),
        });
        assert_eq!(left, expected);
    }

    #[test]
    fn a_merge_patch_leaves_alone_what_was_not_read() {
        let both = Patch::Merge(json!({"status": {"conditions": [{"type": "A"}], "replicas": 3}}));
        check(both.clone(), conditions(), Some(Patch::Merge(json!({"status": {"replicas": 3}}))));
        check(Patch::Merge(json!({"status": {"conditions": []}})), conditions(), None);
        check(Patch::Merge(json!({"status": null})), conditions(), None);
        check(both.clone(), vec![Step::Key("metadata".to_owned())], Some(both));
    }

    #[test]
    fn a_list_that_is_merged_by_key_is_written() {
        let patch = Patch::Strategic(json!({"status": {"conditions": [{"type": "A", "status": "True"}]}}));
        check(patch.clone(), conditions(), Some(patch));
        let scalar = vec![Step::Key("status".to_owned()), Step::Key("phase".to_owned())];
        check(Patch::Strategic(json!({"status": {"phase": "Failed"}})), scalar, None);
    }

    #[test]
    fn a_json_patch_over_an_unread_field_is_refused() {
        let known = |_: &Target| Some((unread(conditions()), false));
        let effect = |path: &str| Effect::Patch {
            target: target(NODE),
            subresource: None,
            patch: Patch::Json(json!([{"op": "replace", "path": path, "value": 1}])),
        };
        for path in ["/status", "/status/conditions", "/status/conditions/1/type", "/status/conditions/-"] {
            assert!(narrowed(&effect(path), known).is_err(), "{path}");
        }
        for path in ["/status/conditions/0", "/spec"] {
            assert!(narrowed(&effect(path), known).is_ok(), "{path}");
        }
    }

    #[test]
    fn an_object_that_cannot_be_read_is_not_touched() {
        let known = |_: &Target| Some((unread(vec![Step::Key("spec".to_owned())]), true));
        let delete = |resource| Effect::Delete {
            target: target(resource),
            grace: Some(Duration::ZERO),
            follows: false,
        };
        let refused = narrowed(&delete(POD), known).unwrap_err();
        assert_eq!(refused, "cannot read spec: odd; the object is left as it is");
        assert!(
            narrowed(&delete(kruise_core::nodeimage::NODE_IMAGE), known).is_ok(),
            "one of ours is cleared away"
        );
        let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        let effect = Effect::Patch { target: target(POD), subresource: None, patch };
        assert!(narrowed(&effect, known).is_err());
        assert_eq!(narrowed(&effect, |_| None).unwrap().map(Cow::into_owned), Some(effect.clone()));
    }
}
