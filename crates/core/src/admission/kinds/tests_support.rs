//! How rules of a kind are tried: a change of a base object goes the way that a request goes.

use kruise_api::gates::{Gate, Gates};
use serde_json::Value;

use super::{Context, Empty, mutate, validate};
use crate::admission::{Answer, Kind, Operation, Request};

/// Merges a change into a base object, fills in the defaults and judges the result. `expected` is the refusal, or empty.
/// With [`Operation::Update`] the base, with its defaults, is what is stored.
#[track_caller]
pub(crate) fn check(operation: Operation, base: &Value, change: Value, expected: &str) {
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
    json_patch::merge(&mut object, &change);
    let object = defaulted(&request(operation, object, stored_object.clone()), &context);
    let said = match validate(&request(operation, object, stored_object), &context) {
        Answer::Allowed { .. } => String::new(),
        Answer::Denied { code: 422, message } => message,
        Answer::Denied { code, message } => format!("{code} {message}"),
    };
    assert_eq!(said, expected);
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
