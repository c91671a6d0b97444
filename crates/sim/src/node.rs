//! Node objects: what a kubelet registers and reports.

use std::collections::BTreeMap;

use kruise_apiserver::discovery::GIT_VERSION;
use serde_json::{Map, Value, json};

use crate::json::fields;

const ZONE: &str = "topology.kubernetes.io/zone";

/// A node to simulate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The node's name.
    pub name: String,
    /// Labels beside the usual ones.
    pub labels: BTreeMap<String, String>,
    /// The zone, as the label `topology.kubernetes.io/zone`; none when empty.
    pub zone: String,
    /// Capacity for cpu, as a quantity.
    pub cpu: String,
    /// Capacity for memory, as a quantity.
    pub memory: String,
    /// The most pods.
    pub pods: u32,
}

impl Node {
    /// A node with 16 cpus, 64 GiB and room for 110 pods.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            labels: BTreeMap::new(),
            zone: String::new(),
            cpu: "16".to_owned(),
            memory: "64Gi".to_owned(),
            pods: 110,
        }
    }

    /// A node as it registered itself earlier; `None` for one that is not simulated.
    pub(crate) fn registered(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name")?;
        let usual = Self::named(name);
        if text("/spec/providerID")? != usual.provider_id() {
            return None;
        }
        let capacity = |resource: &str, usual: String| {
            text(&format!("/status/capacity/{resource}")).map_or(usual, ToOwned::to_owned)
        };
        let zone = object.pointer("/metadata/labels").and_then(|labels| labels.get(ZONE)?.as_str());
        Some(Self {
            zone: zone.unwrap_or_default().to_owned(),
            cpu: capacity("cpu", usual.cpu),
            memory: capacity("memory", usual.memory),
            pods: text("/status/capacity/pods").and_then(|pods| pods.parse().ok()).unwrap_or(usual.pods),
            ..Self::named(name)
        })
    }

    fn provider_id(&self) -> String {
        format!("sim://{}", self.name)
    }

    /// The object as it is registered.
    pub(crate) fn object(&self, index: usize) -> Value {
        let mut labels = self.labels.clone();
        let mut label = |key: &str, value: &str| {
            labels.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        };
        label("kubernetes.io/hostname", &self.name);
        for prefix in ["kubernetes.io", "beta.kubernetes.io"] {
            label(&format!("{prefix}/os"), "linux");
            label(&format!("{prefix}/arch"), "amd64");
        }
        if !self.zone.is_empty() {
            label(ZONE, &self.zone);
            label("topology.kubernetes.io/region", "region-1");
        }
        json!({
            "metadata": {
                "name": self.name, "labels": labels,
                "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            },
            "spec": {
                "podCIDR": format!("10.{}.{}.0/24", 128 + (index >> 8) % 96, index & 255),
                "providerID": self.provider_id(),
            },
        })
    }

    /// The whole status, as a patch.
    pub(crate) fn status(&self, index: usize, since: &str, now: &str) -> Map<String, Value> {
        let resources = json!({
            "cpu": self.cpu, "memory": self.memory, "pods": self.pods.to_string(),
            "ephemeral-storage": "100Gi", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
        });
        let condition = |kind: &str, status: &str, reason: &str, message: &str| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": now, "lastTransitionTime": since,
            })
        };
        fields(json!({"status": {
            "capacity": resources, "allocatable": resources,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory",
                    "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID",
                    "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "addresses": [
                {"type": "InternalIP", "address": host_ip(index)}, {"type": "Hostname", "address": self.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64", "bootID": format!("00000000-0000-4000-8000-{index:012x}"),
                "containerRuntimeVersion": "containerd://2.0.5", "kernelVersion": "6.8.0", "kubeProxyVersion": "",
                "kubeletVersion": GIT_VERSION, "machineID": format!("{index:032x}"), "operatingSystem": "linux",
                "osImage": "Simulated Linux", "systemUUID": format!("00000000-0000-4000-9000-{index:012x}"),
            },
        }}))
    }
}

/// The address of a node.
pub(crate) fn host_ip(index: usize) -> String {
    format!("172.18.{}.{}", (index / 250) & 255, index % 250 + 2)
}

/// Which address of a pod this is; 0 for one that is no pod's.
pub(crate) fn number_of_pod_ip(address: &str) -> u32 {
    let mut parts = address.split('.').map_while(|part| part.parse::<u32>().ok());
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(10), Some(a @ 64..128), Some(b @ 0..256), Some(c @ 2..252)) => {
            ((a - 64) * 256 + b) * 250 + c - 2
        }
        _ => 0,
    }
}

/// The n-th address of a pod.
pub(crate) fn pod_ip(n: u32) -> String {
    let n = n % (250 * 256 * 64);
    format!("10.{}.{}.{}", 64 + n / (250 * 256), (n / 250) % 256, n % 250 + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_pods_can_be_counted_back() {
        for n in [1, 249, 250, 64_000, 250 * 256 * 64 - 1] {
            assert_eq!(number_of_pod_ip(&pod_ip(n)), n);
        }
        for other in ["", "172.18.0.2", "10.64.0.1", "10.96.0"] {
            assert_eq!(number_of_pod_ip(other), 0, "{other}");
        }
    }

    #[test]
    fn a_node_is_known_again_by_what_it_registered() {
        let node = Node { zone: "zone-b".to_owned(), cpu: "4".to_owned(), pods: 20, ..Node::named("n") };
        let mut object = node.object(7);
        let status = node.status(7, "", "");
        if let Value::Object(object) = &mut object {
            object.extend(status);
        }
        assert_eq!(Node::registered(&object), Some(node));
        assert_eq!(Node::registered(&json!({"metadata": {"name": "real"}})), None);
    }
}
