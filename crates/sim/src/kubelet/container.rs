//! One container's life: waiting, being made, running, stopping, ended, and again.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::pass::Pass;
use super::spec::{ContainerSpec, Probe, Role};
use crate::image::Behaviour;
use crate::machine::shell::Process;
use crate::steps::Then;
use crate::time::later;

/// The first pause after a crash or a failed pull; it doubles each time.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A container that ran this long begins again with the first pause.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);

/// No process lives shorter: its start and its end would be in the same second, which nobody could tell apart.
const SHORTEST: Duration = Duration::from_secs(1);

/// Where a container is.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Not begun.
    Waiting,
    /// Its image is being pulled, or its process being started; done at the time given.
    Doing { then: Then, due: Timestamp },
    /// Not tried again before the time given.
    Paused { until: Timestamp, reason: &'static str, message: String },
    /// Its process runs.
    Running(Run),
    /// Its process was told to stop and ends at the time given.
    Stopping { run: Run, due: Timestamp, code: i32 },
    /// Its process has ended.
    Ended { code: i32 },
}

/// What will happen to a running process if nobody interferes: probes and ends follow from the image and the
/// specification, so they are worked out once at the start instead of at every probe.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) since: Timestamp,
    /// The same on the node's own clock.
    pub(super) on_node: Timestamp,
    /// The same as objects carry it.
    pub(super) stamp: String,
    /// When the startup probe has passed; `None` when it never does.
    pub(super) started: Option<Timestamp>,
    /// When the readiness probe has passed; `None` when it never does.
    pub(super) ready: Option<Timestamp>,
    /// When something has failed so often that the container is restarted.
    pub(super) unhealthy: Option<Unhealthy>,
    /// When the process ends by itself.
    pub(super) ends: Option<(Timestamp, i32)>,
    /// When the next failure of the readiness probe is reported, and the pause after it.
    pub(super) complaint: Option<(Timestamp, Duration)>,
    /// Probes that run a command each time.
    pub(super) checks: Option<Box<Checks>>,
}

/// Why a container is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unhealthy {
    pub(super) at: Timestamp,
    pub(super) why: Why,
    /// Whether its failures were reported one by one.
    pub(super) is_said: bool,
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Startup,
    Liveness,
    /// The hook after the start.
    Hook,
}

/// Probes that run a command each time.
#[derive(Clone, Debug)]
pub(super) struct Checks {
    /// When the hook after the start has ended.
    pub(super) hooked: Timestamp,
    pub(super) startup: Option<Check>,
    pub(super) readiness: Option<Check>,
    pub(super) liveness: Option<Check>,
}

/// How often a probe passed or failed of late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    /// When it is asked next.
    pub(super) next: Timestamp,
    pub(super) passed: u32,
    pub(super) failed: u32,
}

impl Check {
    fn at(next: Timestamp) -> Self {
        Self { next, passed: 0, failed: 0 }
    }
}

/// The process of a container whose command is known.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) process: Process,
    /// When it goes on.
    pub(super) due: Timestamp,
}

impl Run {
    /// The future of a process that starts now. The hook after its start takes so long.
    pub(super) fn begin(spec: &ContainerSpec, image: &Behaviour, hook: Duration, pass: &Pass<'_>) -> Self {
        Self::begun(spec, image, pass.now, hook, pass.skew, pass.stamp())
    }

    /// The future of a process that started then, at `stamp` on the node's own clock.
    pub(super) fn begun(
        spec: &ContainerSpec,
        image: &Behaviour,
        now: Timestamp,
        hook: Duration,
        skew: SignedDuration,
        stamp: String,
    ) -> Self {
        let hooked = later(now, hook);
        let mut run = Self {
            since: now,
            on_node: now.checked_add(skew).unwrap_or(now),
            stamp,
            started: None,
            ready: None,
            unhealthy: None,
            ends: image.ends.map(|(after, code)| (later(now, after), code)),
            complaint: None,
            checks: None,
        };
        match &spec.startup {
            None => run.start(spec, image, hooked),
            Some(probe) if probe.exec.is_some() => {
                run.checks(hooked).startup = Some(Check::at(later(now, probe.initial)));
            }
            Some(probe) => {
                let passes = image.started_after.filter(|_| probe.fails.is_none());
                let passed = tick_at(probe, now, now, passes.map(|after| later(now, after)));
                let last = later(now, probe.initial + probe.period * (probe.failures.saturating_sub(1)));
                match passed {
                    Some(at) if at <= last => run.start(spec, image, at.max(hooked)),
                    _ => run.unhealthy = Some(Unhealthy { at: last, why: Why::Startup, is_said: false }),
                }
            }
        }
        run
    }

    fn checks(&mut self, hooked: Timestamp) -> &mut Checks {
        let none = || Box::new(Checks { hooked, startup: None, readiness: None, liveness: None });
        self.checks.get_or_insert_with(none)
    }

    /// The container counts as started from then on: the other probes begin.
    pub(super) fn start(&mut self, spec: &ContainerSpec, image: &Behaviour, at: Timestamp) {
        let since = self.since;
        self.started = Some(at);
        let first = |probe: &Probe| tick_at(probe, since, at, Some(since)).unwrap_or(at);
        self.ready = match &spec.readiness {
            None => Some(at),
            Some(probe) if probe.exec.is_some() => {
                self.checks(at).readiness = Some(Check::at(first(probe)));
                None
            }
            Some(probe) => {
                let passes = image.ready_after.filter(|_| probe.fails.is_none());
                let first = tick_at(probe, since, at, passes.map(|after| later(since, after)));
                first.map(|at| later(at, probe.period * probe.successes.saturating_sub(1)))
            }
        };
        match &spec.liveness {
            None => {}
            Some(probe) if probe.exec.is_some() => {
                self.checks(at).liveness = Some(Check::at(first(probe)));
            }
            Some(probe) => {
                let fails = image.unhealthy_after.or(probe.fails.map(|_| Duration::ZERO));
                let fails = fails.and_then(|after| tick_at(probe, since, at, Some(later(since, after))));
                if let Some(fails) = fails {
                    let at = later(fails, probe.period * probe.failures.saturating_sub(1));
                    self.unhealthy = Some(Unhealthy { at, why: Why::Liveness, is_said: false });
                }
            }
        }
        let ready = self.ready;
        self.complaint = spec.readiness.as_ref().filter(|probe| probe.exec.is_none()).and_then(|probe| {
            let first = first(probe);
            ready.is_none_or(|ready| first < ready).then_some((first, probe.period))
        });
    }

    pub(super) fn is_started(&self, now: Timestamp) -> bool {
        self.started.is_some_and(|at| at <= now)
    }

    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        self.is_started(now) && self.ready.is_some_and(|at| at <= now)
    }
}

/// The first probe that is neither before `from` nor before `passes`.
fn tick_at(probe: &Probe, start: Timestamp, from: Timestamp, passes: Option<Timestamp>) -> Option<Timestamp> {
    let first = later(start, probe.initial);
    let wanted = passes?.max(from);
    if wanted <= first {
        return Some(first);
    }
    let period = i64::try_from(probe.period.as_millis()).ok().filter(|ms| *ms > 0)?;
    let behind = wanted.as_millisecond() - first.as_millisecond();
    let ticks = u32::try_from((behind + period - 1) / period).ok()?;
    Some(later(first, probe.period * ticks))
}

/// A container of a pod on a node.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) state: State,
    pub(super) id: String,
    /// The image that runs or ran, as the specification named it.
    pub(super) image: String,
    /// The image that the node last set out to run.
    pub(super) wanted: String,
    pub(super) image_id: String,
    /// How often it ended by itself of late; a restart that was asked for does not count.
    pub(super) crashes: u32,
    pub(super) restarts: u32,
    /// When it was made, on the node's own clock.
    pub(super) created: Timestamp,
    /// Values of labels and annotations that it was started with.
    pub(super) environment: BTreeMap<String, String>,
    /// How the last run ended, as the status shows it.
    pub(super) last: Option<Value>,
    /// How the run before that ended.
    pub(super) before: Option<Value>,
    pub(super) pause: Duration,
    pub(super) pull_pause: Duration,
    /// What the node has granted.
    pub(super) allocated: Value,
    /// What is in force.
    pub(super) actual: Value,
    /// When a running container is killed because its specification changed.
    pub(super) kill_at: Option<Timestamp>,
    /// Whether the next end is one that a change asked for.
    pub(super) asked: bool,
    /// When granted resources come into force.
    pub(super) resized_at: Option<Timestamp>,
    /// Its process, while it runs and is known.
    pub(super) process: Option<Box<Running>>,
    /// How often its process or a probe of it went on.
    pub(super) moves: u32,
}

impl Container {
    pub(super) fn new(spec: &ContainerSpec) -> Self {
        Self {
            state: State::Waiting,
            id: String::new(),
            image: spec.image.clone(),
            wanted: spec.image.clone(),
            image_id: String::new(),
            crashes: 0,
            restarts: 0,
            created: Timestamp::UNIX_EPOCH,
            environment: BTreeMap::new(),
            last: None,
            before: None,
            pause: FIRST_PAUSE,
            pull_pause: FIRST_PAUSE,
            allocated: spec.resources.clone(),
            actual: spec.resources.clone(),
            kill_at: None,
            asked: false,
            resized_at: None,
            process: None,
            moves: 0,
        }
    }

    pub(super) fn run(&self) -> Option<&Run> {
        match &self.state {
            State::Running(run) | State::Stopping { run, .. } => Some(run),
            _ => None,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.kill_at.is_some() || matches!(self.state, State::Doing { .. } | State::Stopping { .. })
    }

    /// Whether it neither runs nor is about to.
    pub(super) fn is_down(&self) -> bool {
        !matches!(self.state, State::Running(_) | State::Stopping { .. })
    }

    /// Tells the process to stop; it has at most `grace` for its hook and its end.
    pub(super) fn stop(&mut self, hook: Duration, image: &Behaviour, now: Timestamp, grace: Duration) {
        self.kill_at = None;
        let State::Running(run) = &self.state else { return };
        let wanted = hook + image.stop;
        let (due, code) = if image.ignores_sigterm || wanted > grace {
            (later(now, grace), 137)
        } else {
            (later(now, wanted), 0)
        };
        let due = due.max(later(run.since, SHORTEST));
        self.state = State::Stopping { run: run.clone(), due, code };
    }

    /// Somebody else than the kubelet tells the process to stop: no hook runs. Gives the time at which it will have ended.
    pub(super) fn signal(&mut self, image: &Behaviour, now: Timestamp, grace: Duration) -> Option<Timestamp> {
        if let State::Running(run) = &self.state {
            let (due, code) = match image.ignores_sigterm || image.stop > grace {
                true => (later(now, grace), 137),
                false => (later(now, image.stop), 0),
            };
            let due = due.max(later(run.since, SHORTEST));
            self.state = State::Stopping { run: run.clone(), due, code };
            self.kill_at = None;
        }
        match &self.state {
            State::Stopping { due, .. } => Some(*due),
            _ => None,
        }
    }

    /// The process ends by itself, now. Whether there was one.
    pub(super) fn leave(&mut self, code: i32, now: Timestamp) -> bool {
        let State::Running(run) = &self.state else { return false };
        let due = now.max(later(run.since, SHORTEST));
        self.state = State::Stopping { run: run.clone(), due, code };
        self.kill_at = None;
        true
    }

    /// Ends a stop earlier than planned.
    pub(super) fn hurry(&mut self, latest: Timestamp) {
        if let State::Stopping { due, code, .. } = &mut self.state
            && latest < *due
        {
            *due = latest;
            *code = 137;
        }
    }

    /// The process has ended.
    pub(super) fn end(&mut self, code: i32, reason: &str, stamp: &str, now: Timestamp) {
        let Some(run) = self.run() else { return };
        let ended = json!({
            "exitCode": code, "reason": reason, "startedAt": run.stamp, "finishedAt": stamp, "containerID": self.id,
        });
        if later(run.since, FORGIVEN_AFTER) <= now {
            self.forgive();
        }
        self.finish(code, ended);
    }

    /// The process could not be started, for this reason.
    pub(super) fn fail(&mut self, message: &str, stamp: &str) {
        let ended = json!({
            "exitCode": 128, "reason": "StartError", "message": message, "startedAt": "1970-01-01T00:00:00Z",
            "finishedAt": stamp, "containerID": self.id,
        });
        self.finish(128, ended);
    }

    fn finish(&mut self, code: i32, ended: Value) {
        self.process = None;
        // A stop that was asked for is no failure.
        self.crashes = if std::mem::take(&mut self.asked) { 0 } else { self.crashes + 1 };
        self.before = self.last.replace(ended);
        self.kill_at = None;
        self.state = State::Ended { code };
    }

    /// Forgets former failures.
    pub(super) fn forgive(&mut self) {
        self.crashes = 0;
        self.pause = FIRST_PAUSE;
        self.pull_pause = FIRST_PAUSE;
    }

    /// The container's status as the API shows it.
    pub(super) fn status(&self, spec: &ContainerSpec, waits_for_init: bool, now: Timestamp) -> Value {
        let waiting = |reason: &str, message: &str| {
            let mut state = json!({"waiting": {"reason": reason}});
            if let Some(waiting) = state.get_mut("waiting").and_then(Value::as_object_mut)
                && !message.is_empty()
            {
                waiting.insert("message".to_owned(), json!(message));
            }
            state
        };
        let terminated = |ended: &Option<Value>| match ended {
            Some(ended) => json!({"terminated": ended}),
            None => json!({}),
        };
        let (state, last) = match &self.state {
            State::Running(run) | State::Stopping { run, .. } => {
                (json!({"running": {"startedAt": run.stamp}}), terminated(&self.last))
            }
            State::Paused { reason, message, .. } => (waiting(reason, message), terminated(&self.last)),
            State::Waiting | State::Doing { .. } | State::Ended { .. } if self.last.is_some() => {
                (terminated(&self.last), terminated(&self.before))
            }
            _ => {
                let reason = if waits_for_init { "PodInitializing" } else { "ContainerCreating" };
                (waiting(reason, ""), json!({}))
            }
        };
        let ready = match (&self.state, spec.role) {
            (State::Ended { code: 0 }, Role::Init) => true,
            (_, Role::Init | Role::Ephemeral) => false,
            _ => self.run().is_some_and(|run| run.is_ready(now)),
        };
        let started = match spec.role {
            Role::Ephemeral => None,
            Role::Init => Some(self.run().is_some()),
            _ => Some(self.run().is_some_and(|run| run.is_started(now))),
        };
        let runs_or_ran = !self.id.is_empty();
        let image = if runs_or_ran { crate::image::normalized(&self.image) } else { spec.image.clone() };
        let mut status = json!({
            "name": spec.name, "image": image, "imageID": self.image_id, "ready": ready,
            "restartCount": self.restarts, "state": state, "lastState": last,
        });
        let Some(map) = status.as_object_mut() else { return status };
        if let Some(started) = started {
            map.insert("started".to_owned(), json!(started));
        }
        if runs_or_ran {
            map.insert("containerID".to_owned(), json!(self.id));
        }
        if self.run().is_some() && spec.role != Role::Ephemeral {
            map.insert("resources".to_owned(), self.actual.clone());
            if let Some(requests) = self.allocated.get("requests").filter(|r| !is_empty(r)) {
                map.insert("allocatedResources".to_owned(), requests.clone());
            }
        }
        status
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}
