//! What holds for every input.

use std::sync::Arc;

use kruise_api::{kubernetes::validation, persistentpodstate::v1beta1::PersistentPodState};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::{seen, state, written};
use crate::{
    persistentpodstate::{Observed, Plan, decide, generate, inject},
    pod::Condition,
};

const KEYS: [&str; 5] = ["zone", "host", "rack", "", "not a key!"];
const VALUES: [&str; 4] = ["a", "b", "", "not a value!"];

fn keys() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(&KEYS[..]), 0..3)
}

fn spec() -> impl Strategy<Value = Value> {
    let required = prop::option::of(keys());
    let preferred = prop::collection::vec((keys(), -2..103i32), 0..3);
    let policy = prop::sample::select(&["WhenScaled", "WhenDeleted", "Foo"][..]);
    (required, preferred, policy, keys()).prop_map(|(required, preferred, policy, noted)| {
        let wishes: Vec<Value> = preferred
            .into_iter()
            .map(|(keys, weight)| json!({"weight": weight, "preference": {"keys": keys}}))
            .collect();
        let noted: Vec<Value> = noted.into_iter().map(|key| json!({"key": key})).collect();
        json!({
            "requiredPersistentTopology": required.map(|keys| json!({"keys": keys})),
            "preferredPersistentTopology": wishes,
            "persistentPodStateRetentionPolicy": policy,
            "persistentPodAnnotations": noted,
        })
    })
}

fn records() -> impl Strategy<Value = Value> {
    let labels =
        prop::collection::btree_map(prop::sample::select(&KEYS[..]), prop::sample::select(&VALUES[..]), 0..4);
    let pod = prop::sample::select(&["web-0", "web-1", "web-7", "odd"][..]);
    let all = prop::collection::btree_map(pod, (labels, prop::sample::select(&["n1", "n2", "n9"][..])), 0..4);
    all.prop_map(|all| {
        let record = |(labels, node)| json!({"nodeName": node, "nodeTopologyLabels": labels});
        all.into_iter()
            .map(|(pod, known)| (pod.to_owned(), record(known)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    })
}

fn members() -> impl Strategy<Value = String> {
    let is = prop::sample::select(&["ready", "pending", "ends", "failed"][..]);
    let node = prop::sample::select(&["", "n1", "n2", "n9"][..]);
    let pods = prop::collection::btree_map(0..4_u8, (node, is), 0..4);
    pods.prop_map(|pods| {
        let pods = pods.into_iter().map(|(number, (node, is))| format!("web-{number}:{node}:{is}"));
        pods.collect::<Vec<_>>().join(" ")
    })
}

fn object() -> impl Strategy<Value = PersistentPodState> {
    (spec(), records()).prop_map(|(spec, records)| {
        state(json!({"spec": spec, "status": {"observedGeneration": 1, "podStates": records}}))
    })
}

const NODES: &str = "n1:zone=a,host=n1 n2:zone=b,rack=r";

fn observed() -> impl Strategy<Value = Observed> {
    (object(), prop::option::of(0..3_i64), members()).prop_map(|(state, replicas, members)| Observed {
        state: Arc::new(state),
        ..seen(json!({}), replicas, &members, NODES)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// After its own write nothing is left to write, and the order in which pods are seen does not matter.
    #[test]
    fn a_pass_settles(seen in observed()) {
        let plan = decide(&seen);
        let mut turned = seen.clone();
        if let Some(members) = &mut turned.members {
            members.pods.reverse();
        }
        prop_assert_eq!(&decide(&turned), &plan);
        let after: PersistentPodState = serde_json::from_value(written(&seen.state, &plan)).unwrap();
        let again = decide(&Observed { state: Arc::new(after), ..seen });
        prop_assert_eq!(again, Plan { status: None, forgets: false, ..plan });
    }

    /// A record changes only to where a pod of that name is and is ready; one that is forgotten belongs to no pod.
    #[test]
    fn records_say_where_pods_were_ready(seen in observed()) {
        let object = written(&seen.state, &decide(&seen));
        let before = seen.state.status.clone().unwrap_or_default().pod_states;
        let after = object["status"]["podStates"].as_object().cloned().unwrap_or_default();
        let members = seen.members.clone().unwrap_or_default().pods;
        let ready = |name: &str| members.iter().find(|pod| {
            pod.metadata.name == *name && pod.is_active() && pod.condition("Ready").is_some_and(Condition::is_true)
        });
        for (pod, record) in &after {
            let is_old = before.get(pod).is_some_and(|old| serde_json::to_value(old).unwrap() == *record);
            let arrived = ready(pod).is_some_and(|pod| record["nodeName"] == pod.spec.node_name.as_str());
            prop_assert!(is_old || arrived, "{} {}", pod, record);
        }
        for pod in before.keys().filter(|pod| !after.contains_key(*pod)) {
            let is_active = members.iter().any(|one| one.metadata.name == *pod.as_str() && one.is_active());
            prop_assert!(!is_active, "{} is forgotten", pod);
        }
    }

    /// Whatever is in an object, the pod is one that the API server takes, keeps what it had, and a second time changes
    /// nothing more.
    #[test]
    fn no_object_breaks_a_pod(state in object(), name in prop::sample::select(&["web-0", "web-1", "odd"][..])) {
        let mut pod = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {
            "containers": [{"name": "main", "image": "app", "imagePullPolicy": "Always",
                "terminationMessagePolicy": "File"}],
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "nodeSelector": {"os": "linux"}}});
        let before = validation::pod(&pod);
        inject(&mut pod, &state);
        prop_assert_eq!(validation::pod(&pod), before);
        prop_assert_eq!(&pod["spec"]["nodeSelector"]["os"], "linux");
        let once = pod.clone();
        inject(&mut pod, &state);
        prop_assert_eq!(pod, once);
    }

    /// An object that the workload does not control is never written.
    #[test]
    fn what_belongs_to_somebody_else_is_not_written(
        state in object(),
        enabled in any::<bool>(),
        required in "[a-z, ]{0,8}",
    ) {
        let annotations = json!({
            "kruise.io/auto-generate-persistent-pod-state": enabled.to_string(),
            "kruise.io/required-persistent-topology": required});
        let found = generate(Some(&state), &[super::kit::set("set-uid", annotations)]);
        prop_assert_eq!(found.effect, None);
    }
}
