//! Tables: what `kubectl get` shows, made on the server.
//!
//! A [`Printer`] knows the columns of one kind and turns an object into a row of cells. Built-in kinds have the columns
//! that a Kubernetes server gives them, custom ones have those of their definition.

mod builtin;
mod cluster;
mod config;
mod custom;
mod duration;
mod pod;
mod read;
mod workload;

pub use duration::human_duration;

use custom::CustomColumn;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::borrow::Cow;

/// How much of each object travels with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata, which is what clients get when they do not ask.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// Reads the `includeObject` parameter; nothing for a value that is not allowed.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "None" => Some(Self::None),
            "" | "Metadata" => Some(Self::Metadata),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: Cow<'static, str>,
    /// The type of the cells: `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: Cow<'static, str>,
    /// A finer type; `name` marks the column with the object's name.
    pub format: Cow<'static, str>,
    /// What the column shows.
    pub description: Cow<'static, str>,
    /// Zero is always shown, more only in wide output.
    pub priority: i64,
}

impl Column {
    const fn new(name: &'static str, kind: &'static str, priority: i64) -> Self {
        let name_column = matches!(name.as_bytes(), b"Name");
        Self {
            name: Cow::Borrowed(name),
            kind: Cow::Borrowed(kind),
            format: Cow::Borrowed(if name_column { "name" } else { "" }),
            description: Cow::Borrowed(if name_column { NAME_DESCRIPTION } else { "" }),
            priority,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

const NAME_DESCRIPTION: &str = "Name of the object, unique within its namespace.";

/// Prints the objects of one kind.
#[derive(Debug, Clone)]
pub struct Printer {
    cells: Cells,
}

#[derive(Debug, Clone)]
enum Cells {
    BuiltIn(&'static builtin::Kind),
    Custom(Vec<CustomColumn>),
}

impl Printer {
    /// The printer of a built-in kind. Kinds without columns of their own show name and creation time.
    pub fn built_in(group: &str, kind: &str) -> Self {
        Self { cells: Cells::BuiltIn(builtin::find(group, kind)) }
    }

    /// The printer of a custom kind, from the `additionalPrinterColumns` of its version. Without any, it shows name and age.
    pub fn custom(columns: &[Value]) -> Self {
        Self { cells: Cells::Custom(custom::columns(columns)) }
    }

    /// The columns.
    pub fn columns(&self) -> Vec<Column> {
        match &self.cells {
            Cells::BuiltIn(kind) => kind.columns.to_vec(),
            Cells::Custom(columns) => std::iter::once(Column::new("Name", "string", 0))
                .chain(columns.iter().map(|column| column.column.clone()))
                .collect(),
        }
    }

    /// The row of one object.
    pub fn row(&self, object: &Value, include: IncludeObject, now: Timestamp) -> Value {
        let cells = match &self.cells {
            Cells::BuiltIn(kind) => (kind.cells)(object, now),
            Cells::Custom(columns) => custom::cells(columns, object, now),
        };
        let mut row = json!({ "cells": cells });
        if let Some(row) = row.as_object_mut() {
            if let Some(conditions) = self.conditions(object) {
                row.insert("conditions".to_owned(), conditions);
            }
            match include {
                // A row without its object still has the member.
                IncludeObject::None => row.insert("object".to_owned(), Value::Null),
                IncludeObject::Metadata => row.insert(
                    "object".to_owned(),
                    json!({
                        "kind": "PartialObjectMetadata",
                        "apiVersion": "meta.k8s.io/v1",
                        "metadata": object.get("metadata").unwrap_or(&Value::Null),
                    }),
                ),
                IncludeObject::Object => row.insert("object".to_owned(), object.clone()),
            };
        }
        row
    }

    fn conditions(&self, object: &Value) -> Option<Value> {
        match &self.cells {
            Cells::BuiltIn(kind) if kind.kind == "Pod" => pod::conditions(object),
            _ => None,
        }
    }

    /// A whole table. `metadata` is that of the list; `headers` says whether the columns are part of it (in a watch,
    /// only in the first event).
    pub fn table<'a>(
        &self,
        metadata: Value,
        objects: impl IntoIterator<Item = &'a Value>,
        include: IncludeObject,
        headers: bool,
        now: Timestamp,
    ) -> Value {
        let rows = objects.into_iter().map(|object| self.row(object, include, now)).collect();
        self.table_of_rows(metadata, rows, headers)
    }

    /// A table from rows made before with [`Printer::row`].
    pub fn table_of_rows(&self, metadata: Value, rows: Vec<Value>, headers: bool) -> Value {
        let columns = match headers {
            true => self.columns().iter().map(Column::to_json).collect(),
            false => Value::Null,
        };
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        })
    }
}

#[cfg(test)]
mod tests;
