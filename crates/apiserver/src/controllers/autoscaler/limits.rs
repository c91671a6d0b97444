//! What an autoscaler remembers, and how that, its rates and its bounds tame a proposal.

use jiff::Timestamp;
use serde_json::Value;

use super::super::object::{items, number, text};

/// How long a lower number waits where nothing else is asked for.
const SCALE_DOWN_WINDOW: i64 = 300;

/// One recommendation or one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Noted {
    at: Timestamp,
    number: i64,
}

/// The past, as far as rules need it.
#[derive(Debug, Default)]
pub(super) struct Memory {
    recommendations: Vec<Noted>,
    up: Vec<Noted>,
    down: Vec<Noted>,
}

/// How fast it may go in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    window: i64,
    select: Select,
    policies: Vec<Policy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Select {
    Max,
    Min,
    Disabled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    percent: bool,
    value: i64,
    period: i64,
}

/// The numbers between which it may go, and how fast; without rules as it always was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: i64,
    pub(super) max: i64,
    /// Rules for up and down.
    rules: Option<(Rules, Rules)>,
}

impl Bounds {
    pub(super) fn of(scaler: &Value) -> Self {
        let behavior = scaler.pointer("/spec/behavior").filter(|behavior| !behavior.is_null());
        Self {
            min: number(scaler, "/spec/minReplicas").unwrap_or(1),
            max: number(scaler, "/spec/maxReplicas").unwrap_or(1),
            rules: behavior.map(|behavior| {
                let part = |name: &str| behavior.get(name).unwrap_or(&Value::Null);
                (Rules::of(part("scaleUp"), 0), Rules::of(part("scaleDown"), SCALE_DOWN_WINDOW))
            }),
        }
    }
}

impl Rules {
    fn of(rules: &Value, window: i64) -> Self {
        let select = match text(rules, "/selectPolicy") {
            "Min" => Select::Min,
            "Disabled" => Select::Disabled,
            _ => Select::Max,
        };
        let policy = |policy: &Value| Policy {
            percent: text(policy, "/type") == "Percent",
            value: number(policy, "/value").unwrap_or(0),
            period: number(policy, "/periodSeconds").unwrap_or(0),
        };
        Self {
            window: number(rules, "/stabilizationWindowSeconds").unwrap_or(window),
            select,
            policies: items(rules, "/policies").iter().map(policy).collect(),
        }
    }

    fn longest(&self) -> i64 {
        self.policies.iter().map(|policy| policy.period).max().unwrap_or(0)
    }
}

type Words = (&'static str, &'static str);

const READY: Words = ("ReadyForNewScale", "recommended size matches current size");
const HIGHER_BEFORE: Words = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const LOWER_BEFORE: Words = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const WITHIN: Words = ("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_FEW: Words = ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const TOO_MANY: Words =
    ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FAST_UP: Words =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const TOO_FAST_DOWN: Words =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");

/// What was decided, and the words for the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) replicas: i64,
    pub(super) stable: Words,
    /// Whether it was limited.
    pub(super) limited: (bool, &'static str, &'static str),
}

impl Memory {
    /// The number at the first look counts as a recommendation.
    pub(super) fn begin(&mut self, current: i64, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommendations.push(Noted { at: now, number: current });
        }
    }

    /// Takes note of a change. Rates need it only where there are rules.
    pub(super) fn note_change(&mut self, rules: bool, before: i64, after: i64, now: Timestamp) {
        if !rules {
            return;
        }
        let list = if after > before { &mut self.up } else { &mut self.down };
        list.push(Noted { at: now, number: (after - before).abs() });
    }

    /// Decides about a proposal and remembers it.
    pub(super) fn decide(
        &mut self,
        bounds: &Bounds,
        current: i64,
        proposed: i64,
        now: Timestamp,
    ) -> Decision {
        let (stable, stable_words) = match &bounds.rules {
            None => {
                let highest = self.since(now, SCALE_DOWN_WINDOW).max().unwrap_or(proposed).max(proposed);
                (highest, HIGHER_BEFORE)
            }
            Some((up, down)) => {
                let lowest = self.since(now, up.window).min().unwrap_or(proposed).min(proposed);
                let highest = self.since(now, down.window).max().unwrap_or(proposed).max(proposed);
                let words = if proposed >= current { LOWER_BEFORE } else { HIGHER_BEFORE };
                (current.max(lowest).min(highest), words)
            }
        };
        self.remember(bounds, proposed, now);
        let (replicas, limited_words) = match &bounds.rules {
            None => by_habit(bounds, current, stable),
            Some((up, down)) => self.by_rules(bounds, (up, down), current, stable, now),
        };
        Decision {
            replicas,
            stable: if stable == proposed { READY } else { stable_words },
            limited: (replicas != stable, limited_words.0, limited_words.1),
        }
    }

    /// The recommendations of the last seconds.
    fn since(&self, now: Timestamp, seconds: i64) -> impl Iterator<Item = i64> {
        let from = now.as_second() - seconds;
        self.recommendations.iter().filter(move |noted| noted.at.as_second() > from).map(|noted| noted.number)
    }

    fn remember(&mut self, bounds: &Bounds, proposed: i64, now: Timestamp) {
        let (window, up, down) = match &bounds.rules {
            None => (SCALE_DOWN_WINDOW, 0, 0),
            Some((up, down)) => (up.window.max(down.window), up.longest(), down.longest()),
        };
        // Memory stays small: what no rule can ask for any more is forgotten.
        let keep = |list: &mut Vec<Noted>, seconds: i64| {
            list.retain(|noted| noted.at.as_second() >= now.as_second() - seconds);
        };
        keep(&mut self.recommendations, window);
        let changes = up.max(down);
        keep(&mut self.up, changes);
        keep(&mut self.down, changes);
        self.recommendations.push(Noted { at: now, number: proposed });
    }

    fn by_rules(
        &self,
        bounds: &Bounds,
        (up, down): (&Rules, &Rules),
        current: i64,
        wanted: i64,
        now: Timestamp,
    ) -> (i64, Words) {
        if wanted > current {
            let fastest = self.limit(up, current, now, true).max(current);
            let (most, words) =
                if bounds.max > fastest { (fastest, TOO_FAST_UP) } else { (bounds.max, TOO_MANY) };
            if wanted > most {
                return (most, words);
            }
        } else if wanted < current {
            let fastest = self.limit(down, current, now, false).min(current);
            let (least, words) =
                if bounds.min < fastest { (fastest, TOO_FAST_DOWN) } else { (bounds.min, TOO_FEW) };
            if wanted < least {
                return (least, words);
            }
        }
        (wanted, WITHIN)
    }

    /// How far policies let it go from where it was when their periods began.
    fn limit(&self, rules: &Rules, current: i64, now: Timestamp, up: bool) -> i64 {
        if rules.select == Select::Disabled {
            return current;
        }
        let changed = |list: &[Noted], period: i64| -> i64 {
            let from = now.as_second() - period;
            list.iter().filter(|noted| noted.at.as_second() > from).map(|noted| noted.number).sum()
        };
        let reach = |policy: &Policy| {
            let start = current - changed(&self.up, policy.period) + changed(&self.down, policy.period);
            match (policy.percent, up) {
                (false, true) => start.saturating_add(policy.value),
                (false, false) => start.saturating_sub(policy.value),
                // At least one more, or it would never grow.
                (true, true) => start.saturating_mul(100 + policy.value).saturating_add(99).div_euclid(100),
                (true, false) => start.saturating_mul(100 - policy.value) / 100,
            }
        };
        let reaches = rules.policies.iter().map(reach);
        let furthest = (rules.select == Select::Max) == up;
        if furthest { reaches.max() } else { reaches.min() }.unwrap_or(current)
    }
}

/// Without rules it may double, or grow to four.
fn by_habit(bounds: &Bounds, current: i64, wanted: i64) -> (i64, Words) {
    let fastest = (current * 2).max(4);
    let (most, words) = if bounds.max > fastest { (fastest, TOO_FAST_UP) } else { (bounds.max, TOO_MANY) };
    if wanted < bounds.min {
        (bounds.min, TOO_FEW)
    } else if wanted > most {
        (most, words)
    } else {
        (wanted, WITHIN)
    }
}

#[cfg(test)]
mod tests;
