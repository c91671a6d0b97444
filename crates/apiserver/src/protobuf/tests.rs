use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::table::{Empty, Message, Table, Type};
use super::*;

/// Small numbers from one seed, for objects that are made by the table.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn word(&mut self) -> String {
        const LETTERS: [&str; 8] = ["a", "b", "-", "0", "ä", "\n", "\u{0}", "日"];
        (0..1 + self.below(4)).map(|_| LETTERS[self.below(8) as usize]).collect()
    }
}

/// An object as a Go server writes it: members that are empty are left out, or there, as the table says.
fn random(dice: &mut Dice, message: &Message, depth: usize) -> Map<String, Value> {
    let mut members = Map::new();
    for field in &message.fields {
        if let Type::Inline(index) = field.kind {
            let inner = Table::get().message(index).unwrap();
            members.extend(random(dice, inner, depth));
            continue;
        }
        let by_value = matches!(
            field.kind,
            Type::Message(_) | Type::Quantity | Type::Time | Type::MicroTime | Type::IntOrString | Type::Json
        );
        let there = by_value || field.empty == Empty::Written;
        if field.empty == Empty::AlwaysLeftOut && dice.below(2) == 0
            || !there && dice.below(3 + depth as u64) > 0
        {
            continue;
        }
        // Emptiness of what is no pointer cannot be told from absence.
        let value = value(dice, &field.kind, depth);
        let is_null = value.is_null();
        if there || !is_null {
            members.insert(field.name.to_owned(), value);
        }
    }
    members
}

fn value(dice: &mut Dice, kind: &Type, depth: usize) -> Value {
    match kind {
        Type::Text => dice.word().into(),
        Type::Bool => true.into(),
        Type::Int32 => [1, -1, i32::MAX, i32::MIN, 80][dice.below(5) as usize].into(),
        Type::Int64 => [1, -1, i64::MAX, i64::MIN, 300][dice.below(5) as usize].into(),
        Type::Float => [json!(1.5), json!(-7), json!(1e-9)][dice.below(3) as usize].clone(),
        Type::Quantity => ["100m", "1Gi", "0", "1500k", "-3"][dice.below(5) as usize].into(),
        Type::Time => ["2026-01-01T00:00:00Z", "1969-12-31T23:59:59Z"][dice.below(2) as usize].into(),
        Type::MicroTime => {
            ["2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.123456Z"][dice.below(2) as usize].into()
        }
        Type::IntOrString => [json!(0), json!(8080), json!("25%"), json!("")][dice.below(4) as usize].clone(),
        Type::Bytes => ["AA==", "/w8=", "YWJj"][dice.below(3) as usize].into(),
        Type::Json => [json!({"a": [1, "x", null]}), json!("x"), json!(7)][dice.below(3) as usize].clone(),
        Type::Words => json!([dice.word(), dice.word()]),
        Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrStrings => schema_or(dice, kind, depth),
        Type::Message(index) | Type::Inline(index) => {
            let message = Table::get().message(*index).unwrap();
            // A message that holds itself ends somewhere.
            let depth = depth + 1;
            if depth > 8 { sparse(message) } else { Value::Object(random(dice, message, depth)) }
        }
        Type::Pointer(inner) => match inner.as_ref() {
            Type::Message(_) if depth > 7 => Value::Null,
            Type::Bool => (dice.below(2) == 0).into(),
            Type::Text => ["", "x"][dice.below(2) as usize].into(),
            Type::Int32 | Type::Int64 => [0, 5][dice.below(2) as usize].into(),
            inner => value(dice, inner, depth),
        },
        Type::List(_) | Type::Map(_) if depth > 7 => Value::Null,
        Type::List(inner) => {
            (0..1 + dice.below(2)).map(|_| value(dice, inner, depth)).collect::<Vec<_>>().into()
        }
        Type::Map(inner) => {
            let entries = (0..1 + dice.below(2)).map(|_| (dice.word(), value(dice, inner, depth)));
            Value::Object(entries.collect())
        }
    }
}

fn schema_or(dice: &mut Dice, kind: &Type, depth: usize) -> Value {
    let schema =
        if depth > 6 { json!({}) } else { value(dice, &Type::Message(Table::get().schema), depth + 2) };
    match (kind, dice.below(2)) {
        (_, 0) => schema,
        (Type::SchemaOrBool, _) => (dice.below(2) == 0).into(),
        (Type::SchemaOrStrings, _) => json!([dice.word()]),
        _ => json!([schema]),
    }
}

/// A message with nothing but what JSON always has.
fn sparse(message: &Message) -> Value {
    Value::Object(read::object(message, &[]).unwrap())
}

fn api_version(package: &str) -> &'static str {
    match package {
        "core" | "meta" => "v1",
        "apps" => "apps/v1",
        "batch" => "batch/v1",
        "autoscaling1" => "autoscaling/v1",
        "autoscaling" => "autoscaling/v2",
        "policy" => "policy/v1",
        "rbac" => "rbac.authorization.k8s.io/v1",
        "networking" => "networking.k8s.io/v1",
        "discovery" => "discovery.k8s.io/v1",
        "events" => "events.k8s.io/v1",
        "coordination" => "coordination.k8s.io/v1",
        "node" => "node.k8s.io/v1",
        "scheduling" => "scheduling.k8s.io/v1",
        "storage" => "storage.k8s.io/v1",
        "admission" => "admissionregistration.k8s.io/v1",
        "authn" => "authentication.k8s.io/v1",
        "authz" => "authorization.k8s.io/v1",
        "certificates" => "certificates.k8s.io/v1",
        "apiextensions" => "apiextensions.k8s.io/v1",
        "apiregistration" => "apiregistration.k8s.io/v1",
        other => panic!("no such package: {other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_kind_survives_the_journey(seed in 1_u64..) {
        let table = Table::get();
        for kind in table.kinds().filter(|kind| !kind.ends_with("List")) {
            let (package, name) = kind.split_once('.').unwrap();
            let api_version = api_version(package);
            let message = table.of(api_version, name).unwrap();
            let mut object = random(&mut Dice(seed), message, 0);
            object.insert("apiVersion".to_owned(), json!(api_version));
            object.insert("kind".to_owned(), json!(name));
            let object = Value::Object(object);
            let bytes = encode(&object).unwrap();
            let back = decode(&bytes, "", "").unwrap();
            prop_assert_eq!(&back, &object, "{}", kind);
            // One object has one form.
            prop_assert_eq!(encode(&back).unwrap(), bytes);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut body = PREFIX.to_vec();
        body.extend(&bytes);
        let _ = decode(&body, "v1", "Pod");
        let message = Table::get().of("v1", "Pod").unwrap();
        let _ = read::object(message, &bytes);
    }

    /// Bytes that were right once and are changed or cut in one place.
    #[test]
    fn damaged_objects_are_read_or_refused(seed in 1_u64.., at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let message = Table::get().of("apps/v1", "Deployment").unwrap();
        let mut object = random(&mut Dice(seed), message, 0);
        object.insert("apiVersion".to_owned(), json!("apps/v1"));
        object.insert("kind".to_owned(), json!("Deployment"));
        let mut bytes = encode(&Value::Object(object)).unwrap();
        let at = at.index(bytes.len());
        let _ = decode(&bytes[..at], "", "");
        bytes[at] = byte;
        let _ = decode(&bytes, "", "");
    }
}

fn pod(content: &[u8]) -> Result<Value, Fault> {
    let mut out = Backward::default();
    envelope(&mut out, "v1", "Pod", |out| {
        out.raw(content);
        Ok(())
    })
    .unwrap();
    decode(&out.finish(), "", "")
}

#[track_caller]
fn refused(body: &[u8], expected: &str) {
    assert_eq!(decode(body, "v1", "Pod").unwrap_err().to_string(), expected);
}

#[test]
fn faults_are_told_as_a_go_server_tells_them() {
    refused(b"", "empty data");
    refused(b"k8s\0", "empty body");
    refused(b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
    refused(b"k8s\0\x0a\x05", "unexpected EOF");
    refused(b"k8s\0\x08\x01", "proto: wrong wireType = 0 for field TypeMeta");
    let faults: [(&[u8], &str); 8] = [
        (b"\x0a\x7f", "unexpected EOF"),
        (b"\x08\x01", "proto: wrong wireType = 0 for field ObjectMeta"),
        (b"\x12\x02\x10\x01", "proto: wrong wireType = 0 for field Containers"),
        (b"\x0c", "proto: Pod: wiretype end group for non-group"),
        (b"\x00\x00", "proto: Pod: illegal tag 0 (wire type 0)"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: integer overflow"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: negative length found during unmarshaling"),
        (b"\x0e", "proto: illegal wireType 6"),
    ];
    for (content, expected) in faults {
        let fault = pod(content).unwrap_err();
        assert_eq!(fault.to_string(), expected, "{content:?}");
        assert!(matches!(fault, Fault::Content { .. }));
    }
}

#[test]
fn fields_from_the_future_are_passed_over() {
    // Number 999 as number, text, 64 bit, 32 bit and a group in a group; then the name of the pod.
    let future = b"\xb8\x3e\x01\xba\x3e\x01x\xb9\x3e12345678\xbd\x3e1234\xbb\x3e\x0b\x08\x01\x0c\xbc\x3e";
    let mut content = future.to_vec();
    content.extend(b"\x0a\x03\x0a\x01p");
    assert_eq!(pod(&content).unwrap()["metadata"], json!({"name": "p"}));
}

#[test]
fn parts_of_one_message_come_together() {
    let object = pod(b"\x0a\x03\x0a\x01p\x0a\x03\x1a\x01n").unwrap();
    assert_eq!(object["metadata"], json!({"name": "p", "namespace": "n"}));
}

#[test]
fn numbers_may_come_in_a_block() {
    // The groups of a pod's security context, packed.
    let object = pod(b"\x12\x06\x72\x04\x22\x02\x01\x02").unwrap();
    assert_eq!(object["spec"]["securityContext"]["supplementalGroups"], json!([1, 2]));
}

#[test]
fn nesting_and_counts_have_limits() {
    // A schema in a schema in a schema.
    let mut out = Backward::default();
    for _ in 0..10_000 {
        out.close(28, 0);
    }
    let deep = out.finish();
    let message = Table::get().message(Table::get().schema).unwrap();
    assert_eq!(read::object(message, &deep).unwrap_err(), "exceeded max depth");
    // Three megabytes of empty claims, each of which would become a dozen values.
    let claims = b"\x22\x00".repeat(1_500_000);
    let message = Table::get().named("apps.StatefulSetSpec").unwrap();
    assert_eq!(read::object(message, &claims).unwrap_err(), "the object has more than 400000 values");
}

#[test]
fn an_object_inside_an_object_may_be_protobuf_too() {
    let inner = encode(
        &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "data": {"a": "b"}}),
    )
    .unwrap();
    let mut out = Backward::default();
    out.nested(2, |out| {
        out.bytes(1, &inner);
        Ok::<_, String>(())
    })
    .unwrap();
    let message = Table::get().of("apps/v1", "ControllerRevision").unwrap();
    let object = read::object(message, &out.finish()).unwrap();
    assert_eq!(object["data"]["data"], json!({"a": "b"}));
    assert_eq!(object["data"]["kind"], "ConfigMap");
}

#[test]
fn values_that_do_not_fit_are_named() {
    let object = json!({"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"name": 7}]}});
    let error = encode(&object).unwrap_err().to_string();
    assert_eq!(error, "Pod has no form in protobuf: spec.containers.name does not fit");
    assert!(encode(&json!({"kind": "Foo", "apiVersion": "example.com/v1"})).is_err());
}

#[test]
fn lists_are_written_from_the_end() {
    let items = [json!({"metadata": {"name": "a"}}), json!({"metadata": {"name": "b"}})];
    let mut list = List::new("v1", "ConfigMapList").unwrap();
    for item in items.iter().rev() {
        list.prepend(item).unwrap();
    }
    let metadata = json!({"resourceVersion": "7"});
    let bytes = list.finish(&metadata).unwrap();
    let whole = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items});
    assert_eq!(bytes, encode(&whole).unwrap());
    assert_eq!(decode(&bytes, "", "").unwrap(), whole);
    assert!(List::new("v1", "ConfigMap").is_none());
}

/// Objects with the bytes that Go makes of them, and reads as them.
#[test]
fn bytes_are_those_of_go() {
    for line in include_str!("vectors.txt").lines() {
        let (json, hex) = line.split_once('\t').unwrap();
        let object: Value = serde_json::from_str(json).unwrap();
        let digits: Vec<char> = hex.chars().collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        assert_eq!(decode(&bytes, "", "").unwrap(), object);
        assert_eq!(encode(&object).unwrap(), bytes, "{json}");
    }
}
