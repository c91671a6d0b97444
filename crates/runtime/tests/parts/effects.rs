use std::{sync::Arc, time::Duration};

use kruise_core::{
    effect::{Effect, Event, Level, Patch, Target},
    object::{CONFIG_MAP, ObjectKey, ObjectRef},
};
use kruise_runtime::{
    cache::{Cache, Options, Plain},
    controller::Environment,
    effects::{Executor, Why},
    freshness::{Freshness, Gate},
    lease::Fence,
    queue::{self, Queue},
    scope::BoxError,
};
use kruise_sim::{
    Sim,
    faults::{Answer, Calls, Effect as Happens, Rule, When},
};
use kube::api::{ListParams, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{create, environment, maps};

struct Stage {
    sim: Sim,
    executor: Executor,
    freshness: Freshness,
    queue: Queue,
    _tasks: JoinSet<()>,
}

async fn stage() -> Stage {
    stage_through(Sim::faulty_client).await
}

async fn stage_through(client: impl FnOnce(&Sim) -> kube::Client) -> Stage {
    let sim = Sim::builder().nodes(0).start();
    let environment = Environment { client: client(&sim), ..environment(&sim) };
    let queue = Queue::new("test", queue::Options::default(), None);
    let freshness = Freshness::new("test", queue.clone(), environment.patience, None);
    let cache = Cache::<Plain>::new(CONFIG_MAP);
    freshness.follow(Arc::new(cache.clone()));
    let mut tasks = JoinSet::new();
    let (fed, client) = (cache.clone(), environment.client.clone());
    tasks.spawn(async move { fed.run(client, Options::default()).await });
    let (events, client) = (environment.events.clone(), environment.client.clone());
    tasks.spawn(async move { events.run(client).await });
    assert!(cache.synced(Duration::from_secs(5)).await);
    let executor = Executor::new(
        "test",
        environment.client.clone(),
        freshness.clone(),
        environment.events.recorder("test"),
        Fence::default(),
        environment.writes,
        environment.metrics.clone(),
    );
    Stage { sim, executor, freshness, queue, _tasks: tasks }
}

fn key() -> ObjectKey {
    ObjectKey::new("default", "owner")
}

fn owner(uid: &str) -> ObjectRef {
    ObjectRef { resource: CONFIG_MAP, key: key(), uid: uid.into() }
}

fn make(name: &str, owner_uid: &str) -> Effect {
    let object =
        json!({"metadata": {"name": name, "ownerReferences": [owner(owner_uid).controller_reference()]}});
    Effect::Create { resource: CONFIG_MAP, namespace: "default".into(), object }
}

fn change(name: &str, uid: &str, patch: Value) -> Effect {
    let target = Target::with_uid(CONFIG_MAP, ObjectKey::new("default", name), uid.into());
    Effect::Patch { target, subresource: None, patch: Patch::Merge(patch) }
}

fn fault(sim: &Sim, calls: Calls, nth: u64, effect: Happens, answer: Answer) {
    sim.faults().rule(Rule { calls, when: When::Nth(nth), effect, answer });
}

#[tokio::test(start_paused = true)]
async fn creates_come_in_growing_batches_and_stop_at_the_first_bad_one() {
    let stage = stage().await;
    // The second of the second batch is refused: one, two, and then nothing more.
    fault(&stage.sim, Calls::creates("configmaps"), 3, Happens::Before, Answer::TooManyRequests);
    let effects: Vec<Effect> = (0..10).map(|n| make(&format!("c{n}"), "u")).collect();
    let outcome = stage.executor.act(&key(), &effects).await;
    assert_eq!(outcome.done, 2);
    assert_eq!(outcome.failed.len(), 8);
    assert_eq!(outcome.failed[0].why, Why::Throttled(Duration::from_secs(1)));
    assert!(outcome.failed[1..].iter().all(|failure| failure.why == Why::LeftOut));
    assert_eq!(outcome.ok().unwrap_err().retry_after(), Duration::from_secs(1));
}

/// With a template that the server has just taken, nobody has to be careful; with another one they have.
#[tokio::test(start_paused = true)]
async fn creates_that_went_well_go_on_without_small_batches_until_what_is_made_differs() {
    let stage = stage().await;
    stage.sim.faults().latency(Duration::from_secs(1));
    let make = |name: String, spec: &str| {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        Effect::Create { resource: CONFIG_MAP, namespace: "default".into(), object }
    };
    let mut rounds = Vec::new();
    for (round, spec) in ["a", "a", "b"].into_iter().enumerate() {
        let effects: Vec<Effect> = (0..8).map(|n| make(format!("c{round}-{n}"), spec)).collect();
        let start = tokio::time::Instant::now();
        assert_eq!(stage.executor.act(&key(), &effects).await.done, 8);
        rounds.push(start.elapsed().as_secs());
    }
    assert_eq!(rounds, [4, 1, 4], "seconds, one for each batch");
}

#[tokio::test(start_paused = true)]
async fn what_wants_a_version_that_is_known_to_be_old_is_not_sent() {
    let stage = stage().await;
    let seen = create(&stage.sim, "c").await.metadata;
    maps(&stage.sim)
        .patch("c", &PatchParams::default(), &kube::api::Patch::Merge(json!({"data": {"x": "1"}})))
        .await
        .unwrap();
    stage.sim.advance(Duration::from_secs(1)).await;
    let Effect::Patch { target, subresource, patch } =
        change("c", &seen.uid.unwrap(), json!({"data": {"x": "2"}}))
    else {
        panic!("a patch")
    };
    let target = target.at_version(seen.resource_version.unwrap().into());
    // Whatever reached the server would be answered so.
    let calls = Calls { method: Some(http::Method::PATCH), path: "/configmaps".to_owned() };
    fault(&stage.sim, calls, 1, Happens::Before, Answer::TooManyRequests);
    let outcome = stage.executor.act(&key(), &[Effect::Patch { target, subresource, patch }]).await;
    assert_eq!(outcome.failed[0].why, Why::Conflict);
}

#[tokio::test(start_paused = true)]
async fn a_key_may_act_again_when_the_cache_shows_its_writes() {
    let stage = stage().await;
    stage.sim.faults().lag_time(Duration::from_secs(2));
    assert!(stage.executor.act(&key(), &[make("c", "u")]).await.ok().is_ok());
    assert_eq!(stage.freshness.gate(&key()), Gate::Shut);
    assert_eq!(stage.freshness.gate(&ObjectKey::new("default", "other")), Gate::Open);
    // Nobody polls: the news of the cache puts the key on the queue.
    assert_eq!(stage.queue.next().await, Some(key()));
    assert_eq!(stage.freshness.gate(&key()), Gate::Open);
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_was_lost_is_repeated_under_its_name_and_found() {
    let stage = stage().await;
    let uid = create(&stage.sim, "owner").await.metadata.uid.unwrap();
    let lost = Answer::Timeout(Duration::from_secs(60));
    fault(&stage.sim, Calls::creates("configmaps"), 1, Happens::After, lost);
    let outcome = stage.executor.act(&key(), &[make("c", &uid)]).await;
    assert!(matches!(outcome.failed[0].why, Why::Uncertain(_)), "{outcome:?}");
    let again = stage.executor.clear_doubts(&key()).await;
    assert_eq!((again.done, again.failed.len()), (1, 0));
    assert!(stage.freshness.take_doubts(&key()).is_empty());
    let found = maps(&stage.sim).get("c").await.unwrap().metadata.owner_references.unwrap();
    assert_eq!(found[0].uid, uid);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_somebody_else_is_not_taken_for_ours() {
    let stage = stage().await;
    create(&stage.sim, "c").await;
    let outcome = stage.executor.act(&key(), &[make("c", "u")]).await;
    let Why::Refused { reason, .. } = &outcome.failed[0].why else { panic!("{outcome:?}") };
    assert_eq!(reason, "AlreadyExists");
}

#[tokio::test(start_paused = true)]
async fn changes_and_deletions_of_what_is_gone_are_fine_and_namesakes_are_spared() {
    let stage = stage().await;
    let target = |name: &str| Target::with_uid(CONFIG_MAP, ObjectKey::new("default", name), "old".into());
    let gone = Effect::Delete { target: target("gone"), grace: None, follows: false };
    let effects = [gone, change("gone", "old", json!({"data": {"a": "2"}}))];
    assert!(stage.executor.act(&key(), &effects).await.ok().is_ok());
    create(&stage.sim, "c").await;
    let effects = [
        Effect::Delete { target: target("c"), grace: None, follows: false },
        change("c", "old", json!({"data": {"a": "2"}})),
    ];
    let outcome = stage.executor.act(&key(), &effects).await;
    let failed = outcome.ok().unwrap_err();
    assert!(failed.is_conflict() && failed.failed.len() == 2, "{failed:?}");
    let map = maps(&stage.sim).get("c").await.unwrap();
    assert_eq!(map.data.unwrap()["a"], "1");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_follows_another_waits_for_it_and_is_left_out_when_it_failed() {
    let stage = stage().await;
    let mut uids = Vec::new();
    for name in ["pod", "claim", "other", "its-claim"] {
        uids.push(create(&stage.sim, name).await.metadata.uid.unwrap());
    }
    let delete = |name: &str, uid: &str, follows| Effect::Delete {
        target: Target::with_uid(CONFIG_MAP, ObjectKey::new("default", name), uid.into()),
        grace: None,
        follows,
    };
    // The first is another object by now, the third is not.
    let effects = [
        delete("pod", "old", false),
        delete("claim", &uids[1], true),
        delete("other", &uids[2], false),
        delete("its-claim", &uids[3], true),
    ];
    let outcome = stage.executor.act(&key(), &effects).await;
    let failed: Vec<_> = outcome.failed.iter().map(|failure| (failure.index, failure.why.clone())).collect();
    assert_eq!((outcome.done, failed), (2, vec![(0, Why::Conflict), (1, Why::LeftOut)]));
    assert!(outcome.ok().unwrap_err().is_conflict());
    assert!(maps(&stage.sim).get_opt("claim").await.unwrap().is_some());
    assert!(maps(&stage.sim).get_opt("its-claim").await.unwrap().is_none());
}

/// The pod goes, and only this plan knew that its claims go with it.
#[tokio::test(start_paused = true)]
async fn what_follows_a_write_without_a_clear_answer_is_sent_behind_it_later() {
    let lost = Answer::Timeout(Duration::from_secs(60));
    let cases = [
        (1, Happens::After, lost),
        (1, Happens::Before, Answer::Internal),
        (2, Happens::Before, Answer::TooManyRequests),
    ];
    for (nth, happens, answer) in cases {
        let stage = stage().await;
        let mut effects = Vec::new();
        for (name, follows) in [("pod", false), ("claim", true), ("second", true)] {
            let uid = create(&stage.sim, name).await.metadata.uid.unwrap();
            let target = Target::with_uid(CONFIG_MAP, ObjectKey::new("default", name), uid.into());
            effects.push(Effect::Delete { target, grace: None, follows });
        }
        let calls = Calls { method: Some(http::Method::DELETE), path: "/configmaps".to_owned() };
        fault(&stage.sim, calls, nth, happens, answer);
        assert!(stage.executor.act(&key(), &effects).await.ok().is_err());
        let again = stage.executor.clear_doubts(&key()).await;
        assert!(again.failed.is_empty(), "{again:?}");
        assert!(stage.freshness.take_doubts(&key()).is_empty());
        for name in ["pod", "claim", "second"] {
            assert!(maps(&stage.sim).get_opt(name).await.unwrap().is_none(), "{name} is left");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_follows_a_write_that_is_refused_when_it_is_sent_again_is_left_out() {
    let stage = stage().await;
    let claim = create(&stage.sim, "claim").await.metadata.uid.unwrap();
    create(&stage.sim, "pod").await;
    let delete = |name: &str, uid: &str, follows| Effect::Delete {
        target: Target::with_uid(CONFIG_MAP, ObjectKey::new("default", name), uid.into())
            .at_version("1".into()),
        grace: None,
        follows,
    };
    let uid = maps(&stage.sim).get("pod").await.unwrap().metadata.uid.unwrap();
    stage.freshness.doubt(&key(), delete("pod", &uid, false));
    stage.freshness.doubt(&key(), delete("claim", &claim, true));
    assert!(stage.executor.clear_doubts(&key()).await.failed.is_empty());
    assert!(maps(&stage.sim).get_opt("claim").await.unwrap().is_some());
    assert!(stage.freshness.take_doubts(&key()).is_empty());
}

/// What changed the version was the first try itself: the object is ending, so what follows goes too.
#[tokio::test(start_paused = true)]
async fn a_deletion_of_one_version_that_took_effect_without_an_answer_is_known_as_such() {
    let stage = stage().await;
    create(&stage.sim, "pod").await;
    let held = kube::api::Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    let pod = maps(&stage.sim).patch("pod", &PatchParams::default(), &held).await.unwrap();
    let claim = create(&stage.sim, "claim").await.metadata.uid.unwrap();
    stage.sim.advance(Duration::from_secs(1)).await;
    let target =
        |name: &str, uid: String| Target::with_uid(CONFIG_MAP, ObjectKey::new("default", name), uid.into());
    let version = pod.metadata.resource_version.unwrap();
    let pod = target("pod", pod.metadata.uid.unwrap()).at_version(version.into());
    let effects = [
        Effect::Delete { target: pod, grace: None, follows: false },
        Effect::Delete { target: target("claim", claim), grace: None, follows: true },
    ];
    let calls = Calls { method: Some(http::Method::DELETE), path: "/configmaps".to_owned() };
    fault(&stage.sim, calls, 1, Happens::After, Answer::Internal);
    assert!(stage.executor.act(&key(), &effects).await.ok().is_err());
    assert!(maps(&stage.sim).get("pod").await.unwrap().metadata.deletion_timestamp.is_some());
    let again = stage.executor.clear_doubts(&key()).await;
    assert!(again.failed.is_empty(), "{again:?}");
    assert!(maps(&stage.sim).get_opt("claim").await.unwrap().is_none());
}

/// A webhook is asked before anything is stored. A plan that a dead one refuses is made anew from what people want by then.
#[tokio::test(start_paused = true)]
async fn a_write_that_a_dead_webhook_keeps_back_is_refused_and_not_sent_again() {
    let stage = stage().await;
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{
            "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [rule],
            "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": "/"}},
        }],
    });
    let request =
        http::Request::post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations")
            .header("content-type", "application/json")
            .body(configuration.to_string().into_bytes())
            .unwrap();
    let _: Value = stage.sim.client().request(request).await.unwrap();
    stage.sim.advance(Duration::from_secs(2)).await;
    let outcome = stage.executor.act(&key(), &[make("c", "u")]).await;
    let Why::Refused { code: 500, message, .. } = &outcome.failed[0].why else { panic!("{outcome:?}") };
    assert!(message.contains("failed calling webhook \"hook.example.com\""), "{message}");
    assert!(stage.freshness.take_doubts(&key()).is_empty());
}

/// Each may take as long as a call may, and there may be thousands.
#[tokio::test(start_paused = true)]
async fn after_one_write_without_an_answer_the_other_doubts_wait_for_the_next_time() {
    let stage = stage().await;
    let mut doubts = Vec::new();
    for name in ["a", "b", "c"] {
        let uid = create(&stage.sim, name).await.metadata.uid.unwrap();
        doubts.push(change(name, &uid, json!({"data": {"changed": "yes"}})));
    }
    stage.sim.advance(Duration::from_secs(1)).await;
    doubts.iter().for_each(|doubt| stage.freshness.doubt(&key(), doubt.clone()));
    let calls = Calls { method: Some(http::Method::PATCH), path: "/configmaps".to_owned() };
    fault(&stage.sim, calls, 1, Happens::Before, Answer::Timeout(Duration::from_secs(40)));
    let outcome = stage.executor.clear_doubts(&key()).await;
    let whys: Vec<String> = outcome.failed.iter().map(|failure| failure.why.to_string()).collect();
    assert_eq!(whys.len(), 3, "{whys:?}");
    let changed = async || {
        let all = maps(&stage.sim).list(&ListParams::default()).await.unwrap().items;
        all.into_iter().filter(|map| map.data.iter().any(|data| data.contains_key("changed"))).count()
    };
    assert_eq!(changed().await, 0, "the others were sent");
    assert!(stage.executor.clear_doubts(&key()).await.failed.is_empty());
    assert_eq!(changed().await, 3, "some were forgotten");
}

#[tokio::test(start_paused = true)]
async fn events_are_told_only_of_what_happened() {
    let stage = stage().await;
    create(&stage.sim, "taken").await;
    let event = |reason: &str| {
        let message = "told".to_owned();
        Effect::Event(Event { regarding: owner("u"), level: Level::Normal, reason: reason.into(), message })
    };
    let effects = [make("c", "u"), event("Made"), make("taken", "u"), event("MadeToo")];
    assert_eq!(stage.executor.act(&key(), &effects).await.failed.len(), 1);
    stage.sim.advance(Duration::from_secs(5)).await;
    let events: kube::Api<k8s_openapi::api::core::v1::Event> =
        kube::Api::namespaced(stage.sim.client(), "default");
    let all = events.list(&kube::api::ListParams::default()).await.unwrap().items;
    let reasons: Vec<&str> = all.iter().filter_map(|event| event.reason.as_deref()).collect();
    assert_eq!(reasons, ["Made"]);
    assert_eq!(all[0].reporting_component.as_deref(), Some("test"));
    assert_eq!(all[0].source.as_ref().unwrap().component.as_deref(), Some("test"));
}

/// The server does what it is asked to, and something between it and us answers writes with this body.
fn garbled(sim: &Sim, body: &'static [u8]) -> kube::Client {
    use http_body_util::{BodyExt as _, Full};
    use kube::client::Body;
    let server = sim.server().clone();
    let between = tower::service_fn(move |request: http::Request<Body>| {
        let (server, is_write) = (server.clone(), request.method() != http::Method::GET);
        async move {
            let response = tower::ServiceExt::oneshot(server, request).await?;
            let is_success = response.status().is_success();
            Ok::<_, std::convert::Infallible>(match is_write && is_success {
                true => http::Response::new(Full::from(body).map_err(BoxError::from).boxed_unsync()),
                false => response.map(|body| body.map_err(BoxError::from).boxed_unsync()),
            })
        }
    });
    kube::Client::new(between, "default")
}

#[tokio::test(start_paused = true)]
async fn a_successful_answer_that_cannot_be_read_is_a_success() {
    for body in [&b"<html>"[..], b"\xff\xfe", b"{}", b""] {
        let stage = stage_through(|sim| garbled(sim, body)).await;
        let uid = create(&stage.sim, "changed").await.metadata.uid.unwrap();
        stage.sim.advance(Duration::from_secs(1)).await;
        let effects = [make("made", "u"), change("changed", &uid, json!({"data": {"a": "2"}}))];
        let outcome = stage.executor.act(&key(), &effects).await;
        assert_eq!((outcome.done, outcome.failed.len()), (2, 0), "{outcome:?}");
        assert!(stage.freshness.take_doubts(&key()).is_empty(), "nothing is sent again");
        // The cache shows both within moments, and nobody waits for a version that never comes.
        stage.sim.advance(Duration::from_secs(5)).await;
        assert_eq!(stage.freshness.gate(&key()), Gate::Open);
    }
}
