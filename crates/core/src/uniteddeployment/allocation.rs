//! How the replicas are divided among the subsets, and why: one pure function.

use std::fmt;

use jiff::Timestamp;
use kruise_api::int_or_percent::IntOrString;

use crate::waiting::text;

/// How the replicas are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// By the spec alone.
    #[default]
    Fixed,
    /// Subsets that cannot take pods keep only their ready ones.
    Adaptive,
    /// Pods that cannot be scheduled stay, and others run in their place.
    Reserving,
}

/// A subset, as the division needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subset {
    /// The name.
    pub name: String,
    /// `replicas` of the spec.
    pub replicas: Option<IntOrString>,
    /// `minReplicas` of the spec.
    pub min: Option<IntOrString>,
    /// `maxReplicas` of the spec.
    pub max: Option<IntOrString>,
    /// Its workload; nothing while there is none.
    pub workload: Option<Workload>,
}

/// The workload of a subset, as the division needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// `spec.replicas`.
    pub replicas: i64,
    /// `status.readyReplicas`.
    pub ready: i64,
    /// Since when the subset cannot take pods.
    pub unschedulable: Option<Timestamp>,
    /// Pods that are kept while they wait for a node.
    pub reserved: i64,
    /// The subset was known not to take pods before this reconcile.
    pub marked: bool,
}

/// What a subset gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The number.
    pub replicas: i64,
    /// Why it is this number.
    pub why: Why,
}

/// Why a subset gets its number. The first one that applies, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// The subset's own `replicas`.
    Own(String),
    /// The rest is divided evenly.
    Even,
    /// The same, and one of those that are left over.
    EvenAndOne,
    /// The subset cannot take pods.
    Unschedulable {
        /// Since when.
        since: Timestamp,
        /// Its ready pods.
        ready: i64,
    },
    /// The subset cannot take pods, but its `minReplicas` hold.
    MinimumAnyway(String),
    /// Pods of the subset wait for a node.
    Reserved(i64),
    /// Running pods are not moved back.
    KeepsReady(i64),
    /// `minReplicas` and nothing more.
    Minimum(String),
    /// `maxReplicas` is reached.
    Full(String),
    /// What is left.
    Rest,
}

impl fmt::Display for Why {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pods = |count: i64| if count == 1 { "pod" } else { "pods" };
        match self {
            Self::Own(value) => write!(to, "replicas: {value}"),
            Self::Even => to.write_str("even share"),
            Self::EvenAndOne => to.write_str("even share, one extra"),
            Self::Unschedulable { since, ready } => {
                let verb = if *ready == 1 { "counts" } else { "count" };
                let since = text::time(*since);
                write!(to, "unschedulable since {since}: only its {ready} ready {} {verb}", pods(*ready))
            }
            Self::MinimumAnyway(value) => write!(to, "unschedulable, but minReplicas {value}"),
            Self::Reserved(count) => write!(to, "{count} reserved: stand-ins are in later subsets"),
            Self::KeepsReady(count) => write!(to, "keeps its {count} ready {}", pods(*count)),
            Self::Minimum(value) => write!(to, "minReplicas {value}"),
            Self::Full(value) => write!(to, "full: maxReplicas {value}"),
            Self::Rest => to.write_str("takes the rest"),
        }
    }
}

/// Why the replicas cannot be divided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The subsets ask for more than there is.
    #[error("specified subsets' replica ({sum}) is greater than UnitedDeployment replica ({total})")]
    TooMany {
        /// What they ask for.
        sum: i64,
        /// What there is.
        total: i64,
    },
    /// All subsets say what they want, and something is left.
    #[error("specified subsets' replica ({sum}) is less than UnitedDeployment replica ({total})")]
    TooFew {
        /// What they ask for.
        sum: i64,
        /// What there is.
        total: i64,
    },
    /// A minimum is above the maximum.
    #[error("subset[{index}].maxReplicas({max}) must be more than or equal to minReplicas({min})")]
    MinimumAboveMaximum {
        /// The place of the subset.
        index: usize,
        /// Its maximum.
        max: i64,
        /// Its minimum.
        min: i64,
    },
    /// A number that is none.
    #[error("{0}")]
    Invalid(String),
}

/// Divides the replicas. The answer has one share for each subset, in the same order.
pub fn allocate(total: i64, mode: Mode, subsets: &[Subset]) -> Result<Vec<Share>, Error> {
    let total = total.max(0);
    let is_bounded = subsets.iter().any(|subset| subset.min.is_some() || subset.max.is_some());
    match mode {
        Mode::Fixed if !is_bounded => by_numbers(total, subsets),
        Mode::Fixed => by_bounds(total, subsets, false),
        Mode::Adaptive => by_bounds(total, subsets, true),
        Mode::Reserving => with_stand_ins(total, subsets),
    }
}

/// A number or a share of the total: half a pod counts as one.
pub fn resolve(value: &IntOrString, total: i64) -> Result<i64, String> {
    let number = match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(written) => {
            let Some(digits) = written.strip_suffix('%') else {
                return Err(format!(
                    "subset replicas ({written}) only support integer value or percentage value with a suffix '%'"
                ));
            };
            let percent: i64 = digits.parse().map_err(|_| {
                format!(
                    "subset replicas ({written}) should be correct percentage integer: strconv.ParseInt: parsing \
                     {digits:?}: invalid syntax"
                )
            })?;
            if !(0..=100).contains(&percent) {
                return Err(format!("subset replicas ({written}) should be in range [0, 100]"));
            }
            return Ok((total.saturating_mul(percent).saturating_add(50)) / 100);
        }
    };
    if number < 0 {
        return Err(format!("subset replicas ({number}) should not be less than 0"));
    }
    Ok(number)
}

/// A number or a share as the spec spells it.
pub fn spelled(value: &IntOrString) -> String {
    match value {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(written) => written.clone(),
    }
}

fn resolved(value: Option<&IntOrString>, total: i64) -> Result<Option<i64>, Error> {
    value.map(|value| resolve(value, total).map_err(Error::Invalid)).transpose()
}

/// Some subsets say how many pods they have; the others share the rest evenly. Those that have most now get what is left over,
/// so that few pods move.
fn by_numbers(total: i64, subsets: &[Subset]) -> Result<Vec<Share>, Error> {
    let own: Vec<Option<i64>> =
        subsets.iter().map(|subset| resolved(subset.replicas.as_ref(), total)).collect::<Result<_, _>>()?;
    let sum = own.iter().flatten().fold(0_i64, |sum, one| sum.saturating_add(*one));
    let others = own.iter().filter(|own| own.is_none()).count();
    if sum > total {
        return Err(Error::TooMany { sum, total });
    }
    if others == 0 && sum < total && !subsets.is_empty() {
        return Err(Error::TooFew { sum, total });
    }
    let count = i64::try_from(others).unwrap_or(i64::MAX).max(1);
    let (each, extra) = ((total - sum) / count, (total - sum) % count);
    let mut by_size: Vec<&Subset> = subsets.iter().filter(|subset| subset.replicas.is_none()).collect();
    by_size.sort_by_key(|subset| {
        (subset.workload.as_ref().map_or(0, |workload| workload.replicas), subset.name.as_str())
    });
    let first_extra = others.saturating_sub(usize::try_from(extra).unwrap_or(0));
    let with_extra: Vec<&str> = by_size.iter().skip(first_extra).map(|subset| subset.name.as_str()).collect();
    let share = |(subset, own): (&Subset, &Option<i64>)| match (own, &subset.replicas) {
        (Some(replicas), Some(value)) => Share { replicas: *replicas, why: Why::Own(spelled(value)) },
        _ if with_extra.contains(&subset.name.as_str()) => Share { replicas: each + 1, why: Why::EvenAndOne },
        _ => Share { replicas: each, why: Why::Even },
    };
    Ok(subsets.iter().zip(&own).map(share).collect())
}

/// The bounds of a subset in pods.
struct Bounds {
    min: i64,
    max: i64,
}

fn bounds(total: i64, subsets: &[Subset]) -> Result<Vec<Bounds>, Error> {
    let of = |(index, subset): (usize, &Subset)| {
        let min = resolved(subset.min.as_ref(), total)?.unwrap_or(0);
        let max = resolved(subset.max.as_ref(), total)?.unwrap_or(i64::MAX);
        if min > max {
            return Err(Error::MinimumAboveMaximum { index, max, min });
        }
        Ok(Bounds { min, max })
    };
    subsets.iter().enumerate().map(of).collect()
}

/// In order, every subset gets its minimum, while replicas last; then, in order, what it may have at most.
fn by_bounds(total: i64, subsets: &[Subset], adaptive: bool) -> Result<Vec<Share>, Error> {
    let asked = bounds(total, subsets)?;
    let actual: Vec<Bounds> = subsets
        .iter()
        .zip(&asked)
        .map(|(subset, Bounds { min, max })| match subset.workload.as_ref().filter(|_| adaptive) {
            None => Bounds { min: *min, max: *max },
            Some(Workload { ready, unschedulable, .. }) => {
                let kept = (*min).max((*ready).min(*max));
                Bounds { min: kept, max: if unschedulable.is_some() { kept } else { *max } }
            }
        })
        .collect();
    let mut rest = total;
    let mut given: Vec<i64> = Vec::new();
    for bounds in &actual {
        let first = bounds.min.min(rest);
        rest -= first;
        given.push(first);
    }
    let mut shares = Vec::new();
    for (((subset, asked), bounds), first) in subsets.iter().zip(&asked).zip(&actual).zip(given) {
        let more = (bounds.max - bounds.min).max(0).min(rest);
        rest -= more;
        let replicas = first + more;
        let workload = subset.workload.as_ref().filter(|_| adaptive);
        let ready = workload.map_or(0, |workload| workload.ready);
        let why = match (workload.and_then(|workload| workload.unschedulable), &subset.min) {
            (Some(_), Some(min)) if replicas > ready => Why::MinimumAnyway(spelled(min)),
            (Some(since), _) => Why::Unschedulable { since, ready },
            (None, _) if more == 0 && bounds.min > asked.min && first == bounds.min => {
                Why::KeepsReady(bounds.min)
            }
            _ => by_limits(subset, asked, replicas, more),
        };
        shares.push(Share { replicas, why });
    }
    Ok(shares)
}

fn by_limits(subset: &Subset, asked: &Bounds, replicas: i64, more: i64) -> Why {
    match (&subset.min, &subset.max) {
        (Some(min), _) if more == 0 && replicas <= asked.min => Why::Minimum(spelled(min)),
        (_, Some(max)) if replicas >= asked.max => Why::Full(spelled(max)),
        _ => Why::Rest,
    }
}

/// Pods that hang stay where they are and do not count, so a later subset gets their number again.
fn with_stand_ins(total: i64, subsets: &[Subset]) -> Result<Vec<Share>, Error> {
    let asked = bounds(total, subsets)?;
    let mut rest = total;
    let mut places: Vec<Place> = subsets.iter().map(|subset| Place::of(subset.workload.as_ref())).collect();
    for (place, bounds) in places.iter_mut().zip(&asked) {
        place.give(bounds.min, &mut rest);
    }
    let first: Vec<i64> = places.iter().map(|place| place.given).collect();
    for ((subset, place), bounds) in subsets.iter().zip(&mut places).zip(&asked) {
        let workload = subset.workload.as_ref();
        let to = match workload.filter(|workload| workload.unschedulable.is_some()) {
            Some(workload) => place.given.max(workload.replicas).min(bounds.max.max(place.given)),
            None => bounds.max,
        };
        place.give(to, &mut rest);
    }
    let share = |(((subset, place), asked), first): (((&Subset, &Place), &Bounds), &i64)| {
        let reserved = subset.workload.as_ref().map_or(0, |workload| workload.reserved);
        let why = match reserved {
            0 => by_limits(subset, asked, place.given, place.given - first),
            reserved => Why::Reserved(reserved),
        };
        Share { replicas: place.given, why }
    };
    Ok(subsets.iter().zip(&places).zip(&asked).zip(&first).map(share).collect())
}

/// What a subset has got so far, and how many more pods can run there.
struct Place {
    given: i64,
    capacity: i64,
}

impl Place {
    fn of(workload: Option<&Workload>) -> Self {
        let capacity = match workload {
            Some(workload) if workload.reserved > 0 || workload.marked => {
                workload.replicas - workload.reserved
            }
            _ => i64::MAX,
        };
        Self { given: 0, capacity }
    }

    /// Gives up to this number. Pods beyond the capacity are expected to hang, so they take nothing from the rest.
    fn give(&mut self, to: i64, rest: &mut i64) {
        let add = (to - self.given).min(*rest).max(0);
        self.given += add;
        self.capacity -= add;
        *rest -= if self.capacity >= 0 { add } else { (add + self.capacity).max(0) };
    }
}

/// `<total> replicas: <subset> <old> -> <new> (<why>), …`, at most ten subsets.
pub fn sentence(total: i64, subsets: &[Subset], shares: &[Share]) -> String {
    const MOST: usize = 10;
    let part = |(subset, share): (&Subset, &Share)| {
        let Share { replicas, why } = share;
        let old = subset.workload.as_ref().map(|workload| workload.replicas).filter(|old| old != replicas);
        let old = old.map(|old| format!("{old} -> ")).unwrap_or_default();
        format!("{} {old}{replicas} ({why})", subset.name)
    };
    let parts: Vec<String> = subsets.iter().zip(shares).take(MOST).map(part).collect();
    let more = match subsets.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", and {more} more subsets"),
    };
    let noun = if total == 1 { "replica" } else { "replicas" };
    format!("{total} {noun}: {}{more}", parts.join(", "))
}

/// Whether a subset gets another number than its workload has.
pub fn changes(subsets: &[Subset], shares: &[Share]) -> bool {
    subsets
        .iter()
        .zip(shares)
        .any(|(subset, share)| subset.workload.as_ref().map(|one| one.replicas) != Some(share.replicas))
}
