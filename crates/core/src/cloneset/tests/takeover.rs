use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kruise_api::gates::{Gate, Gates};
use serde_json::Value;

use crate::{
    cloneset::{Failures, Observed, Room, plan, status},
    pod::{Metadata, Pod},
    revision::Revision,
};

fn recorded() -> BTreeMap<String, Value> {
    include_str!("../../../tests/recorded/resting.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|case| {
            (
                case["case"].as_str().unwrap().to_owned()
                    + "/"
                    + case["set"]["metadata"]["name"].as_str().unwrap(),
                case,
            )
        })
        .collect()
}

fn seen(case: &Value, now: Timestamp, gates: Gates) -> Observed {
    let of = |kind: &'static str| {
        case["objects"].as_array().unwrap().iter().filter(move |one| one["kind"] == kind)
    };
    Observed {
        set: Arc::new(serde_json::from_value(case["set"].clone()).unwrap()),
        pods: of("Pod").map(|pod| Arc::new(serde_json::from_value::<Pod>(pod.clone()).unwrap())).collect(),
        claims: of("PersistentVolumeClaim")
            .map(|claim| Arc::new(serde_json::from_value::<Metadata>(claim["metadata"].clone()).unwrap()))
            .collect(),
        revisions: of("ControllerRevision").map(|one| Arc::new(Revision::read(one).unwrap())).collect(),
        jobs: Vec::new(),
        nodes: BTreeMap::new(),
        protected: Default::default(),
        now,
        gates: Arc::new(gates),
        exclude_preparing_delete: false,
        room: Room::default(),
        resize_subresource: true,
        seed: 1,
    }
}

fn later() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

/// INPLACE-32, CLONESET-49: what the original left at rest is left alone. Only conditions that it never clears may go.
#[test]
fn a_set_that_the_original_left_at_rest_is_not_written_to() {
    let (cases, mut problems) = (recorded(), Vec::new());
    for (name, case) in &cases {
        let mut gates = Gates::default();
        if name.starts_with("gate-resize") {
            gates = gates.with(Gate::InPlaceWorkloadVerticalScaling);
        }
        let seen = seen(case, later(), gates);
        let plan = plan(&seen);
        if !plan.effects.is_empty() || plan.failures != Failures::default() {
            problems.push(format!("{name}: {:?} {:?}", plan.effects, plan.failures));
        }
        let mut recorded = case["set"]["status"].clone();
        if let Some(conditions) = recorded.get_mut("conditions").and_then(Value::as_array_mut) {
            conditions.retain(|condition| condition["type"] == "Progressing");
            if conditions.is_empty() {
                recorded.as_object_mut().unwrap().remove("conditions");
            }
        }
        let ours = serde_json::to_value(status(&seen, &Failures::default(), &[])).unwrap();
        if ours != recorded {
            problems.push(format!("{name}: {ours}, not {recorded}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// INPLACE-15: the grace period of the original goes on where it was.
#[test]
fn a_grace_period_that_the_original_began_is_ended() {
    let line: Value = serde_json::from_str(include_str!("../../../tests/recorded/in-grace.json")).unwrap();
    let early = seen(&line, "2026-11-15T19:56:09Z".parse().unwrap(), Gates::default());
    let waiting = plan(&early);
    assert_eq!((waiting.effects.len(), waiting.wake_after), (0, Some(std::time::Duration::from_secs(117))));
    let late = plan(&seen(&line, "2026-11-15T19:58:07Z".parse().unwrap(), Gates::default()));
    let text = format!("{:?}", late.effects);
    assert!(
        late.effects.len() == 1 && text.contains("app:v2") && text.contains("inplace-update-grace"),
        "{text}"
    );
}
