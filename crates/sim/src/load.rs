//! What pods and nodes use: a model, for nothing runs here.
//!
//! A container uses a part of what it requests; which part follows from the pod's uid, so that it stays the same. Who
//! wants something else says so on the pod:
//!
//! | annotation | value |
//! | --- | --- |
//! | `sim.kruise.io/cpu`, `sim.kruise.io/memory` | `80%` of the request, or an amount such as `250m` or `64Mi`, for each container |
//! | `sim.kruise.io/shared-cpu` | an amount that all ready pods of one controller share, as they share their clients |

use std::collections::BTreeMap;
use std::sync::Arc;

use kruise_api::kubernetes::quantity::Quantity;
use kruise_apiserver::metrics::{PodUsage, Source, Usage};
use kruise_apiserver::store::{Record, Store};
use serde::Deserialize;
use serde_json::Value;

use crate::json::{at, list, text};
use crate::kubelet::amount;

/// The load of each container's processor.
pub const CPU: &str = "sim.kruise.io/cpu";
/// The memory of each container.
pub const MEMORY: &str = "sim.kruise.io/memory";
/// The load that the pods of one controller share.
pub const SHARED_CPU: &str = "sim.kruise.io/shared-cpu";

/// What a node uses for itself.
const NODE_ITSELF: Usage = Usage { cpu_nanos: 120_000_000, memory_bytes: 640 << 20 };
/// What a container uses that requests nothing.
const LITTLE_CPU: i128 = 10;
const LITTLE_MEMORY: i128 = 32 << 20;

/// The model, over the objects of a server.
pub(crate) struct Load {
    pub(crate) store: Arc<Store>,
}

impl Source for Load {
    fn pods(&self, pods: &[Arc<Record>]) -> Vec<Option<PodUsage>> {
        let mut sharers = BTreeMap::new();
        pods.iter().map(|pod| self.pod(&pod.value(), &mut sharers)).collect()
    }

    fn nodes(&self, nodes: &[Arc<Record>]) -> Vec<Option<Usage>> {
        let mut used: BTreeMap<&str, Usage> = BTreeMap::new();
        let (_, pods) = self.store.list("/pods", None);
        let mut sharers = BTreeMap::new();
        for pod in &pods {
            let usage = self.pod(&pod.value(), &mut sharers).into_iter().flatten().map(|(_, usage)| usage);
            let total = used.entry(pod.field("spec.nodeName")).or_default();
            *total = usage.fold(*total, Usage::plus);
        }
        let one = |node: &Arc<Record>| {
            let ready = list(&node.value(), "/status/conditions")
                .iter()
                .any(|condition| text(condition, "/type") == "Ready" && text(condition, "/status") == "True");
            ready.then(|| used.get(&*node.name).copied().unwrap_or_default().plus(NODE_ITSELF))
        };
        nodes.iter().map(one).collect()
    }
}

/// The number of ready pods by namespace and controller.
type Sharers = BTreeMap<String, BTreeMap<String, i128>>;

impl Load {
    /// What the running containers of a pod use.
    fn pod(&self, pod: &Value, sharers: &mut Sharers) -> Option<PodUsage> {
        if text(pod, "/status/phase") != "Running" {
            return None;
        }
        let runs = |name: &str| {
            let mut statuses = list(pod, "/status/containerStatuses")
                .iter()
                .chain(list(pod, "/status/initContainerStatuses"));
            statuses.any(|status| text(status, "/name") == name && at(status, "/state/running").is_some())
        };
        let sidecars =
            list(pod, "/spec/initContainers").iter().filter(|one| text(one, "/restartPolicy") == "Always");
        let containers: Vec<&Value> = list(pod, "/spec/containers")
            .iter()
            .chain(sidecars)
            .filter(|container| runs(text(container, "/name")))
            .collect();
        let shared = self
            .share(pod, sharers)
            .map(|share| share / i128::try_from(containers.len()).unwrap_or(1).max(1));
        let usage = |container: &&Value| {
            let name = text(container, "/name").to_owned();
            let resources = container.get("resources").unwrap_or(&Value::Null);
            let luck = luck(text(pod, "/metadata/uid"), &name);
            // Between 10 and 40 percent of the processor, between 50 and 80 of the memory.
            let cpu = match shared {
                Some(share) => share,
                None => load(pod, CPU, amount(resources, "cpu"), (LITTLE_CPU, 10 + luck)),
            };
            let memory = load(pod, MEMORY, amount(resources, "memory"), (LITTLE_MEMORY, 50 + luck));
            let fit = |number: i128| i64::try_from(number).unwrap_or(i64::MAX);
            (name, Usage { cpu_nanos: fit(cpu * 1_000_000), memory_bytes: fit(memory) })
        };
        Some(containers.iter().map(usage).collect())
    }

    /// A pod's part of a load that is shared, in thousandths of a processor.
    fn share(&self, pod: &Value, sharers: &mut Sharers) -> Option<i128> {
        let total = Quantity::parse(mark(pod, SHARED_CPU)?).ok()?.millis();
        if !is_ready(list(pod, "/status/conditions")) {
            return Some(0);
        }
        let namespace = text(pod, "/metadata/namespace");
        let ready = sharers.entry(namespace.to_owned()).or_insert_with(|| self.ready(namespace));
        let controller = list(pod, "/metadata/ownerReferences")
            .iter()
            .find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
            .map_or("", |owner| text(owner, "/uid"));
        Some(total / ready.get(controller).copied().filter(|_| !controller.is_empty()).unwrap_or(1).max(1))
    }

    /// How many ready pods each controller of a namespace has.
    fn ready(&self, namespace: &str) -> BTreeMap<String, i128> {
        let (_, pods) = self.store.list("/pods", Some(namespace));
        let mut counts = BTreeMap::new();
        for pod in pods.iter().filter(|pod| !pod.deleting) {
            let Ok(part) = serde_json::from_slice::<Part>(&pod.json()) else { continue };
            if !is_ready(&part.status.conditions) {
                continue;
            }
            for owner in part.metadata.owner_references.into_iter().filter(|owner| owner.controller) {
                *counts.entry(owner.uid).or_default() += 1;
            }
        }
        counts
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    metadata: MetaPart,
    status: StatusPart,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetaPart {
    owner_references: Vec<OwnerPart>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnerPart {
    uid: String,
    controller: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusPart {
    conditions: Vec<Value>,
}

fn is_ready(conditions: &[Value]) -> bool {
    conditions.iter().any(|one| text(one, "/type") == "Ready" && text(one, "/status") == "True")
}

fn mark<'p>(pod: &'p Value, name: &str) -> Option<&'p str> {
    pod.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// An amount: as the pod says, or a part of the request, or a little. Processors count in thousandths.
fn load(pod: &Value, name: &str, request: i128, (little, percent): (i128, i128)) -> i128 {
    let base = if request > 0 { request } else { little };
    let Some(said) = mark(pod, name) else { return base * percent / 100 };
    if let Some(percent) = said.strip_suffix('%').and_then(|text| text.trim().parse::<i128>().ok()) {
        return base * percent.clamp(0, 100_000) / 100;
    }
    match Quantity::parse(said) {
        Ok(quantity) if name == CPU => quantity.millis(),
        Ok(quantity) => quantity.value(),
        Err(_) => base * percent / 100,
    }
}

/// A number below 31 that depends on the pod and its container only.
fn luck(uid: &str, container: &str) -> i128 {
    let bytes = uid.bytes().chain(container.bytes());
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    i128::from(hash % 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn annotations_are_amounts_or_parts_of_the_request() {
        let pod = |value: &str| json!({"metadata": {"annotations": {CPU: value, MEMORY: value}}});
        for (said, request, cpu, memory) in [
            ("50%", 200, 100, 100),
            ("50%", 0, 5, 16 << 20),
            ("250m", 200, 250, 1),
            ("2", 200, 2000, 2),
            ("nonsense", 200, 40, 40),
        ] {
            assert_eq!(load(&pod(said), CPU, request, (LITTLE_CPU, 20)), cpu, "{said}");
            assert_eq!(load(&pod(said), MEMORY, request, (LITTLE_MEMORY, 20)), memory, "{said}");
        }
        assert_eq!(load(&json!({}), CPU, 1000, (LITTLE_CPU, 30)), 300);
    }
}
