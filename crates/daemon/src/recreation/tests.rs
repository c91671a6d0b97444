//! Requests are played against a pod whose containers the test moves by hand.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::containerrecreaterequest::v1beta1::Status;
use kruise_core::pod::Metadata;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::cri::State;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// A request, the containers of its pod, and a clock.
struct Play {
    object: Value,
    instances: Vec<Instance>,
    now: Timestamp,
    /// How long the daemon has seen the pod held.
    seen: Duration,
    kills: Vec<String>,
    /// Containers that do not stop.
    stubborn: Vec<&'static str>,
}

impl Play {
    fn new(strategy: Value) -> Self {
        let container = |name: &str| json!({"name": name, "statusContext": {"containerID": format!("containerd://{name}0"), "restartCount": 0}});
        let object = json!({
            "metadata": {"name": "r", "namespace": "ns", "labels": {"crr.apps.kruise.io/pod-uid": "u"}},
            "spec": {"podName": "p", "containers": [container("app"), container("sidecar")], "strategy": strategy},
        });
        let instances = ["app", "sidecar"].map(|name| Instance {
            name: name.to_owned(),
            id: format!("containerd://{name}0"),
            state: State::Running,
            restart_count: 0,
            started_at: Some(at(-100)),
        });
        Self {
            object,
            instances: instances.into(),
            now: at(0),
            seen: Duration::ZERO,
            kills: Vec::new(),
            stubborn: Vec::new(),
        }
    }

    fn known(&self) -> Known {
        Known {
            metadata: Metadata::deserialize(&self.object["metadata"]).unwrap(),
            request: Arc::new(Request::deserialize(&self.object).unwrap()),
        }
    }

    fn write(&mut self, patch: &Value) {
        json_patch::merge(&mut self.object, patch);
        // What was written must be a status.
        Status::deserialize(&self.object["status"]).unwrap();
    }

    /// One pass. Tells what was done.
    fn pass(&mut self) -> String {
        let known = self.known();
        if known.is_over() {
            return "over".to_owned();
        }
        match begin(&known, self.seen, self.now) {
            Begin::Write(patch) => {
                self.write(&patch);
                return "begin".to_owned();
            }
            Begin::Wait { after, .. } => return format!("wait {after:?}"),
            Begin::Look => {}
        }
        match step(&known, &self.instances, self.now) {
            Step::Write(patch) => {
                self.write(&patch);
                "write".to_owned()
            }
            Step::Complete(patch) => {
                self.write(&patch);
                "complete".to_owned()
            }
            Step::Kill { index, states } => {
                let name = known.request.spec.containers[index].name.clone();
                let problem = self.stubborn.contains(&name.as_str()).then(|| "boom".to_owned());
                if problem.is_none() {
                    self.instance(&name).state = State::Exited;
                }
                self.kills.push(name.clone());
                self.write(&killed(states, index, problem));
                format!("kill {name}")
            }
            Step::Wait { after, .. } => format!("wait {after:?}"),
        }
    }

    /// Passes until nothing changes.
    fn settle(&mut self) {
        for _ in 0..30 {
            if self.pass().starts_with("wait") || self.known().is_over() {
                return;
            }
        }
        panic!("does not settle: {}", self.object);
    }

    fn instance(&mut self, name: &str) -> &mut Instance {
        self.instances.iter_mut().find(|instance| instance.name == name).unwrap()
    }

    /// The kubelet starts a container anew.
    fn start(&mut self, name: &str) {
        let now = self.now;
        let instance = self.instance(name);
        instance.restart_count += 1;
        instance.id = format!("containerd://{name}{}", instance.restart_count);
        instance.state = State::Running;
        instance.started_at = Some(now);
    }

    /// The manager sees all running containers as ready.
    fn see_ready(&mut self) {
        let seen: Vec<Value> = self
            .instances
            .iter()
            .filter(|instance| instance.state == State::Running)
            .map(|i| json!({"name": i.name, "ready": true, "restartCount": i.restart_count, "containerID": i.id}))
            .collect();
        self.write(&json!({"status": {"phase": "Recreating", "containerStatusSnapshot": seen}}));
    }

    fn after(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn states(&self) -> String {
        let states = self.object["status"]["containerRecreateStates"].as_array().cloned().unwrap_or_default();
        let one = |state: &Value| {
            let killed = if state["isKilled"] == json!(true) { "!" } else { "" };
            format!("{}:{}{killed}", state["name"].as_str().unwrap(), state["phase"].as_str().unwrap())
        };
        states.iter().map(one).collect::<Vec<_>>().join(" ")
    }
}

/// CRR-1: what is recreated is told.
#[test]
fn a_container_that_runs_again_and_is_ready_has_succeeded() {
    let mut play = Play::new(json!({}));
    play.settle();
    assert_eq!(play.states(), "app:Recreating! sidecar:Recreating!");
    play.after(1);
    play.start("app");
    play.start("sidecar");
    play.settle();
    assert_eq!(play.states(), "app:Recreating! sidecar:Recreating!", "not ready yet");
    play.after(1);
    play.see_ready();
    play.settle();
    assert_eq!(play.states(), "app:Succeeded! sidecar:Succeeded!");
    assert_eq!(play.object["status"]["phase"], "Completed");
    assert!(play.object["status"].get("message").is_none());
    assert_eq!(play.kills, ["app", "sidecar"]);
}

/// CRR-3: a new container must last.
#[test]
fn a_new_container_that_dies_early_does_not_count() {
    let mut play = Play::new(json!({"minStartedSeconds": 5, "failurePolicy": "Fail"}));
    play.settle();
    play.start("app");
    play.start("sidecar");
    play.after(5);
    play.see_ready();
    play.settle();
    assert_eq!(play.states(), "app:Recreating! sidecar:Recreating!", "more than five seconds, not five");
    assert_eq!(play.pass(), "wait Some(5s)");
    play.instance("app").state = State::Exited;
    play.after(1);
    play.settle();
    assert_eq!(play.states(), "app:Recreating! sidecar:Succeeded!");
    play.start("app");
    play.see_ready();
    play.after(6);
    play.settle();
    assert_eq!(play.states(), "app:Succeeded! sidecar:Succeeded!");
}

/// A start that seems to lie in the future, because the clock was set back, keeps no request waiting.
#[test]
fn a_clock_that_is_set_back_keeps_nobody_waiting() {
    for strategy in
        [json!({"failurePolicy": "Fail"}), json!({"minStartedSeconds": 5, "failurePolicy": "Fail"})]
    {
        let mut play = Play::new(strategy);
        play.settle();
        play.start("app");
        play.start("sidecar");
        play.after(-600);
        play.see_ready();
        play.settle();
        assert_eq!(play.states(), "app:Succeeded! sidecar:Succeeded!");
        assert_eq!(play.object["status"]["phase"], "Completed");
    }
}

/// CRR-4: without an order nobody waits for the one before.
#[test]
fn containers_stop_one_after_another_without_waiting() {
    let mut play = Play::new(json!({}));
    let passes: Vec<String> = (0..5).map(|_| play.pass()).collect();
    assert_eq!(passes, ["begin", "write", "kill app", "kill sidecar", "wait None"]);
}

/// CRR-5: with an order the next one waits.
#[test]
fn with_an_order_the_next_container_waits_until_the_one_before_has_succeeded() {
    let mut play = Play::new(json!({"orderedRecreate": true}));
    play.settle();
    play.start("app");
    play.settle();
    assert_eq!(play.kills, ["app"]);
    play.after(1);
    play.see_ready();
    play.settle();
    assert_eq!(play.kills, ["app", "sidecar"]);
    assert_eq!(play.states(), "app:Succeeded! sidecar:Recreating!");
}

/// CRR-12 and CRR-14: the time before the stop counts from the condition.
#[test]
fn containers_stop_only_after_the_pod_was_not_ready_for_long_enough() {
    let mut play = Play::new(json!({"unreadyGracePeriodSeconds": 5}));
    assert_eq!(play.pass(), "begin");
    assert_eq!(play.pass(), "wait None");
    let held = kruise_api::time::Time(play.now);
    play.write(&json!({"status": {"conditions": [{"type": "PreRecreateGrace", "status": "True",
        "reason": "PreRecreateGrace", "message": "m", "lastTransitionTime": held}]}}));
    play.after(2);
    assert_eq!(play.pass(), "wait Some(3.1s)");
    play.after(3);
    play.settle();
    assert_eq!(play.kills, ["app", "sidecar"]);
}

/// A time that never ends, also on a node whose clock is behind that of the manager.
#[test]
fn a_pod_may_stay_not_ready_for_ever() {
    let mut play = Play::new(json!({"unreadyGracePeriodSeconds": i64::MAX}));
    assert_eq!(play.pass(), "begin");
    let held = kruise_api::time::Time(play.now + SignedDuration::from_secs(1));
    play.write(&json!({"status": {"conditions": [{"type": "PreRecreateGrace", "status": "True",
        "reason": "PreRecreateGrace", "message": "m", "lastTransitionTime": held}]}}));
    assert!(play.pass().starts_with("wait Some"));
}

/// A node whose clock is set back meanwhile counts the time itself.
#[test]
fn a_clock_that_is_set_back_does_not_make_the_grace_longer() {
    let mut play = Play::new(json!({"unreadyGracePeriodSeconds": 5}));
    assert_eq!(play.pass(), "begin");
    let held = kruise_api::time::Time(play.now);
    play.write(&json!({"status": {"conditions": [{"type": "PreRecreateGrace", "status": "True",
        "reason": "PreRecreateGrace", "message": "m", "lastTransitionTime": held}]}}));
    play.after(-3600);
    assert_eq!(play.pass(), "wait Some(5.1s)");
    play.seen = Duration::from_secs(5);
    play.settle();
    assert_eq!(play.kills, ["app", "sidecar"]);
}

/// CRR-16: one request at a time.
#[test]
fn the_second_request_of_a_pod_waits_for_the_first() {
    let known = |name: &str, phase: Option<&str>, created: i64, deleting: bool| {
        let mut metadata = json!({"name": name, "creationTimestamp": at(created).to_string()});
        if deleting {
            metadata["deletionTimestamp"] = json!(at(0).to_string());
        }
        let status = phase.map(|phase| json!({"phase": phase}));
        Known {
            metadata: Metadata::deserialize(&metadata).unwrap(),
            request: Arc::new(Request::deserialize(json!({"spec": {}, "status": status})).unwrap()),
        }
    };
    let check = |requests: &[Known], turn: Option<&str>, wait: &[&str]| {
        let picked = pick(requests);
        assert_eq!(picked.turn.map(|known| known.metadata.name.as_str()), turn);
        let told: Vec<&str> = picked.wait.iter().map(|known| known.metadata.name.as_str()).collect();
        assert_eq!(told, wait);
    };
    let new = [known("b", None, 2, false), known("a", None, 2, false), known("c", None, 1, false)];
    check(&new, Some("c"), &["a", "b"]);
    let later = [known("a", Some("Pending"), 1, false), known("b", Some("Recreating"), 2, false)];
    check(&later, Some("b"), &[]);
    let last = [
        known("a", Some("Completed"), 1, false),
        known("b", Some("Recreating"), 2, true),
        known("c", Some("Pending"), 3, false),
    ];
    check(&last, Some("c"), &[]);
    check(&[], None, &[]);
}

/// CRR-19: somebody else restarted the container meanwhile.
#[test]
fn a_container_that_was_restarted_meanwhile_is_not_stopped_unless_forced() {
    for (force, kills) in [(false, vec!["sidecar"]), (true, vec!["app", "sidecar"])] {
        let mut play = Play::new(json!({"forceRecreate": force}));
        play.start("app");
        play.after(1);
        play.see_ready();
        play.settle();
        assert_eq!(play.kills, kills);
        if force {
            play.start("app");
        }
        play.start("sidecar");
        play.after(1);
        play.see_ready();
        play.settle();
        assert_eq!(play.object["status"]["phase"], "Completed");
        assert_eq!(play.kills, kills, "nothing is stopped twice");
    }
}

/// CRR-20: a container that crashes all the time.
#[test]
fn a_container_that_has_ended_by_itself_is_not_stopped() {
    let mut play = Play::new(json!({}));
    play.instance("app").state = State::Exited;
    play.settle();
    assert_eq!(play.kills, ["sidecar"]);
    assert_eq!(play.states(), "app:Recreating! sidecar:Recreating!");
}

/// CRR-21: the runtime does not stop a container.
#[test]
fn a_container_that_does_not_stop_ends_the_request_unless_failures_are_ignored() {
    let mut play = Play::new(json!({"failurePolicy": "Fail"}));
    play.stubborn = vec!["app"];
    play.settle();
    assert_eq!(play.object["status"]["phase"], "Completed");
    assert_eq!(play.kills, ["app"]);
    assert_eq!(play.object["status"]["containerRecreateStates"][0]["message"], "kill container error: boom");
    assert_eq!(play.states(), "app:Failed sidecar:Pending");

    let mut play = Play::new(json!({"failurePolicy": "Ignore"}));
    play.stubborn = vec!["app"];
    play.settle();
    play.start("sidecar");
    play.after(1);
    play.see_ready();
    play.settle();
    assert_eq!(play.states(), "app:Failed sidecar:Succeeded!");
    assert_eq!(play.object["status"]["phase"], "Completed");
}

/// CRR-22: the daemon dies right after a stop, before it could tell.
#[test]
fn a_stop_that_was_not_written_down_is_not_repeated() {
    let mut play = Play::new(json!({}));
    play.pass();
    play.pass();
    let before = play.object.clone();
    assert_eq!(play.pass(), "kill app");
    play.object = before;
    play.settle();
    assert_eq!(play.kills, ["app", "sidecar"]);
}

/// CRR-32: the runtime follows from the ids.
#[test]
fn the_runtime_is_named_by_the_ids() {
    let mut play = Play::new(json!({}));
    assert_eq!(runtime_name(&play.known()), Ok("containerd".to_owned()));
    play.object["spec"]["containers"][1]["statusContext"]["containerID"] = json!("cri-o://x");
    let problem = runtime_name(&play.known()).unwrap_err();
    assert_eq!(problem, NoRuntime::Different("containerd".to_owned(), "cri-o".to_owned()));
    play.object["spec"]["containers"][0]["statusContext"]["containerID"] = json!("x");
    assert_eq!(runtime_name(&play.known()), Err(NoRuntime::NoId("app".to_owned())));
}

#[test]
fn a_container_that_is_not_on_the_node_is_told_and_waited_for() {
    let mut play = Play::new(json!({}));
    play.instances.clear();
    play.settle();
    assert_eq!(play.states(), "app:Pending sidecar:Pending");
    assert_eq!(play.object["status"]["containerRecreateStates"][0]["message"], "not found container on Node");
}

/// CRR-11: the hook that sleeps is not lost on its way.
#[test]
fn a_hook_that_sleeps_is_read() {
    let mut play = Play::new(json!({}));
    play.object["spec"]["containers"][0]["preStop"] = json!({"sleep": {"seconds": 5}});
    let known = play.known();
    let hook = known.request.spec.containers[0].pre_stop.as_ref().unwrap();
    assert_eq!(hook.sleep.as_ref().unwrap().seconds, 5);
}

proptest! {
    /// Whatever containers do by themselves and whenever the daemon forgets what it just did: a request that is not
    /// forced stops no instance twice, and it ends when everything runs and is ready.
    #[test]
    fn no_instance_is_stopped_twice_and_every_request_ends(
        moves in proptest::collection::vec(0_u8..6, 0..40), ordered in any::<bool>(),
    ) {
        let mut play = Play::new(json!({"orderedRecreate": ordered}));
        let mut stopped = std::collections::BTreeSet::new();
        for one in moves {
            let before = play.object.clone();
            let ids: Vec<(String, String)> =
                play.instances.iter().map(|i| (i.name.clone(), i.id.clone())).collect();
            match one {
                0..=2 => {
                    let told = play.pass();
                    if let Some(name) = told.strip_prefix("kill ") {
                        let id = ids.iter().find(|(known, _)| known == name).unwrap().1.clone();
                        prop_assert!(stopped.insert(id.clone()), "{id} was stopped twice");
                        if one == 2 {
                            play.object = before;
                        }
                    }
                }
                3 => play.instance("app").state = State::Exited,
                4 => {
                    for name in ["app", "sidecar"] {
                        if play.instance(name).state == State::Exited {
                            play.start(name);
                        }
                    }
                }
                _ if play.object.get("status").is_some() && !play.known().is_over() => play.see_ready(),
                _ => {}
            }
            play.after(1);
        }
        for _ in 0..10 {
            play.settle();
            if play.known().is_over() {
                return Ok(());
            }
            for name in ["app", "sidecar"] {
                if play.instance(name).state == State::Exited {
                    play.start(name);
                }
            }
            play.after(2);
            play.see_ready();
        }
        prop_assert!(false, "never ends: {}", play.object);
    }
}
