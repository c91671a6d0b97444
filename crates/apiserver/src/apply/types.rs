//! How objects of a kind merge: which objects have named members, which lists have keys, and what is one piece.

mod builtin;
mod custom;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::element::Element;

/// The types of one or more kinds, by number.
#[derive(Debug, Default)]
pub struct Schema {
    types: Vec<Type>,
}

/// How values merge.
#[derive(Debug)]
pub(super) enum Type {
    /// A single value of such a kind.
    Scalar(Scalar),
    /// An object.
    Map(MapType),
    /// A list.
    List(ListType),
    /// Anything: objects merge by member, lists are one piece.
    Any,
}

/// What a single value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Text,
    Number,
    Bool,
    Any,
}

/// An object.
#[derive(Debug, Default)]
pub(super) struct MapType {
    /// Whether it is one piece.
    pub(super) atomic: bool,
    /// The members that the type names.
    pub(super) fields: BTreeMap<Arc<str>, usize>,
    /// What other members are; none where there may be no others.
    pub(super) rest: Option<usize>,
}

/// A list.
#[derive(Debug)]
pub(super) struct ListType {
    pub(super) items: Items,
    pub(super) item: usize,
}

/// How the items of a list are told from each other.
#[derive(Debug)]
pub(super) enum Items {
    /// Not at all: the list is one piece.
    Atomic,
    /// By their values.
    Set,
    /// By some of their fields, which may have defaults.
    Keyed(Vec<(Arc<str>, Option<Value>)>),
}

/// One type of a schema.
#[derive(Clone, Copy, Debug)]
pub struct Typed<'s> {
    schema: &'s Schema,
    id: usize,
}

static ANYTHING: Schema = Schema { types: Vec::new() };
static ANY: Type = Type::Any;

/// What a value is, seen through its type.
pub(super) enum Form<'s> {
    /// One piece: a scalar, or something that is replaced as a whole.
    Leaf,
    /// An object whose members are told apart.
    Map,
    /// A list whose items are told apart.
    List(&'s ListType),
}

impl Schema {
    /// The type of a built-in kind.
    pub fn built_in(group: &str, version: &str, kind: &str) -> Typed<'static> {
        builtin::of(group, version, kind)
    }

    /// The types of a custom resource, from the `openAPIV3Schema` of its version.
    pub fn custom(schema: &Value) -> Self {
        custom::read(schema)
    }

    /// The type of whole objects of a custom resource.
    pub fn root(&self) -> Typed<'_> {
        Typed { schema: self, id: 0 }
    }

    fn add(&mut self, found: Type) -> usize {
        self.types.push(found);
        self.types.len() - 1
    }
}

impl<'s> Typed<'s> {
    /// The type of anything.
    pub fn anything() -> Typed<'static> {
        Typed { schema: &ANYTHING, id: usize::MAX }
    }

    pub(super) fn get(self) -> &'s Type {
        self.schema.types.get(self.id).unwrap_or(&ANY)
    }

    fn at(self, id: usize) -> Self {
        Self { schema: self.schema, id }
    }

    /// The form of a value. For null it is that of any other value of the type.
    pub(super) fn form(self, value: &Value) -> Form<'s> {
        match (self.get(), value) {
            (Type::Scalar(_), _) => Form::Leaf,
            (Type::Map(map), _) if map.atomic => Form::Leaf,
            (Type::List(list), _) if matches!(list.items, Items::Atomic) => Form::Leaf,
            (Type::Map(_), Value::Object(_) | Value::Null) => Form::Map,
            (Type::List(list), Value::Array(_) | Value::Null) => Form::List(list),
            (Type::Any, Value::Object(_) | Value::Null) => Form::Map,
            _ => Form::Leaf,
        }
    }

    /// The type of a member, and whether the type names it.
    pub(super) fn field(self, name: &str) -> (Self, bool) {
        match self.get() {
            Type::Map(map) => match (map.fields.get(name), map.rest) {
                (Some(id), _) => (self.at(*id), true),
                (None, Some(id)) => (self.at(id), false),
                (None, None) => (Typed { schema: &ANYTHING, id: usize::MAX }, false),
            },
            _ => (self.at(usize::MAX), false),
        }
    }

    /// The step to a member, sharing its name with the type where that names it.
    pub(super) fn step(self, name: &str) -> Element {
        if let Type::Map(map) = self.get()
            && let Some((known, _)) = map.fields.get_key_value(name)
        {
            return Element::Field(known.clone());
        }
        Element::field(name)
    }

    /// The type of the items.
    pub(super) fn item(self) -> Self {
        match self.get() {
            Type::List(list) => self.at(list.item),
            _ => self.at(usize::MAX),
        }
    }
}

impl ListType {
    /// The step to an item; or why there is none.
    pub(super) fn step(&self, item: &Value) -> Result<Element, String> {
        match &self.items {
            Items::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Items::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                value => Ok(Element::Value(Arc::new(value.clone()))),
            },
            Items::Keyed(keys) => {
                let fields = match item {
                    Value::Object(fields) => fields,
                    Value::Null => {
                        return Err("associative list with keys may not have a null element".to_owned());
                    }
                    _ => return Err("associative list with keys may not have non-map elements".to_owned()),
                };
                let found: Vec<(Arc<str>, Value)> = keys
                    .iter()
                    .filter_map(|(key, default)| {
                        let value = fields.get(key.as_ref()).or(default.as_ref())?;
                        Some((key.clone(), value.clone()))
                    })
                    .collect();
                if found.is_empty() {
                    let names: Vec<String> = keys.iter().map(|(key, _)| format!("\"{key}\"")).collect();
                    return Err(format!(
                        "associative list with keys has an element that omits all key fields [{}] (and doesn't have \
                         default values for any key fields)",
                        names.join(" ")
                    ));
                }
                Ok(Element::key(found))
            }
        }
    }
}
