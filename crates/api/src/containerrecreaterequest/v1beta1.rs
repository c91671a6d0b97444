//! ContainerRecreateRequest v1beta1, the hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{condition::StandardCondition, int_or_percent::IntOrString, names::APPS_GROUP, time::Time};

crate::kind! {
    /// Restarts chosen containers of a running pod without touching the others.
    ContainerRecreateRequest { group: APPS_GROUP, version: "v1beta1", plural: "containerrecreaterequests",
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
    #[schemars(extend("minimum" = 0))]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after the end of the request when it is deleted. Never unless given.
    #[schemars(extend("minimum" = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// One container that is recreated.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// The name of the container in the pod.
    pub name: String,
    /// The preStop hook of the container. Copied from the pod; it cannot be given.
    pub pre_stop: Option<Handler>,
    /// The ports of the container, needed by an HTTP hook. Copied from the pod; they cannot be given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// The container as it was when the request was made. Copied from the pod; it cannot be given.
    pub status_context: Option<StatusContext>,
}

/// What is done before a container stops. One of these.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Handler {
    /// Runs a command in the container.
    pub exec: Option<Exec>,
    /// Sends an HTTP request to the container.
    pub http_get: Option<HttpGet>,
    /// Opens a connection to the container.
    pub tcp_socket: Option<TcpSocket>,
    /// Waits. Only clusters that know this hook have it.
    pub sleep: Option<Sleep>,
}

/// A time to wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sleep {
    /// How many seconds.
    pub seconds: i64,
}

/// A command that runs in a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exec {
    /// The program and its arguments. No shell is around it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub command: Vec<String>,
}

/// An HTTP request.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpGet {
    /// The host that is asked. The address of the pod unless given.
    pub host: Option<String>,
    /// Headers that are sent along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub http_headers: Vec<HttpHeader>,
    /// The path of the request.
    pub path: Option<String>,
    /// The port, by number or by the name of a port of the container.
    pub port: IntOrString,
    /// HTTP or HTTPS. HTTP unless given.
    pub scheme: Option<String>,
}

/// One header of an HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpHeader {
    /// The name of the header.
    pub name: String,
    /// The value of the header.
    pub value: String,
}

/// A connection that is opened and closed again.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TcpSocket {
    /// The host to connect to. The address of the pod unless given.
    pub host: Option<String>,
    /// The port, by number or by the name of a port of the container.
    pub port: IntOrString,
}

/// A port that a container opens.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// The number of the port at the address of the pod.
    pub container_port: i32,
    /// The address of the node to which the port is bound. All of them unless given.
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    /// The number of the port at the address of the node. None unless given.
    pub host_port: Option<i32>,
    /// A name by which others refer to the port.
    pub name: Option<String>,
    /// TCP, UDP or SCTP. TCP unless given.
    #[schemars(extend("default" = "TCP"))]
    pub protocol: Option<String>,
}

/// A container as it was when the request was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusContext {
    /// The id of the container that ran then.
    #[serde(rename = "containerID")]
    pub container_id: String,
    /// How often the container had been restarted by then.
    pub restart_count: i32,
}

/// How containers are recreated.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    /// What happens when one container fails: Fail ends the request, Ignore goes on with the others. Fail unless given.
    #[schemars(extend("enum" = ["Fail", "Ignore"]))]
    pub failure_policy: Option<FailurePolicy>,
    /// Recreates the next container only after the one before is running again. All at once unless given.
    pub ordered_recreate: Option<bool>,
    /// Also stops a container that was restarted in the meantime or is still starting. Off unless given.
    pub force_recreate: Option<bool>,
    /// Seconds that a container gets to stop. Those of the pod unless given.
    #[schemars(extend("minimum" = 0))]
    pub termination_grace_period_seconds: Option<i64>,
    /// Seconds that the pod is not ready before its containers stop, so that traffic can move away. None unless given.
    #[schemars(extend("minimum" = 0))]
    pub unready_grace_period_seconds: Option<i64>,
    /// Seconds that a new container must run before it counts as recreated. Zero unless given.
    #[schemars(extend("minimum" = 0))]
    pub min_started_seconds: Option<i32>,
}

open_enum! {
    /// What happens when one container fails.
    pub enum FailurePolicy {
        /// The request ends.
        Fail = "Fail",
        /// The request goes on with the other containers.
        Ignore = "Ignore",
    }
}

open_enum! {
    /// How far a request or one of its containers is.
    pub enum Phase {
        /// It waits for another request for the same pod.
        Pending = "Pending",
        /// It is under way.
        Recreating = "Recreating",
        /// The container was recreated.
        Succeeded = "Succeeded",
        /// The container could not be recreated.
        Failed = "Failed",
        /// The request has ended, well or not.
        Completed = "Completed",
    }
}

/// How far the request is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// How far the request is. Completed does not mean that every container was recreated.
    #[schemars(extend("enum" = ["Pending", "Recreating", "Succeeded", "Failed", "Completed"]))]
    pub phase: Phase,
    /// When the request ended.
    pub completion_time: Option<Time>,
    /// Why the request ended early.
    pub message: Option<String>,
    /// How far each container is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_recreate_states: Vec<ContainerState>,
    /// The containers of the pod that started after the request was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_status_snapshot: Vec<ContainerSnapshot>,
    /// Facts about the request. PreRecreateGrace tells since when the pod is held not ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<StandardCondition>,
}

/// How far one container is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerState {
    /// The name of the container.
    pub name: String,
    /// How far the container is.
    #[schemars(extend("enum" = ["Pending", "Recreating", "Succeeded", "Failed", "Completed"]))]
    pub phase: Phase,
    /// Why the container is in this phase.
    pub message: Option<String>,
    /// Whether the old container was stopped.
    pub is_killed: Option<bool>,
}

/// One container of the pod, as the manager saw it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerSnapshot {
    /// The name of the container.
    pub name: String,
    /// Whether the container is ready.
    pub ready: bool,
    /// How often the container has been restarted.
    pub restart_count: i32,
    /// The id of the running container.
    #[serde(rename = "containerID")]
    pub container_id: Option<String>,
}
