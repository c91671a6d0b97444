//! Image pulls.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::*;

const NODE_IMAGES: &str = "/apis/apps.kruise.io/v1beta1/nodeimages";
const OWN: &str = "/apis/apps.kruise.io/v1beta1/nodeimages/n1";

fn tag(tag: &str, policy: Value) -> Value {
    json!({"tag": tag, "createdAt": "2026-01-01T00:00:00Z", "pullPolicy": policy, "imagePullPolicy": "IfNotPresent",
        "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": "default",
            "name": "job", "uid": "j"}]})
}

impl Stage {
    async fn want(&self, images: Value) {
        let mut object = named("NodeImage", "v1beta1", "n1");
        object["spec"] = json!({ "images": images });
        self.post(NODE_IMAGES, object).await;
    }

    async fn want_instead(&self, images: Value) {
        self.patch(OWN, json!({"spec": {"images": images}})).await;
    }

    async fn finished(&self, count: u64) -> Value {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        self.until(OWN, |object| {
            let status = &object["status"];
            number(&status["succeeded"]) + number(&status["failed"]) == count
        })
        .await
    }
}

/// IMAGES-4 and IMAGES-24: an image is pulled once and told.
#[tokio::test(start_paused = true)]
async fn an_image_is_pulled_and_one_that_is_there_is_not() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.world().pull_time = Duration::from_secs(20);
    stage.want(json!({"app": {"tags": [tag("v1", json!({}))]}})).await;
    let pulling = stage.until(OWN, |object| object["status"]["pulling"] == 1).await;
    assert!(pulling["status"]["imageStatuses"]["app"]["tags"][0]["startTime"].is_string());
    let done = stage.finished(1).await;
    let told = &done["status"]["imageStatuses"]["app"]["tags"][0];
    assert_eq!((&told["phase"], &told["progress"]), (&json!("Succeeded"), &json!(100)));
    assert_eq!(told["imageID"], "app@sha256:0001");
    assert_eq!(done["status"]["firstSyncStatus"]["status"], "Succeeded");
    // The next round finds the image; with Always it is pulled again.
    let mut again = tag("v1", json!({}));
    again["version"] = json!(1);
    stage.want_instead(json!({"app": {"tags": [again.clone()]}})).await;
    let is_round = |round: u64| {
        move |object: &Value| {
            let told = &object["status"]["imageStatuses"]["app"]["tags"][0];
            told["version"] == round && told["phase"] == "Succeeded"
        }
    };
    stage.until(OWN, is_round(1)).await;
    assert_eq!(stage.runtime.world().pulls.len(), 1);
    again["version"] = json!(2);
    again["imagePullPolicy"] = json!("Always");
    stage.want_instead(json!({"app": {"tags": [again]}})).await;
    stage.until(OWN, is_round(2)).await;
    let pulls = stage.runtime.world().pulls.clone();
    assert_eq!(pulls.len(), 2);
    assert_eq!(pulls[0].annotations.get("apps.kruise.io/pulling-image-by").unwrap(), "kruise-daemon");
    stage.wait(3).await;
    let events = stage.events("PullImageSucceed").await;
    assert!(
        events
            .iter()
            .all(|(object, text, _)| object == "NodeImage/n1"
                && text.starts_with("Image app:v1, elapsedTime "))
    );
}

/// IMAGES-12: three attempts, then the reason, told to everybody.
#[tokio::test(start_paused = true)]
async fn an_image_that_does_not_exist_is_tried_as_often_as_allowed() {
    let stage = Stage::new(Flags::default()).await;
    let error = "rpc error: code = NotFound desc = no such image";
    stage.runtime.world().pull_errors.insert("missing".to_owned(), error.to_owned());
    stage
        .want(json!({"missing": {"tags": [tag("v1", json!({"backoffLimit": 2, "timeoutSeconds": 30}))]}}))
        .await;
    let done = stage.finished(1).await;
    let message = format!("Failed to pull image reference \"missing:v1\": {error}");
    assert_eq!(done["status"]["imageStatuses"]["missing"]["tags"][0]["message"], message.as_str());
    assert_eq!(stage.runtime.world().pulls.len(), 3);
    stage.wait(3).await;
    let text = format!("Image missing:v1 {message}");
    let expected = ["ImagePullJob/job", "NodeImage/n1"].map(|object| (object.to_owned(), text.clone(), 1));
    assert_eq!(stage.events("PullImageFailed").await, expected);
}

/// IMAGES-13: a registry that hangs.
#[tokio::test(start_paused = true)]
async fn a_pull_that_takes_too_long_is_cancelled() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.world().pull_time = Duration::from_secs(100_000);
    let began = tokio::time::Instant::now();
    stage.want(json!({"app": {"tags": [tag("v1", json!({"backoffLimit": 0, "timeoutSeconds": 10}))]}})).await;
    let done = stage.finished(1).await;
    assert_eq!(
        done["status"]["imageStatuses"]["app"]["tags"][0]["message"],
        "pulling image app:v1 is canceled"
    );
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(stage.runtime.world().pulling, 0);
}

/// IMAGES-15: the deadline of all attempts.
#[tokio::test(start_paused = true)]
async fn attempts_end_at_their_deadline() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.world().pull_time = Duration::from_secs(100_000);
    let policy = json!({"backoffLimit": 10, "timeoutSeconds": 5, "activeDeadlineSeconds": 8});
    stage.want(json!({"app": {"tags": [tag("v1", policy)]}})).await;
    let done = stage.finished(1).await;
    assert_eq!(
        done["status"]["imageStatuses"]["app"]["tags"][0]["message"],
        "pulling exceeds the activeDeadlineSeconds"
    );
    assert_eq!(stage.runtime.world().pulls.len(), 2);
}

/// IMAGES-28: no more than two at a time.
#[tokio::test(start_paused = true)]
async fn no_more_images_are_pulled_at_once_than_allowed() {
    let stage = Stage::new(Flags { most_pulls: Some(2), ..Flags::default() }).await;
    stage.runtime.world().pull_time = Duration::from_secs(10);
    let images: serde_json::Map<String, Value> =
        (0..10).map(|n| (format!("app{n}"), json!({"tags": [tag("v1", json!({}))]}))).collect();
    stage.want(images.into()).await;
    stage.until(OWN, |object| object["status"]["waiting"] == 8 && object["status"]["pulling"] == 2).await;
    stage.finished(10).await;
    assert_eq!(stage.runtime.world().most_pulling, 2);
}

/// IMG-D10: what waits and is not wanted any more never starts; what runs is cancelled.
#[tokio::test(start_paused = true)]
async fn a_pull_that_is_not_wanted_any_more_ends() {
    let stage = Stage::new(Flags { most_pulls: Some(1), ..Flags::default() }).await;
    stage.runtime.world().pull_time = Duration::from_secs(1000);
    stage.want(json!({"a": {"tags": [tag("v1", json!({}))]}, "b": {"tags": [tag("v1", json!({}))]}})).await;
    stage.until(OWN, |object| object["status"]["waiting"] == 1).await;
    stage.patch(OWN, json!({"spec": {"images": {"a": null, "b": null}}})).await;
    stage.until(OWN, |object| object["status"]["desired"] == 0).await;
    stage.wait(10).await;
    let world = stage.runtime.world();
    assert_eq!((world.pulls.len(), world.pulling), (1, 0));
}

/// IMAGES-29: the daemon dies during a pull.
#[tokio::test(start_paused = true)]
async fn a_pull_is_begun_again_by_the_next_daemon() {
    let mut stage = Stage::new(Flags::default()).await;
    stage.runtime.world().pull_time = Duration::from_secs(30);
    stage.want(json!({"app": {"tags": [tag("v1", json!({}))]}})).await;
    stage.until(OWN, |object| object["status"]["pulling"] == 1).await;
    stage.crash_daemon(Flags::default());
    let done = stage.finished(1).await;
    assert_eq!(done["status"]["succeeded"], 1);
    assert_eq!(stage.runtime.world().pulls.len(), 2);
}

/// IMAGES-31: the status is written slowly when much happens.
#[tokio::test(start_paused = true)]
async fn many_ends_at_once_are_few_writes() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.world().pull_time = Duration::from_secs(5);
    let tags: Vec<Value> = (0..300).map(|n| tag(&format!("v{n}"), json!({}))).collect();
    let before = stage.get("/apis/apps.kruise.io/v1beta1/nodeimages").await;
    drop(before);
    stage.want(json!({"app": {"tags": tags}})).await;
    stage.finished(300).await;
    stage.wait(60).await;
    let text = stage.node.registry.text();
    let line =
        text.lines().find(|line| line.starts_with("kruise_effects_total{") && line.contains("nodeimages"));
    let writes: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(writes <= 8.0, "{writes} writes");
}

/// IMAGES-16, IMAGES-19 and IMAGES-21: secrets, also one that comes late, and none that is wrong.
#[tokio::test(start_paused = true)]
async fn credentials_come_from_secrets_of_the_moment() {
    let stage = Stage::new(Flags::default()).await;
    let secrets = "/api/v1/namespaces/kruise-daemon-config/secrets";
    stage
        .post(
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kruise-daemon-config"}}),
        )
        .await;
    let secret = |name: &str, user: &str, registry: &str| {
        let auth = STANDARD.encode(format!("{user}:p"));
        let config = json!({"auths": {registry: {"auth": auth}}}).to_string();
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": STANDARD.encode(config)}})
    };
    stage.runtime.world().accounts.insert("priv.io/".to_owned(), "me".to_owned());
    let image = |secret: &str, policy: Value| json!({"pullSecrets": [{"namespace": "kruise-daemon-config", "name": secret}], "tags": [tag("v1", policy)]});
    stage.post(secrets, secret("wrong", "you", "pub.io")).await;
    stage.post(secrets, secret("elsewhere", "you", "other.io")).await;
    stage.runtime.world().accounts.insert("pub.io/x".to_owned(), "nobody".to_owned());
    stage
        .want(json!({
            "priv.io/app": image("late", json!({})),
            "pub.io/x": image("wrong", json!({"backoffLimit": 0})),
            "pub.io/y": image("elsewhere", json!({"backoffLimit": 0})),
        }))
        .await;
    stage.until(OWN, |object| object["status"]["failed"] == 1).await;
    stage.post(secrets, secret("late", "me", "priv.io")).await;
    let done = stage.finished(3).await;
    let told = |name: &str| done["status"]["imageStatuses"][name]["tags"][0].clone();
    assert_eq!(told("priv.io/app")["phase"], "Succeeded");
    assert_eq!(told("pub.io/x")["message"], "rpc error: code = Unknown desc = 401 Unauthorized");
    assert_eq!(told("pub.io/y")["phase"], "Succeeded", "a credential of another registry is not tried");
    let tried = stage.runtime.world().pulls.iter().filter(|pull| pull.image == "pub.io/x:v1").count();
    assert_eq!(tried, 1, "no anonymous attempt after a wrong credential");
}

/// Node daemon 3: a mistake of ours in one pull ends neither the daemon nor the pull.
#[tokio::test(start_paused = true)]
async fn a_pull_that_panics_begins_again() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.world().panics = 2;
    stage.want(json!({"app": {"tags": [tag("v1", json!({}))]}})).await;
    let done = stage.finished(1).await;
    assert_eq!((&done["status"]["succeeded"], &done["status"]["pulling"]), (&json!(1), &json!(0)));
}

/// IMG-D5: every attempt reads secrets again, and where nobody can tell, those of before are still better than none.
#[tokio::test(start_paused = true)]
async fn a_secret_that_cannot_be_read_again_is_still_used() {
    use kruise_sim::faults::{Answer, Calls, Effect, Rule, When};
    let stage = Stage::new(Flags::default()).await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kruise-daemon-config"}});
    stage.post("/api/v1/namespaces", namespace).await;
    let config = json!({"auths": {"priv.io": {"auth": STANDARD.encode("me:p")}}}).to_string();
    let secrets = "/api/v1/namespaces/kruise-daemon-config/secrets";
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own"},
        "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": STANDARD.encode(config)}});
    stage.post(secrets, secret).await;
    stage.runtime.world().accounts.insert("priv.io/".to_owned(), "me".to_owned());
    stage.runtime.world().pull_errors.insert("priv.io/".to_owned(), "registry hiccup".to_owned());
    let image = json!({"pullSecrets": [{"namespace": "kruise-daemon-config", "name": "own"}], "tags": [tag("v1", json!({}))]});
    stage.want(json!({"priv.io/app": image})).await;
    stage.until(OWN, |object| object["status"]["pulling"] == 1).await;
    stage.sim.faults().rule(Rule {
        calls: Calls { method: Some(http::Method::GET), path: "/secrets".to_owned() },
        when: When::Chance(1.0),
        effect: Effect::Before,
        answer: Answer::Unavailable,
    });
    stage.wait(2).await;
    stage.runtime.world().pull_errors.clear();
    let done = stage.finished(1).await;
    assert_eq!(done["status"]["succeeded"], 1, "{done}");
    let users: Vec<Option<String>> =
        stage.runtime.world().pulls.iter().map(|pull| Some(pull.auth.as_ref()?.username.clone())).collect();
    assert!(users.len() > 1 && users.iter().all(|user| user.as_deref() == Some("me")), "{users:?}");
    // Those reads are counted as all others.
    let text = stage.node.registry.text();
    assert!(text.contains(r#"rest_client_requests_total{code="503""#), "{text}");
}
