//! What an ImagePullJob and an ImageListPullJob must look like.
//!
//! The first mistake is told, as the original does.

use std::collections::BTreeSet;

use kruise_api::{
    image_pull::DEFAULT_TIMEOUT_SECONDS,
    json,
    selector::{self, LabelSelector},
};
use serde_json::Value;

use crate::{
    admission::{
        Answer,
        kinds::{Change, Context},
    },
    image_reference,
};

const MOST_IMAGES: usize = 255;
const PULL_SECRETS: &[&str] = &["spec", "pullSecrets"];

/// What is wrong with an ImagePullJob.
pub fn job(change: &Change<'_>, _: &Context<'_>) -> Option<Answer> {
    if change.old.is_some() && change.touches(PULL_SECRETS) {
        let message = "spec.pullSecrets is immutable".to_owned();
        return Some(Answer::Denied { code: 403, message });
    }
    let image = json::text(change.new, &["spec", "image"]).unwrap_or_default();
    refuse(nodes(change.new).and_then(|()| one_image(image)).and_then(|()| pull(change)))
}

/// What is wrong with an ImageListPullJob.
pub fn list(change: &Change<'_>, _: &Context<'_>) -> Option<Answer> {
    refuse(nodes(change.new).and_then(|()| images(change.new)).and_then(|()| pull(change)))
}

fn refuse(checked: Result<(), String>) -> Option<Answer> {
    checked.err().map(|message| Answer::Denied { code: 422, message })
}

/// Whether an image has a name that can be pulled.
pub(crate) fn one_image(image: &str) -> Result<(), String> {
    if image.is_empty() {
        return Err("image can not be empty".to_owned());
    }
    image_reference::parse(image).map(|_| ()).map_err(|error| format!("invalid image {image}: {error}"))
}

/// Whether the images under `spec` can be pulled.
pub(crate) fn images(object: &Value) -> Result<(), String> {
    let images = json::at(object, &["spec", "images"]).and_then(Value::as_array);
    let images: Vec<&str> = images.into_iter().flatten().filter_map(Value::as_str).collect();
    if images.is_empty() {
        return Err("image can not be empty".to_owned());
    }
    if images.len() > MOST_IMAGES {
        return Err(format!("the maximum number of images cannot > {MOST_IMAGES}"));
    }
    if images.iter().collect::<BTreeSet<_>>().len() < images.len() {
        return Err("images cannot have duplicate values".to_owned());
    }
    images.into_iter().try_for_each(one_image)
}

/// The nodes are named, or found by their labels, or by their pods.
pub(crate) fn nodes(object: &Value) -> Result<(), String> {
    let selector = json::at(object, &["spec", "selector"]);
    let pods = json::at(object, &["spec", "podSelector"]);
    if let Some(selector) = selector {
        let names = json::at(selector, &["names"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let by_labels = read(selector);
        if !names.is_empty() && by_labels.as_ref().is_ok_and(|labels| !labels.is_empty()) {
            return Err("can not set both names and labelSelector in this spec.selector".to_owned());
        }
        if names.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>().len() < names.len() {
            return Err("duplicated name in selector names".to_owned());
        }
        if pods.is_some() {
            return Err("can not set both selector and podSelector".to_owned());
        }
        usable(by_labels, selector).map_err(|error| format!("invalid selector: {error}"))?;
    }
    let Some(pods) = pods else { return Ok(()) };
    usable(read(pods), pods).map_err(|error| format!("invalid podSelector: {error}"))
}

fn read(selector: &Value) -> Result<LabelSelector, String> {
    let mut selector = selector.clone();
    if let Some(members) = selector.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    serde_json::from_value(selector).map_err(|error| error.to_string())
}

/// The words are those of the original, which prints lists as its language does.
fn usable(selector: Result<LabelSelector, String>, written: &Value) -> Result<(), String> {
    let Err(error) = selector?.matcher() else { return Ok(()) };
    Err(match &error {
        selector::Error::Operator { operator, .. } => {
            format!("{operator:?} is not a valid label selector operator")
        }
        selector::Error::NoValues { key } | selector::Error::Values { key } => {
            let problem = match error {
                selector::Error::NoValues { .. } => "for 'in', 'notin' operators, values set can't be empty",
                _ => "values set must be empty for exists and does not exist",
            };
            format!("values: Invalid value: {}: {problem}", printed(written, key))
        }
    })
}

/// The values that an expression has for a label.
fn printed(selector: &Value, key: &str) -> String {
    let expressions = json::at(selector, &["matchExpressions"]).and_then(Value::as_array);
    let mut expressions = expressions.into_iter().flatten();
    let expression = expressions.find(|expression| json::text(expression, &["key"]) == Some(key));
    let values = expression.and_then(|expression| json::at(expression, &["values"])?.as_array());
    let Some(values) = values else { return "[]string(nil)".to_owned() };
    let values: Vec<String> =
        values.iter().filter_map(Value::as_str).map(|value| format!("{value:?}")).collect();
    format!("[]string{{{}}}", values.join(", "))
}

/// How many at once, for how long, and what happens to the job in the end.
fn pull(change: &Change<'_>) -> Result<(), String> {
    let object = change.new;
    parallelism(json::at(object, &["spec", "parallelism"]))?;
    let completion = |field| json::at(object, &["spec", "completionPolicy", field]);
    let deadline = completion("activeDeadlineSeconds").and_then(Value::as_i64);
    match completion("type").and_then(Value::as_str).unwrap_or_default() {
        "" | "Always" => {
            let timeout = json::at(object, &["spec", "pullPolicy", "timeoutSeconds"]).and_then(Value::as_i64);
            let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS.into());
            // The original asks this of single jobs only. Children of a list would be refused one by one, so it is asked
            // here too, of what a request brings.
            let is_asked = json::text(object, &["kind"]) == Some("ImagePullJob")
                || change.touches(&["spec", "completionPolicy"]);
            if is_asked && deadline.is_some_and(|deadline| deadline < timeout) {
                return Err("completionPolicy.activeDeadlineSeconds must be greater than \
                            pullPolicy.timeoutSeconds(default 600)"
                    .to_owned());
            }
        }
        "Never" if deadline.is_some() || completion("ttlSecondsAfterFinished").is_some() => {
            return Err("activeDeadlineSeconds and ttlSecondsAfterFinished can only work with Always \
                        CompletionPolicyType"
                .to_owned());
        }
        "Never" => {}
        other => return Err(format!("unknown type of completionPolicy: {other}")),
    }
    let policy = json::text(object, &["spec", "imagePullPolicy"]).unwrap_or_default();
    let is_known = matches!(policy, "" | "Always" | "IfNotPresent");
    match is_known || !change.touches(&["spec", "imagePullPolicy"]) {
        true => Ok(()),
        false => Err(format!("unknown imagePullPolicy: {policy}")),
    }
}

fn parallelism(value: Option<&Value>) -> Result<(), String> {
    let number = match value {
        None => return Ok(()),
        Some(Value::String(text)) if text.ends_with('%') => {
            return Err("parallelism does not support percentage value".to_owned());
        }
        Some(Value::String(text)) => match text.parse::<i32>() {
            Ok(number) => i64::from(number),
            Err(error) => {
                use std::num::IntErrorKind::{NegOverflow, PosOverflow};
                let problem = match error.kind() {
                    PosOverflow | NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                return Err(format!(
                    "parallelism must be a valid integer: strconv.ParseInt: parsing {text:?}: {problem}"
                ));
            }
        },
        Some(number) => number.as_i64().unwrap_or_default(),
    };
    if number < 0 { Err("parallelism must be non-negative".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::{Operation, kinds::tests_support::check};

    fn base(kind: &str, spec: Value) -> Value {
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "metadata": {"name": "pull"}, "spec": spec})
    }

    #[track_caller]
    fn job(change: Value, expected: &str) {
        check(
            Operation::Create,
            &base("ImagePullJob", json!({"image": "app:v1"})),
            json!({"spec": change}),
            expected,
        );
    }

    #[track_caller]
    fn list(change: Value, expected: &str) {
        let base = base("ImageListPullJob", json!({"images": ["app:v1", "db:v1"]}));
        check(Operation::Create, &base, json!({"spec": change}), expected);
    }

    /// IMAGES-40
    #[test]
    fn an_image_has_a_name() {
        job(json!({}), "");
        job(json!({"image": ""}), "image can not be empty");
        job(
            json!({"image": "UPPER/x"}),
            "invalid image UPPER/x: invalid reference format: repository name must be lowercase",
        );
        job(json!({"image": "a b"}), "invalid image a b: invalid reference format");
        list(json!({"images": []}), "image can not be empty");
        list(json!({"images": ["a:1", "a:1"]}), "images cannot have duplicate values");
        let many: Vec<String> = (0..256).map(|number| format!("app:{number}")).collect();
        list(json!({"images": many}), "the maximum number of images cannot > 255");
        list(
            json!({"images": ["a:1", "UPPER/x"]}),
            "invalid image UPPER/x: invalid reference format: repository name must be lowercase",
        );
    }

    /// IMAGES-40
    #[test]
    fn nodes_are_chosen_in_one_way() {
        for check in [job, list] {
            check(json!({"selector": {}}), "");
            check(json!({"podSelector": {}}), "");
            check(json!({"selector": {"names": ["n", "m"]}}), "");
            check(
                json!({"selector": {"names": ["n"], "matchLabels": {"a": "b"}}}),
                "can not set both names and labelSelector in this spec.selector",
            );
            check(json!({"selector": {"names": ["n", "n"]}}), "duplicated name in selector names");
            check(
                json!({"selector": {"names": ["n"]}, "podSelector": {"matchLabels": {"a": "b"}}}),
                "can not set both selector and podSelector",
            );
            check(
                json!({"podSelector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}),
                "invalid podSelector: \"Foo\" is not a valid label selector operator",
            );
            check(
                json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
                "invalid selector: values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be \
                 empty",
            );
            check(
                json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}),
                "invalid selector: values: Invalid value: []string{\"b\"}: values set must be empty for exists and does \
                 not exist",
            );
        }
    }

    /// IMAGES-40
    #[test]
    fn numbers_are_whole() {
        for check in [job, list] {
            check(json!({"parallelism": "3"}), "");
            check(json!({"parallelism": 0}), "");
            check(json!({"parallelism": "10%"}), "parallelism does not support percentage value");
            check(json!({"parallelism": -1}), "parallelism must be non-negative");
            check(
                json!({"parallelism": "abc"}),
                "parallelism must be a valid integer: strconv.ParseInt: parsing \"abc\": invalid syntax",
            );
            check(
                json!({"parallelism": "99999999999"}),
                "parallelism must be a valid integer: strconv.ParseInt: parsing \"99999999999\": value out of range",
            );
        }
    }

    /// IMAGES-14, IMAGES-40
    #[test]
    fn a_job_ends_in_a_way_that_fits() {
        let late = "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(default 600)";
        let never = "activeDeadlineSeconds and ttlSecondsAfterFinished can only work with Always CompletionPolicyType";
        for check in [job, list] {
            check(json!({"completionPolicy": {"activeDeadlineSeconds": 599}}), late);
            check(json!({"completionPolicy": {"activeDeadlineSeconds": 600}}), "");
            let short = json!({"completionPolicy": {"activeDeadlineSeconds": 10}, "pullPolicy": {"timeoutSeconds": 20}});
            check(short, late);
            check(json!({"completionPolicy": {"type": "Never", "ttlSecondsAfterFinished": 10}}), never);
            check(json!({"completionPolicy": {"type": "Never", "activeDeadlineSeconds": 1000}}), never);
            check(
                json!({"completionPolicy": {"type": "Sometimes"}}),
                "unknown type of completionPolicy: Sometimes",
            );
            check(json!({"imagePullPolicy": "Maybe"}), "unknown imagePullPolicy: Maybe");
        }
    }

    /// IMAGES-40
    #[test]
    fn pull_secrets_stay_and_the_rest_may_change() {
        let base = base("ImagePullJob", json!({"image": "app:v1"}));
        let update = |change: Value, expected: &str| {
            check(Operation::Update, &base, json!({"spec": change}), expected);
        };
        update(json!({"pullSecrets": ["x"]}), "403 spec.pullSecrets is immutable");
        update(json!({"image": "app:v2", "selector": {"names": ["x"]}}), "");
    }
}
