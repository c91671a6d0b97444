use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kruise_core::object::{CONFIG_MAP, ObjectKey};
use kruise_runtime::{
    cache::{Cache, Options, Plain},
    controller::{Controller, Error, Next},
    scope::Stop,
};
use kruise_sim::Sim;
use tokio::task::JoinSet;

use super::{create, environment};

#[tokio::test(start_paused = true)]
async fn a_panic_is_counted_and_tried_again_while_others_go_on() {
    let sim = Sim::builder().nodes(0).start();
    let environment = environment(&sim);
    let cache = Cache::<Plain>::new(CONFIG_MAP);
    let calm = Arc::new(AtomicUsize::new(0));
    let (counted, tries) = (calm.clone(), Arc::new(AtomicUsize::new(0)));
    let tried = tries.clone();
    let controller = Controller::new("test", &environment)
        .wake(&cache, |change, wake| wake(change.key.clone()))
        .reconcile(move |_, key| {
            let (calm, tries) = (counted.clone(), tried.clone());
            async move {
                match key.name.as_str() {
                    "bad" => assert!(tries.fetch_add(1, Ordering::SeqCst) >= 3, "boom"),
                    "calm" => drop(calm.fetch_add(1, Ordering::SeqCst)),
                    "hopeless" => return Err(Error::terminal("nothing can be done")),
                    _ => {}
                }
                Ok(Next::Done)
            }
        });
    let mut tasks = JoinSet::new();
    let client = sim.client();
    tasks.spawn(async move { cache.run(client, Options::default()).await });
    tasks.spawn(controller.run(Stop::default(), Duration::from_secs(1)));
    for name in ["bad", "calm", "hopeless"] {
        create(&sim, name).await;
    }
    sim.advance(Duration::from_secs(60)).await;
    assert_eq!(tries.load(Ordering::SeqCst), 4);
    assert_eq!(calm.load(Ordering::SeqCst), 1);
    assert_eq!(environment.metrics.reconcile_panics.value(&["test"]), 3.0);
    assert_eq!(environment.metrics.terminal_errors.value(&["test"]), 1.0);
    assert_eq!(environment.metrics.active_workers.value(&["test"]), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_asked_to_stop_lets_reconciles_end_and_begins_none() {
    let sim = Sim::builder().nodes(0).start();
    let environment = environment(&sim);
    let ended = Arc::new(AtomicUsize::new(0));
    let counted = ended.clone();
    let controller = Controller::new("test", &environment).workers(2).reconcile(move |_, key| {
        let ended = counted.clone();
        async move {
            let long = if key.name == "endless" { 100_000 } else { 3 };
            tokio::time::sleep(Duration::from_secs(long)).await;
            ended.fetch_add(1, Ordering::SeqCst);
            Ok(Next::Done)
        }
    });
    for name in ["endless", "slow", "late"] {
        controller.queue().add(ObjectKey::new("default", name));
    }
    let stop = Stop::default();
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.run(stop.clone(), Duration::from_secs(10)));
    sim.advance(Duration::from_secs(1)).await;
    let text = environment.metrics.registry.text();
    for line in [
        "controller_runtime_active_workers{controller=\"test\"} 2",
        "workqueue_depth{name=\"test\"} 1",
        "workqueue_unfinished_work_seconds{name=\"test\"} 2",
        "workqueue_longest_running_processor_seconds{name=\"test\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let began = tokio::time::Instant::now();
    stop.ask();
    assert!(tasks.join_next().await.is_some());
    assert_eq!(began.elapsed().as_secs(), 10, "bounded by the grace");
    assert_eq!(ended.load(Ordering::SeqCst), 1, "the slow one ended, the late one never began");
}

#[tokio::test(start_paused = true)]
async fn a_timer_brings_a_key_again() {
    let sim = Sim::builder().nodes(0).start();
    let environment = environment(&sim);
    let passes = Arc::new(AtomicUsize::new(0));
    let counted = passes.clone();
    let controller = Controller::new("test", &environment).reconcile(move |_, _| {
        let passes = counted.clone();
        async move {
            let pass = passes.fetch_add(1, Ordering::SeqCst);
            Ok(if pass < 4 { Next::After(Duration::from_secs(60)) } else { Next::Done })
        }
    });
    controller.queue().add(ObjectKey::new("default", "a"));
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.run(Stop::default(), Duration::from_secs(1)));
    sim.advance(Duration::from_secs(150)).await;
    assert_eq!(passes.load(Ordering::SeqCst), 3);
    sim.advance(Duration::from_secs(3600)).await;
    assert_eq!(passes.load(Ordering::SeqCst), 5);
    assert_eq!(environment.metrics.reconcile_total.value(&["test", "requeue_after"]), 4.0);
}
