//! What a DaemonSet must look like, besides its selector and its pod template.

use kruise_api::{
    json,
    kubernetes::validation::{Violation, label_selector},
};
use serde_json::Value;

use crate::admission::{
    kinds::{Change, Context},
    rules,
};

/// What may be changed after a DaemonSet was made.
const CHANGEABLE: &[&str] = &[
    "burstReplicas",
    "template",
    "lifecycle",
    "scaleStrategy",
    "updateStrategy",
    "minReadySeconds",
    "revisionHistoryLimit",
];

/// Appends what is wrong. Rules that the original does not have look only at what the request changes, so that what is
/// stored can still be worked with.
pub fn rule(change: &Change<'_>, _: &Context<'_>, found: &mut Vec<Violation>) {
    let object = change.new;
    template(object, found);
    for field in ["minReadySeconds", "revisionHistoryLimit"] {
        rules::not_negative(found, object, &["spec", field]);
    }
    update_strategy(change, found);
    if json::at(object, &["spec", "lifecycle", "inPlaceUpdate"]).is_some() {
        let detail = "inPlaceUpdate hook has not supported yet";
        found.push(Violation::forbidden("spec.lifecycle.inPlaceUpdate", detail));
    }
    if change.touches(&["spec", "burstReplicas"]) {
        rules::int_or_percent_up_to_all(found, object, &["spec", "burstReplicas"]);
    }
    if change.old.is_some_and(|old| rules::differs_outside(old, object, CHANGEABLE)) {
        let detail = "updates to daemonset spec for fields other than 'BurstReplicas', 'template', 'lifecycle', \
             'scaleStrategy', 'updateStrategy', 'minReadySeconds', and 'revisionHistoryLimit' are forbidden";
        found.push(Violation::forbidden("spec", detail));
    }
}

/// Pods of a DaemonSet never end.
fn template(object: &Value, found: &mut Vec<Violation>) {
    let path = |field| ["spec", "template", "spec", field];
    if let Some(policy) = json::text(object, &path("restartPolicy"))
        && !matches!(policy, "" | "Always")
    {
        found.push(Violation::not_supported(path("restartPolicy").join("."), policy, &["Always"]));
    }
    if json::at(object, &path("activeDeadlineSeconds")).is_some() {
        let detail = "activeDeadlineSeconds in DaemonSet is not Supported";
        found.push(Violation::forbidden(path("activeDeadlineSeconds").join("."), detail));
    }
}

fn update_strategy(change: &Change<'_>, found: &mut Vec<Violation>) {
    let strategy = json::at(change.new, &["spec", "updateStrategy"]);
    match strategy.and_then(|strategy| json::text(strategy, &["type"])).unwrap_or_default() {
        "OnDelete" => {}
        "RollingUpdate"
            if strategy.is_some_and(|strategy| json::at(strategy, &["rollingUpdate"]).is_some()) =>
        {
            rolling_update(change, found);
        }
        "RollingUpdate" => found.push(Violation::required("spec.updateStrategy.rollingUpdate", "")),
        other => {
            found.push(Violation::not_supported(
                "spec.updateStrategy",
                other,
                &["RollingUpdate", "OnDelete"],
            ));
        }
    }
}

fn rolling_update(change: &Change<'_>, found: &mut Vec<Violation>) {
    let object = change.new;
    let path = |field| ["spec", "updateStrategy", "rollingUpdate", field];
    let given = |field| json::at(object, &path(field)).is_some_and(|value| !is_zero(value));
    let kind = json::text(object, &path("rollingUpdateType")).unwrap_or_default();
    if kind == "InPlaceIfPossible" && given("maxSurge") {
        let detail = "must be 0 for InPlaceIfPossible type";
        found.push(Violation::required(path("maxSurge").join("."), detail));
    } else {
        match (given("maxUnavailable"), given("maxSurge")) {
            (true, true) => {
                let surge = json::at(object, &path("maxSurge")).cloned().unwrap_or_default();
                let detail = "may not be set when maxUnavailable is non-zero";
                found.push(Violation::invalid(path("maxSurge").join("."), surge, detail));
            }
            (true, false) => rules::int_or_percent_up_to_all(found, object, &path("maxUnavailable")),
            (false, true) => rules::int_or_percent_up_to_all(found, object, &path("maxSurge")),
            (false, false) => {
                let detail = "cannot be 0 when maxSurge is 0";
                found.push(Violation::required(path("maxUnavailable").join("."), detail));
            }
        }
    }
    if !matches!(kind, "" | "Standard" | "InPlaceIfPossible") {
        let known = ["Standard", "InPlaceIfPossible"];
        found.push(Violation::not_supported(path("rollingUpdateType").join("."), kind, &known));
    }
    rules::int_or_percent_up_to_all(found, object, &path("partition"));
    if let Some(selector) = json::at(object, &path("selector"))
        && change.touches(&path("selector"))
    {
        found.extend(label_selector(selector, &path("selector").join(".")));
    }
}

/// A text that is no number at all counts as zero, as in the original.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.strip_suffix('%').unwrap_or(text).parse::<i64>().unwrap_or(0) == 0,
        other => other.as_i64().unwrap_or(0) == 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::{Operation, kinds::tests_support::check};

    fn base() -> Value {
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "metadata": {"name": "fresh"}, "spec": {
            "selector": {"matchLabels": {"app": "base"}},
            "template": {"metadata": {"labels": {"app": "base"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
        }})
    }

    /// What a change of the base is answered, in the words recorded from the original where it has the rule.
    #[track_caller]
    fn created(change: Value, expected: &str) {
        check(Operation::Create, &base(), change, expected);
    }

    #[track_caller]
    fn rolling(change: Value, expected: &str) {
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": change});
        created(
            json!({"spec": {"updateStrategy": rolling}}),
            &expected.replace("~", "spec.updateStrategy.rollingUpdate"),
        );
    }

    const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                           '93%', regex used for validation is '[0-9]+%')";

    #[test]
    fn pods_of_a_daemon_set_never_end() {
        created(json!({}), "");
        created(
            json!({"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}),
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
        );
        created(
            json!({"spec": {"template": {"spec": {"activeDeadlineSeconds": 5}}}}),
            "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported",
        );
        created(
            json!({"spec": {"minReadySeconds": -1, "revisionHistoryLimit": -1}}),
            "[spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0, spec.revisionHistoryLimit: \
             Invalid value: -1: must be greater than or equal to 0]",
        );
        created(
            json!({"spec": {"lifecycle": {"inPlaceUpdate": {"labelsHandler": {"a": "b"}}}}}),
            "spec.lifecycle.inPlaceUpdate: Forbidden: inPlaceUpdate hook has not supported yet",
        );
        created(json!({"spec": {"lifecycle": {"preNormal": {"labelsHandler": {"a": "b"}}}}}), "");
    }

    #[test]
    fn an_update_takes_down_or_adds_but_not_both_and_not_neither() {
        created(
            json!({"spec": {"updateStrategy": {"type": "Weird"}}}),
            "spec.updateStrategy: Unsupported value: \"Weird\": supported values: \"RollingUpdate\", \"OnDelete\"",
        );
        created(json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}), "");
        rolling(
            json!({"maxUnavailable": "5"}),
            &format!("~.maxUnavailable: Invalid value: \"5\": {PERCENT}"),
        );
        rolling(
            json!({"maxUnavailable": "150%"}),
            "~.maxUnavailable: Invalid value: \"150%\": must not be greater than 100%",
        );
        rolling(
            json!({"maxUnavailable": -1}),
            "~.maxUnavailable: Invalid value: -1: must be greater than or equal to 0",
        );
        let neither = "~.maxUnavailable: Required value: cannot be 0 when maxSurge is 0";
        rolling(json!({"maxUnavailable": 0}), neither);
        rolling(json!({"maxUnavailable": "0%", "maxSurge": 0}), neither);
        rolling(json!({"maxSurge": "x"}), neither);
        rolling(
            json!({"maxUnavailable": 1, "maxSurge": 1}),
            "~.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
        );
        rolling(json!({"maxUnavailable": 0, "maxSurge": 1}), "");
        rolling(json!({"maxSurge": 1}), "");
    }

    #[test]
    fn types_partitions_and_selectors_of_an_update() {
        rolling(
            json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 0, "maxSurge": 1}),
            "~.maxSurge: Required value: must be 0 for InPlaceIfPossible type",
        );
        rolling(
            json!({"rollingUpdateType": "Weird"}),
            "~.rollingUpdateType: Unsupported value: \"Weird\": supported values: \"Standard\", \"InPlaceIfPossible\"",
        );
        rolling(
            json!({"partition": -1}),
            "~.partition: Invalid value: -1: must be greater than or equal to 0",
        );
        rolling(json!({"partition": "x"}), &format!("~.partition: Invalid value: \"x\": {PERCENT}"));
        rolling(
            json!({"partition": "150%"}),
            "~.partition: Invalid value: \"150%\": must not be greater than 100%",
        );
        rolling(json!({"partition": "50%", "paused": true}), "");
        rolling(
            json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}),
            "~.selector.matchExpressions[0].operator: Invalid value: \"Foo\": not a valid selector operator",
        );
        created(
            json!({"spec": {"burstReplicas": -1}}),
            "spec.burstReplicas: Invalid value: -1: must be greater than or equal to 0",
        );
    }

    #[test]
    fn the_selector_stays() {
        check(
            Operation::Update,
            &base(),
            json!({"spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}}}),
            "spec: Forbidden: updates to daemonset spec for fields other than 'BurstReplicas', 'template', 'lifecycle', \
             'scaleStrategy', 'updateStrategy', 'minReadySeconds', and 'revisionHistoryLimit' are forbidden",
        );
        let change = json!({"spec": {"burstReplicas": 3, "minReadySeconds": 4, "revisionHistoryLimit": 3}});
        check(Operation::Update, &base(), change, "");
    }
}
