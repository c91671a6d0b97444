//! From what there is to what to do next. The rules are told in the documentation of [`certificates`](super).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::authority::Authority;
use super::bundle;
use super::registration::{self, Crd, Kind, Wanted};
use super::store::{Data, PREVIOUS, Store};
use super::{Environment, Mode, Pair, validity};

/// How long API servers get to learn of a bundle that they watch.
pub const SETTLE: Duration = Duration::from_secs(5);
/// An authority with less than this left signs nothing more.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The most previous authorities that are remembered. More renewals than this in ten years are someone's mistake.
const MOST_PREVIOUS: usize = 8;

/// Everything the plan may know.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// The time.
    pub now: Timestamp,
    /// Where the webhooks are.
    pub environment: &'a Environment,
    /// Where certificates are kept; [`Mode::External`] has a [plan of its own](super::external).
    pub mode: Mode,
    /// What is stored, read after everything below.
    pub stored: Option<&'a Data>,
    /// What this replica serves.
    pub served: Option<&'a Pair>,
    /// What the last plan found.
    pub found: Option<&'a Found>,
    /// The configuration of mutating webhooks.
    pub mutating: Option<&'a Value>,
    /// The configuration of validating webhooks.
    pub validating: Option<&'a Value>,
    /// Our CRDs, as many as there are.
    pub crds: &'a [Crd],
    /// What belongs into the configurations.
    pub wanted: &'a Wanted,
    /// Whether this replica adds and removes entries of the configurations.
    pub leads: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Make a certificate, store it, and look again.
    Make(Make),
    /// Store this, and look again.
    Keep(Data),
    /// Publish and serve.
    Publish(Box<Publish>),
}

/// A certificate to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Make {
    /// Who signs; a new authority when there is none.
    pub authority: Option<Authority>,
    /// The authorities that stay trusted.
    pub previous: Vec<bundle::Authority>,
    /// The name to cover.
    pub name: String,
    /// Why.
    pub why: String,
}

impl Make {
    /// Makes it: everything that is to be stored.
    pub fn make(&self, now: Timestamp) -> Result<Data, super::authority::Error> {
        let store = Store::make(self.authority.as_ref(), self.previous.clone(), &self.name, now)?;
        Ok(store.write())
    }
}

/// What to write, and what to serve.
#[derive(Clone, Debug, PartialEq)]
pub struct Publish {
    /// Configurations as they should be, with the versions that were read.
    pub configurations: Vec<(Kind, Value)>,
    /// CRDs whose conversion is to be changed.
    pub conversions: Vec<Conversion>,
    /// What to serve.
    pub serve: Serve,
    /// The authorities to trust, as PEM.
    pub bundle: String,
    /// For the next plan.
    pub found: Option<Found>,
    /// When to look again, if not as usual.
    pub wake_after: Option<Duration>,
    /// What keeps the work from being complete.
    pub problems: Vec<String>,
}

/// An authority that stands in all bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which one, as PEM. The next one has to be found anew.
    pub authority: String,
    /// Since when this replica finds it.
    pub since: Timestamp,
}

/// `spec.conversion` of a CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// Which CRD.
    pub name: String,
    /// The version that was read.
    pub resource_version: String,
    /// The new value.
    pub conversion: Value,
}

/// What this replica serves from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serve {
    /// What it serves already.
    Same,
    /// This.
    Now(Pair),
    /// This, once everything is written.
    AfterWrites(Pair),
}

/// What to do next.
pub fn plan(seen: &Observed<'_>) -> Plan {
    let name = seen.environment.name();
    let due = after(seen.now, seen.environment.renew_before);
    let Some(data) = seen.stored else {
        let why = "nothing is stored".to_owned();
        return Plan::Make(Make { authority: None, previous: previous(seen, None, None), name, why });
    };
    let store = Store::read(data);
    if let Err(problem) = validity::check(&store.pair, &name, due) {
        // An authority that runs out before the next certificate is due would make it invalid again.
        let needed = due.max(after(seen.now, YEAR));
        let authority = Some(store.authority()).filter(|authority| authority.can_sign_until(needed));
        let current = authority.as_ref().and_then(|authority| first(&authority.certificate));
        let previous = previous(seen, Some(&store), current.as_ref());
        return Plan::Make(Make { authority, previous, name, why: problem.to_string() });
    }
    let current = first(&store.pair.authority);
    let kept = Store { previous: previous(seen, Some(&store), current.as_ref()), ..store };
    let complete = completed(data, &kept);
    if complete != *data {
        return Plan::Keep(complete);
    }
    publish(seen, &kept, current)
}

fn publish(seen: &Observed<'_>, store: &Store, current: Option<bundle::Authority>) -> Plan {
    let bundle = bundle::to_base64(&store.pair.authority, &store.previous);
    let mut problems = Vec::new();
    let mut configurations = Vec::new();
    for (kind, object) in [(Kind::Mutating, seen.mutating), (Kind::Validating, seen.validating)] {
        let Some(object) = object else {
            problems.push(kind.missing());
            continue;
        };
        match registration::register(kind, object, seen.environment, &bundle, seen.wanted, seen.leads) {
            Ok(changed) => configurations.extend(changed.map(|changed| (kind, changed))),
            Err(problem) => problems.push(problem),
        }
    }
    let conversions = seen
        .crds
        .iter()
        .filter_map(|crd| {
            Some(Conversion {
                name: crd.name.clone(),
                resource_version: crd.resource_version.clone(),
                conversion: crd.register(seen.environment, &bundle)?,
            })
        })
        .collect();

    let is_found =
        published(seen).iter().all(|trusted| current.iter().all(|current| trusted.contains(current)));
    let found = is_found.then(|| {
        let known = seen.found.filter(|found| found.authority == store.pair.authority);
        let since = known.map_or(seen.now, |found| found.since);
        Found { authority: store.pair.authority.clone(), since }
    });
    let (serve, wake_after) = serve(seen, store, current.as_ref(), found.as_ref());
    Plan::Publish(Box::new(Publish {
        configurations,
        conversions,
        serve,
        bundle: bundle::to_pem(&store.pair.authority, &store.previous),
        found,
        wake_after,
        problems,
    }))
}

/// What to serve, and when to decide again if it is too early.
fn serve(
    seen: &Observed<'_>,
    store: &Store,
    current: Option<&bundle::Authority>,
    found: Option<&Found>,
) -> (Serve, Option<Duration>) {
    let usable = |served: &&Pair| validity::check(served, &seen.environment.name(), seen.now).is_ok();
    let Some(served) = seen.served.filter(usable) else {
        return (Serve::AfterWrites(store.pair.clone()), None);
    };
    if *served == store.pair {
        return (Serve::Same, None);
    }
    if first(&served.authority).as_ref() == current {
        return (Serve::Now(store.pair.clone()), None);
    }
    let waited = found.map(|found| seen.now.duration_since(found.since).unsigned_abs());
    match waited {
        Some(waited) if waited >= SETTLE => (Serve::Now(store.pair.clone()), None),
        waited => (Serve::Same, Some(SETTLE.saturating_sub(waited.unwrap_or_default()))),
    }
}

/// The authorities that stay trusted beside the current one, newest first.
fn previous(
    seen: &Observed<'_>,
    store: Option<&Store>,
    current: Option<&bundle::Authority>,
) -> Vec<bundle::Authority> {
    let mut all: Vec<bundle::Authority> = Vec::new();
    all.extend(store.into_iter().flat_map(|store| store.previous.clone()));
    all.extend(store.and_then(|store| first(&store.pair.authority)));
    all.extend(seen.served.and_then(|served| first(&served.authority)));
    for trusted in published(seen) {
        // Beside the current authority stands what the Secret says, and nothing else. Where it is missing, replicas may
        // still serve certificates of those that are there. Files are of one replica, and others have their own.
        let is_told = current.is_some_and(|current| trusted.contains(current));
        if !is_told || seen.mode == Mode::Files {
            all.extend(trusted);
        }
    }
    all.retain(|authority| authority.is_valid(seen.now) && Some(authority) != current);
    all.sort_by(|a, b| b.begins().cmp(&a.begins()).then_with(|| a.to_pem().cmp(&b.to_pem())));
    all.dedup();
    all.truncate(MOST_PREVIOUS);
    all
}

/// What each of our webhooks and each CRD trusts today.
fn published(seen: &Observed<'_>) -> Vec<Vec<bundle::Authority>> {
    let configurations = [seen.mutating, seen.validating].into_iter().flatten();
    let webhooks =
        configurations.flat_map(|object| registration::trusted(object, seen.wanted, seen.environment));
    let crds = seen.crds.iter().filter(|crd| crd.is_converted()).map(Crd::trusted);
    webhooks.chain(crds).collect()
}

/// What is stored with everything that belongs there. Keys of others stay.
fn completed(data: &Data, store: &Store) -> Data {
    let mut complete = data.clone();
    complete.remove(PREVIOUS);
    complete.extend(store.write());
    complete
}

fn first(pem: &str) -> Option<bundle::Authority> {
    bundle::parse(pem.as_bytes()).into_iter().next()
}

fn after(now: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    now.checked_add(duration).unwrap_or(Timestamp::MAX)
}
