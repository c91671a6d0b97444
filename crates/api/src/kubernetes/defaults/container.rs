//! Defaults of containers: termination message, pull policy, ports, environment, probes, life cycle hooks.

use super::{
    Options, PullPolicy, field_ref, image, items, member, round_resources, set_absent, set_number, set_text,
};
use serde_json::{Map, Value};

/// Writes the defaults of an ordinary container.
pub fn container(value: &mut Value, options: &Options) {
    if let Some(container) = value.as_object_mut() {
        common(container, options, options.pull_policy);
    }
}

/// Writes the defaults of an ephemeral or init container, whose pull policy always goes by the tag.
pub fn ephemeral_container(value: &mut Value, options: &Options) {
    if let Some(container) = value.as_object_mut() {
        common(container, options, PullPolicy::ByTag);
    }
}

pub(super) fn common(container: &mut Map<String, Value>, options: &Options, policy: PullPolicy) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = match policy {
        PullPolicy::ByTag => image::pull_policy(image),
        PullPolicy::Always => "Always",
    };
    set_text(container, "imagePullPolicy", policy);
    set_text(container, "terminationMessagePath", "/dev/termination-log");
    set_text(container, "terminationMessagePolicy", "File");
    set_absent(container, "resources", Map::new());
    round_resources(container);
    for port in items(container, "ports") {
        set_text(port, "protocol", "TCP");
    }
    for env in items(container, "env") {
        if let Some(source) = member(env, "valueFrom") {
            field_ref(source);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if name == "startupProbe" && !options.startup_probe {
            continue;
        }
        if let Some(found) = member(container, name) {
            probe(found, options);
        }
    }
    if let Some(lifecycle) = member(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(handler) = member(lifecycle, hook) {
                http_get(handler);
            }
        }
    }
}

fn probe(probe: &mut Map<String, Value>, options: &Options) {
    set_number(probe, "timeoutSeconds", 1);
    set_number(probe, "periodSeconds", 10);
    set_number(probe, "successThreshold", 1);
    set_number(probe, "failureThreshold", 3);
    http_get(probe);
    if options.server_only
        && let Some(grpc) = member(probe, "grpc")
    {
        set_absent(grpc, "service", "");
    }
}

fn http_get(handler: &mut Map<String, Value>) {
    if let Some(action) = member(handler, "httpGet") {
        set_text(action, "path", "/");
        set_text(action, "scheme", "HTTP");
    }
}
