//! The fingerprint of what a container has from labels and annotations. The daemon of the node reports it and the manager
//! compares it, so both make it here; it equals the original's, bit for bit.

use std::collections::BTreeMap;

use crate::{
    canonical_json, hash,
    pod::{Container, FromMetadata, Pod, Source},
};

/// The fingerprint that a container should have, by the labels and annotations of its pod.
pub fn expected(pod: &Pod, container: &Container) -> u64 {
    fingerprint(container, |variable| {
        let pairs = match variable.source {
            Source::Label => &pod.metadata.labels,
            Source::Annotation => &pod.metadata.annotations,
        };
        pairs.text(&variable.key).unwrap_or_default()
    })
}

/// The fingerprint that it has, by the environment of its process.
pub fn current(container: &Container, environment: &BTreeMap<String, String>) -> u64 {
    fingerprint(container, |variable| environment.get(variable.name.as_str()).map_or("", String::as_str))
}

fn fingerprint<'a>(container: &Container, value: impl Fn(&FromMetadata) -> &'a str) -> u64 {
    let mut variables: Vec<&FromMetadata> = container.env.from_metadata.iter().collect();
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    if variables.is_empty() {
        return hash::of_json("null").into();
    }
    let texts: Vec<String> = variables
        .into_iter()
        .map(|variable| {
            let mut text = String::from("{\"name\":");
            canonical_json::quote(&variable.name, &mut text);
            let value = value(variable);
            if !value.is_empty() {
                text.push_str(",\"value\":");
                canonical_json::quote(value, &mut text);
            }
            text.push('}');
            text
        })
        .collect();
    hash::of_json(&format!("[{}]", texts.join(","))).into()
}
