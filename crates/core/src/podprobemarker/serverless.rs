//! Probes of pods whose node has no daemon. They are told to the provider of the node by annotations, when the pod is made;
//! where the pod will run is not known then, so every pod gets them.

use std::collections::BTreeSet;

use kruise_api::{
    annotations::{POD_PROBE, POD_PROBE_MARKER_LIST},
    json,
    podprobemarker::v1alpha1::PodContainerProbe,
};
use serde_json::Value;

use super::Marker;
use crate::{admission::pod::PodContext, pod::Pod};

/// Tells a new pod which probes its markers have.
pub fn step(pod: &mut Value, context: &PodContext<'_>) -> Result<(), String> {
    let markers = context.context.cluster.pod_probe_markers(&context.request.namespace);
    if markers.is_empty() {
        return Ok(());
    }
    let view: Pod = serde_json::from_value(pod.clone()).map_err(|error| error.to_string())?;
    let Some((probes, names)) = told(&view, &markers) else { return Ok(()) };
    json::set(pod, &["metadata", "annotations", POD_PROBE], probes);
    json::set(pod, &["metadata", "annotations", POD_PROBE_MARKER_LIST], names);
    Ok(())
}

/// The probes as JSON and the names of their markers, or nothing where no probe qualifies.
fn told(pod: &Pod, markers: &[Marker]) -> Option<(String, String)> {
    let mut probes: Vec<PodContainerProbe> = Vec::new();
    let mut names = BTreeSet::new();
    for marker in markers.iter().filter(|marker| marker.chooses(pod)) {
        for probe in marker.probes() {
            let kind = probe.pod_condition_type.as_deref().unwrap_or_default();
            let is_taken = |other: &PodContainerProbe| {
                other.pod_condition_type == probe.pod_condition_type
                    || (&other.container_name, &other.name) == (&probe.container_name, &probe.name)
            };
            if kind.is_empty() || !has_container(pod, &probe.container_name) || probes.iter().any(is_taken) {
                continue;
            }
            probes.push(PodContainerProbe { marker_policy: Vec::new(), ..probe.clone() });
            names.insert(marker.key.name.as_str());
        }
    }
    let json = serde_json::to_string(&probes).ok()?;
    (!probes.is_empty()).then(|| (json, names.into_iter().collect::<Vec<_>>().join(",")))
}

fn has_container(pod: &Pod, name: &str) -> bool {
    let sidecars = pod.spec.init_containers.iter().filter(|container| container.restart_policy == "Always");
    pod.spec.containers.iter().chain(sidecars).any(|container| container.name == *name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::object::ObjectKey;

    fn marker(name: &str, probes: Value) -> Marker {
        let marker = json!({"metadata": {"name": name, "namespace": "ns"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "probes": probes}});
        let marker = serde_json::from_value(marker).unwrap();
        Marker::new(ObjectKey::new("ns", name), false, Some(Arc::new(marker)))
    }

    fn pod(labels: Value) -> Pod {
        let pod = json!({"metadata": {"name": "p", "namespace": "ns", "labels": labels},
            "spec": {"containers": [{"name": "main"}],
                "initContainers": [{"name": "nat", "restartPolicy": "Always"}, {"name": "ini"}]}});
        serde_json::from_value(pod).unwrap()
    }

    fn probe(name: &str, container: &str, condition: Option<&str>) -> Value {
        json!({"name": name, "containerName": container, "podConditionType": condition,
            "probe": {"exec": {"command": ["true"]}},
            "markerPolicy": [{"state": "Succeeded", "labels": {"a": "b"}}]})
    }

    /// DAEMON-23: what a pod is told when it is made.
    #[test]
    fn a_pod_is_told_the_probes_that_write_a_condition_of_their_own() {
        let markers = [
            marker("a", json!([probe("one", "main", Some("x.io/one")), probe("quiet", "main", None)])),
            marker(
                "b",
                json!([
                    probe("same-condition", "main", Some("x.io/one")),
                    probe("one", "main", Some("x.io/taken-name")),
                    probe("side", "nat", Some("x.io/side")),
                    probe("init", "ini", Some("x.io/init")),
                    probe("lost", "nope", Some("x.io/lost")),
                ]),
            ),
            marker("c", json!([probe("one", "main", Some("x.io/one"))])),
        ];
        let (probes, names) = told(&pod(json!({"app": "web"})), &markers).unwrap();
        assert_eq!(
            probes,
            r#"[{"name":"one","containerName":"main","probe":{"exec":{"command":["true"]}},"podConditionType":"x.io/one"},{"name":"side","containerName":"nat","probe":{"exec":{"command":["true"]}},"podConditionType":"x.io/side"}]"#
        );
        assert_eq!(names, "a,b");
        assert_eq!(told(&pod(json!({"app": "other"})), &markers), None);
        assert_eq!(
            told(&pod(json!({"app": "web"})), &[marker("q", json!([probe("q", "main", None)]))]),
            None
        );
    }
}
