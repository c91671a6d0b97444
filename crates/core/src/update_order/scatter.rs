//! Pods with a label spread over the whole update, so that they are never all at once on their way.

use kruise_api::rollout::ScatterTerm;

use crate::pod::Pod;

/// Spreads the waiting pods by each term, the one with most pods first.
pub fn scatter<'a>(waiting: Vec<&'a Pod>, all: &[&Pod], terms: &[ScatterTerm]) -> Vec<&'a Pod> {
    let mut counted: Vec<(usize, &ScatterTerm)> = terms
        .iter()
        .map(|term| (waiting.iter().filter(|pod| matches(pod, term)).count(), term))
        .filter(|(count, _)| terms.len() == 1 || *count > 0)
        .collect();
    counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    counted.into_iter().fold(waiting, |pods, (_, term)| by_term(pods, all, term))
}

fn matches(pod: &Pod, term: &ScatterTerm) -> bool {
    pod.metadata.labels.text(&term.key) == Some(term.value.as_str())
}

fn by_term<'a>(pods: Vec<&'a Pod>, all: &[&Pod], term: &ScatterTerm) -> Vec<&'a Pod> {
    let (mut matching, others): (Vec<&Pod>, Vec<&Pod>) =
        pods.iter().copied().partition(|pod| matches(pod, term));
    if matching.len() <= 1 || others.len() <= 1 {
        return pods;
    }
    let all_matching = all.iter().filter(|pod| matches(pod, term)).count().max(matching.len());
    let all_others = all.len().saturating_sub(all_matching).max(others.len());
    // The last one is kept for the very end.
    let last = matching.pop();
    let all_matching = all_matching.saturating_sub(1);
    // Compares all_others / all_matching with others / matching, without dividing.
    let shapes = if all_others * matching.len() >= others.len() * all_matching {
        let (rounds, matching, others) = group(matching.len(), others.len());
        Shapes { head: 0, rounds, matching, others }
    } else {
        let (_, m, u) = group(all_matching, all_others);
        let rounds = (matching.len() / m.max(1)).min(others.len() / u.max(1));
        Shapes { head: others.len().saturating_sub(rounds * u), rounds, matching: m, others: u }
    };
    shapes.lay_out(&matching, &others, last)
}

/// How many of each kind stand together so that both are used up at the same time: rounds, and the size of each part.
fn group(left: usize, right: usize) -> (usize, usize, usize) {
    let rounds = left.min(right).max(1);
    let rounded = |count: usize| (2 * count + rounds) / (2 * rounds);
    (rounds, rounded(left), rounded(right))
}

struct Shapes {
    /// How many others come before the first group.
    head: usize,
    rounds: usize,
    matching: usize,
    others: usize,
}

impl Shapes {
    fn lay_out<'a>(&self, matching: &[&'a Pod], others: &[&'a Pod], last: Option<&'a Pod>) -> Vec<&'a Pod> {
        let (mut matching, mut others) = (matching.iter().copied(), others.iter().copied());
        let mut order: Vec<&Pod> = others.by_ref().take(self.head).collect();
        for _ in 0..self.rounds {
            order.extend(matching.by_ref().take(self.matching));
            order.extend(others.by_ref().take(self.others));
        }
        order.extend(matching.chain(others).chain(last));
        order
    }
}
