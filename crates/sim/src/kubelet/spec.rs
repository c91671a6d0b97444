//! What a node reads from a pod's specification.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use kruise_api::kubernetes::quantity::Quantity;
use serde_json::{Value, json};

use super::mount::Source;
use crate::image::{self, known::Runs};
use crate::json::{at, list, number, text};
use crate::machine::shell;

/// Stands for all variables that may come from whole objects.
pub(super) const ANY_VARIABLE: &str = "*";

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

/// A probe's timing, and how it asks as far as that can fail here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// A command that is known, so that it runs in the container each time.
    pub(crate) exec: Option<Vec<String>>,
    /// How long the command may take.
    pub(crate) timeout: Duration,
    /// The status of a page whose path names one that is a failure.
    pub(crate) fails: Option<u16>,
    pub(crate) initial: Duration,
    pub(crate) period: Duration,
    pub(crate) successes: u32,
    pub(crate) failures: u32,
}

/// A hook of the life of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    Sleep(Duration),
    /// A command that runs in the container.
    Exec(Vec<String>),
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
    /// Command and arguments.
    pub(crate) command: Vec<String>,
    /// Whether there are only arguments, for the image's own command.
    pub(crate) only_arguments: bool,
    /// Whether somebody may talk to its process.
    pub(crate) listens: bool,
    /// The names of its variables, where its image depends on some.
    pub(crate) variables: Vec<String>,
    pub(crate) resources: Value,
    /// The resources whose change needs a restart.
    pub(crate) restart_on_resize: Vec<String>,
    pub(crate) startup: Option<Probe>,
    pub(crate) readiness: Option<Probe>,
    pub(crate) liveness: Option<Probe>,
    pub(crate) pre_stop: Option<Hook>,
    /// Until this one has ended the container is not ready.
    pub(crate) post_start: Option<Hook>,
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
    let only_arguments = command.is_empty();
    command.extend(strings("/args"));
    let is_true = |key: &str| container.get(key) == Some(&json!(true));
    let needs = image::known::find(text(container, "/image")).map(|known| known.runs);
    let variables = match needs {
        Some(Runs::Needs(..)) => variables(container),
        _ => Vec::new(),
    };
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
        only_arguments,
        listens: is_true("stdin") || is_true("tty"),
        variables,
        resources,
        restart_on_resize,
        startup: probe(container.get("startupProbe")),
        readiness: probe(container.get("readinessProbe")),
        liveness: probe(container.get("livenessProbe")),
        pre_stop: hook(container, "preStop"),
        post_start: hook(container, "postStart"),
        takes_metadata: list(container, "/env")
            .iter()
            .any(|env| !text(env, "/valueFrom/fieldRef/fieldPath").is_empty()),
        references: references(container),
    }
}

fn probe(probe: Option<&Value>) -> Option<Probe> {
    let probe = probe.filter(|probe| !probe.is_null())?;
    let seconds = |key: &str, default: u64| Duration::from_secs(number(probe, key).unwrap_or(default));
    let count = |key: &str, default: u32| {
        number(probe, key).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0).unwrap_or(default)
    };
    let exec: Vec<String> =
        list(probe, "/exec/command").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let path = text(probe, "/httpGet/path");
    let status = path.rsplit('/').next().and_then(|last| last.parse::<u16>().ok());
    Some(Probe {
        exec: Some(exec).filter(|words| runs_here(words)),
        timeout: seconds("/timeoutSeconds", 1).max(Duration::from_secs(1)),
        fails: status.filter(|status| (400..600).contains(status)),
        initial: seconds("/initialDelaySeconds", 0),
        period: seconds("/periodSeconds", 10).max(Duration::from_secs(1)),
        successes: count("/successThreshold", 1),
        failures: count("/failureThreshold", 3),
    })
}

/// Whether it is known what a command does, so that it is worth asking.
fn runs_here(words: &[String]) -> bool {
    let Some(first) = words.first() else { return false };
    shell::is_known(first) || shell::missing(first, "", |_| false).is_some()
}

fn hook(container: &Value, which: &str) -> Option<Hook> {
    if let Some(seconds) = number(container, &format!("/lifecycle/{which}/sleep/seconds")) {
        return Some(Hook::Sleep(Duration::from_secs(seconds)));
    }
    let words = list(container, &format!("/lifecycle/{which}/exec/command")).iter();
    let words: Vec<String> = words.filter_map(Value::as_str).map(str::to_owned).collect();
    (!words.is_empty()).then_some(Hook::Exec(words))
}

/// The names of variables, and those that whole objects may bring.
fn variables(container: &Value) -> Vec<String> {
    let mut names: Vec<String> =
        list(container, "/env").iter().map(|entry| text(entry, "/name").to_owned()).collect();
    if !list(container, "/envFrom").is_empty() {
        names.push(ANY_VARIABLE.to_owned());
    }
    names
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
