//! Input that is refused, with its path and text.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    agent::{Agent, rolling},
    stage::{Stage, managed},
};

/// DAEMONSET-14, DAEMONSET-29, DAEMONSET-38: what is refused, and how it is said.
async fn bad_input_is_refused(stage: &mut Stage) -> Outcome {
    let agent = Agent::prepare(stage, "bad-input").await;
    let path = "spec.updateStrategy.rollingUpdate";
    let cases: Vec<(Value, String)> = vec![
        (rolling(json!({"maxUnavailable": "150%"})), format!("{path}.maxUnavailable: Invalid value")),
        (rolling(json!({"maxUnavailable": "5"})), format!("{path}.maxUnavailable: Invalid value")),
        (
            rolling(json!({"maxUnavailable": 0, "maxSurge": 0})),
            format!("{path}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"),
        ),
        (
            rolling(json!({"maxUnavailable": 1, "maxSurge": 1})),
            "may not be set when maxUnavailable is non-zero".to_owned(),
        ),
        (
            rolling(json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 0, "maxSurge": 1})),
            "must be 0 for InPlaceIfPossible type".to_owned(),
        ),
        (
            json!({"spec": {"selector": {"matchLabels": null}}}),
            "empty selector is invalid for daemonset".to_owned(),
        ),
        (
            json!({"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}}),
            "`selector` does not match template `labels`".to_owned(),
        ),
        (
            json!({"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}),
            "spec.template.spec.restartPolicy: Unsupported value".to_owned(),
        ),
        (
            json!({"spec": {"template": {"spec": {"activeDeadlineSeconds": 5}}}}),
            "activeDeadlineSeconds in DaemonSet is not Supported".to_owned(),
        ),
        (rolling(json!({"partition": -1})), format!("{path}.partition: Invalid value")),
    ];
    for (change, message) in cases {
        let refused = stage.create(agent.object(&change)).await.expect_err(&change.to_string());
        assert!(refused.starts_with("422 ") && refused.contains(&message), "{change}: {refused}");
    }
    agent.create(json!({})).await;
    let other = json!({"spec": {"selector": {"matchLabels": {"app": "other"}},
        "template": {"metadata": {"labels": {"app": "other"}}}}});
    let refused = agent.try_change(other).await.unwrap_err();
    assert!(
        refused.starts_with("422 ") && refused.contains("updates to daemonset spec for fields other than"),
        "{refused}"
    );
    Ok(())
}
managed!(bad_input_is_refused, []);
