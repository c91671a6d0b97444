//! Each fault bites a controller that does not expect it, and leaves it alone when it is switched off.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kruise_sim::Sim;
use kruise_sim::faults::{Answer, Calls, Effect, Rule, WatchFaults, Webhook, When};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};

use super::{condition, create_pod, delete, get, list, seconds};

fn pods(client: kube::Client) -> Api<Pod> {
    Api::namespaced(client, "default")
}

fn config_maps(client: kube::Client) -> Api<ConfigMap> {
    Api::namespaced(client, "default")
}

fn new_pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}
    }))
    .unwrap()
}

/// A naive keeper of three pods: counts what it reads and creates what is missing.
async fn keep_three(api: &Api<Pod>) {
    let seen = api.list(&ListParams::default()).await.unwrap().items.len();
    for _ in seen..3 {
        api.create(&PostParams::default(), &new_pod()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn lagging_reads_make_a_naive_keeper_create_too_many() {
    for (revisions, time, expected) in [(0, 0, 3), (30, 0, 6)] {
        let sim = Sim::builder().start();
        seconds(&sim, 5).await;
        let api = pods(sim.faulty_client());
        sim.faults().lag_revisions(revisions);
        sim.faults().lag_time(Duration::from_secs(time));
        keep_three(&api).await;
        keep_three(&api).await;
        assert_eq!(list(&sim, "pods").len(), expected, "{revisions} {time}");
    }
}

#[tokio::test(start_paused = true)]
async fn reads_that_come_late_tell_what_was_true_when_they_were_asked() {
    for (lag, expected) in [(0, 3), (5, 6)] {
        let sim = Sim::builder().start();
        seconds(&sim, 5).await;
        sim.faults().lag_time(Duration::from_secs(lag));
        let (one, two) = (pods(sim.faulty_client()), pods(sim.faulty_client()));
        // The second keeper waits politely until the first is done, and still sees the past.
        let second = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            keep_three(&two).await;
        };
        futures::join!(keep_three(&one), second);
        assert_eq!(list(&sim, "pods").len(), expected, "lag of {lag} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_get_overwrites_what_it_did_not_see() {
    for (lag, expected) in [(0, json!({"a": "1", "b": "1"})), (1, json!({"b": "1"}))] {
        let sim = Sim::builder().heartbeat(Duration::from_secs(3600)).start();
        seconds(&sim, 5).await;
        let api = config_maps(sim.faulty_client());
        let map = serde_json::from_value(json!({"metadata": {"name": "m"}})).unwrap();
        api.create(&PostParams::default(), &map).await.unwrap();
        let set = json!({"data": {"a": "1"}});
        api.patch("m", &PatchParams::default(), &Patch::Merge(&set)).await.unwrap();
        sim.faults().lag_revisions(lag);
        // A naive editor: reads, adds its key, and writes everything without the version it read.
        let mut read = api.get("m").await.unwrap();
        read.metadata.resource_version = None;
        read.data.get_or_insert_default().insert("b".to_owned(), "1".to_owned());
        api.replace("m", &PostParams::default(), &read).await.unwrap();
        assert_eq!(get(&sim, "configmaps", "m")["data"], expected, "lag of {lag}");
    }
}

/// A naive mirror: believes every event once, in the order it is told.
async fn mirror(sim: &Sim, faults: WatchFaults) -> (Vec<String>, usize) {
    let api = pods(sim.faulty_client());
    sim.faults().watch(faults);
    let list = api.list(&ListParams::default()).await.unwrap();
    let version = list.metadata.resource_version.unwrap();
    let mut stream = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    for n in 0..4 {
        create_pod(sim, &format!("web-{n}"), "app:1", |_| {}).await;
    }
    seconds(sim, 10).await;
    delete(sim, "pods", "web-1").await;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut created = 0;
    let end = tokio::time::Instant::now() + Duration::from_secs(30);
    while let Ok(Ok(Some(event))) = tokio::time::timeout_at(end, stream.try_next()).await {
        match event {
            WatchEvent::Added(pod) => {
                created += 1;
                seen.insert(pod.metadata.name.unwrap());
            }
            WatchEvent::Deleted(pod) => {
                seen.remove(&pod.metadata.name.unwrap());
            }
            WatchEvent::Error(_) => break,
            WatchEvent::Modified(_) | WatchEvent::Bookmark(_) => {}
        }
    }
    (seen.into_iter().collect(), created)
}

#[tokio::test(start_paused = true)]
async fn a_mirror_of_a_healthy_watch_is_true() {
    let sim = Sim::builder().start();
    let (seen, created) = mirror(&sim, WatchFaults::default()).await;
    assert_eq!((seen.as_slice(), created), (["web-0", "web-2", "web-3"].map(str::to_owned).as_slice(), 4));
}

#[tokio::test(start_paused = true)]
async fn dropped_events_leave_ghosts_or_holes_in_a_naive_mirror() {
    let mut wrong = 0;
    for seed in 0..10 {
        let sim = Sim::builder().seed(seed).start();
        let (seen, _) = mirror(&sim, WatchFaults { drop: 0.3, ..WatchFaults::default() }).await;
        wrong += usize::from(seen != ["web-0", "web-2", "web-3"]);
    }
    assert!(wrong > 5, "{wrong} of 10");
}

#[tokio::test(start_paused = true)]
async fn duplicated_events_are_counted_twice_by_a_naive_counter() {
    let sim = Sim::builder().start();
    let (_, created) = mirror(&sim, WatchFaults { duplicate: 1.0, ..WatchFaults::default() }).await;
    assert_eq!(created, 8);
}

#[tokio::test(start_paused = true)]
async fn merged_events_hide_what_came_and_went() {
    let sim = Sim::builder().start();
    let merge = Duration::from_secs(20);
    let (seen, created) = mirror(&sim, WatchFaults { merge, ..WatchFaults::default() }).await;
    assert_eq!(seen, ["web-0", "web-2", "web-3"]);
    assert_eq!(created, 3, "web-1 was never seen");
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_ends_the_news_of_one_who_does_not_list_again() {
    let sim = Sim::builder().start();
    let (seen, _) = mirror(&sim, WatchFaults { expire: 1.0, ..WatchFaults::default() }).await;
    assert_eq!(seen, Vec::<String>::new());
}

/// A naive renamer: creates the new object and then deletes the old one, without looking whether it began before.
async fn rename(api: &Api<ConfigMap>) -> Result<(), kube::Error> {
    let new = serde_json::from_value(json!({"metadata": {"generateName": "new-"}})).unwrap();
    api.create(&PostParams::default(), &new).await?;
    api.delete("old", &kube::api::DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_two_writes_makes_a_naive_renamer_do_the_first_twice() {
    for (crash, expected) in [(false, 1), (true, 2)] {
        let sim = Sim::builder().start();
        let api = config_maps(sim.faulty_client());
        let old = serde_json::from_value(json!({"metadata": {"name": "old"}})).unwrap();
        api.create(&PostParams::default(), &old).await.unwrap();
        if crash {
            sim.faults().crash_after_write(1);
        }
        let first = rename(&api).await;
        assert_eq!(first.is_err(), crash);
        if crash {
            sim.faults().crashed().await;
            assert!(api.get("old").await.is_err(), "a dead process hears nothing");
            sim.faults().revive();
            rename(&api).await.unwrap();
        }
        let made = list(&sim, "configmaps").iter().filter(|map| map["metadata"]["name"] != "old").count();
        assert_eq!(made, expected);
    }
}

/// A naive creator: tries again until it hears of success.
async fn create_until_told(api: &Api<Pod>) -> Vec<u16> {
    let mut heard = Vec::new();
    while let Err(error) = api.create(&PostParams::default(), &new_pod()).await {
        heard.push(match error {
            kube::Error::Api(status) => status.code,
            _ => 0,
        });
    }
    heard
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_after_the_effect_make_a_naive_creator_create_twice() {
    let answers = [
        (Answer::Conflict, 409),
        (Answer::TooManyRequests, 429),
        (Answer::Internal, 500),
        (Answer::Unavailable, 503),
        (Answer::Timeout(Duration::from_secs(30)), 0),
    ];
    for (answer, code) in answers {
        for (effect, expected) in [(Effect::Before, 1), (Effect::After, 2)] {
            let sim = Sim::builder().start();
            let calls = Calls::creates("pods");
            sim.faults().rule(Rule { calls, when: When::Nth(1), effect, answer });
            let heard = create_until_told(&pods(sim.faulty_client())).await;
            assert_eq!(heard, [code], "{answer:?}");
            assert_eq!(list(&sim, "pods").len(), expected, "{answer:?} {effect:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn chances_strike_as_often_as_they_say_and_only_the_calls_they_name() {
    let sim = Sim::builder().start();
    let calls = Calls { method: Some(Method::POST), path: "/configmaps".to_owned() };
    sim.faults().rule(Rule {
        calls,
        when: When::Chance(0.5),
        effect: Effect::Before,
        answer: Answer::Internal,
    });
    let api = config_maps(sim.faulty_client());
    let mut failed = 0;
    for n in 0..100 {
        let map = serde_json::from_value(json!({"metadata": {"name": format!("m-{n}")}})).unwrap();
        failed += usize::from(api.create(&PostParams::default(), &map).await.is_err());
    }
    assert!((30..70).contains(&failed), "{failed}");
    api.list(&ListParams::default()).await.unwrap();
    sim.faults().heal();
    let map = serde_json::from_value(json!({"metadata": {"name": "last"}})).unwrap();
    api.create(&PostParams::default(), &map).await.unwrap();
}

/// A webhook that allows everything.
async fn allow(request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let answer = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    });
    Ok(Response::new(Full::new(answer.to_string().into())))
}

#[tokio::test(start_paused = true)]
async fn a_slow_or_dead_webhook_stops_a_client_that_needs_it() {
    const HOST: &str = "hook.default.svc";
    let faults = [
        (None, true),
        (Some(Webhook::Slow(Duration::from_secs(2))), true),
        (Some(Webhook::Slow(Duration::from_secs(20))), false),
        (Some(Webhook::Silent), false),
        (Some(Webhook::Refused), false),
    ];
    for (fault, works) in faults {
        let sim = Sim::builder().start();
        let hook = sim.faults().around_webhook(HOST, tower::service_fn(allow));
        sim.server().register_webhook_host(HOST, hook);
        super::create(&sim, "admissionregistration.k8s.io/validatingwebhookconfigurations", json!({
            "metadata": {"name": "hook"},
            "webhooks": [{
                "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5,
                "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": "/"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            }],
        }))
        .await;
        seconds(&sim, 1).await;
        if let Some(fault) = fault {
            sim.faults().webhook(HOST, fault);
        }
        let map = serde_json::from_value(json!({"metadata": {"name": "m"}})).unwrap();
        let made = config_maps(sim.client()).create(&PostParams::default(), &map).await;
        assert_eq!(made.is_ok(), works, "{fault:?}: {made:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_node_leaves_a_naive_drainer_waiting() {
    for (dead, gone) in [(false, true), (true, false)] {
        let sim = Sim::builder().nodes(1).start();
        create_pod(&sim, "web", "app:1", |_| {}).await;
        seconds(&sim, 10).await;
        if dead {
            sim.stop_node("node-1");
        }
        delete(&sim, "pods", "web").await;
        seconds(&sim, 60).await;
        assert_eq!(get(&sim, "pods", "web").is_null(), gone);
        sim.return_node("node-1");
        seconds(&sim, 60).await;
        assert!(get(&sim, "pods", "web").is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_clock_of_a_node_fools_one_who_compares_times() {
    for (skew, expected) in [(0, true), (-600, false)] {
        let sim = Sim::builder().nodes(1).start();
        seconds(&sim, 5).await;
        sim.skew_node("node-1", SignedDuration::from_secs(skew));
        create_pod(&sim, "web", "app:1", |_| {}).await;
        seconds(&sim, 10).await;
        let pod = get(&sim, "pods", "web");
        assert_eq!(condition(&pod, "Ready"), "True");
        // A naive check whether the container started after the pod was made.
        let started = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
            .as_str()
            .unwrap()
            .to_owned();
        let created = pod["metadata"]["creationTimestamp"].as_str().unwrap().to_owned();
        assert_eq!(started >= created, expected, "{started} {created}");
    }
}
