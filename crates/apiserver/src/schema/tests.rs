use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::patch::strategic::tests::any_json;

/// A schema with `properties` under `spec`.
fn spec_schema(properties: Value) -> Structural {
    parse(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}))
}

#[track_caller]
fn parse(schema: Value) -> Structural {
    Structural::parse(&schema).unwrap()
}

/// Validates `{spec: {x: value}}` against a schema for `x`.
#[track_caller]
fn check(schema: Value, value: Value, expected: &[&str]) {
    let schema = spec_schema(json!({"x": schema}));
    let found: Vec<String> = schema
        .validate(&json!({"spec": {"x": value}}), &Path::root())
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, expected);
}

#[track_caller]
fn refused(schema: Value, expected: &[&str]) {
    let found: Vec<String> =
        Structural::parse_at(&schema, &Path::new("s")).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn types_are_checked() {
    check(json!({"type": "integer"}), json!(3), &[]);
    check(json!({"type": "integer"}), json!(3.0), &[]);
    check(json!({"type": "number"}), json!(3), &[]);
    check(json!({"type": "number"}), json!(u64::MAX), &[]);
    for large in [json!(9_223_372_036_854_775_808_u64), json!(1e30)] {
        check(
            json!({"type": "integer"}),
            large,
            &["spec.x: Invalid value: \"number\": spec.x in body must be of type integer: \"number\""],
        );
    }
    check(
        json!({"type": "integer"}),
        json!("string"),
        &["spec.x: Invalid value: \"string\": spec.x in body must be of type integer: \"string\""],
    );
    check(
        json!({"type": "string"}),
        json!(null),
        &["spec.x: Invalid value: \"null\": spec.x in body must be of type string: \"null\""],
    );
    check(json!({"type": "string", "nullable": true}), json!(null), &[]);
    check(
        json!({"type": "array", "items": {"type": "string"}}),
        json!(["a", 1]),
        &["spec.x[1]: Invalid value: \"integer\": spec.x[1] in body must be of type string: \"integer\""],
    );
    check(
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"k": true}),
        &["spec.x.k: Invalid value: \"boolean\": spec.x.k in body must be of type string: \"boolean\""],
    );
}

#[test]
fn an_int_or_string_takes_both() {
    let schema =
        || json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]});
    check(schema(), json!(1), &[]);
    check(schema(), json!("10%"), &[]);
    // A type beside it says nothing.
    let typed = || json!({"type": "string", "x-kubernetes-int-or-string": true});
    check(typed(), json!(1), &[]);
    check(typed(), json!("10%"), &[]);
    let schema = spec_schema(json!({"x": schema()}));
    let found = schema.validate(&json!({"spec": {"x": true}}), &Path::root());
    assert_eq!(
        found[0].to_string(),
        "spec.x: Invalid value: \"boolean\": spec.x in body must be of type integer,string: \"boolean\""
    );
    assert_eq!(
        found[1].to_string(),
        "<nil>: Invalid value: \"\": \"spec.x\" must validate at least one schema (anyOf)"
    );
}

#[test]
fn limits_are_checked() {
    check(
        json!({"type": "string", "enum": ["a", "b"]}),
        json!("x"),
        &["spec.x: Unsupported value: \"x\": supported values: \"a\", \"b\""],
    );
    check(
        json!({"type": "integer", "minimum": 0}),
        json!(-1),
        &["spec.x: Invalid value: -1: spec.x in body should be greater than or equal to 0"],
    );
    check(
        json!({"type": "integer", "maximum": 10, "exclusiveMaximum": true}),
        json!(10),
        &["spec.x: Invalid value: 10: spec.x in body should be less than 10"],
    );
    check(
        json!({"type": "integer", "multipleOf": 2}),
        json!(3),
        &["spec.x: Invalid value: 3: spec.x in body should be a multiple of 2"],
    );
    check(
        json!({"type": "string", "maxLength": 2}),
        json!("abc"),
        &["spec.x: Too long: may not be more than 2 bytes"],
    );
    check(
        json!({"type": "string", "minLength": 1}),
        json!(""),
        &["spec.x: Invalid value: \"\": spec.x in body should be at least 1 chars long"],
    );
    check(
        json!({"type": "string", "pattern": "^a+$"}),
        json!("b"),
        &["spec.x: Invalid value: \"b\": spec.x in body should match '^a+$'"],
    );
    check(
        json!({"type": "string", "format": "date-time"}),
        json!("b"),
        &["spec.x: Invalid value: \"b\": spec.x in body must be of type date-time: \"b\""],
    );
    check(json!({"type": "integer", "format": "int32"}), json!(5_000_000_000_i64), &[]);
    check(
        json!({"type": "array", "items": {"type": "integer"}, "maxItems": 1}),
        json!([1, 2]),
        &["spec.x: Too many: 2: must have at most 1 item"],
    );
    check(
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 1}),
        json!([]),
        &["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"],
    );
    check(
        json!({"type": "object", "minProperties": 1}),
        json!({}),
        &["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
    );
    check(json!({"type": "object", "required": ["a"]}), json!({}), &["spec.x.a: Required value"]);
}

#[test]
fn combinations_are_checked() {
    let alternatives = || json!([{"required": ["a"]}, {"required": ["b"]}]);
    check(json!({"type": "object", "oneOf": alternatives()}), json!({"a": 1}), &[]);
    check(
        json!({"type": "object", "oneOf": alternatives()}),
        json!({"a": 1, "b": 1}),
        &[
            "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ],
    );
    check(
        json!({"type": "object", "oneOf": alternatives()}),
        json!({}),
        &[
            "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found none valid",
            "spec.x.a: Required value",
        ],
    );
    check(
        json!({"type": "object", "allOf": alternatives()}),
        json!({"a": 1}),
        &[
            "spec.x.b: Required value",
            "<nil>: Invalid value: \"\": \"spec.x\" must validate all the schemas (allOf)",
        ],
    );
    check(
        json!({"type": "object", "not": {"required": ["a"]}}),
        json!({"a": 1}),
        &["<nil>: Invalid value: \"\": \"spec.x\" must not validate the schema (not)"],
    );
}

#[test]
fn lists_of_type_map_and_set_have_no_repeats() {
    check(
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}),
        json!([{"name": "a"}, {"name": "b"}, {"name": "a"}]),
        &["spec.x[2]: Duplicate value: {\"name\":\"a\"}"],
    );
    check(
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        json!(["a", "a"]),
        &["spec.x[1]: Duplicate value: \"a\""],
    );
}

#[test]
fn an_embedded_object_needs_its_type() {
    check(
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        json!({"kind": "Pod"}),
        &["spec.x.apiVersion: Required value: must not be empty"],
    );
}

#[test]
fn unknown_fields_are_dropped_and_named() {
    let schema = spec_schema(json!({
        "a": {"type": "integer"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"b": {"type": "object"}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"c": {"type": "string"}}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "string"}}}},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
    }));
    let mut object = json!({
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}, "top": 1,
        "spec": {
            "a": 1, "foo": 2,
            "open": {"any": {"thing": 1}, "b": {"gone": 1}},
            "map": {"k": {"c": "1", "e": 1}},
            "list": [{"d": "1", "f": 1}],
            "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"x": 1}, "spec": {"gone": 1}, "status": 1},
        },
    });
    assert_eq!(schema.unknown_fields(&object).first().unwrap(), "unknown field \"spec.foo\"");
    let unknown = schema.prune(&mut object);
    assert_eq!(
        unknown,
        [
            "spec.foo",
            "spec.list[0].f",
            "spec.map.k.e",
            "spec.open.b.gone",
            "spec.pod.spec.gone",
            "spec.pod.status",
            "top",
        ]
    );
    assert_eq!(
        object,
        json!({
            "apiVersion": "v1", "kind": "K", "metadata": {"name": "x"},
            "spec": {
                "a": 1,
                "open": {"any": {"thing": 1}, "b": {}},
                "map": {"k": {"c": "1"}},
                "list": [{"d": "1"}],
                "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"x": 1}, "spec": {}},
            },
        })
    );
}

#[test]
fn defaults_fill_in_and_replace_forbidden_nulls() {
    let schema = spec_schema(json!({
        "a": {"type": "integer", "default": 1},
        "b": {"type": "integer", "default": 2, "nullable": true},
        "c": {"type": "string"},
        "d": {"type": "object", "default": {}, "properties": {"e": {"type": "string", "default": "x"}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}},
    }));
    let mut object = json!({"spec": {"a": null, "b": null, "c": null, "l": [{}, {"p": "UDP"}]}});
    schema.apply_defaults(&mut object);
    assert_eq!(
        object,
        json!({"spec": {"a": 1, "b": null, "d": {"e": "x"}, "l": [{"p": "TCP"}, {"p": "UDP"}]}})
    );
    let mut object = json!({});
    schema.apply_defaults(&mut object);
    assert_eq!(object, json!({}), "a missing object is not created for the sake of its defaults");
}

#[test]
fn schemas_that_are_not_structural_are_refused() {
    refused(json!({}), &["s.type: Required value: must not be empty at the root"]);
    refused(json!({"type": "string"}), &["s.type: Invalid value: \"string\": must be object at the root"]);
    refused(
        json!({"type": "object", "properties": {"a": {"type": "array"}}}),
        &["s.properties[a].items: Required value: must be specified"],
    );
    refused(
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
        &[
            "s.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error: unclosed group",
        ],
    );
    refused(
        json!({"type": "object", "properties": {"a": {"type": "object", "anyOf": [{"type": "object"}]}}}),
        &["s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural"],
    );
    refused(
        json!({"type": "object", "properties": {"a": {"type": "text"}}}),
        &[
            "s.properties[a].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \
         \"number\", \"object\", \"string\"",
        ],
    );
    refused(
        json!({"type": "object", "properties": {"metadata": {"type": "object", "required": ["x"]}}}),
        &[
            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is \
         implicitly specified",
        ],
    );
    refused(
        json!({"type": "object", "properties": {"a": {"$ref": "#/x", "type": "string"}}}),
        &["s.properties[a].$ref: Forbidden: $ref is not supported"],
    );
}

#[test]
fn root_alternatives_limit_only_known_fields() {
    refused(
        json!({"type": "object", "anyOf": [{"properties": {"a": {"minimum": 1}}}]}),
        &["s.properties[a]: Required value: because it is defined in s.anyOf[0].properties[a]"],
    );
}

#[test]
fn defaults_must_fit_their_own_schema() {
    refused(
        json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
        &["s.properties[a].default: Invalid value: \"string\":  in body must be of type integer: \"string\""],
    );
    refused(
        json!({"type": "object", "properties": {"a": {"type": "object", "default": {"b": 1}}}}),
        &["s.properties[a].default: Invalid value: {\"b\":1}: must not have unknown fields"],
    );
}

#[test]
fn what_was_wrong_before_and_did_not_change_is_let_pass() {
    let schema = spec_schema(json!({
        "a": {"type": "integer", "minimum": 10},
        "b": {"type": "integer"},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], "items":
            {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}, "v": {"type": "integer", "minimum": 5}}}},
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    }));
    let old =
        json!({"spec": {"a": 1, "b": 1, "l": [{"n": "x", "v": 1}, {"n": "y", "v": 9}], "s": ["q", "q"]}});
    let check = |pointer: &str, value: Value, expected: usize| {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        assert_eq!(schema.validate_update(&new, &old, &Path::root()).len(), expected, "{pointer}");
    };
    check("/spec/b", json!(2), 0);
    check("/spec/a", json!(2), 1);
    check("/spec/l", json!([{"n": "y", "v": 10}, {"n": "x", "v": 1}]), 0);
    check("/spec/l/0/v", json!(2), 1);
    check("/spec/s", json!(["q", "q", "r", "r"]), 0);
    assert_eq!(schema.validate(&old, &Path::root()).len(), 3);
}

#[test]
fn deep_nesting_is_refused_without_exhausting_the_stack() {
    let deep = || (0..20_000).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    let mut object = json!({"spec": {"x": 1}});
    object["spec"]["x"] = deep();
    let schema = spec_schema(json!({"x": {"x-kubernetes-preserve-unknown-fields": true}}));
    assert_eq!(schema.validate(&object, &Path::root()).len(), 1);
    assert!(schema.prune(&mut object).is_empty());
    schema.apply_defaults(&mut object);
    assert!(Structural::parse(&object).is_err());
    // The drop of such a value is recursive too; take it apart level by level.
    let mut rest = object["spec"]["x"].take();
    while let Value::Array(mut items) = rest {
        rest = items.pop().unwrap_or_default();
    }
}

/// Schemas with the words that matter, mostly well-formed.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "minLength": 1, "enum": ["a", "b"]})),
        Just(json!({"type": "integer", "minimum": 0, "default": 3})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true})
        ),
        any_json(),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[a-c]", inner.clone(), 0..4).prop_map(
                |properties| json!({"type": "object", "properties": properties, "required": ["a"]})
            ),
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items, "x-kubernetes-list-type": "set"})),
            inner.clone().prop_map(|inner| json!({"type": "object", "additionalProperties": inner})),
            (inner.clone(), inner)
                .prop_map(|(a, b)| json!({"anyOf": [a, b], "x-kubernetes-preserve-unknown-fields": true})),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_and_no_object_panics(schema in any_schema(), object in any_json()) {
        let schema = json!({"type": "object", "properties": {"a": schema}});
        let schema = Structural::parse(&schema);
        if let Ok(schema) = schema {
            for mut object in [json!({"a": &object}), object] {
                schema.validate(&object, &Path::root());
                schema.apply_defaults(&mut object);
                schema.prune(&mut object);
                prop_assert!(schema.prune(&mut object).is_empty(), "a pruned object has nothing unknown");
                schema.apply_defaults(&mut object);
                let twice = object.clone();
                schema.apply_defaults(&mut object);
                prop_assert_eq!(&object, &twice);
            }
        }
        crd::validate(&json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": 1}}]}}));
    }
}

/// Nobody can own a part of an item of a set, and an item that is null is none.
#[test]
fn items_of_sets_are_whole_and_there() {
    let list = |list_type: &str, items: Value| {
        json!({"type": "object", "properties": {"l": {"type": "array",
        "x-kubernetes-list-type": list_type, "x-kubernetes-list-map-keys": if list_type == "map" { json!(["a"]) } else { json!([]) },
        "items": items}}})
    };
    let item = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    refused(
        list("set", item.clone()),
        &[&format!("s.properties[l].items.x-kubernetes-map-type: Invalid value: null: {why}")],
    );
    refused(
        list("set", json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})),
        &[&format!("s.properties[l].items.x-kubernetes-list-type: Invalid value: \"set\": {why}")],
    );
    let mut whole = item.clone();
    whole["x-kubernetes-map-type"] = json!("atomic");
    parse(list("set", whole));
    parse(list("map", item.clone()));
    for (list_type, mut items) in [("set", json!({"type": "string"})), ("map", item)] {
        items["nullable"] = json!(true);
        let why = format!(
            "s.properties[l].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is {list_type}"
        );
        refused(list(list_type, items), &[&why]);
    }
}
