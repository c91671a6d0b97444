//! The wire to JSON: what a Go server would write as JSON after it has read the message.
//!
//! Fields of other numbers are passed over. Nesting and the count of values are limited, so that a few bytes cannot
//! become more JSON than the server has room for.

use kruise_api::kubernetes::quantity::Quantity;
use serde_json::{Map, Value};

use super::scalars;
use super::table::{Empty, Field, Message, Table, Type};
use super::wire::{Forward, Part, Payload};
use super::{PREFIX, recognizes};
use crate::webhook::base64;

pub(super) const TYPE: u32 = 1;
pub(super) const RAW: u32 = 2;
pub(super) const CONTENT_ENCODING: u32 = 3;
pub(super) const CONTENT_TYPE: u32 = 4;
pub(super) const API_VERSION: u32 = 1;
pub(super) const KIND: u32 = 2;
pub(super) const EVENT_TYPE: u32 = 1;
pub(super) const EVENT_OBJECT: u32 = 2;

/// How deep messages may be nested. JSON may not be deeper either.
const MAX_DEPTH: usize = 128;
/// How many values one object may have. The largest object that a real cluster stores has fewer.
pub const MAX_VALUES: usize = 400_000;

/// Why bytes are not an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The envelope cannot be read.
    #[error("{0}")]
    Envelope(String),
    /// The envelope says what the object is, but it is not.
    #[error("{why}")]
    Content {
        /// The kind that the envelope names.
        kind: String,
        /// The version without its group.
        version: String,
        /// What is wrong.
        why: String,
    },
}

/// What stands around an object.
#[derive(Debug, Default)]
pub(super) struct Envelope<'b> {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) raw: &'b [u8],
}

pub(super) fn envelope(body: &[u8]) -> Result<Envelope<'_>, Fault> {
    let why = match body.strip_prefix(&PREFIX) {
        _ if body.is_empty() => "empty data".to_owned(),
        Some([]) => "empty body".to_owned(),
        Some(content) => return unwrap(content).map_err(Fault::Envelope),
        None => "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            .to_owned(),
    };
    Err(Fault::Envelope(why))
}

fn unwrap(content: &[u8]) -> Result<Envelope<'_>, String> {
    let mut found = Envelope::default();
    let mut rest = Forward::new(content);
    while !rest.is_empty() {
        let Some(part) = rest.part("Unknown")? else { continue };
        match (part.number, part.payload) {
            (TYPE, Payload::Bytes(bytes)) => {
                let mut rest = Forward::new(bytes);
                while !rest.is_empty() {
                    let Some(part) = rest.part("TypeMeta")? else { continue };
                    match (part.number, part.payload) {
                        (API_VERSION, Payload::Bytes(bytes)) => found.api_version = text(bytes),
                        (KIND, Payload::Bytes(bytes)) => found.kind = text(bytes),
                        (API_VERSION, other) => return Err(wrong_type(&other, "APIVersion")),
                        (KIND, other) => return Err(wrong_type(&other, "Kind")),
                        _ => {}
                    }
                }
            }
            (RAW, Payload::Bytes(bytes)) => found.raw = bytes,
            (TYPE, other) => return Err(wrong_type(&other, "TypeMeta")),
            (RAW, other) => return Err(wrong_type(&other, "Raw")),
            _ => {}
        }
    }
    Ok(found)
}

/// The type of an event and the bytes of its object.
pub(super) fn watch_event(frame: &[u8]) -> Result<(String, &[u8]), String> {
    let (mut kind, mut object): (String, &[u8]) = (String::new(), &[]);
    let mut rest = Forward::new(frame);
    while !rest.is_empty() {
        match rest.part("WatchEvent")? {
            Some(Part { number: EVENT_TYPE, payload: Payload::Bytes(bytes) }) => kind = text(bytes),
            Some(Part { number: EVENT_OBJECT, payload: Payload::Bytes(bytes) }) => {
                let mut rest = Forward::new(bytes);
                while !rest.is_empty() {
                    if let Some(Part { number: super::write::RAW, payload: Payload::Bytes(bytes) }) =
                        rest.part("RawExtension")?
                    {
                        object = bytes;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((kind, object))
}

/// The members of an object of a kind.
pub(super) fn object(message: &Message, bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let mut reader = Reader { table: Table::get(), values: 0, depth: 0 };
    let mut members = Map::new();
    reader.message(message, bytes, &mut members)?;
    Ok(members)
}

/// Go keeps any bytes in a text and writes those that are none as signs of replacement.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wrong_type(payload: &Payload<'_>, field: &str) -> String {
    let wire = match payload {
        Payload::Varint(_) => 0,
        Payload::Fixed64(_) => 1,
        Payload::Bytes(_) => 2,
    };
    format!("proto: wrong wireType = {wire} for field {field}")
}

struct Reader {
    table: &'static Table,
    values: usize,
    depth: usize,
}

impl Reader {
    fn count(&mut self) -> Result<(), String> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(format!("the object has more than {MAX_VALUES} values"));
        }
        Ok(())
    }

    /// Reads a message into members, which may be there from a part of the message that came before.
    fn message(
        &mut self,
        message: &Message,
        bytes: &[u8],
        members: &mut Map<String, Value>,
    ) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        self.fields(message, bytes, members)?;
        self.settle(message, members)?;
        self.depth -= 1;
        Ok(())
    }

    fn fields(
        &mut self,
        message: &Message,
        bytes: &[u8],
        members: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let mut rest = Forward::new(bytes);
        while !rest.is_empty() {
            let Some(part) = rest.part(&message.name)? else { continue };
            if let Some(field) = message.field(part.number) {
                self.field(field, part, members)?;
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &Field,
        part: Part<'_>,
        members: &mut Map<String, Value>,
    ) -> Result<(), String> {
        self.count()?;
        let payload = part.payload;
        let table = self.table;
        let wrong = || wrong_type(&payload, &go_name(table, field));
        match (&field.kind, payload) {
            (Type::Inline(index), Payload::Bytes(bytes)) => match self.table.message(*index) {
                Some(inner) => self.fields(inner, bytes, members),
                None => Ok(()),
            },
            (Type::List(inner), payload) => {
                let list = members.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                if !list.is_array() {
                    *list = Value::Array(Vec::new());
                }
                let Value::Array(items) = list else { return Ok(()) };
                match (inner.as_ref(), payload) {
                    // Numbers may also come as one block.
                    (Type::Int32 | Type::Int64, Payload::Bytes(bytes)) => {
                        let mut rest = Forward::new(bytes);
                        while !rest.is_empty() {
                            self.count()?;
                            let number = Payload::Varint(rest.varint()?);
                            items.extend(self.single(inner, number, None)?);
                        }
                    }
                    _ => items.push(self.single(inner, payload, None)?.ok_or_else(wrong)?),
                }
                Ok(())
            }
            (Type::Map(inner), Payload::Bytes(bytes)) => {
                let map = members.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
                if !map.is_object() {
                    *map = Value::Object(Map::new());
                }
                let Value::Object(entries) = map else { return Ok(()) };
                self.entry(inner, bytes, entries)
            }
            (Type::Pointer(kind), payload) => self.set(kind, payload, field, members),
            (kind, payload) => self.set(kind, payload, field, members),
        }
    }

    fn set(
        &mut self,
        kind: &Type,
        payload: Payload<'_>,
        field: &Field,
        members: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let before = if matches!(kind, Type::Message(_)) { members.remove(field.name) } else { None };
        let value = self.single(kind, payload, before)?;
        let value = value.ok_or_else(|| wrong_type(&payload, &go_name(self.table, field)))?;
        members.insert(field.name.to_owned(), value);
        Ok(())
    }

    fn entry(&mut self, kind: &Type, bytes: &[u8], entries: &mut Map<String, Value>) -> Result<(), String> {
        let mut key = String::new();
        let mut value = None;
        let mut rest = Forward::new(bytes);
        while !rest.is_empty() {
            let Some(part) = rest.part("Entry")? else { continue };
            match (part.number, part.payload) {
                (1, Payload::Bytes(bytes)) => key = text(bytes),
                (2, payload) => value = self.single(kind, payload, None)?,
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None if *kind == Type::Bytes => Value::String(String::new()),
            None => self.zero(kind)?,
        };
        entries.insert(key, value);
        Ok(())
    }

    /// One value; `None` when it does not stand on the wire as its type does.
    fn single(
        &mut self,
        kind: &Type,
        payload: Payload<'_>,
        before: Option<Value>,
    ) -> Result<Option<Value>, String> {
        Ok(Some(match (kind, payload) {
            (Type::Bool, Payload::Varint(number)) => Value::Bool(number != 0),
            #[expect(clippy::cast_possible_truncation, reason = "numbers of 32 bit are cut, as elsewhere")]
            (Type::Int32, Payload::Varint(number)) => Value::from(number as i32),
            (Type::Int64, Payload::Varint(number)) => Value::from(number.cast_signed()),
            (Type::Float, Payload::Fixed64(bits)) => float(f64::from_bits(bits))?,
            (Type::Text, Payload::Bytes(bytes)) => Value::String(text(bytes)),
            (Type::Bytes, Payload::Bytes(bytes)) => Value::String(base64::encode(bytes)),
            (Type::Quantity, Payload::Bytes(bytes)) => quantity(bytes)?,
            (Type::Time, Payload::Bytes(bytes)) => scalars::read_time(bytes)?,
            (Type::MicroTime, Payload::Bytes(bytes)) => scalars::read_micro_time(bytes)?,
            (Type::IntOrString, Payload::Bytes(bytes)) => int_or_string(bytes)?,
            (Type::Json, Payload::Bytes(bytes)) => self.json(bytes)?,
            (Type::Words, Payload::Bytes(bytes)) => Value::Array(self.words(bytes, 1)?),
            (Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrStrings, Payload::Bytes(bytes)) => {
                self.schema_or(kind, bytes)?
            }
            (Type::Message(index), Payload::Bytes(bytes)) => {
                let mut members = match before {
                    Some(Value::Object(members)) => members,
                    _ => Map::new(),
                };
                if let Some(message) = self.table.message(*index) {
                    self.message(message, bytes, &mut members)?;
                }
                Value::Object(members)
            }
            _ => return Ok(None),
        }))
    }

    /// Any JSON, or an object that travels as protobuf itself.
    fn json(&mut self, bytes: &[u8]) -> Result<Value, String> {
        let mut raw: &[u8] = &[];
        let mut rest = Forward::new(bytes);
        while !rest.is_empty() {
            let Some(part) = rest.part("RawExtension")? else { continue };
            match (part.number, part.payload) {
                (super::write::RAW, Payload::Bytes(bytes)) => raw = bytes,
                (super::write::RAW, other) => return Err(wrong_type(&other, "Raw")),
                _ => {}
            }
        }
        if raw.is_empty() {
            return Ok(Value::Null);
        }
        if !recognizes(raw) {
            return serde_json::from_slice(raw).map_err(|error| error.to_string());
        }
        let envelope = envelope(raw).map_err(|fault| fault.to_string())?;
        let mut members = Map::new();
        if let Some(message) = self.table.of(&envelope.api_version, &envelope.kind) {
            self.message(message, envelope.raw, &mut members)?;
        }
        members.insert("apiVersion".to_owned(), Value::String(envelope.api_version));
        members.insert("kind".to_owned(), Value::String(envelope.kind));
        Ok(Value::Object(members))
    }

    fn words(&mut self, bytes: &[u8], number: u32) -> Result<Vec<Value>, String> {
        let mut found = Vec::new();
        let mut rest = Forward::new(bytes);
        while !rest.is_empty() {
            if let Some(Part { number: own, payload: Payload::Bytes(bytes) }) = rest.part("Items")?
                && own == number
            {
                self.count()?;
                found.push(Value::String(text(bytes)));
            }
        }
        Ok(found)
    }

    fn schema_or(&mut self, kind: &Type, bytes: &[u8]) -> Result<Value, String> {
        let schema = Type::Message(self.table.schema);
        let (mut allows, mut one, mut many) = (false, None, Vec::new());
        let own = if *kind == Type::SchemaOrBool { 2 } else { 1 };
        let mut rest = Forward::new(bytes);
        while !rest.is_empty() {
            let Some(part) = rest.part("JSONSchemaPropsOr")? else { continue };
            self.count()?;
            match (part.number, part.payload) {
                (1, Payload::Varint(number)) if own == 2 => allows = number != 0,
                (number, payload) if number == own => one = self.single(&schema, payload, one.take())?,
                (2, payload) if *kind == Type::SchemaOrArray => {
                    many.extend(self.single(&schema, payload, None)?);
                }
                (2, Payload::Bytes(bytes)) => many.push(Value::String(text(bytes))),
                _ => {}
            }
        }
        Ok(match (kind, one) {
            (Type::SchemaOrBool, None) => Value::Bool(allows),
            (Type::SchemaOrBool, Some(schema)) => schema,
            (_, one) if many.is_empty() => one.unwrap_or_default(),
            _ => Value::Array(many),
        })
    }

    /// Leaves out what JSON leaves out, and adds what JSON always has.
    fn settle(&mut self, message: &Message, members: &mut Map<String, Value>) -> Result<(), String> {
        for field in &message.fields {
            if let Type::Inline(index) = field.kind {
                if let Some(inner) = self.table.message(index) {
                    self.settle(inner, members)?;
                }
                continue;
            }
            let leaves_out = match field.empty {
                Empty::Written => false,
                Empty::LeftOut => is_simple(&field.kind),
                Empty::AlwaysLeftOut => true,
            };
            match members.get(field.name) {
                Some(value) if leaves_out && is_empty(&field.kind, value) => {
                    members.remove(field.name);
                }
                None if !leaves_out => {
                    self.count()?;
                    let zero = self.zero(&field.kind)?;
                    members.insert(field.name.to_owned(), zero);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What JSON writes for a value that is not there.
    fn zero(&mut self, kind: &Type) -> Result<Value, String> {
        Ok(match kind {
            Type::Text => Value::String(String::new()),
            Type::Bool => Value::Bool(false),
            Type::Int32 | Type::Int64 | Type::Float | Type::IntOrString => Value::from(0),
            Type::Quantity => Value::String("0".to_owned()),
            Type::Message(index) | Type::Inline(index) => {
                let mut members = Map::new();
                if let Some(message) = self.table.message(*index) {
                    self.settle(message, &mut members)?;
                }
                Value::Object(members)
            }
            Type::SchemaOrBool => Value::Bool(false),
            Type::Time
            | Type::MicroTime
            | Type::Bytes
            | Type::Json
            | Type::Words
            | Type::SchemaOrArray
            | Type::SchemaOrStrings
            | Type::Pointer(_)
            | Type::List(_)
            | Type::Map(_) => Value::Null,
        })
    }
}

/// The name of a field in Go, as errors mention it.
fn go_name(table: &Table, field: &Field) -> String {
    let embedded = match field.kind {
        Type::Inline(index) => Some(index),
        Type::Message(index) if field.name == "metadata" => Some(index),
        _ => None,
    };
    if let Some(message) = embedded.and_then(|index| table.message(index)) {
        return message.name.clone();
    }
    let mut letters = field.name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Whether JSON in Go can leave the type out. Structs that are no pointers are always there.
fn is_simple(kind: &Type) -> bool {
    matches!(
        kind,
        Type::Text
            | Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::Float
            | Type::Bytes
            | Type::Words
            | Type::Pointer(_)
            | Type::List(_)
            | Type::Map(_)
    )
}

fn is_empty(kind: &Type, value: &Value) -> bool {
    match (kind, value) {
        (Type::Pointer(_), value) => value.is_null(),
        (_, Value::Null) => true,
        (_, Value::Bool(flag)) => !flag,
        (_, Value::Number(number)) => number.as_f64() == Some(0.0),
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Array(items)) => items.is_empty(),
        (_, Value::Object(members)) => members.is_empty(),
    }
}

fn float(number: f64) -> Result<Value, String> {
    // JSON writes whole numbers without a fraction.
    if number.fract() == 0.0 && number.abs() < 1e15 {
        #[expect(clippy::cast_possible_truncation, reason = "the line above checks that nothing is lost")]
        return Ok(Value::from(number as i64));
    }
    let number = serde_json::Number::from_f64(number);
    number.map(Value::Number).ok_or_else(|| "json: unsupported value".to_owned())
}

fn quantity(bytes: &[u8]) -> Result<Value, String> {
    let mut found = String::new();
    let mut rest = Forward::new(bytes);
    while !rest.is_empty() {
        match rest.part("Quantity")? {
            Some(Part { number: 1, payload: Payload::Bytes(bytes) }) => found = text(bytes),
            Some(Part { number: 1, payload }) => return Err(wrong_type(&payload, "String_")),
            _ => {}
        }
    }
    if bytes.is_empty() {
        return Ok(Value::String("0".to_owned()));
    }
    Quantity::parse(&found).map(|found| Value::String(found.to_string())).map_err(|error| error.to_string())
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut kind, mut integer, mut word) = (0_u64, 0_i32, String::new());
    let mut rest = Forward::new(bytes);
    while !rest.is_empty() {
        let Some(part) = rest.part("IntOrString")? else { continue };
        match (part.number, part.payload) {
            (1, Payload::Varint(number)) => kind = number,
            #[expect(clippy::cast_possible_truncation, reason = "numbers of 32 bit are cut, as elsewhere")]
            (2, Payload::Varint(number)) => integer = number as i32,
            (3, Payload::Bytes(bytes)) => word = text(bytes),
            (1, other) => return Err(wrong_type(&other, "Type")),
            (2, other) => return Err(wrong_type(&other, "IntVal")),
            (3, other) => return Err(wrong_type(&other, "StrVal")),
            _ => {}
        }
    }
    match kind {
        0 => Ok(Value::from(integer)),
        1 => Ok(Value::String(word)),
        _ => Err("impossible IntOrString.Type".to_owned()),
    }
}
