//! What is noted and what is forgotten.

use std::sync::Arc;

use kruise_api::gates::Gates;
use serde_json::{Value, json};

use super::kit::{after, nodes, pods, records, seen, set};
use crate::{
    persistentpodstate::{Members, Observed, Set, decide, is_news, wanted_nodes},
    statefulset::ordinals::{Ordinals, reserved},
    text::Text,
};

const NODES: &str = "n1:zone=a,host=n1 n2:zone=b,host=n2 n3:zone=c";

/// `before` and `expected` are records, `members` are pods of a workload with three replicas.
#[track_caller]
fn check(before: &str, members: &str, expected: &str) {
    let status = json!({"status": {"observedGeneration": 3, "podStates": records(before)}});
    assert_eq!(after(&seen(status, Some(3), members, NODES)), expected);
}

/// PPS-14, PPS-15
#[test]
fn only_pods_that_have_arrived_are_noted() {
    check("", "web-0:n1:ready web-1:n2:pending", "web-0:n1:host=n1,zone=a");
    check("", "web-0:n3:ready", "web-0:n3:zone=c");
    check("", "web-0:n1:ends web-1:n1:failed web-2::ready", "");
    let old = "web-0:n1:host=n1,zone=a";
    check(old, "web-0:n2:pending", old);
    check(old, "", old);
    check(old, "web-0:n2:ready", "web-0:n2:host=n2,zone=b");
}

#[test]
fn a_record_of_the_same_node_and_keys_stays_as_it_is() {
    check("web-0:n1:host=old,zone=old", "web-0:n1:ready", "web-0:n1:host=old,zone=old");
    check("web-0:n1:zone=old", "web-0:n1:ready", "web-0:n1:host=n1,zone=a");
}

#[test]
fn asked_annotations_are_noted() {
    let spec = json!({"spec": {"persistentPodAnnotations": [{"key": "ip"}, {"key": "none"}]}});
    let seen = seen(spec, Some(1), "web-0:n3:ready:ip=1.2.3.4,other=x", NODES);
    assert_eq!(after(&seen), "web-0:n3:zone=c:ip=1.2.3.4");
}

/// A node that cannot be read leaves the old record.
#[test]
fn a_node_that_is_not_known_changes_no_record() {
    let status = json!({"status": {"observedGeneration": 3, "podStates": records("web-0:n1:zone=a")}});
    let seen = seen(status, Some(2), "web-0:n9:ready web-1:n1:ready", NODES);
    assert_eq!(after(&seen), "web-0:n1:zone=a web-1:n1:host=n1,zone=a");
    assert_eq!(decide(&seen).unread, ["n9"]);
}

/// PPS-5
#[test]
fn scaling_in_forgets_pods_that_are_gone() {
    let all = "web-0:n1:zone=a web-1:n1:zone=a web-2:n1:zone=a";
    let status = json!({"status": {"observedGeneration": 3, "podStates": records(all)}});
    let check = |policy: Value, members: &str, expected: &str| {
        let mut state = status.clone();
        state["spec"] = json!({"persistentPodStateRetentionPolicy": policy});
        assert_eq!(after(&seen(state, Some(1), members, "")), expected, "{policy} {members}");
    };
    check(Value::Null, "web-0:n1:pending", "web-0:n1:zone=a");
    check(json!("WhenScaled"), "web-1:n1:pending", "web-0:n1:zone=a web-1:n1:zone=a");
    check(json!("WhenScaled"), "web-1:n1:ends", "web-0:n1:zone=a");
    check(json!("WhenDeleted"), "", all);
    check(json!("Foo"), "", "web-0:n1:zone=a");
}

/// PPS-6, PPS-7
#[test]
fn ordinals_that_the_workload_wants_are_kept() {
    let check = |ordinals: Option<Ordinals>, before: &str, expected: &str, nameless: &[&str]| {
        let status = json!({"status": {"observedGeneration": 3, "podStates": records(before)}});
        let mut seen = seen(status, Some(0), "", "");
        seen.members = Some(Members { ordinals, pods: Vec::new() });
        assert_eq!(after(&seen), expected);
        assert_eq!(decide(&seen).nameless, nameless);
    };
    let reserve = vec![reserved(&1.into()).unwrap()];
    check(Some(Ordinals::new(0, reserve, 3)), "w-0:n w-1:n w-2:n w-3:n w-4:n", "w-0:n w-2:n w-3:n", &[]);
    check(Some(Ordinals::new(10, Vec::new(), 2)), "w-0:n w-10:n w-11:n w-12:n", "w-10:n w-11:n", &[]);
    check(Some(Ordinals::default()), "w-0:n odd:n w-x:n", "odd:n w-x:n", &["odd", "w-x"]);
    check(None, "w-0:n w-9:n", "w-0:n w-9:n", &[]);
}

#[test]
fn a_workload_says_which_ordinals_it_wants() {
    let check = |set: Set, expected: &[i64]| {
        let ordinals = set.ordinals.unwrap();
        assert_eq!(ordinals.iter().collect::<Vec<_>>(), expected);
    };
    let native =
        |spec: Value| serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap();
    check(Set::of_native(&native(json!({"replicas": 2, "ordinals": {"start": 10}}))), &[10, 11]);
    check(Set::of_native(&native(json!({}))), &[0]);
    let resource = crate::workload::DEPLOYMENT;
    check(Set::of_listed(resource, &native(json!({}))), &[]);
    check(Set::of_listed(resource, &native(json!({"replicas": 1, "ordinals": {"start": -5}}))), &[0]);
    let own = json!({"metadata": {"name": "web"}, "spec": {"replicas": 3, "reserveOrdinals": [1],
        "selector": {"matchLabels": {"a": "b"}}, "template": {}}});
    let own = serde_json::from_value(own).unwrap();
    check(Set::of_own(&Default::default(), &own, &Gates::default()), &[0, 2, 3]);
}

/// PPS-8
#[test]
fn a_workload_that_is_gone_leaves_no_records() {
    let status = json!({"status": {"observedGeneration": 1, "podStates": records("web-0:n1:zone=a")}});
    let gone = seen(status, None, "", "");
    let object = super::kit::written(&gone.state, &decide(&gone));
    assert_eq!(object["status"], json!({"observedGeneration": 3}));
    let fresh = seen(json!({}), None, "", "");
    assert_eq!(
        super::kit::written(&fresh.state, &decide(&fresh))["status"],
        json!({"observedGeneration": 3})
    );
}

#[test]
fn nothing_is_written_when_nothing_differs() {
    let status = json!({"observedGeneration": 3, "podStates": records("web-0:n1:host=n1,zone=a")});
    let seen = seen(json!({"status": status}), Some(1), "web-0:n1:ready", NODES);
    assert_eq!(decide(&seen), Default::default());
}

#[test]
fn only_nodes_of_pods_that_have_arrived_are_asked_about() {
    let found = wanted_nodes(&pods("a-0:n1:ready a-1:n2:pending a-2:n3:ends a-3:n1:ready"));
    assert_eq!(found.iter().map(Text::as_str).collect::<Vec<_>>(), ["n1"]);
}

#[test]
fn pods_are_news_when_they_arrive_and_when_they_end() {
    let check = |before: &str, after: &str, expected: bool| {
        let (before, after) = (pods(before), pods(after));
        let (before, after) = (before.first().map(Arc::as_ref), after.first().map(Arc::as_ref));
        assert_eq!(is_news(before, after), expected, "{before:?} {after:?}");
    };
    check("a:n:pending", "a:n:ready", true);
    check("a:n:ready", "a:n:pending", false);
    check("a:n:ready", "a:n:ready:ip=1", false);
    check("a:n:pending", "a:n:pending", false);
    check("a:n:ready", "a:n:ends", true);
    check("a:n:ready", "a:n:failed", true);
    check("a:n:pending", "", true);
    check("", "a:n:ready", true);
    check("", "a::pending", false);
}

/// A workload that is deleted without its pods and made again adopts them: none becomes ready then.
#[test]
fn pods_are_news_when_they_are_adopted() {
    let all = pods("a:n:ready");
    let orphan = all.first().unwrap().as_ref();
    let mut adopted = orphan.clone();
    let owner = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a", "uid": "u", "controller": true}]);
    adopted.metadata.owner_references = serde_json::from_value(owner).unwrap();
    assert!(is_news(Some(orphan), Some(&adopted)) && is_news(Some(&adopted), Some(orphan)));
    assert!(!is_news(Some(&adopted), Some(&adopted)));
}

#[test]
fn workloads_are_news_when_they_want_other_pods_or_ask_for_something_else() {
    let plain = set("u", json!({}));
    let asking = set("u", json!({"kruise.io/auto-generate-persistent-pod-state": "true"}));
    let listing = set("u", json!({"kruise.io/persistent-pod-annotations": "ip"}));
    assert!(Set::is_news(None, Some(&plain)) && Set::is_news(Some(&plain), None));
    assert!(!Set::is_news(Some(&plain), Some(&asking)));
    assert!(Set::is_news(Some(&plain), Some(&set("other", json!({})))));
    let fewer = Set { ordinals: Some(Ordinals::new(0, Vec::new(), 1)), ..plain.clone() };
    assert!(Set::is_news(Some(&plain), Some(&fewer)));
    assert!(!Set::asks_anew(Some(&plain), Some(&fewer)) && !Set::asks_anew(None, Some(&plain)));
    assert!(Set::asks_anew(Some(&plain), Some(&asking)) && Set::asks_anew(Some(&asking), Some(&plain)));
    assert!(Set::asks_anew(Some(&asking), Some(&listing)) && Set::asks_anew(None, Some(&asking)));
    assert!(!Set::asks_anew(Some(&listing), Some(&listing)));
}

#[test]
fn the_order_of_what_is_seen_does_not_matter() {
    let members = "web-1:n2:ready web-0:n1:ready web-2:n9:ready";
    let mut seen = seen(json!({}), Some(3), members, NODES);
    let plan = decide(&seen);
    let reversed = seen.members.as_ref().map(|members| Members {
        pods: members.pods.iter().rev().cloned().collect(),
        ordinals: members.ordinals.clone(),
    });
    seen = Observed { members: reversed, nodes: nodes(NODES), ..seen };
    assert_eq!(decide(&seen), plan);
}
