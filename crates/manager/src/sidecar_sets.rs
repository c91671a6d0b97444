//! SidecarSets in the form in which new pods get them, made ready when a set or its revisions change.
//!
//! Every pod of the cluster comes by here, so nothing is read or made ready then: an answer takes the sets as they stand.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use kruise_api::{labels::SIDECARSET_NAME, sidecarset::v1beta1::SidecarSet};
use kruise_core::{
    causes,
    object::ObjectKey,
    revision::Revision,
    sidecarset::{Set, Sets},
    text::Text,
};
use kruise_runtime::cache::{Change, Guarded};

use crate::caches::Caches;

/// The sets that are ready for pods. Clones are the same.
#[derive(Clone)]
pub struct SidecarSets(Arc<Inner>);

struct Inner {
    caches: Caches,
    namespace: String,
    ready: RwLock<Arc<Sets>>,
    /// Sets that cannot be used, and why. Also what makes one change after the other.
    problems: Mutex<BTreeMap<Text, String>>,
}

impl fmt::Debug for SidecarSets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SidecarSets").field(&self.ready().len()).finish()
    }
}

impl SidecarSets {
    /// Those of these caches; revisions are kept in the namespace of the manager.
    pub fn follow(caches: &Caches, namespace: &str) -> Self {
        let sets = Self(Arc::new(Inner {
            caches: caches.clone(),
            namespace: namespace.to_owned(),
            ready: RwLock::default(),
            problems: Mutex::default(),
        }));
        // The caches must not keep alive what keeps them alive.
        let told = Arc::downgrade(&sets.0);
        caches.sidecarsets.subscribe(move |change| {
            if let Some(told) = told.upgrade().filter(|_| !is_same(change)) {
                Self(told).renew(&change.key.name);
            }
        });
        let told = Arc::downgrade(&sets.0);
        caches.revisions.subscribe(move |change| {
            let (Some(told), Some(revision)) = (told.upgrade().map(Self), change.latest()) else { return };
            if let Some(set) = told.set_of(revision) {
                told.renew(&set);
            }
        });
        sets
    }

    /// The sets as they stand.
    pub fn ready(&self) -> Arc<Sets> {
        self.0.ready.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why pods get nothing from a set although it is there.
    pub fn problem(&self, set: &str) -> Option<String> {
        self.0.problems.lock().unwrap_or_else(PoisonError::into_inner).get(set).cloned()
    }

    /// The set that must be made ready again when this revision changes.
    fn set_of(&self, revision: &Revision) -> Option<Text> {
        let set = revision.metadata.labels.get(SIDECARSET_NAME)?;
        let depends = |set: &Text| self.ready().get(set).is_some_and(|set| set.depends_on_revisions());
        (revision.metadata.namespace == *self.0.namespace && depends(set)).then(|| set.clone())
    }

    /// Makes a set ready again, from what the caches have now.
    fn renew(&self, name: &Text) {
        let Inner { caches, namespace, ready, problems } = &*self.0;
        // Two who renew the same set come one after the other, so that what is read last stays.
        let mut problems = problems.lock().unwrap_or_else(PoisonError::into_inner);
        let made = caches.sidecarsets.get(&ObjectKey::cluster(name.clone())).map(|stored| {
            let set = stored.object.as_ref().map_err(ToString::to_string)?;
            let revisions = caches.sidecar_set_revisions(namespace, name);
            Set::compile(set, &revisions).map_err(|error| causes::told(&error))
        });
        problems.remove(name);
        let mut sets = Sets::clone(&self.ready());
        match made {
            None => sets.remove(name),
            Some(Ok(set)) => {
                if set.matching().chooses_namespaces() {
                    caches.namespaces.want();
                }
                sets.insert(Arc::new(set));
            }
            Some(Err(problem)) => {
                tracing::warn!(sidecarset = %name, problem, "pods get nothing from a set that cannot be used");
                problems.insert(name.clone(), problem);
                sets.remove(name);
            }
        }
        *ready.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(sets);
    }
}

/// Whether nothing changed that pods get: the status counts pods, and changes often.
fn is_same(change: &Change<Guarded<SidecarSet>>) -> bool {
    let object = |side: &Option<Arc<Guarded<SidecarSet>>>| {
        side.as_ref().and_then(|stored| stored.object.as_ref().ok().cloned())
    };
    let (Some(old), Some(new)) = (object(&change.old), object(&change.new)) else { return false };
    let revision = |set: &SidecarSet| set.status.as_ref().and_then(|status| status.latest_revision.clone());
    old.metadata.uid == new.metadata.uid
        && old.metadata.generation == new.metadata.generation
        && old.metadata.annotations == new.metadata.annotations
        && old.spec.custom_version == new.spec.custom_version
        && revision(&old) == revision(&new)
}
