//! Short ways to write a pod down and to ask about one.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::{Map, Value, json};

/// A pod in the making; see [`named`].
#[derive(Clone, Debug)]
pub struct Builder {
    object: Value,
}

/// A pod with this name, no container yet, and no time to spare when it ends.
pub fn named(name: &str) -> Builder {
    let object = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "containers": [], "terminationGracePeriodSeconds": 1 },
    });
    Builder { object }
}

impl Builder {
    /// Adds a container.
    pub fn container(mut self, name: &str, image: &str) -> Self {
        if let Some(containers) = self.object.pointer_mut("/spec/containers").and_then(Value::as_array_mut) {
            containers.push(json!({ "name": name, "image": image }));
        }
        self
    }

    /// Adds a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        kruise_api::json::set(&mut self.object, &["metadata", "labels", key], value);
        self
    }

    /// Lets the pod run only on nodes with this label.
    pub fn on_nodes(mut self, (key, value): (&str, &str)) -> Self {
        kruise_api::json::set(&mut self.object, &["spec", "nodeSelector", key], value);
        self
    }

    /// Writes any field of the spec.
    pub fn spec(mut self, field: &str, value: impl Into<Value>) -> Self {
        kruise_api::json::set(&mut self.object, &["spec", field], value);
        self
    }

    /// The pod as a template of a workload: metadata and spec.
    pub fn template(&self) -> Value {
        let mut metadata = self.object.get("metadata").cloned().unwrap_or_default();
        metadata.as_object_mut().map(|metadata: &mut Map<String, Value>| metadata.remove("name"));
        json!({ "metadata": metadata, "spec": self.object.get("spec") })
    }
}

impl From<Builder> for Value {
    fn from(builder: Builder) -> Self {
        builder.object
    }
}

/// Whether the pod's `Ready` condition is true.
pub fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready") == Some("True")
}

/// The status of one condition.
pub fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind).map(|condition| condition.status.as_str())
}

/// The status of one container.
pub fn container<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == name)
}

/// The pod in one line: phase, readiness, and for each container image, restarts and whether it is ready.
pub fn summary(pod: &Pod) -> String {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("no phase");
    let statuses =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let containers: Vec<String> = statuses
        .iter()
        .map(|status| {
            let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
            let why = waiting.and_then(|waiting| waiting.reason.as_deref()).unwrap_or_default();
            format!(
                "{}={} ready={} restarts={} {why}",
                status.name, status.image, status.ready, status.restart_count
            )
        })
        .collect();
    format!("{name} {phase} ready={} [{}]", is_ready(pod), containers.join("; "))
}
