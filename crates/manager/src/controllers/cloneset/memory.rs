//! What is remembered of a CloneSet between two reconciles. All of it may be lost: the cluster has what matters.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kruise_api::cloneset::v1beta1::CloneSet;
use kruise_core::{
    cloneset::{self, Observed, Purpose},
    in_place::Refusals,
    object::ObjectKey,
    podunavailablebudget::is_by_budget,
    text::Text,
};
use kruise_runtime::{controller::Context, effects::Why};

use super::super::workload::Acted;

/// What is remembered. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Memory {
    /// Where the ids of the next pods come from, for each set. It stays until a pod was certainly made.
    seeds: Arc<Mutex<BTreeMap<ObjectKey, u64>>>,
    /// What the server refused of each set.
    refusals: Arc<Mutex<BTreeMap<ObjectKey, Refusals>>>,
}

impl Memory {
    /// Where the ids of the next pods come from.
    pub(super) fn seed(&self, context: &Context, key: &ObjectKey) -> u64 {
        *self.seeds().entry(key.clone()).or_insert_with(|| context.random().next_u64())
    }

    /// The next pods get other ids once these were all made: those that were not find the claims that were made for them.
    pub(super) fn choose_ids(&self, context: &Context, key: &ObjectKey, acted: &Acted<Purpose>) {
        let pods = acted.steps().filter(|(_, purpose, _)| matches!(purpose, Purpose::CreatePod(_)));
        let pods: Vec<Option<&Why>> = pods.map(|(_, _, why)| why).collect();
        let all_made = !pods.is_empty() && pods.iter().all(Option::is_none);
        // A stranger has the name: with the same ids it would stand in the way for ever.
        let is_taken = |why: &&Why| matches!(why, Why::Refused { code: 409, .. });
        if all_made || pods.iter().flatten().any(is_taken) {
            self.seeds().insert(key.clone(), context.random().next_u64());
        }
    }

    /// What was refused so far. Of what an earlier process saw only its condition is left.
    pub(super) fn refusals(&self, key: &ObjectKey, set: &CloneSet) -> Refusals {
        let status = set.status.as_ref();
        let has_failed = status.is_some_and(cloneset::has_failed_update);
        let revision = status.and_then(|status| status.update_revision.as_deref()).filter(|_| has_failed);
        let mut all = self.all_refusals();
        all.entry(key.clone())
            .or_insert_with(|| revision.map(|one| Refusals::suspected(one.into())).unwrap_or_default())
            .clone()
    }

    /// Remembers what became of updates in place. The failure to report, if any was refused in this reconcile.
    pub(super) fn hear(
        &self,
        context: &Context,
        seen: &Observed,
        key: &ObjectKey,
        acted: &Acted<Purpose>,
    ) -> Option<String> {
        let mut all = self.all_refusals();
        let refusals = all.entry(key.clone()).or_default();
        refusals.keep(|pod| seen.pods.iter().any(|one| one.metadata.name == *pod));
        // A pod about which two questions were asked: one no is a no.
        let mut answers: BTreeMap<&Text, (&Text, bool)> = BTreeMap::new();
        let mut is_refused = false;
        for (effect, purpose, why) in acted.steps() {
            match (purpose, why) {
                (Purpose::TakeBackInPlace(pod), Some(Why::Refused { .. })) => refusals.cannot_take_back(pod),
                (purpose, Some(Why::Refused { code, message, .. })) if !is_by_budget(message) => {
                    let Some((pod, revision)) = purpose.in_place() else { continue };
                    // The server's own rules about amounts hold for running pods only.
                    let resizes = effect.endpoint().is_some_and(|(_, part)| part == Some("resize"));
                    let helps = resizes && *code == 422;
                    refusals.refuse(revision, pod, message, helps, context.clock().now());
                    answers.insert(pod, (revision, false));
                    is_refused = true;
                }
                (Purpose::AskInPlace { pod, revision }, None) => {
                    answers.entry(pod).or_insert((revision, true));
                }
                (Purpose::AskInPlace { pod, revision }, Some(_)) => {
                    answers.insert(pod, (revision, false));
                }
                (Purpose::UpdateInPlace { pod, revision }, None) => refusals.took(revision, pod),
                _ => {}
            }
        }
        for (pod, (revision, _)) in answers.into_iter().filter(|(_, (_, yes))| *yes) {
            refusals.would_take(revision, pod);
        }
        refusals.told().filter(|_| is_refused)
    }

    /// Forgets a set that is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.seeds().remove(key);
        self.all_refusals().remove(key);
    }

    fn all_refusals(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Refusals>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seeds(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, u64>> {
        self.seeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
