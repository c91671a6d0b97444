mod recorded;

use serde_json::{Value, json};

use crate::admission::{Operation, kinds::tests_support::check};

fn base() -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": {"name": "fresh"}, "spec": {
        "replicas": 0, "serviceName": "svc", "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"app": "base"}},
        "template": {"metadata": {"labels": {"app": "base"}}, "spec": {
            "containers": [{"name": "main", "image": "app:v1", "imagePullPolicy": "IfNotPresent"}],
            "readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}},
    }})
}

/// What a change of the base is answered, as recorded from the original where it has the rule.
#[track_caller]
fn created(change: Value, expected: &str) {
    check(Operation::Create, &base(), change, expected);
}

/// `~` stands for the path of the strategy.
#[track_caller]
fn rolling(change: Value, expected: &str) {
    let strategy = json!({"spec": {"updateStrategy": {"rollingUpdate": change}}});
    created(strategy, &expected.replace('~', "spec.updateStrategy.rollingUpdate"));
}

const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                       regex used for validation is '[0-9]+%')";

#[test]
fn policies_and_strategies_are_known_ones() {
    created(json!({}), "");
    created(
        json!({"spec": {"podManagementPolicy": "Random"}}),
        "spec.podManagementPolicy: Invalid value: \"Random\": must be 'OrderedReady' or 'Parallel'",
    );
    created(
        json!({"spec": {"updateStrategy": {"type": "Weird", "rollingUpdate": null}}}),
        "spec.updateStrategy: Invalid value: {\"type\":\"Weird\"}: must be 'RollingUpdate' or 'OnDelete'",
    );
    created(
        json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}),
        "spec.updateStrategy.rollingUpdate: Invalid value: {\"podUpdatePolicy\":\"InPlaceIfPossible\"}: only allowed for \
         updateStrategy 'RollingUpdate'",
    );
    created(json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}), "");
    rolling(
        json!({"podUpdatePolicy": "Weird"}),
        "~.podUpdatePolicy: Invalid value: \"Weird\": must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'",
    );
}

/// STATEFULSET-32: updates in place need the gate.
#[test]
fn updates_in_place_need_a_readiness_gate() {
    created(
        json!({"spec": {"template": {"spec": {"readinessGates": null}}}}),
        "spec.template.spec.readinessGates: Invalid value: []: must contains InPlaceUpdateReady when podUpdatePolicy is \
         InPlaceIfPossible",
    );
}

/// STATEFULSET-20
#[test]
fn numbers_are_in_their_ranges() {
    let not_negative = "must be greater than or equal to 0";
    rolling(json!({"partition": -1}), &format!("~.partition: Invalid value: -1: {not_negative}"));
    rolling(json!({"minReadySeconds": -1}), &format!("~.minReadySeconds: Invalid value: -1: {not_negative}"));
    rolling(
        json!({"minReadySeconds": 301}),
        "~.minReadySeconds: Invalid value: 301: must be no more than 300 seconds",
    );
    rolling(json!({"minReadySeconds": 300}), "");
    for zero in [json!(0), json!("0%")] {
        rolling(
            json!({"maxUnavailable": zero}),
            "~.maxUnavailable: Invalid value: 0: should not be less than 1",
        );
    }
    for text in ["5", "33.3%", "x"] {
        rolling(
            json!({"maxUnavailable": text}),
            &format!("~.maxUnavailable: Invalid value: \"{text}\": {PERCENT}"),
        );
    }
    rolling(
        json!({"maxUnavailable": -1}),
        &format!(
            "[~.maxUnavailable: Invalid value: -1: {not_negative}, ~.maxUnavailable: Invalid value: -1: should not be less \
             than 1]"
        ),
    );
    rolling(json!({"maxUnavailable": "150%"}), "");
    created(
        json!({"spec": {"scaleStrategy": {"maxUnavailable": 0}}}),
        "spec.scaleStrategy.maxUnavailable: Invalid value: 0: should not be less than 1",
    );
    created(json!({"spec": {"scaleStrategy": {"maxUnavailable": "50%"}}}), "");
    created(
        json!({"spec": {"revisionHistoryLimit": -1, "ordinals": {"start": -1}}}),
        &format!(
            "[spec.ordinals.start: Invalid value: -1: {not_negative}, spec.revisionHistoryLimit: Invalid value: -1: \
             {not_negative}]"
        ),
    );
}

/// STATEFULSET-20: with OrderedReady pods are created one by one, but several may be updated at once.
#[test]
fn ordered_sets_have_no_pace_of_scaling_and_no_other_order() {
    let ordered = |spec: Value| {
        let mut change = json!({"spec": {"podManagementPolicy": "OrderedReady"}});
        json_patch::merge(&mut change["spec"], &spec);
        change
    };
    for fine in [json!(2), json!("40%")] {
        created(ordered(json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": fine}}})), "");
    }
    for wrong in [json!(2), json!("100%"), json!("1%")] {
        let shown = wrong.clone();
        created(
            ordered(json!({"scaleStrategy": {"maxUnavailable": wrong}})),
            &format!(
                "spec.scaleStrategy.maxUnavailable: Invalid value: {shown}: can only work with Parallel \
                 PodManagementPolicyType"
            ),
        );
    }
    created(ordered(json!({"scaleStrategy": {"maxUnavailable": 1}})), "");
    created(
        ordered(json!({"updateStrategy": {"rollingUpdate": {"unorderedUpdate": {}}}})),
        "spec.updateStrategy.rollingUpdate.unorderedUpdate: Required value: unorderedUpdate can only work with Parallel \
         PodManagementPolicyType",
    );
}

/// STATEFULSET-27
#[test]
fn priorities_are_of_one_kind() {
    let strategy = |strategy: Value| json!({"unorderedUpdate": {"priorityStrategy": strategy}});
    let path = "~.unorderedUpdate.priorityStrategy: Required value";
    let weight = json!({"weight": 1, "matchSelector": {"matchLabels": {"a": "b"}}});
    rolling(
        strategy(json!({"weightPriority": [weight], "orderPriority": [{"orderedKey": "k"}]})),
        &format!("{path}: only one of weightPriority and orderPriority can be used"),
    );
    for (weight, expected) in [
        (-1, "weight must be valid number in the range 1-100"),
        (0, ""),
        (100, ""),
        (101, "weight must be valid number in the range 1-100"),
    ] {
        let one = json!({"weight": weight, "matchSelector": {"matchLabels": {"a": "b"}}});
        let expected = if expected.is_empty() { String::new() } else { format!("{path}: {expected}") };
        rolling(strategy(json!({"weightPriority": [one]})), &expected);
    }
    rolling(
        strategy(json!({"weightPriority": [{"weight": 1, "matchSelector": {}}]})),
        &format!("{path}: selector can not be empty"),
    );
    rolling(
        strategy(json!({"orderPriority": [{"orderedKey": ""}]})),
        &format!("{path}: order key can not be empty"),
    );
}

/// STATEFULSET-11
#[test]
fn reserved_ordinals_are_numbers_and_ranges() {
    for (list, expected) in [
        (json!([1, "3-5", "0003-005"]), ""),
        (
            json!(["12"]),
            "[spec: Invalid value: [\"12\"]: 0 th reserve ordinal is not a valid range: 12, spec: Invalid value: [\"12\"]: 0 th \
             reserve ordinal is invalid: 12, err = invalid range 12]",
        ),
        (
            json!([1, "5-3"]),
            "spec: Invalid value: [1,\"5-3\"]: 1 th reserve ordinal is invalid: 5-3, err = invalid range 5-3",
        ),
        (json!([-1]), "spec: Invalid value: [-1]: 0 th reserve ordinal is negative: -1"),
        (
            json!(["0-2147483648"]),
            "spec: Invalid value: [\"0-2147483648\"]: 0 th reserve ordinal is larger than 2147483647: 0-2147483648",
        ),
    ] {
        created(json!({"spec": {"reserveOrdinals": list}}), expected);
    }
}

#[test]
fn retention_and_update_of_claims_are_known_ones() {
    for field in ["whenDeleted", "whenScaled"] {
        created(
            json!({"spec": {"persistentVolumeClaimRetentionPolicy": {field: "Maybe"}}}),
            &format!(
                "spec.persistentVolumeClaimRetentionPolicy.{field}: Unsupported value: \"Maybe\": supported values: \
                 \"Retain\", \"Delete\""
            ),
        );
    }
    created(
        json!({"spec": {"volumeClaimUpdateStrategy": {"type": "Weird"}}}),
        "spec.volumeClaimUpdateStrategy.type: Unsupported value: \"Weird\": supported values: \"OnPodRollingUpdate\", \
         \"OnDelete\"",
    );
}

#[test]
fn pods_of_a_stateful_set_never_end() {
    created(
        json!({"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}),
        "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
    );
    created(
        json!({"spec": {"template": {"spec": {"activeDeadlineSeconds": 5}}}}),
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported",
    );
}

#[test]
fn long_names_leave_few_ordinals() {
    for (length, expected) in [
        (58, None),
        (59, Some("metadata.name: pods whose ordinals have more than 3 digits cannot be created")),
        (61, Some("metadata.name: pods whose ordinals have more than 1 digit cannot be created")),
        (62, Some("metadata.name: no pod can be created: use at most 61 characters")),
    ] {
        let new = json!({"metadata": {"name": "x".repeat(length)}});
        let request = crate::admission::Request::default();
        let change = crate::admission::kinds::Change { request: &request, new: &new, old: None };
        assert_eq!(super::advice(&change), expected.map(str::to_owned).into_iter().collect::<Vec<_>>());
    }
}

/// STATEFULSET-47
#[test]
fn what_makes_the_identity_of_pods_stays() {
    for change in [
        json!({"serviceName": "other"}),
        json!({"podManagementPolicy": "OrderedReady"}),
        json!({"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}}),
    ] {
        check(
            Operation::Update,
            &base(),
            json!({"spec": change}),
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'reserveOrdinals', 'lifecycle', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy', \
             `volumeClaimTemplates`, `VolumeClaimUpdateStrategy` and 'updateStrategy' are forbidden",
        );
    }
    let change = json!({"scaleStrategy": {"maxUnavailable": 2}, "reserveOrdinals": [3], "ordinals": {"start": 2},
        "lifecycle": {"preDelete": {"labelsHandler": {"a": "b"}}}, "revisionHistoryLimit": 3});
    check(Operation::Update, &base(), json!({"spec": change}), "");
}

/// STATEFULSET-33
#[test]
fn in_place_only_takes_changes_of_images_only() {
    let mut base = base();
    base["spec"]["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] = "InPlaceOnly".into();
    let container = |change: Value| {
        let mut container = json!({"name": "main", "image": "app:v1", "imagePullPolicy": "IfNotPresent"});
        json_patch::merge(&mut container, &change);
        json!({"spec": {"template": {"spec": {"containers": [container]}}}})
    };
    check(Operation::Update, &base, container(json!({"image": "app:v9"})), "");
    check(
        Operation::Update,
        &base,
        json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}),
        "",
    );
    for (change, what) in [
        (container(json!({"env": [{"name": "a", "value": "b"}]})), "add /containers/0/env"),
        (container(json!({"imagePullPolicy": "Always"})), "replace /containers/0/imagePullPolicy"),
        (json!({"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}), "add /nodeSelector"),
    ] {
        check(
            Operation::Update,
            &base,
            change,
            &format!(
                "invalid template modified with InPlaceOnly strategy: {what}, currently only image update is allowed for \
                 InPlaceOnly"
            ),
        );
    }
}
