//! Pods that ran before this kubelet did: they go on, as containers do when a kubelet restarts.
//!
//! What a kubelet knows about a pod is in its status. What it does not say (how long a pause has lasted) begins anew.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::container::{Container, FIRST_PAUSE, Run, State};
use super::mount::Mounts;
use super::pass::Pass;
use super::pod::{Pod, Stage, Told};
use super::process::Program;
use super::spec::ContainerSpec;
use crate::image::normalized;
use crate::json::{at, list, number, text};
use crate::time::later;

const OWN_CONDITIONS: [&str; 4] = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"];

/// The status that an earlier kubelet left, if one had begun with the pod.
pub(super) fn left(pod: &Value) -> Option<Value> {
    let status = at(pod, "/status")?;
    (!text(status, "/startTime").is_empty() && !list(status, "/containerStatuses").is_empty())
        .then(|| status.clone())
}

impl Pod {
    /// Goes on where the earlier kubelet was.
    pub(super) fn adopt(&mut self, status: &Value, pass: &mut Pass<'_>) {
        let start = text(status, "/startTime");
        self.stage = Stage::Active;
        self.begun = Some(time(start).unwrap_or(pass.now));
        self.start = Some(start.to_owned());
        for condition in list(status, "/conditions") {
            if let Some(kind) = OWN_CONDITIONS.into_iter().find(|kind| *kind == text(condition, "/type")) {
                let status = text(condition, "/status") == "True";
                let since = text(condition, "/lastTransitionTime").into();
                self.told.retain(|told| told.kind != kind);
                self.told.push(Told { kind, status, since });
            }
        }
        self.initialized = self.told.iter().any(|told| told.kind == "Initialized" && told.status);
        let lists = ["/initContainerStatuses", "/containerStatuses", "/ephemeralContainerStatuses"];
        let statuses = || lists.iter().flat_map(|part| list(status, part));
        let (namespace, name) = (&self.namespace, &self.name);
        for (spec, container) in self.spec.containers.iter().zip(&mut self.containers) {
            if let Some(known) = statuses().find(|known| text(known, "/name") == spec.name) {
                container.adopt(spec, known, pass);
                if spec.takes_metadata {
                    container.environment = pass.values_of_metadata(namespace, name, &spec.name);
                }
            }
        }
        if self.containers.iter().any(|container| !container.id.is_empty()) {
            self.mounts = Mounts::Done;
        }
        let spec = self.spec.clone();
        for (at, spec) in spec.containers.iter().enumerate() {
            self.resume(at, spec, pass);
        }
    }
}

impl Pod {
    /// The process of a container that runs: what it has done since it began it does again at once.
    fn resume(&mut self, at: usize, spec: &ContainerSpec, pass: &mut Pass<'_>) {
        let since = match self.containers.get(at).map(|container| &container.state) {
            Some(State::Running(run)) => run.since,
            _ => return,
        };
        let program = self.program(at, spec, pass);
        let Some(container) = self.containers.get_mut(at) else { return };
        let State::Running(run) = &mut container.state else { return };
        match program {
            Program::Image | Program::Missing(_) => {}
            Program::Serves => run.ends = None,
            Program::Ends(after) => run.ends = Some((later(since, after), 0)),
            Program::Runs(process) => {
                run.ends = None;
                container.process = Self::begins(process, since);
            }
        }
    }
}

impl Container {
    fn adopt(&mut self, spec: &ContainerSpec, status: &Value, pass: &mut Pass<'_>) {
        self.id = text(status, "/containerID").to_owned();
        if self.id.is_empty() {
            // Nothing was made yet: the container begins as any other.
            return;
        }
        let image = text(status, "/image");
        // What the specification names now may be news; then the container is restarted.
        self.image = if normalized(&spec.image) == image { spec.image.clone() } else { image.to_owned() };
        self.wanted.clone_from(&self.image);
        self.image_id = text(status, "/imageID").to_owned();
        self.restarts = number(status, "/restartCount").and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        self.crashes = self.restarts;
        self.last = at(status, "/lastState/terminated").cloned();
        pass.pulled.insert(normalized(&self.image));
        let code = |ended: &Value| {
            at(ended, "/exitCode").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok())
        };
        if let Some(running) = at(status, "/state/running") {
            let stamp = text(running, "/startedAt");
            let since = time(stamp).and_then(|at| at.checked_sub(pass.skew).ok()).unwrap_or(pass.now);
            let behaviour = pass.images.behaviour(&self.image);
            self.created = since.checked_add(pass.skew).unwrap_or(since);
            let hook = Duration::ZERO;
            self.state =
                State::Running(Run::begun(spec, &behaviour, since, hook, pass.skew, stamp.to_owned()));
        } else if let Some(ended) = at(status, "/state/terminated") {
            self.before = self.last.replace(ended.clone());
            self.state = State::Ended { code: code(ended).unwrap_or(0) };
        } else if text(status, "/state/waiting/reason") == "CrashLoopBackOff" {
            let message = text(status, "/state/waiting/message").to_owned();
            let until = later(pass.now, FIRST_PAUSE);
            self.state = State::Paused { until, reason: "CrashLoopBackOff", message };
        } else if let Some(ended) = &self.last {
            self.state = State::Ended { code: code(ended).unwrap_or(0) };
        }
    }
}

fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
