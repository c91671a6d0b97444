//! Asks a container once.

use std::{net::IpAddr, time::Duration};

use kruise_api::{
    int_or_percent::IntOrString,
    probe::{HttpGet, Probe, TcpSocket},
};
use tokio::time::timeout;

use super::{Id, patience};
use crate::{
    cri::{self, Runtime},
    http_get::{self, Network, Target},
};

/// The longest message, in bytes.
const MOST_MESSAGE: usize = 1024;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, with what was said.
    Yes(String),
    /// No, with what was said.
    No(String),
    /// Nobody could be asked, which says nothing about the container.
    Unclear(String),
}

/// Asks the container of a probe. Over the network only the pod itself is asked, whatever the probe says: `addresses` are
/// its own, none for a pod in the network of the node.
pub async fn ask(
    id: &Id,
    probe: &Probe,
    runtime: &dyn Runtime,
    container: &cri::Container,
    addresses: &[String],
) -> Answer {
    let patience = patience(probe);
    let answer = if let Some(exec) = &probe.exec {
        command(runtime, &container.id, &exec.command, patience).await
    } else if let Some(get) = &probe.http_get {
        match own_address(id, get.host.as_deref(), addresses) {
            Ok(host) => http(get, host, patience, runtime.network()).await,
            Err(answer) => answer,
        }
    } else if let Some(socket) = &probe.tcp_socket {
        match own_address(id, socket.host.as_deref(), addresses) {
            Ok(host) => tcp(socket, host, patience, runtime.network()).await,
            Err(answer) => answer,
        }
    } else {
        Answer::No("the probe has no handler that is supported: exec, httpGet or tcpSocket".to_owned())
    };
    match answer {
        Answer::Yes(message) => Answer::Yes(cut(message)),
        Answer::No(message) => Answer::No(cut(message)),
        unclear => unclear,
    }
}

async fn command(runtime: &dyn Runtime, id: &str, command: &[String], patience: Duration) -> Answer {
    match runtime.exec(id, command, Some(patience)).await {
        Ok(output) if output.exit_code == 0 => Answer::Yes(text(&output.stdout)),
        Ok(output) => Answer::No(text(&output.stderr)),
        // Not every runtime has a code of its own for a command that takes too long.
        Err(error) if error.kind == cri::Kind::TimedOut || error.to_string().contains("timed out") => {
            let words = command.join(" ");
            Answer::No(format!("command timed out: {words:?} timed out after {}s", patience.as_secs()))
        }
        Err(error) => Answer::Unclear(error.to_string()),
    }
}

/// The address of the pod, if that is what the probe asks.
fn own_address(id: &Id, host: Option<&str>, addresses: &[String]) -> Result<String, Answer> {
    if host.is_some_and(|host| !host.is_empty()) {
        return Err(Answer::No("host field in probes is not allowed".to_owned()));
    }
    let is_own = match addresses.is_empty() {
        false => addresses.contains(&id.ip),
        // In the network of the node, where we are too: one of our own addresses.
        true => id.ip.parse::<IpAddr>().is_ok_and(is_local),
    };
    match is_own {
        true => Ok(id.ip.clone()),
        false => Err(Answer::No(format!("{} is not an address of the pod; probes ask nobody else", id.ip))),
    }
}

/// Only an address of this machine can be bound.
fn is_local(address: IpAddr) -> bool {
    !address.is_unspecified() && std::net::UdpSocket::bind((address, 0)).is_ok()
}

async fn http(get: &HttpGet, host: String, patience: Duration, network: &dyn Network) -> Answer {
    let Some(port) = number(&get.port) else { return Answer::No(format!("invalid port: {}", get.port)) };
    let headers = get.http_headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
    let target = Target {
        https: get.scheme.as_deref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")),
        host,
        port,
        path: get.path.clone().unwrap_or_default(),
        headers,
    };
    match timeout(patience, http_get::fetch(&target, network)).await {
        Ok(Ok(page)) if (200..400).contains(&page.status) => Answer::Yes(text(&page.body)),
        Ok(Ok(page)) => Answer::No(format!("HTTP probe failed with statuscode: {}", page.status)),
        Ok(Err(error)) => Answer::No(error.to_string()),
        Err(_) => Answer::No(
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned(),
        ),
    }
}

async fn tcp(socket: &TcpSocket, host: String, patience: Duration, network: &dyn Network) -> Answer {
    let Some(port) = number(&socket.port) else {
        return Answer::No(format!("invalid port: {}", socket.port));
    };
    let target = Target { https: false, host, port, path: String::new(), headers: Vec::new() };
    match timeout(patience, http_get::connect(&target, network)).await {
        Ok(Ok(_)) => Answer::Yes(String::new()),
        Ok(Err(problem)) => Answer::No(problem),
        Err(_) => Answer::No(format!("dial tcp {}: i/o timeout", target.authority())),
    }
}

/// The manager writes numbers; names are resolved there.
fn number(port: &IntOrString) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => u16::try_from(*number).ok(),
        IntOrString::String(text) => text.parse().ok(),
    };
    number.filter(|port| *port > 0)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The beginning of a long message, cut between letters.
fn cut(mut message: String) -> String {
    if message.len() > MOST_MESSAGE {
        let end = (0..=MOST_MESSAGE).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        message.truncate(end);
    }
    message
}
