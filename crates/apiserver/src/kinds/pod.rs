//! Pods and pod templates. The rules are shared with our own kinds; here they become errors of this server.

use super::{error, errors};
use crate::field::Error;
use kruise_api::kubernetes::validation::{self, Options};
use serde_json::Value;

pub(super) fn validate_create(pod: &Value) -> Vec<Error> {
    errors(validation::pod(pod))
}

/// The template in member `member` of `owner`, with errors at that path.
pub(super) fn validate_template(owner: &Value, member: &str) -> Vec<Error> {
    let template = owner.get(member).unwrap_or(&Value::Null);
    errors(validation::pod_template_spec(template, member, &Options::default()))
}

pub(super) fn validate_update(pod: &Value, old: &Value, subresource: Option<&str>) -> Vec<Error> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let valid = || validation::pod_spec(spec, "spec", &Options::default());
    match subresource {
        Some("status" | "binding" | "eviction") => Vec::new(),
        Some("resize") => errors(valid()).into_iter().chain(errors(validation::resize(pod, old))).collect(),
        Some("ephemeralcontainers") => {
            let changes = validation::ephemeral_containers_update(pod, old);
            valid().into_iter().chain(changes).map(error).collect()
        }
        // What did not change was checked before; this keeps updates of labels cheap.
        _ if pod.get("spec") == old.get("spec") => Vec::new(),
        _ => valid().into_iter().chain(validation::pod_update(pod, old)).map(error).collect(),
    }
}
