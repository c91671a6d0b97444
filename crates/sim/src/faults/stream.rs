//! What happens to the events of a watch on their way.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream::{self, BoxStream};
use http_body_util::BodyExt as _;
use kruise_apiserver::ApiServer;
use kruise_apiserver::body::ApiBody;
use kruise_apiserver::status::Status;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Faults, WatchFaults, happens};
use crate::json::text;

/// How often a watch that lags by revisions looks whether there are enough now.
const LOOK: Duration = Duration::from_millis(100);

struct Flow {
    server: ApiServer,
    faults: Faults,
    inner: BoxStream<'static, Bytes>,
    /// Lines with the earliest time to tell them.
    held: VecDeque<(Instant, Value)>,
    open: bool,
}

/// The events of a watch after the faults.
pub(super) fn through(server: &ApiServer, faults: &Faults, body: ApiBody) -> ApiBody {
    let inner = body
        .into_data_stream()
        .map(|piece| match piece {
            Ok(bytes) => bytes,
            Err(never) => match never {},
        })
        .boxed();
    let flow =
        Flow { server: server.clone(), faults: faults.clone(), inner, held: VecDeque::new(), open: true };
    let told = stream::unfold(flow, |mut flow| async move {
        let bytes = flow.next().await?;
        Some((bytes, flow))
    });
    ApiBody::stream(told.boxed())
}

impl Flow {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.faults.is_crashed() {
                return None;
            }
            let due = self.due();
            if !due.is_empty() {
                if let Some(bytes) = self.tell(due) {
                    return Some(bytes);
                }
                continue;
            }
            if !self.open && self.held.is_empty() {
                return None;
            }
            self.wait().await;
        }
    }

    /// The lines that may be told now.
    fn due(&mut self) -> Vec<Value> {
        let (lag, merge) = {
            let state = self.faults.state();
            (state.lag_revisions, state.watch.merge)
        };
        let newest = self.server.store().version().saturating_sub(lag);
        let now = Instant::now();
        let mut due = Vec::new();
        while let Some((at, line)) = self.held.front() {
            let version = text(line, "/object/metadata/resourceVersion").parse::<u64>().unwrap_or(0);
            // Once a window of merging ends, all that came within it is told.
            let ripe = *at <= now || (!merge.is_zero() && !due.is_empty());
            if !ripe || (lag > 0 && version > newest) {
                break;
            }
            due.extend(self.held.pop_front().map(|(_, line)| line));
        }
        due
    }

    async fn wait(&mut self) {
        let faults = self.faults.clone();
        let next = match self.held.front() {
            Some((at, _)) => (*at).max(Instant::now() + self.server.clock().real(LOOK)),
            None => Instant::now() + Duration::from_secs(3600),
        };
        let until = async {
            let crashed = pin!(faults.crashed());
            let _ = tokio::time::timeout_at(next, crashed).await;
        };
        let inner = async { if self.open { self.inner.next().await } else { std::future::pending().await } };
        let came = match select(pin!(inner), pin!(until)).await {
            Either::Left((came, _)) => came,
            Either::Right(_) => return,
        };
        let Some(bytes) = came else {
            self.open = false;
            return;
        };
        let delay = {
            let state = self.faults.state();
            self.server.clock().real(state.lag_time.max(state.watch.merge))
        };
        let at = Instant::now() + delay;
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.held.push_back((at, serde_json::from_slice(line).unwrap_or_default()));
        }
    }

    /// Drops, merges and repeats; `None` when nothing is left to tell.
    fn tell(&mut self, mut lines: Vec<Value>) -> Option<Bytes> {
        let mut state = self.faults.state();
        let faults: WatchFaults = state.watch.clone();
        if happens(&mut state.random, faults.expire) {
            self.open = false;
            self.held.clear();
            let status = Status::expired("The resourceVersion for the provided watch is too old.");
            let status: Value = serde_json::from_slice(&status.to_json()).unwrap_or_default();
            return Some(written(&[json!({"type": "ERROR", "object": status})]));
        }
        if !faults.merge.is_zero() {
            lines = merged(lines);
        }
        let mut told = Vec::with_capacity(lines.len());
        for line in lines {
            if text(&line, "/type") == "BOOKMARK" {
                told.push(line);
                continue;
            }
            if happens(&mut state.random, faults.drop) {
                continue;
            }
            if happens(&mut state.random, faults.duplicate) {
                told.push(line.clone());
            }
            told.push(line);
        }
        (!told.is_empty()).then(|| written(&told))
    }
}

/// One line per object: what a client sees that missed the steps in between.
fn merged(lines: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Option<Value>> = Vec::with_capacity(lines.len());
    let key = |line: &Value| {
        (
            text(line, "/object/metadata/namespace").to_owned(),
            text(line, "/object/metadata/name").to_owned(),
            text(line, "/type") == "BOOKMARK",
        )
    };
    for mut line in lines {
        let before = kept.iter_mut().rev().find(|old| old.as_ref().is_some_and(|old| key(old) == key(&line)));
        let Some(slot) = before else {
            kept.push(Some(line));
            continue;
        };
        let first = slot.as_ref().map(|old| text(old, "/type").to_owned()).unwrap_or_default();
        let kind = match (first.as_str(), text(&line, "/type")) {
            ("ADDED", "DELETED") => {
                *slot = None;
                continue;
            }
            ("ADDED", _) => "ADDED",
            ("DELETED", _) => "MODIFIED",
            (_, "DELETED") => "DELETED",
            _ => "MODIFIED",
        };
        if let Some(map) = line.as_object_mut() {
            map.insert("type".to_owned(), json!(kind));
        }
        *slot = None;
        kept.push(Some(line));
    }
    kept.into_iter().flatten().collect()
}

fn written(lines: &[Value]) -> Bytes {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text.into()
}
