//! Why an object makes no progress.

use kruise_api::persistentpodstate::v1beta1::PersistentPodState;

use super::{Kinds, validate::stored_problem};
use crate::waiting::{Reason, Waits};

/// The reasons that an object itself is. `conflict` says why it is not what a workload wants it to be.
pub fn waits(
    state: Option<&PersistentPodState>,
    kinds: &Kinds,
    conflicts: impl IntoIterator<Item = (Reason, String)>,
) -> Waits {
    let mut waits = Waits::default();
    if let Some(problem) = state.and_then(|state| stored_problem(state, kinds)) {
        waits.add(Reason::SpecInvalid, format!("the spec cannot be carried out: {problem}"));
    }
    for (reason, sentence) in conflicts {
        waits.add(reason, sentence);
    }
    waits
}
