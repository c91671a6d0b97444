//! Subresources and deletion: scale, binding, eviction, finalize, grace, propagation.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kruise_apiserver::ApiServer;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Sends a request with a JSON body of the given type; the code and the answer.
async fn send(server: &ApiServer, line: &str, content_type: &str, body: Value) -> (u16, Value) {
    let (method, path) = line.split_once(' ').unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder()
        .method(method.parse::<Method>().unwrap())
        .uri(path)
        .header("content-type", content_type)
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

async fn json(server: &ApiServer, line: &str, body: Value) -> (u16, Value) {
    send(server, line, "application/json", body).await
}

async fn merge(server: &ApiServer, path: &str, body: Value) -> (u16, Value) {
    send(server, &format!("PATCH {path}"), "application/merge-patch+json", body).await
}

fn server() -> ApiServer {
    ApiServer::builder().build()
}

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn pod(server: &ApiServer, name: &str, extra: Value) {
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 30, "containers": [{"name": "c", "image": "i"}]},
    });
    json_patch::merge(&mut pod, &extra);
    let (code, answer) = json(server, &format!("POST {PODS}"), pod).await;
    assert_eq!(code, 201, "{answer}");
}

/// A pod on a node with a Ready condition.
async fn running(server: &ApiServer, name: &str, ready: &str) {
    pod(server, name, json!({})).await;
    server.local().bind("default", name, "n").await.unwrap();
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
    assert_eq!(merge(server, &format!("{PODS}/{name}/status"), status).await.0, 200);
}

async fn budget(server: &ApiServer, name: &str, status: Value) {
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}});
    let body = json!({"metadata": {"name": name}, "spec": spec});
    assert_eq!(json(server, &format!("POST {budgets}"), body).await.0, 201);
    let (code, answer) = merge(server, &format!("{budgets}/{name}/status"), json!({"status": status})).await;
    assert_eq!(code, 200, "{answer}");
}

async fn evict(server: &ApiServer, name: &str) -> (u16, Value) {
    let eviction = json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}});
    json(server, &format!("POST {PODS}/{name}/eviction"), eviction).await
}

#[tokio::test(start_paused = true)]
async fn scale_reads_and_writes_the_replicas_of_a_workload() {
    let server = server();
    let sets = "/apis/apps/v1/namespaces/default/deployments";
    let body = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    let (code, made) = json(&server, &format!("POST {sets}"), body).await;
    assert_eq!((code, made["metadata"]["generation"].as_i64()), (201, Some(1)), "{made}");
    let (_, scale) = json(&server, &format!("GET {sets}/web/scale"), Value::Null).await;
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(scale["spec"]["replicas"], 2);
    assert_eq!(scale["status"]["selector"], "app=web");
    let (code, scale) = merge(&server, &format!("{sets}/web/scale"), json!({"spec": {"replicas": 5}})).await;
    assert_eq!((code, scale["spec"]["replicas"].as_i64()), (200, Some(5)), "{scale}");
    let (_, set) = json(&server, &format!("GET {sets}/web"), Value::Null).await;
    assert_eq!(set["spec"]["replicas"], 5);
    assert_eq!(set["metadata"]["generation"], 2);
    let (code, status) =
        merge(&server, &format!("{sets}/web/scale"), json!({"spec": {"replicas": -1}})).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "Scale.autoscaling \"web\" is invalid: spec.replicas: Invalid value: -1: \
         must be greater than or equal to 0"
    );
    // A PUT with the version of an older read is refused.
    let (code, status) = json(&server, &format!("PUT {sets}/web/scale"), {
        let mut old = scale.clone();
        old["metadata"]["resourceVersion"] = json!("1");
        old
    })
    .await;
    assert_eq!((code, status["reason"].as_str().unwrap()), (409, "Conflict"));
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

async fn deployment(server: &ApiServer) {
    let template =
        json!({"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": template});
    let body = json!({"metadata": {"name": "web"}, "spec": spec});
    assert_eq!(json(server, &format!("POST {DEPLOYMENTS}"), body).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_scale_is_no_larger_than_clients_can_read() {
    let server = server();
    deployment(&server).await;
    let path = format!("{DEPLOYMENTS}/web/scale");
    for (replicas, shown) in [
        (json!(3_000_000_000_u64), "number 3000000000"),
        (json!(i64::MAX), "number 9223372036854775807"),
        (json!(1.5), "number 1.5"),
        (json!("x"), "string"),
    ] {
        let why = format!(
            "json: cannot unmarshal {shown} into Go struct field ScaleSpec.spec.replicas of type int32"
        );
        let (code, status) = merge(&server, &path, json!({"spec": {"replicas": replicas}})).await;
        assert_eq!(code, 422, "{status}");
        assert!(status["message"].as_str().unwrap().ends_with(&why), "{status}");
        let body = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "web"},
            "spec": {"replicas": replicas},
        });
        let (code, status) = json(&server, &format!("PUT {path}"), body).await;
        assert_eq!(code, 400, "{status}");
        let message = format!("Scale in version \"v1\" cannot be handled as a Scale: {why}");
        assert_eq!(status["message"], message);
    }
}

#[tokio::test(start_paused = true)]
async fn a_scale_has_columns_of_its_own() {
    let server = server();
    deployment(&server).await;
    let request = Request::get(format!("{DEPLOYMENTS}/web/scale"))
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let table: Value = serde_json::from_slice(&bytes).unwrap();
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let names: Vec<&str> = columns.filter_map(|column| column["name"].as_str()).collect();
    assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
    assert_eq!(table["rows"][0]["cells"], json!(["web", 1, 0, "0s"]), "{table}");
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "web");
}

#[tokio::test(start_paused = true)]
async fn a_status_write_does_not_count_as_a_new_generation() {
    let server = server();
    let path = "/apis/apps/v1/namespaces/default/replicasets";
    let body = json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    let (_, made) = json(&server, &format!("POST {path}"), body).await;
    assert_eq!(made["status"], json!({"replicas": 0}));
    let change = json!({"spec": {"replicas": 7}, "status": {"replicas": 1, "observedGeneration": 1}});
    let (_, set) = merge(&server, &format!("{path}/web/status"), change.clone()).await;
    assert_eq!((&set["status"]["replicas"], &set["metadata"]["generation"]), (&json!(1), &json!(1)), "{set}");
    assert_ne!(set["spec"]["replicas"], 7);
    let (_, set) =
        merge(&server, &format!("{path}/web"), json!({"spec": {"replicas": 7}, "status": {"replicas": 9}}))
            .await;
    assert_eq!((&set["status"]["replicas"], &set["metadata"]["generation"]), (&json!(1), &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once() {
    let server = server();
    pod(&server, "a", json!({})).await;
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    let (code, status) = json(&server, &format!("POST {PODS}/a/binding"), binding.clone()).await;
    assert_eq!((code, status["status"].as_str().unwrap()), (201, "Success"));
    let (_, bound) = json(&server, &format!("GET {PODS}/a"), Value::Null).await;
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    let (code, status) = json(&server, &format!("POST {PODS}/a/binding"), binding).await;
    assert_eq!(code, 409);
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\""
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_says_where_its_node_stands() {
    let server = server();
    let labels = json!({
        "topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "kubernetes.io/os": "linux",
    });
    let node = json!({"metadata": {"name": "n1", "labels": labels}});
    assert_eq!(json(&server, "POST /api/v1/nodes", node).await.0, 201);
    let labels = json!({"app": "a", "topology.kubernetes.io/zone": "other"});
    pod(&server, "bound", json!({"metadata": {"labels": labels}})).await;
    merge(&server, &format!("{PODS}/bound/status"), json!({"status": {"nominatedNodeName": "n2"}})).await;
    let binding = json!({"metadata": {"name": "bound", "labels": {"by": "me"}}, "target": {"kind": "Node", "name": "n1"}});
    assert_eq!(json(&server, &format!("POST {PODS}/bound/binding"), binding).await.0, 201);
    let (_, bound) = json(&server, &format!("GET {PODS}/bound"), Value::Null).await;
    assert_eq!(
        bound["metadata"]["labels"],
        json!({"app": "a", "by": "me", "topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"})
    );
    assert!(bound["status"]["nominatedNodeName"].is_null(), "{bound}");
    let spec = json!({"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]});
    let (code, placed) =
        json(&server, &format!("POST {PODS}"), json!({"metadata": {"name": "placed"}, "spec": spec})).await;
    assert_eq!(code, 201, "{placed}");
    assert_eq!(placed["metadata"]["labels"]["topology.kubernetes.io/zone"], "z");
}

#[tokio::test(start_paused = true)]
async fn a_generation_that_was_seen_stays_seen() {
    let server = server();
    pod(&server, "a", json!({})).await;
    let path = format!("{PODS}/a/status");
    let conditions = |generation: Value| json!([{"type": "Ready", "status": "True", "observedGeneration": generation}, {"type": "New", "status": "True"}]);
    let seen = json!({"status": {"observedGeneration": 1, "conditions": conditions(json!(1))}});
    assert_eq!(merge(&server, &path, seen).await.0, 200);
    let unknowing = json!({"status": {"observedGeneration": null, "conditions": conditions(Value::Null)}});
    let (_, pod) = merge(&server, &path, unknowing).await;
    assert_eq!(pod["status"]["observedGeneration"], 1, "{pod}");
    assert_eq!(pod["status"]["conditions"][0]["observedGeneration"], 1, "{pod}");
    assert!(pod["status"]["conditions"][1]["observedGeneration"].is_null(), "{pod}");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_takes_from_the_budget_until_nothing_is_left() {
    let server = server();
    running(&server, "a", "True").await;
    running(&server, "b", "True").await;
    let status = json!({
        "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
    });
    budget(&server, "pdb", status).await;
    assert_eq!(evict(&server, "a").await.0, 201);
    let (_, leaving) = json(&server, &format!("GET {PODS}/a"), Value::Null).await;
    assert!(leaving["metadata"]["deletionTimestamp"].is_string());
    let conditions = leaving["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|c| c["type"] == "DisruptionTarget"), "{conditions:?}");
    let (code, refusal) = evict(&server, "b").await;
    assert_eq!(code, 429);
    assert_eq!(refusal["message"], "Cannot evict pod as it would violate the pod's disruption budget.");
    assert_eq!(refusal["details"]["causes"][0]["reason"], "DisruptionBudget");
    assert_eq!(
        refusal["details"]["causes"][0]["message"],
        "The disruption budget pdb needs 1 healthy pods and has 2 currently"
    );
    let path = "GET /apis/policy/v1/namespaces/default/poddisruptionbudgets/pdb";
    let (_, pdb) = json(&server, path, Value::Null).await;
    assert_eq!(pdb["status"]["disruptionsAllowed"], 0);
    assert!(pdb["status"]["disruptedPods"]["a"].is_string());
}

/// An empty selector covers the whole namespace, and none at all covers nothing.
#[tokio::test(start_paused = true)]
async fn a_budget_for_all_pods_holds_evictions_back() {
    let server = server();
    running(&server, "a", "True").await;
    let status = json!({
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
    });
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    for (name, spec) in
        [("none", json!({"minAvailable": 1})), ("all", json!({"minAvailable": 1, "selector": {}}))]
    {
        let body = json!({"metadata": {"name": name}, "spec": spec});
        assert_eq!(json(&server, &format!("POST {budgets}"), body).await.0, 201);
        let status = json!({"status": status});
        assert_eq!(merge(&server, &format!("{budgets}/{name}/status"), status).await.0, 200);
    }
    let (code, refusal) = evict(&server, "a").await;
    assert_eq!(code, 429, "{refusal}");
    assert_eq!(
        refusal["details"]["causes"][0]["message"],
        "The disruption budget all needs 1 healthy pods and has 1 currently"
    );
}

#[tokio::test(start_paused = true)]
async fn an_eviction_waits_for_a_budget_that_was_not_yet_counted() {
    let server = server();
    running(&server, "a", "True").await;
    budget(&server, "pdb", json!({"disruptionsAllowed": 1})).await;
    let (code, refusal) = evict(&server, "a").await;
    assert_eq!((code, refusal["details"]["retryAfterSeconds"].as_i64()), (429, Some(10)));
    assert_eq!(
        refusal["details"]["causes"][0]["message"],
        "The disruption budget pdb is still being processed by the server."
    );
    assert_eq!(evict(&server, "nobody").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn two_budgets_for_one_pod_are_one_too_many() {
    let server = server();
    running(&server, "a", "True").await;
    budget(&server, "one", json!({})).await;
    budget(&server, "two", json!({})).await;
    let (code, refusal) = evict(&server, "a").await;
    assert_eq!(code, 500);
    assert!(
        refusal["message"].as_str().unwrap().starts_with("This pod has more than one PodDisruptionBudget")
    );
}

#[tokio::test(start_paused = true)]
async fn preconditions_guard_a_delete() {
    let server = server();
    pod(&server, "a", json!({})).await;
    let path = format!("DELETE {PODS}/a");
    let (code, status) = json(&server, &path, json!({"preconditions": {"uid": "other"}})).await;
    assert_eq!(code, 409);
    assert!(
        status["message"].as_str().unwrap().contains("the UID in the precondition (other) does not match")
    );
    let (code, _) = json(&server, &path, json!({"preconditions": {"resourceVersion": "1"}})).await;
    assert_eq!(code, 409);
    let (_, pod) = json(&server, &format!("GET {PODS}/a"), Value::Null).await;
    let exact = json!({"preconditions": {"uid": pod["metadata"]["uid"]}});
    assert_eq!(json(&server, &path, exact).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn propagation_leaves_marks_for_the_garbage_collector() {
    let server = server();
    for (policy, mark) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        let maps = "/api/v1/namespaces/default/configmaps";
        json(&server, &format!("POST {maps}"), json!({"metadata": {"name": "a"}})).await;
        let (_, left) =
            json(&server, &format!("DELETE {maps}/a"), json!({"propagationPolicy": policy})).await;
        assert_eq!(left["metadata"]["finalizers"], json!([mark]));
        assert!(left["metadata"]["deletionTimestamp"].is_string());
        merge(&server, &format!("{maps}/a"), json!({"metadata": {"finalizers": null}})).await;
        assert_eq!(json(&server, &format!("GET {maps}/a"), Value::Null).await.0, 404);
    }
    let maps = "/api/v1/namespaces/default/configmaps";
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    assert_eq!(json(&server, &format!("DELETE {maps}/a"), both).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn a_delete_may_shorten_the_grace_period_but_not_extend_it() {
    let server = server();
    pod(&server, "a", json!({})).await;
    server.local().bind("default", "a", "n").await.unwrap();
    let delete = async |seconds: i64| {
        json(&server, &format!("DELETE {PODS}/a"), json!({"gracePeriodSeconds": seconds})).await.1
    };
    assert_eq!(delete(20).await["metadata"]["deletionTimestamp"], "2026-01-01T00:00:20Z");
    assert_eq!(delete(25).await["metadata"]["deletionGracePeriodSeconds"], 20);
    let shorter = delete(5).await;
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    assert_eq!(shorter["metadata"]["deletionTimestamp"], "2026-01-01T00:00:05Z");
    delete(0).await;
    assert_eq!(json(&server, &format!("GET {PODS}/a"), Value::Null).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_emptied_before_it_goes() {
    let server = server();
    json(&server, "POST /api/v1/namespaces", json!({"metadata": {"name": "x"}})).await;
    let (_, account) = json(&server, "GET /api/v1/namespaces/x/serviceaccounts/default", Value::Null).await;
    assert_eq!(account["kind"], "ServiceAccount");
    let (_, leaving) = json(&server, "DELETE /api/v1/namespaces/x", Value::Null).await;
    assert_eq!(leaving["status"]["phase"], "Terminating");
    let map = json!({"metadata": {"name": "a"}});
    let (code, status) = json(&server, "POST /api/v1/namespaces/x/configmaps", map.clone()).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "configmaps \"a\" is forbidden: unable to create new content in namespace x because it is being terminated"
    );
    assert_eq!(status["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let mut finalized = leaving.clone();
    finalized["spec"] = json!({});
    finalized["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let (code, answer) = json(&server, "PUT /api/v1/namespaces/x/finalize", finalized).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(json(&server, "GET /api/v1/namespaces/x", Value::Null).await.0, 404);
    let (code, status) = json(&server, "POST /api/v1/namespaces/x/configmaps", map).await;
    assert_eq!((code, status["message"].as_str().unwrap()), (404, "namespaces \"x\" not found"));
    let (code, status) = json(&server, "DELETE /api/v1/namespaces/default", Value::Null).await;
    assert_eq!(code, 403);
    assert_eq!(status["message"], "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let server = server();
    for name in ["a", "b", "c"] {
        pod(&server, name, json!({"metadata": {"labels": {"name": name}}})).await;
    }
    let (_, deleted) = json(&server, &format!("DELETE {PODS}?labelSelector=name%21%3Db"), Value::Null).await;
    assert_eq!(deleted["kind"], "PodList");
    assert_eq!(deleted["items"].as_array().unwrap().len(), 2);
    let (_, left) = json(&server, &format!("GET {PODS}"), Value::Null).await;
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_update_must_name_a_version_where_the_kind_demands_it() {
    let server = server();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    json(&server, &format!("POST {path}"), json!({"metadata": {"name": "l"}})).await;
    let (code, status) = json(&server, &format!("PUT {path}/l"), json!({"metadata": {"name": "l"}})).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: \
         must be specified for an update"
    );
    // Others may be overwritten, and some are even made.
    let map = json!({"metadata": {"name": "m"}, "data": {"a": "2"}});
    assert_eq!(json(&server, "PUT /api/v1/namespaces/default/configmaps/m", map.clone()).await.0, 404);
    assert_eq!(json(&server, "POST /api/v1/namespaces/default/configmaps", map.clone()).await.0, 201);
    assert_eq!(json(&server, "PUT /api/v1/namespaces/default/configmaps/m", map).await.0, 200);
    let role = json!({"metadata": {"name": "r"}, "rules": []});
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/r";
    assert_eq!(json(&server, &format!("PUT {roles}"), role).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_served_by_both_groups() {
    let server = server();
    let event = json!({
        "metadata": {"name": "e"}, "reason": "Seen", "message": "hello",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "source": {"component": "me"},
    });
    let (code, answer) = json(&server, "POST /api/v1/namespaces/default/events", event).await;
    assert_eq!(code, 201, "{answer}");
    let (_, list) = json(
        &server,
        "GET /apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dp,reason%3DSeen",
        Value::Null,
    )
    .await;
    assert_eq!(list["items"][0]["note"], "hello");
    assert_eq!(list["items"][0]["regarding"]["kind"], "Pod");
}
