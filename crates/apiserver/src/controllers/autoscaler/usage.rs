//! From usage to a number of replicas. Ratios are kept as two whole numbers.

use std::collections::BTreeMap;

/// How much a metric may be off before something happens, in thousandths: down and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tolerance {
    pub(super) down: i128,
    pub(super) up: i128,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { down: 100, up: 100 }
    }
}

/// What is wanted of each pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Percent of what pods request.
    Utilization(i64),
    /// An amount, on average.
    Average(i128),
}

/// The pods that count, by name. Amounts are in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// What pods use that serve.
    pub(super) used: BTreeMap<String, i128>,
    /// Pods that do not serve yet; what they use says nothing.
    pub(super) unready: Vec<String>,
    /// Pods of which nothing is known.
    pub(super) missing: Vec<String>,
    /// What each pod requests.
    pub(super) requests: BTreeMap<String, i128>,
}

/// What came of it: replicas, the average amount, and percent where requests count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) replicas: i64,
    pub(super) average: i128,
    pub(super) percent: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio(i128, i128);

impl Ratio {
    fn above_one(self) -> bool {
        self.0 > self.1
    }

    fn below_one(self) -> bool {
        self.0 < self.1
    }

    fn is_within(self, tolerance: Tolerance) -> bool {
        let scaled = self.0 * 1000;
        (self.1 * (1000 - tolerance.down)..=self.1 * (1000 + tolerance.up)).contains(&scaled)
    }

    fn times_up(self, count: usize) -> i64 {
        let product = self.0 * i128::try_from(count).unwrap_or(0);
        i64::try_from((product + self.1 - 1).div_euclid(self.1.max(1))).unwrap_or(i64::MAX)
    }
}

/// The number of replicas that would bring usage to the goal; the words say why there is none.
pub(super) fn replicas(
    counted: &Counted,
    goal: Goal,
    current: i64,
    tolerance: Tolerance,
) -> Result<Sum, &'static str> {
    if counted.used.is_empty() {
        return Err("did not receive metrics for targeted pods (pods might be unready)");
    }
    let (ratio, average, percent) = ratio(&counted.used, &counted.requests, goal)?;
    let sum = |replicas| Sum { replicas, average, percent };
    let grows_with_unready = !counted.unready.is_empty() && ratio.above_one();
    if !grows_with_unready && counted.missing.is_empty() {
        let stays = ratio.is_within(tolerance);
        return Ok(sum(if stays { current } else { ratio.times_up(counted.used.len()) }));
    }
    // What is not known is taken for what would change the least.
    let mut used = counted.used.clone();
    for name in &counted.missing {
        if ratio.below_one() {
            let request = counted.requests.get(name).copied().unwrap_or(0);
            let assumed = match goal {
                Goal::Utilization(percent) => request * i128::from(percent.max(100)) / 100,
                Goal::Average(amount) => amount,
            };
            used.insert(name.clone(), assumed);
        } else if ratio.above_one() {
            used.insert(name.clone(), 0);
        }
    }
    if grows_with_unready {
        used.extend(counted.unready.iter().map(|name| (name.clone(), 0)));
    }
    let (again, _, _) = self::ratio(&used, &counted.requests, goal)?;
    let turns = (ratio.below_one() && again.above_one()) || (ratio.above_one() && again.below_one());
    if again.is_within(tolerance) || turns {
        return Ok(sum(current));
    }
    let replicas = again.times_up(used.len());
    let turns = (again.below_one() && replicas > current) || (again.above_one() && replicas < current);
    Ok(sum(if turns { current } else { replicas }))
}

fn ratio(
    used: &BTreeMap<String, i128>,
    requests: &BTreeMap<String, i128>,
    goal: Goal,
) -> Result<(Ratio, i128, Option<i64>), &'static str> {
    let count = i128::try_from(used.len()).unwrap_or(1).max(1);
    let total: i128 = used.values().sum();
    match goal {
        Goal::Average(amount) => {
            let average = total / count;
            Ok((Ratio(average, amount.max(1)), average, None))
        }
        Goal::Utilization(percent) => {
            let known = used.iter().filter_map(|(name, amount)| Some((amount, requests.get(name)?)));
            let (total, requested, count) =
                known.fold((0, 0, 0), |(a, b, n), (used, request)| (a + used, b + request, n + 1));
            if requested == 0 {
                return Err("no metrics returned matched known pods");
            }
            let seen = total * 100 / requested;
            let ratio = Ratio(seen, i128::from(percent.max(1)));
            Ok((ratio, total / i128::max(count, 1), i64::try_from(seen).ok()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pods are written as `name=used/requested`, `name=?/requested` when nothing is known, `name=!/requested` when
    /// it is not ready.
    fn counted(text: &str) -> Counted {
        let mut counted = Counted::default();
        for word in text.split_whitespace() {
            let (name, rest) = word.split_once('=').unwrap();
            let (used, request) = rest.split_once('/').unwrap();
            counted.requests.insert(name.to_owned(), request.parse().unwrap());
            match used {
                "?" => counted.missing.push(name.to_owned()),
                "!" => counted.unready.push(name.to_owned()),
                used => {
                    counted.used.insert(name.to_owned(), used.parse().unwrap());
                }
            }
        }
        counted
    }

    #[track_caller]
    fn check(goal: Goal, current: i64, pods: &str, expected: (i64, i128, Option<i64>)) {
        let sum = replicas(&counted(pods), goal, current, Tolerance::default()).unwrap();
        assert_eq!((sum.replicas, sum.average, sum.percent), expected, "{pods}");
    }

    #[test]
    fn usage_over_the_goal_asks_for_more_and_less_for_fewer() {
        let half = Goal::Utilization(50);
        check(half, 2, "a=90/100 b=90/100", (4, 90, Some(90)));
        check(half, 4, "a=10/100 b=10/100 c=10/100 d=10/100", (1, 10, Some(10)));
        check(half, 2, "a=54/100 b=54/100", (2, 54, Some(54)));
        check(half, 2, "a=45/100 b=45/100", (2, 45, Some(45)));
        check(half, 2, "a=56/100 b=56/100", (3, 56, Some(56)));
        check(Goal::Average(100), 2, "a=300/0 b=100/0", (4, 200, None));
    }

    #[test]
    fn what_is_not_known_never_makes_it_hasty() {
        let half = Goal::Utilization(50);
        // Going up, pods that are missing or not ready count as idle.
        check(half, 3, "a=100/100 b=100/100 c=?/100", (4, 100, Some(100)));
        check(half, 3, "a=60/100 b=60/100 c=!/100", (3, 60, Some(60)));
        // Going down, missing ones count as busy.
        check(half, 3, "a=10/100 b=10/100 c=?/100", (3, 10, Some(10)));
        // Going down, those that are not ready do not count.
        check(half, 3, "a=10/100 b=10/100 c=!/100", (1, 10, Some(10)));
    }

    #[test]
    fn nothing_known_is_no_number() {
        let none = replicas(&counted("a=!/100"), Goal::Utilization(50), 1, Tolerance::default());
        assert_eq!(none, Err("did not receive metrics for targeted pods (pods might be unready)"));
    }
}
