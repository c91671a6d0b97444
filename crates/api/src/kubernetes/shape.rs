//! The shapes of the core types: which members exist, and which of them a server writes when they are empty.
//!
//! A Kubernetes server decodes an object into structs and encodes it again. On the way unknown members and empty
//! optional ones disappear (`env: []`, `readOnly: false`, `value: ""`), while structs held by value appear
//! (`resources: {}`, `status: {}`, `creationTimestamp: null`) and quantities become canonical. [`canonical`] does the
//! same to JSON. The shapes are facts about the API, one line for each type, in `types.txt`:
//!
//! ```text
//! core.EnvVar name:s! value:s valueFrom:*core.EnvVarSource
//! ```
//!
//! Codes: `s` text, `b` boolean, `i` and `l` integers of 32 and 64 bit, `f` float, `q` quantity, `t` time, `m` time with
//! microseconds, `x` integer or text, `d` duration, `y` bytes, `j` any JSON; `*T` may be absent, `[]T` list, `{}T` map
//! from text. A `!` says that the member is written even when it is empty.

use super::quantity::{self, Quantity};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::OnceLock;

const TYPES: &str = include_str!("types.txt");

/// What to do with members that a type does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Drop them, as a server does.
    Drop,
    /// Keep them: they may be newer than this build.
    Keep,
}

/// Why a value does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A value of another JSON type.
    #[error("json: cannot unmarshal {found} into Go {} of type {expected}", place(.owner, .path))]
    Type {
        /// What was found: `string`, `number`, `bool`, `object` or `array`.
        found: &'static str,
        /// The type that holds the member, without its package.
        owner: String,
        /// The way to the member, without list indices.
        path: String,
        /// The type the member has.
        expected: String,
    },
    /// A text that is no quantity.
    #[error(transparent)]
    Quantity(#[from] quantity::Error),
    /// A type that is not in the table.
    #[error("no shape is known for type {0}")]
    NoShape(String),
}

fn place(owner: &str, path: &str) -> String {
    if path.is_empty() { "value".to_owned() } else { format!("struct field {owner}.{path}") }
}

/// Whether the shape of a type (`core.Pod`, `apps.Deployment`) is known.
pub fn is_known(type_name: &str) -> bool {
    shapes().by_name.contains_key(type_name)
}

/// The type names (`core.Pod`) whose objects are served under a group and kind, if its shape is known.
pub fn type_of(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    let package = match (group, version) {
        ("", _) => "core",
        ("autoscaling", "v1") => "autoscaling1",
        ("rbac.authorization.k8s.io", _) => "rbac",
        ("admissionregistration.k8s.io", _) => "admission",
        ("apiregistration.k8s.io", _) => "apiregistration",
        ("authentication.k8s.io", _) => "authn",
        ("authorization.k8s.io", _) => "authz",
        (group, _) => group.strip_suffix(".k8s.io").unwrap_or(group),
    };
    shapes().by_name.get_key_value(format!("{package}.{kind}").as_str()).map(|(name, _)| *name)
}

/// All types with their members, as they are written down: `core.EnvVar` and `name:s! value:s …`.
pub fn types() -> impl Iterator<Item = (&'static str, &'static str)> {
    TYPES.lines().map(|line| line.split_once(' ').unwrap_or((line, "")))
}

/// Rewrites `value` as a server would encode it and returns the paths of unknown members
/// (`spec.containers[0].foo`), in the order of the object.
///
/// On an error `value` is unchanged.
pub fn canonical(type_name: &str, value: &mut Value, unknown: Unknown) -> Result<Vec<String>, Error> {
    let shapes = shapes();
    let index = *shapes.by_name.get(type_name).ok_or_else(|| Error::NoShape(type_name.to_owned()))?;
    let mut walk = Walk { shapes, unknown, found: Vec::new(), path: Vec::new() };
    let written = walk.write(&Type::Struct(index), value, "")?;
    let found = walk.found;
    *value = written;
    Ok(found)
}

/// The members of `value` that its type does not have.
pub fn unknown_members(type_name: &str, value: &Value) -> Result<Vec<String>, Error> {
    canonical(type_name, &mut value.clone(), Unknown::Drop)
}

#[derive(Debug, Clone)]
enum Type {
    Text,
    Bool,
    Int32,
    Int64,
    Float,
    Quantity,
    Time,
    MicroTime,
    IntOrString,
    Duration,
    Bytes,
    Any,
    Pointer(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
    Struct(usize),
}

struct Field {
    name: &'static str,
    kind: Type,
    /// Whether the member is left out when it is empty.
    optional: bool,
}

struct Shape {
    name: &'static str,
    fields: Vec<Field>,
    /// The fields' places in `fields`, by name.
    by_name: BTreeMap<&'static str, usize>,
    /// The places of fields that are written although they are absent.
    always: Vec<usize>,
}

impl Shape {
    fn new(name: &'static str, fields: Vec<Field>) -> Self {
        let by_name = fields.iter().enumerate().map(|(place, field)| (field.name, place)).collect();
        let always =
            fields.iter().enumerate().filter(|(_, field)| !field.is_left_out()).map(|(place, _)| place);
        Self { name, always: always.collect(), by_name, fields }
    }
}

impl Field {
    /// Whether the absent member is not written.
    fn is_left_out(&self) -> bool {
        self.optional
            && !matches!(
                self.kind,
                Type::Quantity
                    | Type::Time
                    | Type::MicroTime
                    | Type::IntOrString
                    | Type::Duration
                    | Type::Any
                    | Type::Struct(_)
            )
    }
}

struct Shapes {
    by_name: BTreeMap<&'static str, usize>,
    shapes: Vec<Shape>,
}

fn shapes() -> &'static Shapes {
    static SHAPES: OnceLock<Shapes> = OnceLock::new();
    SHAPES.get_or_init(|| {
        let lines = || TYPES.lines().filter_map(|line| line.split_once(' ').or(Some((line, ""))));
        let by_name: BTreeMap<&'static str, usize> =
            lines().enumerate().map(|(index, (name, _))| (name, index)).collect();
        let shapes = lines()
            .map(|(name, members)| {
                let fields =
                    members.split_whitespace().filter_map(|member| field(member, &by_name)).collect();
                Shape::new(name.rsplit('.').next().unwrap_or(name), fields)
            })
            .collect();
        Shapes { by_name, shapes }
    })
}

fn field(member: &'static str, by_name: &BTreeMap<&'static str, usize>) -> Option<Field> {
    let (name, code) = member.split_once(':')?;
    let (code, optional) = match code.strip_suffix('!') {
        Some(code) => (code, false),
        None => (code, true),
    };
    Some(Field { name, kind: kind(code, by_name)?, optional })
}

fn kind(code: &str, by_name: &BTreeMap<&'static str, usize>) -> Option<Type> {
    if let Some(inner) = code.strip_prefix('*') {
        return Some(Type::Pointer(Box::new(kind(inner, by_name)?)));
    }
    if let Some(inner) = code.strip_prefix("[]") {
        return Some(Type::List(Box::new(kind(inner, by_name)?)));
    }
    if let Some(inner) = code.strip_prefix("{}") {
        return Some(Type::Map(Box::new(kind(inner, by_name)?)));
    }
    Some(match code {
        "s" => Type::Text,
        "b" => Type::Bool,
        "i" => Type::Int32,
        "l" => Type::Int64,
        "f" => Type::Float,
        "q" => Type::Quantity,
        "t" => Type::Time,
        "m" => Type::MicroTime,
        "x" => Type::IntOrString,
        "d" => Type::Duration,
        "y" => Type::Bytes,
        "j" => Type::Any,
        name => Type::Struct(*by_name.get(name)?),
    })
}

enum Step<'v> {
    Member(&'v str),
    Index(usize),
}

struct Walk<'v> {
    shapes: &'static Shapes,
    unknown: Unknown,
    found: Vec<String>,
    path: Vec<Step<'v>>,
}

impl<'v> Walk<'v> {
    fn write(&mut self, kind: &Type, value: &'v Value, owner: &str) -> Result<Value, Error> {
        if value.is_null() {
            return Ok(self.zero(kind));
        }
        match (kind, value) {
            (Type::Pointer(inner), value) => self.write(inner, value, owner),
            (Type::Any, value) => Ok(value.clone()),
            (Type::Text | Type::Duration | Type::Bytes, Value::String(_)) | (Type::Bool, Value::Bool(_)) => {
                Ok(value.clone())
            }
            (Type::Time, Value::String(text)) => Ok(with_digits(text, 0).into()),
            (Type::MicroTime, Value::String(text)) => Ok(with_digits(text, 6).into()),
            (Type::Float, Value::Number(_)) => Ok(value.clone()),
            (Type::Int32, Value::Number(number)) => match integer(number) {
                Some(number) if i32::try_from(number).is_ok() => Ok(number.into()),
                _ => Err(self.mismatch(kind, value, owner)),
            },
            (Type::Int64, Value::Number(number)) => match integer(number) {
                Some(number) => Ok(number.into()),
                None => Err(self.mismatch(kind, value, owner)),
            },
            (Type::IntOrString, Value::String(_)) => Ok(value.clone()),
            (Type::IntOrString, Value::Number(_)) => self.write(&Type::Int32, value, owner),
            (Type::Quantity, Value::String(_) | Value::Number(_)) => {
                Ok(Value::String(Quantity::from_json(value)?.to_string()))
            }
            (Type::List(inner), Value::Array(items)) => {
                let mut written = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    self.path.push(Step::Index(index));
                    written.push(self.write(inner, item, owner)?);
                    self.path.pop();
                }
                Ok(Value::Array(written))
            }
            (Type::Map(inner), Value::Object(items)) => {
                let mut written = Map::new();
                for (key, item) in items {
                    self.path.push(Step::Member(key));
                    written.insert(key.clone(), self.write(inner, item, owner)?);
                    self.path.pop();
                }
                Ok(Value::Object(written))
            }
            (Type::Struct(index), Value::Object(members)) => self.members(*index, members),
            (kind, value) => Err(self.mismatch(kind, value, owner)),
        }
    }

    fn members(&mut self, index: usize, members: &'v Map<String, Value>) -> Result<Value, Error> {
        let Some(shape) = self.shapes.shapes.get(index) else { return Ok(Value::Object(members.clone())) };
        let mut written = Map::new();
        let mut present = Vec::with_capacity(members.len());
        for (name, value) in members {
            if let Some(place) = shape.by_name.get(name.as_str()) {
                present.push((*place, value));
                continue;
            }
            self.path.push(Step::Member(name));
            self.found.push(self.full_path());
            self.path.pop();
            if self.unknown == Unknown::Keep {
                written.insert(name.clone(), value.clone());
            }
        }
        // Of several mistakes the one in the first field of the type is told.
        present.sort_unstable_by_key(|(place, _)| *place);
        for (place, value) in &present {
            let Some(field) = shape.fields.get(*place) else { continue };
            self.path.push(Step::Member(field.name));
            let value = self.write(&field.kind, value, shape.name)?;
            self.path.pop();
            if !(field.optional && is_empty(&field.kind, &value)) {
                written.insert(field.name.to_owned(), value);
            }
        }
        for place in &shape.always {
            let absent = present.binary_search_by_key(place, |(place, _)| *place).is_err();
            if let Some(field) = shape.fields.get(*place).filter(|_| absent) {
                written.insert(field.name.to_owned(), self.zero(&field.kind));
            }
        }
        Ok(Value::Object(written))
    }

    /// What an absent value is written as.
    fn zero(&self, kind: &Type) -> Value {
        match kind {
            Type::Text | Type::Duration => Value::String(String::new()),
            Type::Bool => Value::Bool(false),
            Type::Int32 | Type::Int64 | Type::Float | Type::IntOrString => 0.into(),
            Type::Quantity => Value::String("0".to_owned()),
            Type::Time
            | Type::MicroTime
            | Type::Bytes
            | Type::Any
            | Type::Pointer(_)
            | Type::List(_)
            | Type::Map(_) => Value::Null,
            Type::Struct(index) => {
                let mut walk =
                    Walk { shapes: self.shapes, unknown: self.unknown, found: Vec::new(), path: Vec::new() };
                let nothing = Map::new();
                walk.members(*index, &nothing).unwrap_or_else(|_| Value::Object(Map::new()))
            }
        }
    }

    fn mismatch(&self, kind: &Type, value: &Value, owner: &str) -> Error {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let members = self.path.iter().filter_map(|step| match step {
            Step::Member(name) => Some(*name),
            Step::Index(_) => None,
        });
        Error::Type {
            found,
            owner: owner.to_owned(),
            path: members.collect::<Vec<_>>().join("."),
            expected: self.go_type(kind),
        }
    }

    fn go_type(&self, kind: &Type) -> String {
        match kind {
            Type::Text | Type::Duration => "string".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Int32 | Type::IntOrString => "int32".to_owned(),
            Type::Int64 => "int64".to_owned(),
            Type::Float => "float64".to_owned(),
            Type::Quantity => "resource.Quantity".to_owned(),
            Type::Time => "v1.Time".to_owned(),
            Type::MicroTime => "v1.MicroTime".to_owned(),
            Type::Bytes => "[]uint8".to_owned(),
            Type::Any => "runtime.RawExtension".to_owned(),
            Type::Pointer(inner) => self.go_type(inner),
            Type::List(inner) => format!("[]{}", self.go_type(inner)),
            Type::Map(inner) => format!("map[string]{}", self.go_type(inner)),
            Type::Struct(index) => {
                format!("v1.{}", self.shapes.shapes.get(*index).map_or("Object", |shape| shape.name))
            }
        }
    }

    fn full_path(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Member(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(name);
                }
                Step::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }
}

/// Whether a server leaves an optional member with this value out. Structs, times and quantities held by value
/// are never left out.
fn is_empty(kind: &Type, value: &Value) -> bool {
    match kind {
        Type::Text => value.as_str().is_some_and(str::is_empty),
        Type::Bool => value == &Value::Bool(false),
        Type::Int32 | Type::Int64 | Type::Float => value.as_f64() == Some(0.0),
        Type::List(_) => value.as_array().is_none_or(Vec::is_empty),
        Type::Map(_) => value.as_object().is_none_or(Map::is_empty),
        Type::Bytes => value.as_str().is_none_or(str::is_empty),
        Type::Pointer(_) => value.is_null(),
        Type::Quantity
        | Type::Time
        | Type::MicroTime
        | Type::IntOrString
        | Type::Duration
        | Type::Any
        | Type::Struct(_) => false,
    }
}

/// A time of UTC with this many digits after the second. Others, which no server writes, stay as they are.
fn with_digits(text: &str, digits: usize) -> String {
    let Some(time) = text.strip_suffix('Z') else { return text.to_owned() };
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    if digits == 0 {
        return format!("{whole}Z");
    }
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(digits).collect();
    format!("{whole}.{fraction}Z")
}

/// A JSON number as an integer; `80.0` counts, because YAML writers produce it.
fn integer(number: &serde_json::Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        #[expect(clippy::cast_possible_truncation, reason = "the next line checks that nothing was lost")]
        let integer = float as i64;
        #[expect(clippy::cast_precision_loss, reason = "compared with the number it came from")]
        let same = integer as f64 == float && float.abs() < 9e15;
        same.then_some(integer)
    })
}

#[cfg(test)]
mod tests;
