//! Whose turn it is.

use kruise_api::containerrecreaterequest::v1beta1::Phase;

use super::Known;

/// Whose turn it is among the requests of one pod.
#[derive(Clone, Debug)]
pub struct Pick<'a> {
    /// The one that is worked on.
    pub turn: Option<&'a Known>,
    /// Those that must be told to wait.
    pub wait: Vec<&'a Known>,
}

/// One request of a pod at a time: the one that is under way, or the oldest. The order of the input does not matter.
pub fn pick(requests: &[Known]) -> Pick<'_> {
    let mut open: Vec<&Known> = requests.iter().filter(|known| !known.is_over()).collect();
    open.sort_by_key(|known| {
        (rank(known.phase()), known.metadata.creation_timestamp, known.metadata.name.clone())
    });
    let mut open = open.into_iter();
    let turn = open.next();
    Pick { turn, wait: open.filter(|known| known.phase().is_none()).collect() }
}

fn rank(phase: Option<&Phase>) -> u8 {
    match phase {
        Some(Phase::Recreating) => 0,
        Some(_) => 1,
        None => 2,
    }
}
