//! Server-side apply and field management over the wire.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kruise_apiserver::ApiServer;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

struct Client {
    server: ApiServer,
}

/// Code, warnings and body of an answer.
type Reply = (u16, Vec<String>, Value);

impl Client {
    fn new() -> Self {
        Self { server: ApiServer::builder().seed(3).build() }
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, agent: &str, body: &Value) -> Reply {
        let body = match body {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("user-agent", agent)
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let response = self.server.clone().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, warnings, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn apply(&self, path: &str, manager: &str, query: &str, body: &Value) -> Reply {
        let path = format!("{path}?fieldManager={manager}{query}");
        self.send("PATCH", &path, "application/apply-patch+yaml", "test/1", body).await
    }

    async fn get(&self, path: &str) -> Value {
        let (code, _, body) = self.send("GET", path, "application/json", "test/1", &Value::Null).await;
        assert_eq!(code, 200, "{body}");
        body
    }

    async fn post(&self, path: &str, agent: &str, body: &Value) -> Value {
        let (code, _, answer) = self.send("POST", path, "application/json", agent, body).await;
        assert_eq!(code, 201, "{answer}");
        answer
    }
}

/// `manager operation subresource: fields`, one line each.
fn managers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    list.iter()
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            format!(
                "{} {} {}: {}",
                text("manager"),
                text("operation"),
                text("subresource"),
                entry["fieldsV1"]
            )
        })
        .collect()
}

fn config(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn deployment(replicas: Option<u32>, image: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}},
        },
    });
    if let Some(replicas) = replicas {
        object["spec"]["replicas"] = json!(replicas);
    }
    object
}

#[tokio::test(start_paused = true)]
async fn applying_creates_then_changes_and_then_changes_nothing() {
    let client = Client::new();
    let path = format!("{CONFIGS}/a");
    let (code, _, first) = client.apply(&path, "me", "", &config(&json!({"k": "1", "l": "2"}))).await;
    assert_eq!(code, 201, "{first}");
    assert_eq!(managers(&first), ["me Apply : {\"f:data\":{\"f:k\":{},\"f:l\":{}}}"]);
    assert_eq!(first["metadata"]["managedFields"][0]["time"], "2026-01-01T00:00:00Z");

    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    let (code, _, same) = client.apply(&path, "me", "", &config(&json!({"k": "1", "l": "2"}))).await;
    assert_eq!((code, &same), (200, &first), "nothing changed, not even a time");

    let (code, _, less) = client.apply(&path, "me", "", &config(&json!({"k": "3"}))).await;
    assert_eq!((code, &less["data"]), (200, &json!({"k": "3"})));
    assert_eq!(less["metadata"]["managedFields"][0]["time"], "2026-01-01T00:01:00Z");
    assert_eq!(client.get(&path).await, less);
}

#[tokio::test(start_paused = true)]
async fn fields_of_others_are_a_conflict_unless_forced() {
    let client = Client::new();
    let path = format!("{CONFIGS}/a");
    client.post(CONFIGS, "kubectl/v1.35", &config(&json!({"k": "1"}))).await;
    let (code, _, refused) = client.apply(&path, "me", "", &config(&json!({"k": "2"}))).await;
    assert_eq!(code, 409);
    assert_eq!(refused["reason"], "Conflict");
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .data.k"
    );
    assert_eq!(
        refused["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"kubectl\" using v1", "field": ".data.k"}])
    );
    let (code, _, forced) = client.apply(&path, "me", "&force=true", &config(&json!({"k": "2"}))).await;
    assert_eq!((code, &forced["data"]["k"]), (200, &json!("2")));
    assert_eq!(
        managers(&forced),
        ["me Apply : {\"f:data\":{\"f:k\":{}}}", "kubectl Update : {\"f:data\":{}}"]
    );
    let dry = client.apply(&path, "me", "&dryRun=All", &config(&json!({"k": "9"}))).await.2;
    assert_eq!((&dry["data"]["k"], &client.get(&path).await["data"]["k"]), (&json!("9"), &json!("2")));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_an_applied_object_is_told() {
    let client = Client::new();
    let path = format!("{CONFIGS}/a");
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut object = config(&json!({"k": "1"}));
        change(&mut object);
        object
    };
    for (body, code, message) in [
        (wrong(&|o| o["kind"] = json!("Secret")), 400, "invalid object type: /v1, Kind=Secret"),
        (wrong(&|o| o["apiVersion"] = json!("v2")), 400, "invalid object type: /v2, Kind=ConfigMap"),
        (wrong(&|o| o["metadata"]["managedFields"] = json!([])), 400, "metadata.managedFields must be nil"),
        (
            wrong(&|o| o["metadata"]["name"] = json!("b")),
            400,
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            wrong(&|o| o["spec"] = json!({})),
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .spec: field not declared in schema",
        ),
        (
            wrong(&|o| o["data"]["k"] = json!(1)),
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.k: expected string, got \
             &value.valueUnstructured{Value:1}",
        ),
    ] {
        let (found, _, answer) = client.apply(&path, "me", "", &body).await;
        assert_eq!((found, answer["message"].as_str().unwrap()), (code, message), "{body}");
    }
    let (code, _, answer) =
        client.send("PATCH", &path, "application/apply-patch+yaml", "x", &config(&json!({}))).await;
    assert_eq!(code, 422);
    assert_eq!(
        answer["message"],
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let cbor = client.send("PATCH", &path, "application/apply-patch+cbor", "x", &config(&json!({}))).await;
    assert_eq!(cbor.0, 415);
}

#[tokio::test(start_paused = true)]
async fn repeated_keys_are_told_as_the_client_wishes() {
    let client = Client::new();
    let path = format!("{CONFIGS}/a");
    let body = json!("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: v\n  k: w\n");
    let strict = client.apply(&path, "me", "&fieldValidation=Strict", &body).await;
    let told =
        "error converting YAML to JSON: yaml: unmarshal errors:\n  line 6: key \"k\" already set in map";
    assert_eq!(strict.0, 400, "{}", strict.2);
    assert_eq!(strict.2["message"], format!("error strict decoding YAML: {told}"));
    let (code, warnings, answer) = client.apply(&path, "me", "&fieldValidation=Warn", &body).await;
    // The text has two lines, which no header can hold: a real server says nothing either.
    assert_eq!((code, warnings.len(), &answer["data"]["k"]), (201, 0, &json!("w")));
    let ignored = client.apply(&path, "me", "&fieldValidation=Ignore", &body).await;
    assert_eq!((ignored.0, ignored.1.len()), (200, 0));
}

#[tokio::test(start_paused = true)]
async fn scaling_takes_the_replicas_from_who_applied_them() {
    let client = Client::new();
    let path = format!("{DEPLOYMENTS}/web");
    let (code, _, first) = client.apply(&path, "me", "", &deployment(Some(1), "i")).await;
    assert_eq!(code, 201, "{first}");
    let scale = json!({"spec": {"replicas": 3}});
    let merge = "application/merge-patch+json";
    let (code, _, _) = client.send("PATCH", &format!("{path}/scale"), merge, "kubectl/v1", &scale).await;
    assert_eq!(code, 200);
    let scaled = client.get(&path).await;
    assert_eq!(managers(&scaled)[1], "kubectl Update scale: {\"f:spec\":{\"f:replicas\":{}}}");
    let (code, _, refused) = client.apply(&path, "me", "", &deployment(Some(1), "i")).await;
    assert_eq!(code, 409);
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"kubectl\" with subresource \"scale\" using apps/v1: .spec.replicas"
    );
    // Who no longer says how many leaves it to the other.
    let (code, _, left) = client.apply(&path, "me", "", &deployment(None, "j")).await;
    assert_eq!((code, &left["spec"]["replicas"]), (200, &json!(3)));
    assert_eq!(left["spec"]["template"]["spec"]["containers"][0]["image"], "j");
}

#[tokio::test(start_paused = true)]
async fn status_is_applied_at_its_own_place_only() {
    let client = Client::new();
    let path = format!("{DEPLOYMENTS}/web");
    client.apply(&path, "me", "", &deployment(Some(1), "i")).await;
    let status = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 9}, "status": {"replicas": 2, "conditions": [
            {"type": "Odd", "status": "True", "lastUpdateTime": null, "lastTransitionTime": null}
        ]},
    });
    let (code, _, answer) = client.apply(&format!("{path}/status"), "other", "", &status).await;
    assert_eq!(
        (code, &answer["spec"]["replicas"], &answer["status"]["replicas"]),
        (200, &json!(1), &json!(2)),
        "{answer}"
    );
    assert_eq!(
        managers(&answer)[1],
        "other Apply status: {\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":\\\"Odd\\\"}\":\
        {\".\":{},\"f:lastTransitionTime\":{},\"f:lastUpdateTime\":{},\"f:status\":{},\"f:type\":{}}},\"f:replicas\":{}}}"
    );
}

#[tokio::test(start_paused = true)]
async fn clients_may_write_and_reset_the_managers_themselves() {
    let client = Client::new();
    let path = format!("{CONFIGS}/a");
    client.apply(&path, "me", "", &config(&json!({"k": "1"}))).await;
    // What kubectl does when it takes over from its own client-side apply.
    let mut entry = client.get(&path).await["metadata"]["managedFields"][0].clone();
    entry["manager"] = json!("you");
    let patch = json!([{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}]);
    let (code, _, answer) = client.send("PATCH", &path, "application/json-patch+json", "x", &patch).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(managers(&answer), ["you Apply : {\"f:data\":{\"f:k\":{}}}"]);
    let reset = json!({"metadata": {"managedFields": [{}]}});
    let (_, _, answer) = client.send("PATCH", &path, "application/merge-patch+json", "x", &reset).await;
    assert_eq!(answer["metadata"].get("managedFields"), None);
    // Nobody keeps account now, until somebody applies.
    let change = json!({"data": {"l": "2"}});
    let (_, _, answer) = client.send("PATCH", &path, "application/merge-patch+json", "x", &change).await;
    assert_eq!(answer["metadata"].get("managedFields"), None);
    let (_, _, answer) = client.apply(&path, "me", "", &config(&json!({"k": "1"}))).await;
    assert_eq!(
        managers(&answer),
        [
            "me Apply : {\"f:data\":{\"f:k\":{}}}",
            "before-first-apply Update : {\"f:data\":{\".\":{},\"f:k\":{},\"f:l\":{}}}"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn kubectl_takes_over_what_it_applied_itself_before() {
    let client = Client::new();
    let path = format!("{CONFIGS}/a");
    let mut object = config(&json!({"k": "1"}));
    object["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": object.to_string()});
    client.post(CONFIGS, "kubectl-client-side-apply/v1", &object).await;
    let (code, _, answer) = client.apply(&path, "kubectl", "", &config(&json!({"k": "2"}))).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(
        answer["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"],
        format!("{}\n", config(&json!({"k": "2"})))
    );
}

#[tokio::test(start_paused = true)]
async fn custom_resources_merge_as_their_schema_says() {
    let client = Client::new();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "plain": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "keyed": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}},
        },
        "piece": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}}});
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "kubectl/v1", &json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })).await;
    let path = "/apis/example.com/v1/namespaces/default/things/a";
    let thing = |spec: &Value| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
    let first = thing(&json!({
        "plain": ["x"], "set": ["x"], "keyed": [{"name": "x", "n": 1}], "piece": {"a": "x"}, "free": {"deep": {"l": [1]}},
    }));
    let (code, _, answer) = client.apply(path, "one", "", &first).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(
        managers(&answer),
        [
            "one Apply : {\"f:spec\":{\"f:free\":{\"f:deep\":{\".\":{},\"f:l\":{}}},\"f:keyed\":{\"k:{\\\"name\\\":\\\"x\\\"}\":\
         {\".\":{},\"f:n\":{},\"f:name\":{}}},\"f:piece\":{},\"f:plain\":{},\"f:set\":{\"v:\\\"x\\\"\":{}}}}"
        ]
    );
    let second = thing(&json!({"set": ["y"], "keyed": [{"name": "y", "n": 2}], "free": {"deep": {"m": 2}}}));
    let (code, _, answer) = client.apply(path, "two", "", &second).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(answer["spec"]["set"], json!(["x", "y"]));
    assert_eq!(answer["spec"]["keyed"], json!([{"name": "x", "n": 1}, {"name": "y", "n": 2}]));
    assert_eq!(answer["spec"]["free"], json!({"deep": {"l": [1], "m": 2}}));
    let (code, _, refused) =
        client.apply(path, "two", "", &thing(&json!({"plain": ["y"], "piece": {"a": "y"}}))).await;
    assert_eq!(code, 409);
    assert_eq!(
        refused["message"],
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.piece\n- .spec.plain"
    );
    // The first one leaves; what the second one has stays.
    let (_, _, answer) = client.apply(path, "one", "", &thing(&json!({"plain": ["x"]}))).await;
    assert_eq!(
        answer["spec"],
        json!({"plain": ["x"], "set": ["y"], "keyed": [{"name": "y", "n": 2}], "free": {"deep": {"m": 2}}})
    );
    let (code, _, refused) = client.apply(path, "two", "", &thing(&json!({"other": 1}))).await;
    assert_eq!(
        (code, refused["message"].as_str().unwrap()),
        (
            500,
            "failed to create typed patch object (/a; example.com/v1, Kind=Thing): .spec.other: field not declared in schema"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn lists_tables_and_metadata_show_the_managers() {
    let client = Client::new();
    client.apply(&format!("{CONFIGS}/a"), "me", "", &config(&json!({"k": "1"}))).await;
    let list = client.get(&format!("{CONFIGS}?fieldSelector=metadata.name=a")).await;
    assert_eq!(managers(&list["items"][0]), ["me Apply : {\"f:data\":{\"f:k\":{}}}"]);
    for (accept, path) in [
        ("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", ""),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", "/rows/0/object"),
    ] {
        let request = Request::get(format!("{CONFIGS}/a"))
            .header("accept", accept)
            .body(Full::new(Bytes::new()))
            .unwrap();
        let response = client.server.clone().oneshot(request).await.unwrap();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(managers(answer.pointer(path).unwrap()).len(), 1, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn equal_pods_share_what_is_known_of_their_managers() {
    let client = Client::new();
    for name in ["a", "b"] {
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        client.post("/api/v1/namespaces/default/pods", "kubectl/v1", &pod).await;
    }
    let fields = |name: &str| {
        let record = client.server.store().get("/pods", "default", name).unwrap();
        record.managed.as_ref().unwrap().entries()[0].fields.clone()
    };
    assert!(std::sync::Arc::ptr_eq(&fields("a"), &fields("b")));
}

/// The bytes of all sets that are reachable and were not counted before.
fn bytes(
    set: &std::sync::Arc<kruise_apiserver::apply::Set>,
    seen: &mut std::collections::BTreeSet<usize>,
) -> usize {
    if !seen.insert(std::sync::Arc::as_ptr(set) as usize) {
        return 0;
    }
    let own = 48 + size_of_val(set.members());
    own + set
        .members()
        .iter()
        .filter_map(|member| member.below.as_ref())
        .map(|below| bytes(below, seen))
        .sum::<usize>()
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_costs_little_more_than_its_own_address() {
    const PODS: usize = 200;
    let client = Client::new();
    let pods = "/api/v1/namespaces/default/pods";
    for i in 0..PODS {
        let pod = json!({
            "metadata": {"name": format!("p{i}"), "labels": {"app": "web"}, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true}
            ]},
            "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}]}]},
        });
        client.post(pods, "kube-controller-manager/v1", &pod).await;
        let ip = format!("10.1.{}.{}", i / 250, i % 250);
        let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "hostIP": "10.0.0.1", "startTime": "2026-01-01T00:00:00Z",
            "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady")],
        }});
        let path = format!("{pods}/p{i}/status");
        let (code, _, answer) = client
            .send("PATCH", &path, "application/strategic-merge-patch+json", "kubelet/v1", &status)
            .await;
        assert_eq!((code, managers(&answer).len()), (200, 2), "{answer}");
    }
    let mut seen = std::collections::BTreeSet::new();
    let (_, records) = client.server.store().list("/pods", None);
    let entries =
        |record: &kruise_apiserver::store::Record| record.managed.as_ref().unwrap().entries().to_vec();
    let sets: usize =
        records.iter().flat_map(|record| entries(record)).map(|entry| bytes(&entry.fields, &mut seen)).sum();
    let each = sets / PODS + 2 * size_of::<kruise_apiserver::apply::Entry>();
    assert!(each < 1200, "{each} bytes for each pod");
}

/// Defaults belong to nobody, also where an applied object says nothing else.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_applied_with_a_name_only_has_no_manager() {
    let client = Client::new();
    let path = "/api/v1/namespaces/default/secrets/s";
    let bare = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let (code, _, made) = client.apply(path, "kubectl", "", &bare).await;
    assert_eq!((code, managers(&made)), (201, Vec::new()), "{made}");
}

#[tokio::test(start_paused = true)]
async fn actions_of_a_binding_are_owned_one_by_one() {
    let client = Client::new();
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/b";
    let binding = |actions: Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": actions}})
    };
    assert_eq!(client.apply(path, "one", "", &binding(json!(["Deny"]))).await.0, 201);
    let (code, _, both) = client.apply(path, "two", "", &binding(json!(["Deny", "Audit"]))).await;
    assert_eq!(code, 200, "{both}");
    let own = &both["metadata"]["managedFields"][1]["fieldsV1"]["f:spec"]["f:validationActions"];
    assert_eq!(own, &json!({"v:\"Audit\"": {}, "v:\"Deny\"": {}}));
}
