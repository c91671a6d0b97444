//! Ingress classes, runtime classes and other small kinds of a cluster's keeper.

use super::object::{get, text};
use super::{immutable, not_negative};
use crate::field::Error;
use kruise_api::kubernetes::validation::names;
use serde_json::Value;

const NULL: &Value = &Value::Null;

pub(super) fn validate_ingress_class(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    let controller = text(spec, "controller");
    match controller.split_once('/') {
        _ if controller.is_empty() => found.push(Error::required("spec.controller", "")),
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            for detail in names::dns_subdomain(domain) {
                found.push(Error::invalid("spec.controller", domain, detail));
            }
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            found.push(Error::invalid("spec.controller", controller, detail));
        }
    }
    if let Some(parameters) = get(spec, "parameters") {
        for member in ["kind", "name"] {
            if text(parameters, member).is_empty() {
                let detail = format!("{member} is required");
                found.push(Error::required(format!("spec.parameters.{member}"), detail));
            }
        }
    }
    found
}

pub(super) fn validate_ingress_class_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut found = validate_ingress_class(object);
    let part = |object: &Value| object.get("spec").cloned().unwrap_or_default();
    immutable(&mut found, &part(object), &part(old), "controller", "spec");
    found
}

pub(super) fn validate_runtime_class(object: &Value) -> Vec<Error> {
    let handler = text(object, "handler");
    names::dns_label(handler).into_iter().map(|detail| Error::invalid("handler", handler, detail)).collect()
}

pub(super) fn validate_runtime_class_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut found = validate_runtime_class(object);
    immutable(&mut found, object, old, "handler", "");
    found
}

/// Besides the template, which is that of every workload.
pub(super) fn validate_replication(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(NULL);
    not_negative(&mut found, spec, "minReadySeconds", "spec");
    let selector = get(spec, "selector").and_then(Value::as_object).filter(|labels| !labels.is_empty());
    if selector.is_none() {
        found.push(Error::required("spec.selector", ""));
    }
    not_negative(&mut found, spec, "replicas", "spec");
    if get(spec, "template").is_none() {
        found.push(Error::required("spec.template", ""));
        return found;
    }
    let labels = spec.pointer("/template/metadata/labels").cloned().unwrap_or_default();
    let matches = selector.is_some_and(|selector| {
        selector.iter().all(|(key, value)| labels.get(key).is_some_and(|own| own == value))
    });
    if !matches && selector.is_some() {
        let detail = "`selector` does not match template `labels`";
        found.push(Error::invalid("spec.template.metadata.labels", labels, detail));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(errors: Vec<Error>) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_controller_of_ingress_classes_has_a_domain() {
        let class =
            |controller: &str| texts(validate_ingress_class(&json!({"spec": {"controller": controller}})));
        assert_eq!(class("example.com/c"), [""; 0]);
        assert_eq!(class(""), ["spec.controller: Required value"]);
        assert_eq!(class("plain").len(), 1);
        assert_eq!(class("Not_A.Domain/c").len(), 1);
    }

    #[test]
    fn handlers_and_selectors_are_checked() {
        assert_eq!(texts(validate_runtime_class(&json!({"handler": "gvisor"}))), [""; 0]);
        assert_eq!(validate_runtime_class(&json!({"handler": "No Label"})).len(), 1);
        let template = json!({"metadata": {"labels": {"a": "b"}}});
        let spec = |selector: Value| json!({"spec": {"selector": selector, "template": template}});
        assert_eq!(texts(validate_replication(&spec(json!({"a": "b"})))), [""; 0]);
        assert_eq!(texts(validate_replication(&spec(json!({})))), ["spec.selector: Required value"]);
        assert_eq!(validate_replication(&spec(json!({"a": "c"}))).len(), 1);
    }
}
