//! Probes: questions that the node daemon asks a container again and again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::int_or_percent::IntOrString;

/// A question asked of a container again and again. Exactly one way to ask is given.
///
/// Every number that is absent or zero counts as one when the probe runs.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Runs a command in the container. Exit code zero means yes.
    pub exec: Option<Exec>,
    /// Sends an HTTP request to the pod. Codes from 200 to 399 mean yes.
    pub http_get: Option<HttpGet>,
    /// Opens a TCP connection to the pod. That it opens means yes.
    pub tcp_socket: Option<TcpSocket>,
    /// Asks the gRPC health service of the pod. Not supported; refused with a message.
    pub grpc: Option<Grpc>,
    /// Seconds between the start of the container and the first question. One unless given.
    pub initial_delay_seconds: Option<i32>,
    /// Seconds after which a question without answer means no. One unless given.
    pub timeout_seconds: Option<i32>,
    /// Seconds between two questions. One unless given.
    pub period_seconds: Option<i32>,
    /// How many times in a row the answer must be yes before the state becomes Succeeded. One unless given.
    pub success_threshold: Option<i32>,
    /// How many times in a row the answer must be no before the state becomes Failed. One unless given.
    pub failure_threshold: Option<i32>,
    /// Part of the probe of Kubernetes. It has no effect here, because these probes end no container.
    pub termination_grace_period_seconds: Option<i64>,
}

/// A command in the container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exec {
    /// The program and its arguments. It runs without a shell, in the root directory of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub command: Vec<String>,
}

/// An HTTP request to the pod.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpGet {
    /// The path on the server, for instance /healthz.
    pub path: Option<String>,
    /// The number of the port, or the name that the container gives it.
    pub port: IntOrString,
    /// The host to ask. Not allowed: probes go only to the address of the pod itself.
    pub host: Option<String>,
    /// HTTP or HTTPS. HTTP unless given.
    pub scheme: Option<String>,
    /// Headers that are sent along. A name may come up more than once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub http_headers: Vec<Header>,
}

/// A header of an HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The name of the header.
    pub name: String,
    /// The value of the header.
    pub value: String,
}

/// A TCP connection to the pod.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TcpSocket {
    /// The number of the port, or the name that the container gives it.
    pub port: IntOrString,
    /// The host to connect to. Not allowed: probes go only to the address of the pod itself.
    pub host: Option<String>,
}

/// A call of the gRPC health service of the pod.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grpc {
    /// The number of the port.
    pub port: i32,
    /// The name of the service that is asked about. Empty unless given: the server as a whole.
    #[schemars(extend("default" = ""))]
    pub service: Option<String>,
}

open_enum! {
    /// What a probe found.
    pub enum State {
        /// Nothing yet, or nothing that can be trusted.
        Unknown = "Unknown",
        /// The answer was yes often enough.
        Succeeded = "Succeeded",
        /// The answer was no often enough.
        Failed = "Failed",
    }
}
