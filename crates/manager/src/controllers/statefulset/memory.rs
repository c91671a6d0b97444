//! What is remembered of a set between two reconciles. All of it may be lost: the cluster has what matters.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::statefulset::v1beta1::StatefulSet;
use kruise_core::{
    conditions,
    effect::{Event, Level},
    in_place::Refusals,
    object::ObjectRef,
    plan::Part,
    podunavailablebudget::is_by_budget,
    refusal,
    statefulset::{self, Failure, Failures, Observed, Plan, Purpose, Standing},
    text::Text,
    waiting,
};
use kruise_runtime::effects::Why;

use super::super::workload::Acted;

/// What is remembered of one set.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// What the server refused.
    pub(super) refusals: Refusals,
    /// What failed in the last reconcile.
    pub(super) failures: Failures,
    /// Claim templates whose volume running pods lack, as far as an event has reported them.
    reported: BTreeSet<String>,
}

impl Memory {
    /// Of what an earlier process saw only the conditions are left.
    pub(super) fn of(set: &StatefulSet) -> Self {
        let Some(status) = &set.status else { return Self::default() };
        let revision = status.update_revision.as_deref().filter(|_| statefulset::has_failed_update(status));
        let waiting = conditions::get(&status.conditions, waiting::CONDITION);
        let message = waiting.and_then(|waiting| waiting.message.as_deref()).unwrap_or_default();
        let reported = message.split("the volume of volumeClaimTemplate ").skip(1);
        let reported = reported.filter_map(|rest| Some(rest.split_once(' ')?.0.to_owned()));
        Self {
            refusals: revision.map(|one| Refusals::suspected(one.into())).unwrap_or_default(),
            failures: Failures::default(),
            reported: reported.collect(),
        }
    }

    /// Remembers what became of updates in place. The failure to report, if any was refused.
    pub(super) fn hear(&mut self, seen: &Observed, acted: &Acted<Purpose>) -> Option<String> {
        let refusals = &mut self.refusals;
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
                    refusals.refuse(revision, pod, message, resizes && *code == 422, seen.now);
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

    /// Remembers what failed, for the conditions. `refused` is the failure of updates in place.
    pub(super) fn note_failures(&mut self, acted: &Acted<Purpose>, plan: &Plan, refused: Option<&str>) {
        let mut failures = Failures::default();
        for (_, purpose, why) in acted.steps() {
            let slot = if purpose.is_creation() {
                &mut failures.create
            } else if purpose.is_update() {
                &mut failures.update
            } else {
                continue;
            };
            match why {
                None => {}
                Some(Why::Refused { code, message, .. }) if !matches!(slot, Failure::Failed { .. }) => {
                    let reason = refusal::reason(*code, message);
                    *slot = Failure::Failed { reason, message: message.clone() };
                }
                // Everything but an answer is settled by looking again.
                Some(_) if *slot == Failure::None => *slot = Failure::Unknown,
                Some(_) => {}
            }
        }
        if let Some(message) = refused.or(plan.failure(Part::Update))
            && failures.update == Failure::None
        {
            failures.update = Failure::Failed { reason: "Error", message: message.to_owned() };
        }
        self.failures = failures;
    }

    /// Events about claim templates that running pods lack: one for each, while it keeps its name.
    pub(super) fn news(&mut self, set: &ObjectRef, standing: &Standing) -> Vec<Event> {
        let now: BTreeSet<String> = standing.volume_news.iter().map(|(name, _)| name.clone()).collect();
        let news = standing.volume_news.iter().filter(|(name, _)| !self.reported.contains(name));
        let news = news.map(|(_, message)| Event {
            regarding: set.clone(),
            level: Level::Normal,
            reason: "ClaimTemplateNotApplied".into(),
            message: message.clone(),
        });
        let news = news.collect();
        self.reported = now;
        news
    }
}
