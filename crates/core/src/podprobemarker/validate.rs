//! What a PodProbeMarker must look like.
//!
//! The paths are those of the original, which leave the place in the list out; the values name the probe.

use std::collections::BTreeSet;

use kruise_api::{
    json,
    kubernetes::validation::{Violation, names},
};
use serde_json::Value;

use super::{RESERVED, SEPARATOR};
use crate::admission::{
    kinds::{Change, Context},
    rules::Violations,
};

const SELECTOR: &[&str] = &["spec", "selector"];
const PROBES: &[&str] = &["spec", "probes"];
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// Why a probe may not name a host: it could ask anything that the node can reach, in the name of the node.
pub(crate) const NO_HOST: &str = "host field in probes is not allowed";

/// What is wrong with the probes. The selector is judged before.
pub fn rule(change: &Change<'_>, _: &Context<'_>, found: &mut Violations) {
    if let Some(old) = change.old
        && json::at(old, SELECTOR) != json::at(change.new, SELECTOR)
    {
        let selector = json::at(change.new, SELECTOR).cloned().unwrap_or_default();
        found.push(Violation::invalid("selector", selector, "selector must be immutable"));
    }
    let probes = items(change.new, PROBES);
    if probes.is_empty() {
        let none = Value::Array(Vec::new());
        found.push(Violation::invalid("spec.probes", none, "empty probes is not valid for PodProbeMarker."));
    }
    let mut names = BTreeSet::new();
    let mut conditions = BTreeSet::new();
    for probe in probes {
        named(found, probe, &mut names);
        handler(found, json::at(probe, &["probe"]).unwrap_or(&Value::Null));
        condition(found, probe, &mut conditions, change.touches(PROBES));
        policies(found, items(probe, &["markerPolicy"]));
    }
}

fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    json::at(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn named<'a>(found: &mut Violations, probe: &'a Value, seen: &mut BTreeSet<&'a str>) {
    let name = json::text(probe, &["name"]).unwrap_or_default();
    let mut invalid =
        |value: &str, detail: &str| found.push(Violation::invalid("spec.probes", value, detail));
    if name.contains(SEPARATOR) {
        invalid(name, "probe name can't contains '#'.");
    }
    if name.is_empty() {
        invalid(name, "probe name can't be empty in PodProbeMarker.");
    }
    if json::text(probe, &["containerName"]).unwrap_or_default().is_empty() {
        invalid("", "probe containerName can't be empty in PodProbeMarker.");
    }
    if RESERVED.contains(&name) {
        invalid(name, &format!("probe name can't be {name}"));
    }
    if !name.is_empty() && !seen.insert(name) {
        invalid(name, "probe name must be unique in PodProbeMarker.");
    }
}

/// The question itself: one way to ask, and only of the pod.
fn handler(found: &mut Violations, probe: &Value) {
    let mut ways = 0;
    for way in ["exec", "httpGet", "tcpSocket"] {
        let Some(given) = json::at(probe, &[way]) else { continue };
        ways += 1;
        let path = format!("spec.probe.{way}");
        if ways > 1 {
            found.push(Violation::forbidden(path, "may not specify more than 1 handler type"));
            continue;
        }
        match way {
            "exec" if items(given, &["command"]).is_empty() => {
                found.push(Violation::required(format!("{path}.command"), ""));
            }
            "httpGet" => http(found, given, &path),
            "tcpSocket" => {
                port(found, given, &path);
                host(found, given, &path);
            }
            _ => {}
        }
    }
    if ways == 0 {
        found.push(Violation::required("spec.probe", "must specify a handler type"));
    }
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        let number = json::at(probe, &[field]).and_then(Value::as_i64);
        if let Some(number) = number.filter(|number| *number < 0) {
            found.push(Violation::invalid(format!("spec.probe.{field}"), number, NOT_NEGATIVE));
        }
    }
}

fn http(found: &mut Violations, given: &Value, path: &str) {
    if json::text(given, &["path"]).unwrap_or_default().is_empty() {
        found.push(Violation::required(format!("{path}.path"), ""));
    }
    port(found, given, path);
    host(found, given, path);
    // The original refuses an empty scheme, although its manual leaves it out. It means HTTP.
    let scheme = json::text(given, &["scheme"]).unwrap_or_default();
    if !matches!(scheme, "" | "HTTP" | "HTTPS") {
        found.push(Violation::not_supported(format!("{path}.scheme"), scheme, &["HTTP", "HTTPS"]));
    }
    for header in items(given, &["httpHeaders"]) {
        let name = json::text(header, &["name"]).unwrap_or_default();
        each(found, &format!("{path}.httpHeaders"), name, names::http_header(name));
    }
}

fn port(found: &mut Violations, given: &Value, path: &str) {
    let path = format!("{path}.port");
    match json::at(given, &["port"]) {
        Some(Value::String(name)) => each(found, &path, name, names::port_name(name)),
        number => {
            let number = number.and_then(Value::as_i64).unwrap_or_default();
            found.extend(names::port_number(number).map(|rule| Violation::invalid(path, number, rule)));
        }
    }
}

pub(crate) fn host(found: &mut Violations, given: &Value, path: &str) {
    if let Some(host) = json::text(given, &["host"]).filter(|host| !host.is_empty()) {
        found.push(Violation::invalid(format!("{path}.host"), host, NO_HOST));
    }
}

fn condition<'a>(found: &mut Violations, probe: &'a Value, seen: &mut BTreeSet<&'a str>, is_new: bool) {
    let kind = json::text(probe, &["podConditionType"]).unwrap_or_default();
    if kind.is_empty() {
        if items(probe, &["markerPolicy"]).is_empty() {
            let detail = "podConditionType and markerPolicy cannot be empty at the same time";
            found.push(Violation::invalid("spec.probes", probe.clone(), detail));
        }
        return;
    }
    if !seen.insert(kind) {
        let detail = format!("podConditionType {kind} must be unique in podProbeMarker");
        found.push(Violation::invalid("spec.probes", kind, detail));
    }
    each(found, "spec", kind, names::qualified_name(kind));
    // The original accepts these, and writes over what the kubelet says. Whoever has one keeps it until they change it.
    if is_new && RESERVED.contains(&kind) {
        found.push(Violation::invalid("spec.probes", kind, format!("podConditionType can't be {kind}")));
    }
}

fn policies(found: &mut Violations, policies: &[Value]) {
    let mut seen = BTreeSet::new();
    for policy in policies {
        let state = json::text(policy, &["state"]).unwrap_or_default();
        if !seen.insert(state) {
            found.push(Violation::invalid("spec.markerPolicy", state, "marker policy state must be unique."));
        }
        if !matches!(state, "Succeeded" | "Failed") {
            let detail = "marker policy state must be 'Succeeded' or 'Failed'";
            found.push(Violation::required("spec.markerPolicy.state", detail));
        }
        let part =
            |part: &str| json::at(policy, &[part]).and_then(Value::as_object).filter(|map| !map.is_empty());
        let (labels, annotations) = (part("labels"), part("annotations"));
        if labels.is_none() && annotations.is_none() {
            let detail = "marker policy annotations or labels can't be both empty";
            found.push(Violation::required("spec.markerPolicy", detail));
        }
        for (key, value) in labels.into_iter().flatten() {
            let path = "spec.markerPolicy.labels";
            each(found, path, key, names::qualified_name(key));
            let value = value.as_str().unwrap_or_default();
            each(found, path, value, names::label_value(value));
        }
        for key in annotations.into_iter().flat_map(|map| map.keys()) {
            // Keys of annotations are judged in small letters, as a server does it.
            let path = "spec.markerPolicy.annotations";
            each(found, path, key, names::qualified_name(&key.to_lowercase()));
        }
    }
}

fn each(found: &mut Violations, path: &str, value: &str, rules: Vec<String>) {
    found.extend(rules.into_iter().map(|rule| Violation::invalid(path, value, rule)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::{Operation, kinds::tests_support::check};

    fn base() -> Value {
        json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker",
            "metadata": {"name": "ppm", "namespace": "ns"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "probes": [{"name": "p", "containerName": "main", "podConditionType": "x.io/ok",
                    "probe": {"exec": {"command": ["true"]}}}],
            },
        })
    }

    /// Changes the one probe.
    #[track_caller]
    fn probe(change: Value, expected: &str) {
        let mut probe = base()["spec"]["probes"][0].clone();
        json_patch::merge(&mut probe, &change);
        check(Operation::Create, &base(), json!({"spec": {"probes": [probe]}}), expected);
    }

    /// Replaces the question.
    #[track_caller]
    fn asks(question: Value, expected: &str) {
        let mut probe = base()["spec"]["probes"][0].clone();
        probe["probe"] = question;
        check(Operation::Create, &base(), json!({"spec": {"probes": [probe]}}), expected);
    }

    /// DAEMON-24: names, in the words of the original.
    #[test]
    fn probes_have_names_that_are_told_apart() {
        probe(json!({}), "");
        let no_probes = "spec.probes: Invalid value: []: empty probes is not valid for PodProbeMarker.";
        check(Operation::Create, &base(), json!({"spec": {"probes": []}}), no_probes);
        check(Operation::Update, &base(), json!({"spec": {"probes": []}}), no_probes);
        probe(json!({"name": "a#b"}), "spec.probes: Invalid value: \"a#b\": probe name can't contains '#'.");
        probe(
            json!({"name": ""}),
            "spec.probes: Invalid value: \"\": probe name can't be empty in PodProbeMarker.",
        );
        probe(
            json!({"containerName": ""}),
            "spec.probes: Invalid value: \"\": probe containerName can't be empty in PodProbeMarker.",
        );
        for name in RESERVED {
            probe(
                json!({"name": name}),
                &format!("spec.probes: Invalid value: \"{name}\": probe name can't be {name}"),
            );
        }
        let mut second = base()["spec"]["probes"][0].clone();
        second["podConditionType"] = json!("x.io/two");
        check(
            Operation::Create,
            &base(),
            json!({"spec": {"probes": [base()["spec"]["probes"][0], second]}}),
            "spec.probes: Invalid value: \"p\": probe name must be unique in PodProbeMarker.",
        );
    }

    /// DAEMON-24: handlers. No probe leaves the pod.
    #[test]
    fn a_probe_asks_in_one_way_and_only_its_pod() {
        asks(json!({"periodSeconds": 1}), "spec.probe: Required value: must specify a handler type");
        asks(json!({"grpc": {"port": 1}}), "spec.probe: Required value: must specify a handler type");
        asks(
            json!({"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}),
            "spec.probe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        );
        asks(json!({"exec": {}}), "spec.probe.exec.command: Required value");
        asks(json!({"httpGet": {"port": 80}}), "spec.probe.httpGet.path: Required value");
        asks(
            json!({"httpGet": {"port": 80, "path": "/", "host": "x"}}),
            "spec.probe.httpGet.host: Invalid value: \"x\": host field in probes is not allowed",
        );
        asks(
            json!({"tcpSocket": {"port": 80, "host": "169.254.169.254"}}),
            "spec.probe.tcpSocket.host: Invalid value: \"169.254.169.254\": host field in probes is not allowed",
        );
        asks(json!({"httpGet": {"port": "web", "path": "/"}}), "");
        asks(
            json!({"httpGet": {"port": 80, "path": "/", "scheme": "FTP"}}),
            "spec.probe.httpGet.scheme: Unsupported value: \"FTP\": supported values: \"HTTP\", \"HTTPS\"",
        );
        asks(
            json!({"httpGet": {"port": 0, "path": "/"}}),
            "spec.probe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
        );
        asks(
            json!({"tcpSocket": {"port": 70000}}),
            "spec.probe.tcpSocket.port: Invalid value: 70000: must be between 1 and 65535, inclusive",
        );
        asks(
            json!({"httpGet": {"port": "Bad_Name!", "path": "/"}}),
            "spec.probe.httpGet.port: Invalid value: \"Bad_Name!\": must contain only alpha-numeric characters (a-z, \
             0-9), and hyphens (-)",
        );
        asks(
            json!({"httpGet": {"port": 80, "path": "/", "httpHeaders": [{"name": "a b", "value": "x"}]}}),
            "spec.probe.httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric \
             characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
        );
        asks(
            json!({"exec": {"command": ["a"]}, "successThreshold": -1, "failureThreshold": -1}),
            "[spec.probe.successThreshold: Invalid value: -1: must be greater than or equal to 0, \
             spec.probe.failureThreshold: Invalid value: -1: must be greater than or equal to 0]",
        );
        for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds"] {
            asks(
                json!({"exec": {"command": ["a"]}, field: -1}),
                &format!("spec.probe.{field}: Invalid value: -1: must be greater than or equal to 0"),
            );
        }
    }

    /// DAEMON-24: what a result is for.
    #[test]
    fn a_probe_writes_a_condition_of_its_own_or_marks() {
        let mut alone = base()["spec"]["probes"][0].clone();
        alone.as_object_mut().unwrap().remove("podConditionType");
        check(
            Operation::Create,
            &base(),
            json!({"spec": {"probes": [alone]}}),
            &format!(
                "spec.probes: Invalid value: {alone}: podConditionType and markerPolicy cannot be empty at the same time"
            ),
        );
        let mut second = base()["spec"]["probes"][0].clone();
        second["name"] = json!("q");
        check(
            Operation::Create,
            &base(),
            json!({"spec": {"probes": [base()["spec"]["probes"][0], second]}}),
            "spec.probes: Invalid value: \"x.io/ok\": podConditionType x.io/ok must be unique in podProbeMarker",
        );
        let word = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        probe(json!({"podConditionType": "a b"}), &format!("spec: Invalid value: \"a b\": {word}"));
        probe(
            json!({"podConditionType": "Ready"}),
            "spec.probes: Invalid value: \"Ready\": podConditionType can't be Ready",
        );
        let policy = |policies: Value, expected: &str| probe(json!({"markerPolicy": policies}), expected);
        policy(
            json!([{"state": "Succeeded", "labels": {"a": "b"}}, {"state": "Failed", "annotations": {"a": "b c"}}]),
            "",
        );
        policy(
            json!([{"state": "Succeeded", "labels": {"a": "b"}}, {"state": "Succeeded", "labels": {"a": "c"}}]),
            "spec.markerPolicy: Invalid value: \"Succeeded\": marker policy state must be unique.",
        );
        for state in ["True", "Unknown"] {
            policy(
                json!([{"state": state, "labels": {"a": "b"}}]),
                "spec.markerPolicy.state: Required value: marker policy state must be 'Succeeded' or 'Failed'",
            );
        }
        policy(
            json!([{"state": "Succeeded"}]),
            "spec.markerPolicy: Required value: marker policy annotations or labels can't be both empty",
        );
        policy(
            json!([{"state": "Succeeded", "labels": {"a b": "c"}}]),
            &format!("spec.markerPolicy.labels: Invalid value: \"a b\": {word}"),
        );
        policy(
            json!([{"state": "Succeeded", "annotations": {"a b": "c"}}]),
            &format!("spec.markerPolicy.annotations: Invalid value: \"a b\": {word}"),
        );
        policy(
            json!([{"state": "Succeeded", "labels": {"a": "c d"}}]),
            "spec.markerPolicy.labels: Invalid value: \"c d\": a valid label must be an empty string or consist of \
             alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
             'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        );
    }

    /// DAEMON-24: the selector.
    #[test]
    fn the_selector_is_there_and_stays() {
        check(
            Operation::Create,
            &base(),
            json!({"spec": {"selector": {"matchLabels": null}}}),
            "spec.selector: Invalid value: {}: empty selector is not valid for podProbeMarker.",
        );
        check(
            Operation::Update,
            &base(),
            json!({"spec": {"selector": {"matchLabels": {"a": "other"}}}}),
            "selector: Invalid value: {\"matchLabels\":{\"a\":\"other\"}}: selector must be immutable",
        );
        check(Operation::Update, &base(), json!({"metadata": {"labels": {"a": "b"}}}), "");
    }

    #[test]
    fn a_stored_marker_with_a_condition_of_others_can_still_be_changed_elsewhere() {
        let mut stored = base();
        stored["spec"]["probes"][0]["podConditionType"] = json!("Ready");
        check(Operation::Update, &stored, json!({"metadata": {"labels": {"a": "b"}}}), "");
    }
}
