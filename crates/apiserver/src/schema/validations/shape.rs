//! What expressions may know about values that a schema describes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::format::Format;
use super::super::node::{Additional, Kind, List, Node};
use crate::cel::shape::{MAX_REQUEST, Of, Shape};

/// The longest times and durations as JSON.
const LONGEST_TIME: u64 = 32;
/// A date as JSON.
const DATE: u64 = 12;

/// The shape of values; `None` for those that expressions do not see, because nothing is known about them.
pub(super) fn of(node: &Node) -> Option<Arc<Shape>> {
    let limits = node.limits.as_deref();
    let max_length = limits.and_then(|limits| limits.max_length);
    // Limits count characters, and a character may have four bytes.
    let bytes = max_length.map(|max| max.saturating_mul(4));
    let shape = match node.kind? {
        Kind::IntOrString => Shape::plain(Of::Dyn, bytes.unwrap_or(MAX_REQUEST - 2), 1),
        Kind::Boolean => Shape::plain(Of::Bool, 0, 4),
        Kind::Number => Shape::plain(Of::Double, 0, 1),
        Kind::Integer => Shape::plain(Of::Int, 0, 1),
        Kind::String => match limits.and_then(|limits| limits.format) {
            Some(Format::Byte) => Shape::plain(Of::Bytes, max_length.unwrap_or(MAX_REQUEST - 2), 2),
            Some(Format::Duration) => Shape::plain(Of::Duration, LONGEST_TIME, 3),
            Some(Format::Date) => Shape::plain(Of::Timestamp { is_date: true }, DATE, DATE),
            Some(Format::DateTime) => Shape::plain(Of::Timestamp { is_date: false }, LONGEST_TIME, 21),
            _ => {
                let words = limits.and_then(|limits| limits.allowed.as_ref()).map(|allowed| {
                    let lengths = allowed.iter().filter_map(|word| word.as_str()).map(str::len);
                    lengths.max().unwrap_or(0) as u64
                });
                Shape::text(bytes.or(words))
            }
        },
        Kind::Array => {
            let is_set = matches!(node.list, List::Set);
            Shape::list(of(node.items.as_ref()?)?, is_set, limits.and_then(|limits| limits.max_items))
        }
        Kind::Object => match &node.additional {
            Additional::Schema(value) => {
                Shape::map(of(value)?, limits.and_then(|limits| limits.max_properties))
            }
            _ => object(node),
        },
    };
    Some(Arc::new(shape))
}

fn object(node: &Node) -> Shape {
    let required = node.limits.as_ref().map(|limits| limits.required.as_slice()).unwrap_or_default();
    let mut fields = BTreeMap::new();
    // Braces are always there, and what is required and has no default.
    let mut min_size: u64 = 2;
    for (name, property) in &node.properties {
        let Some(shape) = of(property) else { continue };
        if required.contains(name) && property.default.is_none() {
            min_size = min_size.saturating_add(name.len() as u64).saturating_add(shape.min_size + 4);
        }
        fields.insert(name.clone(), shape);
    }
    if node.embedded && !describes_itself(node) {
        let text = || Arc::new(Shape::text(None));
        let names = [("name".to_owned(), text()), ("generateName".to_owned(), text())];
        let metadata = Shape::plain(Of::Object(names.into()), 0, 2);
        fields.insert("kind".to_owned(), text());
        fields.insert("apiVersion".to_owned(), text());
        fields.insert("metadata".to_owned(), Arc::new(metadata));
    }
    Shape::plain(Of::Object(fields), 0, min_size)
}

/// Whether a whole object says itself what expressions see of its type and its metadata.
fn describes_itself(node: &Node) -> bool {
    let is = |node: &Node, name: &str, kind: Kind| {
        node.properties.get(name).is_some_and(|property| property.kind == Some(kind))
    };
    is(node, "kind", Kind::String)
        && is(node, "apiVersion", Kind::String)
        && node.properties.get("metadata").is_some_and(|metadata| {
            metadata.kind == Some(Kind::Object)
                && is(metadata, "name", Kind::String)
                && is(metadata, "generateName", Kind::String)
        })
}
