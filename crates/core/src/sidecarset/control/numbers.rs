//! How many pods are updated now. All of the arithmetic is here.

use kruise_api::int_or_percent::{IntOrPercent, Rounding};

/// What the spec allows, for this many pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many of the waiting pods stay as they are.
    pub kept: usize,
    /// How many pods may be unavailable because of an update.
    pub max_unavailable: usize,
}

impl Limits {
    /// The limits for `total` pods.
    pub fn of(partition: IntOrPercent, max_unavailable: IntOrPercent, total: usize) -> Self {
        let total = u32::try_from(total).unwrap_or(u32::MAX);
        Self {
            kept: usize::try_from(partition.kept_by_partition(total)).unwrap_or(usize::MAX),
            max_unavailable: usize::try_from(max_unavailable.of(total, Rounding::Up)).unwrap_or(0),
        }
    }
}

/// Which of the waiting pods, in order, are taken now. `ready` tells for each whether it is ready; `used` pods are
/// unavailable because of an update already. A pod that is not ready costs nothing; the first ready one that is one too
/// many ends it.
pub fn taken(ready: impl IntoIterator<Item = bool>, used: usize, limits: &Limits) -> usize {
    let mut used = used;
    ready
        .into_iter()
        .take_while(|is_ready| {
            let fits = !is_ready || used < limits.max_unavailable;
            used += usize::from(*is_ready);
            fits
        })
        .count()
}

#[cfg(test)]
mod tests {
    use kruise_api::int_or_percent::IntOrString;

    use super::*;

    fn parse(text: &str) -> IntOrPercent {
        text.parse::<i64>().map_or_else(|_| IntOrString::from(text), IntOrString::from).parse().unwrap()
    }

    /// `total` pods, of which `updated` are updated and of these `ready` are ready; all others wait and are ready.
    #[track_caller]
    fn check([total, updated, ready]: [usize; 3], partition: &str, max_unavailable: &str, expected: usize) {
        let limits = Limits::of(parse(partition), parse(max_unavailable), total);
        let kept = (total - updated).saturating_sub(limits.kept);
        assert_eq!(taken(vec![true; kept], updated - ready, &limits), expected);
    }

    /// SIDECARSET-27, and the table of the specification.
    #[test]
    fn partition_and_budget_decide_how_many() {
        check([100, 30, 26], "0", "10", 6);
        check([1000, 300, 260], "0", "10%", 60);
        check([1000, 300, 250], "0", "5%", 0);
        check([1000, 800, 760], "180", "100", 20);
        check([1000, 800, 760], "18%", "100", 20);
        check([1000, 800, 760], "100", "100", 60);
        check([1000, 800, 760], "10%", "100", 60);
        check([5, 0, 0], "0", "5%", 1);
        check([5, 0, 0], "99%", "5", 1);
        check([5, 0, 0], "1%", "5", 4);
        check([5, 0, 0], "2", "5", 3);
        check([5, 0, 0], "100%", "5", 0);
        check([5, 0, 0], "0", "0", 0);
        check([1, 0, 0], "99%", "1", 0);
        check([0, 0, 0], "50%", "50%", 0);
    }

    #[test]
    fn pods_that_are_not_ready_cost_nothing() {
        let limits = Limits { kept: 0, max_unavailable: 1 };
        assert_eq!(taken([false, false, true, true], 0, &limits), 3);
        assert_eq!(taken([false, true, false], 1, &limits), 1);
        assert_eq!(taken([false, false], 7, &Limits { kept: 0, max_unavailable: 0 }), 2);
    }
}
