//! Our daemon on the simulated nodes, where there is something for it to do.
//!
//! A real cluster has a daemon on every node all the time. Here one reader of the three kinds that daemons serve is enough for
//! all nodes: a daemon begins with the first object that gives it work and ends some minutes after the last one, so that a
//! cluster of thousands of nodes pays for none of it until somebody uses it. Who wants one everywhere, as for another
//! manager, says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kruise_api::gates::Gates;
use kruise_api::labels::{CRR_ACTIVE, CRR_NODE_NAME};
use kruise_api::names;
use kruise_apiserver::clock::Clock;
use kruise_apiserver::status::Status;
use kruise_apiserver::store::{Cursor, EventKind, Record, Store};
use kruise_nodes::{Daemon, Options};
use kruise_runtime::{clock, random::Random};
use kruise_sim::{Machines, Sim};
use serde_json::Value;

/// How long a daemon stays without work.
const IDLE: Duration = Duration::from_secs(120);
/// Calls per second and at once of each part of a daemon: nobody else needs the line.
const RATE: (f64, u32) = (50.0, 100);
/// How long news are gathered, so that thousands of objects are looked at together.
const GATHER: Duration = Duration::from_millis(50);

/// A kind that gives daemons work, by its plural.
type Kind = (&'static str, Work);
/// The node that an object has work for.
type Work = fn(&Record) -> Option<String>;

const KINDS: [Kind; 3] =
    [("nodeimages", pulls), ("containerrecreaterequests", recreations), ("nodepodprobes", probes)];

/// A node has work for its daemon as long as it is there.
const NODES: Kind = ("nodes", always);

/// When a node has a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Not at all.
    Never,
    /// While there is work for one.
    ThereIsWork,
    /// As long as the node is there.
    Always,
}

/// The daemons of all nodes.
pub struct Daemons {
    client: kube::Client,
    machines: Machines,
    clock: Clock,
    random: Random,
    gates: Gates,
    store: Arc<Store>,
    sources: Vec<(Arc<str>, Cursor, Work)>,
    /// The objects that give each node work.
    work: BTreeMap<String, BTreeSet<Place>>,
    /// The node that an object gave work to.
    given: BTreeMap<Place, String>,
    running: BTreeMap<String, Running>,
}

/// The table, namespace and name of an object.
type Place = (Arc<str>, Arc<str>, Arc<str>);

struct Running {
    _daemon: Daemon,
    idle_since: Option<Timestamp>,
}

impl Daemons {
    /// No daemon yet. Our kinds must be installed.
    pub fn new(sim: &Sim, seed: u64, when: When, gates: Gates) -> Result<Self, Status> {
        let (local, store) = (sim.server().local(), sim.server().store().clone());
        let mut sources = Vec::new();
        let kinds = match when {
            When::Never => &[][..],
            When::ThereIsWork => &KINDS,
            When::Always => &[NODES],
        };
        for (plural, work) in kinds.iter().copied() {
            let group = if plural == NODES.0 { "" } else { names::APPS_GROUP };
            let table: Arc<str> = local.resource(group, plural)?.table.clone();
            sources.push((table.clone(), store.watch(&table, store.version()), work));
        }
        Ok(Self {
            client: sim.client(),
            machines: sim.machines(),
            clock: *sim.clock(),
            random: Random::seeded(seed ^ 0x6461_656d),
            gates,
            store,
            sources,
            work: BTreeMap::new(),
            given: BTreeMap::new(),
            running: BTreeMap::new(),
        })
    }

    /// How many daemons run now.
    pub fn count(&self) -> usize {
        self.running.len()
    }

    /// Runs until dropped.
    pub async fn run(mut self) {
        self.read_anew();
        loop {
            self.look();
            self.tidy();
            tokio::time::sleep(GATHER).await;
            let waits = self.sources.iter_mut().map(|(_, cursor, _)| Box::pin(cursor.wait()));
            let news = futures::future::select_all(waits);
            let rest = self.clock.real(IDLE / 2);
            if self.running.is_empty() {
                news.await;
            } else {
                let _ = tokio::time::timeout(rest, news).await;
            }
        }
    }

    /// Takes all news.
    pub fn look(&mut self) {
        for at in 0..self.sources.len() {
            while let Some((table, cursor, work)) = self.sources.get_mut(at) {
                let (table, work) = (table.clone(), *work);
                match cursor.take() {
                    Ok(events) if events.is_empty() => break,
                    Ok(events) => {
                        for event in events {
                            let node = work(&event.new).filter(|_| event.kind != EventKind::Deleted);
                            self.see(&table, &event.new, node);
                        }
                    }
                    Err(_) => self.read_anew(),
                }
            }
        }
    }

    /// Reads everything, as at the beginning.
    fn read_anew(&mut self) {
        self.given.clear();
        self.work.clear();
        for at in 0..self.sources.len() {
            let Some((table, cursor, work)) = self.sources.get_mut(at) else { break };
            let (table, work) = (table.clone(), *work);
            let (version, records) = self.store.list(&table, None);
            *cursor = self.store.watch(&table, version);
            for record in records {
                let node = work(&record);
                self.see(&table, &record, node);
            }
        }
        let idle: Vec<String> =
            self.running.keys().filter(|node| !self.work.contains_key(*node)).cloned().collect();
        for node in idle {
            self.rest(&node);
        }
    }

    /// An object gives a node work, or does not any more.
    fn see(&mut self, table: &Arc<str>, record: &Record, node: Option<String>) {
        let place: Place = (table.clone(), record.namespace.clone(), record.name.clone());
        if self.given.get(&place) == node.as_ref() {
            return;
        }
        if let Some(before) = self.given.remove(&place)
            && let Some(work) = self.work.get_mut(&before)
        {
            work.remove(&place);
            if work.is_empty() {
                self.work.remove(&before);
                self.rest(&before);
            }
        }
        if let Some(node) = node {
            self.work.entry(node.clone()).or_default().insert(place.clone());
            self.given.insert(place, node.clone());
            self.wake(node);
        }
    }

    fn wake(&mut self, node: String) {
        if let Some(running) = self.running.get_mut(&node) {
            running.idle_since = None;
            return;
        }
        let clock = self.clock;
        let options = Options {
            gates: self.gates.clone(),
            most_pulls: None,
            rate: RATE,
            clock: clock::Clock::from_fn(move || clock.now()),
            random: self.random.clone(),
        };
        let daemon = Daemon::start(self.client.clone(), self.machines.of(&node), options);
        tracing::info!(%node, "a daemon begins");
        self.running.insert(node, Running { _daemon: daemon, idle_since: None });
    }

    fn rest(&mut self, node: &str) {
        if let Some(running) = self.running.get_mut(node) {
            running.idle_since = Some(self.clock.now());
        }
    }

    /// Ends daemons that had nothing to do for long enough.
    fn tidy(&mut self) {
        let now = self.clock.now();
        self.running.retain(|node, running| {
            let idle = running.idle_since.map(|since| now.duration_since(since));
            let stays = idle.is_none_or(|idle| Duration::try_from(idle).unwrap_or_default() < IDLE);
            if !stays {
                tracing::info!(%node, "a daemon ends");
            }
            stays
        });
    }
}

/// The node of a NodeImage with a tag that is not pulled yet.
fn pulls(record: &Record) -> Option<String> {
    // Most have no image at all: that is seen without reading them.
    if !has(record, b"\"tags\"") {
        return None;
    }
    let object = record.value();
    let images = object.pointer("/spec/images")?.as_object()?;
    let number = |value: &Value| value.get("version").and_then(Value::as_i64).unwrap_or(0);
    let is_done = |image: &str, tag: &Value| {
        let known =
            object.get("status").and_then(|status| status.get("imageStatuses")?.get(image)?.get("tags"));
        known.and_then(Value::as_array).is_some_and(|known| {
            known.iter().any(|known| {
                known.get("tag") == tag.get("tag")
                    && number(known) == number(tag)
                    && known.get("completionTime").is_some_and(Value::is_string)
            })
        })
    };
    let is_open = images.iter().any(|(name, image)| {
        let tags = image.get("tags").and_then(Value::as_array);
        tags.is_some_and(|tags| tags.iter().any(|tag| !is_done(name, tag)))
    });
    is_open.then(|| record.name.to_string())
}

/// The node itself.
fn always(record: &Record) -> Option<String> {
    Some(record.name.to_string())
}

/// The node of a request that is not over.
fn recreations(record: &Record) -> Option<String> {
    record.label(CRR_ACTIVE)?;
    record.label(CRR_NODE_NAME).map(ToOwned::to_owned)
}

/// The node of a list of probes that is not empty.
fn probes(record: &Record) -> Option<String> {
    has(record, b"\"probes\"").then(|| record.name.to_string())
}

fn has(record: &Record, words: &[u8]) -> bool {
    record.body().windows(words.len()).any(|window| window == words)
}

#[cfg(test)]
mod tests {
    use kruise_api::catalogue::CRDS;
    use kruise_apiserver::patch::Patch;
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn daemons_run_only_where_and_while_there_is_work() {
        let sim = Sim::builder().nodes(3).start();
        let local = sim.server().local();
        let definitions = local.resource("apiextensions.k8s.io", "customresourcedefinitions").unwrap();
        for crd in CRDS {
            local.create(&definitions, "", crd.object()).await.unwrap();
        }
        sim.advance(Duration::from_secs(2)).await;
        let mut daemons =
            Daemons::new(&sim, 1, When::ThereIsWork, crate::manager::gates("").unwrap()).unwrap();
        let images = local.resource(names::APPS_GROUP, "nodeimages").unwrap();
        for node in ["node-1", "node-2"] {
            let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": node},
                "spec": {}});
            local.create(&images, "", object).await.unwrap();
        }
        daemons.look();
        assert_eq!(daemons.count(), 0, "a node without images needs no daemon");
        let tag = json!({"tag": "v1", "createdAt": "2026-01-01T00:00:00Z", "pullPolicy": {"ttlSecondsAfterFinished": 9000}});
        let Value::Object(change) = json!({"spec": {"images": {"app": {"tags": [tag]}}}}) else { panic!() };
        local.patch(&images, "", "node-1", None, &Patch::Merge(change)).await.unwrap();
        daemons.look();
        assert_eq!(daemons.count(), 1);
        sim.advance(Duration::from_secs(20)).await;
        let told = local.get(&images, "", "node-1").unwrap().value()["status"].clone();
        assert_eq!(told["succeeded"], 1, "{told}");
        daemons.look();
        daemons.tidy();
        assert_eq!(daemons.count(), 1, "there may be more to come");
        sim.advance(IDLE).await;
        daemons.tidy();
        assert_eq!(daemons.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_daemon_may_run_on_every_node_all_the_time() {
        let sim = Sim::builder().nodes(2).start();
        sim.advance(Duration::from_secs(2)).await;
        let mut daemons = Daemons::new(&sim, 1, When::Always, crate::manager::gates("").unwrap()).unwrap();
        daemons.read_anew();
        assert_eq!(daemons.count(), 2);
        sim.add_node(kruise_sim::Node::named("late"));
        sim.advance(IDLE * 2).await;
        daemons.look();
        daemons.tidy();
        assert_eq!(daemons.count(), 3);
        let nodes = sim.server().local().resource("", "nodes").unwrap();
        sim.server()
            .local()
            .delete(&nodes, "", "late", &kruise_apiserver::rest::DeleteOptions::default())
            .await
            .unwrap();
        daemons.look();
        sim.advance(IDLE).await;
        daemons.tidy();
        assert_eq!(daemons.count(), 2);
    }
}
