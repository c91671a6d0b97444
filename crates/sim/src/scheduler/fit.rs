//! The choice of a node for a pod: filters, scores, and the words for a pod that fits nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::cluster::{Cluster, Place};
use super::wants::{Spread, Wants};

/// At least so many nodes are compared before the best one is taken.
const ENOUGH: usize = 100;

/// Why a node does not take a pod: the words, and whether evicting other pods could change that.
type Why = (String, bool);

/// A spread with the smallest count among the domains that the pod may use.
struct Limit<'a> {
    spread: &'a Spread,
    least: i64,
}

/// The best node for the pod and where to begin with the next one, or the message for nobody.
pub(super) fn choose(
    cluster: &mut Cluster,
    wants: &Wants,
    start: &str,
    seed: u64,
) -> Result<(String, String), String> {
    let followed = wants.spreads.iter().map(|spread| &spread.term).chain(&wants.with).chain(&wants.apart);
    for term in followed.chain(wants.wishes.iter().map(|(_, term)| term)) {
        cluster.follow(term);
    }
    let cluster = &*cluster;
    let limits: Vec<Limit<'_>> = wants.spreads.iter().map(|spread| limit(cluster, wants, spread)).collect();
    let total = cluster.places.len();
    let wanted = if total <= ENOUGH { total } else { ENOUGH.max(total * (50 - (total / 125).min(45)) / 100) };
    let mut reasons: BTreeMap<String, (usize, bool)> = BTreeMap::new();
    let mut best: Option<((i64, u64), &String)> = None;
    let mut found = 0;
    // Begin where the last pod ended, so that big clusters fill evenly.
    let from = cluster.places.range::<str, _>((Bound::Included(start), Bound::Unbounded));
    let mut all = from.chain(cluster.places.range::<str, _>((Bound::Unbounded, Bound::Excluded(start))));
    for (name, place) in all.by_ref() {
        match filter(cluster, wants, &limits, name, place) {
            Err(whys) => {
                for (why, helps) in whys {
                    let count = reasons.entry(why).or_insert((0, helps));
                    count.0 += 1;
                }
            }
            Ok(()) => {
                let score = (score(cluster, wants, &limits, name, place), tie(name, seed));
                if best.as_ref().is_none_or(|(other, _)| score > *other) {
                    best = Some((score, name));
                }
                found += 1;
                if found >= wanted {
                    break;
                }
            }
        }
    }
    let next = all.next().map_or(start, |(name, _)| name);
    best.map(|(_, name)| (name.clone(), next.to_owned())).ok_or_else(|| message(total, &reasons))
}

/// Equal scores are decided by the name and the seed, never by chance.
fn tie(name: &str, seed: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

fn limit<'a>(cluster: &Cluster, wants: &Wants, spread: &'a Spread) -> Limit<'a> {
    let key = &spread.term.topology;
    let eligible = cluster.places.iter().filter(|(name, place)| {
        place.labels.contains_key(key) && (!wants.is_choosy() || wants.likes(name, &place.labels))
    });
    let domains: BTreeSet<&String> = eligible.filter_map(|(_, place)| place.labels.get(key)).collect();
    let counts = cluster.counts(&spread.term);
    let count = |value: &String| counts.and_then(|counts| counts.get(value)).copied().unwrap_or(0);
    let enough = i64::try_from(domains.len()).is_ok_and(|n| n >= spread.min_domains);
    let least = if enough { domains.into_iter().map(count).min().unwrap_or(0) } else { 0 };
    Limit { spread, least }
}

fn filter(
    cluster: &Cluster,
    wants: &Wants,
    limits: &[Limit<'_>],
    name: &str,
    place: &Place,
) -> Result<(), Vec<Why>> {
    let one = |text: &str, helps: bool| Err(vec![(text.to_owned(), helps)]);
    if place.unschedulable {
        let taint = super::wants::Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            value: String::new(),
            effect: "NoSchedule".to_owned(),
        };
        if !wants.tolerates(&taint) {
            return one("node(s) were unschedulable", false);
        }
    }
    let hard = |effect: &str| matches!(effect, "NoSchedule" | "NoExecute");
    if let Some(taint) = place.taints.iter().find(|taint| hard(&taint.effect) && !wants.tolerates(taint)) {
        return one(&format!("node(s) had untolerated taint {{{}: {}}}", taint.key, taint.value), false);
    }
    if !wants.likes(name, &place.labels) {
        return one("node(s) didn't match Pod's node affinity/selector", false);
    }
    let mut short = Vec::new();
    if place.pods + 1 > place.room {
        short.push(("Too many pods".to_owned(), true));
    }
    for (resource, asked, used, has) in [
        ("cpu", wants.cpu, place.used_cpu, place.cpu),
        ("memory", wants.memory, place.used_memory, place.memory),
    ] {
        if asked > 0 && asked + used > has {
            short.push((format!("Insufficient {resource}"), asked <= has));
        }
    }
    for (resource, asked) in &wants.others {
        let of = |amounts: &BTreeMap<String, i128>| amounts.get(resource).copied().unwrap_or(0);
        let (used, has) = (of(&place.used_others), of(&place.others));
        if asked + used > has {
            short.push((format!("Insufficient {resource}"), *asked <= has));
        }
    }
    if !short.is_empty() {
        return Err(short);
    }
    for limit in limits.iter().filter(|limit| limit.spread.required) {
        let Some(value) = place.labels.get(&limit.spread.term.topology) else {
            return one(
                "node(s) didn't match pod topology spread constraints (missing required label)",
                false,
            );
        };
        let own = i64::from(limit.spread.term.counts(&wants.namespace, &wants.labels));
        let there = cluster.counts(&limit.spread.term).and_then(|counts| counts.get(value)).copied();
        if there.unwrap_or(0) + own - limit.least > limit.spread.max_skew {
            return one("node(s) didn't match pod topology spread constraints", true);
        }
    }
    for term in &wants.with {
        let counts = cluster.counts(term);
        let here = place.labels.get(&term.topology).is_some_and(|value| {
            counts.is_some_and(|counts| counts.contains_key(value))
                || (counts.is_none_or(BTreeMap::is_empty) && term.counts(&wants.namespace, &wants.labels))
        });
        if !here {
            return one("node(s) didn't match pod affinity rules", false);
        }
    }
    for term in &wants.apart {
        let value = place.labels.get(&term.topology);
        if value.is_some_and(|value| cluster.counts(term).is_some_and(|counts| counts.contains_key(value))) {
            return one("node(s) didn't match pod anti-affinity rules", true);
        }
    }
    if cluster.repels(wants, &place.labels) {
        return one("node(s) didn't satisfy existing pods anti-affinity rules", true);
    }
    Ok(())
}

/// Free room first, evenness next, wishes most of all.
fn score(cluster: &Cluster, wants: &Wants, limits: &[Limit<'_>], name: &str, place: &Place) -> i64 {
    let free = |used: i128, asked: i128, has: i128| {
        let left = (has - used - asked).max(0) * 10_000;
        match (i64::try_from(left), i64::try_from(has)) {
            (_, Ok(..=0)) => 0,
            // Divisions of wide numbers are slow, and this is done for many nodes.
            (Ok(left), Ok(has)) => left / has,
            _ => left.checked_div(has).and_then(|share| i64::try_from(share).ok()).unwrap_or(0),
        }
    };
    // Pods without requests still count a little, as the real scheduler assumes.
    let cpu = free(place.used_cpu + i128::from(place.pods) * 100, wants.cpu.max(100), place.cpu);
    let memory = free(
        place.used_memory + i128::from(place.pods) * (200 << 20),
        wants.memory.max(200 << 20),
        place.memory,
    );
    let mut score = (cpu + memory) / 2;
    for limit in limits {
        let there = place.labels.get(&limit.spread.term.topology).and_then(|value| {
            cluster.counts(&limit.spread.term).map(|counts| counts.get(value).copied().unwrap_or(0))
        });
        score -= (there.unwrap_or(1_000) - limit.least).min(100) * 20_000;
    }
    score += wants.preference(name, &place.labels) * 10_000;
    for (weight, term) in &wants.wishes {
        let count =
            place.labels.get(&term.topology).and_then(|value| cluster.counts(term)?.get(value)).copied();
        score += weight * 10_000 * count.unwrap_or(0).min(100);
    }
    let soft = place.taints.iter().filter(|t| t.effect == "PreferNoSchedule" && !wants.tolerates(t)).count();
    score - 30_000 * i64::try_from(soft).unwrap_or(0)
}

/// The words of a scheduler that needs no look at the nodes to know that none will do.
pub(super) fn hopeless(cluster: &Cluster, why: &str) -> String {
    match cluster.places.len() {
        0 => "no nodes available to schedule pods".to_owned(),
        // The last two words are what becomes of the search for pods to evict.
        total => format!("0/{total} nodes are available: {why}. not found"),
    }
}

/// The words of a scheduler that found no node.
fn message(total: usize, reasons: &BTreeMap<String, (usize, bool)>) -> String {
    if total == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut parts: Vec<String> = reasons.iter().map(|(why, (count, _))| format!("{count} {why}")).collect();
    parts.sort();
    let helped: usize =
        reasons.values().filter(|(_, helps)| *helps).map(|(count, _)| *count).max().unwrap_or(0).min(total);
    let mut why = Vec::new();
    if helped > 0 {
        why.push(format!("{helped} No preemption victims found for incoming pod"));
    }
    if helped < total {
        why.push(format!("{} Preemption is not helpful for scheduling", total - helped));
    }
    why.sort();
    format!(
        "0/{total} nodes are available: {}. preemption: 0/{total} nodes are available: {}.",
        parts.join(", "),
        why.join(", ")
    )
}
