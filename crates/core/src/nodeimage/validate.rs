//! What a NodeImage must look like. People may write tags into it by hand.

use std::collections::BTreeSet;

use kruise_api::json;
use serde_json::{Map, Value};

use crate::admission::{
    Answer,
    kinds::{Change, Context},
};

/// More images than this make an object that the API server and the nodes cannot work with any more.
pub(crate) const MOST_IMAGES: usize = 256;

/// The first thing that is wrong. What is stored like that already does not keep tags from being added or removed.
pub fn refusal(change: &Change<'_>, _: &Context<'_>) -> Option<Answer> {
    problem(change.new, change.old).map(|message| Answer::Denied { code: 422, message })
}

fn images(object: &Value) -> Option<&Map<String, Value>> {
    json::at(object, &["spec", "images"])?.as_object()
}

fn problem(object: &Value, stored: Option<&Value>) -> Option<String> {
    let new = images(object)?;
    let old = stored.and_then(images);
    let most = old.map_or(0, Map::len).max(MOST_IMAGES);
    if new.len() > most {
        return Some(format!("spec images length {} can not be more than {MOST_IMAGES}", new.len()));
    }
    new.iter().find_map(|(name, image)| problem_of_image(name, image, old.and_then(|old| old.get(name))))
}

fn tags(image: &Value) -> &[Value] {
    json::at(image, &["tags"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn problem_of_image(name: &str, image: &Value, stored: Option<&Value>) -> Option<String> {
    if name.is_empty() && stored.is_none() {
        return Some("image name can not be empty".to_owned());
    }
    let stored = stored.map(tags).unwrap_or_default();
    let mut seen = BTreeSet::new();
    tags(image).iter().find_map(|entry| {
        let tag = json::text(entry, &["tag"]).unwrap_or_default();
        let is_first = seen.insert(tag);
        if stored.contains(entry) {
            return None;
        }
        if tag.is_empty() {
            return Some(format!("tag for image {name} can not be empty"));
        }
        if !is_first {
            return Some(format!("duplicated tag {tag} for image {name}"));
        }
        if json::at(entry, &["createdAt"]).is_none() {
            return Some(format!("createAt field for {name}/{tag} can not be empty"));
        }
        if json::at(entry, &["version"]).and_then(Value::as_i64).is_some_and(|version| version < 0) {
            return Some(format!("version for {name}/{tag} can not be less than 0"));
        }
        if json::at(entry, &["pullPolicy"]).is_none() {
            return Some(format!("pullPolicy field for {name}/{tag} must set"));
        }
        json::at(entry, &["pullPolicy", "ttlSecondsAfterFinished"])
            .is_none()
            .then(|| format!("pullPolicy.ttlSecondsAfterFinished for {name}/{tag} must set"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::{Operation, kinds::tests_support::check};

    #[track_caller]
    fn images(images: Value, expected: &str) {
        let base = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": "n"},
            "spec": {}});
        check(Operation::Create, &base, json!({"spec": {"images": images}}), expected);
    }

    fn tag(change: Value) -> Value {
        let mut tag = json!({"tag": "v1", "pullPolicy": {"ttlSecondsAfterFinished": 30}});
        json_patch::merge(&mut tag, &change);
        tag
    }

    #[test]
    fn tags_are_told_apart_and_end_some_day() {
        images(json!({"app": {"tags": [tag(json!({}))]}, "UPPER": {"tags": []}}), "");
        images(json!({"": {"tags": []}}), "image name can not be empty");
        images(json!({"app": {"tags": [tag(json!({"tag": ""}))]}}), "tag for image app can not be empty");
        images(json!({"app": {"tags": [tag(json!({})), tag(json!({}))]}}), "duplicated tag v1 for image app");
        images(
            json!({"app": {"tags": [tag(json!({"version": -1}))]}}),
            "version for app/v1 can not be less than 0",
        );
        images(
            json!({"app": {"tags": [tag(json!({"pullPolicy": null}))]}}),
            "pullPolicy.ttlSecondsAfterFinished for app/v1 must set",
        );
    }

    /// A job must be able to write its tag whatever somebody has written by hand.
    #[test]
    fn what_is_stored_already_keeps_nobody_from_writing_tags() {
        let stored = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": "n"},
            "spec": {"images": {"app": {"tags": [tag(json!({"tag": ""})), tag(json!({"version": -1}))]}}}});
        let with = |more: Value, expected: &str| {
            let tags = json!([tag(json!({"tag": ""})), tag(json!({"version": -1})), more]);
            let mut new = stored.clone();
            new["spec"]["images"]["app"]["tags"] = tags;
            let problem = problem(&new, Some(&stored));
            assert_eq!(problem.unwrap_or_default(), expected);
        };
        let complete = |tag_name: &str| tag(json!({"tag": tag_name, "createdAt": "2026-01-01T00:00:00Z"}));
        with(complete("v2"), "");
        with(complete(""), "tag for image app can not be empty");
        with(complete("v1"), "duplicated tag v1 for image app");
        assert!(problem(&stored, None).is_some());
    }

    #[test]
    fn there_are_not_too_many() {
        let many: Map<String, Value> =
            (0..258).map(|number| (format!("app-{number}"), json!({"tags": []}))).collect();
        images(Value::Object(many), "spec images length 258 can not be more than 256");
    }
}
