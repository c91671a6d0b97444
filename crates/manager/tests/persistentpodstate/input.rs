//! What is refused.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    home::{Home, NATIVE, OWN, ZONE, merged},
    stage::{Stage, managed},
};

/// PPS-11, PPS-12, PPS-13: one object for each workload, for supported kinds, with weights that pods may have.
async fn objects_that_cannot_work_are_refused(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "refused", NATIVE).await;
    home.create(stage, home.state_of("first", &json!({}))).await;
    let refused =
        async |change: Value| -> String { stage.create(home.state_of("second", &change)).await.unwrap_err() };
    let other = json!({"spec": {"targetRef": {"name": "other"}}});
    assert!(
        refused(json!({})).await.contains("targetRef is in conflict with other PersistentPodState first")
    );
    let deployment = json!({"spec": {"targetRef": {"kind": "Deployment"}}});
    let text = "targetRef.Kind must be StatefulSet or in PPS_Watch_Custom_Workload_WhiteList";
    assert!(refused(deployment).await.contains(text));
    for weight in [0, 101] {
        let wish = json!([{"weight": weight, "preference": {"keys": [ZONE]}}]);
        let said =
            refused(merged(other.clone(), &json!({"spec": {"preferredPersistentTopology": wish}}))).await;
        let text = format!(
            "spec.preferredPersistentTopology[0].weight: Invalid value: {weight}: must be in the range 1-100"
        );
        assert!(said.starts_with("422 ") && said.contains(&text), "{said}");
    }
    let first = home.state_of("first", &json!({}));
    for change in [other, json!({"spec": {"targetRef": {"apiVersion": "apps/v1beta2"}}})] {
        let said = stage.patch(&first, &change).await.unwrap_err();
        assert!(said.ends_with("spec.targetRef: Forbidden: targetRef is immutable"), "{said}");
    }
    Ok(())
}
managed!(objects_that_cannot_work_are_refused, []);

/// All answers that were recorded from the original: what it refuses is refused, by the same side, and what it accepts is
/// accepted but for what is known not to work.
async fn recorded_answers_are_given(stage: &mut Stage) -> Outcome {
    let differs = ["required with empty keys", "weight 0", "weight 101", "v1alpha1 weight -1"];
    let home = Home::prepare(stage, "recorded", OWN).await;
    let base = json!({"apiVersion": OWN, "kind": "PersistentPodState",
        "metadata": {"name": "pps", "namespace": home.sandbox.namespace()},
        "spec": {"targetRef": {"apiVersion": OWN, "kind": "StatefulSet", "name": "s"},
            "requiredPersistentTopology": {"keys": ["zone"]}}});
    let mut count = 0;
    for line in include_str!("../../../core/tests/recorded/persistentpodstate-validation.tsv").lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let (case, recorded) = (cells[0], cells[3]);
        let Ok(change) = serde_json::from_str::<Value>(cells[1]) else { continue };
        // What depends on other objects has scenarios of its own.
        if case.starts_with("update: ") || case.contains("same target") || case.contains("same kind") {
            continue;
        }
        let object = merged(base.clone(), &change);
        let answer = stage.create(object.clone()).await;
        match (&answer, recorded) {
            (Ok(_), "ACCEPTED") => assert!(!differs.contains(&case), "{case}"),
            (Err(said), "ACCEPTED") => assert!(differs.contains(&case), "{case}: {said}"),
            (Err(said), recorded) => {
                let by_webhook = recorded.starts_with("admission webhook");
                assert_eq!(said.contains("admission webhook"), by_webhook, "{case}: {said}");
                assert!(said.starts_with("422 "), "{case}: {said}");
            }
            (Ok(_), _) => panic!("{case} was accepted"),
        }
        if answer.is_ok() {
            home.sandbox.delete_any(object).await;
        }
        count += 1;
    }
    assert_eq!(count, 20);
    Ok(())
}
managed!(recorded_answers_are_given, []);
