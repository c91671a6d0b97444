//! What holds for every division.

use jiff::Timestamp;
use kruise_api::int_or_percent::IntOrString;
use proptest::prelude::*;

use crate::uniteddeployment::allocation::{Mode, Subset, Workload, allocate};

fn number(most: i64) -> impl Strategy<Value = IntOrString> {
    prop_oneof![
        (0..most).prop_map(IntOrString::Int),
        (0..60_i64).prop_map(|percent| IntOrString::String(format!("{percent}%"))),
    ]
}

fn workload() -> impl Strategy<Value = Option<Workload>> {
    let one = (0..12_i64, 0..12_i64, any::<bool>(), 0..4_i64, any::<bool>());
    prop::option::of(one.prop_map(|(replicas, ready, closed, reserved, marked)| Workload {
        replicas,
        ready: ready.min(replicas),
        unschedulable: closed.then_some(Timestamp::UNIX_EPOCH),
        reserved: reserved.min(replicas),
        marked,
    }))
}

/// The minimum of a subset, how much more its maximum is, and its workload.
type Bounded = (Option<i64>, Option<i64>, Option<Workload>);

/// Subsets with bounds, the last one without a maximum.
fn bounded() -> impl Strategy<Value = Vec<Subset>> {
    let one = (prop::option::of(0..6_i64), prop::option::of(0..8_i64), workload());
    prop::collection::vec(one, 1..7).prop_map(|all| {
        let count = all.len();
        let subset = |(index, (min, more, workload)): (usize, Bounded)| {
            let max = more.filter(|_| index + 1 < count).map(|more| min.unwrap_or(0) + more);
            Subset {
                name: format!("s{index}"),
                replicas: None,
                min: Some(IntOrString::Int(min.unwrap_or(0))),
                max: max.map(IntOrString::Int),
                workload,
            }
        };
        all.into_iter().enumerate().map(subset).collect()
    })
}

/// Subsets without bounds; some say how many pods they have.
fn plain() -> impl Strategy<Value = Vec<Subset>> {
    prop::collection::vec((prop::option::of(number(6)), workload()), 1..7).prop_map(|all| {
        type One = (Option<IntOrString>, Option<Workload>);
        let subset = |(index, (replicas, workload)): (usize, One)| Subset {
            name: format!("s{index}"),
            replicas,
            workload,
            ..Subset::default()
        };
        all.into_iter().enumerate().map(subset).collect()
    })
}

fn numbers(total: i64, mode: Mode, subsets: &[Subset]) -> Option<Vec<i64>> {
    let shares = allocate(total, mode, subsets).ok()?;
    Some(shares.into_iter().map(|share| share.replicas).collect())
}

fn int(value: Option<&IntOrString>) -> Option<i64> {
    match value {
        Some(IntOrString::Int(number)) => Some(*number),
        _ => None,
    }
}

/// The division becomes what the workloads have.
fn settled(subsets: &[Subset], numbers: &[i64]) -> Vec<Subset> {
    let settle = |(subset, replicas): (&Subset, &i64)| Subset {
        workload: Some(Workload { replicas: *replicas, ready: *replicas, ..Workload::default() }),
        ..subset.clone()
    };
    subsets.iter().zip(numbers).map(settle).collect()
}

fn moved(before: &[i64], after: &[i64], but: usize) -> i64 {
    let each = before.iter().zip(after).enumerate().filter(|(index, _)| *index != but);
    let (less, more) = each.fold((0, 0), |(less, more), (_, (before, after))| {
        (less + (before - after).max(0), more + (after - before).max(0))
    });
    less.max(more)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// UNITED-7: the sum is the total, and every subset is within its bounds.
    #[test]
    fn divisions_add_up_within_their_bounds(subsets in bounded(), total in 0..60_i64) {
        let found = numbers(total, Mode::Fixed, &subsets).unwrap();
        prop_assert_eq!(found.iter().sum::<i64>(), total);
        let least: i64 = subsets.iter().filter_map(|subset| int(subset.min.as_ref())).sum();
        for (subset, number) in subsets.iter().zip(&found) {
            prop_assert!(int(subset.max.as_ref()).is_none_or(|max| *number <= max));
            prop_assert!(least > total || *number >= int(subset.min.as_ref()).unwrap_or(0));
        }
    }

    /// UNITED-20: the same where subsets cannot take pods: nobody gets more than the maximum, and what is not given waits.
    #[test]
    fn adaptive_divisions_stay_within_their_bounds(subsets in bounded(), total in 0..60_i64) {
        let found = numbers(total, Mode::Adaptive, &subsets).unwrap();
        prop_assert!(found.iter().sum::<i64>() <= total);
        let all_take = subsets.last().unwrap().workload.as_ref().is_none_or(|one| one.unschedulable.is_none());
        if all_take {
            prop_assert_eq!(found.iter().sum::<i64>(), total);
        }
        for (subset, number) in subsets.iter().zip(&found) {
            prop_assert!(int(subset.max.as_ref()).is_none_or(|max| *number <= max));
        }
    }

    /// UNITED-24: with stand-ins the pods that are not expected to hang are never fewer than what fits.
    #[test]
    fn stand_ins_fill_up_what_hangs(subsets in bounded(), total in 0..60_i64) {
        let found = numbers(total, Mode::Reserving, &subsets).unwrap();
        let last = subsets.last().unwrap().workload.as_ref();
        let is_open = last.is_none_or(|one| one.reserved == 0 && !one.marked && one.unschedulable.is_none());
        let runs = |(subset, given): (&Subset, &i64)| match &subset.workload {
            Some(one) if one.reserved > 0 || one.marked => (*given).min((one.replicas - one.reserved).max(0)),
            _ => *given,
        };
        let running: i64 = subsets.iter().zip(&found).map(runs).sum();
        if is_open {
            prop_assert!(running >= total, "{running} of {total} run: {found:?}");
        }
        for (subset, number) in subsets.iter().zip(&found) {
            prop_assert!(int(subset.max.as_ref()).is_none_or(|max| *number <= max));
        }
    }

    /// UNITED-2: a change of one subset by k moves no more than k pods elsewhere.
    #[test]
    fn a_change_of_one_subset_moves_no_more_elsewhere(
        subsets in bounded(), total in 0..60_i64, at in any::<prop::sample::Index>(), more in 0..8_i64,
    ) {
        let before = numbers(total, Mode::Fixed, &subsets).unwrap();
        let mut changed = settled(&subsets, &before);
        let at = at.index(changed.len());
        let max = int(changed[at].max.as_ref()).map(|max| IntOrString::Int(max + more));
        changed[at].max = max;
        let after = numbers(total, Mode::Fixed, &changed).unwrap();
        let change = (after[at] - before[at]).abs();
        prop_assert!(change <= more);
        prop_assert!(moved(&before, &after, at) <= change, "{before:?} {after:?}");
    }

    /// UNITED-2, UNITED-3: the same where the author says a number and the others share the rest.
    #[test]
    fn a_number_of_the_author_moves_no_more_elsewhere(
        subsets in plain(), total in 0..60_i64, at in any::<prop::sample::Index>(), number in 0..30_i64,
    ) {
        let Some(before) = numbers(total, Mode::Fixed, &subsets) else { return Ok(()) };
        let mut changed = settled(&subsets, &before);
        let at = at.index(changed.len());
        changed[at].replicas = Some(IntOrString::Int(number));
        let Some(after) = numbers(total, Mode::Fixed, &changed) else { return Ok(()) };
        let change = (after[at] - before[at]).abs();
        prop_assert!(moved(&before, &after, at) <= change, "{before:?} {after:?}");
    }

    /// Even shares do not depend on the order of the subsets, and doing it again changes nothing.
    #[test]
    fn even_shares_do_not_depend_on_order(subsets in plain(), total in 0..60_i64, turn in 0..7_usize) {
        let Some(found) = numbers(total, Mode::Fixed, &subsets) else { return Ok(()) };
        let turn = turn % subsets.len();
        let mut turned = subsets.clone();
        turned.rotate_left(turn);
        let mut again = numbers(total, Mode::Fixed, &turned).unwrap();
        again.rotate_right(turn);
        prop_assert_eq!(&again, &found);
        prop_assert_eq!(numbers(total, Mode::Fixed, &settled(&subsets, &found)).unwrap(), found);
    }

    /// Whatever the numbers are, a division ends and nobody gets less than nothing.
    #[test]
    fn no_input_breaks_a_division(
        total in any::<i64>(), min in any::<i64>(), max in any::<i64>(), replicas in any::<i64>(),
    ) {
        let subsets = [
            Subset { name: "a".into(), min: Some(IntOrString::Int(min)), max: Some(IntOrString::Int(max)), ..Subset::default() },
            Subset { name: "b".into(), replicas: Some(IntOrString::Int(replicas)), ..Subset::default() },
        ];
        for mode in [Mode::Fixed, Mode::Adaptive, Mode::Reserving] {
            if let Some(found) = numbers(total, mode, &subsets) {
                prop_assert!(found.iter().all(|number| *number >= 0));
            }
        }
    }
}
