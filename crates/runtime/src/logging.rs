//! The log: lines as Kubernetes' own programs write them, or JSON, on standard error.
//!
//! `--v` counts as there: what changed and what is wrong is always shown, `debug` from level 4 on, `trace` from 6.

#[cfg(test)]
mod tests;

use std::{fmt, io::Write};

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Map, Value, json};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
    util::{SubscriberInitExt as _, TryInitError},
};

use crate::clock::Clock;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As Kubernetes' own programs write them.
    Text,
    /// One object for each line.
    Json,
}

impl Format {
    /// The format that `--logging-format` names; anything but `json` means text.
    pub fn named(name: &str) -> Self {
        if name == "json" { Self::Json } else { Self::Text }
    }
}

/// Sends everything that this process logs to standard error from now on.
///
/// Only a second start in one process can fail.
pub fn start(verbosity: u8, format: Format, clock: Clock) -> Result<(), TryInitError> {
    let level = match verbosity {
        0..=3 => LevelFilter::INFO,
        4..=5 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // Libraries below say little of use to a user unless something is wrong.
    let filter = tracing_subscriber::filter::Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("kruise", level);
    let filter = match level {
        // The client repeats bodies that it cannot read, and they may be Secrets.
        LevelFilter::TRACE => filter
            .with_default(LevelFilter::DEBUG)
            .with_target("kube_client::client", LevelFilter::OFF)
            .with_target("kube_client::client::builder", LevelFilter::DEBUG),
        // Every call that fails is told by whoever made it.
        _ => filter.with_target("kube_client", LevelFilter::OFF),
    };
    tracing_subscriber::registry()
        .with(Lines { format, clock, write: to_stderr }.with_filter(filter))
        .try_init()
}

/// A line that is this record and nothing else, for audits: what reads them from a file reads them from the log too.
pub fn record(record: &Value) {
    to_stderr(&format!("{record}\n"));
}

/// A closed pipe is no reason to end.
fn to_stderr(line: &str) {
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

struct Lines<W> {
    format: Format,
    clock: Clock,
    write: W,
}

/// What a span or an event carries, in the order it was written.
#[derive(Debug, Default)]
struct Fields {
    message: String,
    pairs: Vec<(&'static str, Value)>,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::from(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::from(format!("{value:?}")));
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => self.pairs.push((name, value)),
        }
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: Fn(&str) + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut pairs = Vec::new();
        for span in
            context.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root)
        {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                pairs.extend(of_span.pairs.iter().cloned());
            }
        }
        pairs.append(&mut fields.pairs);
        let now = self.clock.now();
        let line = match self.format {
            Format::Text => text(now, event.metadata(), &fields.message, &pairs),
            Format::Json => json_line(now, event.metadata(), fields.message, pairs),
        };
        (self.write)(&line);
    }
}

/// `I1116 00:50:00.123456       1 file.rs:12] "message" key="value"`.
fn text(now: Timestamp, metadata: &Metadata<'_>, message: &str, pairs: &[(&'static str, Value)]) -> String {
    let letter = match *metadata.level() {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    let time = now.to_zoned(TimeZone::UTC).strftime("%m%d %H:%M:%S%.6f").to_string();
    let mut line = format!("{letter}{time} {:>7} {}] {message:?}", std::process::id(), caller(metadata));
    for (key, value) in pairs {
        line.push_str(&format!(" {key}={value}"));
    }
    line.push('\n');
    line
}

/// One JSON object with `ts` in milliseconds, `caller`, `msg`, `v` and the pairs.
fn json_line(
    now: Timestamp,
    metadata: &Metadata<'_>,
    message: String,
    pairs: Vec<(&'static str, Value)>,
) -> String {
    let mut object = Map::new();
    object.insert("ts".to_owned(), json!(now.as_microsecond() as f64 / 1000.0));
    object.insert("caller".to_owned(), caller(metadata).into());
    object.insert("msg".to_owned(), message.into());
    match *metadata.level() {
        Level::ERROR => {}
        Level::WARN => {
            object.insert("level".to_owned(), "warning".into());
            object.insert("v".to_owned(), 0.into());
        }
        Level::INFO => {
            object.insert("v".to_owned(), 0.into());
        }
        Level::DEBUG => {
            object.insert("v".to_owned(), 4.into());
        }
        Level::TRACE => {
            object.insert("v".to_owned(), 6.into());
        }
    }
    let named = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
    // Log collectors know a reference to an object by these two together.
    if let (Some(name), Some(namespace)) = (named("name"), named("namespace")) {
        object.insert("object".to_owned(), json!({"name": name, "namespace": namespace}));
    }
    for (key, value) in pairs {
        object.entry(key).or_insert(value);
    }
    format!("{}\n", Value::Object(object))
}

fn caller(metadata: &Metadata<'_>) -> String {
    let file = metadata.file().and_then(|path| path.rsplit('/').next()).unwrap_or("unknown");
    format!("{file}:{}", metadata.line().unwrap_or_default())
}
