//! How rules of a kind are tried: a change of a base object goes the way that a request goes.

use kruise_api::gates::{Gate, Gates};
use serde_json::Value;

use super::{Context, Empty, mutate, validate};
use crate::admission::{Answer, Kind, Operation, Request};

/// Merges a change into a base object, fills in the defaults and judges the result. `expected` is the refusal, or empty.
/// With [`Operation::Update`] the base, with its defaults, is what is stored.
#[track_caller]
pub(crate) fn check(operation: Operation, base: &Value, change: Value, expected: &str) {
    assert_eq!(answer(operation, base, &change).1, expected);
}

/// The same object with its defaults, and the refusal of it.
pub(crate) fn answer(operation: Operation, base: &Value, change: &Value) -> (Value, String) {
    let gates = Gates::default().with(Gate::ImagePullJobGate).with(Gate::ResourceDistributionGate);
    let context = Context {
        gates: &gates,
        allow_privileged: true,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        seed: 7,
        cluster: &Empty,
    };
    let (stored, stored_object) = match operation {
        Operation::Update => {
            let stored = defaulted(&request(Operation::Create, base.clone(), Value::Null), &context);
            (stored.clone(), stored)
        }
        _ => (base.clone(), Value::Null),
    };
    let mut object = stored;
    json_patch::merge(&mut object, change);
    let object = defaulted(&request(operation, object, stored_object.clone()), &context);
    let said = match validate(&request(operation, object.clone(), stored_object), &context) {
        Answer::Allowed { .. } => String::new(),
        Answer::Denied { code: 422, message } => message,
        Answer::Denied { code, message } | Answer::Held { code, message, .. } => format!("{code} {message}"),
    };
    (object, said)
}

/// Compares answers with recorded ones: rows of case, base, change and what was said, each as `path|kind|detail`. Values are
/// left out, because the original prints them as Go does. Bases named `*-update` are what is stored. Returns how many rows the base has.
#[track_caller]
pub(crate) fn recorded(rows: &str, base_name: &str, base: &Value, different: &[(&str, &str)]) -> usize {
    let (mut count, mut problems) = (0, Vec::new());
    for row in rows.lines().filter(|row| !row.starts_with('#')) {
        let mut columns = row.split('\t');
        let mut column = || columns.next().unwrap();
        let (case, of, change) = (column(), column(), column());
        if of != base_name {
            continue;
        }
        count += 1;
        let operation = if of.ends_with("-update") { Operation::Update } else { Operation::Create };
        let said = told(&answer(operation, base, &serde_json::from_str(change).unwrap()).1);
        let mut original: Vec<&str> = columns.collect();
        original.sort_unstable();
        let ours = different.iter().find(|(known, _)| *known == case).map(|(_, ours)| *ours);
        let expected = ours.map_or_else(|| original.join("\t"), str::to_owned);
        if said != expected {
            problems.push(format!("{case}\n  {said}\n  {expected}"));
        } else if ours.is_some() && said == original.join("\t") {
            problems.push(format!("{case} is no difference"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    count
}

/// The mistakes that a message names, without the values.
fn told(message: &str) -> String {
    if message.is_empty() {
        return "accepted".to_owned();
    }
    const KINDS: [&str; 5] =
        ["Required value", "Invalid value", "Unsupported value", "Duplicate value", "Forbidden"];
    let inner = message.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(message);
    let kind_of = |text: &str| KINDS.iter().copied().find(|kind| text.starts_with(kind));
    let mut found: Vec<String> = Vec::new();
    for part in inner.split(", ") {
        let is_new = part.split_once(": ").is_some_and(|(path, rest)| {
            let is_path = |letter: char| letter.is_ascii_alphanumeric() || ".[]".contains(letter);
            path.chars().all(is_path) && kind_of(rest).is_some()
        });
        match found.last_mut() {
            Some(last) if !is_new => last.push_str(&format!(", {part}")),
            _ => found.push(part.to_owned()),
        }
    }
    let line = |one: &String| {
        let Some((path, rest)) = one.split_once(": ") else { return one.clone() };
        let kind = kind_of(rest).unwrap_or(rest);
        let rest = rest.strip_prefix(kind).unwrap().trim_start_matches(": ");
        let detail = match kind {
            "Required value" | "Forbidden" => rest,
            _ => {
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                let is_value = values.next().is_some_and(|value| value.is_ok());
                let end = if is_value { values.byte_offset() } else { 0 };
                rest.get(end..).unwrap().trim_start_matches(": ")
            }
        };
        format!("{path}|{kind}|{detail}")
    };
    let mut lines: Vec<String> = found.iter().map(line).collect();
    lines.sort_unstable();
    lines.join("\t")
}

fn request(operation: Operation, object: Value, old_object: Value) -> Request {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap();
    let kind = object["kind"].as_str().unwrap().to_owned();
    let kind = Kind { group: group.to_owned(), version: version.to_owned(), kind };
    Request { kind, operation, object, old_object, ..Request::default() }
}

fn defaulted(request: &Request, context: &Context<'_>) -> Value {
    let Answer::Allowed { patch, .. } = mutate(request, context) else {
        panic!("refused before it was judged: {:?}", mutate(request, context));
    };
    let mut object = request.object.clone();
    json_patch::patch(&mut object, &patch.unwrap_or_default()).unwrap();
    object
}
