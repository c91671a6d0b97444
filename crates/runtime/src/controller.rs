//! The shell around every controller: which news wakes which key, and what happens to a key.
//!
//! A key is taken from the queue, the gate of [freshness](crate::freshness) is asked, and the controller's function
//! looks, plans and acts. A panic in it is caught, counted and tried again later like any error; one broken object never
//! takes the process down.
//!
//! ```no_run
//! use kruise_core::{object::POD, pod::Pod};
//! use kruise_runtime::{cache::Cache, controller::{Controller, Environment, Next}};
//!
//! fn controller(environment: &Environment, pods: &Cache<Pod>) -> Controller {
//!     let all = pods.clone();
//!     Controller::new("example-controller", environment)
//!         .workers(3)
//!         .follow(pods)
//!         .wake(pods, |change, wake| wake(change.key.clone()))
//!         .reconcile(move |context, key| {
//!             let pods = all.clone();
//!             async move {
//!                 let Some(_pod) = pods.get(&key) else { return Ok(Next::Forget) };
//!                 context.act(&key, &[]).await?;
//!                 Ok(Next::Done)
//!             }
//!         })
//! }
//! ```

mod work;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use kruise_core::{
    effect::{Effect, Endpoint},
    object::ObjectKey,
};

use crate::{
    cache::{Cache, Change, Observed, View},
    clock::Clock,
    effects::{self, Executor},
    events::Events,
    freshness::Freshness,
    lease::Fence,
    metrics::Framework,
    queue::{self, Priority, Queue},
    random::Random,
    scope::BoxError,
};

/// What all controllers of a program share.
#[derive(Clone)]
pub struct Environment {
    /// Their way to the cluster; without retries of its own.
    pub client: kube::Client,
    /// The time of day.
    pub clock: Clock,
    /// Random numbers.
    pub random: Random,
    /// Numbers for dashboards.
    pub metrics: Framework,
    /// Where events go.
    pub events: Events,
    /// Whether this process may write.
    pub fence: Fence,
    /// How long a cache may take to show an own write.
    pub patience: Duration,
    /// Rate and bounds of writes, for each controller.
    pub writes: effects::Options,
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Environment").field("patience", &self.patience).finish_non_exhaustive()
    }
}

/// When a key comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When something changes.
    Done,
    /// When something changes, or after this time.
    After(Duration),
    /// Never: its object is gone, and so is all that we remember about it.
    Forget,
}

impl From<Option<Duration>> for Next {
    fn from(after: Option<Duration>) -> Self {
        after.map_or(Self::Done, Self::After)
    }
}

/// Why a reconcile did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Some effects did not happen.
    #[error(transparent)]
    Effects(#[from] effects::Error),
    /// Trying again cannot help before someone changes the object.
    #[error("{0}")]
    Terminal(#[source] BoxError),
    /// Anything else: tried again later.
    #[error("{0}")]
    Other(#[source] BoxError),
}

impl Error {
    /// An error that trying again cannot help.
    pub fn terminal(error: impl Into<BoxError>) -> Self {
        Self::Terminal(error.into())
    }

    /// An error that may go away.
    pub fn other(error: impl Into<BoxError>) -> Self {
        Self::Other(error.into())
    }
}

/// What a reconcile may use besides its caches. Clones are the same.
#[derive(Clone, Debug)]
pub struct Context {
    executor: Executor,
    clock: Clock,
    random: Random,
    queue: Queue,
}

impl Context {
    /// Carries out a plan.
    pub async fn act(&self, key: &ObjectKey, effects: &[Effect]) -> Result<(), effects::Error> {
        self.try_act(key, effects).await.ok()
    }

    /// Carries out a plan and tells how it went, for those who write a status all the same.
    pub async fn try_act(&self, key: &ObjectKey, effects: &[Effect]) -> effects::Outcome {
        if effects.is_empty() {
            return effects::Outcome::default();
        }
        self.executor.act(key, effects).await
    }

    /// How many writes to a resource have room within this time, at least one.
    pub fn room(&self, endpoint: Endpoint, within: Duration) -> usize {
        self.executor.room(endpoint, within)
    }

    /// Keeps the key from coming again before this time has passed, whatever happens meanwhile.
    pub fn rest(&self, key: &ObjectKey, time: Duration) {
        self.queue.rest(key, time);
    }

    /// Brings the key back after this time at the latest, also if its pass fails: a key that failed often waits for long.
    pub fn again(&self, key: &ObjectKey, after: Duration) {
        self.queue.add_after(key.clone(), after);
    }

    /// The time of day.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Random numbers, as an input of plans.
    pub fn random(&self) -> &Random {
        &self.random
    }
}

/// Wakes keys of a controller. Clones are the same.
#[derive(Clone, Debug)]
pub struct Waker(Queue);

impl Waker {
    /// Wakes a key; later than others where it comes from a first list.
    pub fn wake(&self, key: ObjectKey, is_initial: bool) {
        self.0.add_with(key, if is_initial { Priority::Low } else { Priority::Normal });
    }
}

type Reconciling = Pin<Box<dyn Future<Output = Result<Next, Error>> + Send>>;
type Reconcile = Arc<dyn Fn(Context, ObjectKey) -> Reconciling + Send + Sync>;

/// A controller that is being described; [`Builder::reconcile`] completes it.
#[derive(Debug)]
pub struct Builder {
    name: &'static str,
    environment: Environment,
    workers: usize,
    queue: Queue,
    freshness: Freshness,
}

impl Builder {
    /// How many keys may be worked on at once. Default: 3.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How far failures push a key back. To be called first.
    #[must_use]
    pub fn queue(self, options: queue::Options) -> Self {
        let Self { name, environment, workers, .. } = self;
        let (queue, freshness) = parts(name, &environment, options);
        Self { name, environment, workers, queue, freshness }
    }

    /// Own writes to objects of this cache are waited for.
    #[must_use]
    pub fn follow<V: View>(self, cache: &Cache<V>) -> Self {
        self.freshness.follow(Arc::new(cache.clone()));
        self
    }

    /// The same for what is no single cache, such as one for each name.
    #[must_use]
    pub fn follow_all(self, caches: Arc<dyn Observed>) -> Self {
        self.freshness.follow(caches);
        self
    }

    /// Calls this for a key whose own writes a cache did not show in time.
    #[must_use]
    pub fn on_overdue(self, told: impl Fn(&ObjectKey) + Send + Sync + 'static) -> Self {
        self.freshness.on_overdue(told);
        self
    }

    /// Says which keys a change in a cache wakes. Keys of a first list come after all others.
    #[must_use]
    pub fn wake<V: View>(
        self,
        cache: &Cache<V>,
        keys: impl Fn(&Change<V>, &mut dyn FnMut(ObjectKey)) + Send + Sync + 'static,
    ) -> Self {
        let queue = self.queue.clone();
        cache.subscribe(move |change| {
            let priority = if change.initial { Priority::Low } else { Priority::Normal };
            keys(change, &mut |key| queue.add_with(key, priority));
        });
        self
    }

    /// The same where many caches come and go: whoever has them is given what wakes a key. Keys of a first list come after all
    /// others.
    #[must_use]
    pub fn wake_by(self, subscribe: impl FnOnce(Waker)) -> Self {
        subscribe(Waker(self.queue.clone()));
        self
    }

    /// What to do with a key: look, plan, act.
    pub fn reconcile<F>(
        self,
        reconcile: impl Fn(Context, ObjectKey) -> F + Send + Sync + 'static,
    ) -> Controller
    where
        F: Future<Output = Result<Next, Error>> + Send + 'static,
    {
        let Self { name, environment, workers, queue, freshness } = self;
        let Environment { client, clock, random, metrics, events, fence, writes, .. } = environment;
        let recorder = events.recorder(name);
        let executor =
            Executor::new(name, client, freshness.clone(), recorder, fence, writes, metrics.clone());
        let context = Context { executor, clock, random, queue: queue.clone() };
        let reconcile: Reconcile = Arc::new(move |context, key| Box::pin(reconcile(context, key)));
        Controller { name, workers, queue, freshness, context, metrics, reconcile }
    }
}

fn parts(name: &'static str, environment: &Environment, options: queue::Options) -> (Queue, Freshness) {
    let metrics = Some(environment.metrics.clone());
    let queue = Queue::new(name, options, metrics.clone());
    let freshness = Freshness::new(name, queue.clone(), environment.patience, metrics);
    (queue, freshness)
}

/// A controller that is ready to run.
pub struct Controller {
    name: &'static str,
    workers: usize,
    queue: Queue,
    freshness: Freshness,
    context: Context,
    metrics: Framework,
    reconcile: Reconcile,
}

impl fmt::Debug for Controller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Controller").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Controller {
    /// Begins to describe a controller. The name is that of its metrics, its events and its user agent.
    #[expect(clippy::new_ret_no_self, reason = "a controller without its function is not one yet")]
    pub fn new(name: &'static str, environment: &Environment) -> Builder {
        let (queue, freshness) = parts(name, environment, queue::Options::default());
        Builder { name, environment: environment.clone(), workers: 3, queue, freshness }
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its queue, for timers and tests.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }
}
