//! Watches: what happened, as it happens.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::list::{Selection, not_a_version};
use super::output::Shape;
use super::{ListOptions, Query, Target, VersionMatch};
use crate::field;
use crate::protobuf;
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::{GroupKind, Status};
use crate::store::{Cursor, Event, EventKind, Record};
use crate::table::IncludeObject;

/// How often a silent watch says how far it is.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch without `timeoutSeconds` lasts.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(45 * 60);
/// The mark on the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What a watch asks for.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// Which objects.
    pub selection: Selection,
    /// After which version. `None` begins with the current objects as `ADDED` events.
    pub from: Option<u64>,
    /// Whether to begin now, without the current objects, where `from` is not given.
    pub from_now: bool,
    /// The current objects must be at least of this version.
    pub not_older_than: u64,
    /// Whether bookmarks are wanted.
    pub bookmarks: bool,
    /// Whether the initial events end with a marked bookmark.
    pub initial_events_end: bool,
    /// When the watch ends by itself.
    pub timeout: Option<Duration>,
}

impl WatchOptions {
    pub(crate) fn from_query(resource: &Resource, query: &Query) -> Result<Self, Status> {
        let selection = Selection::from_query(resource, query)?;
        let bookmarks = query.flag("allowWatchBookmarks");
        let initial = query.has("sendInitialEvents").then(|| query.flag("sendInitialEvents"));
        let matching = query.text("resourceVersionMatch");
        let path = "resourceVersionMatch";
        let mut errors = Vec::new();
        if initial.is_some() && matching != "NotOlderThan" {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(field::Error::forbidden(path, detail));
        }
        if !matching.is_empty() {
            if initial.is_none() {
                let detail =
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(field::Error::forbidden(path, detail));
            }
            if matching != "NotOlderThan" {
                errors.push(field::Error::not_supported(path, matching, &["NotOlderThan"]));
            }
            if !query.text("continue").is_empty() {
                let detail = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(field::Error::forbidden(path, detail));
            }
        }
        if !errors.is_empty() {
            return Err(Status::invalid(GroupKind::new("meta.k8s.io", "ListOptions"), "", errors));
        }
        // The real server calls this its own fault, unlike for lists.
        let version = match query.text("resourceVersion") {
            "" => None,
            text => {
                let number: Result<u64, _> = text.parse();
                Some(number.map_err(|_| Status::failure(500, "", not_a_version(text).to_string()))?)
            }
        };
        let version = version.filter(|version| *version > 0);
        let from = if initial == Some(true) { None } else { version };
        let timeout = query.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        Ok(Self {
            selection,
            from,
            from_now: initial == Some(false),
            not_older_than: if initial == Some(true) { version.unwrap_or(0) } else { 0 },
            bookmarks,
            initial_events_end: initial == Some(true) && bookmarks,
            timeout: timeout.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        })
    }
}

/// How events stand in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frames {
    /// One line for each.
    Json,
    /// A length before each.
    Protobuf,
}

/// One thing a watcher is told.
#[derive(Clone, Debug)]
pub enum Told {
    /// An object came, changed or went, as seen through the selection.
    Event(EventKind, Arc<Record>),
    /// Everything up to this version was told. The flag marks the end of the initial events.
    Bookmark(u64, bool),
    /// The watch cannot go on.
    Error(Box<Status>),
}

/// A running watch.
pub struct Watch {
    cursor: Cursor,
    namespace: String,
    selection: Selection,
    bookmarks: bool,
    deadline: Instant,
    next_bookmark: Instant,
    bookmark_every: Duration,
    initial: Vec<Told>,
    ended: bool,
}

impl Watch {
    /// What happened next; `None` when the watch has ended. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Vec<Told>> {
        if self.ended {
            return None;
        }
        if !self.initial.is_empty() {
            return Some(std::mem::take(&mut self.initial));
        }
        loop {
            match self.cursor.take() {
                Err(old) => {
                    self.ended = true;
                    let status = Status::too_old_resource_version(self.cursor.informed(), old.oldest);
                    return Some(vec![Told::Error(Box::new(status))]);
                }
                Ok(events) if !events.is_empty() => {
                    let told: Vec<Told> = events.iter().filter_map(|event| self.see(event)).collect();
                    if !told.is_empty() {
                        return Some(told);
                    }
                    continue;
                }
                Ok(_) => {}
            }
            let now = Instant::now();
            if now >= self.deadline || self.cursor.is_ended() {
                self.ended = true;
                return None;
            }
            if self.bookmarks && now >= self.next_bookmark {
                self.next_bookmark = now + self.bookmark_every;
                return Some(vec![Told::Bookmark(self.cursor.informed(), false)]);
            }
            let until = if self.bookmarks { self.deadline.min(self.next_bookmark) } else { self.deadline };
            // Waking up late or early only means to look again.
            let _ = tokio::time::timeout_at(until, self.cursor.wait()).await;
        }
    }

    /// An event through the eyes of the selection: what stops matching goes, what begins to match comes.
    fn see(&self, event: &Event) -> Option<Told> {
        let inside = |record: &Record| {
            (self.namespace.is_empty() || *self.namespace == *record.namespace)
                && self.selection.matches(record)
        };
        let before = event.old.as_deref().is_some_and(inside);
        let after = event.kind != EventKind::Deleted && inside(&event.new);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(Told::Event(EventKind::Added, event.new.clone())),
            (true, true) => Some(Told::Event(EventKind::Modified, event.new.clone())),
            (true, false) if event.kind == EventKind::Deleted => {
                Some(Told::Event(EventKind::Deleted, event.new.clone()))
            }
            // The object still exists; who watches it by this selection sees its last matching state go.
            (true, false) => {
                let last = event.old.as_ref()?.at_version(event.rv());
                Some(Told::Event(EventKind::Deleted, Arc::new(last)))
            }
        }
    }
}

impl ApiServer {
    /// Begins to watch a collection.
    pub fn watch(&self, target: &Target, options: WatchOptions) -> Result<Watch, Status> {
        let mut initial = Vec::new();
        let from = match options.from {
            Some(version) => version,
            None if options.from_now => self.store().version(),
            None => {
                let version = match options.not_older_than {
                    0 => VersionMatch::MostRecent,
                    version => VersionMatch::NotOlderThan(version),
                };
                let list =
                    ListOptions { selection: options.selection.clone(), version, ..ListOptions::default() };
                let page = self.list(target, &list)?;
                initial.extend(page.records.into_iter().map(|record| Told::Event(EventKind::Added, record)));
                if options.initial_events_end {
                    initial.push(Told::Bookmark(page.version, true));
                }
                page.version
            }
        };
        let now = Instant::now();
        let timeout = self.clock().real(options.timeout.unwrap_or(DEFAULT_TIMEOUT));
        let bookmark_every = self.clock().real(BOOKMARK_EVERY);
        Ok(Watch {
            cursor: self.store().watch(&target.resource.table, from),
            namespace: target.namespace.clone(),
            selection: options.selection,
            bookmarks: options.bookmarks,
            deadline: now + timeout,
            next_bookmark: now + bookmark_every,
            bookmark_every,
            initial,
            ended: false,
        })
    }

    /// A watch as a stream of events.
    pub(crate) fn watch_bytes(
        &self,
        resource: Arc<Resource>,
        watch: Watch,
        shape: Shape,
        frames: Frames,
    ) -> BoxStream<'static, Bytes> {
        let server = self.clone();
        let start = (server, resource, watch, true);
        stream::unfold(start, move |(server, resource, mut watch, mut first)| async move {
            let told = watch.next().await?;
            let mut out = Vec::new();
            // A definition may have changed since; what it says now is what is shown.
            let found = server.registry().find(&resource.group, &resource.version, &resource.plural);
            let resource = found.unwrap_or(resource);
            for told in told {
                let (kind, object) = server.event(&resource, &told, shape, first).await;
                match frames {
                    Frames::Json => json_line(&mut out, kind, &object),
                    Frames::Protobuf => out.extend(protobuf_frame(kind, &object)),
                }
                first = false;
            }
            Some((Bytes::from(out), (server, resource, watch, first)))
        })
        .boxed()
    }

    /// The type of an event, and its object as JSON.
    async fn event(
        &self,
        resource: &Resource,
        told: &Told,
        shape: Shape,
        first: bool,
    ) -> (&'static str, Bytes) {
        match told {
            Told::Event(kind, record) => {
                let bytes = match shape {
                    Shape::Table(version, include) => {
                        self.table_event(resource, record, version, include, first).await
                    }
                    _ => self.object_bytes(resource, record, shape).await,
                };
                match bytes {
                    Ok(bytes) => (kind.as_str(), bytes),
                    Err(status) => ("ERROR", status.to_json().into()),
                }
            }
            Told::Bookmark(version, end) => ("BOOKMARK", bookmark(resource, *version, *end, shape)),
            Told::Error(status) => ("ERROR", status.to_json().into()),
        }
    }
}

fn json_line(out: &mut Vec<u8>, kind: &str, object: &[u8]) {
    out.reserve(object.len() + 40);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
}

fn protobuf_frame(kind: &str, object: &[u8]) -> Vec<u8> {
    let value: Result<Value, _> = serde_json::from_slice(object);
    let written = match value {
        Ok(value) => protobuf::encode(&value).map_err(Status::internal),
        Err(error) => Err(Status::internal(error)),
    };
    match written {
        Ok(bytes) => protobuf::watch_frame(kind, &bytes),
        Err(status) => {
            let status = serde_json::to_value(&status).unwrap_or_default();
            protobuf::watch_frame("ERROR", &protobuf::encode(&status).unwrap_or_default())
        }
    }
}

fn bookmark(resource: &Resource, version: u64, end: bool, shape: Shape) -> Bytes {
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if let Some(map) = metadata.as_object_mut()
        && end
    {
        map.insert("annotations".to_owned(), json!({INITIAL_EVENTS_END: "true"}));
    }
    let object = |kind: &str, api_version: String| json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
    let value: Value = match shape {
        Shape::Object => object(&resource.kind, resource.api_version()),
        Shape::Metadata(v) => object("PartialObjectMetadata", format!("meta.k8s.io/{v}")),
        Shape::Table(v, include) => {
            let row = match include {
                IncludeObject::None => Vec::new(),
                _ => vec![json!({"cells": [], "object": object(&resource.kind, resource.api_version())})],
            };
            json!({
                "kind": "Table", "apiVersion": format!("meta.k8s.io/{v}"),
                "metadata": {"resourceVersion": version.to_string()}, "columnDefinitions": [], "rows": row,
            })
        }
    };
    value.to_string().into()
}
