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
        let scale = if change.is_written_as("v1alpha1") { "" } else { "'scaleStrategy'," };
        let detail = format!(
            "updates to daemonset spec for fields other than 'BurstReplicas', 'template', 'lifecycle', {scale} \
             'updateStrategy', 'minReadySeconds', and 'revisionHistoryLimit' are forbidden"
        );
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
            (unavailable, surge) if unavailable || surge => {
                for (field, is_given) in [("maxUnavailable", unavailable), ("maxSurge", surge)] {
                    // The original takes anything in the other one, and then does nothing any more.
                    if is_given || change.touches(&path(field)) {
                        rules::int_or_percent_up_to_all(found, object, &path(field));
                    }
                }
            }
            _ => {
                let detail = "cannot be 0 when maxSurge is 0";
                found.push(Violation::required(path("maxUnavailable").join("."), detail));
            }
        }
    }
    if !matches!(kind, "" | "Standard" | "InPlaceIfPossible") {
        let known = ["Standard", "Surging", "InPlaceIfPossible"];
        let has_surging = change.is_written_as("v1alpha1");
        let known: Vec<&str> = known.into_iter().filter(|one| has_surging || *one != "Surging").collect();
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
    use kruise_api::gates::Gates;
    use serde_json::json;

    use super::*;
    use crate::admission::{
        Operation,
        kinds::tests_support::{answer, check},
    };

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
        rolling(json!({"maxUnavailable": 1, "maxSurge": "0%"}), "");
        let invalid = |field: &str, value: &str| format!("~.{field}: Invalid value: {value:?}: {PERCENT}");
        rolling(json!({"maxUnavailable": 1, "maxSurge": "abc"}), &invalid("maxSurge", "abc"));
        rolling(json!({"maxUnavailable": "x%", "maxSurge": 1}), &invalid("maxUnavailable", "x%"));
        rolling(json!({"maxUnavailable": "", "maxSurge": 1}), &invalid("maxUnavailable", ""));
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

    /// What is accepted can be carried out: a number that only we refuse would stop everything, also the replacement of lost
    /// pods.
    #[test]
    fn what_is_accepted_can_be_carried_out() {
        let values = [
            Value::Null,
            json!(0),
            json!(3),
            json!(-1),
            json!("abc"),
            json!("x%"),
            json!(""),
            json!("%"),
            json!("5"),
            json!("0%"),
            json!("50%"),
            json!("101%"),
            json!("-5%"),
            json!("+5%"),
            json!("99999999999999999999%"),
            json!(i32::MAX),
        ];
        let carried_out = |change: Value| {
            let (object, refusal) = answer(Operation::Create, &base(), &change);
            let set = serde_json::from_value(object).unwrap();
            let desired = super::super::Desired::of(&set, &Gates::default(), true);
            assert!(!refusal.is_empty() || desired.is_ok(), "{change} is accepted: {desired:?}");
            refusal.is_empty()
        };
        let mut accepted = 0;
        for one in &values {
            for other in &values {
                let rolling =
                    |members: Value| json!({"spec": {"updateStrategy": {"rollingUpdate": members}}});
                accepted +=
                    u32::from(carried_out(rolling(json!({"maxUnavailable": one, "maxSurge": other}))));
                accepted += u32::from(carried_out(rolling(json!({"partition": one, "maxSurge": other}))));
                let in_place = json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": one, "maxSurge": other});
                accepted += u32::from(carried_out(rolling(in_place)));
            }
            accepted += u32::from(carried_out(json!({"spec": {"burstReplicas": one, "minReadySeconds": 5}})));
        }
        assert!(accepted > 50, "{accepted}");
    }

    /// Path and detail of each violation. The value between them is printed by Go there and as JSON here.
    fn essence(answer: &str) -> Vec<String> {
        let inner = answer.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(answer);
        let mut parts: Vec<String> = inner.split(", spec.").map(without_value).collect();
        parts.sort();
        parts
    }

    fn without_value(part: &str) -> String {
        let part = part.trim_start_matches("spec.");
        for kind in [": Invalid value: ", ": Unsupported value: "] {
            let Some((path, rest)) = part.split_once(kind) else { continue };
            let (mut depth, mut is_quoted) = (0, false);
            for (at, letter) in rest.char_indices() {
                match letter {
                    '"' => is_quoted = !is_quoted,
                    '{' | '[' | '(' if !is_quoted => depth += 1,
                    '}' | ']' | ')' if !is_quoted => depth -= 1,
                    ':' if depth == 0 && !is_quoted && rest[at..].starts_with(": ") => {
                        return format!("{path}{kind}{}", &rest[at + 2..]);
                    }
                    _ => {}
                }
            }
        }
        part.to_owned()
    }

    /// The number of a recorded answer, and what ours begins with where it differs on purpose.
    const DEVIATIONS: &[(u32, &str)] = &[
        // The original accepts these, and then makes no pod.
        (30, "spec.updateStrategy.rollingUpdate.selector.matchLabels: Invalid value: \"bad key!\": "),
        (31, "spec.burstReplicas: Invalid value: \"abc\": "),
        (32, "spec.burstReplicas: Invalid value: -1: must be greater than or equal to 0"),
        (73, "spec.updateStrategy.rollingUpdate.selector.matchLabels: Invalid value: \"bad key!\": "),
        (74, "spec.burstReplicas: Invalid value: \"abc\": "),
        (75, "spec.burstReplicas: Invalid value: -1: must be greater than or equal to 0"),
    ];

    /// DAEMONSET-14, DAEMONSET-27, DAEMONSET-29, DAEMONSET-34, DAEMONSET-38: answers recorded from the original. Two of its paths
    /// are doubled; ours are not.
    #[test]
    fn answers_equal_those_of_the_original() {
        let (mut count, mut problems) = (0, Vec::new());
        for line in include_str!("../../tests/recorded/daemonset-validation.tsv").lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [number, operation, version, change, recorded] = cells.as_slice() else { panic!("{line}") };
            let number: u32 = number.parse().unwrap();
            let mut base = base();
            base["apiVersion"] = format!("apps.kruise.io/{version}").into();
            let operation = if *operation == "create" { Operation::Create } else { Operation::Update };
            let (_, ours) = answer(operation, &base, &serde_json::from_str(change).unwrap());
            let ours = if ours.is_empty() { "accepted".to_owned() } else { ours };
            let expected = recorded
                .replace(".rollingUpdate.rollingUpdate.type", ".rollingUpdate.rollingUpdateType")
                .replace(".rollingUpdate.rollingUpdate.partition", ".rollingUpdate.partition");
            let deviation = DEVIATIONS.iter().find(|(known, _)| *known == number);
            let is_same = match deviation {
                Some((_, start)) => ours.starts_with(start) && essence(&ours) != essence(&expected),
                None => essence(&ours) == essence(&expected),
            };
            if !is_same {
                problems.push(format!("{number} {version} {change}\n  {ours}\n  {recorded}"));
            }
            count += 1;
        }
        assert!(problems.is_empty() && count == 80, "{count} answers\n{}", problems.join("\n"));
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
