//! Bytes in, bytes out: what a client that is not kube sees.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kruise_apiserver::ApiServer;
use kruise_apiserver::body::ApiBody;
use serde_json::{Value, json};
use tower::ServiceExt as _;

fn server() -> ApiServer {
    ApiServer::builder().seed(1).build()
}

/// Sends `METHOD path`, headers as `name: value`, and a body.
async fn send(server: &ApiServer, line: &str, headers: &[&str], body: &str) -> Response<ApiBody> {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method.parse::<Method>().unwrap()).uri(path);
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    server.clone().oneshot(request).await.unwrap()
}

async fn text(response: Response<ApiBody>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Sends JSON and reads JSON: the code and the body.
async fn json(server: &ApiServer, line: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = send(server, line, &["content-type: application/json"], &body).await;
    let code = response.status().as_u16();
    (code, serde_json::from_str(&text(response).await).unwrap())
}

async fn put_pods(server: &ApiServer, count: usize) {
    for i in 0..count {
        let pod = json!({
            "metadata": {"name": format!("p{i}"), "labels": {"parity": if i % 2 == 0 { "even" } else { "odd" }}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        let (code, answer) = json(server, "POST /api/v1/namespaces/default/pods", pod).await;
        assert_eq!(code, 201, "{answer}");
    }
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn wrong_paths_and_methods_are_told_apart() {
    let server = server();
    for (line, code) in [
        ("GET /nothing", 404),
        ("GET /api/v1/nothings", 404),
        ("GET /api/v1/pods/a", 404),
        ("GET /api/v1/namespaces/default/pods/a/nothing", 404),
        ("POST /version", 405),
        ("POST /api/v1/namespaces/default/pods/a", 405),
        ("DELETE /api/v1/namespaces", 405),
        ("PUT /api/v1/namespaces/default/pods", 405),
        ("GET /api/v1/namespaces/default/pods/a/exec", 404),
    ] {
        let (found, status) = json(&server, line, Value::Null).await;
        assert_eq!(found, code, "{line}: {status}");
        assert_eq!(status["kind"], "Status");
        assert_eq!(status["code"], code);
    }
    let (_, status) = json(&server, "GET /nothing", Value::Null).await;
    assert_eq!(status["message"], "the server could not find the requested resource");
}

#[tokio::test(start_paused = true)]
async fn bad_bodies_get_a_status_and_never_a_panic() {
    let server = server();
    let line = "POST /api/v1/namespaces/default/configmaps";
    for (content_type, body, code) in [
        ("application/json", "", 400),
        ("application/json", "{", 400),
        ("application/json", "[]", 400),
        ("application/json", "null", 400),
        ("application/json", "{\"metadata\": 5}", 400),
        ("application/json", "{\"metadata\": {}}", 422),
        ("application/json", "{\"kind\": \"Pod\", \"apiVersion\": \"v1\"}", 400),
        ("application/json", "{\"apiVersion\": \"v2\"}", 400),
        ("application/json", "{\"metadata\": {\"name\": \"a\", \"namespace\": \"other\"}}", 400),
        ("application/json", "{\"metadata\": {\"name\": \"A_b\"}}", 422),
        ("application/yaml", "metadata: [", 400),
        ("application/vnd.kubernetes.protobuf", "k8s\0", 400),
        ("text/plain", "hello", 415),
    ] {
        let response = send(&server, line, &[&format!("content-type: {content_type}")], body).await;
        let found = response.status().as_u16();
        let status: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(found, code, "{content_type} {body}: {status}");
        assert_eq!(status["status"], "Failure");
    }
    let (_, status) = json(&server, line, json!({"kind": "Pod", "apiVersion": "v1"})).await;
    assert_eq!(
        status["message"],
        "Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): \
         unknown conversion"
    );
    let big = format!("{{\"data\": {{\"a\": \"{}\"}}}}", "x".repeat(3 << 20));
    let response = send(&server, line, &["content-type: application/json"], &big).await;
    assert_eq!(response.status().as_u16(), 413);
}

#[tokio::test(start_paused = true)]
async fn a_field_that_a_body_names_twice_is_told_or_refused_as_asked() {
    let server = server();
    let body = r#"{"metadata":{"name":"a"},"data":{"k":"1","k":"2"}}"#;
    let post = "POST /api/v1/namespaces/default/configmaps?fieldValidation=";
    let strict = send(&server, &format!("{post}Strict"), &["content-type: application/json"], body).await;
    assert_eq!(strict.status(), 400);
    let refusal: Value = serde_json::from_str(&text(strict).await).unwrap();
    let why = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: \
               duplicate field \"data.k\"";
    assert_eq!(refusal["message"], why);
    let silent = send(&server, &format!("{post}Ignore"), &["content-type: application/json"], body).await;
    assert_eq!((silent.status().as_u16(), silent.headers().contains_key("warning")), (201, false));
    let put = "PUT /api/v1/namespaces/default/configmaps/a";
    let warned = send(&server, put, &["content-type: application/json"], body).await;
    assert_eq!(warned.status(), 200);
    assert_eq!(warned.headers()["warning"], "299 - \"duplicate field \\\"data.k\\\"\"");
    let stored: Value = serde_json::from_str(&text(warned).await).unwrap();
    assert_eq!(stored["data"]["k"], "2", "the last one counts");
}

#[tokio::test(start_paused = true)]
async fn a_body_without_a_content_type_is_json_and_yaml_works_both_ways() {
    let server = server();
    let line = "POST /api/v1/namespaces/default/configmaps";
    let response = send(&server, line, &[], r#"{"metadata": {"name": "a"}}"#).await;
    assert_eq!(response.status().as_u16(), 201);
    let yaml = "metadata:\n  name: b\ndata:\n  k: v\n";
    let headers = ["content-type: application/yaml", "accept: application/yaml"];
    let response = send(&server, line, &headers, yaml).await;
    assert_eq!(response.headers()["content-type"], "application/yaml");
    let answer = text(response).await;
    assert!(answer.contains("\n  k: v\n"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn what_a_client_does_not_accept_is_not_sent() {
    let server = server();
    let response = send(&server, "GET /api/v1/pods", &["accept: image/png"], "").await;
    assert_eq!(response.status().as_u16(), 406);
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages_of_one_consistent_state() {
    let server = server();
    put_pods(&server, 5).await;
    let base = "GET /api/v1/namespaces/default/pods?limit=2";
    let (_, first) = json(&server, base, Value::Null).await;
    assert_eq!(names(&first), ["p0", "p1"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();

    // What happens between the pages does not show.
    json(&server, "DELETE /api/v1/namespaces/default/pods/p2", Value::Null).await;
    let new = json!({"metadata": {"name": "p3a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    json(&server, "POST /api/v1/namespaces/default/pods", new).await;
    let (_, second) = json(&server, &format!("{base}&continue={token}"), Value::Null).await;
    assert_eq!(names(&second), ["p2", "p3"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let last = second["metadata"]["continue"].as_str().unwrap().to_owned();
    let (_, third) = json(&server, &format!("{base}&continue={last}"), Value::Null).await;
    assert_eq!(names(&third), ["p4"]);
    assert!(third["metadata"].get("continue").is_none());

    server.store().compact();
    let (code, expired) = json(&server, &format!("{base}&continue={token}"), Value::Null).await;
    assert_eq!((code, expired["reason"].as_str().unwrap()), (410, "Expired"));
    let rest = expired["metadata"]["continue"].as_str().unwrap();
    let (code, rest) =
        json(&server, &format!("GET /api/v1/namespaces/default/pods?continue={rest}"), Value::Null).await;
    assert_eq!((code, names(&rest)), (200, vec!["p3".into(), "p3a".into(), "p4".into()]));
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_the_version_that_was_asked_for() {
    let server = server();
    put_pods(&server, 1).await;
    let then = server.store().version();
    put_pods_named(&server, "later").await;
    let path = |query: &str| format!("GET /api/v1/pods?{query}");
    let (_, exact) =
        json(&server, &path(&format!("resourceVersion={then}&resourceVersionMatch=Exact")), Value::Null)
            .await;
    assert_eq!(names(&exact), ["p0"]);
    let (_, newer) = json(
        &server,
        &path(&format!("resourceVersion={then}&resourceVersionMatch=NotOlderThan")),
        Value::Null,
    )
    .await;
    assert_eq!(names(&newer), ["later", "p0"]);
    let (_, any) = json(&server, &path("resourceVersion=0"), Value::Null).await;
    assert_eq!(names(&any), ["later", "p0"]);
    let (code, status) = json(&server, &path("resourceVersion=99999"), Value::Null).await;
    assert_eq!(code, 504, "{status}");
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    let (code, status) = json(&server, &path("resourceVersionMatch=Exact"), Value::Null).await;
    assert_eq!(code, 422, "{status}");
    server.store().compact();
    let (code, status) =
        json(&server, &path(&format!("resourceVersion={then}&resourceVersionMatch=Exact")), Value::Null)
            .await;
    assert_eq!((code, status["reason"].as_str().unwrap()), (410, "Expired"));
}

async fn put_pods_named(server: &ApiServer, name: &str) {
    let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(json(server, "POST /api/v1/namespaces/default/pods", pod).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_by_labels_and_fields() {
    let server = server();
    put_pods(&server, 4).await;
    server.local().bind("default", "p1", "n1").await.unwrap();
    for (query, expected) in [
        ("labelSelector=parity%3Deven", vec!["p0", "p2"]),
        ("labelSelector=parity+notin+(even)", vec!["p1", "p3"]),
        ("labelSelector=parity,!other", vec!["p0", "p1", "p2", "p3"]),
        ("fieldSelector=metadata.name%3Dp3", vec!["p3"]),
        ("fieldSelector=spec.nodeName%3Dn1", vec!["p1"]),
        ("fieldSelector=spec.host%3Dn1", vec!["p1"]),
        ("fieldSelector=spec.nodeName!%3Dn1,metadata.namespace%3Ddefault", vec!["p0", "p2", "p3"]),
        ("fieldSelector=status.phase%3DPending&labelSelector=parity%3Dodd", vec!["p1", "p3"]),
    ] {
        let (_, list) = json(&server, &format!("GET /api/v1/pods?{query}"), Value::Null).await;
        assert_eq!(names(&list), expected, "{query}");
    }
    let plain = "\"spec.foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    for (path, expected) in [
        ("/api/v1/pods", "field label not supported: spec.foo"),
        ("/apis/batch/v1/jobs", "field label \"spec.foo\" not supported for Job"),
        ("/apis/apps/v1/replicasets", plain),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", plain),
    ] {
        let line = format!("GET {path}?fieldSelector=spec.foo%3Dx");
        let (code, status) = json(&server, &line, Value::Null).await;
        assert_eq!((code, status["message"].as_str().unwrap()), (400, expected), "{path}");
    }
    for (line, expected) in [
        ("GET /apis/apps/v1/replicasets?fieldSelector=status.replicas%3D0", 400),
        ("GET /apis/events.k8s.io/v1/events?fieldSelector=involvedObject.name%3Da", 400),
        ("GET /apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dregarding.x", 200),
        ("GET /apis/rbac.authorization.k8s.io/v1/clusterroles?fieldSelector=metadata.namespace%3Da", 200),
        ("GET /api/v1/nodes?fieldSelector=metadata.namespace%3Da", 400),
        ("GET /api/v1/pods?fieldSelector=spec.host%3Dn1,status.podIPs%3D", 200),
    ] {
        assert_eq!(json(&server, line, Value::Null).await.0, expected, "{line}");
    }
    let (code, _) = json(&server, "GET /api/v1/pods?labelSelector=a+in", Value::Null).await;
    assert_eq!(code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_watch_by_selector_sees_objects_come_into_and_out_of_sight() {
    let server = server();
    put_pods(&server, 1).await;
    let version = server.store().version();
    let line = format!(
        "GET /api/v1/pods?watch=1&labelSelector=parity%3Dodd&resourceVersion={version}&timeoutSeconds=1"
    );
    let response = send(&server, &line, &[], "").await;
    for parity in ["odd", "even"] {
        let patch = json!({"metadata": {"labels": {"parity": parity}}}).to_string();
        let headers = ["content-type: application/merge-patch+json"];
        let answer = send(&server, "PATCH /api/v1/namespaces/default/pods/p0", &headers, &patch).await;
        assert_eq!(answer.status().as_u16(), 200);
    }
    let events: Vec<Value> =
        text(response).await.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> = events
        .iter()
        .map(|e| (e["type"].as_str().unwrap(), e["object"]["metadata"]["labels"]["parity"].as_str().unwrap()))
        .collect();
    // The pod leaves with its last matching state, under the version of the change.
    assert_eq!(seen, [("ADDED", "odd"), ("DELETED", "odd")]);
    let newest = server.store().version().to_string();
    assert_eq!(events[1]["object"]["metadata"]["resourceVersion"], newest);
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_marked_bookmark() {
    let server = server();
    put_pods(&server, 1).await;
    let line = "GET /api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                &allowWatchBookmarks=true&timeoutSeconds=1";
    let answer = text(send(&server, line, &[], "").await).await;
    let events: Vec<Value> = answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["type"], "ADDED");
    assert_eq!(events[1]["type"], "BOOKMARK");
    assert_eq!(events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test(start_paused = true)]
async fn tables_and_metadata_come_when_they_are_asked_for() {
    let server = server();
    put_pods(&server, 1).await;
    let table = ["accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json"];
    let answer: Value =
        serde_json::from_str(&text(send(&server, "GET /api/v1/pods", &table, "").await).await).unwrap();
    assert_eq!(answer["kind"], "Table");
    assert_eq!(answer["columnDefinitions"][0]["name"], "Name");
    assert_eq!(answer["rows"][0]["cells"][0], "p0");
    assert_eq!(answer["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let partial = ["accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"];
    let answer: Value =
        serde_json::from_str(&text(send(&server, "GET /api/v1/pods", &partial, "").await).await).unwrap();
    assert_eq!(answer["kind"], "PartialObjectMetadataList");
    assert_eq!(answer["items"][0]["metadata"]["name"], "p0");
    assert!(answer["items"][0].get("spec").is_none());
    let watch = "GET /api/v1/pods?watch=1&timeoutSeconds=1";
    let answer = text(send(&server, watch, &table, "").await).await;
    let event: Value = serde_json::from_str(answer.lines().next().unwrap()).unwrap();
    assert_eq!(event["object"]["kind"], "Table");
}

#[tokio::test(start_paused = true)]
async fn discovery_speaks_both_forms() {
    let server = server();
    let (_, core) = json(&server, "GET /api/v1", Value::Null).await;
    let resources = core["resources"].as_array().unwrap();
    let find = |name: &str| resources.iter().find(|r| r["name"] == name).unwrap();
    assert_eq!(find("pods")["shortNames"], json!(["po"]));
    assert_eq!(find("pods/eviction")["kind"], "Eviction");
    assert_eq!(find("pods/eviction")["group"], "policy");
    let accept = "accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let response = send(&server, "GET /apis", &[accept], "").await;
    let etag = response.headers()["etag"].to_str().unwrap().to_owned();
    let list: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
    let apps = list["items"].as_array().unwrap().iter().find(|g| g["metadata"]["name"] == "apps").unwrap();
    let deployments = &apps["versions"][0]["resources"][2];
    assert_eq!(deployments["resource"], "deployments");
    assert_eq!(deployments["subresources"][0]["responseKind"]["group"], "autoscaling");
    let again = send(&server, "GET /apis", &[accept, &format!("if-none-match: {etag}")], "").await;
    assert_eq!(again.status().as_u16(), 304);
    let (_, index) = json(&server, "GET /openapi/v3", Value::Null).await;
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let (code, document) = json(&server, &format!("GET {url}"), Value::Null).await;
    assert_eq!((code, document["openapi"].as_str().unwrap()), (200, "3.0.0"));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_fully_and_stores_nothing() {
    let server = server();
    let before = server.store().version();
    let pod =
        json!({"metadata": {"generateName": "x-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let (code, made) = json(&server, "POST /api/v1/namespaces/default/pods?dryRun=All", pod).await;
    assert_eq!(code, 201);
    assert!(made["metadata"]["uid"].is_string());
    assert!(made["metadata"]["name"].as_str().unwrap().starts_with("x-"));
    assert!(made["metadata"].get("resourceVersion").is_none());
    put_pods(&server, 1).await;
    let now = server.store().version();
    assert_eq!(now, before + 1);
    json(&server, "DELETE /api/v1/namespaces/default/pods/p0?dryRun=All", Value::Null).await;
    assert_eq!(server.store().version(), now);
    let (code, _) = json(&server, "DELETE /api/v1/namespaces/default/pods/p0?dryRun=Some", Value::Null).await;
    assert_eq!(code, 422);
}

#[tokio::test(start_paused = true)]
async fn one_seed_and_one_sequence_of_requests_give_one_history_byte_for_byte() {
    async fn history(seed: u64) -> String {
        let server = ApiServer::builder().seed(seed).build();
        let mut all = String::new();
        for i in 0..20 {
            let pod = json!({
                "metadata": {"generateName": format!("p{}-", i % 3)},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            });
            let (_, made) = json(&server, "POST /api/v1/namespaces/default/pods", pod).await;
            all.push_str(&made.to_string());
            tokio::time::advance(std::time::Duration::from_millis(700)).await;
        }
        all.push_str(&text(send(&server, "GET /api/v1/pods?watch=1&timeoutSeconds=5", &[], "").await).await);
        all
    }
    assert_eq!(history(7).await, history(7).await);
    assert_ne!(history(7).await, history(8).await);
}

/// kubectl and Helm ask it about lists and about kinds that nobody serves, and give up where it is not there.
#[tokio::test(start_paused = true)]
async fn the_second_version_of_openapi_names_the_server_and_no_kinds() {
    let server = server();
    let (code, document) = json(&server, "GET /openapi/v2", Value::Null).await;
    assert_eq!((code, &document["swagger"], &document["definitions"]), (200, &json!("2.0"), &json!({})));
    let accept = "accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let answer = send(&server, "GET /openapi/v2", &[accept], "").await;
    let form = answer.headers()["content-type"].to_str().unwrap().to_owned();
    assert_eq!(form, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    let expected = "\n\u{3}2.0\u{12}\u{15}\n\nKubernetes\u{12}\u{7}v1.35.8B\0J\0";
    assert_eq!(text(answer).await, expected);
}

#[tokio::test(start_paused = true)]
async fn whoever_uses_what_is_on_its_way_out_is_told() {
    let server = server();
    let warnings = async |line: &str| {
        let answer = send(&server, line, &[], "").await;
        let all = answer.headers().get_all("warning").iter();
        all.map(|value| String::from_utf8(value.as_bytes().to_vec()).unwrap()).collect::<Vec<_>>()
    };
    let old = "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
    assert_eq!(warnings("GET /api/v1/namespaces/default/endpoints").await, [old]);
    assert_eq!(warnings("GET /api/v1/namespaces/default/services").await, Vec::<String>::new());
    let version = |name: &str, more: Value| {
        let mut version = json!({"name": name, "served": true, "storage": name == "v3",
            "schema": {"openAPIV3Schema": {"type": "object"}}});
        version.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        version
    };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"}, "versions": [
            version("v1", json!({"deprecated": true})),
            version("v2", json!({"deprecated": true, "deprecationWarning": "use v3 \u{2013} \"now\""})),
            version("v3", json!({})),
        ]}});
    let path = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(json(&server, path, definition).await.0, 201);
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let things = async |version: &str| warnings(&format!("GET /apis/example.com/{version}/things")).await;
    assert_eq!(things("v1").await, ["299 - \"example.com/v1 Thing is deprecated\""]);
    assert_eq!(things("v2").await, ["299 - \"use v3 \u{2013} \\\"now\\\"\""]);
    assert_eq!(things("v3").await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_doubtful_object_is_taken_with_a_word() {
    let server = server();
    let annotations = json!({"kubernetes.io/ingress.class": "a"});
    let spec = json!({"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}});
    let ingress = json!({"metadata": {"name": "a", "annotations": annotations}, "spec": spec}).to_string();
    let path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let answer = send(&server, &format!("POST {path}"), &[], &ingress).await;
    assert_eq!(answer.status(), 201);
    assert_eq!(
        answer.headers()["warning"],
        "299 - \"annotation \\\"kubernetes.io/ingress.class\\\" is deprecated, please use 'spec.ingressClassName' instead\""
    );
}
