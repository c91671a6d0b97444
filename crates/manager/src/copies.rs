//! The objects of the names that ResourceDistributions distribute: one watch for each kind and name, over all namespaces, with
//! the field selector `metadata.name`. All other Secrets and ConfigMaps of a cluster are never sent to us
//! (`docs/decisions/0016-copies-are-watched-by-name.md`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use kruise_core::{
    object::{ObjectKey, Resource},
    resourcedistribution::Found,
    text::Text,
};
use kruise_runtime::{
    cache::{Cache, Change, News, Observed, Options, Seen},
    decode::Unread,
    scope::Stop,
};
use kube::Client;
use tokio::sync::Notify;

/// How many copies a page of a list has: each may have a megabyte.
const PAGE: u32 = 50;

/// What is known of the objects of distributed names. Clones are the same.
#[derive(Clone, Default)]
pub struct Copies(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    news: Notify,
}

type Subscriber = Arc<dyn Fn(Resource, &Change<Found>) + Send + Sync>;
type Listener = Arc<dyn Fn(News<'_>) + Send + Sync>;

#[derive(Default)]
struct State {
    watches: BTreeMap<(Resource, Text), Watch>,
    /// What each ResourceDistribution needs.
    wanted: BTreeMap<ObjectKey, (Resource, Text)>,
    subscribers: Vec<Subscriber>,
    listeners: BTreeMap<Resource, Vec<Listener>>,
    /// Lists that were asked for, with the number that each cache reaches, by kind.
    lists: BTreeMap<Resource, Vec<Vec<(Text, u64)>>>,
    /// How many of them are complete.
    listed: BTreeMap<Resource, u64>,
}

/// The objects of one kind and name.
struct Watch {
    cache: Cache<Found>,
    users: BTreeSet<ObjectKey>,
    end: Stop,
    /// Whether somebody follows it already.
    is_followed: bool,
}

impl fmt::Debug for Copies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.state().watches.keys()).finish()
    }
}

impl Copies {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects of a kind and name, which a ResourceDistribution needs from now on, and no others.
    pub fn want(&self, user: &ObjectKey, resource: Resource, name: &Text) -> Cache<Found> {
        let place = (resource, name.clone());
        let mut state = self.state();
        if state.wanted.get(user) != Some(&place) {
            state.release(user);
            state.wanted.insert(user.clone(), place.clone());
        }
        if let Some(watch) = state.watches.get_mut(&place) {
            watch.users.insert(user.clone());
            return watch.cache.clone();
        }
        let cache = Cache::<Found>::new(resource);
        // Nobody else knows this cache yet, so nothing is told while the state is held.
        for told in &state.subscribers {
            attach(&cache, told.clone());
        }
        for told in state.listeners.get(&resource).into_iter().flatten() {
            cache.listen(told.clone());
        }
        let users = BTreeSet::from([user.clone()]);
        let watch = Watch { cache: cache.clone(), users, end: Stop::default(), is_followed: false };
        state.watches.insert(place, watch);
        drop(state);
        self.0.news.notify_one();
        cache
    }

    /// A ResourceDistribution needs nothing any more.
    pub fn release(&self, user: &ObjectKey) {
        self.state().release(user);
    }

    /// How many names are watched.
    pub fn len(&self) -> usize {
        self.state().watches.len()
    }

    /// How many objects of these names are known.
    pub fn objects(&self) -> usize {
        self.state().watches.values().map(|watch| watch.cache.len()).sum()
    }

    /// Whether no name is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `told` for every change of every name, from now on.
    pub fn subscribe(&self, told: impl Fn(Resource, &Change<Found>) + Send + Sync + 'static) {
        let told: Subscriber = Arc::new(told);
        let known: Vec<Cache<Found>> = {
            let mut state = self.state();
            state.subscribers.push(told.clone());
            state.watches.values().map(|watch| watch.cache.clone()).collect()
        };
        known.iter().for_each(|cache| attach(cache, told.clone()));
    }

    /// All names of a kind, for those who wait until they can read their own writes.
    pub fn of_kind(&self, resource: Resource) -> Arc<dyn Observed> {
        Arc::new(OfKind { copies: self.clone(), resource })
    }

    /// Follows all names that are wanted, until it is dropped.
    pub async fn run(&self, client: Client, options: Options) {
        // What another run followed, which ended, is followed again.
        self.state().watches.values_mut().for_each(|watch| watch.is_followed = false);
        let mut running = FuturesUnordered::new();
        loop {
            for (name, cache, end) in self.state().begin() {
                let fields = Some(format!("metadata.name={name}"));
                let options = Options { fields, page_size: PAGE, ..options.clone() };
                let client = client.clone();
                running.push(async move {
                    tokio::select! {
                        () = cache.run(client, options) => {}
                        () = end.asked() => {}
                    }
                });
            }
            tokio::select! {
                Some(()) = running.next() => {}
                () = self.0.news.notified() => {}
            }
        }
    }
}

fn attach(cache: &Cache<Found>, told: Subscriber) {
    let resource = cache.resource();
    cache.subscribe(move |change| told(resource, change));
}

impl State {
    fn release(&mut self, user: &ObjectKey) {
        let Some(place) = self.wanted.remove(user) else { return };
        let Some(watch) = self.watches.get_mut(&place) else { return };
        watch.users.remove(user);
        if watch.users.is_empty() {
            watch.end.ask();
            self.watches.remove(&place);
        }
    }

    /// What nobody follows yet.
    fn begin(&mut self) -> Vec<(Text, Cache<Found>, Stop)> {
        let new = self.watches.iter_mut().filter(|(_, watch)| !watch.is_followed);
        new.map(|((_, name), watch)| {
            watch.is_followed = true;
            (name.clone(), watch.cache.clone(), watch.end.clone())
        })
        .collect()
    }

    fn of_kind(&self, resource: Resource) -> impl Iterator<Item = (&Text, &Cache<Found>)> {
        let of_kind = self.watches.iter().filter(move |((kind, _), _)| *kind == resource);
        of_kind.map(|((_, name), watch)| (name, &watch.cache))
    }
}

/// All names of a kind as one cache.
struct OfKind {
    copies: Copies,
    resource: Resource,
}

impl OfKind {
    fn cache(&self, name: &Text) -> Option<Cache<Found>> {
        let place = (self.resource, name.clone());
        self.copies.state().watches.get(&place).map(|watch| watch.cache.clone())
    }
}

impl Observed for OfKind {
    fn resource(&self) -> Resource {
        self.resource
    }

    fn seen(&self, key: &ObjectKey) -> Option<Seen> {
        self.cache(&key.name)?.seen(key)
    }

    fn has_gone(&self, key: &ObjectKey, uid: &str) -> bool {
        self.cache(&key.name).is_some_and(|cache| cache.has_gone(key, uid))
    }

    fn listen(&self, told: Listener) {
        let known: Vec<Cache<Found>> = {
            let mut state = self.copies.state();
            state.listeners.entry(self.resource).or_default().push(told.clone());
            state.of_kind(self.resource).map(|(_, cache)| cache.clone()).collect()
        };
        known.iter().for_each(|cache| cache.listen(told.clone()));
    }

    fn ask_list(&self) -> u64 {
        let mut state = self.copies.state();
        let tickets = state.of_kind(self.resource).map(|(name, cache)| (name.clone(), cache.ask_list()));
        let tickets: Vec<(Text, u64)> = tickets.collect();
        let lists = state.lists.entry(self.resource).or_default();
        lists.push(tickets);
        let open = u64::try_from(lists.len()).unwrap_or(u64::MAX);
        state.listed.get(&self.resource).copied().unwrap_or_default().saturating_add(open)
    }

    fn listed(&self) -> u64 {
        let mut state = self.copies.state();
        let reached: BTreeMap<Text, u64> =
            state.of_kind(self.resource).map(|(name, cache)| (name.clone(), cache.listed())).collect();
        let lists = state.lists.entry(self.resource).or_default();
        // A name that nobody wants any more is waited for by nobody.
        let is_complete = |tickets: &[(Text, u64)]| {
            tickets.iter().all(|(name, ticket)| reached.get(name).is_none_or(|listed| listed >= ticket))
        };
        let complete = lists.iter().take_while(|tickets| is_complete(tickets)).count();
        lists.drain(..complete);
        let listed = state.listed.entry(self.resource).or_default();
        *listed = listed.saturating_add(u64::try_from(complete).unwrap_or(u64::MAX));
        *listed
    }

    fn unread(&self, key: &ObjectKey) -> Option<(Arc<[Unread]>, bool)> {
        Observed::unread(&self.cache(&key.name)?, key)
    }
}
