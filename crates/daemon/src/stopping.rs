//! How a container is stopped: its hook runs, then it is asked to end, then it is killed, all within one grace period.

mod hook;

use std::time::Duration;

use kruise_api::containerrecreaterequest::v1beta1::Port;
use kruise_core::{
    effect::{Event, Level},
    object::ObjectRef,
};
use kruise_runtime::events::Recorder;
use tokio::time::{Instant, timeout};

use crate::cri::{self, Runtime};
pub use hook::{Hook, Sleep, http_target};

/// What a container gets at least after its hook.
const LEAST_SECONDS: i64 = 2;
/// Three years. Beyond some number neither gRPC nor a runtime can count in its own units, and nobody waits for that long.
const MOST_SECONDS: i64 = 100_000_000;
/// How long a runtime may be away when it is asked to stop a container, and how often it is asked meanwhile.
const RESTART_PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(1);

/// A container to be stopped, and how.
#[derive(Clone, Debug)]
pub struct Stopping {
    /// The pod.
    pub pod: ObjectRef,
    /// The name of the container in it.
    pub container: String,
    /// The id of the container, without the name of its runtime.
    pub id: String,
    /// Its sandbox.
    pub sandbox: String,
    /// What runs before.
    pub hook: Option<Hook>,
    /// The address of the pod as its status has it: of a pod in the network of the node the runtime tells none.
    pub address: Option<String>,
    /// Its ports, which the hook may name.
    pub ports: Vec<Port>,
    /// How long it gets in all.
    pub grace_seconds: i64,
    /// What people read about it.
    pub message: String,
}

impl Stopping {
    /// Stops the container. A hook that fails or takes too long does not keep it from being stopped.
    pub async fn carry_out(&self, runtime: &dyn Runtime, recorder: &Recorder) -> Result<(), cri::Error> {
        self.tell(recorder, Level::Normal, "Killing", self.message.clone());
        let mut left = self.grace_seconds.min(MOST_SECONDS);
        if let Some(hook) = self.hook.as_ref().filter(|_| left > 0) {
            let began = Instant::now();
            let patience = Duration::from_secs(u64::try_from(left).unwrap_or(0));
            match timeout(patience, hook::run(self, hook, runtime)).await {
                Ok(Ok(())) => {}
                Ok(Err(problem)) => self.tell(recorder, Level::Warning, "FailedPreStopHook", problem),
                Err(_) => tracing::info!(
                    container = %self.container, pod = %self.pod.key, seconds = left,
                    "a preStop hook took longer than the grace period"
                ),
            }
            left = left_after(left, began.elapsed());
        }
        let grace = Duration::from_secs(u64::try_from(left.max(LEAST_SECONDS)).unwrap_or(2));
        let give_up = Instant::now() + RESTART_PATIENCE;
        loop {
            match runtime.stop(&self.id, grace).await {
                // It has gone by itself, and that is what was wanted.
                Err(error) if error.kind == cri::Kind::NotFound => return Ok(()),
                // The runtime restarts. The hook has run and must not run again, so we wait here.
                Err(error) if error.kind == cri::Kind::Unreachable && Instant::now() < give_up => {
                    tracing::info!(container = %self.container, pod = %self.pod.key, %error, "waits for the runtime");
                    tokio::time::sleep(AGAIN).await;
                }
                stopped => return stopped,
            }
        }
    }

    fn tell(&self, recorder: &Recorder, level: Level, reason: &'static str, message: String) {
        // People know containers by name.
        let message = message.replace(&self.id, &self.container);
        let event = Event { regarding: self.pod.clone(), level, reason: reason.into(), message };
        recorder.record_part(event, &format!("spec.containers{{{}}}", self.container));
    }

    /// The pod as the kubelet names it in its messages.
    fn pod_text(&self) -> String {
        format!("{}_{}({})", self.pod.key.name, self.pod.key.namespace, self.pod.uid)
    }
}

/// What is left of a grace period: only whole seconds were used.
fn left_after(grace: i64, used: Duration) -> i64 {
    grace.saturating_sub(i64::try_from(used.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
