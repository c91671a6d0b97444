//! SidecarSets: which changes wake a set, what it observes, what it remembers, and its status.

mod observe;

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::sidecarset::v1beta1::{SidecarSet, Status};
use kruise_core::{
    effect::{Event, Level},
    object::{ObjectKey, ObjectRef, Resource},
    plan::{Failures, Plan, WriteBudget},
    sidecarset::{
        SIDECAR_SET,
        control::{self, Observed, Purpose, needs_namespaces},
        reference,
    },
    text::Text,
};
use kruise_runtime::{
    cache::{Cache, Guarded},
    controller::{Context, Controller},
};

use super::{
    environment, tunable_queue, workers,
    workload::{self, Acted, Aftermath, StatusWrite, Workload, Written},
};
use crate::shared::Shared;
use observe::Observer;

/// The name.
pub const NAME: &str = "sidecarset-controller";

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let waiters = shared.budgets.waiters(SIDECAR_SET);
    let (choosy, manager_namespace) =
        (caches.sidecarsets.clone(), shared.settings.environment.namespace.clone());
    let builder = Controller::new(NAME, &environment(shared, NAME))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.sidecarsets)
        .follow(&caches.pods)
        .follow(&caches.revisions)
        .wake(&caches.sidecarsets, |change, wake| wake(change.key.clone()))
        .wake(&caches.budgets, move |change, wake| waiters.wake(change, wake))
        .wake(&caches.pods, |change, wake| {
            for set in control::wakes(change.old.as_deref(), change.new.as_deref()) {
                wake(ObjectKey::cluster(set));
            }
        })
        .wake(&caches.revisions, move |change, wake| {
            let revision = change.latest().filter(|one| one.metadata.namespace == *manager_namespace);
            if let Some(set) = revision.and_then(|revision| observe::set_of(revision)) {
                wake(ObjectKey::cluster(set));
            }
        })
        .wake(&caches.namespaces, move |_, wake| {
            for set in choosy.list() {
                if set.object.as_ref().is_ok_and(|set| needs_namespaces(set)) {
                    wake(set.metadata.key());
                }
            }
        });
    workload::reconcile(builder, Observer::new(shared))
}

impl Workload for Observer {
    type Object = SidecarSet;
    type Observed = Observed;
    type Purpose = Purpose;
    type Standing = Status;

    const RESOURCE: Resource = SIDECAR_SET;

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn objects(&self) -> &Cache<Guarded<SidecarSet>> {
        &self.shared.caches.sidecarsets
    }

    fn written(&self) -> &Written {
        &self.written
    }

    fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
        set: Arc<SidecarSet>,
        _budget: WriteBudget,
    ) -> Option<Observed> {
        self.gather(context, key, set)
    }

    fn size(&self, seen: &Observed) -> (usize, Timestamp) {
        (seen.pods.len(), seen.now)
    }

    fn decide(&self, seen: &Observed) -> (Plan<Purpose>, Status) {
        control::decide(seen)
    }

    fn acted(
        &self,
        context: &Context,
        key: &ObjectKey,
        seen: &Observed,
        plan: &Plan<Purpose>,
        acted: &Acted<Purpose>,
    ) -> Aftermath {
        let refused = acted.refused().filter_map(|(purpose, message)| match purpose {
            Purpose::Update { pod, .. } | Purpose::Reset { pod } => {
                Some((pod.key.clone(), Text::from(message)))
            }
            Purpose::Quiet => None,
        });
        self.remember(context, key, &refused.collect::<Vec<_>>());
        let set = reference(&seen.set);
        let problems: Vec<&str> = plan.failures.iter().map(|failure| failure.message.as_str()).collect();
        let injection = self.problem(key);
        let unusable_parts = injection.as_deref().into_iter().chain(problems.iter().copied());
        let events = unusable_parts.map(|problem| unusable(&set, problem)).collect();
        let terminal = (!problems.is_empty()).then(|| problems.join("; "));
        Aftermath { events, terminal, ..Aftermath::default() }
    }

    fn status(
        &self,
        seen: &Observed,
        standing: &Status,
        _failures: &Failures,
        _plan: &Plan<Purpose>,
    ) -> Option<StatusWrite> {
        let before = seen.set.status.as_ref();
        let can_wait =
            before.is_some_and(|before| before.observed_generation == standing.observed_generation);
        let effect = control::status_write(&seen.set, standing)?;
        Some(StatusWrite { effect, can_wait, only_text: false })
    }

    fn forget(&self, key: &ObjectKey) {
        self.forget_set(key);
    }
}

/// That a stored set cannot be carried out.
fn unusable(set: &ObjectRef, problem: &str) -> Event {
    Event {
        regarding: set.clone(),
        level: Level::Warning,
        reason: "Unusable".into(),
        message: format!("this SidecarSet cannot be used: {problem}"),
    }
}
