//! One pod's life on its node. Every look at it ([`Pod::look`]) does what is due and says when to look again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kruise_apiserver::store::Record;
use serde_json::Value;

use super::container::{Check, Checks, Container, FIRST_PAUSE, LONGEST_PAUSE, Run, State, Unhealthy, Why};
use super::mount::Mounts;
use super::pass::{Pass, Said};
use super::process::Program;
use super::spec::{ContainerSpec, PodSpec, Restart, Role};
use crate::image::Images;
use crate::json::{at, list, text};
use crate::steps::{Then, When};
use crate::time::{later, sooner};

/// How long a container that cannot be configured waits for the next try.
const CONFIG_PAUSE: Duration = Duration::from_secs(10);

/// How long a failed pull shows as such before it shows as a pause.
const BEFORE_PULL_PAUSE: Duration = Duration::from_secs(3);

/// Where a pod is on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Bound; the node has not looked yet.
    Bound { due: Option<Timestamp> },
    /// Its containers are being run.
    Active,
    /// Its containers ended and are not started again.
    Over,
    /// Deleted, its containers ended, and the object goes at the time given.
    Leaving { due: Timestamp },
    /// Nothing left to do.
    Gone,
}

/// A pod as its node knows it.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) uid: Arc<str>,
    pub(super) node: Box<str>,
    pub(super) spec: Arc<PodSpec>,
    pub(super) containers: Vec<Container>,
    pub(super) stage: Stage,
    pub(super) begun: Option<Timestamp>,
    pub(super) start: Option<String>,
    pub(super) ip: String,
    pub(super) host_ip: String,
    pub(super) mounts: Mounts,
    pub(super) initialized: bool,
    /// The seconds that a deletion gives, and until when.
    pub(super) deletion: Option<(Duration, Timestamp)>,
    /// The phase that somebody else declared the pod to have ended in.
    pub(super) declared: Option<&'static str>,
    /// Why the node itself ended the pod: reason and message.
    pub(super) failed: Option<(&'static str, String)>,
    /// The conditions of its readiness gates as the API has them: type to status.
    pub(super) seen: BTreeMap<String, String>,
    /// Our conditions.
    pub(super) told: Vec<Told>,
    /// Conditions that come and go: since when they are there.
    pub(super) since: BTreeMap<&'static str, String>,
    /// Why a change of resources waits: reason and message.
    pub(super) resize_waits: Option<(&'static str, String)>,
    pub(super) written: u64,
    pub(super) own_version: u64,
    pub(super) wake: Option<Timestamp>,
    /// The status of a kubelet before this one, until the first look.
    left: Option<Value>,
}

/// A condition that the kubelet speaks for.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) kind: &'static str,
    pub(super) status: bool,
    /// The time of the last change. Conditions that change together share it.
    pub(super) since: Arc<str>,
}

/// How far a container is: its state as a number, its restarts, whether it is being killed, its moves.
type Progress = (u8, u32, bool, u32);

impl Pod {
    pub(super) fn new(
        record: &Record,
        pod: &Value,
        spec: Arc<PodSpec>,
        ip: String,
        host_ip: String,
        now: Timestamp,
    ) -> Self {
        let containers = spec.containers.iter().map(Container::new).collect();
        let mut new = Self {
            namespace: record.namespace.clone(),
            name: record.name.clone(),
            uid: record.uid.clone(),
            node: record.field("spec.nodeName").into(),
            ip: if spec.host_network { host_ip.clone() } else { ip },
            host_ip,
            spec,
            containers,
            stage: Stage::Bound { due: None },
            begun: None,
            start: None,
            mounts: Mounts::NONE,
            initialized: false,
            deletion: None,
            declared: None,
            failed: None,
            seen: BTreeMap::new(),
            told: Vec::new(),
            since: BTreeMap::new(),
            resize_waits: None,
            written: 0,
            own_version: 0,
            wake: None,
            left: super::adopt::left(pod),
        };
        new.see_status(pod, now);
        new
    }

    /// Takes over what others changed.
    pub(super) fn see(&mut self, pod: &Value, spec: Arc<PodSpec>, now: Timestamp) {
        for container in spec.containers.iter().skip(self.containers.len()) {
            self.containers.push(Container::new(container));
        }
        self.spec = spec;
        self.see_status(pod, now);
    }

    fn see_status(&mut self, pod: &Value, now: Timestamp) {
        let conditions = list(pod, "/status/conditions");
        let status = |condition| text(condition, "/status");
        self.seen = conditions
            .iter()
            .map(|condition| (text(condition, "/type"), status(condition)))
            .filter(|(kind, _)| self.spec.gates.iter().any(|gate| gate == kind))
            .map(|(kind, status)| (kind.to_owned(), status.to_owned()))
            .collect();
        let reverted = self.told.iter().any(|told| {
            let seen = conditions.iter().rfind(|condition| text(condition, "/type") == told.kind);
            seen.map(status) != Some(if told.status { "True" } else { "False" })
        });
        if reverted {
            // Others may not speak for the kubelet: it says again what it knows.
            self.written = 0;
        }
        // Nobody, not even the kubelet, brings a pod back that counts as ended: what still runs is stopped.
        if matches!(self.stage, Stage::Bound { .. } | Stage::Active) {
            self.declared = match text(pod, "/status/phase") {
                "Succeeded" => Some("Succeeded"),
                "Failed" => Some("Failed"),
                _ => self.declared,
            };
        }
        let deleting = at(pod, "/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
        if deleting {
            let seconds = at(pod, "/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64);
            let grace = Duration::from_secs(seconds.unwrap_or(0));
            let shorter = self.deletion.is_none_or(|(before, _)| grace < before);
            if shorter {
                self.deletion = Some((grace, now));
            }
        }
    }

    pub(super) fn said(&self, at: usize, warning: bool, reason: &'static str, message: String) -> Said {
        let field = self.spec.containers.get(at).map_or(String::new(), |spec| {
            let list = match spec.role {
                Role::Init | Role::Sidecar => "initContainers",
                Role::Main => "containers",
                Role::Ephemeral => "ephemeralContainers",
            };
            format!("spec.{list}{{{}}}", spec.name)
        });
        Said { warning, reason, message, field }
    }

    /// Does everything that is due. Returns when to look again.
    pub(super) fn look(&mut self, pass: &mut Pass<'_>) -> Option<Timestamp> {
        if let Some(left) = self.left.take() {
            self.adopt(&left, pass);
        }
        match self.stage {
            Stage::Gone => return None,
            Stage::Bound { due: None } => {
                if self.deletion.is_none() {
                    let (due, _) = pass.next(When::Bound);
                    self.stage = Stage::Bound { due: Some(due) };
                    return Some(due);
                }
                self.stage = Stage::Active;
            }
            Stage::Bound { due: Some(due) } if due > pass.now && self.deletion.is_none() => return Some(due),
            Stage::Bound { .. } => {
                self.stage = Stage::Active;
                self.begun = Some(pass.now);
                self.start = Some(pass.stamp());
            }
            Stage::Active | Stage::Over | Stage::Leaving { .. } => {}
        }
        // Each round may make the next one possible at the same moment; the number bounds a mistake.
        for _ in 0..64 {
            let before = self.fingerprint();
            self.round(pass);
            if self.fingerprint() == before {
                break;
            }
        }
        self.next_look(pass.now)
    }

    /// What tells whether a round changed anything.
    fn fingerprint(&self) -> (Stage, bool, Vec<Progress>) {
        let of = |c: &Container| {
            let state = match &c.state {
                State::Waiting => 0,
                State::Doing { then: Then::Pulled, .. } => 1,
                State::Doing { then: Then::Again, .. } => 8,
                State::Doing { .. } => 2,
                State::Paused { reason, .. } => 3 + u8::from(*reason == "ImagePullBackOff"),
                State::Running(_) => 5,
                State::Stopping { .. } => 6,
                State::Ended { .. } => 7,
            };
            (state, c.restarts, c.kill_at.is_some(), c.moves)
        };
        (self.stage, self.initialized, self.containers.iter().map(of).collect())
    }

    fn round(&mut self, pass: &mut Pass<'_>) {
        if self.stage == Stage::Gone {
            return;
        }
        let begun = self.begun;
        if let (Some(begun), Some(deadline), None) = (begun, self.spec.deadline, &self.failed)
            && later(begun, deadline) <= pass.now
            && self.stage == Stage::Active
        {
            let message = "Pod was active on the node longer than the specified deadline";
            self.failed = Some(("DeadlineExceeded", message.to_owned()));
        }
        for at in 0..self.containers.len() {
            self.clockwork(at, pass);
        }
        if let Stage::Leaving { due } = self.stage {
            if due <= pass.now {
                self.stage = Stage::Gone;
            }
            return;
        }
        if let Some((grace, since)) = self.deletion {
            self.shut_down(grace, since, pass);
            return;
        }
        if self.failed.is_some() || self.declared.is_some() || self.stage == Stage::Over {
            self.shut_down(self.spec.grace, pass.now, pass);
            return;
        }
        if !self.containers.iter().any(Container::is_busy) {
            self.work(pass);
        }
    }

    /// What happens to a container by itself: ends, probes, stops, pulls and starts that are due.
    fn clockwork(&mut self, at: usize, pass: &mut Pass<'_>) {
        let now = pass.now;
        let pod = self.spec.clone();
        let Some(spec) = pod.containers.get(at) else { return };
        self.go_on(at, pass);
        self.probe(at, spec, pass);
        let Some(container) = self.containers.get_mut(at) else { return };
        match container.state.clone() {
            State::Running(run) => {
                if let Some((_, code)) = run.ends.filter(|(when, _)| *when <= now) {
                    let reason = if code == 0 { "Completed" } else { "Error" };
                    container.end(code, reason, &pass.stamp(), now);
                } else if let Some(unhealthy) = run.unhealthy.filter(|unhealthy| unhealthy.at <= now) {
                    self.give_up(at, spec, unhealthy, pass);
                } else if let Some((when, pause)) = run.complaint.filter(|(when, _)| *when <= now) {
                    let next = (pause * 2).min(LONGEST_PAUSE);
                    let after = later(when, next);
                    let more = run.ready.is_none_or(|ready| after < ready);
                    if let State::Running(run) = &mut container.state {
                        run.complaint = more.then_some((after, next));
                    }
                    let status = spec.readiness.as_ref().and_then(|probe| probe.fails).unwrap_or(503);
                    let failed =
                        format!("Readiness probe failed: HTTP probe failed with statuscode: {status}");
                    pass.said.push(self.said(at, true, "Unhealthy", failed));
                } else if container.kill_at.is_some_and(|when| when <= now) {
                    self.stop(at, spec, pod.grace, pass);
                } else if container.resized_at.is_some_and(|when| when <= now) {
                    container.resized_at = None;
                    container.actual = container.allocated.clone();
                }
            }
            State::Stopping { due, code, .. } if due <= now => {
                let reason = if code == 0 { "Completed" } else { "Error" };
                container.end(code, reason, &pass.stamp(), now);
            }
            State::Doing { then: Then::Pulled, due } if due <= now => self.pulled(at, spec, pass),
            State::Doing { then: Then::Again, due } if due <= now => {
                self.pull(at, spec, pass);
            }
            State::Doing { due, .. } if due <= now => self.started(at, spec, pass),
            _ => {}
        }
    }

    /// Restarts a container that failed too often.
    fn give_up(&mut self, at: usize, spec: &ContainerSpec, unhealthy: Unhealthy, pass: &mut Pass<'_>) {
        let grace = self.spec.grace;
        self.stop(at, spec, grace, pass);
        let (title, probe) = match unhealthy.why {
            Why::Startup => ("Startup", &spec.startup),
            Why::Liveness => ("Liveness", &spec.liveness),
            Why::Hook => {
                let text = "PostStartHook failed".to_owned();
                pass.said.push(self.said(at, true, "FailedPostStartHook", text));
                pass.said.push(self.said(at, false, "Killing", "FailedPostStartHook".to_owned()));
                return;
            }
        };
        if !unhealthy.is_said {
            let status = probe.as_ref().and_then(|probe| probe.fails).unwrap_or(500);
            let failed = format!("{title} probe failed: HTTP probe failed with statuscode: {status}");
            pass.said.push(self.said(at, true, "Unhealthy", failed));
        }
        let probe = title.to_lowercase();
        let text = format!("Container {} failed {probe} probe, will be restarted", spec.name);
        pass.said.push(self.said(at, false, "Killing", text));
    }

    /// Ends what still runs: first the containers, then the sidecars from the last to the first.
    fn shut_down(&mut self, grace: Duration, since: Timestamp, pass: &mut Pass<'_>) {
        let latest = later(since, grace);
        let left = crate::time::until(pass.now, latest);
        let mut running = false;
        let pod = self.spec.clone();
        let specs = &pod.containers;
        for (at, spec) in specs.iter().enumerate() {
            if spec.role != Role::Sidecar {
                running |= self.shut_one(at, spec, left, latest, pass);
            }
        }
        for (at, spec) in specs.iter().enumerate().rev() {
            if spec.role == Role::Sidecar && !running {
                running |= self.shut_one(at, spec, left, latest, pass);
            }
        }
        if running {
            return;
        }
        if self.deletion.is_some() {
            let (due, _) = pass.next(When::AllEnded);
            self.stage = Stage::Leaving { due };
        } else {
            self.stage = Stage::Over;
        }
    }

    /// Returns whether the container still runs.
    fn shut_one(
        &mut self,
        at: usize,
        spec: &ContainerSpec,
        left: Duration,
        latest: Timestamp,
        pass: &mut Pass<'_>,
    ) -> bool {
        let Some(container) = self.containers.get_mut(at) else { return false };
        if matches!(container.state, State::Doing { .. }) {
            container.state = State::Waiting;
        }
        if matches!(container.state, State::Running(_)) {
            self.stop(at, spec, left, pass);
            pass.said.push(self.said(at, false, "Killing", format!("Stopping container {}", spec.name)));
            return true;
        }
        container.hurry(latest);
        !container.is_down()
    }

    /// Starts the next container that may start, or restarts one that changed.
    fn work(&mut self, pass: &mut Pass<'_>) {
        if !self.mount(pass) {
            return;
        }
        let pod = self.spec.clone();
        let specs = &pod.containers;
        for (at, spec) in specs.iter().enumerate() {
            if self.changed(at, spec, pass) {
                return;
            }
        }
        if !self.initialized {
            for (at, spec) in
                specs.iter().enumerate().filter(|(_, s)| matches!(s.role, Role::Init | Role::Sidecar))
            {
                let Some(container) = self.containers.get(at) else { return };
                let done = match (&container.state, spec.role) {
                    (State::Ended { code: 0 }, Role::Init) => true,
                    (State::Running(run), Role::Sidecar) => run.is_started(pass.now),
                    _ => false,
                };
                if done {
                    continue;
                }
                if matches!(container.state, State::Ended { code } if code != 0)
                    && spec.role == Role::Init
                    && self.spec.restart == Restart::Never
                {
                    self.stage = Stage::Over;
                    return;
                }
                self.advance(at, spec, pass);
                return;
            }
            self.initialized = true;
        }
        let mut over = true;
        for (at, spec) in specs.iter().enumerate() {
            if spec.role == Role::Init {
                continue;
            }
            let Some(container) = self.containers.get(at) else { return };
            let finished = match (&container.state, spec.role) {
                (State::Ended { .. }, Role::Ephemeral) => true,
                (State::Ended { code }, Role::Main) => match self.spec.restart {
                    Restart::Always => false,
                    Restart::OnFailure => *code == 0,
                    Restart::Never => true,
                },
                _ => false,
            };
            if spec.role == Role::Main && !finished {
                over = false;
            }
            if !finished && container.is_down() && self.advance(at, spec, pass) {
                return;
            }
        }
        if over {
            self.stage = Stage::Over;
        }
    }

    /// Sees to changes of a container's image and resources. Returns whether the pod is busy with it now.
    fn changed(&mut self, at: usize, spec: &ContainerSpec, pass: &mut Pass<'_>) -> bool {
        let resize_waits = self.resize_waits.is_some();
        let Some(container) = self.containers.get_mut(at) else { return false };
        let is_final = spec.role == Role::Init && self.initialized;
        if container.wanted != spec.image && !is_final {
            container.wanted.clone_from(&spec.image);
            container.forgive();
            match &container.state {
                State::Running(_) => {
                    let (due, _) = pass.next(When::DefinitionChanged);
                    container.kill_at = Some(due);
                    container.asked = true;
                    let text = format!("Container {} definition changed, will be restarted", spec.name);
                    pass.said.push(self.said(at, false, "Killing", text));
                    return true;
                }
                // A new image owes nothing to the failures of the old one.
                State::Paused { .. } => container.state = State::Waiting,
                _ => {}
            }
        }
        if container.allocated != spec.resources && !resize_waits {
            let old = std::mem::replace(&mut container.allocated, spec.resources.clone());
            if !matches!(container.state, State::Running(_)) {
                container.actual = spec.resources.clone();
                return false;
            }
            let differs = |resource: &str| {
                ["requests", "limits"].iter().any(|part| {
                    let of = |value: &Value| value.get(part).and_then(|p| p.get(resource)).cloned();
                    of(&old) != of(&spec.resources)
                })
            };
            let (due, _) = pass.next(When::ResourcesChanged);
            if spec.restart_on_resize.iter().any(|resource| differs(resource)) {
                container.kill_at = Some(due);
                container.asked = true;
                let text = format!("Container {} resize requires restart", spec.name);
                pass.said.push(self.said(at, false, "Killing", text));
                return true;
            }
            container.resized_at = Some(due);
        }
        false
    }

    /// Takes the next step to start a container. Returns whether the pod is busy with it now.
    fn advance(&mut self, at: usize, spec: &ContainerSpec, pass: &mut Pass<'_>) -> bool {
        let (name, namespace, uid) = (self.name.clone(), self.namespace.clone(), self.uid.clone());
        let Some(container) = self.containers.get_mut(at) else { return false };
        match container.state.clone() {
            State::Ended { .. } => {
                let pause = container.pause;
                // The first restart after a long run or a change is immediate; later ones wait.
                if container.crashes > 1 {
                    let seconds = pause.as_secs();
                    let shown = if seconds % 60 == 0 && seconds > 0 {
                        format!("{}m0s", seconds / 60)
                    } else if seconds > 60 {
                        format!("{}m{}s", seconds / 60, seconds % 60)
                    } else {
                        format!("{seconds}s")
                    };
                    let message = format!(
                        "back-off {shown} restarting failed container={} pod={name}_{namespace}({uid})",
                        spec.name
                    );
                    container.pause = (pause * 2).min(LONGEST_PAUSE);
                    container.state =
                        State::Paused { until: later(pass.now, pause), reason: "CrashLoopBackOff", message };
                    let text = format!(
                        "Back-off restarting failed container {} in pod {name}_{namespace}({uid})",
                        spec.name
                    );
                    pass.said.push(self.said(at, true, "BackOff", text));
                    return false;
                }
                let (due, then) = pass.next(When::Ended);
                container.state = State::Doing { then, due };
                true
            }
            State::Waiting => self.pull(at, spec, pass),
            State::Paused { until, reason, message } => {
                if until > pass.now {
                    return false;
                }
                if reason == "ErrImagePull" {
                    let until = later(pass.now, container.pull_pause);
                    container.pull_pause = (container.pull_pause * 2).min(LONGEST_PAUSE);
                    let text = format!("Back-off pulling image \"{}\": ErrImagePull: {message}", spec.image);
                    container.state = State::Paused { until, reason: "ImagePullBackOff", message: text };
                    let text = format!("Back-off pulling image \"{}\"", spec.image);
                    pass.said.push(self.said(at, false, "BackOff", text));
                    pass.said.push(self.said(at, true, "Failed", "Error: ImagePullBackOff".to_owned()));
                    return false;
                }
                self.pull(at, spec, pass)
            }
            State::Doing { .. } | State::Running(_) | State::Stopping { .. } => false,
        }
    }

    fn pull(&mut self, at: usize, spec: &ContainerSpec, pass: &mut Pass<'_>) -> bool {
        let image = spec.image.clone();
        if let Some(message) = crate::image::invalid_name(&image) {
            let text = message.clone();
            pass.said.push(self.said(at, true, "InspectFailed", text));
            pass.said.push(self.said(at, true, "Failed", "Error: InvalidImageName".to_owned()));
            if let Some(container) = self.containers.get_mut(at) {
                let until = later(pass.now, CONFIG_PAUSE);
                container.wanted = image;
                container.state = State::Paused { until, reason: "InvalidImageName", message };
            }
            return false;
        }
        let present = pass.has_image(&image);
        let behaviour = pass.images.behaviour(&image);
        let (mut due, then) = match (present, spec.always_pull) {
            (true, false) => (pass.now, Then::Pulled),
            (true, true) => pass.next(When::ImagePresent),
            (false, _) => pass.next(When::ImageMissing),
        };
        if let (false, Some(pull)) = (present, behaviour.pull) {
            due = later(pass.now, pull);
        }
        if present && !spec.always_pull {
            let text = format!("Container image \"{image}\" already present on machine");
            pass.said.push(self.said(at, false, "Pulled", text));
        } else if !spec.never_pull {
            pass.said.push(self.said(at, false, "Pulling", format!("Pulling image \"{image}\"")));
        }
        if let Some(container) = self.containers.get_mut(at) {
            container.wanted = image;
            container.state = State::Doing { then, due };
        }
        true
    }

    /// A pull has ended; the container is created if that is possible.
    fn pulled(&mut self, at: usize, spec: &ContainerSpec, pass: &mut Pass<'_>) {
        let Some(image) = self.containers.get(at).map(|container| container.wanted.clone()) else { return };
        let behaviour = pass.images.behaviour(&image);
        let present = pass.has_image(&image);
        if pass.images.refusal(&image).is_some() || (spec.never_pull && !present) {
            self.pull_failed(at, spec, &image, pass);
            return;
        }
        if !present || spec.always_pull {
            // The time is told as the node would measure it, which only depends on the table of steps here.
            let took = behaviour.pull.unwrap_or(Duration::from_millis(800 + pass.random.below(1200)));
            let took = format!("{}s", took.as_secs_f64());
            let size = crate::image::size(&image);
            let text = format!(
                "Successfully pulled image \"{image}\" in {took} ({took} including waiting). Image size: {size} bytes."
            );
            pass.said.push(self.said(at, false, "Pulled", text));
            pass.pulled.insert(crate::image::normalized(&image));
        }
        if let Some(message) = pass.missing(&self.namespace, &spec.references) {
            pass.said.push(self.said(at, true, "Failed", format!("Error: {message}")));
            if let Some(container) = self.containers.get_mut(at) {
                let until = later(pass.now, CONFIG_PAUSE);
                container.state = State::Paused { until, reason: "CreateContainerConfigError", message };
            }
            return;
        }
        let id = pass.container_id();
        let image_id = pass.images.id(&image);
        let (due, then) = pass.next(When::Created);
        let environment = match spec.takes_metadata {
            true => pass.values_of_metadata(&self.namespace, &self.name, &spec.name),
            false => BTreeMap::new(),
        };
        pass.said.push(self.said(at, false, "Created", format!("Created container: {}", spec.name)));
        let Some(container) = self.containers.get_mut(at) else { return };
        container.pull_pause = FIRST_PAUSE;
        container.id = id;
        container.created = pass.now.checked_add(pass.skew).unwrap_or(pass.now);
        container.environment = environment;
        container.image = image;
        container.image_id = image_id;
        container.state = State::Doing { then, due };
    }

    fn pull_failed(&mut self, at: usize, spec: &ContainerSpec, image: &str, pass: &mut Pass<'_>) {
        if spec.never_pull {
            let message = format!("Container image \"{image}\" is not present with pull policy of Never");
            pass.said.push(self.said(at, true, "ErrImageNeverPull", message.clone()));
            pass.said.push(self.said(at, true, "Failed", "Error: ErrImageNeverPull".to_owned()));
            if let Some(container) = self.containers.get_mut(at) {
                let until = later(pass.now, CONFIG_PAUSE);
                container.state = State::Paused { until, reason: "ErrImageNeverPull", message };
            }
            return;
        }
        let message = pass.images.refusal(image).unwrap_or_default();
        let text = format!("Failed to pull image \"{image}\": {message}");
        pass.said.push(self.said(at, true, "Failed", text));
        pass.said.push(self.said(at, true, "Failed", "Error: ErrImagePull".to_owned()));
        let Some(container) = self.containers.get_mut(at) else { return };
        let until = later(pass.now, BEFORE_PULL_PAUSE);
        container.state = State::Paused { until, reason: "ErrImagePull", message };
    }

    fn started(&mut self, at: usize, spec: &ContainerSpec, pass: &mut Pass<'_>) {
        let program = self.program(at, spec, pass);
        let Some(container) = self.containers.get_mut(at) else { return };
        if container.last.is_some() {
            container.restarts += 1;
        }
        // Nobody can ask for what the container before the last one left.
        if let Some(before) = &container.before {
            pass.machines.forget(&self.node, std::iter::once(text(before, "/containerID")));
        }
        container.actual = container.allocated.clone();
        container.resized_at = None;
        if let Program::Missing(why) = program {
            let message = format!(
                "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create \
                 failed: unable to start container process: {why}: unknown"
            );
            container.fail(&message, &pass.stamp());
            pass.said.push(self.said(at, true, "Failed", format!("Error: {message}")));
            return;
        }
        let (hook, is_well) = self.after_start(at, spec, pass);
        pass.said.push(self.said(at, false, "Started", format!("Started container {}", spec.name)));
        let Some(container) = self.containers.get_mut(at) else { return };
        let mut behaviour = pass.images.behaviour(&container.image);
        container.process = None;
        match program {
            Program::Image | Program::Missing(_) => {}
            Program::Serves => behaviour.ends = None,
            Program::Ends(after) => behaviour.ends = Some((after, 0)),
            Program::Runs(process) => {
                behaviour.ends = None;
                container.process = Self::begins(process, pass.now);
            }
        }
        let mut run = Run::begin(spec, &behaviour, hook, pass);
        if !is_well {
            let at = later(pass.now, hook);
            run.unhealthy = Some(Unhealthy { at, why: Why::Hook, is_said: true });
        }
        container.state = State::Running(run);
    }

    /// The machine went down and came back: everything starts anew in a new sandbox.
    pub(super) fn reboot(&mut self, ip: String, pass: &mut Pass<'_>) {
        if matches!(self.stage, Stage::Gone | Stage::Over | Stage::Leaving { .. }) {
            return;
        }
        let mut ran = false;
        for container in &mut self.containers {
            if container.run().is_some() {
                ran = true;
                container.end(255, "Unknown", &pass.stamp(), pass.now);
            }
            container.process = None;
            if !matches!(container.state, State::Ended { .. }) {
                container.state = State::Waiting;
            }
        }
        if ran {
            let message = "Pod sandbox changed, it will be killed and re-created.".to_owned();
            pass.said.push(Said { warning: false, reason: "SandboxChanged", message, field: String::new() });
        }
        if !self.spec.host_network {
            self.ip = ip;
        }
        self.mounts = Mounts::NONE;
        self.initialized = false;
        for (container, spec) in self.containers.iter_mut().zip(&self.spec.containers) {
            if matches!(spec.role, Role::Init) {
                container.state = State::Waiting;
            }
        }
    }

    /// The readiness probe of a container changes its mind. Without such a probe nothing happens.
    pub(super) fn change_readiness(&mut self, container: &str, ready: bool, now: Timestamp) {
        for (spec, container) in
            self.spec.containers.iter().zip(&mut self.containers).filter(|(spec, _)| spec.name == container)
        {
            let (Some(probe), State::Running(run)) = (&spec.readiness, &mut container.state) else {
                continue;
            };
            // From now on somebody else decides.
            if let Some(checks) = &mut run.checks {
                checks.readiness = None;
            }
            if ready {
                run.complaint = None;
                run.ready = Some(later(now, probe.period * probe.successes));
            } else {
                run.ready = None;
                run.complaint = Some((later(now, probe.period), probe.period));
            }
        }
    }

    /// A program on the node tells a container to stop. Gives the time at which it will have ended, unless it has.
    pub(super) fn signal(
        &mut self,
        id: &str,
        images: &Images,
        now: Timestamp,
        grace: Duration,
    ) -> Option<Timestamp> {
        let container = self.containers.iter_mut().find(|container| container.id.ends_with(id))?;
        let behaviour = images.behaviour(&container.image);
        container.signal(&behaviour, now, grace)
    }

    /// The process of a container ends by itself. Whether it is one of this pod.
    pub(super) fn leave(&mut self, id: &str, code: i32, now: Timestamp) -> bool {
        let found = self.containers.iter_mut().find(|container| container.id.ends_with(id));
        found.is_some_and(|container| container.leave(code, now))
    }

    /// Someone on the node stops a container that runs.
    pub(super) fn kill(&mut self, container: &str, now: Timestamp) {
        for (_, container) in
            self.spec.containers.iter().zip(&mut self.containers).filter(|(spec, _)| spec.name == container)
        {
            if matches!(container.state, State::Running(_)) {
                container.kill_at = Some(now);
                container.asked = true;
            }
        }
    }

    fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        if let Stage::Leaving { due } = self.stage {
            return Some(due);
        }
        let mut next = match (self.begun, self.spec.deadline, self.stage) {
            (Some(begun), Some(deadline), Stage::Active) => Some(later(begun, deadline)),
            _ => None,
        };
        if self.stage == Stage::Active && self.deletion.is_none() {
            next = sooner(next, self.mounts.again());
        }
        for container in &self.containers {
            let mut own = sooner(container.kill_at, container.resized_at);
            match &container.state {
                State::Doing { due, .. } | State::Stopping { due, .. } => own = sooner(own, Some(*due)),
                State::Paused { until, .. } if self.stage == Stage::Active && self.deletion.is_none() => {
                    own = sooner(own, Some(*until));
                }
                State::Running(run) => {
                    let checks = run.checks.as_deref();
                    let check = |of: fn(&Checks) -> &Option<Check>| {
                        checks.and_then(|checks| of(checks).as_ref()).map(|check| check.next)
                    };
                    let times = [
                        run.started,
                        run.ready,
                        run.unhealthy.map(|unhealthy| unhealthy.at),
                        run.ends.map(|(at, _)| at),
                        run.complaint.map(|(at, _)| at),
                        container.process.as_ref().map(|running| running.due),
                        check(|checks| &checks.startup),
                        check(|checks| &checks.readiness),
                        check(|checks| &checks.liveness),
                    ];
                    for at in times.into_iter().flatten().filter(|at| *at > now) {
                        own = sooner(own, Some(at));
                    }
                }
                _ => {}
            }
            next = sooner(next, own);
        }
        next.map(|at| at.max(later(now, Duration::from_millis(1))))
    }
}
