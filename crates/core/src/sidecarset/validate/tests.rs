use std::collections::BTreeMap;

use kruise_api::kubernetes::validation::Kind;
use serde_json::json;

use super::*;
use crate::{
    admission::aggregate,
    sidecarset::{defaults, revision::register},
};

fn base() -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": "cap-b-val"},
        "spec": {"selector": {"matchLabels": {"cap-b": "val"}}, "containers": [{"name": "sc", "image": "sidecar:v1"}]}})
}

fn changed(base: &Value, change: Value) -> Value {
    let mut object = base.clone();
    json_patch::merge(&mut object, &change);
    object
}

fn defaulted(mut object: Value) -> Value {
    defaults::apply(&mut object, None);
    object
}

/// Everything that rules may look up.
#[derive(Default)]
struct World {
    sets: Vec<Arc<SidecarSet>>,
    revisions: Vec<Arc<Revision>>,
    configuration: Option<Data>,
    allows_all_patches: bool,
}

impl World {
    /// With this set stored.
    fn with(mut self, set: Value) -> Self {
        self.sets.push(Arc::new(serde_json::from_value(defaulted(set)).unwrap()));
        self.sets.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        self
    }

    fn judge(&self, new: &Value, old: Option<&Value>) -> Violations {
        let known = Known {
            sets: &self.sets,
            revisions: &self.revisions,
            configuration: self.configuration.as_ref(),
            allows_all_patches: self.allows_all_patches,
        };
        validate(new, old, &known)
    }

    /// `expected` is the refusal, or empty.
    #[track_caller]
    fn check(&self, new: Value, expected: &str) {
        let found = self.judge(&defaulted(new), None);
        assert_eq!(aggregate(&found).unwrap_or_default(), expected);
    }

    #[track_caller]
    fn check_change(&self, old: &Value, new: Value, expected: &str) {
        let found = self.judge(&defaulted(new), Some(&defaulted(old.clone())));
        assert_eq!(aggregate(&found).unwrap_or_default(), expected);
    }
}

fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Required => "Required value",
        Kind::Invalid => "Invalid value",
        Kind::NotSupported => "Unsupported value",
        Kind::Duplicate => "Duplicate value",
        Kind::Forbidden => "Forbidden",
        Kind::NotFound => "Not found",
        Kind::Internal => "Internal error",
    }
}

/// Where the original lets pass what cannot work, or refuses what could.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "shareVolumeDevicePolicy unknown",
        "spec.container.shareVolumeDevicePolicy.type|Unsupported value|supported values: \"disabled\", \"enabled\"",
    ),
    (
        "upgradeType unknown",
        "spec.containers[0].upgradeStrategy.upgradeType|Unsupported value|supported values: \"ColdUpgrade\", \"HotUpgrade\"",
    ),
    (
        "HotUpgrade without empty image",
        "spec.containers[0].upgradeStrategy.hotUpgradeEmptyImage|Required value|HotUpgrade needs the image of the idle container",
    ),
    (
        "HotUpgrade name of 63 chars",
        "spec.containers[0].name|Invalid value|must be no more than 63 characters\t\
         spec.containers[0].name|Invalid value|must be no more than 63 characters",
    ),
    (
        "updateStrategy.type unknown",
        "spec.updateStrategy.type|Unsupported value|supported values: \"RollingUpdate\", \"NotUpdate\"",
    ),
    // A server compares the object with the schema first, and says that the field is required.
    ("transferEnv fieldRef without fieldPath", "spec|Invalid value|missing field `fieldPath`"),
    (
        "expr max three args",
        "spec[0].resourcesPolicy.resourcesExpr.limits.cpu|Invalid value|invalid expression: max function requires exactly 2 arguments, got 3",
    ),
    (
        "expr cpu*cpu",
        "spec[0].resourcesPolicy.resourcesExpr.limits.cpu|Invalid value|invalid expression: multiplication of two quantities",
    ),
    (
        "expr 1/cpu",
        "spec[0].resourcesPolicy.resourcesExpr.limits.cpu|Invalid value|invalid expression: division by quantity",
    ),
    (
        "expr 100mi",
        "spec[0].resourcesPolicy.resourcesExpr.limits.memory|Invalid value|invalid expression: parse error: \"100mi\" is neither a number nor a quantity",
    ),
    (
        "expr 5x",
        "spec[0].resourcesPolicy.resourcesExpr.limits.cpu|Invalid value|invalid expression: parse error: \"5x\" is neither a number nor a quantity",
    ),
    (
        "expr 1e",
        "spec[0].resourcesPolicy.resourcesExpr.limits.cpu|Invalid value|invalid expression: parse error: \"1e\" is neither a number nor a quantity",
    ),
    ("expr negative", "accepted"),
    ("expr unary minus", "accepted"),
    ("hot twin name equals another container of the set", "spec.containers[0].name|Duplicate value|"),
    ("startupProbe without successThreshold", "accepted"),
];

/// SIDECARSET-12, SIDECARSET-19, SIDECARSET-29, SIDECARSET-43, and all else that was recorded from the original about a set
/// alone: fields, kinds of mistakes, details and their order. Values are printed by Go there and as JSON here.
#[test]
fn answers_are_those_of_the_original() {
    let different: BTreeMap<&str, &str> = DIFFERENT.iter().copied().collect();
    let mut count = 0;
    for line in include_str!("../../../tests/recorded/sidecarset-validation.tsv").lines() {
        let mut columns = line.split('\t');
        let (case, change) = (columns.next().unwrap(), columns.next().unwrap());
        let recorded = columns.collect::<Vec<_>>().join("\t");
        let expected = different.get(case).copied().unwrap_or(&recorded);
        let object = defaulted(changed(&base(), serde_json::from_str(change).unwrap()));
        let found = World::default().judge(&object, None);
        let told: Vec<String> =
            found.iter().map(|one| format!("{}|{}|{}", one.path, words(one.kind), one.detail)).collect();
        let told = if told.is_empty() { "accepted".to_owned() } else { told.join("\t") };
        assert_eq!(told, expected, "{case}");
        count += 1;
    }
    assert_eq!(count, 119);
}

fn other(name: &str, spec: Value) -> Value {
    let mut object = changed(
        &base(),
        json!({"metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": {"cap-b": "cf"}},
            "containers": [{"name": "dup", "image": "sidecar:v1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "initContainers": [{"name": "idup", "image": "job:v1"}],
            "volumes": [{"name": "v", "emptyDir": {}}]}}),
    );
    json_patch::merge(&mut object["spec"], &spec);
    object
}

/// A set that is about the pods of `cf1` and has other names.
fn beside(spec: Value) -> Value {
    let mut object = changed(&base(), json!({"metadata": {"name": "cf2"}}));
    json_patch::merge(&mut object["spec"], &json!({"selector": {"matchLabels": {"cap-b": "cf"}}}));
    json_patch::merge(&mut object["spec"], &spec);
    object
}

/// SIDECARSET-38, with the texts of the original.
#[test]
fn sets_that_can_meet_in_a_pod_must_not_clash() {
    let world = World::default().with(other("cf1", json!({})));
    let dup = json!([{"name": "dup", "image": "sidecar:v1"}]);
    let exists = "spec.containers: Invalid value: \"dup\": container dup already exist in cf1";
    let both = |more: Value| {
        let mut spec = json!({"containers": dup});
        json_patch::merge(&mut spec, &more);
        beside(spec)
    };
    let expression = |operator: &str, values: Value| json!({"selector": {"matchLabels": null, "matchExpressions": [{"key": "cap-b", "operator": operator, "values": values}]}});
    world.check(beside(json!({})), "");
    world.check(both(json!({})), exists);
    world.check(
        beside(json!({"initContainers": [{"name": "idup", "image": "job:v1"}]})),
        "spec.containers: Invalid value: \"idup\": container idup already exist in cf1",
    );
    world.check(beside(json!({"volumes": [{"name": "v", "emptyDir": {}}]})), "");
    world.check(
        beside(json!({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]})),
        "spec.volumes: Invalid value: \"v\": volume v is in conflict with sidecarset cf1",
    );
    world.check(both(expression("In", json!(["cf", "y"]))), exists);
    world.check(both(json!({"selector": {"matchLabels": {"cap-b": "cg"}}})), "");
    world.check(both(json!({"selector": {"matchLabels": {"cap-b": null, "tier": "x"}}})), exists);
    world.check(both(expression("Exists", json!([]))), exists);
    world.check(both(expression("DoesNotExist", json!([]))), "");
    world.check(both(expression("NotIn", json!(["cf"]))), "");
    world.check(both(expression("NotIn", json!(["zz"]))), exists);
    world.check(both(json!({"namespaceSelector": {"matchLabels": {"a": "b"}}})), exists);
    world.check(
        both(json!({"initContainers": [{"name": "idup", "image": "job:v1"}],
            "volumes": [{"name": "v", "hostPath": {"path": "/x"}}]})),
        "[spec.containers: Invalid value: \"idup\": container idup already exist in cf1, spec.containers: Invalid value: \
         \"dup\": container dup already exist in cf1, spec.volumes: Invalid value: \"v\": volume v is in conflict with \
         sidecarset cf1]",
    );
    let scoped = |value: &str| json!({"namespaceSelector": {"matchLabels": {"n": value}}});
    let world = World::default().with(other("cf3", scoped("1")));
    world.check(both(scoped("2")), "");
    world.check(
        both(scoped("1")),
        "spec.containers: Invalid value: \"dup\": container dup already exist in cf3",
    );
}

/// The original compares neither of these, and pods with both sets cannot start.
#[test]
fn names_that_clash_only_in_pods_clash_too() {
    let hot = json!({"containers": [{"name": "dup", "image": "sidecar:v1",
        "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e:1"}}]});
    let world = World::default().with(other("cf1", hot));
    world.check(
        beside(json!({"containers": [{"name": "dup-1", "image": "sidecar:v1"}]})),
        "spec.containers: Invalid value: \"dup-1\": container dup-1 already exist in cf1",
    );
    world.check(
        beside(json!({"initContainers": [{"name": "dup", "image": "job:v1"}]})),
        "spec.containers: Invalid value: \"dup\": container dup already exist in cf1",
    );
}

/// What an older version let pass must stay changeable.
#[test]
fn a_clash_that_was_there_before_is_not_told_again() {
    let world = World::default().with(other("cf1", json!({})));
    let stored = beside(json!({"initContainers": [{"name": "dup", "image": "job:v1"}]}));
    let mut paused = stored.clone();
    paused["spec"]["updateStrategy"] = json!({"paused": true});
    world.check_change(&stored, paused.clone(), "");
    paused["spec"]["volumes"] = json!([{"name": "v", "hostPath": {"path": "/x"}}]);
    world.check_change(
        &stored,
        paused,
        "spec.volumes: Invalid value: \"v\": volume v is in conflict with sidecarset cf1",
    );
}

#[test]
fn annotations_clash_when_one_side_overwrites() {
    let patch = |key: &str, policy: &str| json!({"patchPodMetadata": [{"annotations": {key: "{}"}, "patchPolicy": policy}]});
    let mut both = patch("over", "Overwrite");
    both["patchPodMetadata"].as_array_mut().unwrap().extend(
        ["MergePatchJson", "Retain"]
            .iter()
            .flat_map(|policy| patch(policy, policy)["patchPodMetadata"].as_array().cloned().unwrap()),
    );
    let world = World { allows_all_patches: true, ..World::default() }.with(other("pm", both));
    let refused = |key: &str| {
        format!(
            "spec.patchPodMetadata: Invalid value: {key:?}: annotation {key} is in conflict with sidecarset pm"
        )
    };
    world.check(beside(patch("over", "Overwrite")), &refused("over"));
    world.check(beside(patch("over", "MergePatchJson")), &refused("over"));
    world.check(beside(patch("over", "Retain")), "");
    world.check(beside(patch("MergePatchJson", "MergePatchJson")), "");
    world.check(beside(patch("MergePatchJson", "Overwrite")), &refused("MergePatchJson"));
    world.check(beside(patch("Retain", "Overwrite")), "");
}

fn canary(of: &str) -> Value {
    json!({"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": of})
}

fn canary_set(name: &str, of: &str) -> Value {
    let mut object = other(name, json!({"updateStrategy": {"type": "NotUpdate"}}));
    object["metadata"]["annotations"] = canary(of);
    object
}

/// The details of everything that is said about the metadata.
fn details(found: &[Violation]) -> Vec<&str> {
    found.iter().filter(|one| one.path == "metadata").map(|one| one.detail.as_str()).collect()
}

/// SIDECARSET-24
#[test]
fn a_canary_stands_in_for_a_set_that_exists_and_is_none() {
    let world = World::default().with(other("cf1", json!({}))).with(canary_set("cn1", "cf1"));
    let judge = |object: Value, old: Option<Value>| {
        let old = old.map(defaulted);
        world.judge(&defaulted(object), old.as_ref())
    };
    assert_eq!(judge(canary_set("cn1", "cf1"), None), []);
    assert_eq!(
        details(&judge(canary_set("x", "nope"), None)),
        ["fetch base sidecarSet[nope] failed: SidecarSet.apps.kruise.io \"nope\" not found"]
    );
    assert_eq!(details(&judge(canary_set("x", "cn1"), None)), ["base sidecarSet cannot be canary"]);
    assert_eq!(details(&judge(canary_set("cf1", "cf1"), None)), ["base sidecarSet cannot be itself"]);
    let mut rolling = canary_set("cn1", "cf1");
    rolling["spec"]["updateStrategy"]["type"] = "RollingUpdate".into();
    assert_eq!(details(&judge(rolling, None)), ["RollingUpdate is not supported for canary sidecarSet"]);
    let immutable = "annotations[apps.kruise.io/sidecarset-base] is immutable";
    assert_eq!(details(&judge(canary_set("cn1", "cf1"), Some(canary_set("cn1", "other")))), [immutable]);
    assert_eq!(details(&judge(canary_set("cf2", "cf1"), Some(beside(json!({}))))), [immutable]);
}

/// SIDECARSET-24: the original refuses every change of a set that has a canary.
#[test]
fn a_set_can_change_while_its_canary_exists() {
    let world = World::default().with(other("cf1", json!({}))).with(canary_set("cn1", "cf1"));
    let stored = other("cf1", json!({}));
    let mut updated = stored.clone();
    updated["spec"]["containers"][0]["image"] = "sidecar:v2".into();
    world.check_change(&stored, updated, "");
    let plain = other("cn1", json!({"updateStrategy": {"type": "NotUpdate"}}));
    let told = "[spec.containers: Invalid value: \"idup\": container idup already exist in cf1, spec.containers: Invalid \
                value: \"dup\": container dup already exist in cf1]";
    world.check_change(&canary_set("cn1", "cf1"), plain, told);
}

/// SIDECARSET-37, with the texts of the original.
#[test]
fn containers_of_a_set_may_go_but_not_come_or_take_turns() {
    let world = World::default();
    let stored = other("cf1", json!({}));
    let change = |spec: Value| other("cf1", spec);
    let dup = |more: Value| {
        let mut container = stored["spec"]["containers"][0].clone();
        json_patch::merge(&mut container, &more);
        container
    };
    world.check_change(
        &stored,
        change(json!({"containers": [dup(json!({"name": "renamed"}))]})),
        "spec.containers.name: Invalid value: \"renamed\": container renamed is not found",
    );
    world.check_change(
        &stored,
        change(json!({"containers": [dup(json!({})), {"name": "added", "image": "a:1"}]})),
        "spec.containers.name: Invalid value: \"added\": container added is not found",
    );
    let hot = json!({"upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e:1"}});
    world.check_change(
        &stored,
        change(json!({"containers": [dup(hot)]})),
        "spec.containers.upgradeStrategy.upgradeType: Invalid value: \"dup\": container dup upgradeType is immutable",
    );
    world.check_change(&stored, change(json!({"containers": null})), "");
    world.check_change(&stored, change(json!({"selector": {"matchLabels": {"x": "y"}}})), "");
    let init = json!([{"name": "idup", "image": "job:v1"}, {"name": "i2", "image": "job:v1"}]);
    world.check_change(&stored, change(json!({"initContainers": init})), "");
}

/// SIDECARSET-22
#[test]
fn a_fixed_revision_must_be_there() {
    let stored: SidecarSet = serde_json::from_value(defaulted(base())).unwrap();
    let registered = register(&stored, &[], "kruise-system", &|_| false);
    let Some(crate::effect::Effect::Create { object, .. }) = registered.effects.first() else {
        panic!("a new set gets a revision")
    };
    let revisions = vec![Arc::new(Revision::read(object).unwrap())];
    let world = World { revisions, ..World::default() };
    let with =
        |revision: Value| changed(&base(), json!({"spec": {"injectionStrategy": {"revision": revision}}}));
    world.check(with(json!({"revisionName": registered.latest})), "");
    world.check(
        with(json!({"revisionName": "nope"})),
        "revision: Invalid value: \"null\": Cannot find specific ControllerRevision, err: ControllerRevision.apps \"nope\" \
         not found",
    );
    world.check(
        with(json!({"revisionName": registered.latest, "policy": "Half"})),
        &format!(
            "revision.policy: Invalid value: {{\"policy\":\"Half\",\"revisionName\":{:?}}}: Invalid policy Half, \
             supported: [Always, Partial]",
            registered.latest
        ),
    );
}

fn white_list(text: &str) -> World {
    let data = Data::from([("SidecarSet_PatchPodMetadata_WhiteList".to_owned(), text.to_owned())]);
    World { configuration: Some(data), ..World::default() }
}

fn patching(labels: Value, keys: &[&str]) -> Value {
    let annotations: BTreeMap<&str, &str> = keys.iter().map(|key| (*key, "x")).collect();
    changed(
        &base(),
        json!({"metadata": {"labels": labels}, "spec": {"patchPodMetadata": [{"annotations": annotations}]}}),
    )
}

/// SIDECARSET-14, with the texts of the original.
#[test]
fn only_annotations_on_the_white_list_are_put_on_pods() {
    let rules = r#"{"rules":[{"selector":{"matchLabels":{"sidecar":"log"}},"allowedAnnotationKeyExprs":["^oom-score$"]}]}"#;
    let log = json!({"sidecar": "log"});
    let refused = |detail: &str| format!("spec.patchPodMetadata: Required value: {detail}");
    World::default().check(
        patching(log.clone(), &["oom-score"]),
        &refused("SidecarSet patch metadata whitelist not found"),
    );
    let world = white_list(rules);
    world.check(patching(log.clone(), &["oom-score"]), "");
    world.check(
        patching(log.clone(), &["oom-score", "zz"]),
        &refused("sidecarSet patch metadata annotation(zz) is not allowed"),
    );
    world.check(
        patching(json!({}), &["oom-score"]),
        &refused("sidecarSet patch metadata annotation is not allowed"),
    );
    let world = white_list(r#"{"rules":[{"allowedAnnotationKeyExprs":["^example\\.com/.*$", "score"]}]}"#);
    world.check(patching(json!({}), &["example.com/a", "my-score-2"]), "");
    let world = white_list(r#"{"rules":[{"allowedAnnotationKeyExprs":["a("]}]}"#);
    world.check(patching(log.clone(), &["a"]), &refused("error parsing regexp: missing closing ): `a(`"));
    assert!(!white_list("junk").judge(&defaulted(patching(log, &["a"])), None).is_empty());
}

/// SIDECARSET-14: the gate helps where nothing is said, not where something else is allowed.
#[test]
fn the_gate_allows_what_no_rule_is_about() {
    let open = |world: World| World { allows_all_patches: true, ..world };
    let rules =
        r#"{"rules":[{"selector":{"matchLabels":{"sidecar":"log"}},"allowedAnnotationKeyExprs":["^oom$"]}]}"#;
    open(World::default()).check(patching(json!({}), &["any"]), "");
    open(white_list(rules)).check(patching(json!({}), &["any"]), "");
    open(white_list(rules)).check(
        patching(json!({"sidecar": "log"}), &["any"]),
        "spec.patchPodMetadata: Required value: sidecarSet patch metadata annotation(any) is not allowed",
    );
}

#[test]
fn annotations_for_pods_must_be_well_formed() {
    let world = World { allows_all_patches: true, ..World::default() };
    let patch = |patches: Value| changed(&base(), json!({"spec": {"patchPodMetadata": patches}}));
    let refused = |detail: &str| format!("spec.patchPodMetadata: Required value: {detail}");
    world.check(
        patch(json!([{"patchPolicy": "Overwrite"}])),
        &refused("no annotations defined for SidecarSet"),
    );
    world.check(
        patch(json!([{"annotations": {"a": "b"}}, {"annotations": {"a": "c"}}])),
        &refused("patch annotation[a] already exist"),
    );
    world.check(
        patch(json!([{"annotations": {"a": "b"}, "patchPolicy": "Foo"}])),
        "spec.patchPodMetadata.patchPolicy: Unsupported value: \"Foo\": supported values: \"Retain\", \"Overwrite\", \
         \"MergePatchJson\"",
    );
    world.check(
        patch(json!([{"annotations": {"ex.io/a b": "x"}}])),
        "patchPodMetadata.annotations: Invalid value: \"ex.io/a b\": name part must consist of alphanumeric characters, \
         '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
         '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    );
    world.check(patch(json!([{"annotations": {"a": "nope"}, "patchPolicy": "MergePatchJson"}])), "");
}
