//! What runs in a container: which program it is, how it goes on, and the commands of hooks and probes.

use std::time::Duration;

use jiff::Timestamp;

use super::container::{Check, Checks, Run, Running, State, Unhealthy, Why};
use super::pass::Pass;
use super::pod::Pod;
use super::spec::{ANY_VARIABLE, ContainerSpec, Hook, Probe, Restart, Role};
use crate::image::known::{self, Runs};
use crate::json::text;
use crate::machine::shell::{self, Manner, Process, Script};
use crate::machine::{self, Performed, Task};
use crate::steps::When;
use crate::time::{later, until};

/// How often a process goes on in one look. One that is behind (the cluster was stopped meanwhile) goes on later.
const MOST_STEPS: usize = 500;
/// So many failures of a probe are reported one by one, the later ones ever more rarely.
const REPORTED: u32 = 5;

/// The program of a container.
pub(super) enum Program {
    /// What its image is known to do.
    Image,
    /// A server.
    Serves,
    /// It ends well after a moment.
    Ends(Duration),
    /// A command that is known.
    Runs(Process),
    /// There is no such program.
    Missing(String),
}

impl Pod {
    /// The ids of all containers that may have left something.
    pub(super) fn all_ids(&self) -> impl Iterator<Item = &str> {
        let last = self.containers.iter().filter_map(|container| container.last.as_ref());
        let last = last.map(|ended| text(ended, "/containerID"));
        self.containers.iter().map(|container| container.id.as_str()).chain(last).filter(|id| !id.is_empty())
    }

    fn inside(&self, at: usize, pass: &Pass<'_>) -> Option<machine::Container> {
        let record = pass.store.get("/pods", &self.namespace, &self.name)?;
        self.shown(at, &record.value(), pass.now)
    }

    /// Runs a command in a container. Nothing if the pod is gone.
    fn perform(&self, at: usize, words: &[String], pass: &Pass<'_>) -> Option<Performed> {
        let container = self.inside(at, pass)?;
        let machine = pass.machines.of(&self.node);
        Some(machine.perform(&container, Task::Words(words), Vec::new(), &mut "/".to_owned()))
    }

    /// Whether a container that is not known to end goes on for ever.
    fn goes_on(&self, spec: &ContainerSpec) -> bool {
        match spec.role {
            Role::Sidecar => true,
            Role::Main => self.spec.restart == Restart::Always,
            Role::Init | Role::Ephemeral => false,
        }
    }

    /// Which program a container starts with.
    pub(super) fn program(&self, at: usize, spec: &ContainerSpec, pass: &mut Pass<'_>) -> Program {
        let Some(image) = self.containers.get(at).map(|container| container.image.as_str()) else {
            return Program::Image;
        };
        let behaviour = pass.images.behaviour(image);
        if pass.images.is_declared(image) {
            return Program::Image;
        }
        let (moment, _) = pass.steps.next(When::ProgramUnknown, 0);
        let manner = Manner { moment, serves: self.goes_on(spec) };
        let unknown = |pass: &mut Pass<'_>| {
            if behaviour.ends.is_some() {
                Program::Image
            } else if self.goes_on(spec) || (spec.listens && spec.command.is_empty()) {
                Program::Serves
            } else {
                let (due, _) = pass.next(When::ProgramUnknown);
                Program::Ends(until(pass.now, due))
            }
        };
        let script = |text: &str| match Script::read(text) {
            Some(script) => Program::Runs(Process::new(script, Vec::new(), manner)),
            None => Program::Serves,
        };
        if spec.command.is_empty() {
            if behaviour.ends.is_some() {
                return Program::Image;
            }
            return match known::find(image).map(|known| known.runs) {
                Some(Runs::Server) => Program::Serves,
                Some(Runs::Shell) if spec.listens => Program::Serves,
                Some(Runs::Shell) => script(""),
                Some(Runs::Script(text)) => script(text),
                Some(Runs::Needs(names, why)) => {
                    let has = |name: &String| name == ANY_VARIABLE || names.contains(&name.as_str());
                    match spec.variables.iter().any(has) {
                        true => Program::Serves,
                        false => script(&format!("echo '{why}' >&2; exit 1")),
                    }
                }
                None if pass.images.is_server(image) => Program::Serves,
                None => unknown(pass),
            };
        }
        let Some(container) = self.inside(at, pass) else { return unknown(pass) };
        let words: Vec<String> =
            spec.command.iter().map(|word| substituted(word, &container.environment)).collect();
        // The entry point of an image runs what stands behind it.
        let words = match words.as_slice() {
            [first, rest @ ..] if first.contains("entrypoint") && !rest.is_empty() => rest,
            words => words,
        };
        let first = words.first().map_or("", String::as_str);
        let is_server =
            known::find(image).is_some_and(|known| matches!(known.runs, Runs::Server | Runs::Needs(..)));
        if spec.only_arguments && is_server && !shell::is_known(first) {
            return Program::Serves;
        }
        let reads = shell::is_shell(words) || words == ["cat"];
        if (spec.listens && reads) || shell::serves(words) {
            return Program::Serves;
        }
        let is_mounted = |word: &str| container.mounts.iter().any(|mount| word.starts_with(mount.as_str()));
        if let Some(why) =
            shell::missing(first, image, is_mounted).filter(|_| !spec.only_arguments || is_strict(image))
        {
            return Program::Missing(why);
        }
        if !shell::is_known(first) {
            return unknown(pass);
        }
        Process::of_words(words, manner).map_or_else(|| unknown(pass), Program::Runs)
    }

    /// Lets the process of a container go on that is due.
    pub(super) fn go_on(&mut self, at: usize, pass: &mut Pass<'_>) {
        let Some(container) = self.containers.get_mut(at) else { return };
        if !matches!(container.state, State::Running(_)) {
            return;
        }
        let Some(mut running) = container.process.take_if(|running| running.due <= pass.now) else { return };
        let Some(inside) = self.inside(at, pass) else { return };
        let machine = pass.machines.of(&self.node);
        let mut over = None;
        for _ in 0..MOST_STEPS {
            let did = machine.step(&inside, &mut running.process, running.due);
            running.due = later(running.due, did.after);
            if did.is_over {
                over = Some(did.code);
                break;
            }
            if running.due > pass.now {
                break;
            }
        }
        let shortest = over.map(|_| until(pass.now, pass.next(When::ProgramShort).0));
        let Some(container) = self.containers.get_mut(at) else { return };
        container.moves = container.moves.wrapping_add(1);
        if let (Some(code), State::Running(run)) = (over, &mut container.state) {
            run.ends = Some((running.due.max(later(run.since, shortest.unwrap_or_default())), code));
        } else {
            running.due = running.due.max(later(pass.now, Duration::from_millis(1)));
            container.process = Some(running);
        }
    }

    /// A process that begins at this time.
    pub(super) fn begins(process: Process, due: Timestamp) -> Option<Box<Running>> {
        Some(Box::new(Running { process, due }))
    }

    /// Runs the hook after the start: how long it takes, and whether it ends well.
    pub(super) fn after_start(&self, at: usize, spec: &ContainerSpec, pass: &Pass<'_>) -> (Duration, bool) {
        match &spec.post_start {
            None => (Duration::ZERO, true),
            Some(Hook::Sleep(time)) => (*time, true),
            Some(Hook::Exec(words)) => match self.perform(at, words, pass) {
                Some(did) => (did.after, did.code == 0),
                None => (Duration::ZERO, true),
            },
        }
    }

    /// Stops a container that runs, with the hook before the stop.
    pub(super) fn stop(&mut self, at: usize, spec: &ContainerSpec, grace: Duration, pass: &mut Pass<'_>) {
        let is_running =
            self.containers.get(at).is_some_and(|container| matches!(container.state, State::Running(_)));
        let mut hook = Duration::ZERO;
        match &spec.pre_stop {
            Some(Hook::Sleep(time)) if is_running => hook = *time,
            Some(Hook::Exec(words)) if is_running => {
                if let Some(did) = self.perform(at, words, pass) {
                    hook = did.after;
                    if did.code != 0 {
                        let text = "PreStopHook failed".to_owned();
                        pass.said.push(self.said(at, true, "FailedPreStopHook", text));
                    }
                }
            }
            _ => {}
        }
        let Some(container) = self.containers.get_mut(at) else { return };
        let behaviour = pass.images.behaviour(&container.image);
        container.stop(hook, &behaviour, pass.now, grace);
    }

    /// Asks the probes of a container that run a command and are due.
    pub(super) fn probe(&mut self, at: usize, spec: &ContainerSpec, pass: &mut Pass<'_>) {
        let Some(container) = self.containers.get(at) else { return };
        let State::Running(run) = &container.state else { return };
        if run.checks.is_none() {
            return;
        }
        let behaviour = pass.images.behaviour(&container.image);
        let passes_from =
            |from: Option<Duration>, run: &Run| from.is_some_and(|after| later(run.since, after) <= pass.now);
        let kinds: [(Kind, &Option<Probe>, bool); 3] = [
            (Kind::Startup, &spec.startup, passes_from(behaviour.started_after, run)),
            (Kind::Readiness, &spec.readiness, passes_from(behaviour.ready_after, run)),
            (Kind::Liveness, &spec.liveness, !passes_from(behaviour.unhealthy_after, run)),
        ];
        for (kind, probe, image_passes) in kinds {
            let Some(probe) = probe else { continue };
            let due = |run: &Run| {
                run.checks
                    .as_ref()
                    .and_then(|checks| kind.of(checks))
                    .is_some_and(|check| check.next <= pass.now)
            };
            let is_due = self.containers.get(at).and_then(|one| one.run()).is_some_and(due);
            if !is_due {
                continue;
            }
            let outcome = self.ask(at, probe, image_passes, pass);
            let Some(container) = self.containers.get_mut(at) else { return };
            container.moves = container.moves.wrapping_add(1);
            let State::Running(run) = &mut container.state else { return };
            let Some(check) = run.checks.as_mut().and_then(|checks| kind.of_mut(checks)) else { continue };
            check.next = later(check.next, probe.period).max(later(pass.now, Duration::from_millis(1)));
            match &outcome {
                Ok(()) => (check.passed, check.failed) = (check.passed.saturating_add(1), 0),
                Err(_) => (check.passed, check.failed) = (0, check.failed.saturating_add(1)),
            }
            let Check { passed, failed, .. } = *check;
            let unhealthy = |why| Some(Unhealthy { at: pass.now, why, is_said: true });
            match kind {
                Kind::Startup if passed > 0 => {
                    let mut started = pass.now;
                    if let Some(checks) = &mut run.checks {
                        checks.startup = None;
                        started = started.max(checks.hooked);
                    }
                    run.start(spec, &behaviour, started);
                }
                Kind::Startup if failed >= probe.failures => run.unhealthy = unhealthy(Why::Startup),
                Kind::Readiness if passed >= probe.successes => run.ready = run.ready.or(Some(pass.now)),
                Kind::Readiness if failed >= probe.failures => run.ready = None,
                Kind::Liveness if failed >= probe.failures => run.unhealthy = unhealthy(Why::Liveness),
                _ => {}
            }
            if let Err(why) = outcome
                && (failed <= REPORTED || failed.is_power_of_two())
            {
                let text = format!("{} probe {why}", kind.title());
                pass.said.push(self.said(at, true, "Unhealthy", text));
            }
        }
    }

    /// What a probe finds; what it complains about.
    fn ask(&self, at: usize, probe: &Probe, image_passes: bool, pass: &Pass<'_>) -> Result<(), String> {
        let words = probe.exec.as_deref().unwrap_or_default();
        let Some(did) = self.perform(at, words, pass) else { return Ok(()) };
        if let Some(missing) = did
            .missing
            .filter(|_| words.len() == 1 || !shell::is_known(words.first().map_or("", String::as_str)))
        {
            return Err(format!(
                "errored and resulted in unknown state: rpc error: code = Unknown desc = failed to exec in container: \
                 failed to start exec: OCI runtime exec failed: exec failed: unable to start container process: {missing}: \
                 unknown"
            ));
        }
        if did.after > probe.timeout {
            let (command, seconds) = (words.join(" "), probe.timeout.as_secs());
            return Err(format!("failed: command timed out: \"{command}\" timed out after {seconds}s"));
        }
        if did.code == 0 && image_passes {
            return Ok(());
        }
        let mut output = did.stdout;
        output.extend(did.stderr);
        Err(format!("failed: {}", String::from_utf8_lossy(&output)))
    }
}

fn is_strict(image: &str) -> bool {
    known::find(image).is_some()
}

/// A kind of probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Startup,
    Readiness,
    Liveness,
}

impl Kind {
    fn of(self, checks: &Checks) -> Option<&Check> {
        match self {
            Self::Startup => checks.startup.as_ref(),
            Self::Readiness => checks.readiness.as_ref(),
            Self::Liveness => checks.liveness.as_ref(),
        }
    }

    fn of_mut(self, checks: &mut Checks) -> Option<&mut Check> {
        match self {
            Self::Startup => checks.startup.as_mut(),
            Self::Readiness => checks.readiness.as_mut(),
            Self::Liveness => checks.liveness.as_mut(),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }
}

/// A word of a command with `$(NAME)` replaced, as kubelets do. `$$` is a `$`, and unknown names stay.
fn substituted(word: &str, environment: &std::collections::BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(behind) = after.strip_prefix('$') {
            out.push('$');
            rest = behind;
            continue;
        }
        let name = after.strip_prefix('(').and_then(|inside| inside.split_once(')'));
        match name.and_then(|(name, behind)| Some((environment.get(name)?, behind))) {
            Some((value, behind)) => {
                out.push_str(value);
                rest = behind;
            }
            None => {
                out.push('$');
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_commands_are_replaced() {
        let environment = std::collections::BTreeMap::from([("A".to_owned(), "b".to_owned())]);
        let check = |word: &str, expected: &str| assert_eq!(substituted(word, &environment), expected);
        check("x-$(A)-$(NONE)-$A", "x-b-$(NONE)-$A");
        check("$$(A) $", "$(A) $");
    }
}
