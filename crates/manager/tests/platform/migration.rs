//! A cluster of OpenKruise v1.9.0 becomes ours, and goes back.

use std::{collections::BTreeMap, time::Duration};

use kruise_api::{annotations::PUB_PROTECT_OPERATIONS, catalogue, crd::Crd};
use kruise_core::migration::Goal;
use kruise_manager::migrate::Migration;
use kruise_runtime::{clock::Clock, random::Random};
use kruise_testkit::{
    Outcome,
    wait::{Look, eventually},
};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::stage::{Stage, managed};

/// Objects as the original serves them in the older version, one line of JSON with the member `old` for each.
const RECORDED: [&str; 6] = [
    include_str!("../../../api/tests/recorded/conversion-cloneset.jsonl"),
    include_str!("../../../api/tests/recorded/conversion-containerrecreaterequest.jsonl"),
    include_str!("../../../api/tests/recorded/conversion-persistentpodstate.jsonl"),
    include_str!("../../../api/tests/recorded/conversion-podunavailablebudget.jsonl"),
    include_str!("../../../api/tests/recorded/conversion-uniteddeployment.jsonl"),
    include_str!("../../../api/tests/recorded/conversion-workloadspread.jsonl"),
];
/// How long API servers get to hear of a changed definition.
const SETTLE: Duration = Duration::from_secs(5);
/// Controllers look at no namespace of this test: objects change by migration alone.
const ELSEWHERE: &str = "--namespace=kruise-system";

/// The kinds that the original stores in another version than we do.
fn seven() -> Vec<&'static Crd> {
    let all = catalogue::CRDS.iter().copied();
    all.filter(|crd| Goal::OpenKruise19.version(crd) != Goal::Ours.version(crd)).collect()
}

/// The definition of a kind as the original's release has it: the older version and no other.
fn original(crd: &Crd) -> Value {
    let mut definition = crd.object();
    let versions = definition["spec"]["versions"].as_array_mut().unwrap();
    versions.retain(|version| version["name"] == "v1alpha1");
    versions[0]["storage"] = true.into();
    definition["spec"]["conversion"] = json!({"strategy": "None"});
    definition
}

/// Every recorded object under a name of its own, and one of the kind that was not recorded.
fn recorded(namespace: &str) -> Vec<Value> {
    let lines = RECORDED.iter().flat_map(|lines| lines.lines());
    let mut objects: Vec<Value> =
        lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["old"].take()).collect();
    objects.push(json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
        "spec": {
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "game"}, "data": {"lives": "3"}},
            "targets": {
                "includedNamespaces": {"list": [{"name": "a"}, {"name": "b"}]},
                "excludedNamespaces": {"list": [{"name": "c"}]},
                "namespaceLabelSelector": {"matchLabels": {"team": "games"}},
            },
        },
        "status": {"desired": 2, "succeeded": 1, "failed": 1, "observedGeneration": 1, "conditions": [
            {"type": "CreateConflict", "status": "True", "reason": "Failed", "failedNamespace": ["b"],
                "lastTransitionTime": "2026-06-21T00:00:00Z"}]},
    }));
    for (number, object) in objects.iter_mut().enumerate() {
        object["metadata"]["name"] = format!("{namespace}-{number}").into();
        if object["kind"] != "ResourceDistribution" {
            object["metadata"]["namespace"] = namespace.into();
        }
    }
    objects
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

fn in_new_version(object: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = object["apiVersion"].as_str().unwrap().replace("v1alpha1", "v1beta1").into();
    object
}

/// What must be the same after every step: everything but what the server keeps about an object. An empty object says as
/// much as none, and a list in an annotation the same with and without blanks.
fn essence(object: &DynamicObject) -> Value {
    let mut annotations = object.metadata.annotations.clone().unwrap_or_default();
    if let Some(list) = annotations.get_mut(PUB_PROTECT_OPERATIONS) {
        list.retain(|letter| letter != ' ');
    }
    let mut essence =
        json!({"labels": object.metadata.labels, "annotations": annotations, "data": object.data});
    drop_empty(&mut essence);
    essence
}

fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(drop_empty);
            members.retain(|_, member| {
                !member.is_null() && member.as_object().is_none_or(|object| !object.is_empty())
            });
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

struct Cluster<'a> {
    stage: &'a Stage,
    objects: &'a [Value],
}

impl Cluster<'_> {
    async fn essences(&self) -> Vec<Value> {
        let mut found = Vec::new();
        for object in self.objects {
            let read = self.stage.api(object).get(name(object)).await;
            found.push(essence(&read.unwrap_or_else(|error| panic!("{}: {error}", object["kind"]))));
        }
        found
    }

    #[track_caller]
    fn assert_same(&self, found: &[Value], before: &[Value]) {
        for ((object, found), before) in self.objects.iter().zip(found).zip(before) {
            assert_eq!(found, before, "{} {}", object["kind"], name(object));
        }
    }
}

async fn stored(stage: &Stage, crd: &Crd) -> Value {
    stage.definitions().get(&crd.name()).await.unwrap().data["status"]["storedVersions"].clone()
}

/// The seven kinds as the original has them, with objects.
async fn install_original(stage: &Stage, objects: &[Value]) {
    let others: Vec<&str> = catalogue::CRDS.iter().map(|crd| crd.kind).collect();
    let seven = seven();
    let kept: Vec<&str> =
        others.into_iter().filter(|kind| seven.iter().all(|crd| crd.kind != *kind)).collect();
    stage.keep_only(&kept).await;
    for crd in &seven {
        stage.put(original(crd)).await;
    }
    // API servers serve a new kind a moment after they know it.
    tokio::time::sleep(SETTLE).await;
    for object in objects {
        stage.create(object.clone()).await.unwrap_or_else(|error| panic!("{}: {error}", object["kind"]));
        if object.get("status").is_some() {
            let status = Patch::Merge(json!({"status": object["status"]}));
            let api = stage.api(object);
            api.patch_status(name(object), &PatchParams::default(), &status).await.unwrap();
        }
    }
}

/// PLATFORM-44: objects of the seven kinds, recorded from the original and stored as it stores them, move to our version
/// and back, and are the same at every step. In the end the original's definitions can be installed again.
async fn stored_versions_move_to_ours_and_back_without_loss(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("storage").await;
    let objects = recorded(sandbox.namespace());
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for object in &objects {
        *kinds.entry(object["kind"].as_str().unwrap()).or_default() += 1;
    }
    println!("{kinds:?}");
    assert_eq!(kinds.len(), seven().len());

    // The original is there, and we are not.
    stage.kill_manager();
    stage.remove_webhooks().await;
    install_original(stage, &objects).await;
    let before = Cluster { stage, objects: &objects }.essences().await;

    // We are installed over it.
    stage.cluster.install_crds().await;
    stage.put_webhooks().await;
    stage.start_manager().await;
    let cluster = Cluster { stage, objects: &objects };
    let new: Vec<Value> = objects.iter().map(in_new_version).collect();
    let converted = eventually("objects can be read in both versions", Duration::from_secs(30), async || {
        match stage.api(&new[0]).get(name(&new[0])).await {
            Ok(_) => Look::Yes(()),
            Err(error) => Look::No(error.to_string()),
        }
    });
    converted.await.unwrap();
    let hub = Cluster { stage, objects: &new }.essences().await;
    cluster.assert_same(&cluster.essences().await, &before);
    let migration = Migration::new(stage.cluster.client(), Clock::wall(), Random::seeded(1));
    migration.run(Goal::Ours, SETTLE, false, |line| println!("{line}")).await.unwrap();
    for crd in catalogue::CRDS {
        assert_eq!(stored(stage, crd).await, json!([crd.storage().unwrap().name]), "{}", crd.name());
    }
    cluster.assert_same(&cluster.essences().await, &before);

    // With nobody to convert, everything can be read as it is stored now.
    stage.kill_manager();
    let alone = Cluster { stage, objects: &new };
    alone.assert_same(&alone.essences().await, &hub);

    // Back again.
    stage.start_manager().await;
    let back = eventually("the way back", Duration::from_secs(60), async || {
        match migration.run(Goal::OpenKruise19, SETTLE, false, |line| println!("{line}")).await {
            Ok(()) => Look::Yes(()),
            Err(error) => Look::No(error.to_string()),
        }
    });
    back.await.unwrap();
    for crd in seven() {
        assert_eq!(stored(stage, crd).await, json!(["v1alpha1"]), "{}", crd.name());
    }
    stage.kill_manager();
    for crd in seven() {
        stage.put(original(crd)).await;
    }
    tokio::time::sleep(SETTLE).await;
    let original = Cluster { stage, objects: &objects };
    original.assert_same(&original.essences().await, &before);

    // Nobody could convert what is left when the namespace goes.
    stage.remove_webhooks().await;
    for object in &objects {
        stage.api(object).delete(name(object), &DeleteParams::default()).await.unwrap();
    }
    for crd in seven() {
        stage.definitions().delete(&crd.name(), &DeleteParams::default()).await.unwrap();
    }
    Ok(())
}
managed!(stored_versions_move_to_ours_and_back_without_loss, [super::ELSEWHERE]);
