//! What runs before a container ends.

use std::time::Duration;

use kruise_api::{
    containerrecreaterequest::v1beta1::{Exec, HttpGet, Port},
    int_or_percent::IntOrString,
};
use serde::Deserialize;
use serde_json::Value;

use super::Stopping;
use crate::{
    cri::Runtime,
    http_get::{self, Target},
};

/// What runs before a container ends: one of them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hook {
    /// A command in the container.
    pub exec: Option<Exec>,
    /// A request to it.
    pub http_get: Option<HttpGet>,
    /// A connection to it, which does nothing and is not supported, as in Kubernetes.
    pub tcp_socket: Option<Value>,
    /// A while in which nothing happens.
    pub sleep: Option<Sleep>,
}

/// A while in which nothing happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Sleep {
    /// How long.
    pub seconds: u64,
}

/// Runs a hook to its end. The error is what people read.
pub(super) async fn run(stopping: &Stopping, hook: &Hook, runtime: &dyn Runtime) -> Result<(), String> {
    if let Some(Exec { command }) = &hook.exec {
        return exec(stopping, command, runtime).await;
    }
    if let Some(get) = &hook.http_get {
        let path = get.path.as_deref().unwrap_or_default();
        return http(stopping, get, runtime).await.map_err(|problem| {
            format!(
                "HTTP lifecycle hook ({path}) for Container {:?} in Pod {:?} failed - error: {problem}",
                stopping.container,
                stopping.pod_text()
            )
        });
    }
    if let Some(Sleep { seconds }) = &hook.sleep {
        tokio::time::sleep(Duration::from_secs(*seconds)).await;
        return Ok(());
    }
    Err("Cannot run handler: invalid handler: only exec, httpGet and sleep are supported".to_owned())
}

async fn exec(stopping: &Stopping, command: &[String], runtime: &dyn Runtime) -> Result<(), String> {
    let failed = |error: String, output: &[u8]| {
        format!(
            "Exec lifecycle hook ([{}]) for Container {:?} in Pod {:?} failed - error: {error}, message: {:?}",
            command.join(" "),
            stopping.container,
            stopping.pod_text(),
            String::from_utf8_lossy(output)
        )
    };
    match runtime.exec(&stopping.id, command, None).await {
        Ok(output) if output.exit_code == 0 => Ok(()),
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let error = format!("command '{}' exited with {}: {stderr}", command.join(" "), output.exit_code);
            Err(failed(error, &[output.stdout, output.stderr].concat()))
        }
        Err(error) => Err(failed(error.to_string(), b"")),
    }
}

async fn http(stopping: &Stopping, get: &HttpGet, runtime: &dyn Runtime) -> Result<(), String> {
    let address = match get.host.as_deref().filter(|host| !host.is_empty()) {
        Some(host) => host.to_owned(),
        None => {
            let addresses = runtime.sandbox_addresses(&stopping.sandbox).await;
            let addresses =
                addresses.map_err(|error| format!("failed to find the address of the pod: {error}"))?;
            let known = addresses.into_iter().next().or_else(|| stopping.address.clone());
            // A pod in the network of the node has the addresses of the node, and so do we.
            known.unwrap_or_else(|| "127.0.0.1".to_owned())
        }
    };
    let target = http_target(get, &stopping.ports, address)?;
    // The kubelet does not look at the status either.
    match http_get::fetch(&target, runtime.network()).await {
        Err(error) if error.is_plain => {
            let plain = Target { https: false, ..target };
            http_get::fetch(&plain, runtime.network()).await.map(drop).map_err(|error| error.to_string())
        }
        fetched => fetched.map(drop).map_err(|error| error.to_string()),
    }
}

/// Where a hook goes. Ports may be named.
pub fn http_target(get: &HttpGet, ports: &[Port], host: String) -> Result<Target, String> {
    let number = match &get.port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => {
            let named = ports.iter().find(|port| port.name.as_deref() == Some(text));
            named.map(|port| i64::from(port.container_port)).or_else(|| text.parse().ok())
        }
    };
    let port = number.and_then(|number| u16::try_from(number).ok()).filter(|port| *port > 0);
    let Some(port) = port else { return Err(format!("couldn't find port: {}", get.port)) };
    let headers = get.http_headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
    Ok(Target {
        https: get.scheme.as_deref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")),
        host,
        port,
        path: get.path.clone().unwrap_or_default(),
        headers,
    })
}
