//! Nodes that pull: they stand for the daemons, which are not measured here.
//!
//! They read and write what daemons would, at the same pace: a pull takes 20 to 60 seconds, a status is written when it
//! changes, every few seconds at the most.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use jiff::Timestamp;
use kruise_core::hash;
use serde_json::{Value, json};

use super::super::local::Clock;
use super::super::local::http::{Connection, Watch};

pub(super) const PATH: &str = "/apis/apps.kruise.io/v1beta1/nodeimages";
/// How often a daemon looks at pulls that are under way.
const LOOK: Duration = Duration::from_secs(4);
/// How long all that happens at once may take to come in.
const TICK: Duration = Duration::from_millis(50);

/// A connection that was not used for longer may be closed.
const REST: Duration = Duration::from_secs(10);

/// What happened so far.
#[derive(Default)]
pub(super) struct Counts {
    /// Pulls that ended.
    pub(super) pulls: AtomicU64,
    /// Changes of what nodes are asked for.
    pub(super) wishes: AtomicU64,
}

/// All nodes. They live until this value is dropped.
pub(super) struct Nodes {
    pub(super) counts: Arc<Counts>,
    failed: Arc<Mutex<Option<anyhow::Error>>>,
    ended: Arc<AtomicBool>,
}

impl Nodes {
    /// Begins to read and to pull.
    pub(super) fn start(kubeconfig: &Path) -> Result<Self> {
        let nodes = Self { counts: Arc::default(), failed: Arc::default(), ended: Arc::default() };
        let watch = Connection::open(kubeconfig)?.watch(PATH)?;
        let kubeconfig = kubeconfig.to_owned();
        let (sender, events) = channel();
        let (counts, failed, ended) = (nodes.counts.clone(), nodes.failed.clone(), nodes.ended.clone());
        thread::spawn(move || read(watch, |event| sender.send(event).is_ok()));
        thread::spawn(move || {
            if let Err(error) = live(&kubeconfig, &events, &counts, &ended)
                && !ended.load(Ordering::Relaxed)
            {
                failed.lock().unwrap_or_else(PoisonError::into_inner).replace(error);
            }
        });
        Ok(nodes)
    }

    /// An error if they do not live any more: then figures mean nothing.
    pub(super) fn check(&self) -> Result<()> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or(Ok(()), |error| Err(error.context("the nodes stopped")))
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Passes on what happens, until nobody listens or there is nothing more to read.
fn read(mut watch: Watch, pass_on: impl Fn(Result<Value>) -> bool) {
    loop {
        let event = watch.next();
        let is_last = event.is_err();
        if !pass_on(event) || is_last {
            return;
        }
    }
}

fn live(
    kubeconfig: &Path,
    events: &Receiver<Result<Value>>,
    counts: &Counts,
    ended: &AtomicBool,
) -> Result<()> {
    let clock = Clock::new();
    let (mut connection, mut used_at) = (Connection::open(kubeconfig)?, clock.elapsed());
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    while !ended.load(Ordering::Relaxed) {
        let mut next = match events.recv_timeout(TICK) {
            Ok(event) => Some(event?),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("nothing more to read")),
        };
        while let Some(event) = next {
            let object = event.get("object").context("an event without an object")?;
            let name = object.pointer("/metadata/name").and_then(Value::as_str).context("no name")?;
            let node = nodes.entry(name.to_owned()).or_default();
            counts.wishes.fetch_add(node.hear(object, clock.elapsed()), Ordering::Relaxed);
            next = events.try_recv().ok().transpose()?;
        }
        for (name, node) in nodes.iter_mut().filter(|(_, node)| node.look_at.is_some()) {
            if node.look_at > Some(clock.elapsed()) {
                continue;
            }
            let (status, done) = node.look(name, clock.elapsed());
            counts.pulls.fetch_add(done, Ordering::Relaxed);
            if let Some(status) = status {
                if clock.elapsed() - used_at > REST {
                    connection = Connection::open(kubeconfig)?;
                }
                used_at = clock.elapsed();
                connection.send(
                    "PATCH",
                    &format!("{PATH}/{name}/status"),
                    Some(&json!({"status": status})),
                )?;
            }
        }
    }
    Ok(())
}

/// Name of the image, and tag.
type Place = (String, String);

#[derive(Default)]
struct Node {
    generation: i64,
    /// Which round of each tag is wanted.
    wanted: BTreeMap<Place, i64>,
    pulls: BTreeMap<Place, Pull>,
    /// How its first list ended.
    first: Option<Value>,
    /// When to look at what is under way.
    look_at: Option<Duration>,
}

struct Pull {
    round: i64,
    /// As it stands in the status.
    told: Value,
    /// When it ends; nothing if it has.
    until: Option<Duration>,
}

impl Node {
    /// Reads its object; how many changes of its spec that is.
    fn hear(&mut self, object: &Value, now: Duration) -> u64 {
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        if generation <= self.generation {
            return 0;
        }
        let is_first = self.generation == 0;
        self.generation = generation;
        let round = |tag: &Value| tag.get("version").and_then(Value::as_i64).unwrap_or(0);
        self.wanted = tags(object.pointer("/spec/images")).map(|(place, tag)| (place, round(tag))).collect();
        if is_first {
            self.first = object.pointer("/status/firstSyncStatus").cloned();
            let told = tags(object.pointer("/status/imageStatuses"));
            let done = told.filter(|(_, tag)| tag.get("completionTime").is_some());
            self.pulls = done
                .map(|(place, tag)| (place, Pull { round: round(tag), told: tag.clone(), until: None }))
                .collect();
        }
        self.look_at = Some(now);
        u64::from(!is_first)
    }

    /// Begins and ends pulls: the status where it changed, and how many ended.
    fn look(&mut self, name: &str, now: Duration) -> (Option<Value>, u64) {
        let (before, mut ended) = (self.pulls.len(), 0);
        self.pulls.retain(|place, pull| self.wanted.get(place) == Some(&pull.round));
        let mut has_news = self.pulls.len() < before;
        for (place, round) in &self.wanted {
            if !self.pulls.contains_key(place) {
                let told = json!({"tag": place.1, "phase": "Pulling", "startTime": seconds(Clock::now()), "version": round});
                let until = Some(now + time_of_pull(name, &place.1));
                self.pulls.insert(place.clone(), Pull { round: *round, told, until });
                has_news = true;
            }
        }
        for (place, pull) in self.pulls.iter_mut().filter(|(_, pull)| pull.until.is_some_and(|at| at <= now))
        {
            pull.until = None;
            if let Some(told) = pull.told.as_object_mut() {
                told.insert("phase".to_owned(), "Succeeded".into());
                told.insert("progress".to_owned(), 100.into());
                told.insert("completionTime".to_owned(), seconds(Clock::now()).into());
                told.insert("imageID".to_owned(), format!("{}@sha256:{:064x}", place.0, pull.round).into());
            }
            ended += 1;
        }
        let under_way = self.pulls.values().filter(|pull| pull.until.is_some()).count();
        self.look_at = (under_way > 0).then(|| now + LOOK);
        let status = (has_news || ended > 0).then(|| self.status(under_way));
        (status, ended)
    }

    fn status(&mut self, under_way: usize) -> Value {
        if under_way == 0 && !self.wanted.is_empty() && self.first.is_none() {
            self.first = Some(json!({"status": "Succeeded", "syncAt": seconds(Clock::now())}));
        }
        let mut images: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for ((image, _), pull) in &self.pulls {
            images.entry(image).or_default().push(&pull.told);
        }
        let images: BTreeMap<&str, Value> =
            images.into_iter().map(|(image, tags)| (image, json!({"tags": tags}))).collect();
        json!({
            "desired": self.wanted.len(), "succeeded": self.pulls.len() - under_way, "failed": 0,
            "pulling": under_way, "waiting": 0, "imageStatuses": images,
            "firstSyncStatus": self.first,
        })
    }
}

/// All tags of a map of images.
fn tags(images: Option<&Value>) -> impl Iterator<Item = (Place, &Value)> {
    images.and_then(Value::as_object).into_iter().flatten().flat_map(|(image, entry)| {
        let tags = entry.get("tags").and_then(Value::as_array).into_iter().flatten();
        tags.filter_map(move |tag| Some(((image.clone(), tag.get("tag")?.as_str()?.to_owned()), tag)))
    })
}

/// A time as Kubernetes writes it.
pub(super) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// 20 to 60 seconds, as images of some hundred megabytes take.
fn time_of_pull(node: &str, tag: &str) -> Duration {
    let share = hash::fnv1a(node.bytes().chain(tag.bytes())) % 40_000;
    Duration::from_millis(u64::from(20_000 + share))
}
