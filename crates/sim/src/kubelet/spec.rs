//! What a node reads from a pod's specification.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use kruise_api::kubernetes::quantity::Quantity;
use serde_json::{Value, json};

use super::mount::Source;
use crate::json::{at, list, number, text};

/// Which part of a pod a container belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs to its end before the next one.
    Init,
    /// An init container that goes on beside the others (`restartPolicy: Always`).
    Sidecar,
    /// An ordinary container.
    Main,
    /// Added for debugging; never restarted.
    Ephemeral,
}

/// The pod's restart policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    Always,
    OnFailure,
    Never,
}

/// A probe's timing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) initial: Duration,
    pub(crate) period: Duration,
    pub(crate) successes: u32,
    pub(crate) failures: u32,
}

/// A value in the environment that must exist before the container can be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// `configmaps` or `secrets`.
    pub(crate) plural: &'static str,
    pub(crate) name: String,
    /// `None` means the whole object.
    pub(crate) key: Option<String>,
}

/// One container.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ContainerSpec {
    pub(crate) role: Role,
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) always_pull: bool,
    pub(crate) never_pull: bool,
    pub(crate) command: Vec<String>,
    pub(crate) resources: Value,
    /// The resources whose change needs a restart.
    pub(crate) restart_on_resize: Vec<String>,
    pub(crate) startup: Option<Probe>,
    pub(crate) readiness: Option<Probe>,
    pub(crate) liveness: Option<Probe>,
    pub(crate) pre_stop: Duration,
    /// How long the hook after the start takes; until then the container is not ready.
    pub(crate) post_start: Duration,
    /// Whether its environment has values of labels or annotations.
    pub(crate) takes_metadata: bool,
    pub(crate) references: Vec<Reference>,
}

/// The pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodSpec {
    pub(crate) containers: Vec<ContainerSpec>,
    pub(crate) restart: Restart,
    pub(crate) host_network: bool,
    pub(crate) grace: Duration,
    pub(crate) deadline: Option<Duration>,
    pub(crate) gates: Vec<String>,
    /// What its volumes are made of.
    pub(crate) sources: Vec<Source>,
}

/// Specifications that were read last: pods of one template have the same one, and share it.
#[derive(Debug, Default)]
pub(super) struct Specs {
    recent: VecDeque<Arc<PodSpec>>,
}

impl Specs {
    /// How many different specifications are remembered.
    const REMEMBERED: usize = 32;

    pub(super) fn read(&mut self, pod: &Value) -> Arc<PodSpec> {
        let spec = PodSpec::read(pod);
        if let Some(known) = self.recent.iter().find(|known| ***known == spec) {
            return known.clone();
        }
        let spec = Arc::new(spec);
        self.recent.truncate(Self::REMEMBERED - 1);
        self.recent.push_front(spec.clone());
        spec
    }
}

impl PodSpec {
    pub(crate) fn read(pod: &Value) -> Self {
        let mut containers = Vec::new();
        for (pointer, role) in [
            ("/spec/initContainers", Role::Init),
            ("/spec/containers", Role::Main),
            ("/spec/ephemeralContainers", Role::Ephemeral),
        ] {
            containers.extend(list(pod, pointer).iter().map(|container| container_spec(container, role)));
        }
        Self {
            containers,
            restart: match text(pod, "/spec/restartPolicy") {
                "Never" => Restart::Never,
                "OnFailure" => Restart::OnFailure,
                _ => Restart::Always,
            },
            host_network: at(pod, "/spec/hostNetwork") == Some(&json!(true)),
            grace: Duration::from_secs(number(pod, "/spec/terminationGracePeriodSeconds").unwrap_or(30)),
            deadline: number(pod, "/spec/activeDeadlineSeconds").map(Duration::from_secs),
            gates: list(pod, "/spec/readinessGates")
                .iter()
                .map(|gate| text(gate, "/conditionType").to_owned())
                .collect(),
            sources: super::mount::sources(pod),
        }
    }

    /// What the pod asks for: cpu in thousandths, memory in bytes.
    pub(crate) fn requests(&self) -> (i128, i128) {
        let of = |container: &ContainerSpec, resource: &str| amount(&container.resources, resource);
        let total = |resource: &str| -> i128 {
            let sum: i128 = self
                .containers
                .iter()
                .filter(|c| matches!(c.role, Role::Main | Role::Sidecar))
                .map(|c| of(c, resource))
                .sum();
            let init = self.containers.iter().filter(|c| c.role == Role::Init).map(|c| of(c, resource)).max();
            sum.max(init.unwrap_or(0))
        };
        (total("cpu"), total("memory"))
    }
}

/// A container's request: thousandths for cpu, whole units for the rest.
pub(crate) fn amount(resources: &Value, resource: &str) -> i128 {
    let quantity = resources.get("requests").and_then(|requests| requests.get(resource));
    let Some(quantity) = quantity.and_then(|q| Quantity::from_json(q).ok()) else { return 0 };
    if resource == "cpu" { quantity.millis() } else { quantity.value() }
}

fn container_spec(container: &Value, role: Role) -> ContainerSpec {
    let sidecar = role == Role::Init && text(container, "/restartPolicy") == "Always";
    let strings = |pointer: &str| -> Vec<String> {
        list(container, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut command = strings("/command");
    command.extend(strings("/args"));
    let resources = container.get("resources").cloned().unwrap_or_else(|| json!({}));
    let restart_on_resize = list(container, "/resizePolicy")
        .iter()
        .filter(|policy| text(policy, "/restartPolicy") == "RestartContainer")
        .map(|policy| text(policy, "/resourceName").to_owned())
        .collect();
    let policy = text(container, "/imagePullPolicy");
    ContainerSpec {
        role: if sidecar { Role::Sidecar } else { role },
        name: text(container, "/name").to_owned(),
        image: text(container, "/image").to_owned(),
        always_pull: policy == "Always",
        never_pull: policy == "Never",
        command,
        resources,
        restart_on_resize,
        startup: probe(container.get("startupProbe")),
        readiness: probe(container.get("readinessProbe")),
        liveness: probe(container.get("livenessProbe")),
        pre_stop: hook(container, "preStop"),
        post_start: hook(container, "postStart"),
        takes_metadata: list(container, "/env")
            .iter()
            .any(|env| text(env, "/valueFrom/fieldRef/fieldPath").starts_with("metadata.")),
        references: references(container),
    }
}

fn probe(probe: Option<&Value>) -> Option<Probe> {
    let probe = probe.filter(|probe| !probe.is_null())?;
    let seconds = |key: &str, default: u64| Duration::from_secs(number(probe, key).unwrap_or(default));
    let count = |key: &str, default: u32| {
        number(probe, key).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0).unwrap_or(default)
    };
    Some(Probe {
        initial: seconds("/initialDelaySeconds", 0),
        period: seconds("/periodSeconds", 10).max(Duration::from_secs(1)),
        successes: count("/successThreshold", 1),
        failures: count("/failureThreshold", 3),
    })
}

/// How long a hook of the life of a container takes: only sleeping takes time here.
fn hook(container: &Value, which: &str) -> Duration {
    if let Some(seconds) = number(container, &format!("/lifecycle/{which}/sleep/seconds")) {
        return Duration::from_secs(seconds);
    }
    let words: Vec<&str> = list(container, &format!("/lifecycle/{which}/exec/command"))
        .iter()
        .filter_map(Value::as_str)
        .flat_map(str::split_whitespace)
        .collect();
    let seconds = words.iter().position(|word| word.ends_with("sleep")).and_then(|at| words.get(at + 1));
    let seconds = seconds.and_then(|word| word.trim_end_matches([';', 's']).parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

fn references(container: &Value) -> Vec<Reference> {
    let mut all = Vec::new();
    let mut add = |plural, reference: Option<&Value>, whole: bool| {
        let Some(reference) = reference else { return };
        if reference.get("optional") != Some(&json!(true)) {
            let key = (!whole).then(|| text(reference, "/key").to_owned());
            all.push(Reference { plural, name: text(reference, "/name").to_owned(), key });
        }
    };
    for from in list(container, "/envFrom") {
        add("configmaps", from.get("configMapRef"), true);
        add("secrets", from.get("secretRef"), true);
    }
    for env in list(container, "/env") {
        add("configmaps", at(env, "/valueFrom/configMapKeyRef"), false);
        add("secrets", at(env, "/valueFrom/secretKeyRef"), false);
    }
    all
}
