//! Any object that a schema allows.

use kruise_api::{annotations, crd::Crd, labels};
use proptest::{collection, option, prelude::*, sample};
use serde_json::{Map, Value, json};

/// Any object of one version of a kind, with metadata that conversions look at.
pub(crate) fn object(crd: &'static Crd, version: &'static str) -> BoxedStrategy<Value> {
    let version = crd.versions.iter().find(|found| found.name == version).expect("the kind has this version");
    let schema = crd.schema(version);
    let part = |name: &str| value(&schema["properties"][name]);
    let api_version = format!("{}/{}", crd.group, version.name);
    (metadata(), part("spec"), option::of(part("status")))
        .prop_map(move |(metadata, spec, status)| {
            let mut object =
                json!({ "apiVersion": api_version, "kind": crd.kind, "metadata": metadata, "spec": spec });
            if let Some(status) = status {
                object["status"] = status;
            }
            object
        })
        .boxed()
}

/// Labels and annotations that mean something to some kind, and one that means nothing to anybody.
fn metadata() -> impl Strategy<Value = Value> {
    let names = |known: &[&'static str]| sample::select([known, &["example.com/other"]].concat());
    let texts = sample::select(vec![
        "true",
        "false",
        "3",
        "50%",
        "-1",
        "soon",
        "",
        "DELETE,EVICT",
        "2026-11-15T19:00:00Z",
    ]);
    let map = |known: &[&'static str]| collection::btree_map(names(known), texts.clone(), 0..3);
    (map(annotations::CONVERTED), map(labels::CONVERTED)).prop_map(|(annotations, labels)| {
        let mut metadata = json!({ "name": "any", "uid": "0b3c", "generation": 3 });
        if !annotations.is_empty() {
            metadata["annotations"] = json!(annotations);
        }
        if !labels.is_empty() {
            metadata["labels"] = json!(labels);
        }
        metadata
    })
}

/// Any value that a schema allows.
pub(crate) fn value(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(allowed) = schema["enum"].as_array() {
        return sample::select(allowed.clone()).boxed();
    }
    if schema["x-kubernetes-int-or-string"] == json!(true) {
        return prop_oneof![
            (-3..200_i64).prop_map(Value::from),
            sample::select(vec![json!("20%"), json!("33.3%"), json!("x")])
        ]
        .boxed();
    }
    let open = schema["x-kubernetes-preserve-unknown-fields"] == json!(true);
    match schema["type"].as_str() {
        Some("object") if open && schema["properties"].is_object() => (fields(schema), raw_object())
            .prop_map(|(mut known, raw)| {
                let (Value::Object(known), Value::Object(raw)) = (&mut known, raw) else { return known };
                for (key, value) in raw {
                    known.entry(key).or_insert(value);
                }
                Value::Object(std::mem::take(known))
            })
            .boxed(),
        Some("object") if open => raw_object().boxed(),
        Some("object") if schema["additionalProperties"].is_object() => {
            collection::btree_map("[a-z]{1,4}", value(&schema["additionalProperties"]), 0..3)
                .prop_map(|map| json!(map))
                .boxed()
        }
        Some("object") => fields(schema),
        Some("array") => collection::vec(value(&schema["items"]), 0..3).prop_map(Value::Array).boxed(),
        Some("string") if schema["format"] == "date-time" => {
            sample::select(vec!["2026-11-15T19:00:00Z", "2026-01-01T00:00:01Z"]).prop_map(Value::from).boxed()
        }
        Some("string") => "[a-z]{1,6}".prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("integer") => {
            let low = schema["minimum"].as_i64().unwrap_or(-2);
            (low..1000).prop_map(Value::from).boxed()
        }
        _ => raw_object().boxed(),
    }
}

fn fields(schema: &Value) -> BoxedStrategy<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let fields: Vec<BoxedStrategy<Option<(String, Value)>>> = properties
        .iter()
        .map(|(name, schema)| {
            let pair = value(schema).prop_map({
                let name = name.clone();
                move |value| (name.clone(), value)
            });
            let needed = required.contains(&json!(name));
            if needed { pair.prop_map(Some).boxed() } else { option::of(pair).boxed() }
        })
        .collect();
    fields.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect())).boxed()
}

/// An object that no schema describes: a template with fields newer than this build.
fn raw_object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z<>&é]{0,5}".prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            collection::btree_map("[a-z]{1,5}", inner, 0..3).prop_map(|map| json!(map)),
        ]
    });
    collection::btree_map(sample::select(vec!["metadata", "spec", "newField"]), tree, 0..3)
        .prop_map(|map| Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>()))
}
