//! Schemas of custom kinds: the stored schema, with the members every object has.

use super::{API_VERSION_DESCRIPTION, Gvk, KIND_DESCRIPTION, OBJECT_META, reference, with_gvk};
use serde_json::{Map, Value, json};

pub(super) fn schema(gvk: &Gvk, stored: &Value) -> Value {
    let mut schema = match stored {
        Value::Object(members) if !members.is_empty() => members.clone(),
        // A kind without a schema takes everything.
        _ => Map::from_iter([("x-kubernetes-preserve-unknown-fields".to_owned(), Value::Bool(true))]),
    };
    schema.insert("type".to_owned(), "object".into());
    let properties = schema.entry("properties").or_insert_with(|| Map::new().into());
    if let Some(properties) = properties.as_object_mut() {
        properties.insert(
            "apiVersion".to_owned(),
            json!({"type": "string", "description": API_VERSION_DESCRIPTION}),
        );
        properties.insert("kind".to_owned(), json!({"type": "string", "description": KIND_DESCRIPTION}));
        properties.insert(
            "metadata".to_owned(),
            json!({"allOf": [reference(OBJECT_META)], "description": "Metadata that every object has."}),
        );
    }
    with_gvk(Value::Object(schema), gvk)
}
