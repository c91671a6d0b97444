use kruise_api::gates::Gate;
use serde_json::{Value, json};

use super::kit::World;
use crate::cloneset::Purpose;

/// CLONESET-1: the pod of a minimal object.
#[test]
fn a_new_set_makes_its_pods_with_labels_and_gate() {
    let mut world = World::new(json!({"replicas": 1}));
    world.rest();
    let (name, pod) = world.pods.iter().next().unwrap();
    let labels = &pod["metadata"]["labels"];
    let id = name.strip_prefix("web-").unwrap();
    let update = world.set["status"]["updateRevision"].as_str().unwrap();
    assert_eq!(id.len(), 5);
    assert_eq!(labels["apps.kruise.io/cloneset-instance-id"], id);
    assert_eq!(labels["controller-revision-hash"], update);
    assert_eq!(format!("web-{}", labels["pod-template-hash"].as_str().unwrap()), update);
    assert_eq!(labels["lifecycle.apps.kruise.io/state"], "Normal");
    assert_eq!(pod["spec"]["readinessGates"], json!([{"conditionType": "InPlaceUpdateReady"}]));
    assert_eq!(pod["metadata"]["generateName"], "web-");
    assert_eq!(world.set["status"]["availableReplicas"], 1);
    assert_eq!(world.events, [format!("SuccessfulCreate succeed to create pod {name}")]);
}

/// CLONESET-3
#[test]
fn counts_follow_the_replicas() {
    let mut world = World::resting(json!({}));
    world.edit(json!({"replicas": 8}));
    world.rest();
    assert_eq!(world.pods.len(), 8);
    world.edit(json!({"replicas": 2}));
    world.rest();
    assert_eq!(world.pods.len(), 2);
    assert_eq!((world.count("SuccessfulCreate"), world.count("SuccessfulDelete")), (3, 6));
    world.edit(json!({"replicas": 0}));
    world.rest();
    assert!(world.pods.is_empty());
}

/// CLONESET-5
#[test]
fn a_pod_that_was_deleted_is_replaced() {
    let mut world = World::resting(json!({}));
    let gone = world.names().remove(0);
    world.delete_pod(&gone);
    world.rest();
    assert_eq!(world.pods.len(), 5);
}

/// CLONESET-6, CLONESET-7: pods come and go by their labels and owners only.
#[test]
fn a_pod_with_other_labels_is_let_go_with_its_claims() {
    let mut world = World::resting(json!({"volumeClaimTemplates": [claim("data")]}));
    let free = world.names().remove(0);
    world.label(&free, "app", "other");
    world.rest();
    assert_eq!(world.pods.len(), 6);
    assert_eq!(world.pods[&free]["metadata"]["ownerReferences"], json!([]));
    let owners: Vec<&Value> = world
        .claims
        .values()
        .filter(|one| one["metadata"]["ownerReferences"][0]["kind"] == "Pod")
        .map(|one| &one["metadata"]["ownerReferences"][0]["name"])
        .collect();
    assert_eq!(owners, [&json!(free)], "the claim stays with its pod");
    assert_eq!(world.claims.len(), 6);
    // The freed pod has matching labels again, but no owner.
    world.label(&free, "app", "web");
    world.rest();
    assert_eq!((world.pods.len(), &world.set["status"]["replicas"]), (6, &json!(5)));
}

/// CLONESET-6: once the pod is let go, nothing tells any more whose claims they are.
#[test]
fn claims_follow_a_pod_that_is_let_go_also_when_the_process_dies_in_between() {
    for (reuse, crash) in [(true, 0), (true, 1), (true, 2), (false, 0), (false, 1), (false, 2)] {
        let mut world = World::resting(claims(reuse));
        let free = world.names().remove(0);
        world.label(&free, "app", "other");
        world.crash = Some(crash);
        world.passes(1);
        world.crash = None;
        world.rest();
        assert_eq!((world.pods.len(), world.claims.len()), (3, 6), "{reuse} {crash}");
        assert_eq!(world.pods[&free]["metadata"]["ownerReferences"], json!([]));
        for claim in ["data", "log"] {
            let owners = &world.claims[&format!("{claim}-{free}")]["metadata"]["ownerReferences"];
            assert_eq!((&owners[0]["kind"], &owners[0]["name"]), (&json!("Pod"), &json!(free)));
        }
    }
}

/// CLONESET-8: the garbage collector does the rest.
#[test]
fn a_set_that_is_deleted_does_nothing() {
    let mut world = World::resting(json!({}));
    world.delete_pod(&world.names()[0]);
    world.image("app:v2");
    world.set["metadata"]["deletionTimestamp"] = world.now.to_string().into();
    assert_eq!(world.pass().steps, []);
}

/// CLONESET-9
#[test]
fn pods_are_added_one_after_the_other_if_so_wanted() {
    let mut world =
        World::resting(json!({"replicas": 1, "minReadySeconds": 10, "scaleStrategy": {"maxUnavailable": 1}}));
    world.edit(json!({"replicas": 4}));
    let mut made = Vec::new();
    for _ in 0..60 {
        let before = world.pods.len();
        world.pass();
        if world.pods.len() > before {
            assert_eq!(world.pods.len(), before + 1);
            made.push(world.now);
        }
        world.tick();
    }
    assert_eq!(made.len(), 3);
    assert!(made.windows(2).all(|pair| pair[1].duration_since(pair[0]).as_secs() >= 10), "{made:?}");
    assert_eq!(
        world.events[0],
        "ScaleUpLimited scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 1"
    );
    assert!(world.events.iter().any(|event| event.ends_with("limit: 0")));
}

/// CLONESET-10, CLONESET-11
#[test]
fn pods_to_delete_go_first_and_are_forgotten() {
    let mut world = World::resting(json!({}));
    let chosen = world.names().remove(3);
    world.edit(json!({"scaleStrategy": {"podsToDelete": [chosen]}}));
    world.rest();
    assert!(world.pods.len() == 5 && !world.pods.contains_key(&chosen));
    assert_eq!(world.set["spec"]["scaleStrategy"]["podsToDelete"], json!([]));
    world.events.clear();
    let chosen = world.names().remove(2);
    world.edit(json!({"replicas": 4, "scaleStrategy": {"podsToDelete": [chosen, "unknown"]}}));
    world.rest();
    assert_eq!(world.events, [format!("SuccessfulDelete succeed to delete pod {chosen}")]);
    assert_eq!(world.pods.len(), 4);
}

/// CLONESET-12
#[test]
fn pods_that_are_asked_to_go_obey_the_budget() {
    let mut world = World::resting(json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}}}));
    let chosen: Vec<String> = world.names().drain(..2).collect();
    chosen.iter().for_each(|name| world.label(name, "apps.kruise.io/specified-delete", "false"));
    world.rest_while(&mut |world| assert!(world.available() >= 4));
    assert!(world.pods.len() == 5 && chosen.iter().all(|name| !world.pods.contains_key(name)));
}

/// CLONESET-13
#[test]
fn with_a_surge_the_replacement_comes_first() {
    let mut world =
        World::resting(json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}}));
    let chosen = world.names().remove(0);
    world.label(&chosen, "apps.kruise.io/specified-delete", "true");
    world.rest_while(&mut |world| assert!(world.available() >= 5 && world.pods.len() <= 6));
    assert!(world.pods.len() == 5 && !world.pods.contains_key(&chosen));
}

/// CLONESET-14
#[test]
fn pods_that_wait_for_their_deletion_may_be_left_out_of_the_count() {
    for exclude in [false, true] {
        let mut world = World::resting(json!({
            "lifecycle": {"preDelete": {"finalizersHandler": ["ex.io/f"]}},
            "scaleStrategy": {"excludePreparingDelete": exclude},
            "template": {"metadata": {"finalizers": ["ex.io/f"]}},
        }));
        let chosen = world.names().remove(0);
        world.label(&chosen, "apps.kruise.io/specified-delete", "true");
        world.rest();
        assert_eq!(world.state(&chosen), "PreparingDelete");
        assert_eq!(world.set["status"]["replicas"], if exclude { 6 } else { 5 });
        world.pods.get_mut(&chosen).unwrap()["metadata"]["finalizers"] = json!([]);
        world.rest();
        assert!(!world.pods.contains_key(&chosen));
        assert_eq!(world.pods.len(), 5);
    }
}

/// CLONESET-15
#[test]
fn a_quota_is_told_and_does_not_hold_up_the_rest() {
    let mut world = World::resting(json!({"replicas": 1}));
    world.quota = 3;
    world.edit(json!({"replicas": 5}));
    world.passes(6);
    assert_eq!(world.pods.len(), 3);
    assert_eq!(world.available(), 3, "pods that could be made are taken care of");
    let failed = world.condition("FailedScale");
    assert_eq!((&failed["status"], &failed["message"]), (&json!("True"), &json!("exceeded quota")));
    assert!(
        world
            .events
            .iter()
            .any(|event| event.starts_with("FailedCreate failed to create pod: exceeded quota, pod: web-"))
    );
    world.quota = 10;
    world.rest();
    assert_eq!((world.pods.len(), world.condition("FailedScale")), (5, Value::Null));
}

fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"kind": "d"}, "annotations": {"note": "x"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

fn claims(reuse: bool) -> Value {
    json!({
        "replicas": 2,
        "volumeClaimTemplates": [claim("data"), claim("log")],
        "scaleStrategy": {"enablePVCReuse": reuse},
    })
}

/// CLONESET-16: the same name and claims, and no attempt while the old pod ends.
#[test]
fn a_pod_comes_back_with_its_claims() {
    let mut world = World::resting(claims(true));
    world.slow_end = true;
    let gone = world.names().remove(0);
    let (uids, before) = (world.claims.clone(), world.uids().len());
    world.delete_pod(&gone);
    assert_eq!(world.purposes(), [], "its successor waits");
    world.rest();
    assert!(world.pods.contains_key(&gone) && world.uids().len() == before);
    assert_eq!(world.claims, uids);
    assert_eq!(world.count("FailedCreate"), 0);
    let volumes = &world.pods[&gone]["spec"]["volumes"];
    assert_eq!(
        volumes[0],
        json!({"name": "data", "persistentVolumeClaim": {"claimName": format!("data-{gone}")}})
    );
}

/// CLONESET-17
#[test]
fn without_reuse_name_and_claims_are_new() {
    let mut world = World::resting(claims(false));
    let gone = world.names().remove(0);
    world.delete_pod(&gone);
    world.rest();
    assert!(!world.pods.contains_key(&gone));
    assert!(world.claims.keys().all(|name| !name.ends_with(&gone)) && world.claims.len() == 4);
}

/// CLONESET-18
#[test]
fn claims_go_with_a_pod_that_the_set_deletes() {
    let mut world = World::resting(claims(true));
    world.edit(json!({"replicas": 1}));
    world.rest();
    assert_eq!((world.pods.len(), world.claims.len()), (1, 2));
    let claim = world.claims.values().next().unwrap();
    assert_eq!(claim["metadata"]["labels"]["app"], "web");
    assert_eq!(claim["metadata"]["labels"]["kind"], "d");
    assert_eq!(claim["metadata"]["annotations"]["note"], "x");
}

/// A webhook refuses the deletion, or the process dies before it: the pod runs on and needs its data.
#[test]
fn claims_of_a_pod_whose_deletion_failed_stay() {
    let mut world = World::resting(claims(true));
    world.edit(json!({"replicas": 1}));
    let deletions =
        world.purposes().iter().filter(|purpose| matches!(purpose, Purpose::DeleteClaim(_))).count();
    // The first effect, the deletion of the pod, is lost.
    world.crash = Some(0);
    world.pass();
    assert_eq!((deletions, world.pods.len(), world.claims.len()), (2, 2, 4));
}

/// What goes with a pod stays with a pod that has to wait for its turn, also when the template has no claims any more.
#[test]
fn claims_of_a_pod_whose_deletion_has_no_room_stay() {
    let mut world = World::resting(claims(true));
    world.room.pods = 1;
    world.edit(json!({"replicas": 0, "volumeClaimTemplates": null}));
    while world.pods.len() > 1 {
        world.pass();
    }
    let left = world.names().remove(0);
    let claims: Vec<&String> = world.claims.keys().collect();
    assert_eq!(claims, [&format!("data-{left}"), &format!("log-{left}")]);
    world.rest();
    assert_eq!((world.pods.len(), world.claims.len()), (0, 0));
}

/// A set that uses claims again, the pod that somebody deleted, and one of its claims, which was deleted too and is still there.
fn without_a_pod_whose_claim_goes() -> (World, String, String) {
    let mut world = World::resting(claims(true));
    let gone = world.names().remove(0);
    let log = format!("log-{gone}");
    world.claims.get_mut(&log).unwrap()["metadata"]["deletionTimestamp"] = world.now.to_string().into();
    world.delete_pod(&gone);
    (world, gone, log)
}

/// A claim that is being deleted waits for its pod to end, and is gone a moment later: a pod made in between would wait
/// for it for ever.
#[test]
fn a_pod_comes_back_only_when_a_claim_that_goes_has_gone() {
    let (mut world, gone, log) = without_a_pod_whose_claim_goes();
    let plan = world.pass();
    assert_eq!(plan.purposes(), [], "no other takes its place");
    let expected = format!("claim {log} is being deleted; pod {gone} is created when it is gone");
    assert_eq!(plan.waits.message(), expected, "WAITING-16");
    world.claims.remove(&log);
    assert_eq!(world.pass().purposes(), [Purpose::CreateClaim(log.as_str().into())]);
    assert_eq!(world.pass().purposes(), [Purpose::CreatePod(gone.as_str().into())]);
    world.rest();
    assert_eq!((world.pods.len(), world.claims.len()), (2, 4));
}

/// A claim that somebody holds may never go. Its pod does not wait for ever: another comes, and says nothing of the old id.
#[test]
fn a_claim_that_cannot_end_does_not_keep_a_pod_away() {
    let (mut world, gone, log) = without_a_pod_whose_claim_goes();
    let plan = world.pass();
    assert_eq!((plan.steps.len(), plan.wake_after), (0, Some(std::time::Duration::from_secs(60))));
    world.now += jiff::SignedDuration::from_secs(60);
    world.rest();
    assert_eq!(world.pods.len(), 2);
    assert!(!world.pods.contains_key(&gone) && world.claims.contains_key(&log));
}

/// Claims are made a pass before their pods. Pods that end meanwhile change nothing about who comes next.
#[test]
fn claims_of_pods_to_come_stay_while_other_pods_go() {
    let mut world = World::resting(claims(false));
    world.slow_end = true;
    let gone = world.names().remove(0);
    world.delete_pod(&gone);
    world.edit(json!({"replicas": 4}));
    let made = world.pass().purposes();
    assert!(
        made.iter().all(|one| matches!(one, Purpose::CreateClaim(_) | Purpose::MoveClaim(_))),
        "{made:?}"
    );
    let ids = world.claims.len();
    world.pods.remove(&gone);
    let pods = world.pass().purposes();
    assert!(pods.iter().all(|one| matches!(one, Purpose::CreatePod(_))), "{pods:?}");
    assert_eq!((pods.len(), world.claims.len()), (3, ids));
}

/// Half of the pods were refused, for instance by a quota: those that come later find the claims that were made for them.
#[test]
fn claims_of_pods_that_were_refused_are_kept_for_them() {
    let mut world = World::new(claims(false));
    world.edit(json!({"replicas": 4}));
    world.quota = 2;
    for _ in 0..5 {
        world.pass();
    }
    let before: Vec<String> = world.claims.keys().cloned().collect();
    assert_eq!((world.pods.len(), before.len()), (2, 8));
    world.quota = 10;
    world.rest();
    assert_eq!(world.claims.keys().cloned().collect::<Vec<_>>(), before);
}

/// A slip of the finger can be taken back while it is being carried out.
#[test]
fn pods_with_claims_are_deleted_as_far_as_there_is_room() {
    let mut world = World::new(claims(true));
    world.edit(json!({"replicas": 20}));
    world.rest();
    world.room.pods = 5;
    world.edit(json!({"replicas": 0}));
    world.pass();
    assert_eq!((world.pods.len(), world.claims.len()), (15, 30));
    world.edit(json!({"replicas": 15}));
    world.rest();
    assert_eq!((world.pods.len(), world.claims.len()), (15, 30));
}

/// CLONESET-19
#[test]
fn a_failed_pod_keeps_its_claims_and_another_id_is_used() {
    let mut world = World::resting(claims(true));
    let failed = world.names().remove(0);
    world.pods.get_mut(&failed).unwrap()["status"]["phase"] = "Failed".into();
    world.rest();
    assert_eq!((world.pods.len(), &world.set["status"]["replicas"]), (3, &json!(2)));
    assert_eq!(world.count("FailedCreate"), 0);
    assert!(world.claims.contains_key(&format!("data-{failed}")));
}

/// INPLACE-31: a deletion that is not needed any more is taken back, unless pods were made not ready for it.
#[test]
fn a_deletion_can_be_taken_back() {
    for not_ready in [false, true] {
        let mut world = World::resting(json!({
            "replicas": 3,
            "lifecycle": {"preDelete": {"finalizersHandler": ["ex.io/f"], "markPodNotReady": not_ready}},
            "template": {"metadata": {"finalizers": ["ex.io/f"]}},
        }));
        world.edit(json!({"replicas": 1}));
        world.rest();
        let waiting: Vec<String> =
            world.names().into_iter().filter(|name| world.state(name) == "PreparingDelete").collect();
        assert_eq!(waiting.len(), 2);
        world.edit(json!({"replicas": 2}));
        world.rest();
        let left = waiting.iter().filter(|name| world.state(name) == "PreparingDelete").count();
        assert_eq!((left, world.pods.len()), if not_ready { (2, 3) } else { (1, 3) });
        for name in &waiting {
            world.pods.get_mut(name).unwrap()["metadata"]["finalizers"] = json!([]);
        }
        world.rest();
        assert_eq!(world.pods.len(), 2);
    }
}

/// CLONESET-38: such pods could not be made by the original.
#[test]
fn a_long_name_gets_short_labels() {
    let name = "n".repeat(60);
    let mut world = World::new(json!({"replicas": 1}));
    world.set["metadata"]["name"] = name.as_str().into();
    world.rest();
    let pod = world.pods.values().next().unwrap();
    assert!(pod["metadata"]["labels"]["controller-revision-hash"].as_str().unwrap().len() < 20);
    assert_eq!(world.set["status"]["updatedReplicas"], 1);
    let mut short = World::new(json!({"replicas": 1})).with_gate(Gate::CloneSetShortHash);
    short.rest();
    let labels = &short.pods.values().next().unwrap()["metadata"]["labels"];
    assert_eq!(labels["controller-revision-hash"], labels["pod-template-hash"]);
}

#[test]
fn the_same_pods_and_seed_give_the_same_names() {
    let world = World::resting(json!({"replicas": 2}));
    let mut grown = world.clone();
    grown.edit(json!({"replicas": 9}));
    let (first, second) = (grown.purposes(), grown.purposes());
    assert_eq!(first, second);
    let names: std::collections::BTreeSet<String> = first.iter().map(|one| format!("{one:?}")).collect();
    assert_eq!(names.len(), 7, "{first:?}");
    let mut other = grown.seen();
    other.seed += 1;
    assert_ne!(crate::cloneset::plan(&other).purposes(), first);
    assert!(first.iter().all(|one| matches!(one, Purpose::CreatePod(_))));
}

/// A slip of the finger must not keep the manager from everybody else's work.
#[test]
fn a_pass_plans_a_bounded_number_of_pods_whatever_is_wanted() {
    for spec in [json!({}), claims(true), claims(false)] {
        let mut world = World::resting(spec);
        world.edit(json!({"replicas": i32::MAX}));
        let planned = world.purposes().len();
        assert!((50..10_000).contains(&planned), "{planned}");
    }
    let mut world = World::resting(json!({}));
    world.edit(json!({"replicas": i32::MAX}));
    let mut seen = world.seen();
    seen.write_budget.pods = 7;
    assert_eq!(crate::cloneset::plan(&seen).steps.len(), 7, "what can be written in one pass");
}

/// Pods that cannot be made do not hold up the update of those that exist.
#[test]
fn an_update_goes_on_under_a_quota() {
    let mut world = World::resting(json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {
        "podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 3}}}));
    world.quota = 3;
    world.edit(json!({"replicas": 5}));
    world.image("app:v2");
    world.passes(20);
    assert_eq!(world.images(), ["app:v2", "app:v2", "app:v2"]);
    // Also when the refused pods alone are as many as may be written at once.
    world.room.pods = 2;
    world.edit(json!({"replicas": 9}));
    world.rolling(json!({"maxUnavailable": 9}));
    world.image("app:v3");
    world.passes(20);
    assert_eq!(world.images(), ["app:v3", "app:v3", "app:v3"]);
    assert!(world.pods.values().all(|pod| crate::pod_model::has_condition(pod, "Ready")));
}
