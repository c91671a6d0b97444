//! Which changes wake which spreads.

use kruise_core::{
    advancedcronjob::Job,
    object::{JOB, ObjectKey, Resource},
    pod::{Metadata, Owner, Pod},
    workload::{self, DEPLOYMENT, REPLICA_SET, Workload},
    workloadspread::{Spread, differs, names},
};
use kruise_runtime::{
    cache::{Cache, Change, Guarded, View},
    controller::Builder,
};

use crate::{caches::Caches, shared::Shared, workloads};

/// What of a Deployment says which of its ReplicaSets is the newest.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";

/// Pods wake the spread that they name, and those of their workload.
pub(super) fn by_pods(builder: Builder, shared: &Shared) -> Builder {
    let own = shared.clone();
    builder.wake(&shared.caches.pods, move |change: &Change<Pod>, wake| {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        // Every change of a pod in the cluster comes by here, and most namespaces have no spread.
        let spreads = spreads(&own.caches, &change.key.namespace);
        if spreads.is_empty() || !differs(old, new, own.spreads.versioned()) {
            return;
        }
        let namespace = &change.key.namespace;
        let named = names(old.into_iter().chain(new));
        for spread in &spreads {
            if named.contains(&spread.key.name.to_string()) {
                wake(spread.key.clone());
            }
        }
        // One that names no spread may be older than the spread, or may have found no room.
        let Some(first) = new.or(old).and_then(|pod| pod.metadata.controller()) else { return };
        let owners = workloads::owners(&own, namespace, Some(first));
        for spread in spreads.iter().filter(|spread| concerns(spread, &owners)) {
            wake(spread.key.clone());
        }
    })
}

/// Whether a spread may be about pods with these controllers. Of kinds that only the server knows nobody looks further up.
fn concerns(spread: &Spread, owners: &[Owner]) -> bool {
    spread.family.is_none() || owners.iter().any(|owner| spread.targets(owner))
}

fn spreads(caches: &Caches, namespace: &str) -> Vec<Spread> {
    let stored = caches.spreads.in_namespace(namespace);
    stored.iter().filter_map(|stored| stored.object.as_ref().ok()).map(Spread::of).collect()
}

/// Workloads wake their spread when they come and go, want another number of pods, or have a new revision.
pub(super) fn by_workloads(mut builder: Builder, shared: &Shared) -> Builder {
    let caches = &shared.caches;
    for resource in workload::KNOWN {
        if let Some(cache) = caches.workloads(resource) {
            let own = caches.clone();
            builder = builder.wake(cache, move |change: &Change<Workload>, wake| {
                of_workload(&own, resource, change, wake);
            });
        }
    }
    let own = caches.clone();
    builder = builder.wake(&caches.jobs, move |change: &Change<Job>, wake| {
        let facts = |job: &Job| (job.spec.parallelism, job.metadata.is_deleting());
        if change.old.as_deref().map(facts) != change.new.as_deref().map(facts) {
            target(&own, JOB, &change.key, wake);
        }
    });
    builder = by_own(builder, caches, &caches.clonesets, |set| {
        let status = set.status.as_ref();
        let revision = status.and_then(|status| status.update_revision.clone());
        (set.spec.replicas.map(i64::from), revision)
    });
    by_own(builder, caches, &caches.statefulsets, |set| (set.spec.replicas.map(i64::from), None))
}

/// The same for a kind that has a controller of ours.
fn by_own<T: Send + Sync + 'static>(
    builder: Builder,
    caches: &Caches,
    cache: &Cache<Guarded<T>>,
    facts: fn(&T) -> (Option<i64>, Option<String>),
) -> Builder
where
    Guarded<T>: View,
{
    let (own, resource) = (caches.clone(), cache.resource());
    builder.wake(cache, move |change, wake| {
        let facts =
            |stored: &Guarded<T>| (stored.object.as_deref().ok().map(facts), stored.metadata.is_deleting());
        if change.old.as_deref().map(facts) != change.new.as_deref().map(facts) {
            target(&own, resource, &change.key, wake);
        }
    })
}

fn of_workload(
    caches: &Caches,
    resource: Resource,
    change: &Change<Workload>,
    wake: &mut dyn FnMut(ObjectKey),
) {
    let facts = |one: &Workload| {
        let Metadata { annotations, generation, .. } = &one.metadata;
        let is_observed = one.status.observed_generation >= Some(*generation);
        let revision = annotations.get(REVISION).cloned();
        (one.replicas(), one.metadata.is_deleting(), revision, resource == DEPLOYMENT && is_observed)
    };
    if change.old.as_deref().map(facts) == change.new.as_deref().map(facts) {
        return;
    }
    target(caches, resource, &change.key, wake);
    if resource != REPLICA_SET {
        return;
    }
    let above = change.old.iter().chain(&change.new).filter_map(|set| set.metadata.controller());
    for owner in above.filter(|owner| owner.group() == DEPLOYMENT.group && owner.kind == DEPLOYMENT.kind) {
        let key = ObjectKey { namespace: change.key.namespace.clone(), name: owner.name.clone() };
        target(caches, DEPLOYMENT, &key, wake);
    }
}

/// Wakes the spreads of a workload.
fn target(caches: &Caches, resource: Resource, key: &ObjectKey, wake: &mut dyn FnMut(ObjectKey)) {
    for spread in spreads(caches, &key.namespace) {
        let one = &spread.target;
        if one.group == resource.group && one.kind == resource.kind && key.name == *one.name.as_str() {
            wake(spread.key);
        }
    }
}
