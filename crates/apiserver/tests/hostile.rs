//! Input of people with bad intentions: always a status that says what is wrong, in little memory.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kruise_apiserver::{ApiServer, protobuf};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn server() -> ApiServer {
    ApiServer::builder().seed(1).build()
}

async fn send(server: &ApiServer, line: &str, content_type: &str, body: Vec<u8>) -> (u16, Value) {
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method.parse::<Method>().unwrap()).uri(path);
    let request = request.header("content-type", content_type).body(Full::new(Bytes::from(body))).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

/// The request is refused with this code, and the status says why.
async fn refused(line: &str, content_type: &str, body: Vec<u8>, expected: u16) -> String {
    let (code, status) = send(&server(), line, content_type, body).await;
    assert_eq!(code, expected, "{status}");
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Failure")));
    let message = status["message"].as_str().unwrap().to_owned();
    assert!(!message.is_empty() && message.len() < 10_000, "{} letters", message.len());
    message
}

#[tokio::test(start_paused = true)]
async fn a_body_of_more_than_three_megabytes_is_refused_in_every_form() {
    for content_type in ["application/json", "application/yaml", protobuf::CONTENT_TYPE] {
        let message = refused(&format!("POST {CONFIGS}"), content_type, vec![b' '; (3 << 20) + 1], 413).await;
        assert_eq!(message, "Request entity too large: limit is 3145728");
    }
    let patch = vec![b'['; 4 << 20];
    refused(&format!("PATCH {CONFIGS}/a"), "application/json-patch+json", patch, 413).await;
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_is_refused_in_every_form() {
    let deep = |open: &str, close: &str| [open.repeat(100_000), close.repeat(100_000)].concat();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let body = format!("{{\"metadata\": {}}}", deep(open, close)).into_bytes();
        refused(&format!("POST {CONFIGS}"), "application/json", body.clone(), 400).await;
        refused(&format!("POST {CONFIGS}"), "application/yaml", body.clone(), 400).await;
        refused(&format!("DELETE {CONFIGS}/a"), "application/json", body.clone(), 400).await;
    }
    let server = server();
    let made = json!({"metadata": {"name": "a"}}).to_string().into_bytes();
    assert_eq!(send(&server, &format!("POST {CONFIGS}"), "application/json", made).await.0, 201);
    for content_type in [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ] {
        let body = deep("{\"a\":", "}").into_bytes();
        let (code, status) = send(&server, &format!("PATCH {CONFIGS}/a"), content_type, body).await;
        assert_eq!(code, 400, "{content_type}: {status}");
    }
    // A patch that digs deeper with every operation.
    let dig: Vec<Value> = (0..2_000)
        .map(|_| json!({"op": "copy", "from": "/metadata", "path": "/metadata/annotations"}))
        .collect();
    let body = Value::from(dig).to_string().into_bytes();
    let (code, status) =
        send(&server, &format!("PATCH {CONFIGS}/a"), "application/json-patch+json", body).await;
    assert!((400..500).contains(&code), "{status}");
}

#[tokio::test(start_paused = true)]
async fn a_patch_cannot_double_itself_without_end() {
    let server = server();
    let made = json!({"metadata": {"name": "a"}, "data": {"k": "v".repeat(1000)}}).to_string().into_bytes();
    assert_eq!(send(&server, &format!("POST {CONFIGS}"), "application/json", made).await.0, 201);
    let double: Vec<Value> =
        (0..60).map(|i| json!({"op": "copy", "from": "", "path": format!("/x{i}")})).collect();
    let body = Value::from(double).to_string().into_bytes();
    let (code, status) =
        send(&server, &format!("PATCH {CONFIGS}/a"), "application/json-patch+json", body).await;
    assert!((400..500).contains(&code), "{status}");
}

#[tokio::test(start_paused = true)]
async fn yaml_that_refers_to_itself_does_not_grow() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let refs = format!("*a{}, ", i - 1).repeat(9);
        bomb.push_str(&format!("a{i}: &a{i} [{}]\n", refs.trim_end_matches(", ")));
    }
    bomb.push_str("metadata: {name: a}\ndata: *a11\n");
    refused(&format!("POST {CONFIGS}"), "application/yaml", bomb.into_bytes(), 400).await;
}

#[tokio::test(start_paused = true)]
async fn many_small_values_are_too_many() {
    let body = format!(
        "{{\"metadata\":{{\"name\":\"a\"}},\"spec\":{{\"containers\":[{}{{}}]}}}}",
        "{},".repeat(1_000_000)
    );
    let message = refused(&format!("POST {PODS}"), "application/json", body.into_bytes(), 413).await;
    assert_eq!(message, "Request entity too large: the object has more than 400000 values");
    // The same in protobuf: two bytes each.
    let content = [&b"\x12\x80\x80\x80\x01"[..], &b"\x12\x00".repeat(1 << 20)].concat();
    let length = content.len();
    let varint = [
        (length & 0x7f) as u8 | 0x80,
        (length >> 7 & 0x7f) as u8 | 0x80,
        (length >> 14 & 0x7f) as u8 | 0x80,
        (length >> 21) as u8,
    ];
    let body = [&b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12"[..], &varint, &content].concat();
    let message = refused(&format!("POST {PODS}"), protobuf::CONTENT_TYPE, body, 400).await;
    assert_eq!(
        message,
        "Pod in version \"v1\" cannot be handled as a Pod: the object has more than 400000 values"
    );
}

#[tokio::test(start_paused = true)]
async fn lengths_that_lie_are_refused() {
    for body in [
        &b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\xff\xff\xff\xff\x07"[..],
        b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        refused(&format!("POST {PODS}"), protobuf::CONTENT_TYPE, body.to_vec(), 400).await;
    }
}

fn definition(schema: &Value) -> Vec<u8> {
    json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "cars.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Car", "plural": "cars"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
    .to_string()
    .into_bytes()
}

#[tokio::test(start_paused = true)]
async fn schemas_that_explode_are_refused() {
    let mut deep = json!({"type": "string"});
    for _ in 0..70 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let line = format!("POST {CRDS}");
    refused(
        &line,
        "application/json",
        definition(&json!({"type": "object", "properties": {"a": deep}})),
        400,
    )
    .await;
    for pattern in ["(((a{1,1000}){1,1000}){1,1000})", "((a*)*)*\\", "(?P<n>"] {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
        let (code, status) = send(&server(), &line, "application/json", definition(&schema)).await;
        assert_eq!(code, 422, "{pattern}: {status}");
    }
    // A pattern that makes other engines slow.
    let server = server();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "string", "pattern": "^(a+)+$"}}});
    assert_eq!(send(&server, &line, "application/json", definition(&schema)).await.0, 201);
    let car = json!({"kind": "Car", "apiVersion": "example.com/v1", "metadata": {"name": "a"}, "spec": format!("{}b", "a".repeat(100_000))});
    let cars = "POST /apis/example.com/v1/namespaces/default/cars";
    let (code, status) = send(&server, cars, "application/json", car.to_string().into_bytes()).await;
    assert_eq!(code, 422);
    assert!(status["message"].as_str().unwrap().contains("spec in body should match '^(a+)+$'"));
}

#[tokio::test(start_paused = true)]
async fn selectors_that_explode_are_answered() {
    let server = server();
    for selector in ["(", "a%20in%20(", "!!a", "a%3D%3D%3Db", "a%3E%3Eb", "%2C%2C", "%5C", "a%20in%20(b%2C"] {
        for name in ["labelSelector", "fieldSelector"] {
            let (code, status) =
                send(&server, &format!("GET /api/v1/pods?{name}={selector}"), "", Vec::new()).await;
            assert!(code == 200 || code == 400 && status["kind"] == "Status", "{name}={selector}: {status}");
        }
    }
    let many = "a%2C".repeat(15_000);
    let (code, _) = send(&server, &format!("GET /api/v1/pods?labelSelector={many}a"), "", Vec::new()).await;
    assert_eq!(code, 200);
    let open = format!("GET /api/v1/pods?labelSelector=a%20in%20({}", "(".repeat(50_000));
    assert_eq!(send(&server, &open, "", Vec::new()).await.0, 400);
}

/// A definition of lists of texts, once it is served.
async fn lists(server: &ApiServer, list_type: &str) -> &'static str {
    let list = json!({"type": "array", "x-kubernetes-list-type": list_type, "items": {"type": "string"}});
    let spec = json!({"type": "object", "properties": {"l": list}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lists.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "lists", "kind": "List"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    let body = definition.to_string().into_bytes();
    assert_eq!(send(server, &format!("POST {CRDS}"), "application/json", body).await.0, 201);
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    "/apis/example.com/v1/namespaces/default/lists"
}

fn list_of(items: Vec<Value>) -> Vec<u8> {
    json!({"apiVersion": "example.com/v1", "kind": "List", "metadata": {"name": "a"}, "spec": {"l": items}})
        .to_string()
        .into_bytes()
}

/// As many values as a request may have. Quadratic work on them takes so long that the runner of the tests ends it.
const VERY_MANY: u32 = 390_000;

#[tokio::test(start_paused = true)]
async fn very_many_faults_are_told_in_time() {
    let server = server();
    let path = lists(&server, "atomic").await;
    let faults = vec![json!(1); VERY_MANY as usize];
    let (code, status) = send(&server, &format!("POST {path}"), "application/json", list_of(faults)).await;
    assert_eq!(code, 422, "{}", status["reason"]);
}

#[tokio::test(start_paused = true)]
async fn very_many_items_are_applied_in_time() {
    let server = server();
    let path = lists(&server, "set").await;
    // In hexadecimal: a decimal number would not fit.
    let items = (0..VERY_MANY).map(|at| json!(format!("{at:x}"))).collect();
    let line = format!("PATCH {path}/a?fieldManager=m");
    let (code, _) = send(&server, &line, "application/apply-patch+yaml", list_of(items)).await;
    assert_eq!(code, 201);
}
