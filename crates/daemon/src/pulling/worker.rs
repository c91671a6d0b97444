//! The workers: one pull each, from waiting for a place to its end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_api::{
    duration::GoDuration,
    nodeimage::v1beta1::{Image, ImagePullPolicy, NodeImage, Phase, Spec, Status, Tag, TagStatus},
    time::Time,
};
use kruise_core::{
    effect::{Event, Level},
    object::{ObjectKey, ObjectRef, Resource},
    pre_download::IMAGE_PULL_JOB,
};
use kruise_runtime::{
    cache::{Cache, Guarded},
    clock::Clock,
    events::Recorder,
    queue::Queue,
    scope::caught,
};
use tokio::{
    sync::Semaphore,
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep, timeout},
};

use super::{
    Attempt, NODE_IMAGE, PULLED_BY, Place, Policy, Round, Wanted, full_reference, pause, plan, present,
    repository, secrets::Credentials, space,
};
use crate::cri::{Pull, Runtime};

/// How long news of workers are gathered before the status is written.
const GATHER: Duration = Duration::from_millis(200);
/// How long a pull that panicked rests before it begins again.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// The workers of a node. Clones are the same; with the last of them all pulls end.
#[derive(Clone)]
pub struct Workers {
    shared: Arc<Shared>,
    /// Apart from what tasks share: they would keep themselves alive.
    tasks: Arc<Mutex<JoinSet<()>>>,
}

/// What workers are given.
pub struct Parts {
    /// Where images are pulled.
    pub runtime: Arc<dyn Runtime>,
    /// The NodeImage of this node.
    pub node_images: Cache<Guarded<NodeImage>>,
    /// Its key.
    pub key: ObjectKey,
    /// Who knows the credentials of registries.
    pub credentials: Credentials,
    /// The time of day.
    pub clock: Clock,
    /// Where events go.
    pub recorder: Recorder,
    /// How many pulls may run at once; all, unless given.
    pub most: Option<usize>,
    /// How much must be free before a pull.
    pub space: Wanted,
}

struct Shared {
    parts: Parts,
    places: Option<Semaphore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    working: BTreeMap<Place, Working>,
    /// Whom to tell that something changed.
    queue: Option<Queue>,
}

struct Working {
    told: TagStatus,
    task: AbortHandle,
}

impl Workers {
    /// No workers yet.
    pub fn new(parts: Parts) -> Self {
        let places = parts.most.map(Semaphore::new);
        let shared = Arc::new(Shared { parts, places, state: Mutex::default() });
        Self { shared, tasks: Arc::default() }
    }

    /// Where the key goes when something changed.
    pub fn tell(&self, queue: &Queue) {
        self.shared.state().queue = Some(queue.clone());
    }

    /// Ends the workers that are not wanted any more and begins those that are missing. Tells how far all of them are.
    pub fn sync(&self, spec: &Spec, status: Option<&Status>) -> BTreeMap<Place, TagStatus> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.state();
        while tasks.try_join_next().is_some() {}
        let rounds: BTreeMap<Place, i64> = state
            .working
            .iter()
            .map(|(place, working)| (place.clone(), working.told.version.unwrap_or(0)))
            .collect();
        let plan = plan::plan(spec, status, &rounds);
        for place in &plan.end {
            if let Some(working) = state.working.remove(place) {
                working.stop();
            }
        }
        for round in plan.begin {
            self.begin(&mut tasks, &mut state, spec, round);
        }
        state.working.iter().map(|(place, working)| (place.clone(), working.told.clone())).collect()
    }

    /// Ends all of them.
    pub fn stop(&self) {
        for working in std::mem::take(&mut self.shared.state().working).into_values() {
            working.stop();
        }
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    fn begin(&self, tasks: &mut JoinSet<()>, state: &mut State, spec: &Spec, round: Round) {
        let Some((_, tag)) = plan::wanted(spec, &round) else { return };
        let told = TagStatus {
            tag: round.place.tag.clone(),
            phase: Phase::Waiting,
            version: Some(round.version).filter(|version| *version != 0),
            ..TagStatus::default()
        };
        let worker = Worker { shared: self.shared.clone(), round: round.clone(), first: tag.clone() };
        let task = tasks.spawn(worker.run_guarded());
        state.working.insert(round.place, Working { told, task });
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Working {
    fn stop(self) {
        self.task.abort();
    }
}

struct Worker {
    shared: Arc<Shared>,
    round: Round,
    /// The tag as it was at the beginning.
    first: Tag,
}

impl Worker {
    /// A pull that panics is told and begins again, as all other work that fails.
    async fn run_guarded(self) {
        let (shared, round) = (self.shared.clone(), self.round.clone());
        let Err(message) = caught(self.run()).await else { return };
        tracing::error!(image = %round.place.image, tag = %round.place.tag, panic = message, "a pull panicked");
        let mut state = shared.state();
        let is_own = |working: &Working| working.told.version.unwrap_or(0) == round.version;
        if state.working.get(&round.place).is_some_and(is_own) {
            state.working.remove(&round.place);
            if let Some(queue) = &state.queue {
                queue.add_after(shared.parts.key.clone(), AFTER_PANIC);
            }
        }
    }

    async fn run(self) {
        let _place = match &self.shared.places {
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        let parts = &self.shared.parts;
        let (started, began) = (parts.clock.now_seconds(), Instant::now());
        self.update(|told| {
            told.phase = Phase::Pulling;
            told.start_time = Some(Time(started));
        });
        let outcome = self.attempts(began).await;
        let now = parts.clock.now_seconds();
        let Place { image, tag } = &self.round.place;
        match outcome {
            Ok(id) => {
                self.update(|told| {
                    told.phase = Phase::Succeeded;
                    told.progress = Some(100);
                    told.completion_time = Some(Time(now));
                    told.image_id = Some(format!("{image}@{id}"));
                });
                let message = format!("Image {image}:{tag}, elapsedTime {}", GoDuration(began.elapsed()));
                self.tell(self.node_image(), Level::Normal, "PullImageSucceed", message);
            }
            Err(problem) => {
                self.update(|told| {
                    told.phase = Phase::Failed;
                    told.completion_time = Some(Time(now));
                    told.message = Some(problem.clone());
                });
                let message = format!("Image {image}:{tag} {problem}");
                for owner in self.owners() {
                    self.tell(owner, Level::Warning, "PullImageFailed", message.clone());
                }
                self.tell(self.node_image(), Level::Warning, "PullImageFailed", message);
            }
        }
    }

    /// All attempts. Gives the id of the image, or the last problem.
    async fn attempts(&self, began: Instant) -> Result<String, String> {
        let mut last = String::new();
        for number in 0.. {
            // The policy may be edited while we work.
            let (image, tag) = self.wanted().unwrap_or_else(|| (Image::default(), self.first.clone()));
            let policy = Policy::from(tag.pull_policy.as_ref());
            let patience = match policy.attempt(number, began.elapsed()) {
                Attempt::Try(patience) => patience,
                Attempt::TooLate => return Err("pulling exceeds the activeDeadlineSeconds".to_owned()),
                Attempt::Enough => break,
            };
            let Place { image: name, tag: text } = &self.round.place;
            match timeout(patience, self.attempt(&image, &tag, number)).await {
                Ok(Ok(id)) => return Ok(id),
                Ok(Err(problem)) => last = problem,
                Err(_) => last = format!("pulling image {name}:{text} is canceled"),
            }
            tracing::info!(image = %name, tag = %text, attempt = number, error = %last, "failed to pull an image");
            if number < policy.retries {
                sleep(pause(number)).await;
            }
        }
        Err(last)
    }

    async fn attempt(&self, image: &Image, tag: &Tag, number: u32) -> Result<String, String> {
        let parts = &self.shared.parts;
        let Place { image: name, tag: text } = &self.round.place;
        if tag.image_pull_policy != Some(ImagePullPolicy::Always) {
            let images = parts.runtime.images().await.map_err(|error| error.to_string())?;
            if let Some(found) = present(&images, name, text) {
                return Ok(found.id.clone());
            }
        }
        self.check_space().await?;
        let reference = full_reference(name, text);
        let config = image.sandbox_config.clone().unwrap_or_default();
        let mut pull = Pull {
            image: reference.clone(),
            auth: None,
            labels: config.labels,
            annotations: config.annotations,
        };
        pull.annotations.insert(PULLED_BY.0.to_owned(), PULLED_BY.1.to_owned());
        let accounts =
            parts.credentials.find(&reference, &repository(name), &image.pull_secrets, number > 0).await;
        if accounts.is_empty() {
            let pulled = parts.runtime.pull(&pull).await;
            return pulled.map_err(|error| format!("Failed to pull image reference {reference:?}: {error}"));
        }
        let mut problems = Vec::new();
        for auth in accounts {
            pull.auth = Some(auth);
            match parts.runtime.pull(&pull).await {
                Ok(id) => return Ok(id),
                Err(error) => problems.push(error.to_string()),
            }
        }
        problems.dedup();
        Err(if problems.len() > 1 { format!("[{}]", problems.join(", ")) } else { problems.concat() })
    }

    async fn check_space(&self) -> Result<(), String> {
        let parts = &self.shared.parts;
        if parts.space.percent == 0 {
            return Ok(());
        }
        // A runtime that cannot tell does not keep us from pulling.
        let folders = parts.runtime.image_file_systems().await.unwrap_or_default();
        let folders: Vec<String> = folders.into_iter().map(|one| one.mountpoint).collect();
        let problem = space::look(&folders).and_then(|space| parts.space.problem(space));
        problem.map_or(Ok(()), Err)
    }

    fn object(&self) -> Option<Arc<NodeImage>> {
        let parts = &self.shared.parts;
        parts.node_images.get(&parts.key)?.object.clone().ok()
    }

    /// The image and the tag as they are wanted now.
    fn wanted(&self) -> Option<(Image, Tag)> {
        let object = self.object()?;
        let (image, tag) = plan::wanted(&object.spec, &self.round)?;
        Some((image.clone(), tag.clone()))
    }

    /// Changes what is told, unless somebody else has this place by now.
    fn update(&self, change: impl FnOnce(&mut TagStatus)) {
        let mut state = self.shared.state();
        let version = self.round.version;
        let own = state.working.get_mut(&self.round.place);
        if let Some(working) = own.filter(|working| working.told.version.unwrap_or(0) == version) {
            change(&mut working.told);
            if let Some(queue) = &state.queue {
                queue.add_after(self.shared.parts.key.clone(), GATHER);
            }
        }
    }

    fn node_image(&self) -> ObjectRef {
        let Parts { node_images, key, .. } = &self.shared.parts;
        let uid = node_images.get(key).map(|object| object.metadata.uid.clone()).unwrap_or_default();
        ObjectRef { resource: NODE_IMAGE, key: key.clone(), uid }
    }

    fn owners(&self) -> Vec<ObjectRef> {
        let (_, tag) = self.wanted().unwrap_or_else(|| (Image::default(), self.first.clone()));
        let owner = |owner: kruise_api::nodeimage::v1beta1::OwnerReference| {
            let is_job = owner.kind.as_deref() == Some(IMAGE_PULL_JOB.kind);
            let key = ObjectKey::new(owner.namespace.unwrap_or_default(), owner.name.unwrap_or_default());
            let resource: Resource = IMAGE_PULL_JOB;
            is_job.then(|| ObjectRef { resource, key, uid: owner.uid.unwrap_or_default().into() })
        };
        tag.owner_references.into_iter().filter_map(owner).collect()
    }

    fn tell(&self, regarding: ObjectRef, level: Level, reason: &'static str, message: String) {
        let event = Event { regarding, level, reason: reason.into(), message };
        self.shared.parts.recorder.record(event);
    }
}
