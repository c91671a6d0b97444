//! Checks that the rules of many kinds are made of, in the words that Kubernetes uses.
//!
//! Every check appends what it finds, so that a user sees all mistakes at once.

use kruise_api::{
    json,
    kubernetes::{
        defaults,
        validation::{self, Violation, names},
    },
    selector::LabelSelector,
};
use serde_json::{Value, json};

/// What every check appends to.
pub type Violations = Vec<Violation>;

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const NOT_A_PERCENTAGE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  \
     or '93%', regex used for validation is '[0-9]+%')";

/// A name of letters, digits and hyphens, at most 63 long: it becomes the value of a label.
pub fn simple_name(found: &mut Violations, object: &Value, what: &str) {
    let Some(name) = json::text(object, &["metadata", "name"]).filter(|name| !name.is_empty()) else {
        return;
    };
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        let detail = format!(
            "{what} name must consist of alphanumeric characters or '-' (e.g. 'example-com', regex used for validation \
             is '^[a-zA-Z0-9\\-]+$')"
        );
        found.push(Violation::invalid("metadata.name", name, detail));
    }
    if name.len() > 63 {
        found.push(Violation::invalid("metadata.name", name, "must be no more than 63 characters"));
    }
}

/// A name that pods take as their host name or a part of it.
pub fn label_name(found: &mut Violations, object: &Value) {
    let Some(name) = json::text(object, &["metadata", "name"]).filter(|name| !name.is_empty()) else {
        return;
    };
    let broken = names::dns_label(name);
    found.extend(broken.into_iter().map(|rule| Violation::invalid("metadata.name", name, rule)));
}

/// A number that is zero or more, where it is set.
pub fn not_negative(found: &mut Violations, object: &Value, path: &[&str]) {
    if let Some(number) = json::at(object, path).and_then(Value::as_i64).filter(|number| *number < 0) {
        found.push(Violation::invalid(path.join("."), number, NOT_NEGATIVE));
    }
}

/// A number that is zero or more, or whole percents, where it is set. True when it is set and well formed.
pub fn int_or_percent(found: &mut Violations, object: &Value, path: &[&str]) -> bool {
    match json::at(object, path) {
        None => false,
        Some(Value::String(text)) => match whole_percent(text) {
            Some(_) => true,
            None => {
                found.push(Violation::invalid(path.join("."), text.as_str(), NOT_A_PERCENTAGE));
                false
            }
        },
        Some(value) => match value.as_i64() {
            Some(number) if number >= 0 => true,
            Some(number) => {
                found.push(Violation::invalid(path.join("."), number, NOT_NEGATIVE));
                false
            }
            None => {
                let detail = "must be an integer or percentage (e.g '5%%')";
                found.push(Violation::invalid(path.join("."), value.clone(), detail));
                false
            }
        },
    }
}

/// The same, and not more than all of it.
pub fn int_or_percent_up_to_all(found: &mut Violations, object: &Value, path: &[&str]) {
    if !int_or_percent(found, object, path) {
        return;
    }
    if let Some(text) = json::text(object, path).filter(|text| whole_percent(text).is_none_or(|n| n > 100)) {
        found.push(Violation::invalid(path.join("."), text, "must not be greater than 100%"));
    }
}

/// The number in `25%`. Numbers too large for this are as good as the largest.
fn whole_percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty())?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().unwrap_or(u64::MAX))
}

/// How the selector of a kind is judged.
#[derive(Clone, Copy, Debug)]
pub struct Selector {
    /// Said when there is none; the field is simply required where it is empty.
    pub missing: &'static str,
    /// Said when it selects everything.
    pub empty: &'static str,
}

/// `spec.selector`: there, well formed, and not empty.
pub fn selector(found: &mut Violations, object: &Value, rule: &Selector) {
    let path = "spec.selector";
    let Some(selector) = json::at(object, &["spec", "selector"]) else {
        found.push(Violation::required(path, rule.missing));
        return;
    };
    let broken = validation::label_selector(selector, path);
    if broken.is_empty() && is_empty_selector(selector) {
        found.push(Violation::invalid(path, selector.clone(), rule.empty));
    }
    found.extend(broken);
}

/// Whether a selector states nothing.
pub fn is_empty_selector(selector: &Value) -> bool {
    let states = |member: &str| match selector.get(member) {
        Some(Value::Object(labels)) => !labels.is_empty(),
        Some(Value::Array(expressions)) => !expressions.is_empty(),
        _ => false,
    };
    !states("matchLabels") && !states("matchExpressions")
}

/// The labels that pods or children get must be selected by `spec.selector`. Says nothing about a broken selector.
pub fn selector_matches(found: &mut Violations, object: &Value, labels: &[&str]) {
    let mut selector = json::at(object, &["spec", "selector"]).cloned().unwrap_or_default();
    if let Some(selector) = selector.as_object_mut() {
        selector.retain(|_, stated| !stated.is_null());
    }
    let matcher = serde_json::from_value::<LabelSelector>(selector).ok().and_then(|one| one.matcher().ok());
    let Some(matcher) = matcher else { return };
    let given = json::at(object, labels).cloned().unwrap_or_else(|| json!({}));
    let map = serde_json::from_value(given.clone()).unwrap_or_default();
    if !matcher.matches(&map) {
        let detail = "`selector` does not match template `labels`";
        found.push(Violation::invalid(labels.join("."), given, detail));
    }
}

/// Whether two specs differ in anything but the members that may change.
pub fn differs_outside(old: &Value, new: &Value, changeable: &[&str]) -> bool {
    let members = |object: &Value| {
        let mut spec = json::at(object, &["spec"]).and_then(Value::as_object).cloned().unwrap_or_default();
        spec.retain(|member, value| !value.is_null() && !changeable.contains(&member.as_str()));
        spec
    };
    members(old) != members(new)
}

/// What an API server would refuse in the pods of a template. `claims` are volumes that the pods get besides.
///
/// The template is judged with the defaults that its pods will get; it is not changed here.
pub fn pod_template(template: &Value, path: &str, claims: Vec<String>, allow_privileged: bool) -> Violations {
    let mut template = if template.is_object() { template.clone() } else { json!({}) };
    json::default_at(&mut template, &["spec"], json!({}));
    // A port of a template on the host's network may be left out: the pod gets it.
    let with_host_ports =
        defaults::Options { host_network_host_ports: true, ..defaults::Options::KUBERNETES };
    defaults::pod_template_spec(&mut template, &with_host_ports);
    let options = validation::Options { extra_volumes: claims };
    let mut found = validation::pod_template_spec(&template, path, &options);
    if !allow_privileged {
        unprivileged(&mut found, &template, path);
    }
    found
}

fn unprivileged(found: &mut Violations, template: &Value, path: &str) {
    for list in ["initContainers", "containers"] {
        let containers = json::at(template, &["spec", list]).and_then(Value::as_array);
        for (index, container) in containers.into_iter().flatten().enumerate() {
            if json::at(container, &["securityContext", "privileged"]) == Some(&Value::Bool(true)) {
                let path = format!("{path}.spec.{list}[{index}].securityContext.privileged");
                found.push(Violation::forbidden(path, "disallowed by cluster policy"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::aggregate;

    #[track_caller]
    fn check(rule: impl Fn(&mut Violations, &Value), object: Value, expected: &str) {
        let mut found = Violations::new();
        rule(&mut found, &object);
        assert_eq!(aggregate(&found).unwrap_or_default(), expected);
    }

    #[test]
    fn a_simple_name_has_letters_digits_and_hyphens() {
        let rule = |found: &mut Violations, object: &Value| simple_name(found, object, "BroadcastJob");
        check(rule, json!({"metadata": {"name": "job-1"}}), "");
        check(rule, json!({"metadata": {"generateName": "a.b."}}), "");
        check(
            rule,
            json!({"metadata": {"name": "a.b"}}),
            "metadata.name: Invalid value: \"a.b\": BroadcastJob name must consist of alphanumeric characters or '-' \
             (e.g. 'example-com', regex used for validation is '^[a-zA-Z0-9\\-]+$')",
        );
        let long = "a".repeat(64);
        check(
            rule,
            json!({"metadata": {"name": long}}),
            &format!("metadata.name: Invalid value: \"{long}\": must be no more than 63 characters"),
        );
    }

    #[test]
    fn a_name_of_pods_is_a_dns_label() {
        check(
            label_name,
            json!({"metadata": {"name": "a.b"}}),
            "metadata.name: Invalid value: \"a.b\": must not contain dots",
        );
    }

    #[test]
    fn numbers_and_percents() {
        let rule = |found: &mut Violations, object: &Value| {
            int_or_percent(found, object, &["spec", "maxUnavailable"]);
        };
        for fine in [json!(0), json!(3), json!("0%"), json!("150%"), Value::Null] {
            check(rule, json!({"spec": {"maxUnavailable": fine}}), "");
        }
        check(
            rule,
            json!({"spec": {"maxUnavailable": -1}}),
            "spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0",
        );
        for text in ["5", "2.5%", "-5%", "%", "many"] {
            check(
                rule,
                json!({"spec": {"maxUnavailable": text}}),
                &format!(
                    "spec.maxUnavailable: Invalid value: {text:?}: a valid percent string must be a numeric string \
                     followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
                ),
            );
        }
        let all = |found: &mut Violations, object: &Value| {
            int_or_percent_up_to_all(found, object, &["spec", "maxUnavailable"]);
        };
        check(all, json!({"spec": {"maxUnavailable": "100%"}}), "");
        check(
            all,
            json!({"spec": {"maxUnavailable": "99999999999999999999999%"}}),
            "spec.maxUnavailable: Invalid value: \"99999999999999999999999%\": must not be greater than 100%",
        );
    }

    #[test]
    fn a_selector_is_there_and_well_formed_and_selects_something() {
        let texts = Selector { missing: "", empty: "empty selector is invalid for cloneset" };
        let rule = |found: &mut Violations, object: &Value| selector(found, object, &texts);
        check(rule, json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}}), "");
        check(rule, json!({"spec": {}}), "spec.selector: Required value");
        check(
            rule,
            json!({"spec": {"selector": {"matchLabels": null, "matchExpressions": []}}}),
            "spec.selector: Invalid value: {\"matchExpressions\":[],\"matchLabels\":null}: empty selector is invalid \
             for cloneset",
        );
        check(
            rule,
            json!({"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Foo", "values": ["x"]}]}}}),
            "spec.selector.matchExpressions[0].operator: Invalid value: \"Foo\": not a valid selector operator",
        );
    }

    #[test]
    fn pods_of_a_template_carry_what_the_selector_wants() {
        let labels = ["spec", "template", "metadata", "labels"];
        let rule = |found: &mut Violations, object: &Value| selector_matches(found, object, &labels);
        let object = |labels: Value| json!({"spec": {"selector": {"matchLabels": {"app": "zz"}}, "template": {"metadata": {"labels": labels}}}});
        check(rule, object(json!({"app": "zz", "more": "x"})), "");
        check(
            rule,
            object(json!({"app": "base"})),
            "spec.template.metadata.labels: Invalid value: {\"app\":\"base\"}: `selector` does not match template \
             `labels`",
        );
        check(
            rule,
            object(Value::Null),
            "spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`",
        );
    }

    #[track_caller]
    fn check_template(template: Value, claims: &[&str], allow_privileged: bool, expected: &str) {
        let claims = claims.iter().map(|claim| (*claim).to_owned()).collect();
        let found = pod_template(&template, "spec.template", claims, allow_privileged);
        assert_eq!(aggregate(&found).unwrap_or_default(), expected);
    }

    #[test]
    fn a_template_is_judged_as_its_pods_would_be() {
        let app = json!({"name": "app", "image": "nginx"});
        check_template(json!({"spec": {"containers": [app]}}), &[], true, "");
        check_template(Value::Null, &[], true, "spec.template.spec.containers: Required value");
        check_template(
            json!({"spec": {"containers": [{"name": "app"}]}}),
            &[],
            true,
            "spec.template.spec.containers[0].image: Required value",
        );
        check_template(
            json!({"spec": {"hostNetwork": true,
                "containers": [{"name": "app", "image": "nginx", "ports": [{"containerPort": 80}]}]}}),
            &[],
            true,
            "",
        );
        let mounts = json!({"spec": {"containers": [
            {"name": "app", "image": "nginx", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}});
        check_template(mounts.clone(), &["data"], true, "");
        check_template(
            mounts,
            &[],
            true,
            "spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"data\"",
        );
    }

    #[test]
    fn privileged_containers_are_refused_where_the_manager_is_told_so() {
        let privileged = json!({"name": "a", "image": "a", "securityContext": {"privileged": true}});
        let template = json!({"spec": {"containers": [{"name": "b", "image": "b"}, privileged]}});
        check_template(template.clone(), &[], true, "");
        check_template(
            template,
            &[],
            false,
            "spec.template.spec.containers[1].securityContext.privileged: Forbidden: disallowed by cluster policy",
        );
    }
}
