//! Two managers answer at the same time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kruise_api::names;
use kruise_manager::inside::{Inside, Running, Surroundings};
use kruise_runtime::{clock::Clock, random::Random};
use kruise_sim::Sim;
use kruise_testkit::Outcome;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{
    scene::{NO_FLAGS, Scene, subset},
    stage::{Stage, embedded_only},
};

/// Two managers behind one Service, which asks them in turn.
fn two(sim: &Sim) -> [Running; 2] {
    let managers = [1, 2].map(|seed| {
        let clock = *sim.clock();
        let surroundings = Surroundings {
            client: sim.faulty_client(),
            version: kruise_apiserver::discovery::GIT_VERSION.to_owned(),
            clock: Clock::from_fn(move || clock.now()),
            random: Random::seeded(seed),
        };
        Inside::new(surroundings, &NO_FLAGS).unwrap()
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

/// SPREAD-28: 50 pods through two managers, with caches that are behind. Which of them is asked is chosen by the embedded
/// cluster.
async fn no_place_is_booked_twice(stage: &mut Stage) -> Outcome {
    stage.kill_manager();
    let _managers = two(stage.sim());
    let scene = Scene::prepare(stage, "ws-race").await;
    scene.spread("apps/v1", "ReplicaSet", json!([subset("a", 20.into()), subset("b", Value::Null)])).await;
    stage.sim().faults().lag_time(Duration::from_millis(400));
    scene.create("apps/v1", "ReplicaSet", 50, json!({})).await;
    scene.until_places("a20 b30").await;
    stage.sim().faults().heal();
    scene.until_account("a 20/0, b 30/-1").await;
    Ok(())
}
embedded_only!(no_place_is_booked_twice, super::NO_FLAGS);
