//! What simulated containers write: a line at the start, the version they run, then a line every ten seconds.
//!
//! The lines follow from the pod's status and the clock, so that nothing is stored. Only of a container whose command
//! is known there is what the command wrote.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use kruise_apiserver::clock::{Clock, micros_text};
use kruise_apiserver::server::{LogRequest, LogSource};
use kruise_apiserver::status::Status;
use kruise_apiserver::store::{Record, Store};
use serde_json::Value;

use crate::json::{list, text};
use crate::machine::Machines;
use crate::time::later;

/// How often a running container says that it works.
const EVERY: Duration = Duration::from_secs(10);
/// Lines older than this many are gone, as with real log rotation.
const MOST_LINES: i64 = 2_000;

/// The logs of all simulated nodes. Holds the store, not the server, which holds this.
#[derive(Clone)]
pub(crate) struct Logs {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Clock,
    pub(crate) machines: Machines,
}

/// One life of a container.
#[derive(Clone)]
struct Life {
    name: String,
    image: String,
    id: String,
    from: Timestamp,
    to: Option<Timestamp>,
    code: i64,
    /// What its command wrote, from the first line that is kept on.
    written: Option<(i64, Vec<(Timestamp, String)>)>,
}

impl Life {
    /// The line with this number and its time; `None` before it is written or after the end.
    fn line(&self, n: i64, now: Timestamp) -> Option<(Timestamp, String)> {
        if let Some((first, lines)) = &self.written {
            return lines.get(usize::try_from(n - first).ok()?).cloned();
        }
        let end = self.to.unwrap_or(now);
        let name = &self.name;
        if n == 0 {
            return Some((self.from, format!("{name}: starting")));
        }
        if n == 1 {
            return Some((self.from, format!("{name}: image {} container {}", self.image, short(&self.id))));
        }
        let ticks = n - 1;
        let at = later(self.from, EVERY * u32::try_from(ticks).ok()?);
        if at <= end {
            return Some((at, format!("{name}: tick {ticks}")));
        }
        let last = (end.as_second() - self.from.as_second()) / 10 + 2;
        (self.to.is_some() && n == last).then(|| (end, format!("{name}: ended with code {}", self.code)))
    }

    /// The first line that is still kept.
    fn first(&self, now: Timestamp) -> i64 {
        if let Some((first, _)) = &self.written {
            return *first;
        }
        let end = self.to.unwrap_or(now);
        ((end.as_second() - self.from.as_second()) / 10 + 2 - MOST_LINES).max(0)
    }
}

fn short(id: &str) -> &str {
    id.trim_start_matches("containerd://").get(..12).unwrap_or(id)
}

impl LogSource for Logs {
    fn log<'a>(
        &'a self,
        pod: &'a Record,
        request: &'a LogRequest,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Bytes>, Status>> {
        Box::pin(async move {
            let life = self.life(&pod.value(), request)?;
            let now = self.clock.now();
            let since = request.since_seconds.and_then(|seconds| {
                let seconds = SignedDuration::from_secs(i64::try_from(seconds).ok()?);
                now.checked_sub(seconds).ok()
            });
            let since = request.since_time.as_ref().and_then(|text| text.parse().ok()).or(since);
            let mut lines = Vec::new();
            let mut n = life.first(now);
            while let Some((at, line)) = life.line(n, now) {
                n += 1;
                if since.is_none_or(|since| at >= since) {
                    lines.push(shown(at, &line, request));
                }
            }
            if let Some(tail) = request.tail_lines.and_then(|tail| usize::try_from(tail).ok()) {
                lines.drain(..lines.len().saturating_sub(tail));
            }
            let mut text = lines.concat().into_bytes();
            if let Some(most) = request.limit_bytes.and_then(|most| usize::try_from(most).ok()) {
                text.truncate(most);
            }
            let now = stream::iter([Bytes::from(text)]);
            if !request.follow || life.to.is_some() {
                return Ok(now.boxed());
            }
            Ok(now.chain(self.follow(life, n, pod, request)).boxed())
        })
    }
}

impl Logs {
    /// The life of the container that is asked for.
    fn life(&self, pod: &Value, request: &LogRequest) -> Result<Life, Status> {
        let name = text(pod, "/metadata/name");
        let all: Vec<&str> = ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"]
            .iter()
            .flat_map(|pointer| list(pod, pointer))
            .map(|container| text(container, "/name"))
            .collect();
        let wanted = if request.container.is_empty() {
            match list(pod, "/spec/containers") {
                [one] => text(one, "/name"),
                several => {
                    let names: Vec<&str> = several.iter().map(|container| text(container, "/name")).collect();
                    let list = names.join(" ");
                    let why =
                        format!("a container name must be specified for pod {name}, choose one of: [{list}]");
                    return Err(Status::bad_request(why));
                }
            }
        } else {
            request.container.as_str()
        };
        if !all.contains(&wanted) {
            return Err(Status::bad_request(format!("container {wanted} is not valid for pod {name}")));
        }
        let status = [
            "/status/initContainerStatuses",
            "/status/containerStatuses",
            "/status/ephemeralContainerStatuses",
        ]
        .iter()
        .flat_map(|pointer| list(pod, pointer))
        .find(|status| text(status, "/name") == wanted);
        let waiting = |reason: &str| {
            let reason = if reason.is_empty() { "ContainerCreating" } else { reason };
            Status::bad_request(format!(
                "container \"{wanted}\" in pod \"{name}\" is waiting to start: {reason}"
            ))
        };
        let Some(status) = status else { return Err(waiting("")) };
        let (running, ended) = if request.previous {
            (None, status.pointer("/lastState/terminated"))
        } else {
            let state = status.get("state");
            let ended = state.and_then(|s| s.get("terminated"));
            (state.and_then(|s| s.get("running")), ended.or_else(|| status.pointer("/lastState/terminated")))
        };
        let time = |value: &Value, key: &str| text(value, key).parse::<Timestamp>().ok();
        let life = |from: Option<Timestamp>, to: Option<Timestamp>, id: &str, code: i64| {
            let image = text(status, "/image").to_owned();
            let written = self.machines.log(text(pod, "/spec/nodeName"), id);
            from.map(|from| Life {
                name: wanted.to_owned(),
                image,
                id: id.to_owned(),
                from,
                to,
                code,
                written,
            })
        };
        let found = match (running, ended) {
            (Some(running), _) => life(time(running, "/startedAt"), None, text(status, "/containerID"), 0),
            (None, Some(ended)) => life(
                time(ended, "/startedAt"),
                time(ended, "/finishedAt"),
                text(ended, "/containerID"),
                ended.get("exitCode").and_then(Value::as_i64).unwrap_or(0),
            ),
            (None, None) => None,
        };
        found.ok_or_else(|| {
            if request.previous {
                Status::bad_request(format!(
                    "previous terminated container \"{wanted}\" in pod \"{name}\" not found"
                ))
            } else {
                waiting(text(status, "/state/waiting/reason"))
            }
        })
    }

    /// Further lines as they come, up to the last one of the container, or until it is another one or gone.
    fn follow(&self, life: Life, next: i64, pod: &Record, request: &LogRequest) -> BoxStream<'static, Bytes> {
        let (logs, request) = (self.clone(), request.clone());
        let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
        stream::unfold((life, next), move |(life, next)| {
            let (logs, request) = (logs.clone(), request.clone());
            let (namespace, name) = (namespace.clone(), name.clone());
            async move {
                loop {
                    let record = logs.store.get("/pods", &namespace, &name)?;
                    let now = logs.life(&record.value(), &request).ok().filter(|now| now.id == life.id)?;
                    if let Some((at, line)) = now.line(next, logs.clock.now()) {
                        return Some((Bytes::from(shown(at, &line, &request)), (life, next + 1)));
                    }
                    if now.to.is_some() {
                        return None;
                    }
                    tokio::time::sleep(logs.clock.real(Duration::from_secs(1))).await;
                }
            }
        })
        .boxed()
    }
}

fn shown(at: Timestamp, line: &str, request: &LogRequest) -> String {
    if request.timestamps { format!("{} {line}\n", micros_text(at)) } else { format!("{line}\n") }
}
