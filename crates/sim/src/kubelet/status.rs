//! A pod's status as its kubelet reports it: phase, conditions and container statuses.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::container::{Container, State};
use super::pass::Pass;
use super::pod::{Pod, Stage, Told};
use super::spec::{ContainerSpec, Restart, Role};

const NOT_READY: &str = "ContainersNotReady";

impl Pod {
    /// The status patch, if there is anything new to say.
    pub(super) fn report(&mut self, pass: &Pass<'_>) -> Option<Map<String, Value>> {
        if matches!(self.stage, Stage::Bound { .. }) {
            return None;
        }
        let status = self.status(pass);
        let mut hasher = DefaultHasher::new();
        status.hash(&mut hasher);
        let hash = hasher.finish().max(1);
        if std::mem::replace(&mut self.written, hash) == hash {
            return None;
        }
        let mut patch = Map::new();
        patch.insert("metadata".to_owned(), json!({"uid": &*self.uid}));
        patch.insert("status".to_owned(), status);
        Some(patch)
    }

    fn pairs(&self, role: impl Fn(Role) -> bool) -> impl Iterator<Item = (&ContainerSpec, &Container)> {
        self.spec.containers.iter().zip(&self.containers).filter(move |(spec, _)| role(spec.role))
    }

    fn status(&mut self, pass: &Pass<'_>) -> Value {
        let now = pass.now;
        let has_init = self.pairs(|role| matches!(role, Role::Init | Role::Sidecar)).next().is_some();
        let waits = has_init && !self.initialized;
        let statuses = |role: &dyn Fn(Role) -> bool, waits: bool| -> Vec<Value> {
            self.pairs(role).map(|(spec, container)| container.status(spec, waits, now)).collect()
        };
        let main = statuses(&|role| role == Role::Main, waits);
        let init = statuses(&|role| matches!(role, Role::Init | Role::Sidecar), true);
        let ephemeral = statuses(&|role| role == Role::Ephemeral, false);
        let phase = self.phase();
        let sandbox = !matches!(self.stage, Stage::Over | Stage::Gone | Stage::Leaving { .. });
        let conditions = self.conditions(phase, pass);
        let mut status = Map::new();
        let mut put = |key: &str, value: Value| status.insert(key.to_owned(), value);
        put("phase", json!(phase));
        put("conditions", conditions);
        put("hostIP", json!(self.host_ip));
        put("hostIPs", json!([{"ip": self.host_ip}]));
        if sandbox || self.start.is_some() {
            put("podIP", json!(self.ip));
            put("podIPs", json!([{"ip": self.ip}]));
        }
        if let Some(start) = &self.start {
            put("startTime", json!(start));
        }
        put("containerStatuses", json!(main));
        if !init.is_empty() {
            put("initContainerStatuses", json!(init));
        }
        if !ephemeral.is_empty() {
            put("ephemeralContainerStatuses", json!(ephemeral));
        }
        if let Some((reason, message)) = &self.failed {
            put("reason", json!(reason));
            put("message", json!(message));
        }
        Value::Object(status)
    }

    /// The phase follows from the containers and the restart policy.
    pub(super) fn phase(&self) -> &'static str {
        if self.failed.is_some() {
            return "Failed";
        }
        if let Some(declared) = self.declared {
            return declared;
        }
        let ended = |container: &Container| match (&container.state, &container.last) {
            (State::Ended { code }, _) => Some(*code),
            _ => None,
        };
        let is_final = matches!(self.stage, Stage::Over | Stage::Leaving { .. } | Stage::Gone);
        if !self.initialized {
            let failed = self
                .pairs(|role| role == Role::Init)
                .any(|(_, container)| ended(container).is_some_and(|code| code != 0));
            return if is_final && (failed || self.deletion.is_some()) { "Failed" } else { "Pending" };
        }
        let main: Vec<&Container> = self.pairs(|role| role == Role::Main).map(|(_, c)| c).collect();
        let unborn = main.iter().any(|c| c.last.is_none() && c.run().is_none());
        if is_final {
            let good = main.iter().all(|c| ended(c) == Some(0));
            return if good { "Succeeded" } else { "Failed" };
        }
        if unborn {
            return "Pending";
        }
        let all_ended = main.iter().all(|c| ended(c).is_some());
        match self.spec.restart {
            Restart::Never if all_ended && self.deletion.is_none() => {
                if main.iter().all(|c| ended(c) == Some(0)) { "Succeeded" } else { "Failed" }
            }
            Restart::OnFailure
                if all_ended && self.deletion.is_none() && main.iter().all(|c| ended(c) == Some(0)) =>
            {
                "Succeeded"
            }
            _ => "Running",
        }
    }

    fn conditions(&mut self, phase: &str, pass: &Pass<'_>) -> Value {
        let now = pass.now;
        let done = matches!(phase, "Succeeded" | "Failed");
        let names = |list: Vec<&str>| format!("[{}]", list.join(" "));
        let incomplete: Vec<&str> = if self.initialized {
            Vec::new()
        } else {
            self.pairs(|role| matches!(role, Role::Init | Role::Sidecar))
                .filter(|(spec, container)| match (&container.state, spec.role) {
                    (State::Ended { code: 0 }, Role::Init) => false,
                    (_, Role::Sidecar) => !container.run().is_some_and(|run| run.is_started(now)),
                    _ => true,
                })
                .map(|(spec, _)| spec.name.as_str())
                .collect()
        };
        let unready: Vec<&str> = self
            .pairs(|role| matches!(role, Role::Main | Role::Sidecar))
            .filter(|(_, container)| !container.run().is_some_and(|run| run.is_ready(now)))
            .map(|(spec, _)| spec.name.as_str())
            .collect();
        let ended = match phase {
            "Succeeded" => Some("PodCompleted"),
            "Failed" => Some("PodFailed"),
            _ => None,
        };
        let good = (true, "", String::new());
        let initialized = match (ended, incomplete.is_empty()) {
            (Some("PodCompleted"), _) => (true, "PodCompleted", String::new()),
            (_, true) => good.clone(),
            _ => {
                let text = format!("containers with incomplete status: {}", names(incomplete));
                (false, "ContainersNotInitialized", text)
            }
        };
        let containers = match (ended, unready.is_empty()) {
            (Some(reason), _) => (false, reason, String::new()),
            (None, true) => good.clone(),
            (None, false) => {
                (false, NOT_READY, format!("containers with unready status: {}", names(unready)))
            }
        };
        let ready = if containers.0 { self.gates() } else { containers.clone() };
        let sandbox = self.start.is_some() && !done;
        let all = [
            ("PodReadyToStartContainers", (sandbox, "", String::new())),
            ("Initialized", initialized),
            ("Ready", ready),
            ("ContainersReady", containers),
        ];
        let stamp = pass.stamp();
        let since: Arc<str> = stamp.as_str().into();
        self.told.reserve_exact(all.len().saturating_sub(self.told.len()));
        let mut list: Vec<Value> = Vec::new();
        for (kind, (status, reason, message)) in all {
            let changed = match self.told.iter_mut().find(|told| told.kind == kind) {
                Some(told) => {
                    if told.status != status {
                        *told = Told { kind, status, since: since.clone() };
                    }
                    told.since.clone()
                }
                None => {
                    self.told.push(Told { kind, status, since: since.clone() });
                    since.clone()
                }
            };
            let text = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
            // A null removes what an earlier report said.
            list.push(json!({
                "type": kind, "status": if status { "True" } else { "False" }, "lastProbeTime": null,
                "lastTransitionTime": &*changed, "reason": text(reason), "message": text(&message),
            }));
        }
        list.extend(self.resize_conditions(&stamp));
        if let Some((reason, message)) = &self.failed
            && *reason == "Evicted"
        {
            let since = self.since.entry("DisruptionTarget").or_insert_with(|| stamp.clone());
            list.push(json!({
                "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message,
                "lastProbeTime": null, "lastTransitionTime": since,
            }));
        }
        Value::Array(list)
    }

    /// Whether all readiness gates are open, in the kubelet's words.
    fn gates(&self) -> (bool, &'static str, String) {
        let closed: Vec<String> = self
            .spec
            .gates
            .iter()
            .filter_map(|gate| match self.seen.get(gate).map(String::as_str) {
                Some("True") => None,
                Some(status) => {
                    Some(format!("the status of pod readiness gate \"{gate}\" is not \"True\", but {status}"))
                }
                None => {
                    Some(format!("corresponding condition of pod readiness gate \"{gate}\" does not exist."))
                }
            })
            .collect();
        if closed.is_empty() {
            (true, "", String::new())
        } else {
            (false, "ReadinessGatesNotReady", closed.join(", "))
        }
    }

    fn resize_conditions(&mut self, stamp: &str) -> Vec<Value> {
        let under_way = self.containers.iter().any(|c| c.resized_at.is_some() || c.allocated != c.actual);
        let mut list = Vec::new();
        let waits =
            self.resize_waits.as_ref().map(|(reason, message)| (Some(*reason), Some(message.clone())));
        for (kind, now) in
            [("PodResizePending", waits), ("PodResizeInProgress", under_way.then_some((None, None)))]
        {
            match now {
                Some((reason, message)) => {
                    let since = self.since.entry(kind).or_insert_with(|| stamp.to_owned());
                    list.push(json!({
                        "type": kind, "status": "True", "reason": reason, "message": message,
                        "lastProbeTime": null, "lastTransitionTime": since,
                    }));
                }
                None if self.since.remove(kind).is_some() => {
                    list.push(json!({"$patch": "delete", "type": kind}));
                }
                None => {}
            }
        }
        list
    }
}
