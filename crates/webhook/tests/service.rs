//! The service as an API server meets it: answers, refusals, bounds, and garbage.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kruise_core::admission::Answer;
use kruise_webhook::service::{Builder, Limits, Metrics, Verified, Webhooks};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const VALIDATE: &str = "/validate-apps-kruise-io-cloneset";
const SLOW: &str = "/slow";
const PANICS: &str = "/panics";

#[derive(Default)]
struct Counted(Mutex<Vec<String>>);

impl Counted {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Metrics for Counted {
    fn began(&self, webhook: &str) {
        self.add(format!("began {webhook}"));
    }
    fn ended(&self, webhook: &str, code: u16, _took: Duration) {
        self.add(format!("ended {webhook} {code}"));
    }
    fn admission_panicked(&self) {
        self.add("admission panicked".to_owned());
    }
    fn conversion_panicked(&self) {
        self.add("conversion panicked".to_owned());
    }
}

/// Refuses objects named `bad`; `/slow` takes a minute; `/panics` does.
fn webhooks(limits: Limits, counted: &Arc<Counted>) -> Webhooks {
    builder().limits(limits).metrics(counted.clone()).build()
}

fn builder() -> Builder {
    Webhooks::builder()
        .admission(VALIDATE, |request| async move {
            match request.name.as_str() {
                "bad" => Answer::Denied { code: 422, message: "no".to_owned() },
                _ => Answer::allowed(),
            }
        })
        .admission(SLOW, |_| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Answer::allowed()
        })
        .admission(PANICS, |_| async { panic!("out of luck") })
        .conversion(|mut object, wanted| {
            if !object.is_object() {
                return Err("it is no JSON object".to_owned());
            }
            match object["metadata"]["name"].as_str() {
                Some("panics") => panic!("out of luck"),
                Some("broken") => return Err("spec.x: is wrong".to_owned()),
                Some("renamed") => object["metadata"]["name"] = json!("other"),
                _ => {}
            }
            object["apiVersion"] = json!(wanted);
            Ok(object)
        })
}

fn default() -> Webhooks {
    webhooks(Limits::default(), &Arc::default())
}

fn review(name: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "name": name, "namespace": "default",
            "resource": { "group": "apps.kruise.io", "version": "v1beta1", "resource": "clonesets" },
        },
    })
}

fn conversion(names: &[&str]) -> Value {
    let objects: Vec<Value> = names
        .iter()
        .map(|name| json!({ "apiVersion": "g/v1", "kind": "CloneSet", "metadata": { "name": name, "namespace": "default" } }))
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "u", "desiredAPIVersion": "g/v2", "objects": objects },
    })
}

async fn send(
    webhooks: &Webhooks,
    method: Method,
    path: &str,
    content: Option<&str>,
    body: Bytes,
) -> (u16, Bytes) {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(content) = content {
        request = request.header("content-type", content);
    }
    let response: Response<_> =
        webhooks.clone().oneshot(request.body(Full::new(body)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    (code, response.into_body().collect().await.unwrap().to_bytes())
}

async fn post(webhooks: &Webhooks, path: &str, body: impl ToString) -> (u16, Value) {
    let body = Bytes::from(body.to_string());
    let (code, body) = send(webhooks, Method::POST, path, Some("application/json"), body).await;
    let value = serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body)));
    (code, value)
}

#[tokio::test]
async fn answers_to_odd_requests_are_those_of_the_original() {
    let webhooks = default();
    let text = |(code, body): (u16, Bytes)| (code, String::from_utf8(body.to_vec()).unwrap());
    let check = async |method: Method, path: &str, body: &'static str, expected: (u16, &str)| {
        let (code, body) = text(send(&webhooks, method, path, None, Bytes::from(body)).await);
        assert_eq!((code, body.as_str()), expected, "{path}");
    };
    check(Method::GET, "/healthz", "", (200, "")).await;
    check(Method::GET, "/convert", "", (400, "")).await;
    check(Method::GET, "/nothing", "", (404, "404 page not found")).await;
    check(Method::POST, "/", "{}", (404, "404 page not found")).await;

    let (code, body) = send(&webhooks, Method::POST, VALIDATE, None, Bytes::from("{}")).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    let expected = json!({ "response": { "uid": "", "allowed": false, "status": {
        "metadata": {}, "message": "contentType=, expected application/json", "code": 400 } } });
    assert_eq!((code, body), (200, expected));

    let only_uid =
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": { "uid": "x" } });
    let (code, body) = post(&webhooks, VALIDATE, only_uid).await;
    assert_eq!((code, &body["response"]["uid"]), (200, &json!("x")));
    assert_eq!(body["response"]["status"]["code"], 400);
    assert_eq!(body["response"]["status"]["message"], "unsupported version: ");
}

#[tokio::test]
async fn requests_reach_the_handler_of_their_path_and_are_counted() {
    let counted = Arc::default();
    let webhooks = webhooks(Limits::default(), &counted);
    let (_, good) = post(&webhooks, VALIDATE, review("good")).await;
    assert_eq!(good["response"]["allowed"], true);
    let (_, bad) = post(&webhooks, VALIDATE, review("bad")).await;
    assert_eq!(bad["response"]["status"]["code"], 422);
    assert_eq!(
        counted.take(),
        [
            "began /validate-apps-kruise-io-cloneset",
            "ended /validate-apps-kruise-io-cloneset 200",
            "began /validate-apps-kruise-io-cloneset",
            "ended /validate-apps-kruise-io-cloneset 200",
        ]
    );
    let (_, body) = send(&webhooks, Method::GET, "/random", None, Bytes::new()).await;
    assert_eq!(body, "404 page not found");
    assert_eq!(counted.take(), [] as [&str; 0], "paths that anyone can make up are not counted");
}

#[tokio::test]
async fn a_panic_costs_only_its_own_request() {
    let counted = Arc::default();
    let webhooks = webhooks(Limits::default(), &counted);
    let (code, body) = post(&webhooks, PANICS, review("x")).await;
    assert_eq!((code, &body["response"]["uid"]), (200, &json!("u")));
    assert_eq!(body["response"]["status"]["code"], 500);
    assert_eq!(body["response"]["status"]["message"], "panic: out of luck [recovered]");
    assert!(counted.take().contains(&"admission panicked".to_owned()));

    let (_, body) = post(&webhooks, "/convert", conversion(&["fine", "panics"])).await;
    assert_eq!(
        body["response"]["result"]["message"],
        "CloneSet default/panics cannot be converted from g/v1 to g/v2: panic: out of luck [recovered]"
    );
    assert!(counted.take().contains(&"conversion panicked".to_owned()));
    let (_, body) = post(&webhooks, VALIDATE, review("good")).await;
    assert_eq!(body["response"]["allowed"], true);
}

#[tokio::test]
async fn all_objects_are_converted_or_the_answer_names_the_one_that_cannot_be() {
    let webhooks = default();
    let names: Vec<String> = (0..100).map(|i| format!("web-{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_, body) = post(&webhooks, "/convert", conversion(&names)).await;
    assert_eq!(body["response"]["result"]["status"], "Success");
    let converted = body["response"]["convertedObjects"].as_array().unwrap();
    assert_eq!(converted.len(), 100);
    assert!(converted.iter().all(|object| object["apiVersion"] == "g/v2"));
    assert_eq!(converted[99]["metadata"]["name"], "web-99");

    let (code, body) = post(&webhooks, "/convert", conversion(&["a", "broken", "b"])).await;
    assert_eq!((code, &body["response"]["result"]["status"]), (200, &json!("Failure")));
    assert_eq!(
        body["response"]["result"]["message"],
        "CloneSet default/broken cannot be converted from g/v1 to g/v2: spec.x: is wrong"
    );
    let (_, body) = post(&webhooks, "/convert", conversion(&["renamed"])).await;
    let message = body["response"]["result"]["message"].as_str().unwrap();
    assert!(message.contains("metadata.name would change"), "{message}");
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_with_the_limit() {
    let webhooks = default();
    let huge = Bytes::from(vec![b' '; 10 << 20]);
    let (code, body) = send(&webhooks, Method::POST, VALIDATE, Some("application/json"), huge.clone()).await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((code, &body["response"]["status"]["code"]), (200, &json!(413)));
    let message = "request entity is too large; limit is 7340032 bytes";
    assert_eq!(body["response"]["status"]["message"], message);

    // A body that does not say how long it is.
    let stream = http_body_util::StreamBody::new(futures::stream::repeat_with(|| {
        Ok::<_, std::convert::Infallible>(http_body::Frame::data(Bytes::from_static(&[b' '; 4096])))
    }));
    let request = Request::post(VALIDATE).header("content-type", "application/json").body(stream).unwrap();
    let answer =
        webhooks.clone().oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["response"]["status"]["message"], message);

    let small = Limits { conversion_body: 1000, ..Limits::default() };
    let webhooks = self::webhooks(small, &Arc::default());
    let (code, body) = post(&webhooks, "/convert", conversion(&["x"; 100])).await;
    assert_eq!((code, body), (413, json!("request entity is too large; limit is 1000 bytes")));
    let (_, body) = post(&webhooks, VALIDATE, review("good")).await;
    assert_eq!(body["response"]["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_given_up_when_the_server_no_longer_waits() {
    let counted = Arc::default();
    let webhooks = webhooks(Limits::default(), &counted);
    let began = tokio::time::Instant::now();
    let (code, body) = post(&webhooks, "/slow?timeout=5s", review("x")).await;
    assert_eq!((code, body), (504, json!("no answer within 5s")));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    let (code, _) = post(&webhooks, "/slow?timeout=3h", review("x")).await;
    assert_eq!((code, began.elapsed()), (504, Duration::from_secs(35)));
    assert_eq!(counted.take(), ["began /slow", "ended /slow 504", "began /slow", "ended /slow 504"]);
}

#[tokio::test(start_paused = true)]
async fn too_many_at_once_wait_for_their_turn_and_then_are_sent_away() {
    let limits = Limits { requests: 2, ..Limits::default() };
    let webhooks = webhooks(limits, &Arc::default());
    let slow = || post(&webhooks, SLOW, review("x"));
    let third = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let began = tokio::time::Instant::now();
        let (code, _) = post(&webhooks, VALIDATE, review("good")).await;
        assert_eq!((code, began.elapsed()), (503, Duration::from_secs(2)));
    };
    futures::join!(slow(), slow(), third);
    let (code, _) = post(&webhooks, VALIDATE, review("good")).await;
    assert_eq!(code, 200, "turns come back");
}

#[tokio::test(start_paused = true)]
async fn requests_together_stay_within_their_memory() {
    let limits = Limits {
        admission_memory: 150_000,
        turn: Duration::from_secs(90),
        deadline: Duration::from_secs(300),
        ..Limits::default()
    };
    let webhooks = webhooks(limits, &Arc::default());
    let began = tokio::time::Instant::now();
    let large = format!("{}{}", review("x"), " ".repeat(3000));
    let (first, second) = futures::join!(post(&webhooks, SLOW, &large), post(&webhooks, SLOW, &large));
    assert_eq!((first.0, second.0), (200, 200));
    assert_eq!(began.elapsed(), Duration::from_secs(120), "one after the other");
}

/// A body that begins with these bytes and never ends.
fn unfinished(bytes: Vec<u8>) -> impl http_body::Body<Data = Bytes, Error = std::convert::Infallible> {
    let first = futures::stream::once(async { Ok(http_body::Frame::data(Bytes::from(bytes))) });
    http_body_util::StreamBody::new(Box::pin(first.chain(futures::stream::pending())))
}

/// Issue 19: two unfinished chunked conversions reserved everything, and admissions were refused for 30 s.
#[tokio::test(start_paused = true)]
async fn requests_that_never_end_keep_no_admission_waiting() {
    let webhooks = default();
    let began = tokio::time::Instant::now();
    let requests = (0..200).map(|number| {
        let path = ["/convert", VALIDATE, SLOW][number % 3];
        let body = unfinished(vec![b' '; [10, 1 << 20, 6 << 20][number / 3 % 3]]);
        webhooks
            .clone()
            .oneshot(Request::post(path).header("content-type", "application/json").body(body).unwrap())
    });
    let admissions = async {
        for _ in 0..50 {
            let asked = tokio::time::Instant::now();
            let (code, body) = post(&webhooks, VALIDATE, review("good")).await;
            assert_eq!((code, &body["response"]["allowed"]), (200, &json!(true)));
            assert!(asked.elapsed() <= Limits::default().grace, "{:?}", asked.elapsed());
            let (code, _) = post(&webhooks, "/convert", conversion(&["x"])).await;
            assert_eq!(code, 200);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (answers, ()) = futures::join!(futures::future::join_all(requests), admissions);
    for answer in answers {
        let answer = answer.unwrap();
        let code = answer.status().as_u16();
        assert!([503, 504].contains(&code), "{code}");
    }
    assert_eq!(began.elapsed(), Limits::default().deadline);
}

/// What is announced takes nothing: a thousand large bodies of which nothing came yet.
#[tokio::test(start_paused = true)]
async fn what_is_announced_takes_no_memory() {
    let webhooks = default();
    let requests = (0..1000).map(|_| {
        let body = http_body_util::StreamBody::new(futures::stream::pending::<
            Result<http_body::Frame<Bytes>, std::convert::Infallible>,
        >());
        webhooks
            .clone()
            .oneshot(Request::post("/convert").header("content-length", "16000000").body(body).unwrap())
    });
    let mut requests = Box::pin(futures::future::join_all(requests));
    assert!(futures::poll!(&mut requests).is_pending());
    let (code, _) = post(&webhooks, "/convert", conversion(&["x"; 1000])).await;
    assert_eq!(code, 200);
}

/// Small items make a tree many times as large as its text.
#[tokio::test]
async fn what_would_take_too_much_as_a_tree_is_refused_with_its_size() {
    let webhooks = default();
    let dense = "0,".repeat(3 << 20);
    let review = review("x").to_string().replace("\"name\":\"x\"", &format!("\"object\":[{dense}0]"));
    let (_, answer) = post(&webhooks, VALIDATE, review).await;
    assert_eq!(answer["response"]["status"]["code"], 413);
    let message = answer["response"]["status"]["message"].as_str().unwrap();
    assert!(message.starts_with("request entity is too dense; its 62"), "{message}");
    let conversion = conversion(&["x"])
        .to_string()
        .replace("\"kind\":\"CloneSet\"", &format!("\"kind\":\"CloneSet\",\"spec\":[{dense}0]"));
    let (code, answer) = post(&webhooks, "/convert", conversion).await;
    assert_eq!((code, &answer["response"]["result"]["status"]), (200, &json!("Failure")));
    let message = answer["response"]["result"]["message"].as_str().unwrap();
    assert!(message.contains("is too dense to be converted"), "{message}");
}

/// A client that still sends when it is refused gets to read why.
#[tokio::test(start_paused = true)]
async fn the_rest_of_what_is_too_large_is_read_away_for_a_while() {
    let webhooks = default();
    let left = Arc::new(Mutex::new(100));
    let sent = left.clone();
    let stream = futures::stream::poll_fn(move |_| {
        let mut left = sent.lock().unwrap();
        *left -= 1;
        std::task::Poll::Ready((*left >= 0).then(|| {
            Ok::<_, std::convert::Infallible>(http_body::Frame::data(Bytes::from(vec![0; 1 << 20])))
        }))
    });
    let request = Request::post("/convert").body(http_body_util::StreamBody::new(stream)).unwrap();
    let answer = webhooks.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 413);
    assert_eq!(*left.lock().unwrap(), -1, "all of it");
    let began = tokio::time::Instant::now();
    let request = Request::post("/convert").body(unfinished(vec![0; 20 << 20])).unwrap();
    assert_eq!(webhooks.clone().oneshot(request).await.unwrap().status(), 413);
    assert_eq!(began.elapsed(), Limits::default().discard);
}

#[tokio::test]
async fn only_clients_with_a_certificate_are_answered_where_that_is_wanted() {
    let webhooks = builder().only_verified(true).build();
    let (code, why) = post(&webhooks, VALIDATE, review("good")).await;
    assert_eq!(code, 403);
    assert!(why.as_str().unwrap().contains("--webhook-client-ca"), "{why}");
    let body = Full::new(Bytes::from(review("good").to_string()));
    let mut request = Request::post(VALIDATE).header("content-type", "application/json").body(body).unwrap();
    request.extensions_mut().insert(Verified);
    assert_eq!(webhooks.clone().oneshot(request).await.unwrap().status(), 200);
    // API servers have none to show for conversion.
    assert_eq!(post(&webhooks, "/convert", conversion(&["x"])).await.0, 200);
}

/// Anything a confused or hostile client may send.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let any_json = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let fields = prop::sample::select(vec![
        "/apiVersion",
        "/kind",
        "/request",
        "/request/uid",
        "/request/operation",
        "/request/name",
        "/request/namespace",
        "/request/object",
        "/request/oldObject",
        "/request/resource",
        "/request/resource/version",
        "/request/userInfo",
        "/request/dryRun",
        "/request/objects",
        "/request/desiredAPIVersion",
        "/request/objects/0/metadata",
        "/request/objects/0/kind",
    ]);
    let spoiled = (any::<bool>(), fields, any_json.clone()).prop_map(|(admission, field, value)| {
        let mut whole = if admission { review("x") } else { conversion(&["x", "y"]) };
        if let Some(place) = whole.pointer_mut(field) {
            *place = value;
        }
        whole.to_string().into_bytes()
    });
    let cut = (any::<bool>(), any::<prop::sample::Index>()).prop_map(|(admission, at)| {
        let whole = if admission { review("x") } else { conversion(&["x"]) }.to_string();
        whole.as_bytes()[..at.index(whole.len())].to_vec()
    });
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        any_json.prop_map(|value| value.to_string().into_bytes()),
        (1usize..5000).prop_map(|deep| "[".repeat(deep).into_bytes()),
        spoiled,
        cut,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn garbage_gets_a_reason_and_the_next_request_an_answer(
        body in garbage(),
        path in prop::sample::select(vec![VALIDATE, "/convert"]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let counted = Arc::default();
            let webhooks = webhooks(Limits::default(), &counted);
            let empty = body.is_empty();
            let (code, answer) = send(&webhooks, Method::POST, path, Some("application/json"), body.into()).await;
            if code == 200 {
                let answer: Value = serde_json::from_slice(&answer).unwrap();
                let response = &answer["response"];
                assert!(response["uid"].is_string(), "{answer}");
                let reason = &response["status"]["message"];
                let failed = &response["result"]["message"];
                let fine = response["allowed"] == true || response["result"]["status"] == "Success";
                assert!(fine || reason.as_str().or(failed.as_str()).is_some_and(|why| !why.is_empty()), "{answer}");
            } else {
                assert_eq!((code, path), (400, "/convert"));
                assert!(empty || !answer.is_empty());
            }
            assert!(!counted.take().iter().any(|line| line.contains("panicked")));
            let (_, next) = post(&webhooks, VALIDATE, review("good")).await;
            assert_eq!(next["response"]["allowed"], true);
            let (_, next) = post(&webhooks, "/convert", conversion(&["good"])).await;
            assert_eq!(next["response"]["result"]["status"], "Success");
        });
    }
}
