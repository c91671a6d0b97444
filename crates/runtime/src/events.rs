//! What people read in `kubectl describe`: events, counted instead of repeated.
//!
//! Telling never waits and never fails a reconcile: a bounded buffer takes the events, one task writes them, and what
//! does not fit or cannot be written is only counted. As in Kubernetes' own programs, the same event again raises the
//! count of the first one, many similar ones become one, and an object that causes too many is cut short.

mod correlate;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kruise_core::{effect::Event, text::Text};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};
use tracing::debug;

use crate::{clock::Clock, metrics::Framework, random::Random};
use correlate::{Correlator, Write};

/// How many events may wait to be written.
const BUFFER: usize = 1000;
/// How long one write may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// An event with who tells it, and when.
#[derive(Clone, Debug)]
struct Told {
    component: &'static str,
    event: Event,
    /// The part of the object that it is about, such as `spec.containers{app}`; empty for all of it.
    part: String,
    at: Timestamp,
}

/// Where the events of a program go. Clones are the same.
#[derive(Clone, Debug)]
pub struct Events {
    sender: mpsc::Sender<Told>,
    receiver: Arc<Mutex<Option<mpsc::Receiver<Told>>>>,
    clock: Clock,
    random: Random,
    metrics: Framework,
    host: Text,
}

impl Events {
    /// Nothing is told yet; [`Self::run`] writes.
    pub fn new(clock: Clock, random: Random, metrics: Framework) -> Self {
        let (sender, receiver) = mpsc::channel(BUFFER);
        let receiver = Arc::new(Mutex::new(Some(receiver)));
        Self { sender, receiver, clock, random, metrics, host: Text::default() }
    }

    /// The same, told by a program that belongs to one node.
    #[must_use]
    pub fn on_host(mut self, node: impl Into<Text>) -> Self {
        self.host = node.into();
        self
    }

    /// A recorder that tells in the name of a component.
    pub fn recorder(&self, component: &'static str) -> Recorder {
        Recorder { component, events: self.clone() }
    }

    /// Writes events until it is dropped. Only the first call does.
    pub async fn run(&self, client: kube::Client) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut receiver) = receiver else { return };
        let mut correlator = Correlator::new(self.random.clone(), self.host.clone());
        while let Some(told) = receiver.recv().await {
            match correlator.correlate(&told, tokio::time::Instant::now()) {
                None => self.metrics.events_dropped.inc(&["spam"]),
                Some(write) => self.write(&client, &write).await,
            }
        }
    }

    async fn write(&self, client: &kube::Client, write: &Write) {
        let sent = match timeout(PATIENCE, send(client, write)).await {
            Ok(sent) => sent,
            Err(_) => Err("no answer".to_owned()),
        };
        if let Err(error) = sent {
            self.metrics.events_dropped.inc(&["failed"]);
            debug!(%error, "failed to write an event");
        }
    }
}

async fn send(client: &kube::Client, write: &Write) -> Result<(), String> {
    let request = kube::core::Request::new(format!("/api/v1/namespaces/{}/events", write.namespace));
    if write.count > 1 {
        let patch = json!({"count": write.count, "lastTimestamp": write.last, "message": write.message});
        let request = request
            .patch(&write.name, &kube::api::PatchParams::default(), &kube::api::Patch::Merge(patch))
            .map_err(|error| error.to_string())?;
        match client.request_text(request).await {
            Ok(_) => return Ok(()),
            // The server has forgotten it: it is told anew.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    let body = write.object().to_string().into_bytes();
    let request =
        request.create(&kube::api::PostParams::default(), body).map_err(|error| error.to_string())?;
    client.request_text(request).await.map(drop).map_err(|error| error.to_string())
}

/// Tells events in the name of a component. Clones are the same.
#[derive(Clone, Debug)]
pub struct Recorder {
    component: &'static str,
    events: Events,
}

impl Recorder {
    /// Tells an event, soon.
    pub fn record(&self, event: Event) {
        self.record_part(event, "");
    }

    /// Tells an event about a part of an object, such as `spec.containers{app}`.
    pub fn record_part(&self, event: Event, part: &str) {
        let at = self.events.clock.now_seconds();
        let told = Told { component: self.component, event, part: part.to_owned(), at };
        if self.events.sender.try_send(told).is_err() {
            self.events.metrics.events_dropped.inc(&["full"]);
        }
    }
}

/// The namespace in which an event about an object lives.
fn namespace_of(event: &Event) -> Text {
    let namespace = &event.regarding.key.namespace;
    if namespace.is_empty() { "default".into() } else { namespace.clone() }
}
