//! Node objects: what a kubelet registers and reports.

use std::collections::BTreeMap;

use kruise_apiserver::discovery::GIT_VERSION;
use serde_json::{Map, Value, json};

use crate::json::fields;

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
            label("topology.kubernetes.io/zone", &self.zone);
            label("topology.kubernetes.io/region", "region-1");
        }
        json!({
            "metadata": {
                "name": self.name, "labels": labels,
                "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            },
            "spec": {
                "podCIDR": format!("10.{}.{}.0/24", 128 + (index >> 8) % 96, index & 255),
                "providerID": format!("sim://{}", self.name),
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

/// The n-th address of a pod.
pub(crate) fn pod_ip(n: u32) -> String {
    let n = n % (250 * 256 * 64);
    format!("10.{}.{}.{}", 64 + n / (250 * 256), (n / 250) % 256, n % 250 + 2)
}
