//! Annotations that a set puts on pods.

use std::collections::BTreeMap;

use kruise_api::sidecarset::v1beta1::{PatchPodMetadata, PatchPolicy};
use serde_json::Value;

/// A present annotation, or the patch for it, that is no JSON. The text is the original's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Invalid JSON Document")]
pub struct NotJson;

/// The annotations of a set that a pod should get and does not have so: key and value. `present` gives what the pod has.
///
/// Nothing for a pod that has them all, so that a pod is not written for nothing.
pub fn changes<'a>(
    patches: &[PatchPodMetadata],
    present: impl Fn(&str) -> Option<&'a str>,
) -> Result<BTreeMap<String, String>, NotJson> {
    let mut changed: BTreeMap<String, String> = BTreeMap::new();
    for patch in patches {
        for (key, value) in &patch.annotations {
            let now = changed.get(key).map(String::as_str).or_else(|| present(key));
            let wanted = match (patch.patch_policy.as_ref().unwrap_or(&PatchPolicy::Retain), now) {
                (PatchPolicy::Retain, Some(_)) | (PatchPolicy::Other(_), _) => continue,
                (PatchPolicy::MergePatchJson, Some(now)) if !now.is_empty() => merged(now, value)?,
                (PatchPolicy::Retain | PatchPolicy::Overwrite | PatchPolicy::MergePatchJson, _) => {
                    value.clone()
                }
            };
            if now != Some(wanted.as_str()) {
                changed.insert(key.clone(), wanted);
            }
        }
    }
    Ok(changed)
}

/// RFC 7396: the patch merged into the present value. What does not change keeps its spelling.
fn merged(present: &str, patch: &str) -> Result<String, NotJson> {
    let read = |text: &str| serde_json::from_str::<Value>(text).map_err(|_| NotJson);
    let before = read(present)?;
    let mut after = before.clone();
    json_patch::merge(&mut after, &read(patch)?);
    if before == after {
        return Ok(present.to_owned());
    }
    Ok(crate::canonical_json::text(&after))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(policy: &str, annotations: Value) -> PatchPodMetadata {
        serde_json::from_value(json!({"patchPolicy": policy, "annotations": annotations})).unwrap()
    }

    #[track_caller]
    fn check(policy: &str, present: Option<&str>, value: &str, expected: Result<Option<&str>, NotJson>) {
        let changed = changes(&[patch(policy, json!({"k": value}))], |_| present);
        let changed = changed.map(|mut changed| changed.remove("k"));
        assert_eq!(changed, expected.map(|value| value.map(str::to_owned)), "{policy} {present:?}");
    }

    /// SIDECARSET-15
    #[test]
    fn policies_decide_about_what_a_pod_has_already() {
        check("Retain", None, "new", Ok(Some("new")));
        check("Retain", Some("x"), "new", Ok(None));
        check("Retain", Some(""), "new", Ok(None));
        check("Overwrite", None, "new", Ok(Some("new")));
        check("Overwrite", Some("y"), "new", Ok(Some("new")));
        check("Overwrite", Some("new"), "new", Ok(None));
        check("MergePatchJson", None, "verbatim, even this", Ok(Some("verbatim, even this")));
        check("MergePatchJson", Some(""), r#"{"b":2}"#, Ok(Some(r#"{"b":2}"#)));
        check("MergePatchJson", Some(r#"{"a":1}"#), r#"{"b":2}"#, Ok(Some(r#"{"a":1,"b":2}"#)));
        check("MergePatchJson", Some(r#"{"b":1,"a":1}"#), r#"{"b":null}"#, Ok(Some(r#"{"a":1}"#)));
        check("MergePatchJson", Some(r#"{"b": 2}"#), r#"{"b":2}"#, Ok(None));
        check("MergePatchJson", Some("not json"), r#"{"b":2}"#, Err(NotJson));
        check("MergePatchJson", Some("{}"), "not json", Err(NotJson));
        assert_eq!(NotJson.to_string(), "Invalid JSON Document");
    }

    #[test]
    fn later_patches_see_what_earlier_ones_did() {
        let patches =
            [patch("Overwrite", json!({"k": "{}"})), patch("MergePatchJson", json!({"k": "{\"a\":1}"}))];
        let changed = changes(&patches, |_| None).unwrap();
        assert_eq!(changed["k"], r#"{"a":1}"#);
    }
}
