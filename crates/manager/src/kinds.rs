//! Which kinds cannot be read, and who waits for them.
//!
//! A missing permission, a broken conversion webhook or a server that fails for one kind stop only the controllers that
//! need the kind: they begin by themselves once it can be read. Everything else goes on. Meanwhile the reason is in the
//! log, in an event of the manager's namespace, in a metric and in the details of `/readyz?verbose`. The manager stays
//! ready, because without it nobody would answer webhooks.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_core::{
    effect::{Event, Level},
    features,
    object::{NAMESPACE, ObjectKey, ObjectRef, Resource},
};
use kruise_runtime::{
    cache::{Followed, Plain, Reason, Trouble},
    live,
    metrics::{Gauge, Registry},
};
use tokio::time::Instant;

use crate::{caches::Caches, definitions, shared::Shared};

/// How often the caches are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A failure that lasts longer is reported. Servers that start fail for a moment.
const LASTING: Duration = Duration::from_secs(10);
/// A first list that takes longer is reported, although nothing failed.
const SLOW: Duration = Duration::from_secs(30);
/// How often it is reported again while it lasts.
const REMIND_EVERY: Duration = Duration::from_secs(30 * 60);

/// Which kinds cannot be read. Clones are the same.
#[derive(Clone)]
pub struct Kinds(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    unreadable: Gauge,
}

#[derive(Default)]
struct State {
    problems: BTreeMap<String, Problem>,
    /// Since when kinds are awaited whose first list is not complete.
    awaited: BTreeMap<String, Instant>,
    /// Controllers that have begun.
    begun: BTreeSet<&'static str>,
}

/// Why a kind cannot be read.
struct Problem {
    reason: Reason,
    /// One sentence for people.
    line: String,
    reported: Instant,
}

impl fmt::Debug for Kinds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Kinds").field(&self.report()).finish()
    }
}

/// The name of a kind, as roles and `kubectl` write it.
fn name(resource: Resource) -> String {
    let Resource { group, plural, .. } = resource;
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

impl Kinds {
    /// Nothing is known yet.
    pub fn new(registry: &Registry) -> Self {
        let unreadable = registry.gauge(
            "kruise_kind_unreadable",
            "Kinds that cannot be read, by reason: 1 while it lasts.",
            &["kind", "reason"],
        );
        Self(Arc::new(Inner { state: Mutex::default(), unreadable }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One sentence for each kind that cannot be read.
    pub fn report(&self) -> Vec<String> {
        self.state().problems.values().map(|problem| problem.line.clone()).collect()
    }

    /// Why a kind cannot be read, where that lasts.
    pub fn problem(&self, resource: Resource) -> Option<String> {
        self.state().problems.get(&name(resource)).map(|problem| problem.line.clone())
    }

    /// A controller waits for nothing any more.
    pub(crate) fn has_begun(&self, controller: &'static str) {
        self.state().begun.insert(controller);
    }

    /// Looks at the caches for ever.
    pub(crate) async fn run(&self, shared: &Shared) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let lines = self.look(shared);
            if lines.is_empty() {
                continue;
            }
            let regarding = own_namespace(shared).await;
            let recorder = shared.events.recorder("kruise-manager");
            for message in lines {
                let regarding = regarding.clone();
                recorder.record(Event {
                    regarding,
                    level: Level::Warning,
                    reason: "KindUnreadable".into(),
                    message,
                });
            }
        }
    }

    /// Brings what is known up to date. Returns what people should hear.
    fn look(&self, shared: &Shared) -> Vec<String> {
        let watched = features::watches(&shared.settings.gates);
        let mut told = Vec::new();
        let mut state = self.state();
        for cache in shared.caches.all() {
            let resource = cache.resource();
            let kind = name(resource);
            let is_followed = match Caches::is_on_demand(resource) {
                true => cache.is_wanted(),
                false => watched.contains(&resource),
            };
            let is_missing = definitions::name(resource)
                .is_some_and(|definition| shared.definitions.is_missing(&definition));
            let found = (is_followed && !is_missing).then(|| state.trouble(&kind, cache)).flatten();
            let known = state.problems.get(&kind);
            match found {
                None => {
                    if known.is_some() {
                        tracing::info!(kind, "can be read now");
                    }
                    state.problems.remove(&kind);
                    self.show(&kind, None);
                }
                Some((reason, what)) => {
                    let line = format!("{what}{}", state.whom(shared, resource, cache.is_synced()));
                    let is_news = known.is_none_or(|known| {
                        known.reason != reason || known.reported.elapsed() >= REMIND_EVERY
                    });
                    let reported = match known {
                        Some(known) if !is_news => known.reported,
                        _ => Instant::now(),
                    };
                    if is_news {
                        tracing::warn!(kind, reason = reason.as_str(), "{line}");
                        told.push(line.clone());
                    }
                    state.problems.insert(kind.clone(), Problem { reason, line, reported });
                    self.show(&kind, Some(reason));
                }
            }
        }
        told
    }

    /// Sets the metric of a kind. A series that was never 1 is not there.
    fn show(&self, kind: &str, reason: Option<Reason>) {
        for other in Reason::ALL {
            let labels = [kind, other.as_str()];
            let is_now = reason == Some(other);
            if is_now || self.0.unreadable.value(&labels) > 0.0 {
                self.0.unreadable.set(&labels, if is_now { 1.0 } else { 0.0 });
            }
        }
    }
}

impl State {
    /// What keeps a kind from being read, and in which words.
    fn trouble(&mut self, kind: &str, cache: &dyn Followed) -> Option<(Reason, String)> {
        if cache.is_synced() {
            self.awaited.remove(kind);
        }
        if let Some(trouble) = cache.trouble() {
            let is_settled = trouble.reason == Reason::Forbidden || trouble.since.elapsed() >= LASTING;
            return is_settled.then(|| (trouble.reason, explained(kind, &trouble)));
        }
        if cache.is_synced() {
            return None;
        }
        let since = *self.awaited.entry(kind.to_owned()).or_insert_with(Instant::now);
        (since.elapsed() >= SLOW)
            .then(|| (Reason::Timeout, format!("cannot list {kind}: no complete answer within {SLOW:?}")))
    }

    /// Who waits for a kind, as the end of a sentence.
    fn whom(&self, shared: &Shared, resource: Resource, is_synced: bool) -> String {
        let needing = features::controllers(&shared.settings.gates)
            .filter(|(feature, _)| feature.watches.contains(&resource))
            .map(|(_, controller)| controller.name);
        let (begun, waiting): (Vec<&str>, Vec<&str>) = needing.partition(|name| self.begun.contains(name));
        let mut text = String::new();
        if !waiting.is_empty() && !is_synced {
            text = format!("; controllers waiting: {}", waiting.join(", "));
        }
        if !begun.is_empty() {
            text.push_str(&format!("; controllers working with what was read before: {}", begun.join(", ")));
        }
        text
    }
}

fn explained(kind: &str, trouble: &Trouble) -> String {
    let Trouble { reason, verb, message, .. } = trouble;
    match (reason, *verb) {
        // Who may not list may mostly not watch either, and should not have to find that out one by one.
        (Reason::Forbidden, "list") => {
            let place = place(message);
            format!("cannot list {kind} {place}: the ServiceAccount lacks `list` and `watch` on it")
        }
        (Reason::Forbidden, verb) => {
            let place = place(message);
            format!("cannot {verb} {kind} {place}: the ServiceAccount lacks `{verb}` on it")
        }
        (Reason::NotServed, verb) => format!("cannot {verb} {kind}: the API server does not serve it"),
        (_, verb) => format!("cannot {verb} {kind}: {message}"),
    }
}

/// Where something was refused, as the server says at the end of its sentence.
fn place(message: &str) -> String {
    let namespace = message.split_once("in the namespace \"").and_then(|(_, rest)| rest.split('"').next());
    namespace.map_or_else(|| "at cluster scope".to_owned(), |name| format!("in namespace {name}"))
}

/// The manager's namespace as the subject of an event.
async fn own_namespace(shared: &Shared) -> ObjectRef {
    let key = ObjectKey::cluster(shared.settings.environment.namespace.as_str());
    let found = live::get::<Plain>(&shared.client, NAMESPACE, &key).await.ok().flatten();
    let uid = found.map(|namespace| namespace.metadata.uid).unwrap_or_default();
    ObjectRef { resource: NAMESPACE, key, uid }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(reason: Reason, verb: &'static str, message: &str) -> Trouble {
        let now = Instant::now();
        Trouble { reason, verb, message: message.to_owned(), since: now, last: now }
    }

    #[test]
    fn a_missing_permission_is_named_with_its_place() {
        let said = |verb, message| {
            explained("nodeimages.apps.kruise.io", &trouble(Reason::Forbidden, verb, message))
        };
        let everywhere = "nodeimages.apps.kruise.io is forbidden: User \"u\" cannot list resource \"nodeimages\" in API group \
                          \"apps.kruise.io\" at the cluster scope";
        assert_eq!(
            said("list", everywhere),
            "cannot list nodeimages.apps.kruise.io at cluster scope: the ServiceAccount lacks `list` and `watch` on it"
        );
        assert_eq!(
            said("watch", "cannot watch resource \"nodeimages\" in API group \"\" in the namespace \"shop\""),
            "cannot watch nodeimages.apps.kruise.io in namespace shop: the ServiceAccount lacks `watch` on it"
        );
        assert_eq!(
            explained("pods", &trouble(Reason::ServerError, "list", "etcdserver: no leader")),
            "cannot list pods: etcdserver: no leader"
        );
    }
}
