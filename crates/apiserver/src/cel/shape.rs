//! What is known about JSON before it is seen: its types, and how large it can become.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::{Type, escaped};

/// The largest request.
pub(crate) const MAX_REQUEST: u64 = 3 << 20;

/// What is known about one value. Parts are shared, as rules of an object and of its parts look at the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) of: Of,
    /// Most characters, items or members.
    pub(crate) max: u64,
    /// Least bytes as JSON.
    pub(crate) min_size: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Of {
    Dyn,
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    /// With a time of the day, or only a date.
    Timestamp {
        is_date: bool,
    },
    Duration,
    List {
        item: Arc<Shape>,
        is_set: bool,
    },
    Map(Arc<Shape>),
    /// By the names in JSON.
    Object(BTreeMap<String, Arc<Shape>>),
}

impl Shape {
    /// A value without parts.
    pub(crate) fn plain(of: Of, max: u64, min_size: u64) -> Self {
        Self { of, max, min_size }
    }

    /// A text, of at most so many bytes.
    pub(crate) fn text(max: Option<u64>) -> Self {
        Self::plain(Of::Text, max.unwrap_or(MAX_REQUEST - 2), 2)
    }

    /// A list, of at most so many items.
    pub(crate) fn list(item: Arc<Shape>, is_set: bool, max: Option<u64>) -> Self {
        let max = max.unwrap_or((MAX_REQUEST - 2) / (item.min_size + 1));
        Self { of: Of::List { item, is_set }, max, min_size: 2 }
    }

    /// A map, of at most so many members.
    pub(crate) fn map(value: Arc<Shape>, max: Option<u64>) -> Self {
        let max = max.unwrap_or((MAX_REQUEST - 2) / (value.min_size + 6));
        Self { of: Of::Map(value), max, min_size: 2 }
    }

    /// The type for expressions. Objects are named after where they are.
    pub(crate) fn to_type(&self, name: &str) -> Type {
        match &self.of {
            Of::Dyn => Type::Dyn,
            Of::Bool => Type::Bool,
            Of::Int => Type::Int,
            Of::Double => Type::Double,
            Of::Text => Type::Text,
            Of::Bytes => Type::Bytes,
            Of::Timestamp { .. } => Type::Timestamp,
            Of::Duration => Type::Duration,
            Of::List { item, .. } => Type::list(item.to_type(&format!("{name}.@idx"))),
            Of::Map(value) => Type::map(Type::Text, value.to_type(&format!("{name}.@elem"))),
            Of::Object(fields) => {
                let fields = fields.iter().filter_map(|(property, shape)| {
                    let field = escaped(property)?;
                    let of = shape.to_type(&format!("{name}.{field}"));
                    Some((field, of))
                });
                Type::object(name, fields)
            }
        }
    }
}
