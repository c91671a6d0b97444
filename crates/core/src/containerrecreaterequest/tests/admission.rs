use std::sync::Arc;

use kruise_api::gates::Gates;
use serde_json::{Value, json};

use crate::{
    admission::{
        Answer, Kind, Operation, Request,
        kinds::{Cluster, Context, mutate},
    },
    object::ObjectKey,
    pod::Pairs,
};

/// A cluster with one pod and its node.
struct World {
    pod: Value,
    node: Result<Pairs, String>,
}

impl Cluster for World {
    fn whole_pod(&self, key: &ObjectKey) -> Result<Option<Arc<Value>>, String> {
        if key.name == "unreadable" {
            return Err("the server is away".to_owned());
        }
        let is_it =
            self.pod["metadata"]["name"] == *key.name && self.pod["metadata"]["namespace"] == *key.namespace;
        Ok(is_it.then(|| Arc::new(self.pod.clone())))
    }

    fn node(&self, _: &str) -> Result<Pairs, String> {
        self.node.clone()
    }
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "web-1", "namespace": "ns", "uid": "u1"},
        "spec": {
            "nodeName": "n1",
            "terminationGracePeriodSeconds": 5,
            "initContainers": [{"name": "ini"}, {"name": "nat", "restartPolicy": "Always"}],
            "containers": [
                {"name": "app", "ports": [{"name": "web", "containerPort": 80}]},
                {"name": "sidecar"},
                {"name": "new"},
            ],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "app", "containerID": "containerd://a", "restartCount": 2},
                {"name": "sidecar", "containerID": "containerd://s", "restartCount": 0},
                {"name": "new", "restartCount": 0},
            ],
            "initContainerStatuses": [
                {"name": "ini", "containerID": "containerd://i", "restartCount": 0},
                {"name": "nat", "containerID": "containerd://n", "restartCount": 1},
            ],
        },
    })
}

fn base(version: &str) -> Value {
    json!({
        "apiVersion": format!("apps.kruise.io/{version}"), "kind": "ContainerRecreateRequest",
        "metadata": {"name": "r", "namespace": "ns"},
        "spec": {"podName": "web-1", "containers": [{"name": "app"}]},
    })
}

/// Gives the object as it is stored, or the refusal.
fn asked(world: &World, operation: Operation, object: &Value, old: &Value) -> Result<Value, String> {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap();
    let kind = Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: "ContainerRecreateRequest".to_owned(),
    };
    let request = Request {
        kind,
        operation,
        namespace: "ns".to_owned(),
        object: object.clone(),
        old_object: old.clone(),
        ..Request::default()
    };
    let context = Context {
        gates: &Gates::default(),
        allow_privileged: true,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        seed: 7,
        cluster: world,
    };
    match mutate(&request, &context) {
        Answer::Denied { code, message } | Answer::Held { code, message, .. } => {
            Err(format!("{code} {message}"))
        }
        Answer::Allowed { patch, .. } => {
            let mut object = object.clone();
            let patch = patch.unwrap_or_default();
            json_patch::patch(&mut object, &patch).unwrap();
            Ok(object)
        }
    }
}

fn world(change: Value) -> World {
    let mut pod = pod();
    json_patch::merge(&mut pod, &change);
    World { pod, node: Ok(Pairs::default()) }
}

#[track_caller]
fn refused(change: Value, expected: &str) {
    for version in ["v1alpha1", "v1beta1"] {
        let mut object = base(version);
        json_patch::merge(&mut object, &change);
        let answer = asked(&world(json!({})), Operation::Create, &object, &Value::Null);
        assert_eq!(answer.expect_err("accepted"), expected, "{version}");
    }
}

#[track_caller]
fn refused_with_pod(pod: Value, expected: &str) {
    let answer = asked(&world(pod), Operation::Create, &base("v1beta1"), &Value::Null);
    assert_eq!(answer.expect_err("accepted"), expected);
}

/// CRR-1: the first half, what a request gets when it is made.
#[test]
fn a_request_is_completed_from_its_pod() {
    for version in ["v1alpha1", "v1beta1"] {
        let stored = asked(&world(json!({})), Operation::Create, &base(version), &Value::Null).unwrap();
        assert_eq!(
            stored["metadata"]["labels"],
            json!({
                "crr.apps.kruise.io/active": "true", "crr.apps.kruise.io/node-name": "n1",
                "crr.apps.kruise.io/pod-uid": "u1",
            })
        );
        assert_eq!(
            stored["spec"],
            json!({
                "podName": "web-1",
                "containers": [
                    {"name": "app", "statusContext": {"containerID": "containerd://a", "restartCount": 2}},
                ],
                "strategy": {"failurePolicy": "Fail", "terminationGracePeriodSeconds": 5},
            })
        );
    }
    let mut own = base("v1beta1");
    own["spec"]["strategy"] = json!({"failurePolicy": "Ignore", "terminationGracePeriodSeconds": 0});
    let stored = asked(&world(json!({})), Operation::Create, &own, &Value::Null).unwrap();
    assert_eq!(stored["spec"]["strategy"], own["spec"]["strategy"], "what is given stays");
}

/// CRR-10 and CRR-11: what the daemon needs for a hook is copied, sleeping included (CRR-D3).
#[test]
fn hooks_are_copied_and_ports_only_for_those_that_ask_one() {
    let hook = |hook: Value| {
        let mut world = world(json!({}));
        world.pod["spec"]["containers"][0]["lifecycle"] = json!({"preStop": hook});
        let stored = asked(&world, Operation::Create, &base("v1beta1"), &Value::Null).unwrap();
        (stored["spec"]["containers"][0]["preStop"].clone(), stored["spec"]["containers"][0]["ports"].clone())
    };
    let http = json!({"httpGet": {"port": "web", "path": "/bye"}});
    assert_eq!(hook(http.clone()), (http, json!([{"name": "web", "containerPort": 80}])));
    for other in [json!({"exec": {"command": ["a"]}}), json!({"sleep": {"seconds": 5}})] {
        assert_eq!(hook(other.clone()), (other, Value::Null));
    }
}

/// CRR-24: native sidecars are accepted (CRR-D5), plain init containers are not.
#[test]
fn native_sidecars_can_be_recreated_and_init_containers_cannot() {
    let mut object = base("v1beta1");
    object["spec"]["containers"] = json!([{"name": "nat"}]);
    let stored = asked(&world(json!({})), Operation::Create, &object, &Value::Null).unwrap();
    assert_eq!(
        stored["spec"]["containers"][0]["statusContext"],
        json!({"containerID": "containerd://n", "restartCount": 1})
    );
    refused(json!({"spec": {"containers": [{"name": "ini"}]}}), "400 container ini not found in Pod");
}

/// CRR-26: bad input, each with its text.
#[test]
fn bad_requests_are_refused_with_the_words_of_the_original() {
    refused(json!({"spec": {"podName": ""}}), "400 podName can not be empty");
    refused(json!({"spec": {"podName": null}}), "400 podName can not be empty");
    refused(json!({"spec": {"containers": []}}), "400 containers list can not be null");
    refused(json!({"spec": {"containers": null}}), "400 containers list can not be null");
    refused(
        json!({"spec": {"activeDeadlineSeconds": 2}}),
        "400 activeDeadlineSeconds can not be less than 3s",
    );
    for field in ["terminationGracePeriodSeconds", "unreadyGracePeriodSeconds"] {
        refused(
            json!({"spec": {"strategy": {field: -1}}}),
            &format!("400 {field} must be non-negative integer"),
        );
    }
    refused(json!({"spec": {"strategy": {"failurePolicy": "Maybe"}}}), "400 unknown failurePolicy Maybe");
    refused(json!({"spec": {"podName": "nope"}}), "400 no found Pod named nope");
    refused(
        json!({"spec": {"podName": "unreadable"}}),
        "500 failed to find Pod unreadable: the server is away",
    );
    refused(
        json!({"spec": {"containers": [{"name": "app"}, {"name": "app"}]}}),
        "400 can not recreate app multi times",
    );
    for given in [
        json!({"preStop": {"exec": {"command": ["a"]}}}),
        json!({"ports": [{"containerPort": 1}]}),
        json!({"statusContext": {"containerID": "x", "restartCount": 0}}),
    ] {
        let mut container = json!({"name": "app"});
        json_patch::merge(&mut container, &given);
        refused(
            json!({"spec": {"containers": [container]}}),
            "400 preStop, ports, statusContext in container are ready-only fields",
        );
    }
    refused(json!({"spec": {"containers": [{"name": "nope"}]}}), "400 container nope not found in Pod");
    refused(
        json!({"spec": {"containers": [{"name": "new"}]}}),
        "400 no containerID in new containerStatus, maybe the container has not been initialized",
    );
    refused_with_pod(
        json!({"status": {"containerStatuses": []}}),
        "400 not found app containerStatus in Pod Status",
    );
    refused_with_pod(
        json!({"spec": {"nodeName": null}}),
        "400 not allowed to recreate containers in a pending Pod",
    );
    for over in [
        json!({"status": {"phase": "Failed"}}),
        json!({"status": {"phase": "Succeeded"}}),
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    ] {
        refused_with_pod(over, "400 not allowed to recreate containers in an inactive Pod");
    }
    let lost = World { pod: pod(), node: Err("nodes \"n1\" not found".to_owned()) };
    let answer = asked(&lost, Operation::Create, &base("v1beta1"), &Value::Null);
    assert_eq!(answer.unwrap_err(), "400 failed to get Node n1: nodes \"n1\" not found");
}

#[test]
fn sidecars_of_a_finished_job_can_still_be_ended() {
    let finished = json!({"status": {"phase": "Succeeded", "conditions": [{"type": "SidecarTerminated", "status": "True"}]}});
    asked(&world(finished), Operation::Create, &base("v1beta1"), &Value::Null).unwrap();
}

/// CRR-27: requests for virtual nodes are marked for their provider.
#[test]
fn a_request_for_a_virtual_node_carries_the_label_of_the_node() {
    let node = [("type".into(), "virtual-kubelet".into())].into_iter().collect();
    let stored =
        asked(&World { pod: pod(), node: Ok(node) }, Operation::Create, &base("v1beta1"), &Value::Null)
            .unwrap();
    assert_eq!(stored["metadata"]["labels"]["type"], "virtual-kubelet");
}

/// CRR-25: what may change afterwards, and what may not.
#[test]
fn only_own_labels_and_annotations_change_later() {
    let world = world(json!({}));
    for version in ["v1alpha1", "v1beta1"] {
        let mut stored = asked(&world, Operation::Create, &base(version), &Value::Null).unwrap();
        stored["metadata"]["annotations"] =
            json!({"crr.apps.kruise.io/unready-acquired": "2026-01-01T00:00:00Z"});
        let update = |change: Value| {
            let mut object = stored.clone();
            json_patch::merge(&mut object, &change);
            asked(&world, Operation::Update, &object, &stored).map(|_| ()).err().unwrap_or_default()
        };
        for spec in [
            json!({"podName": "x"}),
            json!({"strategy": {"forceRecreate": true}}),
            json!({"containers": [{"name": "sidecar"}]}),
        ] {
            assert_eq!(
                update(json!({"spec": spec})),
                "403 spec of ContainerRecreateRequest is immutable",
                "{version}"
            );
        }
        assert_eq!(
            update(json!({"metadata": {"labels": {"crr.apps.kruise.io/node-name": "x"}}})),
            "403 not allowed to update immutable label crr.apps.kruise.io/node-name"
        );
        assert_eq!(
            update(json!({"metadata": {"labels": {"crr.apps.kruise.io/pod-uid": null}}})),
            "403 not allowed to update immutable label crr.apps.kruise.io/pod-uid"
        );
        assert_eq!(update(json!({"metadata": {"labels": {"mine": "x"}}})), "");
        assert_eq!(update(json!({"metadata": {"labels": {"crr.apps.kruise.io/active": null}}})), "");
        let touched =
            update(json!({"metadata": {"annotations": {"crr.apps.kruise.io/unready-acquired": "later"}}}));
        let refusal = "403 not allowed to update immutable annotation crr.apps.kruise.io/unready-acquired";
        assert_eq!(touched, if version == "v1alpha1" { refusal } else { "" });
    }
}
