use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kruise_core::{
    effect::Effect,
    object::{CONFIG_MAP, ObjectKey},
};
use kruise_runtime::{
    cache::{Cache, Options, Plain},
    controller::{Controller, Error, Next},
    scope::Stop,
};
use kruise_sim::Sim;
use serde_json::json;
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

/// How long a key takes to make ten objects, one after the other, beside keys whose every write is refused.
async fn time_beside(refused: usize, namespace: &str, head_start: Duration) -> Duration {
    const WANTED: usize = 10;
    let sim = Sim::builder().nodes(0).start();
    sim.faults().latency(Duration::from_millis(20));
    let environment = environment(&sim);
    let cache = Cache::<Plain>::new(CONFIG_MAP);
    let made = cache.clone();
    let controller = Controller::new("test", &environment)
        .follow(&cache)
        .wake(&cache, |change, wake| {
            wake(ObjectKey::new("default", change.key.name.split('-').next().unwrap()));
        })
        .reconcile(move |context, key| {
            let count = made
                .in_namespace("default")
                .iter()
                .filter(|map| map.metadata.name.starts_with("good-"))
                .count();
            async move {
                let make = |name: String| Effect::Create {
                    resource: CONFIG_MAP,
                    namespace: "default".into(),
                    object: json!({"metadata": {"name": name}}),
                };
                let effects = match key.name.as_str() {
                    "good" if count < WANTED => vec![make(format!("good-{count}"))],
                    "good" => Vec::new(),
                    // The server does not take such a name.
                    bad => (0..3).map(|n| make(format!("Not_A_Name_{bad}_{n}"))).collect(),
                };
                context.act(&key, &effects).await?;
                Ok(Next::Done)
            }
        });
    let queue = controller.queue().clone();
    let mut tasks = JoinSet::new();
    let (client, fed) = (sim.client(), cache.clone());
    tasks.spawn(async move { fed.run(client, Options::default()).await });
    tasks.spawn(controller.run(Stop::default(), Duration::from_secs(1)));
    assert!(cache.synced(Duration::from_secs(5)).await);
    for number in 0..refused {
        queue.add(ObjectKey::new(namespace, format!("bad{number}")));
    }
    sim.advance(head_start).await;
    let began = tokio::time::Instant::now();
    queue.add(ObjectKey::new("default", "good"));
    while cache.in_namespace("default").iter().filter(|map| map.metadata.name.starts_with("good-")).count()
        < WANTED
    {
        sim.advance(Duration::from_millis(10)).await;
        assert!(began.elapsed() < Duration::from_secs(600), "it never ends");
    }
    began.elapsed()
}

/// Three hundred of them delayed a healthy CloneSet by 18 seconds.
#[tokio::test(start_paused = true)]
async fn keys_whose_every_write_is_refused_do_not_delay_a_healthy_one() {
    let alone = time_beside(0, "default", Duration::ZERO).await;
    // A server that refuses the objects of one namespace has just begun to do so.
    let elsewhere = time_beside(300, "crowded", Duration::ZERO).await;
    assert!(elsewhere <= alone * 5, "{elsewhere:?} beside another namespace, {alone:?} alone");
    // The refused ones are known by now, and are tried again all the time.
    for head_start in [12, 20, 60, 600] {
        let beside = time_beside(300, "default", Duration::from_secs(head_start)).await;
        assert!(beside <= alone * 3, "{beside:?} beside them after {head_start} s, {alone:?} alone");
    }
}
