//! Answers recorded from the original, with the few where we differ on purpose.

use std::sync::Arc;

use kruise_api::gates::{Gate, Gates};
use serde_json::{Value, json};

use crate::{
    admission::{
        Answer, Kind, Operation, Request,
        kinds::{Cluster, Context, mutate, validate},
    },
    volume_claim::StorageClass,
};

/// Storage classes: one that lets claims grow, one that does not, and one that says nothing.
struct Classes;

impl Cluster for Classes {
    fn storage_class(&self, name: &str) -> Option<Arc<StorageClass>> {
        let grows = match name {
            "exp" => json!(true),
            "noexp" => json!(false),
            "unset" => Value::Null,
            _ => return None,
        };
        let class = json!({"metadata": {"name": name}, "allowVolumeExpansion": grows});
        Some(Arc::new(serde_json::from_value(class).unwrap()))
    }
}

/// What a person gets who sends this: defaults first, then the rules.
fn send(operation: Operation, object: Value, old_object: Value, gates: &Gates) -> (Value, String) {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let context = Context { gates, allow_privileged: true, now, seed: 7, cluster: &Classes };
    let (_, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    let kind = Kind {
        group: "apps.kruise.io".to_owned(),
        version: version.to_owned(),
        kind: "StatefulSet".to_owned(),
    };
    let mut request =
        Request { kind, operation, object, old_object, namespace: "default".into(), ..Request::default() };
    if let Answer::Allowed { patch: Some(operations), .. } = mutate(&request, &context) {
        json_patch::patch(&mut request.object, &operations).unwrap();
    }
    let answer = match validate(&request, &context) {
        Answer::Allowed { .. } => "accepted".to_owned(),
        Answer::Denied { message, .. } | Answer::Held { message, .. } => message,
    };
    (request.object, answer)
}

/// An update of the base, which was created before.
fn update(base: Value, change: &Value, gates: &Gates) -> String {
    let (old, accepted) = send(Operation::Create, base, Value::Null, gates);
    assert_eq!(accepted, "accepted");
    let mut object = old.clone();
    json_patch::merge(&mut object, change);
    send(Operation::Update, object, old, gates).1
}

/// The errors of our answer, each with its path, its kind and its detail. Values are left out: Go prints them there.
fn errors(answer: &str) -> Vec<(String, String, String)> {
    let inner = answer.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(answer);
    let all = inner.replace(", spec", "\nspec").replace(", metadata", "\nmetadata");
    let read = |error: &str| {
        let mut parts = error.splitn(3, ": ");
        let (path, kind) = (parts.next()?, parts.next()?);
        let rest = parts.next().unwrap_or_default();
        let has_value = matches!(kind, "Invalid value" | "Unsupported value");
        let detail = if has_value { rest.split_once(": ").map_or("", |(_, detail)| detail) } else { rest };
        Some((path.to_owned(), kind.to_owned(), detail.to_owned()))
    };
    all.lines().filter_map(read).collect()
}

/// Whether our answer says what the recorded one does.
fn is_same(ours: &str, recorded: &str) -> bool {
    let count = |answer: &str| {
        let kinds = [": Invalid value: ", ": Required value", ": Forbidden: ", ": Unsupported value: "];
        kinds.iter().map(|kind| answer.matches(kind).count()).sum::<usize>()
    };
    if count(recorded) == 0 || ours == "accepted" {
        return ours == recorded;
    }
    count(ours) == count(recorded)
        && errors(ours).iter().all(|(path, kind, detail)| {
            recorded.contains(&format!("{path}: {kind}")) && recorded.contains(detail.as_str())
        })
}

/// Where we differ on purpose, with our answer.
const DEVIATIONS: &[(u32, &str)] = &[
    // The same once instead of twice.
    (
        18,
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"33.3%\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ),
    (
        27,
        "[spec: Invalid value: [\"3-\"]: 0 th reserve ordinal is not a valid range: 3-, spec: Invalid value: [\"3-\"]: 0 th reserve ordinal is invalid: 3-, err = invalid range 3-]",
    ),
    (
        34,
        "spec.scaleStrategy.maxUnavailable: Invalid value: \"x\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ),
    // The original accepts what cannot work.
    (39, "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"),
    (41, "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"),
    (
        42,
        "spec.volumeClaimUpdateStrategy.type: Unsupported value: \"Weird\": supported values: \"OnPodRollingUpdate\", \"OnDelete\"",
    ),
    // The API server would refuse every pod of these.
    (46, "spec.template.spec.containers: Required value"),
    (
        47,
        "[spec.template.spec.containers[0].name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), spec.template.spec.containers[0].image: Required value]",
    ),
    // Several pods may be updated at once with OrderedReady too.
    (55, "accepted"),
    (56, "accepted"),
    // The pull policy is no image.
    (
        70,
        "invalid template modified with InPlaceOnly strategy: replace /containers/0/imagePullPolicy, currently only image update is allowed for InPlaceOnly",
    ),
    (
        78,
        "invalid template modified with InPlaceOnly strategy: replace /containers/0/imagePullPolicy, currently only image update is allowed for InPlaceOnly",
    ),
];

/// How many answers were recorded.
const RECORDED: usize = 83;

/// The recorded answers of the API server itself, which no webhook of ours sees: negative replicas, a selector that is null
/// and fields that the schema does not have.
const BY_SERVER: &[u32] = &[1, 2, 50, 51, 61, 63, 64];

/// STATEFULSET-11, STATEFULSET-20, STATEFULSET-27, STATEFULSET-33 and STATEFULSET-47: what the API server itself does not
/// refuse before.
#[test]
fn answers_equal_those_of_the_original() {
    let (mut problems, mut compared, mut by_server) = (Vec::new(), 0, Vec::new());
    for line in include_str!("../../../../tests/recorded/statefulset-validation.tsv").lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let number: u32 = cells[0].parse().unwrap();
        if cells[4].starts_with("server: ") {
            by_server.push(number);
            continue;
        }
        let change: Value = serde_json::from_str(cells[3]).unwrap();
        let mut base = super::base();
        base["apiVersion"] = format!("apps.kruise.io/{}", cells[2]).into();
        let ours = if cells[1] == "create" {
            // These were tried with the other policy.
            if (55..=60).contains(&number) {
                base["spec"]["podManagementPolicy"] = "OrderedReady".into();
            }
            json_patch::merge(&mut base, &change);
            send(Operation::Create, base, Value::Null, &Gates::default()).1
        } else {
            base["spec"]["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] = "InPlaceOnly".into();
            update(base, &change, &Gates::default())
        };
        let deviation = DEVIATIONS.iter().find(|(known, _)| *known == number).map(|(_, answer)| *answer);
        if !deviation.map_or_else(|| is_same(&ours, cells[4]), |answer| ours == answer) {
            problems.push(format!("{number} {}\n  {ours}\n  {}", cells[3], deviation.unwrap_or(cells[4])));
        } else if deviation.is_some() && is_same(&ours, cells[4]) {
            problems.push(format!("{number} is no deviation"));
        }
        compared += 1;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(by_server, BY_SERVER);
    assert_eq!(compared + by_server.len(), RECORDED);
}

/// STATEFULSET-44: changes of claim templates, where claims grow with them. A class that does not say that its claims can grow
/// is one whose claims cannot: the original accepts the change and fails later.
#[test]
fn changes_of_claim_templates_are_answered_as_by_the_original() {
    let gates = Gates::default().with(Gate::StatefulSetAutoResizePVCGate);
    let claims = |name: &str, mode: &str, class: &str, size: &str| {
        json!({"metadata": {"name": name}, "spec": {"accessModes": [mode], "storageClassName": class,
            "resources": {"requests": {"storage": size}}}})
    };
    let (mut problems, mut compared) = (Vec::new(), 0);
    for line in include_str!("../../../../tests/recorded/statefulset-claims-validation.tsv").lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let class = match cells[0] {
            "roll" | "ond" => "exp",
            "nox" => "noexp",
            "gone" => "missing",
            other => other,
        };
        let kept = || claims("data", "ReadWriteOnce", class, "2Gi");
        // The first two rows of each set are its creation and what was stored.
        let templates = match cells[1] {
            "bigger" => json!([claims("data", "ReadWriteOnce", class, "3Gi")]),
            "smaller" => json!([claims("data", "ReadWriteOnce", class, "1Gi")]),
            "added" => json!([kept(), claims("more", "ReadWriteOnce", class, "2Gi")]),
            "renamed" => json!([claims("other", "ReadWriteOnce", class, "2Gi")]),
            "access modes" => json!([claims("data", "ReadWriteMany", class, "2Gi")]),
            "class" => json!([claims("data", "ReadWriteOnce", "another", "2Gi")]),
            _ => continue,
        };
        let mut base = super::base();
        let kind = if cells[0] == "ond" { "OnDelete" } else { "OnPodRollingUpdate" };
        base["spec"]["volumeClaimUpdateStrategy"] = json!({"type": kind});
        base["spec"]["volumeClaimTemplates"] = json!([kept()]);
        let ours = update(base, &json!({"spec": {"volumeClaimTemplates": templates}}), &gates);
        let expected = match (cells[0], cells[1]) {
            ("unset", "bigger" | "smaller") => {
                "spec.volumeClaimTemplates[data].spec.resources.requests.storage: Forbidden: storage class unset does not \
                 support volume expansion"
            }
            _ => cells[2],
        };
        if !is_same(&ours, expected) {
            problems.push(format!("{} {}\n  {ours}\n  {expected}", cells[0], cells[1]));
        }
        compared += 1;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(compared, 30);
}
