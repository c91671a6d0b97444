//! The row of a pod: how many containers are ready, the most telling reason, and restarts.

use super::duration::{moment, since};
use super::read::{NONE, age, at, condition, is_terminating, list, name, number, text, text_or};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let seen = Seen::of(pod);
    let restarts = match seen.last_restart {
        Some(last) if seen.restarts != 0 => format!("{} ({} ago)", seen.restarts, since(Some(last), now)),
        _ => seen.restarts.to_string(),
    };
    vec![
        name(pod).into(),
        format!("{}/{}", seen.ready, seen.total).into(),
        seen.reason.into(),
        restarts.into(),
        age(pod, now).into(),
        text_or(pod, "/status/podIPs/0/ip", NONE).into(),
        text_or(pod, "/spec/nodeName", NONE).into(),
        text_or(pod, "/status/nominatedNodeName", NONE).into(),
        readiness_gates(pod).into(),
    ]
}

/// Rows of finished pods are marked, so that clients can leave them out.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open =
        gates.iter().filter(|gate| condition(pod, text(gate, "/conditionType")) == Some("True")).count();
    format!("{open}/{}", gates.len())
}

#[derive(Default)]
struct Seen {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Seen {
    fn of(pod: &Value) -> Self {
        let init = list(pod, "/spec/initContainers");
        let sidecars = init.iter().filter(|container| is_sidecar(container)).count();
        let mut seen = Self {
            total: list(pod, "/spec/containers").len() + sidecars,
            reason: text_or(pod, "/status/reason", text(pod, "/status/phase")).to_owned(),
            ..Self::default()
        };
        let gated = list(pod, "/status/conditions").iter().any(|condition| {
            text(condition, "/type") == "PodScheduled" && text(condition, "/reason") == "SchedulingGated"
        });
        if gated {
            "SchedulingGated".clone_into(&mut seen.reason);
        }
        let initializing = seen.init_containers(pod, init);
        if !initializing || condition(pod, "Initialized") == Some("True") {
            seen.main_containers(pod, init);
        }
        if is_terminating(pod) {
            if text(pod, "/status/reason") == "NodeLost" {
                "Unknown".clone_into(&mut seen.reason);
            } else if !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut seen.reason);
            }
        }
        seen
    }

    /// Looks at init containers up to the first that is still busy. Returns whether there is one.
    fn init_containers(&mut self, pod: &Value, init: &[Value]) -> bool {
        for (index, status) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
            self.count_restarts(status);
            let exit_code =
                at(status, "/state/terminated").map(|_| number(status, "/state/terminated/exitCode"));
            if exit_code == Some(0) {
                continue;
            }
            let started = status.get("started").and_then(Value::as_bool) == Some(true);
            if started && is_named_sidecar(init, status) {
                self.ready += usize::from(is_ready(status));
                continue;
            }
            let waiting = text(status, "/state/waiting/reason");
            self.reason = match end_reason(status) {
                Some(reason) => format!("Init:{reason}"),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{index}/{}", init.len()),
            };
            return true;
        }
        false
    }

    fn main_containers(&mut self, pod: &Value, init: &[Value]) {
        // Restarts of finished init containers are history; those of sidecars still count.
        (self.restarts, self.last_restart) = (0, None);
        for status in list(pod, "/status/initContainerStatuses") {
            if is_named_sidecar(init, status) {
                self.count_restarts(status);
            }
        }
        let mut running = false;
        for status in list(pod, "/status/containerStatuses").iter().rev() {
            self.count_restarts(status);
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(reason) = end_reason(status) {
                self.reason = reason;
            } else if is_ready(status) && at(status, "/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            let ready = condition(pod, "Ready") == Some("True");
            if ready { "Running" } else { "NotReady" }.clone_into(&mut self.reason);
        }
    }

    fn count_restarts(&mut self, status: &Value) {
        self.restarts += number(status, "/restartCount");
        let ended = moment(status.pointer("/lastState/terminated/finishedAt"));
        self.last_restart = self.last_restart.max(ended);
    }
}

fn is_ready(status: &Value) -> bool {
    status.get("ready").and_then(Value::as_bool) == Some(true)
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "/restartPolicy") == "Always"
}

fn is_named_sidecar(init: &[Value], status: &Value) -> bool {
    init.iter().any(|container| text(container, "/name") == text(status, "/name") && is_sidecar(container))
}

/// Why a container ended; nothing when it did not.
fn end_reason(status: &Value) -> Option<String> {
    let ended = at(status, "/state/terminated")?;
    Some(match (text(ended, "/reason"), number(ended, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(ended, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    })
}
