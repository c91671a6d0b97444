//! Container recreation on the node: what the daemon does about the ContainerRecreateRequests of one pod.
//!
//! A pass [picks](pick()) the request whose turn it is, asks whether it may [begin], looks at the containers of the
//! pod and takes one [step](step()). All that must be remembered is in the request itself: the daemon may die at any point,
//! and no container is stopped twice.

mod pick;
mod states;
mod step;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::containerrecreaterequest::v1beta1::{
    ContainerState, FailurePolicy, Phase, Port, Status, StatusContext, Strategy,
};
use kruise_core::pod::Metadata;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{cri, stopping::Hook};

pub use pick::{Pick, pick};
pub use step::{Begin, Step, begin, held_since, killed, step};

/// The kind, in the version that we read and write.
pub use kruise_core::sidecar_terminator::REQUEST;

/// Seconds that a container gets to end when nobody says how many.
pub const DEFAULT_GRACE_SECONDS: i64 = 30;

/// The condition that says since when the pod is held not ready.
const GRACE: &str = "PreRecreateGrace";

/// What the daemon reads of a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Request {
    /// What is wanted.
    #[serde(default)]
    pub spec: Spec,
    /// How far it is; nothing before anybody has seen it.
    #[serde(default)]
    pub status: Option<Status>,
}

/// What is wanted.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// The pod.
    pub pod_name: String,
    /// Its containers, in the order of recreation.
    pub containers: Vec<Target>,
    /// How.
    pub strategy: Option<Strategy>,
}

/// A container that is to be recreated.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Target {
    /// The name in the pod.
    pub name: String,
    /// What runs before it ends.
    pub pre_stop: Option<Hook>,
    /// Its ports, which a hook may name.
    pub ports: Vec<Port>,
    /// What it was when the request was made.
    pub status_context: Option<StatusContext>,
}

/// A request with its name.
#[derive(Clone, Debug)]
pub struct Known {
    /// Name, labels, deletion.
    pub metadata: Metadata,
    /// What it says.
    pub request: Arc<Request>,
}

impl Known {
    /// Whether nothing is left to do for it.
    pub fn is_over(&self) -> bool {
        self.metadata.is_deleting() || self.phase() == Some(&Phase::Completed)
    }

    /// How far it is; nothing before anybody has seen it.
    pub fn phase(&self) -> Option<&Phase> {
        self.request.status.as_ref().map(|status| &status.phase).filter(|phase| !phase.as_str().is_empty())
    }

    /// The uid of its pod.
    pub fn pod_uid(&self) -> &str {
        self.metadata.labels.text(kruise_api::labels::CRR_POD_UID).unwrap_or_default()
    }

    /// How long a container gets to end.
    pub fn grace_seconds(&self) -> i64 {
        self.strategy().termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS).max(0)
    }

    fn strategy(&self) -> Strategy {
        self.request.spec.strategy.clone().unwrap_or_default()
    }

    fn fails_at_once(&self) -> bool {
        self.strategy().failure_policy != Some(FailurePolicy::Ignore)
    }

    fn states(&self) -> &[ContainerState] {
        self.request.status.as_ref().map_or(&[], |status| &status.container_recreate_states)
    }

    fn status(&self) -> Status {
        self.request.status.clone().unwrap_or_default()
    }
}

/// A container of the pod on this node, the newest of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// The name in the pod.
    pub name: String,
    /// The id, with the name of the runtime.
    pub id: String,
    /// What it does.
    pub state: cri::State,
    /// How often it was restarted before.
    pub restart_count: i32,
    /// When it was started.
    pub started_at: Option<Timestamp>,
}

/// Why nobody can be asked about the containers of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRuntime {
    /// An id names no runtime.
    #[error("container {0} has no id of the form <runtime>://<id>")]
    NoId(String),
    /// Two ids name two runtimes.
    #[error("containers belong to different runtimes: {0} and {1}")]
    Different(String, String),
    /// Nobody of this name is there.
    #[error("no runtime {0} on this node")]
    Unknown(String),
}

/// The name of the runtime of all containers of a request.
pub fn runtime_name(known: &Known) -> Result<String, NoRuntime> {
    let mut found: Option<&str> = None;
    for target in &known.request.spec.containers {
        let id = target.status_context.as_ref().map_or("", |context| &context.container_id);
        let Some((runtime, _)) = cri::split_id(id) else { return Err(NoRuntime::NoId(target.name.clone())) };
        match found {
            Some(other) if other != runtime => {
                return Err(NoRuntime::Different(other.to_owned(), runtime.to_owned()));
            }
            _ => found = Some(runtime),
        }
    }
    found.map(ToOwned::to_owned).ok_or_else(|| NoRuntime::NoId(known.request.spec.pod_name.clone()))
}

/// The change of the status that ends a request.
pub fn completed(message: Option<&str>, now: Timestamp) -> Value {
    let mut status = json!({"phase": Phase::Completed, "completionTime": kruise_api::time::Time(now)});
    if let (Value::Object(members), Some(message)) = (&mut status, message) {
        members.insert("message".to_owned(), message.into());
    }
    json!({ "status": status })
}

/// The change of the status that tells how far a request is.
pub fn in_phase(phase: &Phase) -> Value {
    json!({"status": {"phase": phase}})
}

fn with_states(states: &[ContainerState]) -> Value {
    json!({"status": {"containerRecreateStates": states}})
}

/// Requests of this node that are not over.
pub fn selector(node: &str) -> String {
    format!("{}={node},{}=true", kruise_api::labels::CRR_NODE_NAME, kruise_api::labels::CRR_ACTIVE)
}
