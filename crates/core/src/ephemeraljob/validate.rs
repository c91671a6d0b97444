//! What an EphemeralJob must look like.

use std::collections::BTreeSet;

use kruise_api::{
    json,
    kubernetes::validation::{self, Violation},
};
use serde_json::{Value, json};

use crate::admission::{
    kinds::{Change, Context},
    rules::{self, Violations},
};

const CONTAINERS: &[&str] = &["spec", "template", "ephemeralContainers"];
/// What may change later.
const CHANGEABLE: &[&str] =
    &["replicas", "parallelism", "paused", "activeDeadlineSeconds", "ttlSecondsAfterFinished"];
const FIXED: &str = "updates to ephemeraljob spec for fields other than 'replicas', 'parallelism', 'paused', \
                     'activeDeadlineSeconds' and 'ttlSecondsAfterFinished' are forbidden";
const NOT_IN_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// What is wrong. What the original lets pass is asked only of what a request changes.
pub fn rule(change: &Change<'_>, _: &Context<'_>, found: &mut Violations) {
    let containers = list(change.new, CONTAINERS);
    found.extend(judged(containers));
    for (index, container) in containers.iter().enumerate() {
        with_whole_volumes(found, container, &format!("ephemeralContainers[{index}]"));
        image_without_blanks(found, container, &format!("ephemeralContainers[{index}].image"));
    }
    if change.touches(CONTAINERS) && containers.is_empty() {
        found.push(Violation::required("ephemeralContainers", ""));
    }
    if change.touches(&["spec", "selector"]) {
        let selector = json::at(change.new, &["spec", "selector"]).cloned().unwrap_or_default();
        let broken = validation::label_selector(&selector, "spec.selector");
        if broken.is_empty() && rules::is_empty_selector(&selector) {
            let detail = "empty selector is not valid for EphemeralJob.";
            found.push(Violation::invalid("spec.selector", selector, detail));
        }
        found.extend(broken);
    }
    for field in ["replicas", "parallelism", "activeDeadlineSeconds", "ttlSecondsAfterFinished"] {
        if change.touches(&["spec", field]) {
            rules::not_negative(found, change.new, &["spec", field]);
        }
    }
    if change.old.is_some_and(|old| rules::differs_outside(old, change.new, CHANGEABLE)) {
        found.push(Violation::forbidden("spec", FIXED));
    }
}

/// What Kubernetes says about the containers. They are judged in a pod that has all volumes which they mount: which pods
/// they come to is not known.
fn judged(containers: &[Value]) -> Violations {
    let mut known: Vec<Value> = containers.to_vec();
    for container in &mut known {
        json::take(container, &["targetContainerName"]);
    }
    let mounts = known.iter().flat_map(|container| list(container, &["volumeMounts"]));
    let volumes: BTreeSet<String> =
        mounts.filter_map(|mount| json::text(mount, &["name"])).map(str::to_owned).collect();
    let options = validation::Options { extra_volumes: volumes.into_iter().collect() };
    let mut found = validation::pod_spec(&json!({"ephemeralContainers": known}), "pod", &options);
    found.retain_mut(|violation| {
        let own = violation.path.strip_prefix("pod.").filter(|path| path.starts_with("ephemeralContainers["));
        let own = own.map(str::to_owned);
        own.map(|path| violation.path = path).is_some()
    });
    found
}

fn with_whole_volumes(found: &mut Violations, container: &Value, path: &str) {
    for (index, mount) in list(container, &["volumeMounts"]).iter().enumerate() {
        for field in ["subPath", "subPathExpr"] {
            if json::text(mount, &[field]).is_some_and(|text| !text.is_empty()) {
                let path = format!("{path}.volumeMounts[{index}].{field}");
                found.push(Violation::forbidden(path, NOT_IN_EPHEMERAL));
            }
        }
    }
}

fn image_without_blanks(found: &mut Violations, container: &Value, path: &str) {
    let image = json::text(container, &["image"]).unwrap_or_default();
    if image.trim() != image {
        found.push(Violation::invalid(path, image, "must not have leading or trailing whitespace"));
    }
}

fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    json::at(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Operation, kinds::tests_support::check};

    fn container() -> Value {
        json!({"name": "debug", "image": "busybox", "imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File",
            "targetContainerName": "app"})
    }

    fn base() -> Value {
        json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob",
            "metadata": {"name": "job", "namespace": "ns"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"ephemeralContainers": [container()]}},
        })
    }

    #[track_caller]
    fn with(change: Value, expected: &str) {
        let mut container = container();
        json_patch::merge(&mut container, &change);
        let change = json!({"spec": {"template": {"ephemeralContainers": [container]}}});
        check(Operation::Create, &base(), change, expected);
    }

    /// EJ-12: containers.
    #[test]
    fn containers_must_be_complete_and_ephemeral() {
        with(json!({}), "");
        with(json!({"imagePullPolicy": null}), "ephemeralContainers[0].imagePullPolicy: Required value");
        with(
            json!({"terminationMessagePolicy": null}),
            "ephemeralContainers[0].terminationMessagePolicy: Required value",
        );
        with(
            json!({"imagePullPolicy": "Sometimes"}),
            "ephemeralContainers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \
             \"IfNotPresent\", \"Never\"",
        );
        with(json!({"image": ""}), "ephemeralContainers[0].image: Required value");
        with(
            json!({"image": " busybox"}),
            "ephemeralContainers[0].image: Invalid value: \" busybox\": must not have leading or trailing whitespace",
        );
        for (field, value) in [
            ("ports", json!([{"containerPort": 80, "protocol": "TCP"}])),
            ("livenessProbe", json!({"exec": {"command": ["true"]}})),
            ("lifecycle", json!({"preStop": {"exec": {"command": ["true"]}}})),
        ] {
            with(
                json!({field: value}),
                &format!(
                    "ephemeralContainers[0].{field}: Forbidden: cannot be set for an Ephemeral Container"
                ),
            );
        }
        with(json!({"volumeMounts": [{"name": "data", "mountPath": "/data"}]}), "");
        with(
            json!({"volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "a"}]}),
            "ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container",
        );
    }

    /// EJ-12: the rest (EJ-D5, EJ-D6).
    #[test]
    fn a_job_says_what_it_runs_and_where() {
        check(
            Operation::Create,
            &base(),
            json!({"spec": {"template": {"ephemeralContainers": []}}}),
            "ephemeralContainers: Required value",
        );
        check(
            Operation::Create,
            &base(),
            json!({"spec": {"selector": {"matchLabels": null}}}),
            "spec.selector: Invalid value: {}: empty selector is not valid for EphemeralJob.",
        );
        for field in ["replicas", "parallelism", "activeDeadlineSeconds", "ttlSecondsAfterFinished"] {
            check(
                Operation::Create,
                &base(),
                json!({"spec": {field: -1}}),
                &format!("spec.{field}: Invalid value: -1: must be greater than or equal to 0"),
            );
        }
        check(
            Operation::Create,
            &base(),
            json!({"spec": {"template": {"ephemeralContainers": [container(), container()]}}}),
            "ephemeralContainers[1].name: Duplicate value: \"debug\"",
        );
    }

    /// EJ-12: updates.
    #[test]
    fn what_a_job_runs_never_changes() {
        let mut other = container();
        other["image"] = json!("alpine");
        let change = json!({"spec": {"template": {"ephemeralContainers": [other]}}});
        check(Operation::Update, &base(), change, &format!("spec: Forbidden: {FIXED}"));
        check(
            Operation::Update,
            &base(),
            json!({"spec": {"replicas": 3, "paused": true, "parallelism": 2}}),
            "",
        );
    }
}
