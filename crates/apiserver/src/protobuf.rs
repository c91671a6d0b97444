//! Kubernetes' protobuf, beside JSON: what `client-go` and many commands of kubectl send and like to read.
//!
//! One codec between JSON and the wire serves all built-in kinds. It knows nothing of kinds itself: the messages are
//! facts in `messages.txt` (see `table`), and what a message says becomes the JSON that a Go server would write after
//! reading it. Objects are kept as JSON only. Custom resources have no protobuf, here as elsewhere.
//!
//! What the wire cannot hold is lost, here as in a real server: members that no type has, kind and version of items and of
//! other objects inside an object, the difference between an empty list or map and none, and fractions of a second where
//! the type has none.
//!
//! An object travels in an envelope: four bytes that say what follows, then a message with kind and version beside the
//! object's own bytes. A watch sends a length in four bytes before each event.

mod read;
mod scalars;
mod table;
#[cfg(test)]
mod tests;
mod wire;
mod write;

use serde_json::{Map, Value};

use crate::registry::split_api_version;
pub use read::{Fault, MAX_VALUES};
use table::{Message, Table};
use wire::Backward;

/// The content type of objects.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The content type of watches.
pub const WATCH_CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// What every object begins with.
const PREFIX: [u8; 4] = *b"k8s\0";

/// Why an object cannot be written: a value in it does not fit its field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} has no form in protobuf: {path} does not fit")]
pub struct Unwritable {
    kind: String,
    path: String,
}

/// Whether objects of the kind can be written and read.
pub fn knows(api_version: &str, kind: &str) -> bool {
    Table::get().of(api_version, kind).is_some()
}

/// Writes an object, or a list of objects, with its envelope.
pub fn encode(object: &Value) -> Result<Vec<u8>, Unwritable> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let fault = |path: String| Unwritable { kind: kind.to_owned(), path };
    let message = Table::get().of(api_version, kind).ok_or_else(|| fault("the kind itself".to_owned()))?;
    let nothing = Map::new();
    let members = object.as_object().unwrap_or(&nothing);
    let mut out = Backward::default();
    envelope(&mut out, api_version, kind, |out| write::message(out, message, members)).map_err(fault)?;
    Ok(out.finish())
}

/// Writes a list whose items come one by one, the last one first.
#[derive(Debug)]
pub struct List {
    out: Backward,
    item: &'static Message,
    size: usize,
    kind: String,
    api_version: String,
}

impl List {
    /// A list of objects of a kind. `None` when the kind has no form in protobuf.
    pub fn new(api_version: &str, list_kind: &str) -> Option<Self> {
        let item = match Table::get().of(api_version, list_kind)? {
            Message { items: Some(item), .. } => Table::get().message(*item)?,
            _ => return None,
        };
        let (kind, api_version) = (list_kind.to_owned(), api_version.to_owned());
        let mut out = Backward::default();
        end_of_envelope(&mut out);
        let size = out.len();
        Some(Self { out, item, size, kind, api_version })
    }

    /// Puts an item before those that are there.
    pub fn prepend(&mut self, object: &Value) -> Result<(), Unwritable> {
        let nothing = Map::new();
        let members = object.as_object().unwrap_or(&nothing);
        let item = self.item;
        self.out
            .nested(write::ITEMS, |out| write::message(out, item, members))
            .map_err(|path| Unwritable { kind: self.kind.clone(), path })
    }

    /// The bytes, with the list's own metadata.
    pub fn finish(mut self, metadata: &Value) -> Result<Vec<u8>, Unwritable> {
        let fault = |path: String| Unwritable { kind: self.kind.clone(), path };
        write::list_metadata(&mut self.out, metadata).map_err(fault)?;
        start_of_envelope(&mut self.out, self.size, &self.api_version, &self.kind);
        Ok(self.out.finish())
    }
}

/// One event of a watch, with its length in front. `object` is what [`encode`] wrote.
pub fn watch_frame(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Backward::default();
    let start = out.len();
    out.bytes(write::RAW, object);
    out.close(read::EVENT_OBJECT, start);
    out.bytes(read::EVENT_TYPE, kind.as_bytes());
    let length = u32::try_from(out.len()).unwrap_or(u32::MAX);
    out.raw(&length.to_be_bytes());
    out.finish()
}

/// The events in the bytes of a watch, as JSON. What is not whole yet is left out.
pub fn watch_events(mut bytes: &[u8]) -> Result<Vec<Value>, Fault> {
    let mut events = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((frame, rest)) = rest.split_at_checked(length) else { break };
        let (kind, object) = read::watch_event(frame).map_err(Fault::Envelope)?;
        events.push(serde_json::json!({"type": kind, "object": decode(object, "", "")?}));
        bytes = rest;
    }
    Ok(events)
}

/// Reads an object. What the envelope does not say about kind and version is as given.
pub fn decode(body: &[u8], api_version: &str, kind: &str) -> Result<Value, Fault> {
    let envelope = read::envelope(body)?;
    let given = |own: &str, other: &str| if own.is_empty() { other.to_owned() } else { own.to_owned() };
    let (api_version, kind) = (given(&envelope.api_version, api_version), given(&envelope.kind, kind));
    let mut object = match Table::get().of(&api_version, &kind) {
        Some(message) => read::object(message, envelope.raw).map_err(|why| Fault::Content {
            kind: kind.clone(),
            version: split_api_version(&api_version).1.to_owned(),
            why,
        })?,
        // Who asked knows which kinds there are, and what to say about others.
        None => Map::new(),
    };
    object.insert("apiVersion".to_owned(), Value::String(api_version));
    object.insert("kind".to_owned(), Value::String(kind));
    Ok(Value::Object(object))
}

/// Whether a body says of itself that it is protobuf.
pub fn recognizes(body: &[u8]) -> bool {
    body.starts_with(&PREFIX)
}

fn envelope(
    out: &mut Backward,
    api_version: &str,
    kind: &str,
    content: impl FnOnce(&mut Backward) -> Result<(), String>,
) -> Result<(), String> {
    end_of_envelope(out);
    let start = out.len();
    content(out)?;
    start_of_envelope(out, start, api_version, kind);
    Ok(())
}

/// Encoding and type of the content, which are always empty, stand behind it.
fn end_of_envelope(out: &mut Backward) {
    out.bytes(read::CONTENT_TYPE, b"");
    out.bytes(read::CONTENT_ENCODING, b"");
}

fn start_of_envelope(out: &mut Backward, start: usize, api_version: &str, kind: &str) {
    out.close(read::RAW, start);
    let start = out.len();
    out.bytes(read::KIND, kind.as_bytes());
    out.bytes(read::API_VERSION, api_version.as_bytes());
    out.close(read::TYPE, start);
    out.raw(&PREFIX);
}
