//! A pod as rules see it: the fields that decide something, read straight from the API's JSON.
//!
//! Caches hold one of these for each pod of a cluster, so it is small: unknown members are skipped while reading, and
//! texts are [shared](Pod::share). A rule that needs another field adds it here; what is needed rarely is fetched when
//! it is needed.

mod container;
mod placement;

pub use container::{
    Amounts, Environment, EphemeralContainer, FromMetadata, Port, ResizePolicy, Resources, Source,
    Termination,
};
pub use placement::NodeAffinity;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use crate::{
    object::{ObjectKey, ObjectRef, POD},
    text::{Pool, Text},
};

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod {
    /// Name, labels, owners.
    pub metadata: Metadata,
    /// What is wanted.
    #[serde(deserialize_with = "or_default")]
    pub spec: Spec,
    /// What is.
    #[serde(deserialize_with = "or_default")]
    pub status: Status,
}

/// What every object has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// The name.
    pub name: Text,
    /// The namespace; empty for a cluster-wide object.
    pub namespace: Text,
    /// The identity: a namesake has another.
    pub uid: Text,
    /// The version of the object.
    pub resource_version: Text,
    /// The version of the spec.
    pub generation: i64,
    /// When the object was made.
    pub creation_timestamp: Option<Timestamp>,
    /// When the object ends, or ended; set as soon as it is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// Labels, sorted by key.
    #[serde(deserialize_with = "pairs")]
    pub labels: Pairs,
    /// Annotations, sorted by key, without what only kubectl reads.
    #[serde(deserialize_with = "annotations")]
    pub annotations: Pairs,
    /// The owners.
    #[serde(deserialize_with = "boxed")]
    pub owner_references: Box<[Owner]>,
    /// Who must agree before the object goes.
    #[serde(deserialize_with = "boxed")]
    pub finalizers: Box<[Text]>,
    /// Something in the object that decides cannot be read: what it is or what is wanted of it. It exists and counts, as one
    /// that does not serve, and nobody touches it.
    #[serde(skip)]
    pub unreadable: bool,
}

impl Metadata {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// The owner that controls the object.
    pub fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// Whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Makes equal texts one.
    pub fn share(&mut self, pool: &mut Pool) {
        let Self { namespace, labels, annotations, owner_references, finalizers, .. } = self;
        pool.share(namespace);
        labels.share(pool);
        annotations.share(pool);
        for owner in owner_references.iter_mut() {
            owner.share(pool);
        }
        finalizers.iter_mut().for_each(|finalizer| pool.share(finalizer));
    }
}

/// Keys with values, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(Box<[(Text, Text)]>);

impl Pairs {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Text> {
        let found = self.0.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        self.0.get(found).map(|(_, value)| value)
    }

    /// The text of a key.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).map(Text::as_str)
    }

    /// Whether there is such a key.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// All of them, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&Text, &Text)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    fn share(&mut self, pool: &mut Pool) {
        for (key, value) in &mut self.0 {
            pool.share(key);
            // Long values are rarely equal (JSON in annotations): looking them up would cost more than they save.
            if value.len() <= 64 {
                pool.share(value);
            }
        }
    }
}

impl FromIterator<(Text, Text)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (Text, Text)>>(pairs: I) -> Self {
        let sorted: std::collections::BTreeMap<Text, Text> = pairs.into_iter().collect();
        Self(sorted.into_iter().collect())
    }
}

/// An entry of `ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    /// Group and version.
    pub api_version: Text,
    /// The kind.
    pub kind: Text,
    /// The name.
    pub name: Text,
    /// The uid.
    pub uid: Text,
    /// Whether this owner controls the object.
    pub controller: bool,
}

impl Owner {
    /// The group of the owner; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    fn share(&mut self, pool: &mut Pool) {
        let Self { api_version, kind, name, uid, controller: _ } = self;
        [api_version, kind, name, uid].into_iter().for_each(|text| pool.share(text));
    }
}

/// What is wanted of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// The node, once there is one.
    pub node_name: Text,
    /// Containers.
    #[serde(deserialize_with = "boxed")]
    pub containers: Box<[Container]>,
    /// Containers that run before them; some stay.
    #[serde(deserialize_with = "boxed")]
    pub init_containers: Box<[Container]>,
    /// Containers that someone added to the living pod.
    #[serde(deserialize_with = "boxed")]
    pub ephemeral_containers: Box<[EphemeralContainer]>,
    /// Conditions that must be True before the pod is ready.
    #[serde(deserialize_with = "boxed")]
    pub readiness_gates: Box<[ReadinessGate]>,
    /// `Always`, `OnFailure` or `Never`.
    pub restart_policy: Text,
    /// The volumes that are claims.
    #[serde(rename = "volumes", deserialize_with = "claim_volumes")]
    pub claims: Box<[ClaimVolume]>,
    /// Labels that its node must have.
    #[serde(deserialize_with = "pairs")]
    pub node_selector: Pairs,
    /// Which nodes it demands by affinity.
    #[serde(deserialize_with = "or_default")]
    pub affinity: NodeAffinity,
    /// Which taints it tolerates, as JSON: equal ones of many pods are one text.
    #[serde(deserialize_with = "placement::json")]
    pub tolerations: Text,
}

/// A volume of a pod that is a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimVolume {
    /// The name of the volume.
    pub volume: Text,
    /// The name of the claim.
    pub claim: Text,
}

/// A container of a pod's spec.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// The name.
    pub name: Text,
    /// The image.
    pub image: Text,
    /// `Always` for a native sidecar, else nothing.
    pub restart_policy: Text,
    /// What of its environment decides something.
    pub env: Environment,
    /// How much cpu and memory it asks for and may use.
    #[serde(deserialize_with = "or_default")]
    pub resources: Resources,
    /// Whether it is started again when its cpu or memory changes.
    pub resize_policy: ResizePolicy,
    /// Its ports that have a name.
    #[serde(deserialize_with = "container::named_ports")]
    pub ports: Box<[Port]>,
}

/// A condition that must be True before the pod is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadinessGate {
    /// Type of the condition.
    pub condition_type: Text,
}

/// What a pod is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Text,
    /// The conditions.
    #[serde(deserialize_with = "boxed")]
    pub conditions: Box<[Condition]>,
    /// What became of the containers.
    #[serde(deserialize_with = "boxed")]
    pub container_statuses: Box<[ContainerStatus]>,
    /// What became of the init containers.
    #[serde(deserialize_with = "boxed")]
    pub init_container_statuses: Box<[ContainerStatus]>,
    /// What became of the containers that were added later.
    #[serde(deserialize_with = "boxed")]
    pub ephemeral_container_statuses: Box<[ContainerStatus]>,
    /// The address of the pod, once it has one.
    #[serde(rename = "podIP")]
    pub pod_ip: Text,
    /// When the kubelet first saw the pod.
    pub start_time: Option<Timestamp>,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// The type.
    pub r#type: Text,
    /// `True`, `False` or `Unknown`.
    pub status: Text,
    /// One word.
    pub reason: Text,
    /// A sentence, or what a writer keeps there.
    pub message: Text,
    /// When the status changed last.
    pub last_transition_time: Option<Timestamp>,
}

impl Condition {
    /// Whether the status is True.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// What became of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// The name.
    pub name: Text,
    /// The image that runs, as the runtime tells it.
    pub image: Text,
    /// The content of the image that runs.
    #[serde(rename = "imageID")]
    pub image_id: Text,
    /// The container that runs.
    #[serde(rename = "containerID")]
    pub container_id: Text,
    /// Whether its probe passes.
    pub ready: bool,
    /// Whether its startup probe has passed, if the kubelet tells.
    pub started: Option<bool>,
    /// How often it was started again.
    pub restart_count: i32,
    /// Waiting, running or terminated.
    #[serde(deserialize_with = "or_default")]
    pub state: ContainerState,
    /// How the run before ended.
    #[serde(rename = "lastState", deserialize_with = "last_termination")]
    pub last_termination: Option<Box<Terminated>>,
    /// How much cpu and memory it has, if the kubelet tells.
    pub resources: Option<Resources>,
}

/// Waiting, running or terminated; at most one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerState {
    /// Not started, and why.
    pub waiting: Option<Waiting>,
    /// Runs.
    pub running: Option<Running>,
    /// Ended.
    pub terminated: Option<Terminated>,
}

/// Why a container is not started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Waiting {
    /// One word.
    pub reason: Text,
    /// A sentence.
    pub message: Text,
}

/// Since when a container runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Running {
    /// When it was started.
    pub started_at: Option<Timestamp>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// The code it ended with.
    pub exit_code: i32,
    /// One word.
    pub reason: Text,
}

impl Pod {
    /// The pod as the subject of an event.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef { resource: POD, key: self.metadata.key(), uid: self.metadata.uid.clone() }
    }

    /// The condition of a type.
    pub fn condition(&self, condition_type: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.r#type == condition_type)
    }

    /// The node it is on or is meant for: a pod that waits for the scheduler may be bound to one by affinity.
    pub fn node(&self) -> &Text {
        if self.spec.node_name.is_empty() { &self.spec.affinity.node } else { &self.spec.node_name }
    }

    /// Whether the pod is neither finished nor being deleted.
    pub fn is_active(&self) -> bool {
        !self.metadata.is_deleting() && !matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether the pod waits for a condition of this type before it is ready.
    pub fn has_readiness_gate(&self, condition_type: &str) -> bool {
        self.spec.readiness_gates.iter().any(|gate| gate.condition_type == condition_type)
    }

    /// Makes equal texts one, over all pods of a cache.
    pub fn share(&mut self, pool: &mut Pool) {
        let Self { metadata, spec, status } = self;
        metadata.share(pool);
        let Spec {
            node_name,
            containers,
            init_containers,
            ephemeral_containers,
            readiness_gates,
            restart_policy,
            node_selector,
            affinity,
            tolerations,
            claims,
        } = spec;
        claims.iter_mut().for_each(|claim| pool.share(&mut claim.volume));
        [node_name, restart_policy, tolerations].into_iter().for_each(|text| pool.share(text));
        node_selector.share(pool);
        affinity.share(pool);
        for container in containers.iter_mut().chain(init_containers.iter_mut()) {
            let Container { name, image, restart_policy, env, resources, resize_policy: _, ports } =
                container;
            [name, image, restart_policy].into_iter().for_each(|text| pool.share(text));
            ports.iter_mut().for_each(|port| pool.share(&mut port.name));
            env.share(pool);
            resources.share(pool);
        }
        for EphemeralContainer { name, job } in ephemeral_containers.iter_mut() {
            pool.share(name);
            pool.share(job);
        }
        for ReadinessGate { condition_type } in readiness_gates.iter_mut() {
            pool.share(condition_type);
        }
        let Status {
            phase,
            conditions,
            container_statuses,
            init_container_statuses,
            ephemeral_container_statuses,
            pod_ip: _,
            start_time: _,
        } = status;
        pool.share(phase);
        for Condition { r#type, status, reason, message, last_transition_time: _ } in conditions.iter_mut() {
            [r#type, status, reason, message].into_iter().for_each(|text| pool.share(text));
        }
        let statuses = container_statuses.iter_mut().chain(init_container_statuses.iter_mut());
        for container in statuses.chain(ephemeral_container_statuses.iter_mut()) {
            let ContainerStatus {
                name,
                image,
                image_id,
                container_id: _,
                ready: _,
                started: _,
                restart_count: _,
                state,
                last_termination,
                resources,
            } = container;
            if let Some(resources) = resources {
                resources.share(pool);
            }
            [name, image, image_id].into_iter().for_each(|text| pool.share(text));
            if let Some(Waiting { reason, message: _ }) = &mut state.waiting {
                pool.share(reason);
            }
            for ended in state.terminated.iter_mut().chain(last_termination.as_deref_mut()) {
                pool.share(&mut ended.reason);
            }
        }
    }
}

/// The Go server writes `null` where it means nothing.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

pub(crate) fn boxed<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Box<[T]>, D::Error> {
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default().into_boxed_slice())
}

fn claim_volumes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[ClaimVolume]>, D::Error> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Source {
        claim_name: Text,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Volume {
        name: Text,
        persistent_volume_claim: Option<Source>,
    }
    let volumes = Option::<Vec<Volume>>::deserialize(deserializer)?.unwrap_or_default();
    let claim = |volume: Volume| {
        let claim = volume.persistent_volume_claim?.claim_name;
        Some(ClaimVolume { volume: volume.name, claim })
    };
    Ok(volumes.into_iter().filter_map(claim).collect())
}

fn last_termination<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Terminated>>, D::Error> {
    let state: ContainerState = or_default(deserializer)?;
    Ok(state.terminated.map(Box::new))
}

fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
    let map =
        Option::<std::collections::BTreeMap<Text, Text>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(Pairs(map.into_iter().collect()))
}

fn annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
    let map =
        Option::<std::collections::BTreeMap<Text, Text>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(Pairs(
        map.into_iter()
            .filter(|(key, _)| *key != "kubectl.kubernetes.io/last-applied-configuration")
            .collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_rules_need_and_skips_the_rest() {
        let pod: Pod = serde_json::from_str(
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"default","uid":"u1","resourceVersion":"7",
            "creationTimestamp":"2026-01-01T00:00:00Z","labels":{"b":"2","a":"1"},"annotations":null,"managedFields":[{"manager":"x"}],
            "ownerReferences":[{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","name":"web","uid":"u0","controller":true}]},
            "spec":{"nodeName":"n1","containers":[{"name":"app","image":"nginx:1"}],"readinessGates":[{"conditionType":"KruisePodReady"}]},
            "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":null}],
            "containerStatuses":[{"name":"app","imageID":"sha256:1","containerID":"containerd://1","ready":true,"state":{"running":{"startedAt":"2026-01-01T00:00:05Z"}}}]}}"#,
        )
        .unwrap();
        assert_eq!(pod.metadata.key().to_string(), "default/web-1");
        assert_eq!(pod.metadata.labels.get("a").map(Text::as_str), Some("1"));
        assert_eq!(pod.metadata.controller().map(Owner::group), Some("apps.kruise.io"));
        assert!(pod.has_readiness_gate("KruisePodReady"));
        assert!(pod.condition("Ready").is_some_and(Condition::is_true));
        assert!(pod.status.container_statuses[0].state.running.is_some());
    }
}
