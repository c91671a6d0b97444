//! Two managers answer at the same time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kruise_api::names;
use kruise_manager::inside::{Inside, Running, Surroundings};
use kruise_runtime::{clock::Clock, random::Random};
use kruise_sim::{
    Sim,
    faults::{Faults, WatchFaults},
};
use kruise_testkit::Outcome;
use serde_json::json;
use tokio::task::JoinSet;
use tower::{Layer as _, ServiceExt as _};

use crate::{
    scene::{NO_FLAGS, Scene, UPDATES, is_active, is_ready, merged, name, target},
    stage::{Stage, embedded_only},
};

/// Two managers behind one Service, which asks them in turn.
fn two(sim: &Sim) -> [Running; 2] {
    two_of(sim, [sim.faulty_client(), sim.faulty_client()])
}

/// The same with these ways to the server.
fn two_of(sim: &Sim, clients: [kube::Client; 2]) -> [Running; 2] {
    let mut seed = 0;
    let managers = clients.map(|client| {
        seed += 1;
        let clock = *sim.clock();
        let surroundings = Surroundings {
            client,
            version: kruise_apiserver::discovery::GIT_VERSION.to_owned(),
            clock: Clock::from_fn(move || clock.now()),
            random: Random::seeded(seed),
        };
        Inside::new(surroundings, &UPDATES).unwrap()
    });
    let webhooks = managers.each_ref().map(Inside::webhooks);
    let turn = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |request: http::Request<http_body_util::Full<bytes::Bytes>>| {
        let next = turn.fetch_add(1, Ordering::Relaxed) % webhooks.len();
        webhooks[next].clone().oneshot(request)
    });
    sim.server().register_webhook_service(names::NAMESPACE, names::WEBHOOK_SERVICE, service);
    managers.map(Inside::start)
}

/// PROTECTION-10 (two processes of a real cluster ask the same server; who is asked is chosen by it, so the embedded one
/// takes both in turn).
async fn of_two_deletions_at_once_one_succeeds(stage: &mut Stage) -> Outcome {
    stage.kill_manager();
    let _managers = two(stage.sim());
    let scene = Scene::start(stage, "race", 4, json!({"maxUnavailable": 1})).await;
    for _ in 0..5 {
        scene.until_numbers("web", [1, 4, 3, 4]).await;
        let pods = scene.serving().await;
        let (one, other) = tokio::join!(scene.delete(&pods[0]), scene.delete(&pods[1]));
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        scene.ready(4).await;
    }
    Ok(())
}
embedded_only!(of_two_deletions_at_once_one_succeeds, super::UPDATES);

/// The watches of one manager hang while the workload is scaled from zero: it still knows a budget that lets all pods go. All
/// of a drain comes to it.
async fn a_replica_that_is_late_reads_the_budget_before_it_lets_all_go(stage: &mut Stage) -> Outcome {
    stage.kill_manager();
    let late = Faults::seeded(7);
    let client = kube::Client::new(late.layer(stage.sim().server().clone()), "default");
    let managers = two_of(stage.sim(), [stage.sim().client(), client]);
    let scene = Scene::prepare(stage, "late").await;
    scene.create_set(0, json!({})).await;
    scene.create_budget("web", merged(target(), &json!({"maxUnavailable": 1}))).await;
    scene.until_numbers("web", [0, 0, 0, 0]).await;
    late.watch(WatchFaults { drop: 1.0, ..WatchFaults::default() });
    scene.change_set(json!({"spec": {"replicas": 10}})).await;
    scene.ready(10).await;
    scene.until_numbers("web", [1, 10, 9, 10]).await;
    let webhooks = managers[1].manager().webhooks();
    stage.sim().server().register_webhook_service(names::NAMESPACE, names::WEBHOOK_SERVICE, webhooks);
    for evicts in [true, false] {
        let mut granted = 0;
        for pod in scene.serving().await {
            let answer = if evicts { scene.evict(&pod).await } else { scene.delete(&pod).await };
            granted += usize::from(answer.is_ok());
        }
        assert!(granted <= 1, "{granted} pods were let go");
    }
    Ok(())
}
embedded_only!(a_replica_that_is_late_reads_the_budget_before_it_lets_all_go, super::NO_FLAGS);

/// 32 clients delete, evict and change pods of one workload through two managers while nodes fail. What they are allowed to
/// take down is never more than the budget; somebody gets through whenever it allows; nothing is kept for longer than a
/// record lives.
async fn whatever_many_clients_do_the_budget_holds(stage: &mut Stage) -> Outcome {
    const CLIENTS: usize = 32;
    const MOST: usize = 3;
    stage.kill_manager();
    let _managers = two(stage.sim());
    let scene = Arc::new(Scene::start(stage, "many", 20, json!({"maxUnavailable": MOST})).await);
    scene.until_numbers("web", [3, 20, 17, 20]).await;
    let granted: Arc<std::sync::Mutex<BTreeMap<String, bool>>> = Arc::default();
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (scene, granted) = (scene.clone(), granted.clone());
        clients.spawn(async move {
            for round in 0..12_usize {
                let serving = scene.serving().await;
                let Some(pod) = serving.get((client * 7 + round * 3) % serving.len().max(1)) else {
                    continue;
                };
                let answer = match client % 3 {
                    0 => scene.delete(pod).await,
                    1 => scene.evict(pod).await,
                    _ => scene.patch_image(pod, if round % 2 == 0 { "app:v2" } else { "app:v3" }).await,
                };
                if answer.is_ok() {
                    granted.lock().unwrap().insert(pod.clone(), true);
                }
                tokio::time::sleep(Duration::from_millis(400 + 37 * client as u64)).await;
            }
        });
    }
    let mut last = 0;
    let mut quiet = Duration::ZERO;
    let (mut failed, mut is_back): (BTreeSet<String>, bool) = (BTreeSet::new(), true);
    for second in 0_u64.. {
        if clients.try_join_next().is_some() && clients.is_empty() {
            break;
        }
        if clients.is_empty() {
            break;
        }
        // One node at a time is lost for a while: its pods are down, but nobody has allowed that.
        match second % 40 {
            20 => {
                let pods = scene.pods().await;
                let is_lost = |pod: &&k8s_openapi::api::core::v1::Pod| {
                    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                    is_ready(pod) && node == Some("hollow-1")
                };
                failed.extend(pods.iter().filter(is_lost).map(name));
                is_back = false;
                stage.sim().stop_node("hollow-1");
            }
            30 => {
                is_back = true;
                stage.sim().return_node("hollow-1");
            }
            _ => {}
        }
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let pods = scene.sandbox.list::<k8s_openapi::api::core::v1::Pod>().await;
            // Who serves again after the node came back is lost no more.
            let serves = |lost: &String| pods.iter().any(|pod| name(pod) == *lost && is_ready(pod));
            failed.retain(|lost| !is_back || !serves(lost));
            let serving = pods.iter().filter(|pod| is_active(pod) && is_ready(pod)).count();
            let lost = pods
                .iter()
                .filter(|pod| is_active(pod) && !is_ready(pod) && failed.contains(&name(pod)))
                .count();
            assert!(serving + lost + MOST >= 20, "{serving} pods serve, {lost} are lost with their node");
        }
        let now = granted.lock().unwrap().len();
        let budget = scene.budget("web").await;
        let allows = budget["status"]["unavailableAllowed"].as_i64().unwrap_or(0) > 0;
        quiet = if now == last && allows { quiet + Duration::from_secs(1) } else { Duration::ZERO };
        assert!(quiet < Duration::from_secs(30), "the budget allows something and nobody gets it: {budget}");
        last = now;
    }
    stage.sim().return_node("hollow-1");
    assert!(last > 10, "{last} were granted");
    scene.set_image("app:v4").await;
    let look = async || {
        let ready = scene.pods().await.iter().filter(|pod| is_ready(pod)).count();
        kruise_testkit::wait::seen(ready == 20, format!("{ready} pods are ready"))
    };
    scene.sandbox.eventually("all serve again", look).await;
    scene
        .until("web", "the whole budget is there again", |budget| {
            crate::scene::numbers(budget) == [3, 20, 17, 20]
                && budget["status"].get("disruptedPods").is_none()
        })
        .await;
    Ok(())
}
embedded_only!(whatever_many_clients_do_the_budget_holds, super::UPDATES);
