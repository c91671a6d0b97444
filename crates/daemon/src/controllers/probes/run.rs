//! One task for each probe.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_api::{
    nodepodprobe::v1alpha1::{NodePodProbe, Spec, Status},
    probe::{Probe, State},
};
use kruise_core::{
    effect::{Event, Level},
    object::{ObjectKey, ObjectRef, POD},
};
use kruise_runtime::{events::Recorder, queue::Queue, scope::caught};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, sleep_until},
};

use super::listing::Listing;
use crate::{
    node::Node,
    probing::{self, Answer, Id, Prober, Record, Results, Turn, Written},
};

/// All probes of the node. Clones are the same; with the last of them all probes end.
#[derive(Clone)]
pub struct Probers {
    shared: Arc<Shared>,
    /// Apart from what tasks share: they would keep themselves alive.
    tasks: Arc<Mutex<JoinSet<()>>>,
}

struct Shared {
    node: Node,
    recorder: Recorder,
    listing: Listing,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    running: BTreeMap<Id, Running>,
    results: Results,
    /// Whether anything was asked for before; then probes begin at once.
    began: bool,
    queue: Option<Queue>,
}

struct Running {
    probe: watch::Sender<Probe>,
    task: AbortHandle,
}

impl Probers {
    pub(super) fn new(node: &Node, recorder: Recorder) -> Self {
        let listing = Listing::new(node.runtimes.clone());
        let shared = Arc::new(Shared { node: node.clone(), recorder, listing, inner: Mutex::default() });
        Self { shared, tasks: Arc::default() }
    }

    /// Where the key goes when there is something to write.
    pub(super) fn tell(&self, queue: &Queue) {
        self.shared.inner().queue = Some(queue.clone());
    }

    /// Ends probes that nobody wants, begins new ones, and hands changes to those that run.
    pub(super) fn sync(&self, object: Option<&NodePodProbe>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inner = self.shared.inner();
        while tasks.try_join_next().is_some() {}
        let spec = object.map(|object| object.spec.clone()).unwrap_or_default();
        if !inner.began {
            inner.results = Results::read(object.and_then(|object| object.status.as_ref()));
        }
        inner.results.keep(&spec);
        let wanted: BTreeMap<Id, Probe> = probing::wanted(&spec).into_iter().collect();
        inner.running.retain(|id, running| {
            let stays = wanted.contains_key(id);
            if !stays {
                running.task.abort();
            }
            stays
        });
        for (id, probe) in wanted {
            if let Some(running) = inner.running.get(&id) {
                running.probe.send_if_modified(|known| {
                    let changed = *known != probe;
                    *known = probe;
                    changed
                });
                continue;
            }
            // After a start of the daemon all probes would ask at the same moment.
            let delay = match inner.began {
                true => Duration::ZERO,
                false => {
                    let millis = u64::try_from(probing::period(&probe).as_millis()).unwrap_or(u64::MAX);
                    Duration::from_millis(self.shared.node.settings.random.below(millis))
                }
            };
            let prober = Prober::new(probe.clone(), inner.results.of(&id));
            let (sender, receiver) = watch::channel(probe);
            let (shared, of_task) = (self.shared.clone(), id.clone());
            let task = tasks.spawn(async move {
                sleep(delay).await;
                shared.run(of_task, prober, receiver).await;
            });
            inner.running.insert(id, Running { probe: sender, task });
        }
        inner.began |= object.is_some();
        if let Some(queue) = &inner.queue {
            queue.add(self.shared.node.key());
        }
    }

    /// What all of them found.
    pub(super) fn status(&self, spec: &Spec) -> Status {
        self.shared.inner().results.status(spec)
    }

    /// Ends all of them.
    pub fn stop(&self) {
        self.shared.inner().running.clear();
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(self: Arc<Self>, id: Id, mut prober: Prober, mut edits: watch::Receiver<Probe>) {
        loop {
            let began = Instant::now();
            // The next round tries again.
            if let Err(message) = caught(self.round(&id, &mut prober)).await {
                tracing::error!(pod = %id.pod, probe = %id.probe, panic = message, "a probe panicked");
            }
            loop {
                let next = began + probing::period(prober.probe());
                tokio::select! {
                    () = sleep_until(next) => break,
                    edited = edits.changed() => {
                        if edited.is_err() {
                            return;
                        }
                        let probe = edits.borrow_and_update().clone();
                        if let Some(record) = prober.edit(probe) {
                            self.record(&id, &record);
                        }
                    }
                }
            }
        }
    }

    async fn round(&self, id: &Id, prober: &mut Prober) {
        let found = match self.listing.find(&id.uid, &id.container).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(pod = %id.pod, probe = %id.probe, %error, "cannot look at the container of a probe");
                return;
            }
        };
        let now = self.node.settings.clock.now();
        let instance = found.as_ref().map(|(_, _, instance)| instance);
        match prober.turn(&id.container, instance, now) {
            Turn::Wait => {}
            Turn::Tell(record) => self.record(id, &record),
            Turn::Ask(news) => {
                if let Some(record) = news {
                    self.record(id, &record);
                }
                let Some((runtime, container, _)) = &found else { return };
                let answer = match self.listing.addresses(&**runtime, container, prober.probe()).await {
                    Ok(addresses) => {
                        probing::ask(id, prober.probe(), &**runtime, container, &addresses).await
                    }
                    Err(error) => Answer::Unclear(error.to_string()),
                };
                if let Answer::Unclear(problem) = &answer {
                    tracing::debug!(pod = %id.pod, probe = %id.probe, %problem, "a probe got no answer");
                }
                if let Some(record) = prober.answered(&answer) {
                    self.record(id, &record);
                }
            }
        }
    }

    fn record(&self, id: &Id, record: &Record) {
        let now = self.node.settings.clock.now_seconds();
        let mut inner = self.inner();
        if !inner.running.contains_key(id) {
            return;
        }
        let written = inner.results.record(id, record, now);
        if written == Written::Unchanged {
            return;
        }
        if let Some(queue) = &inner.queue {
            queue.add(self.node.key());
        }
        drop(inner);
        if written == Written::Changed {
            let key = ObjectKey::new(id.namespace.as_str(), id.pod.as_str());
            let reason = match record.state {
                State::Succeeded => "KruiseProbeSucceeded",
                _ => "KruiseProbeFailed",
            };
            self.recorder.record(Event {
                regarding: ObjectRef { resource: POD, key, uid: id.uid.as_str().into() },
                level: Level::Normal,
                reason: reason.into(),
                message: record.message.clone(),
            });
        }
    }
}
