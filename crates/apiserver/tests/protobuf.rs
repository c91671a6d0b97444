//! Protobuf over the wire, as client-go and kubectl speak it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kruise_apiserver::{ApiServer, protobuf};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// What client-go sends by default.
const ACCEPT: &str = "application/vnd.kubernetes.protobuf,application/json";

struct Answer {
    code: u16,
    content_type: String,
    bytes: Bytes,
}

impl Answer {
    /// The object, whichever form it has.
    fn object(&self) -> Value {
        match self.content_type.as_str() {
            protobuf::CONTENT_TYPE => protobuf::decode(&self.bytes, "", "").unwrap(),
            _ => serde_json::from_slice(&self.bytes).unwrap(),
        }
    }
}

fn server() -> ApiServer {
    ApiServer::builder().seed(1).build()
}

fn request(line: &str, accept: &str, content_type: &str, body: Vec<u8>) -> Request<Full<Bytes>> {
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method.parse::<Method>().unwrap()).uri(path);
    let request = request.header("accept", accept).header("content-type", content_type);
    request.body(Full::new(Bytes::from(body))).unwrap()
}

async fn send(server: &ApiServer, line: &str, accept: &str, content_type: &str, body: Vec<u8>) -> Answer {
    let response = server.clone().oneshot(request(line, accept, content_type, body)).await.unwrap();
    let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    let code = response.status().as_u16();
    Answer { code, content_type, bytes: response.into_body().collect().await.unwrap().to_bytes() }
}

/// Sends an object as protobuf and accepts protobuf.
async fn ask(server: &ApiServer, line: &str, object: Value) -> Answer {
    let body = if object.is_null() { Vec::new() } else { protobuf::encode(&object).unwrap() };
    send(server, line, ACCEPT, protobuf::CONTENT_TYPE, body).await
}

fn config(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": "v"}})
}

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn an_object_lives_in_protobuf_from_create_to_delete() {
    let server = server();
    let made = ask(&server, &format!("POST {CONFIGS}"), config("a")).await;
    assert_eq!((made.code, made.content_type.as_str()), (201, protobuf::CONTENT_TYPE));
    let mut object = made.object();
    assert_eq!(object["data"], json!({"k": "v"}));
    let plain = send(&server, &format!("GET {CONFIGS}/a"), "application/json", "", Vec::new()).await;
    assert_eq!(plain.object(), object, "both forms say the same");

    object["data"]["k"] = json!("w");
    let changed = ask(&server, &format!("PUT {CONFIGS}/a"), object).await;
    assert_eq!((changed.code, &changed.object()["data"]["k"]), (200, &json!("w")));

    let list = ask(&server, &format!("GET {CONFIGS}"), Value::Null).await.object();
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!(list["items"][0]["data"]["k"], "w");

    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}});
    let refused = ask(&server, &format!("DELETE {CONFIGS}/a"), options).await;
    assert_eq!((refused.code, refused.object()["reason"].as_str()), (409, Some("Conflict")));
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    let gone = ask(&server, &format!("DELETE {CONFIGS}/a"), options).await;
    assert_eq!((gone.code, gone.content_type.as_str()), (200, protobuf::CONTENT_TYPE));
    assert_eq!(gone.object()["status"], "Success");
    let missing = ask(&server, &format!("GET {CONFIGS}/a"), Value::Null).await;
    assert_eq!((missing.code, missing.content_type.as_str()), (404, protobuf::CONTENT_TYPE));
    assert_eq!(missing.object()["message"], "configmaps \"a\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_workload_is_defaulted_whichever_form_it_came_in() {
    let server = server();
    let deployment = |name: &str| {
        json!({
            "kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{
                        "name": "c", "image": "i", "resources": {"requests": {"cpu": "0.1", "memory": "1024Ki"}},
                        "readinessProbe": {"httpGet": {"port": "http"}},
                        "env": [{"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                    }]},
                },
            },
        })
    };
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let first = ask(&server, &format!("POST {path}"), deployment("a")).await.object();
    let json = deployment("b").to_string().into_bytes();
    let second = send(&server, &format!("POST {path}"), "application/json", "application/json", json).await;
    assert_eq!(first["spec"], second.object()["spec"]);
    assert_eq!(first["spec"]["replicas"], 0);
    assert_eq!(first["spec"]["template"]["spec"]["restartPolicy"], "Always");
    let scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "a", "namespace": "default"},
        "spec": {"replicas": 3},
    });
    let scaled = ask(&server, &format!("PUT {path}/a/scale"), scale).await;
    assert_eq!((scaled.code, scaled.content_type.as_str()), (200, protobuf::CONTENT_TYPE));
    assert_eq!(scaled.object()["spec"]["replicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_frames() {
    let server = server();
    ask(&server, &format!("POST {CONFIGS}"), config("a")).await;
    let line = format!(
        "GET {CONFIGS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    );
    let accept = "application/vnd.kubernetes.protobuf;stream=watch,application/json";
    let response = server.clone().oneshot(request(&line, accept, "", Vec::new())).await.unwrap();
    assert_eq!(response.headers()["content-type"], protobuf::WATCH_CONTENT_TYPE);
    let mut stream = response.into_body().into_data_stream();
    ask(&server, &format!("POST {CONFIGS}"), config("b")).await;
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    ask(&server, &format!("DELETE {CONFIGS}/a"), options).await;
    let mut bytes = Vec::new();
    let mut told = Vec::new();
    while told.len() < 4 {
        bytes.extend(stream.next().await.unwrap().unwrap());
        told = protobuf::watch_events(&bytes).unwrap();
    }
    let told: Vec<String> = told
        .iter()
        .map(|event| format!("{} {}", event["type"].as_str().unwrap(), event["object"]["metadata"]["name"]))
        .collect();
    assert_eq!(told, ["ADDED \"a\"", "BOOKMARK null", "ADDED \"b\"", "DELETED \"a\""]);
}

#[tokio::test(start_paused = true)]
async fn forms_that_do_not_fit_are_refused() {
    let server = server();
    ask(&server, &format!("POST {CONFIGS}"), config("a")).await;
    let table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
    assert_eq!(send(&server, &format!("GET {CONFIGS}"), table, "", Vec::new()).await.code, 406);
    let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = send(&server, &format!("GET {CONFIGS}"), metadata, "", Vec::new()).await.object();
    assert_eq!(
        (&list["kind"], &list["items"][0]["metadata"]["name"]),
        (&json!("PartialObjectMetadataList"), &json!("a"))
    );
    let yaml = send(&server, &format!("GET {CONFIGS}?watch=1"), "application/yaml", "", Vec::new()).await;
    assert_eq!(yaml.code, 406);
    let wrong = ask(&server, "POST /api/v1/namespaces/default/pods", config("b")).await;
    assert_eq!(wrong.code, 400);
    assert_eq!(
        wrong.object()["message"],
        "ConfigMap in version \"v1\" cannot be handled as a Pod: converting (v1.ConfigMap) to (core.Pod): unknown conversion"
    );
    for (body, message) in [
        (&b""[..], "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"),
        (b"k8s\0", "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)"),
        (
            b"{}",
            "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a \
             protobuf message, expected prefix [107 56 115 0] ({})",
        ),
        (
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x05",
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF",
        ),
    ] {
        let line = format!("POST {CONFIGS}");
        let answer = send(&server, &line, "application/json", protobuf::CONTENT_TYPE, body.to_vec()).await;
        assert_eq!((answer.code, answer.object()["message"].as_str().unwrap()), (400, message));
    }
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_no_protobuf_but_their_metadata_has() {
    let server = server();
    let definition = json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "cars.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Car", "plural": "cars", "singular": "car", "listKind": "CarList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"spec": {"type": "object", "additionalProperties": {"type": "string"}}}}}}],
        },
    });
    let made =
        ask(&server, "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition.clone())
            .await;
    assert_eq!((made.code, made.content_type.as_str()), (201, protobuf::CONTENT_TYPE));
    let schema = |object: &Value| object["spec"]["versions"][0]["schema"].clone();
    assert_eq!(schema(&made.object()), schema(&definition));

    let cars = "/apis/example.com/v1/namespaces/default/cars";
    let car = json!({"kind": "Car", "apiVersion": "example.com/v1", "metadata": {"name": "a"}});
    let json = car.to_string().into_bytes();
    let made = send(&server, &format!("POST {cars}"), ACCEPT, "application/json", json).await;
    assert_eq!((made.code, made.content_type.as_str()), (201, "application/json"));
    let only = send(&server, &format!("GET {cars}/a"), protobuf::CONTENT_TYPE, "", Vec::new()).await;
    assert_eq!((only.code, only.content_type.as_str()), (406, protobuf::CONTENT_TYPE));
    let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let partial = send(&server, &format!("GET {cars}/a"), metadata, "", Vec::new()).await;
    assert_eq!(partial.object()["metadata"]["name"], "a");
    let body = b"k8s\0\x0a\x15\x0a\x0eexample.com/v1\x12\x03Car".to_vec();
    let refused =
        send(&server, &format!("POST {cars}"), "application/json", protobuf::CONTENT_TYPE, body).await;
    assert_eq!(refused.code, 400);
    assert_eq!(
        refused.object()["message"],
        "Car in version \"v1\" cannot be handled as a Car: Object 'Kind' is missing in 'object has no kind field '"
    );
}

#[tokio::test(start_paused = true)]
async fn discovery_has_protobuf_for_those_who_ask() {
    let server = server();
    for (path, kind) in [("/api", "APIVersions"), ("/apis", "APIGroupList"), ("/apis/apps", "APIGroup")] {
        let answer = send(&server, &format!("GET {path}"), protobuf::CONTENT_TYPE, "", Vec::new()).await;
        assert_eq!((answer.code, answer.object()["kind"].as_str()), (200, Some(kind)));
    }
    let answer = send(&server, "GET /apis/apps/v1", protobuf::CONTENT_TYPE, "", Vec::new()).await.object();
    let plain = send(&server, "GET /apis/apps/v1", "application/json", "", Vec::new()).await.object();
    assert_eq!(answer["resources"], plain["resources"]);
}
