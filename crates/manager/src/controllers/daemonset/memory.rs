//! What is remembered between reconciles. All of it may be lost: the cluster has what matters.

use std::collections::BTreeMap;

use kruise_core::{
    daemonset::{Backoff, Observed, Purpose, Refused},
    in_place::Refusals,
    plan::{Part, Purpose as _},
    podunavailablebudget::is_by_budget,
    text::Text,
};
use kruise_runtime::{effects::Why, random::Random};

use super::super::workload::Acted;

/// What is remembered of one set.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// Where the names of the next pods come from. It stays until pods were certainly made.
    pub(super) seed: u64,
    /// Whether the last plan was carried out, apart from what can wait.
    pub(super) is_done: bool,
    /// Updates in place that the server refused.
    pub(super) refusals: Refusals,
    /// How long failed pods stay.
    pub(super) backoff: Backoff,
    /// New pods and deletions that the server refused.
    pub(super) refused: Refused,
}

/// What a plan taught.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lesson {
    /// The server refused an update in place.
    pub(super) is_refused: bool,
    /// The server refused the pod of a node for the first time.
    pub(super) is_node_news: bool,
}

impl Memory {
    pub(super) fn new(random: &Random) -> Self {
        Self { seed: random.next_u64(), ..Self::default() }
    }

    /// Remembers what became of a plan.
    pub(super) fn learn(&mut self, random: &Random, seen: &Observed, acted: &Acted<Purpose>) -> Lesson {
        self.refusals.keep(|pod| seen.pods.iter().any(|one| one.metadata.name == *pod));
        self.refused.keep(seen);
        acted.held.iter().for_each(|purpose| self.refused.hold(purpose));
        let (mut lesson, mut made, mut is_taken) = (Lesson::default(), Vec::new(), false);
        self.is_done = true;
        // A pod about which two questions were asked: one no is a no.
        let mut answers: BTreeMap<&Text, (&Text, bool)> = BTreeMap::new();
        for (effect, purpose, why) in acted.steps() {
            self.is_done &= why.is_none() || purpose.part() == Part::Housekeeping;
            if matches!(why, None | Some(Why::Refused { .. })) {
                lesson.is_node_news |= self.refused.note(purpose, why.is_none());
            }
            match (purpose, why) {
                (Purpose::CreatePod { .. }, why) => {
                    made.push(why.is_none());
                    is_taken |= matches!(why, Some(Why::Refused { code: 409, .. }));
                }
                (Purpose::DeleteEnded { node, .. }, None) => {
                    self.backoff.deleted(seen.set.metadata.generation, node, seen.now);
                }
                (Purpose::TakeBackInPlace(pod), Some(Why::Refused { .. })) => {
                    self.refusals.cannot_take_back(pod);
                }
                (purpose, Some(Why::Refused { code, message, .. })) if !is_by_budget(message) => {
                    let Some((pod, revision)) = purpose.in_place() else { continue };
                    // The server's own rules about amounts hold for running pods only.
                    let resizes = effect.endpoint().is_some_and(|(_, part)| part == Some("resize"));
                    self.refusals.refuse(revision, pod, message, resizes && *code == 422, seen.now);
                    answers.insert(pod, (revision, false));
                    lesson.is_refused = true;
                }
                (Purpose::AskInPlace { pod, revision }, None) => {
                    answers.entry(pod).or_insert((revision, true));
                }
                (Purpose::AskInPlace { pod, revision }, Some(_)) => {
                    answers.insert(pod, (revision, false));
                }
                (Purpose::UpdateInPlace { pod, revision }, None) => self.refusals.took(revision, pod),
                _ => {}
            }
        }
        for (pod, (revision, _)) in answers.into_iter().filter(|(_, (_, yes))| *yes) {
            self.refusals.would_take(revision, pod);
        }
        // The next pods get other names once these were all made, or where a stranger has the name.
        if is_taken || (!made.is_empty() && made.iter().all(|made| *made)) {
            self.seed = random.next_u64();
        }
        lesson
    }
}
