//! What we know of one kind of objects: listed and watched once, indexed, shared by everybody.
//!
//! A [`Cache`] follows a kind with kube's watcher and keeps a [`View`] of each object. Reads are sorted, so that nothing
//! above depends on chance. Those who subscribe hear every change in order, after it can be read, deletions included,
//! also those that only a later list reveals. An object never goes back to an older version.

mod feed;
mod store;
mod trouble;
mod view;
mod wire;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use kruise_core::{
    object::{ObjectKey, Resource},
    text::Text,
};
use tokio::sync::Notify;

use crate::{
    decode::{Unread, contained},
    events::Recorder,
    metrics::Framework,
    scope::Stop,
};
pub use feed::UNREADABLE;
use store::Store;
pub use trouble::{Followed, Reason, Trouble};
pub use view::{Guarded, Plain, View, Whole};

/// What to follow, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only objects with these labels, as a selector.
    pub labels: Option<String>,
    /// Only objects with these fields, as a selector.
    pub fields: Option<String>,
    /// How many objects a page of a list has.
    pub page_size: u32,
    /// How often to list anew and tell subscribers of every object; never, unless given.
    pub resync: Option<Duration>,
    /// How long to wait after the first failure; each further one doubles it.
    pub backoff: Duration,
    /// The longest wait after a failure.
    pub max_backoff: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: None,
            labels: None,
            fields: None,
            page_size: 200,
            resync: None,
            backoff: Duration::from_millis(800),
            max_backoff: Duration::from_secs(30),
        }
    }
}

/// Something happened to an object.
#[derive(Clone, Debug)]
pub struct Change<V> {
    /// Which one.
    pub key: ObjectKey,
    /// What was known before.
    pub old: Option<Arc<V>>,
    /// What is known now; nothing when the object is gone.
    pub new: Option<Arc<V>>,
    /// Whether it comes from the first list (or is told again), so that it may be old news.
    pub initial: bool,
}

impl<V> Change<V> {
    /// The newest that is known of the object, also when it is gone.
    pub fn latest(&self) -> Option<&Arc<V>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

/// Writes the texts under which an object is found in an index.
pub type IndexFn<V> = fn(&V, &mut Vec<Text>);

type Subscriber<V> = Arc<dyn Fn(&Change<V>) + Send + Sync>;
type Listener = Arc<dyn Fn(News<'_>) + Send + Sync>;

/// What is known of one kind. Clones are the same cache.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use kruise_core::{object::POD, pod::Pod};
/// use kruise_runtime::cache::{Cache, Options};
///
/// let sim = kruise_sim::Sim::builder().start();
/// let pods = Cache::<Pod>::new(POD)
///     .with_index("node", |pod, keys| keys.push(pod.spec.node_name.clone()));
/// pods.subscribe(|change| println!("{}", change.key));
/// let run = pods.run(sim.client(), Options::default());
/// let read = async {
///     assert!(pods.synced(std::time::Duration::from_secs(10)).await);
///     assert!(pods.by_index("node", "node-1").is_empty());
/// };
/// tokio::select! { biased; () = read => {}, () = run => {} }
/// # }
/// ```
pub struct Cache<V> {
    inner: Arc<Inner<V>>,
}

struct Inner<V> {
    resource: Resource,
    store: RwLock<Store<V>>,
    /// Held while changes are told, so that someone who subscribes meanwhile misses nothing and hears nothing twice.
    subscribers: Mutex<(Vec<Subscriber<V>>, Vec<Listener>)>,
    synced: Notify,
    relist: Notify,
    wanted: Stop,
    metrics: Mutex<Option<Framework>>,
    trouble: Mutex<Option<Trouble>>,
    /// Where events about unreadable objects go.
    recorder: Mutex<Option<Recorder>>,
}

impl<V> Clone for Cache<V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<V> fmt::Debug for Cache<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cache").field("resource", &self.inner.resource).finish_non_exhaustive()
    }
}

impl<V: View> Cache<V> {
    /// An empty cache; [`Self::run`] fills it.
    pub fn new(resource: Resource) -> Self {
        let inner = Inner {
            resource,
            store: RwLock::new(Store::default()),
            subscribers: Mutex::default(),
            synced: Notify::new(),
            relist: Notify::new(),
            wanted: Stop::default(),
            metrics: Mutex::default(),
            trouble: Mutex::default(),
            recorder: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The same cache with one more way to find objects. To be called before [`Self::run`].
    #[must_use]
    pub fn with_index(self, name: &'static str, texts: IndexFn<V>) -> Self {
        self.write().add_index(name, texts);
        self
    }

    /// Counts objects and failures there.
    #[must_use]
    pub fn with_metrics(self, metrics: &Framework) -> Self {
        *self.inner.metrics.lock().unwrap_or_else(PoisonError::into_inner) = Some(metrics.clone());
        self
    }

    /// The kind.
    pub fn resource(&self) -> Resource {
        self.inner.resource
    }

    /// Calls `told` for every change from now on, in order, after it can be read. What is known already is told first.
    /// It is called from the task that feeds the cache: it must be quick, and must not subscribe.
    pub fn subscribe(&self, told: impl Fn(&Change<V>) + Send + Sync + 'static) {
        let mut subscribers = self.inner.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        for object in self.list() {
            let key = object.metadata().key();
            let change = Change { key, old: None, new: Some(object), initial: true };
            if contained(|| told(&change)).is_none() {
                self.panicked(&change.key, "a subscriber");
            }
        }
        subscribers.0.push(Arc::new(told));
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.read().objects.get(key).cloned()
    }

    /// All objects, sorted by namespace and name.
    pub fn list(&self) -> Vec<Arc<V>> {
        self.read().objects.values().cloned().collect()
    }

    /// All objects of a namespace, sorted by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        self.read().in_namespace(namespace)
    }

    /// All objects that an index has under a text, sorted by namespace and name.
    pub fn by_index(&self, index: &str, text: &str) -> Vec<Arc<V>> {
        self.read().by_index(index, text)
    }

    /// What could not be read of an object; nothing where all could.
    pub fn unread(&self, key: &ObjectKey) -> Option<Arc<[Unread]>> {
        self.read().unread_of(key)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// Says that somebody needs this kind; see [`Self::run_when_wanted`].
    pub fn want(&self) {
        self.inner.wanted.ask();
    }

    /// Waits until the first list is complete, but not longer than this. Tells whether it is.
    pub async fn synced(&self, patience: Duration) -> bool {
        let wait = async {
            loop {
                let mut told = std::pin::pin!(self.inner.synced.notified());
                told.as_mut().enable();
                if self.is_synced() {
                    return;
                }
                told.await;
            }
        };
        tokio::time::timeout(patience, wait).await.is_ok()
    }

    fn read(&self) -> RwLockReadGuard<'_, Store<V>> {
        self.inner.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Store<V>> {
        self.inner.store.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What freshness needs to know of a cache, whatever is in it.
pub trait Observed: Send + Sync {
    /// The kind.
    fn resource(&self) -> Resource;
    /// What is known of an object.
    fn seen(&self, key: &ObjectKey) -> Option<Seen>;
    /// Whether an object with this uid was here and has gone, not long ago.
    fn has_gone(&self, key: &ObjectKey, uid: &str) -> bool;
    /// Calls `told` at every piece of news, after the change can be read.
    fn listen(&self, told: Arc<dyn Fn(News<'_>) + Send + Sync>);
    /// Asks for a new list. The number is what [`Self::listed`] reaches once such a list is complete.
    fn ask_list(&self) -> u64;
    /// See [`Self::ask_list`].
    fn listed(&self) -> u64;
    /// What could not be read of an object, and whether that is something that decides.
    fn unread(&self, key: &ObjectKey) -> Option<(Arc<[Unread]>, bool)>;
}

/// What a cache knows of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The identity.
    pub uid: Text,
    /// The version.
    pub version: Text,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// What a cache tells freshness.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// Something about this object is new.
    Object(&'a ObjectKey),
    /// A list is complete.
    Listed,
}

impl<V: View> Observed for Cache<V> {
    fn resource(&self) -> Resource {
        self.inner.resource
    }

    fn seen(&self, key: &ObjectKey) -> Option<Seen> {
        self.read().objects.get(key).map(|object| {
            let metadata = object.metadata();
            Seen {
                uid: metadata.uid.clone(),
                version: metadata.resource_version.clone(),
                deleting: metadata.is_deleting(),
            }
        })
    }

    fn has_gone(&self, key: &ObjectKey, uid: &str) -> bool {
        self.read().has_gone(key, uid)
    }

    fn listen(&self, told: Arc<dyn Fn(News<'_>) + Send + Sync>) {
        self.inner.subscribers.lock().unwrap_or_else(PoisonError::into_inner).1.push(told);
    }

    fn ask_list(&self) -> u64 {
        let ticket = self.write().ask_list();
        self.inner.relist.notify_one();
        ticket
    }

    fn listed(&self) -> u64 {
        self.read().listed
    }

    fn unread(&self, key: &ObjectKey) -> Option<(Arc<[Unread]>, bool)> {
        let store = self.read();
        let unread = store.unread_of(key)?;
        let decides = store.objects.get(key).is_some_and(|object| object.metadata().unreadable);
        Some((unread, decides))
    }
}
