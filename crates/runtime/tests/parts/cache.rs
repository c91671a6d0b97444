use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kruise_core::object::{CONFIG_MAP, ObjectKey};
use kruise_runtime::cache::{Cache, Guarded, Observed as _, Options, Plain};
use kruise_sim::{Sim, faults::WatchFaults};
use kube::api::DeleteParams;
use serde::Deserialize;
use tokio::task::JoinSet;

use super::{create, maps};

/// What a subscriber heard, as words.
fn heard(cache: &Cache<Plain>) -> Arc<Mutex<Vec<String>>> {
    let words: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = words.clone();
    cache.subscribe(move |change| {
        if change.key.namespace != "default" || change.key.name == "kube-root-ca.crt" {
            return;
        }
        let word = match (&change.old, &change.new) {
            (None, Some(_)) if change.initial => "listed",
            (None, Some(_)) => "added",
            (Some(_), Some(_)) if change.initial => "again",
            (Some(_), Some(_)) => "changed",
            _ => "gone",
        };
        told.lock().unwrap().push(format!("{word} {}", change.key.name));
    });
    words
}

fn run(cache: &Cache<Plain>, sim: &Sim, options: Options) -> JoinSet<()> {
    let (cache, client) = (cache.clone(), sim.faulty_client());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { cache.run(client, options).await });
    tasks
}

fn take(words: &Mutex<Vec<String>>) -> String {
    std::mem::take(&mut *words.lock().unwrap()).join(", ")
}

#[tokio::test(start_paused = true)]
async fn subscribers_hear_lists_changes_and_ends_in_order() {
    let sim = Sim::builder().nodes(0).start();
    create(&sim, "a").await;
    let cache = Cache::<Plain>::new(CONFIG_MAP);
    let words = heard(&cache);
    let _tasks = run(&cache, &sim, Options::default());
    assert!(cache.synced(Duration::from_secs(5)).await);
    create(&sim, "b").await;
    maps(&sim).delete("a", &DeleteParams::default()).await.unwrap();
    sim.advance(Duration::from_secs(1)).await;
    assert_eq!(take(&words), "listed a, added b, gone a");
    // Somebody who comes later hears what is there.
    assert_eq!(take(&heard(&cache)), "listed b");
    assert!(cache.get(&ObjectKey::new("default", "b")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_was_never_told_is_found_by_the_next_list() {
    let sim = Sim::builder().nodes(0).start();
    create(&sim, "a").await;
    let cache = Cache::<Plain>::new(CONFIG_MAP);
    let words = heard(&cache);
    let _tasks = run(&cache, &sim, Options::default());
    assert!(cache.synced(Duration::from_secs(5)).await);
    sim.faults().watch(WatchFaults { drop: 1.0, ..WatchFaults::default() });
    maps(&sim).delete("a", &DeleteParams::default()).await.unwrap();
    create(&sim, "b").await;
    sim.advance(Duration::from_secs(600)).await;
    assert_eq!(take(&words), "listed a");
    sim.faults().heal();
    let ticket = cache.ask_list();
    sim.advance(Duration::from_secs(1)).await;
    assert!(cache.listed() >= ticket);
    assert_eq!(take(&words), "added b, gone a");
}

#[tokio::test(start_paused = true)]
async fn a_resync_tells_of_every_object_again() {
    let sim = Sim::builder().nodes(0).start();
    create(&sim, "a").await;
    let cache = Cache::<Plain>::new(CONFIG_MAP);
    let words = heard(&cache);
    let options = Options { resync: Some(Duration::from_secs(3600)), ..Options::default() };
    let _tasks = run(&cache, &sim, options);
    sim.advance(Duration::from_secs(3700)).await;
    assert_eq!(take(&words), "listed a, again a");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_asked_again_until_it_is_back() {
    let sim = Sim::builder().nodes(0).start();
    create(&sim, "a").await;
    let cache = Cache::<Plain>::new(CONFIG_MAP);
    let words = heard(&cache);
    let rule = kruise_sim::faults::Rule {
        calls: kruise_sim::faults::Calls::default(),
        when: kruise_sim::faults::When::Chance(1.0),
        effect: kruise_sim::faults::Effect::Before,
        answer: kruise_sim::faults::Answer::Unavailable,
    };
    sim.faults().rule(rule);
    let _tasks = run(&cache, &sim, Options::default());
    assert!(!cache.synced(Duration::from_secs(300)).await);
    sim.faults().heal();
    assert!(cache.synced(Duration::from_secs(31)).await);
    assert_eq!(take(&words), "listed a");
}

/// A kind of ours, with a rule about its content.
#[derive(Clone, Debug, Deserialize)]
struct Strict {
    #[serde(default)]
    data: std::collections::BTreeMap<String, Number>,
}

#[derive(Clone, Debug)]
struct Number(i64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| serde::de::Error::custom(format!("{text:?} is no number")))
    }
}

#[tokio::test(start_paused = true)]
async fn one_broken_object_does_not_stop_the_watch_of_the_others() {
    let sim = Sim::builder().nodes(0).start();
    let bad = super::map("bad", serde_json::json!({"a": "many"}));
    maps(&sim).create(&kube::api::PostParams::default(), &bad).await.unwrap();
    create(&sim, "good").await;
    let cache = Cache::<Guarded<Strict>>::new(CONFIG_MAP);
    let (fed, client) = (cache.clone(), sim.client());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { fed.run(client, Options::default()).await });
    assert!(cache.synced(Duration::from_secs(5)).await);
    let get = |name: &str| cache.get(&ObjectKey::new("default", name)).unwrap();
    assert_eq!(get("good").object.as_ref().unwrap().data["a"].0, 1);
    assert!(get("bad").object.as_ref().unwrap_err().contains("\"many\" is no number"));
}

/// Puts something into a ConfigMap that no server would store.
fn spoil(sim: &Sim, name: &str, metadata: &str, rest: &str) {
    sim.server().store().put_raw("/configmaps", "default", name, metadata, rest).unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_in_a_list_or_a_watch_hides_other_objects() {
    let sim = Sim::builder().nodes(0).start();
    for name in ["a", "b", "c", "d"] {
        create(&sim, name).await;
    }
    spoil(&sim, "a", "5", r#","data":1e999"#);
    spoil(
        &sim,
        "b",
        r#"{"name":"b","namespace":"default","uid":"u","labels":{"x":7,"y":"z"}}"#,
        r#","data":[[]]"#,
    );
    let cache = Cache::<Plain>::new(CONFIG_MAP);
    // Without a place for faults: every byte arrives as it is stored.
    let (following, client) = (cache.clone(), sim.client());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { following.run(client, Options::default()).await });
    assert!(cache.synced(Duration::from_secs(5)).await);
    let get = |name: &str| cache.get(&ObjectKey::new("default", name));
    let b = get("b").unwrap();
    assert!(b.metadata.unreadable);
    assert_eq!((b.metadata.uid.as_str(), b.metadata.labels.text("y")), ("u", Some("z")));
    assert_eq!(cache.unread(&b.metadata.key()).unwrap()[0].path.to_string(), "metadata.labels.x");
    assert!(get("a").is_none(), "what has no name is left out");
    assert!(!get("d").unwrap().metadata.unreadable);
    // The same while it is watched.
    create(&sim, "f").await;
    spoil(&sim, "f", r#"{"name":"f","namespace":null,"uid":"u"}"#, "");
    spoil(&sim, "c", "null", "");
    spoil(
        &sim,
        "d",
        r#"{"name":"d","namespace":"default","uid":"u","annotations":"\ud800"}"#,
        r#","data":"\udfff""#,
    );
    create(&sim, "e").await;
    sim.advance(Duration::from_secs(60)).await;
    assert!(get("e").is_some() && get("d").unwrap().metadata.unreadable);
    // Found by `cargo xtask fuzz objects --seed 2000`.
    assert!(get("c").is_none(), "what has lost its name is no longer there under it");
    assert!(get("f").is_none() && cache.get(&ObjectKey::new("", "f")).is_none(), "nor without its namespace");
    // Once it can be read again, nothing of that is left.
    spoil(&sim, "b", r#"{"name":"b","namespace":"default","uid":"u"}"#, "");
    sim.advance(Duration::from_secs(5)).await;
    assert!(!get("b").unwrap().metadata.unreadable && cache.unread(&b.metadata.key()).is_none());
    maps(&sim).delete("d", &DeleteParams::default()).await.unwrap();
    sim.advance(Duration::from_secs(60)).await;
    assert!(get("d").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_at_an_object_hears_of_all_others() {
    let sim = Sim::builder().nodes(0).start();
    let cache = Cache::<Plain>::new(CONFIG_MAP);
    cache.subscribe(|change| assert_ne!(change.key.name, "touchy"));
    let words = heard(&cache);
    let _tasks = run(&cache, &sim, Options::default());
    for name in ["a", "touchy", "b"] {
        create(&sim, name).await;
    }
    sim.advance(Duration::from_secs(5)).await;
    assert!(cache.is_synced());
    assert_eq!(take(&words), "added a, added touchy, added b");
}
