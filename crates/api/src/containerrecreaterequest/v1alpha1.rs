//! ContainerRecreateRequest v1alpha1: looser limits, and what the manager tells the daemon stands in annotations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::v1beta1::{
    Container, Exec, FailurePolicy, Handler, HttpGet, HttpHeader, Phase, Port, StatusContext, TcpSocket,
};
use crate::{names::APPS_GROUP, time::Time};

crate::kind! {
    /// Restarts chosen containers of a running pod without touching the others.
    ContainerRecreateRequest { group: APPS_GROUP, version: "v1alpha1", plural: "containerrecreaterequests",
        scope: Namespaced, spec: Spec, status: Status }
}

/// Which containers are recreated, and how. Nothing of it can be changed later.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The pod whose containers are recreated. It lives in the same namespace.
    pub pod_name: String,
    /// The containers that are recreated, in this order if the order matters.
    pub containers: Vec<Container>,
    /// How the containers are recreated.
    pub strategy: Option<Strategy>,
    /// Seconds after the creation of the request when it ends, done or not. At least 3; never unless given.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after the end of the request when it is deleted. Never unless given.
    pub ttl_seconds_after_finished: Option<i32>,
}

/// How containers are recreated.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    /// What happens when one container fails: Fail ends the request, Ignore goes on with the others. Fail unless given.
    pub failure_policy: Option<FailurePolicy>,
    /// Recreates the next container only after the one before is running again. All at once unless given.
    pub ordered_recreate: Option<bool>,
    /// Also stops a container that was restarted in the meantime or is still starting. Off unless given.
    pub force_recreate: Option<bool>,
    /// Seconds that a container gets to stop. Those of the pod unless given.
    pub termination_grace_period_seconds: Option<i64>,
    /// Seconds that the pod is not ready before its containers stop, so that traffic can move away. None unless given.
    pub unready_grace_period_seconds: Option<i64>,
    /// Seconds that a new container must run before it counts as recreated. Zero unless given.
    pub min_started_seconds: Option<i32>,
}

/// How far the request is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// How far the request is: Pending, Recreating or Completed. Completed does not mean that every container was
    /// recreated.
    pub phase: Phase,
    /// When the request ended.
    pub completion_time: Option<Time>,
    /// Why the request ended early.
    pub message: Option<String>,
    /// How far each container is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_recreate_states: Vec<ContainerState>,
}

/// How far one container is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerState {
    /// The name of the container.
    pub name: String,
    /// How far the container is: Pending, Recreating, Succeeded or Failed.
    pub phase: Phase,
    /// Why the container is in this phase.
    pub message: Option<String>,
    /// Whether the old container was stopped.
    pub is_killed: Option<bool>,
}
