//! What a NodeImage gets for what its author left out. People may write tags into it by hand.

use serde_json::Value;

use crate::{json::object_mut, time::Time};

/// Fills in the pull policy of every tag. What is set stays. The rest needs a clock: see [`complete`].
pub(super) fn apply(object: &mut Value) {
    for tag in images_mut(object, "images").flat_map(tags_mut).filter(|tag| tag.is_object()) {
        crate::image_pull::default_pull_policy(tag, &["pullPolicy"]);
    }
}

/// The other half of what admission does to a NodeImage of either version: a tag without `createdAt` came in `now`,
/// and tags are sorted, in spec and status.
pub fn complete(object: &mut Value, now: Time) {
    let now = serde_json::to_value(now).unwrap_or_default();
    for image in images_mut(object, "images") {
        for tag in tags_mut(image).filter(|tag| tag.is_object()) {
            crate::json::default_at(tag, &["createdAt"], now.clone());
        }
        sort_tags(image);
    }
    images_mut(object, "imageStatuses").for_each(sort_tags);
}

fn images_mut<'a>(object: &'a mut Value, field: &'static str) -> impl Iterator<Item = &'a mut Value> {
    let half = if field == "images" { "spec" } else { "status" };
    object_mut(object, &[half, field]).into_iter().flat_map(|images| images.values_mut())
}

fn tags_mut(image: &mut Value) -> impl Iterator<Item = &mut Value> {
    crate::json::items_mut(image, &["tags"])
}

fn sort_tags(image: &mut Value) {
    if let Some(tags) = image.get_mut("tags").and_then(Value::as_array_mut) {
        tags.sort_by(|a, b| tag_of(a).cmp(tag_of(b)));
    }
}

fn tag_of(tag: &Value) -> &str {
    crate::json::text(tag, &["tag"]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tag_written_by_hand_gets_a_pull_policy() {
        let tag = json!({"tag": "latest", "pullPolicy": {"ttlSecondsAfterFinished": 300, "backoffLimit": 0}});
        let mut object = json!({"spec": {"images": {"ubuntu": {"tags": [tag, {"tag": "24.04"}]}}}});
        apply(&mut object);
        let tags = &object["spec"]["images"]["ubuntu"]["tags"];
        assert_eq!(
            tags[0]["pullPolicy"],
            json!({"ttlSecondsAfterFinished": 300, "backoffLimit": 0, "timeoutSeconds": 600})
        );
        assert_eq!(tags[1]["pullPolicy"], json!({"backoffLimit": 3, "timeoutSeconds": 600}));
    }

    #[test]
    fn new_tags_get_the_time_and_all_tags_are_sorted() {
        let mut object = json!({
            "spec": {"images": {"nginx": {"tags": [
                {"tag": "1.27"}, {"tag": "1.25", "createdAt": "2026-01-01T00:00:00Z"},
            ]}}},
            "status": {"imageStatuses": {"nginx": {"tags": [{"tag": "b"}, {"tag": "a"}]}}},
        });
        complete(&mut object, Time("2026-11-15T19:00:00Z".parse().unwrap()));
        assert_eq!(
            object["spec"]["images"]["nginx"]["tags"],
            json!([
                {"tag": "1.25", "createdAt": "2026-01-01T00:00:00Z"},
                {"tag": "1.27", "createdAt": "2026-11-15T19:00:00Z"},
            ])
        );
        assert_eq!(object["status"]["imageStatuses"]["nginx"]["tags"], json!([{"tag": "a"}, {"tag": "b"}]));
    }
}
