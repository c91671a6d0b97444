//! Horizontal pod autoscalers.

use super::object::{get, integer, list, text};
use crate::field::Error;
use serde_json::Value;

const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

pub(super) fn validate(object: &Value) -> Vec<Error> {
    let mut found = Vec::new();
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let min = integer(spec, "minReplicas");
    if let Some(min) = min.filter(|min| *min < 1) {
        found.push(Error::invalid("spec.minReplicas", min, "must be greater than or equal to 1"));
    }
    let max = integer(spec, "maxReplicas").unwrap_or_default();
    if max < 1 {
        found.push(Error::invalid("spec.maxReplicas", max, "must be greater than 0"));
    }
    if min.is_some_and(|min| max < min) {
        found.push(Error::invalid("spec.maxReplicas", max, "must be greater than or equal to `minReplicas`"));
    }
    let target = spec.get("scaleTargetRef").unwrap_or(&Value::Null);
    for member in ["kind", "name"] {
        if text(target, member).is_empty() {
            found.push(Error::required(format!("spec.scaleTargetRef.{member}"), ""));
        }
    }
    for (index, metric) in list(spec, "metrics").iter().enumerate() {
        let path = format!("spec.metrics[{index}]");
        let kind = text(metric, "type");
        match SOURCES.iter().find(|(name, _)| *name == kind) {
            None if kind.is_empty() => {
                found.push(Error::required(format!("{path}.type"), "must specify a metric source type"));
            }
            None => {
                let names = SOURCES.map(|(name, _)| name);
                found.push(Error::not_supported(format!("{path}.type"), kind, &names));
            }
            Some((_, member)) if get(metric, member).is_none() => {
                let detail = "must populate information for the given metric source";
                found.push(Error::required(format!("{path}.{member}"), detail));
            }
            Some(_) => {}
        }
    }
    found
}
