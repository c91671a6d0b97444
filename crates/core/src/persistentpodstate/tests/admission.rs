//! Requests, as the API server sends them.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::{gates::Gates, json, persistentpodstate::v1beta1::PersistentPodState};
use serde_json::{Value, json};

use super::kit::{object, records, state};
use crate::{
    admission::{
        Answer, Kind, Operation, Request, Resource,
        kinds::{Cluster, Context, validate},
        pod,
    },
    configuration::Data,
    patch_model::merge,
    persistentpodstate::{Kinds, waits},
    waiting::Reason,
};

#[derive(Default)]
struct World {
    states: Vec<Arc<PersistentPodState>>,
    list: &'static str,
}

const GAME_SETS: &str = r#"{"workloads":[{"Group":"apps.example.com","Version":"v1","Kind":"GameSet"}]}"#;
const BROKEN: &str = "{\"workloads\":[";

impl Cluster for World {
    fn persistent_pod_states(&self, _: &str) -> Vec<Arc<PersistentPodState>> {
        self.states.clone()
    }

    fn configuration(&self) -> Option<Arc<Data>> {
        let key = "PPS_Watch_Custom_Workload_WhiteList".to_owned();
        Some(Arc::new(Data::from([(key, self.list.to_owned())])))
    }
}

impl World {
    fn with(list: &'static str, change: Value) -> Self {
        Self { states: vec![Arc::new(state(change))], list }
    }

    fn context<'a>(&'a self, gates: &'a Gates) -> Context<'a> {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        Context { gates, allow_privileged: true, now, seed: 7, cluster: self }
    }

    fn answer(&self, object: &Value, old: Option<&Value>) -> String {
        let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let kind = Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: "PersistentPodState".to_owned(),
        };
        let request = Request {
            kind,
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            namespace: "shop".to_owned(),
            object: object.clone(),
            old_object: old.cloned().unwrap_or_default(),
            ..Request::default()
        };
        match validate(&request, &self.context(&Gates::default())) {
            Answer::Allowed { .. } => "accepted".to_owned(),
            Answer::Denied { code: 422, message } => message,
            other => panic!("{other:?}"),
        }
    }

    /// The pod `web-0` of a controller, as it is stored.
    fn admitted(&self, api_version: &str, kind: &str) -> Value {
        let owner =
            json!({"apiVersion": api_version, "kind": kind, "name": "web", "uid": "u", "controller": true});
        let pod =
            json!({"metadata": {"name": "web-0", "ownerReferences": [owner]}, "spec": {"containers": []}});
        let resource =
            Resource { resource: "pods".to_owned(), version: "v1".to_owned(), ..Resource::default() };
        let request =
            Request { resource, namespace: "shop".to_owned(), object: pod.clone(), ..Request::default() };
        let Answer::Allowed { patch, .. } = pod::mutate(&request, &self.context(&Gates::default())) else {
            panic!("refused")
        };
        let mut pod = pod;
        json_patch::patch(&mut pod, &patch.unwrap_or_default()).unwrap();
        pod
    }
}

fn changed(mut object: Value, change: &Value) -> Value {
    merge(&mut object, change);
    object
}

/// A recorded refusal without the values, which Go prints in its own way.
fn essence(text: &str) -> Vec<String> {
    let text = text
        .strip_prefix("admission webhook \"vpersistentpodstate.kb.io\" denied the request: ")
        .unwrap_or(text);
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let part = |part: &str| {
        let path = part.split(": ").next().unwrap_or_default().trim_start_matches("spec").to_owned();
        let detail = part.rsplit_once("}: ").map_or_else(|| part.to_owned(), |(_, detail)| detail.to_owned());
        format!("{path}: {}", detail.trim_start_matches("spec"))
    };
    inner.split(", spec").map(part).collect()
}

/// PPS-11, PPS-12, PPS-13: the recorded answers of the webhook, with those where we differ on purpose.
#[test]
fn answers_equal_those_of_the_original() {
    let required = |path: &str| format!("{path}: Required value");
    let weight = |number: i32| {
        format!(
            "spec.preferredPersistentTopology[0].weight: Invalid value: {number}: must be in the range 1-100"
        )
    };
    let different = BTreeMap::from([
        ("required with empty keys", required("spec.requiredPersistentTopology.keys")),
        ("weight 0", weight(0)),
        ("weight 101", weight(101)),
        ("v1alpha1 weight -1", weight(-1)),
    ]);
    let base = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "PersistentPodState",
        "metadata": {"name": "pps", "namespace": "shop"},
        "spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "s"},
            "requiredPersistentTopology": {"keys": ["zone"]}}});
    let native = changed(
        base.clone(),
        &json!({"metadata": {"name": "nat"}, "spec": {"persistentPodAnnotations": [{"key": "a"}],
            "persistentPodStateRetentionPolicy": "WhenDeleted",
            "targetRef": {"apiVersion": "apps/v1", "name": "nat"}}}),
    );
    let stored = World { states: vec![Arc::new(serde_json::from_value(native.clone()).unwrap())], list: "" };
    let mut count = 0;
    for line in include_str!("../../../tests/recorded/persistentpodstate-validation.tsv").lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let (case, recorded) = (cells[0], cells[3]);
        if recorded.starts_with("PersistentPodState.apps.kruise.io") {
            // The schema refuses it before anybody is asked; the scenarios try that.
            continue;
        }
        let change: Value = serde_json::from_str(cells[1]).unwrap_or_default();
        let answer = if case.starts_with("update: ") {
            stored.answer(&changed(native.clone(), &change), Some(&native))
        } else if case == "second with same target" || case == "same kind and name, other group" {
            let second = changed(native.clone(), &json!({"metadata": {"name": "second"}}));
            stored.answer(&changed(second, &change), None)
        } else if let Some(what) = case.strip_prefix("v1alpha1 ") {
            let mut old = changed(base.clone(), &json!({"apiVersion": "apps.kruise.io/v1alpha1"}));
            old["spec"]["requiredPersistentTopology"] = json!({"nodeTopologyKeys": ["zone"]});
            let wish = json!({"weight": -1, "preference": {"nodeTopologyKeys": ["z"]}});
            let change = match what {
                "retention bogus" => json!({"persistentPodStateRetentionPolicy": "Foo"}),
                "weight -1" => json!({"preferredPersistentTopology": [wish]}),
                "no topology" => json!({"requiredPersistentTopology": null}),
                other => panic!("{other}"),
            };
            stored.answer(&changed(old, &json!({"spec": change})), None)
        } else {
            stored.answer(&changed(base.clone(), &change), None)
        };
        match (different.get(case), recorded) {
            (Some(ours), "ACCEPTED") => assert_eq!(answer, *ours, "{case}"),
            (Some(_), _) => panic!("{case} is no difference"),
            (None, "ACCEPTED") => assert_eq!(answer, "accepted", "{case}"),
            (None, recorded) => assert_eq!(essence(&answer), essence(recorded), "{case}"),
        }
        count += 1;
    }
    assert_eq!(count, 24);
}

/// Rules that are new look only at what changes, and paths are those of the writer's version.
#[test]
fn what_is_stored_stays_changeable() {
    let world = World::default();
    let wish = |weight: i32, keys: Value| json!({"weight": weight, "preference": {"keys": keys}});
    let old = object(json!({"spec": {"requiredPersistentTopology": {"keys": []},
        "preferredPersistentTopology": [wish(0, json!(["a"])), wish(5, json!(["", "b"]))]}}));
    let check = |change: Value, expected: &str| {
        assert_eq!(world.answer(&changed(old.clone(), &json!({"spec": change})), Some(&old)), expected);
    };
    check(json!({"persistentPodStateRetentionPolicy": "WhenDeleted"}), "accepted");
    check(
        json!({"preferredPersistentTopology": [wish(0, json!(["a", "c"])), wish(6, json!(["", "b"]))]}),
        "accepted",
    );
    check(
        json!({"preferredPersistentTopology": [wish(101, json!(["a"])), wish(5, json!([]))]}),
        "[spec.preferredPersistentTopology[0].weight: Invalid value: 101: must be in the range 1-100, \
         spec.preferredPersistentTopology[1].preference.keys: Required value]",
    );
    check(
        json!({"requiredPersistentTopology": {"keys": [""]}}),
        "spec.requiredPersistentTopology.keys: Required value",
    );
    let old_version = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PersistentPodState",
        "metadata": {"name": "web"}, "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"},
            "requiredPersistentTopology": {"nodeTopologyKeys": []},
            "preferredPersistentTopology": [{"weight": 1, "preference": {"nodeTopologyKeys": [""]}}]}});
    assert_eq!(
        world.answer(&old_version, None),
        "[spec.requiredPersistentTopology.nodeTopologyKeys: Required value, \
         spec.preferredPersistentTopology[0].preference.nodeTopologyKeys: Required value]"
    );
}

/// PPS-12, PPS-18
#[test]
fn the_white_list_says_which_kinds_are_supported_besides() {
    let game =
        object(json!({"spec": {"targetRef": {"apiVersion": "apps.example.com/v2", "kind": "GameSet"}}}));
    let unsupported = "targetRef.Kind must be StatefulSet or in PPS_Watch_Custom_Workload_WhiteList";
    assert_eq!(World { list: GAME_SETS, ..World::default() }.answer(&game, None), "accepted");
    assert!(World::default().answer(&game, None).ends_with(unsupported));
    let broken = World { list: BROKEN, ..World::default() };
    let answer = broken.answer(&game, None);
    let begin = ": Internal error: failed to get persistent pod state config white list, error: ";
    assert!(answer.starts_with(begin) && answer.contains("PPS_Watch_Custom_Workload_WhiteList"), "{answer}");
    assert_eq!(broken.answer(&object(json!({})), None), "accepted");
}

/// PPS-3, PPS-12, PPS-18
#[test]
fn pods_of_supported_kinds_are_injected_and_no_other() {
    let status = json!({"observedGeneration": 1, "podStates": records("web-0:n1:zone=a")});
    let about = |api_version: &str, kind: &str| json!({"spec": {"targetRef": {"apiVersion": api_version, "kind": kind}}, "status": status});
    let is_injected = |world: &World, api_version: &str, kind: &str| {
        let pod = world.admitted(api_version, kind);
        json::text(&pod, &["spec", "nodeSelector", "zone"]) == Some("a")
    };
    let native = World::with(BROKEN, about("apps/v1", "StatefulSet"));
    assert!(
        is_injected(&native, "apps/v1", "StatefulSet") && is_injected(&native, "apps/v1beta2", "StatefulSet")
    );
    assert!(!is_injected(&native, "apps.kruise.io/v1beta1", "StatefulSet"));
    let own = World::with("", about("apps.kruise.io/v1alpha1", "StatefulSet"));
    assert!(is_injected(&own, "apps.kruise.io/v1beta1", "StatefulSet"));
    for (list, expected) in [(GAME_SETS, true), ("", false), (BROKEN, false)] {
        let game = World::with(list, about("apps.example.com/v1", "GameSet"));
        assert_eq!(is_injected(&game, "apps.example.com/v1", "GameSet"), expected, "{list}");
    }
    let mut ends = about("apps/v1", "StatefulSet");
    ends["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    assert!(!is_injected(&World::with("", ends), "apps/v1", "StatefulSet"));
}

#[test]
fn a_stored_object_that_cannot_be_carried_out_says_so() {
    let said = |change: Value| {
        let waits = waits(Some(&state(change)), &Kinds::default(), []);
        waits.sentence(Reason::SpecInvalid).unwrap_or_default().to_owned()
    };
    assert_eq!(said(json!({})), "");
    let wish = json!([{"weight": 0, "preference": {"keys": ["host"]}}]);
    assert_eq!(
        said(json!({"spec": {"preferredPersistentTopology": wish}})),
        "the spec cannot be carried out: spec.preferredPersistentTopology[0].weight: Invalid value: 0: must be in the \
         range 1-100"
    );
    let game = json!({"spec": {"targetRef": {"apiVersion": "apps.example.com/v1", "kind": "GameSet"}}});
    assert!(said(game).contains("spec.targetRef: Invalid value"));
    let taken = (Reason::NameTaken, "taken".to_owned());
    assert_eq!(waits(None, &Kinds::default(), [taken]).main(), Some(Reason::NameTaken));
}
