use jiff::SignedDuration;
use kruise_api::condition::Condition;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    conditions,
    in_place::{Options, OtherImages},
    object::{ObjectKey, POD},
    pod::Pod,
};

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn pod(name: &str, status: Value) -> Pod {
    let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": time(0).to_string()});
    let mut object = json!({
        "metadata": {"name": name, "creationTimestamp": time(0).to_string()},
        "spec": {"containers": [{"name": "main", "image": "app:v9"}]},
        "status": {"phase": "Running", "conditions": [ready]},
    });
    crate::patch_model::merge(&mut object["status"], &status);
    serde_json::from_value(object).unwrap()
}

/// The message about pods, some seconds after they became not ready.
fn message(pods: &[Pod], after: i64) -> (String, Option<u64>) {
    let (options, others) = (Options::default(), OtherImages::new());
    let hooks = Hooks { lifecycle: None, options: &options, others: &others };
    let mut waits = Waits::default();
    super::pods(&pods.iter().collect::<Vec<_>>(), &[], &hooks, time(after), &mut waits);
    (waits.message(), waits.wake_after().map(|after| after.as_secs()))
}

fn pulling(name: &str) -> Pod {
    let text = "Back-off pulling image \"app:v9\": ErrImagePull: manifest unknown.";
    let waiting = json!({"reason": "ImagePullBackOff", "message": text});
    pod(
        name,
        json!({"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]}),
    )
}

/// WAITING-5: after 10 s, with the image and the pods.
#[test]
fn an_image_that_does_not_exist_is_reported_after_ten_seconds() {
    assert_eq!(message(&[pulling("web-a")], 4), (String::new(), Some(6)));
    let one = "1 pod cannot pull app:v9 (web-a): manifest unknown".to_owned();
    assert_eq!(message(&[pulling("web-a")], 10), (one, None));
    let five: Vec<Pod> = ["e", "d", "c", "b", "a"].map(pulling).into();
    let many = "5 pods cannot pull app:v9 (a, b, c and 2 more): manifest unknown".to_owned();
    assert_eq!(message(&five, 99), (many, None));
}

/// WAITING-6: the restart count is no part of the message.
#[test]
fn a_container_that_exits_is_reported_with_its_code() {
    let crashing = |restarts: i32| {
        let last = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
        let state =
            json!({"waiting": {"reason": "CrashLoopBackOff", "message": format!("back-off {restarts}s")}});
        pod(
            "web-a",
            json!({"containerStatuses": [
            {"name": "main", "restartCount": restarts, "state": state, "lastState": last}]}),
        )
    };
    let expected = "container main keeps exiting in 1 pod (web-a): Error, exit code 3";
    assert_eq!(message(&[crashing(1)], 20).0, expected);
    assert_eq!(message(&[crashing(7)], 200).0, expected);
}

/// WAITING-7
#[test]
fn pods_that_fit_no_node_are_reported_with_the_words_of_the_scheduler() {
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/2 nodes are available: 2 node(s) didn't match.", "lastTransitionTime": time(0).to_string()});
    let pod = pod("web-a", json!({"phase": "Pending", "conditions": [condition]}));
    let expected = "1 pod cannot be scheduled (web-a): 0/2 nodes are available: 2 node(s) didn't match";
    assert_eq!(message(&[pod], 10).0, expected);
}

#[track_caller]
fn check_refusal(code: u16, answer: &str, expected: Option<(Reason, &str)>) {
    let object = ObjectKey::new("shop", "web-a");
    let refused = refused("create", POD, &object, code, answer, 2);
    assert_eq!(refused.as_ref().map(|(reason, sentence)| (*reason, sentence.as_str())), expected);
}

/// WAITING-8, WAITING-9, WAITING-26: who refuses is read from the answer of the server.
#[test]
fn refusals_name_who_refuses() {
    let quota = "pods \"web-a\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3";
    let sentence =
        "2 pods are missing: quota small is used up (requested: pods=1, used: pods=3, limited: pods=3)";
    check_refusal(403, quota, Some((Reason::QuotaExceeded, sentence)));
    let denied = "admission webhook \"guard.example\" denied the request: not today.";
    let sentence = "webhook guard.example refuses to create Pod web-a: not today";
    check_refusal(403, denied, Some((Reason::WebhookRefuses, sentence)));
    let down =
        "Internal error occurred: failed calling webhook \"guard.example\": failed to call webhook: refused";
    let sentence = "webhook guard.example does not answer (create pods): failed to call webhook: refused; it is tried again";
    check_refusal(500, down, Some((Reason::WebhookUnavailable, sentence)));
    let forbidden = "pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\"";
    let sentence = format!(
        "the manager may not create pods in shop: {forbidden}; grant it to the ServiceAccount kruise-manager"
    );
    check_refusal(403, forbidden, Some((Reason::PermissionMissing, &sentence)));
    check_refusal(409, "pods \"web-a\" already exists", None);
    let sentence = "Pod web-a exists and belongs to somebody else; delete or rename it";
    let foreign = "an object of this name exists and belongs to somebody else";
    check_refusal(409, foreign, Some((Reason::NameTaken, sentence)));
    let object = ObjectKey::new("shop", "web-a");
    let invalid = "Pod \"web-a\" is invalid: spec.containers: Required value";
    let (reason, sentence) = invalid_template(POD, &object, 422, invalid).unwrap();
    assert_eq!(
        (reason, sentence.starts_with("Pod web-a cannot be created: ")),
        (Reason::RevisionBroken, true)
    );
    assert_eq!(invalid_template(POD, &object, 404, "not found"), None);
    let (reason, sentence) = unavailable("create", "pods", "etcdserver: no leader.");
    let expected = "the API server cannot create pods: etcdserver: no leader; it is tried again";
    assert_eq!((reason, sentence.as_str()), (Reason::ServerUnavailable, expected));
}

/// WAITING-1, WAITING-2, WAITING-29: an object that never waited has no condition, one that waits on keeps its time.
#[test]
fn the_condition_says_since_when_its_reason_holds() {
    let mut all: Vec<Condition> = Vec::new();
    set_condition(&mut all, &Waits::default(), time(0));
    assert!(all.is_empty());
    let mut waits = Waits::default();
    partition(2, 5, "60%", 3, &mut waits);
    assert!(is_taken_over(&all, &waits));
    set_condition(&mut all, &waits, time(1));
    set_condition(&mut all, &waits, time(2));
    let told = conditions::get(&all, CONDITION).unwrap().clone();
    assert_eq!(
        (told.last_transition_time.unwrap().0, told.reason.as_deref()),
        (time(1), Some("PartitionReached"))
    );
    let sentence =
        "2 of 5 pods are updated; partition 60% keeps 3 pods at the old revision; lower it to continue";
    assert_eq!(told.message.as_deref(), Some(sentence), "WAITING-4");
    waits.add(Reason::ImagePullFailing, "x");
    let mut later = all.clone();
    set_condition(&mut later, &waits, time(3));
    assert!(!is_only_text(&all, &later));
    assert_eq!(conditions::get(&later, CONDITION).unwrap().last_transition_time.unwrap().0, time(3));
    set_condition(&mut later, &Waits::default(), time(4));
    let ended = conditions::get(&later, CONDITION).unwrap();
    assert_eq!((ended.status.as_str(), ended.reason.as_deref()), ("False", Some("NotWaiting")));
    assert_eq!(ended.message.as_deref(), Some(""));
}

#[test]
fn sentences_agree_with_their_numbers() {
    assert_eq!(text::of(1, 5), "1 of 5 pods is");
    assert_eq!(text::of_at_most(1, 1), "1 of at most 1 pod is");
    assert_eq!(text::of_at_most(2, 3), "2 of at most 3 pods are");
    assert_eq!(text::foreign(" a\nb. "), "a b");
    let mut waits = Waits::default();
    max_unavailable(1, 1, "20%", "web-x7k2p", &mut waits);
    let expected = "1 of at most 1 pod is unavailable (maxUnavailable: 20%); next to update: web-x7k2p";
    assert_eq!(waits.message(), expected);
    paused("spec.paused", 0, 5, "web-1", &mut waits);
    let paused = "the update is paused (spec.paused: true) with 0 of 5 pods at revision web-1; set it to false to continue";
    assert_eq!(waits.sentence(Reason::Paused), Some(paused), "WAITING-3");
}

proptest! {
    /// WAITING-30: the order in which reasons are found does not matter, and a message has at most three sentences.
    #[test]
    fn messages_do_not_depend_on_the_order(indices in proptest::collection::vec(0..42_usize, 0..8)) {
        let of = |indices: &mut dyn Iterator<Item = &usize>| {
            let mut waits = Waits::default();
            for index in indices {
                let reason = Reason::ALL[*index];
                waits.add(reason, reason.as_str());
            }
            waits
        };
        let waits = of(&mut indices.iter());
        prop_assert_eq!(&waits, &of(&mut indices.iter().rev()));
        prop_assert_eq!(waits.main(), indices.iter().map(|index| Reason::ALL[*index]).min());
        let message = waits.message();
        let (sentences, more) = message.split_once(". And ").unwrap_or((&message, ""));
        prop_assert!(sentences.split(". ").count() <= 3);
        prop_assert_eq!(more.is_empty(), waits.all().len() <= 3);
    }
}

#[test]
fn a_fact_of_the_future_is_reported_after_ten_seconds_at_most() {
    let mut waits = Waits::default();
    waits.add_later(Reason::PodNotReady, Some(time(60)), time(0), "x");
    assert_eq!(waits.wake_after(), Duration::try_from(SignedDuration::from_secs(10)).ok());
}
