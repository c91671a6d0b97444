//! Pods that the original injected.

use kruise_api::kubernetes::defaults;
use serde_json::{Value, json};

use super::kit::World;
use crate::{launch_priority, sidecarset::record};

const PARTS: [&str; 9] = [
    "name",
    "image",
    "env",
    "volumeMounts",
    "volumeDevices",
    "resources",
    "lifecycle",
    "restartPolicy",
    "command",
];

/// What of a pod was recorded. A server fills in more than injection does, so its defaults are added.
fn essence(mut pod: Value) -> Value {
    defaults::pod(&mut pod, &defaults::Options::KUBERNETES);
    let list = |name: &str| pod["spec"][name].as_array().cloned().unwrap_or_default();
    let containers = |name: &str| -> Value {
        list(name)
            .into_iter()
            .map(|container| {
                let mut kept = container.as_object().cloned().unwrap();
                kept.retain(|member, _| PARTS.contains(&member.as_str()));
                Value::from(kept)
            })
            .collect()
    };
    let annotations = pod["metadata"].get("annotations").cloned().unwrap_or_else(|| json!({}));
    json!({"annotations": annotations, "containers": containers("containers"),
        "initContainers": containers("initContainers"), "volumes": list("volumes"),
        "imagePullSecrets": list("imagePullSecrets")})
}

/// What the original computes with binary fractions, and what it should have been.
fn exact(case: &Value, expected: &mut Value) {
    if case == "resources-policy" {
        for container in expected["containers"].as_array_mut().unwrap() {
            for kind in ["limits", "requests"] {
                let cpu = container["resources"].get_mut(kind).and_then(|list| list.get_mut("cpu"));
                if let Some(cpu) = cpu.filter(|cpu| **cpu == "115m") {
                    *cpu = "116m".into();
                }
            }
        }
    }
}

/// SIDECARSET-1, SIDECARSET-8, SIDECARSET-10, SIDECARSET-11, SIDECARSET-17, SIDECARSET-24, SIDECARSET-34, LAUNCH-15
#[test]
fn pods_become_what_the_original_makes_of_them() {
    let lines = include_str!("../../../../tests/recorded/sidecarset-pods.jsonl").lines();
    let mut count = 0;
    for line in lines.map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let mut expected = line["expected"].clone();
        exact(&line["case"], &mut expected);
        // The time of the injection is in the record.
        let recorded = expected["annotations"]["kruise.io/sidecarset-hash"].as_str();
        let entries = recorded.map(|text| record::read(text).unwrap()).unwrap_or_default();
        let time = entries.values().find_map(|entry| entry.update_timestamp);
        let sets = line["sets"].as_array().unwrap().iter();
        let mut world = World::new(sets.map(|set| serde_json::from_value(set.clone()).unwrap()));
        // The labels that the sets wanted of the namespace.
        let wanted = world.sets.iter().filter_map(|set| set.spec.namespace_selector.as_ref());
        let wanted = wanted.flat_map(|selector| selector.match_labels.iter());
        world.namespace =
            Some(wanted.map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect());
        world.now = time.map_or(world.now, |time| time.0);
        let mut pod = world.inject(line["sent"].clone()).unwrap();
        launch_priority::mutate(&mut pod, 0).unwrap();
        assert_eq!(essence(pod), expected, "{} {}", line["case"], line["sent"]["metadata"]["name"]);
        count += 1;
    }
    assert_eq!(count, 14);
}
