use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kruise_api::gates::{Gate, Gates};
use serde_json::Value;

use crate::{
    cloneset::{Observed, plan, status},
    plan::{Failures, WriteBudget},
    pod::{Metadata, Pod},
    revision::Revision,
    waiting::Waits,
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
        now,
        gates: Arc::new(gates),
        exclude_preparing_delete: false,
        write_budget: WriteBudget::default(),
        refusals: Default::default(),
        resize_subresource: true,
        seed: 1,
    }
}

fn later() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

/// INPLACE-32, CLONESET-49: what the original left at rest is left alone. In the status, conditions that it never clears are
/// removed, and counts of zero are written, which it leaves out and some programs wait for.
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
        if !plan.steps.is_empty() || !plan.failures.is_empty() {
            problems.push(format!("{name}: {:?} {:?}", plan.steps, plan.failures));
        }
        let mut recorded = case["set"]["status"].clone();
        for count in ["updatedAvailableReplicas", "expectedUpdatedReplicas"] {
            recorded.as_object_mut().unwrap().entry(count).or_insert_with(|| 0.into());
        }
        if let Some(conditions) = recorded.get_mut("conditions").and_then(Value::as_array_mut) {
            conditions.retain(|condition| condition["type"] == "Progressing");
            if conditions.is_empty() {
                recorded.as_object_mut().unwrap().remove("conditions");
            }
        }
        let ours = serde_json::to_value(status(&seen, &Failures::default(), &Waits::default())).unwrap();
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
    // The condition `Waiting` reports the pod after ten seconds; the end of the grace period comes at 19:58:06.
    for (now, wakes_after) in [("2026-11-15T19:56:09Z", 7), ("2026-11-15T19:58:01Z", 5)] {
        let waiting = plan(&seen(&line, now.parse().unwrap(), Gates::default()));
        let seconds = std::time::Duration::from_secs(wakes_after);
        assert_eq!((waiting.steps.len(), waiting.wake_after), (0, Some(seconds)), "at {now}");
    }
    let late = plan(&seen(&line, "2026-11-15T19:58:07Z".parse().unwrap(), Gates::default()));
    let text = format!("{:?}", late.effects());
    assert!(
        late.steps.len() == 1 && text.contains("app:v2") && text.contains("inplace-update-grace"),
        "{text}"
    );
}
