//! The types of a custom resource, from the schema of its definition.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Items, ListType, MapType, Scalar, Schema, Type};

/// Reads a schema. The root is type 0.
pub(super) fn read(schema: &Value) -> Schema {
    let mut out = Schema { types: vec![Type::Any] };
    let mut reader = Reader { out: &mut out };
    let keeps = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let mut root = reader.object(schema, keeps);
    reader.add_meta(&mut root);
    if let Some(place) = out.types.first_mut() {
        *place = Type::Map(root);
    }
    out
}

struct Reader<'s> {
    out: &'s mut Schema,
}

impl Reader<'_> {
    /// `keeps`: something around it keeps unknown fields.
    fn value(&mut self, schema: &Value, keeps: bool) -> usize {
        let keeps = keeps || flag(schema, "x-kubernetes-preserve-unknown-fields");
        let found = match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
            "object" => {
                let mut map = self.object(schema, keeps);
                if flag(schema, "x-kubernetes-embedded-resource") {
                    self.add_meta(&mut map);
                }
                Type::Map(map)
            }
            "array" => {
                let item = schema.get("items").map_or(usize::MAX, |items| self.value(items, keeps));
                Type::List(ListType { items: items(schema), item })
            }
            "string" => Type::Scalar(Scalar::Text),
            "integer" | "number" => Type::Scalar(Scalar::Number),
            "boolean" => Type::Scalar(Scalar::Bool),
            _ => Type::Any,
        };
        self.out.add(found)
    }

    fn object(&mut self, schema: &Value, keeps: bool) -> MapType {
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut map = MapType {
            atomic: schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
            ..MapType::default()
        };
        for (name, schema) in properties.into_iter().flatten() {
            let id = self.value(schema, keeps);
            map.fields.insert(Arc::from(name.as_str()), id);
        }
        map.rest = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(usize::MAX),
            Some(inner) => Some(self.value(inner, keeps)),
            None => (keeps || properties.is_none_or(Map::is_empty)).then_some(usize::MAX),
        };
        map
    }

    /// Whole objects have what every object has, whatever the schema says of it.
    fn add_meta(&mut self, map: &mut MapType) {
        let text = self.out.add(Type::Scalar(Scalar::Text));
        let metadata = self.metadata(text);
        for (name, id) in [("apiVersion", text), ("kind", text), ("metadata", metadata)] {
            map.fields.insert(Arc::from(name), id);
        }
    }

    fn metadata(&mut self, text: usize) -> usize {
        let number = self.out.add(Type::Scalar(Scalar::Number));
        let any = self.out.add(Type::Scalar(Scalar::Any));
        let texts = self.out.add(Type::Map(MapType { rest: Some(text), ..MapType::default() }));
        let finalizers = self.out.add(Type::List(ListType { items: Items::Set, item: text }));
        let flag = self.out.add(Type::Scalar(Scalar::Bool));
        let fields = ["apiVersion", "kind", "name", "uid"].map(|name| (Arc::from(name), text));
        let flags = ["blockOwnerDeletion", "controller"].map(|name| (Arc::from(name), flag));
        let owner = self.out.add(Type::Map(MapType {
            atomic: true,
            fields: fields.into_iter().chain(flags).collect(),
            rest: None,
        }));
        let keys = vec![(Arc::from("uid"), Some(Value::from("")))];
        let owners = self.out.add(Type::List(ListType { items: Items::Keyed(keys), item: owner }));
        let managed = self.out.add(Type::List(ListType { items: Items::Atomic, item: usize::MAX }));
        let members = [
            ("annotations", texts),
            ("creationTimestamp", any),
            ("deletionGracePeriodSeconds", number),
            ("deletionTimestamp", any),
            ("finalizers", finalizers),
            ("generateName", text),
            ("generation", number),
            ("labels", texts),
            ("managedFields", managed),
            ("name", text),
            ("namespace", text),
            ("ownerReferences", owners),
            ("resourceVersion", text),
            ("selfLink", text),
            ("uid", text),
        ];
        let fields = members.into_iter().map(|(name, id)| (Arc::from(name), id)).collect();
        self.out.add(Type::Map(MapType { fields, ..MapType::default() }))
    }
}

fn items(schema: &Value) -> Items {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => Items::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let default = |key: &str| {
                let found = schema.pointer("/items/properties").and_then(|all| all.get(key));
                found.and_then(|field| field.get("default")).cloned()
            };
            let keys = keys.into_iter().flatten().filter_map(Value::as_str);
            Items::Keyed(keys.map(|key| (Arc::from(key), default(key))).collect())
        }
        _ => Items::Atomic,
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}
