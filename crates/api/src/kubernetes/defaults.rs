//! The defaults a Kubernetes API server writes into pods, pod templates, claims and jobs.
//!
//! A member counts as unset when it is absent, `null`, or, for members a server cannot tell from absent ones, empty
//! text or `0`. Values that are set stay as they are; values of a wrong type are skipped. Running twice changes nothing
//! more.
//!
//! ```
//! use kruise_api::kubernetes::defaults::{self, Options};
//! let mut template = serde_json::json!({"spec": {"containers": [{"name": "app", "image": "app:1"}]}});
//! defaults::pod_template_spec(&mut template, &Options::KUBERNETES);
//! assert_eq!(template["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
//! ```

mod container;
mod image;
mod pod;
mod volume;
mod workload;

pub use container::{container, ephemeral_container};
pub use image::pull_policy;
pub use pod::{pod, pod_spec, pod_template_spec};
pub use volume::{persistent_volume_claim, persistent_volume_claim_spec, volume};
pub use workload::{job, job_spec, job_template_spec};

use super::quantity::Quantity;
use serde_json::{Map, Value};

/// How `imagePullPolicy` of ordinary containers is chosen. Init containers always go by their tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullPolicy {
    /// `Always` for `latest` or no tag, else `IfNotPresent`.
    ByTag,
    /// `Always`, which OpenKruise writes into the templates of its workloads whatever the tag is.
    Always,
}

/// Which defaults to write. Templates in OpenKruise's kinds get fewer than a server writes, and the result is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// In templates with `hostNetwork`, fill `hostPort` with `containerPort`. Pods always get this.
    pub host_network_host_ports: bool,
    /// The pull policy of ordinary containers.
    pub pull_policy: PullPolicy,
    /// Whether `startupProbe` gets the defaults of probes.
    pub startup_probe: bool,
    /// Whether to write the rest that a server writes and OpenKruise does not: the gRPC service, members of iscsi, rbd,
    /// azureDisk and scaleIO volumes, `volumeMode` of claims, and the `serviceAccount` alias.
    pub server_only: bool,
    /// Whether pods with resources of their own get pod-level requests (off before Kubernetes 1.34).
    pub pod_level_resources: bool,
}

impl Options {
    /// What a Kubernetes 1.33 server with default feature gates does.
    pub const KUBERNETES: Self = Self {
        host_network_host_ports: false,
        pull_policy: PullPolicy::ByTag,
        startup_probe: true,
        server_only: true,
        pod_level_resources: false,
    };

    /// What OpenKruise's webhooks do to the pod templates of workloads.
    pub const KRUISE_TEMPLATE: Self =
        Self { pull_policy: PullPolicy::Always, server_only: false, ..Self::KUBERNETES };

    /// What OpenKruise's webhook does to the containers and volumes of a SidecarSet.
    pub const KRUISE_SIDECAR: Self = Self { startup_probe: false, server_only: false, ..Self::KUBERNETES };
}

/// Sets a member that is absent or `null`.
fn set_absent(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value.into());
    }
}

/// Sets a text that is absent, `null` or empty.
fn set_text(map: &mut Map<String, Value>, key: &str, value: &str) {
    if is_unset_text(map, key) {
        map.insert(key.to_owned(), value.into());
    }
}

fn is_unset_text(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key).is_none_or(|value| value.is_null() || value.as_str().is_some_and(str::is_empty))
}

/// Sets a number that is absent, `null` or zero.
fn set_number(map: &mut Map<String, Value>, key: &str, value: i64) {
    if map.get(key).is_none_or(|value| value.is_null() || value.as_f64() == Some(0.0)) {
        map.insert(key.to_owned(), value.into());
    }
}

fn member<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    map.get_mut(key)?.as_object_mut()
}

/// The objects in a list member; nothing when the member is absent or no list.
fn items<'a>(map: &'a mut Map<String, Value>, key: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    map.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// The member as an object, made when it is absent or `null`; nothing when it is something else.
fn member_or_new<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    set_absent(map, key, Map::new());
    member(map, key)
}

/// Rounds the quantities of a resource list up to thousandths. Others keep their spelling.
fn round_resource_list(owner: &mut Map<String, Value>, key: &str) {
    let Some(list) = member(owner, key) else { return };
    for value in list.values_mut() {
        let Ok(quantity) = Quantity::from_json(value) else { continue };
        let rounded = quantity.round_up_to_milli();
        if rounded != quantity {
            *value = rounded.to_string().into();
        }
    }
}

fn round_resources(owner: &mut Map<String, Value>) {
    if let Some(resources) = member(owner, "resources") {
        round_resource_list(resources, "limits");
        round_resource_list(resources, "requests");
    }
}

/// `apiVersion: v1` of a `fieldRef` member.
fn field_ref(owner: &mut Map<String, Value>) {
    if let Some(reference) = member(owner, "fieldRef") {
        set_text(reference, "apiVersion", "v1");
    }
}

#[cfg(test)]
mod tests;
