//! What is told, when, and what is restarted.

use serde_json::{Value, json};

use super::*;
use crate::cri::{State, keys};

fn pod(change: impl FnOnce(&mut Value)) -> Pod {
    let mut pod = json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"v": "foo"}, "annotations": {},
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "c", "uid": "c",
                "controller": true}]},
        "spec": {"containers": [
            {"name": "z", "image": "i", "env": [{"name": "e2",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['v']"}}}]},
            {"name": "a", "image": "i"},
        ]},
        "status": {"containerStatuses": [
            {"name": "a", "containerID": "containerd://a0"}, {"name": "z", "containerID": "containerd://z0"},
        ]},
    });
    change(&mut pod);
    serde_json::from_value(pod).unwrap()
}

fn container(name: &str, id: &str, created_at: i64) -> Container {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Container {
        id: id.to_owned(),
        state: State::Running,
        created_at,
        labels: [pair(keys::CONTAINER_NAME, name)].into(),
        annotations: [pair(keys::HASH, "8e45cfd0"), pair(keys::RESTART_COUNT, "0")].into(),
        ..Container::default()
    }
}

fn environment(value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("e2".to_owned(), value.to_owned()), ("PATH".to_owned(), "/bin".to_owned())])
}

/// Writes what a draft says into the pod.
fn told(pod: &Pod, meta: &Meta) -> Pod {
    let mut next = pod.clone();
    let text = serde_json::to_string(meta).unwrap();
    next.metadata.annotations =
        [(annotations::RUNTIME_CONTAINERS_META.into(), text.into())].into_iter().collect();
    next
}

/// Node daemon 4.6-8: the fingerprints that everybody must agree on.
#[test]
fn fingerprints_are_those_of_the_original() {
    let pod = pod(|_| {});
    let [z, a] = &*pod.spec.containers else { panic!("two containers") };
    assert_eq!(expected(&pod, a), 86_995_377);
    assert_eq!(expected(&pod, z), 2_053_173_458);
    assert_eq!(current(z, &environment("foo")), 2_053_173_458);
    assert_eq!(current(z, &BTreeMap::new()), 1_885_397_378);
}

/// Node daemon 4.6-1 and 4.6-9: one entry each in the order of the status, and silence afterwards.
#[test]
fn containers_are_told_once() {
    let pod = pod(|_| {});
    let containers = [container("z", "z0", 1), container("a", "a0", 2)];
    let mut draft = draft(&pod, &containers, true);
    assert_eq!(draft.ask, BTreeMap::from([("z".to_owned(), "z0".to_owned())]));
    draft.answer(&pod, "z", &environment("foo"));
    assert!(draft.ask.is_empty() && draft.is_news(&pod));
    assert_eq!(
        serde_json::to_string(&draft.meta).unwrap(),
        "{\"containers\":[{\"name\":\"a\",\"containerID\":\"containerd://a0\",\"restartCount\":0,\
         \"hashes\":{\"plainHash\":2386939856,\"extractedEnvFromMetadataHash\":86995377}},\
         {\"name\":\"z\",\"containerID\":\"containerd://z0\",\"restartCount\":0,\
         \"hashes\":{\"plainHash\":2386939856,\"extractedEnvFromMetadataHash\":2053173458}}]}"
    );
    let after = told(&pod, &draft.meta);
    assert!(is_worth_a_look(Some(&pod), &pod, true));
    assert!(!is_worth_a_look(Some(&after), &after, true));
    assert!(!is_worth_a_look(None, &after, true), "a restart of the daemon writes nothing");
    let again = super::draft(&after, &containers, true);
    assert!(!again.is_news(&after) && again.ask.is_empty());
}

/// Node daemon 4.6-2 and 4.6-3: whose pods.
#[test]
fn only_pods_of_our_kinds_and_with_our_sidecars_are_told_of() {
    let plain = |pod: &mut Value| pod["metadata"]["ownerReferences"][0]["apiVersion"] = json!("apps/v1");
    let deployed = pod(plain);
    assert!(!is_considered(&deployed));
    assert!(!is_worth_a_look(Some(&deployed), &deployed, true));
    let injected = pod(|pod| {
        plain(pod);
        pod["metadata"]["annotations"]["kruise.io/sidecarset-hash"] = json!("{}");
    });
    assert!(is_considered(&injected));
    assert!(!is_worth_a_look(None, &injected, true), "not at the start of the daemon");
    let leaving = pod(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert!(!is_worth_a_look(Some(&leaving), &leaving, true));
}

/// Node daemon 4.6-4: a restart is told, by container.
#[test]
fn a_container_that_was_restarted_gets_a_new_entry() {
    let pod = pod(|_| {});
    let mut first = draft(&pod, &[container("z", "z0", 1), container("a", "a0", 2)], true);
    first.answer(&pod, "z", &environment("foo"));
    let mut restarted = told(&pod, &first.meta);
    restarted.status.container_statuses[0].container_id = "containerd://a1".into();
    assert!(is_worth_a_look(Some(&pod), &restarted, true));
    let mut again = container("a", "a1", 9);
    again.annotations.insert(keys::RESTART_COUNT.to_owned(), "1".to_owned());
    let second = draft(&restarted, &[container("z", "z0", 1), container("a", "a0", 2), again], true);
    assert!(second.is_news(&restarted) && second.ask.is_empty());
    let entry = second.meta.of("a").unwrap();
    assert_eq!((entry.container_id.as_str(), entry.restart_count), ("containerd://a1", 1));
    assert_eq!(second.meta.of("z"), first.meta.of("z"));
}

/// Node daemon 4.6-5 and 4.6-7: new labels restart a container, but only during an update in place.
#[test]
fn a_container_with_old_values_is_restarted_only_while_its_pod_is_updated() {
    let pod = pod(|_| {});
    let mut first = draft(&pod, &[container("z", "z0", 1), container("a", "a0", 2)], true);
    first.answer(&pod, "z", &environment("foo"));
    let before = told(&pod, &first.meta);
    let mut changed = before.clone();
    changed.metadata.labels = [("v".into(), "bar".into())].into_iter().collect();
    assert!(is_worth_a_look(Some(&before), &changed, true));
    assert!(!is_worth_a_look(Some(&before), &changed, false));
    assert!(outdated(&changed, &first.meta).is_empty());
    changed.status.conditions = serde_json::from_value::<Vec<kruise_core::pod::Condition>>(json!([
        {"type": "InPlaceUpdateReady", "status": "False"},
    ]))
    .unwrap()
    .into();
    let names: Vec<String> = outdated(&changed, &first.meta).into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["z"]);
    assert!(outdated(&before, &first.meta).is_empty());
    let second = draft(&changed, &[container("z", "z1", 9), container("a", "a0", 2)], true);
    assert_eq!(second.meta.of("z").unwrap().hashes.env, 0, "the new process is asked anew");
}

#[test]
fn without_the_gate_nobody_asks_for_environments() {
    let pod = pod(|_| {});
    let draft = draft(&pod, &[container("z", "z0", 1), container("a", "a0", 2)], false);
    assert!(draft.ask.is_empty());
    assert!(draft.meta.containers.iter().all(|entry| entry.hashes.env == 0));
    let text = serde_json::to_string(&draft.meta).unwrap();
    assert!(!text.contains("extractedEnvFromMetadataHash"), "{text}");
}
