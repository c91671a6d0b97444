//! The arithmetic of a rolling update.

use serde_json::Value;

use super::super::object::{int_or_percent, text};
use super::replicas;

/// How many pods there may be besides the wanted ones.
pub(super) fn max_surge(deployment: &Value) -> i64 {
    if text(deployment, "/spec/strategy/type") == "Recreate" {
        return 0;
    }
    bounds(deployment).0
}

/// How many of the wanted pods may be missing.
pub(super) fn max_unavailable(deployment: &Value) -> i64 {
    let wanted = replicas(deployment);
    if text(deployment, "/spec/strategy/type") == "Recreate" || wanted == 0 {
        return 0;
    }
    bounds(deployment).1.min(wanted)
}

/// Surge and unavailability, not both zero: nothing would ever move.
fn bounds(deployment: &Value) -> (i64, i64) {
    let wanted = replicas(deployment);
    let part = |key: &str| deployment.pointer(&format!("/spec/strategy/rollingUpdate/{key}"));
    let surge = int_or_percent(part("maxSurge"), wanted, true).unwrap_or(0);
    let unavailable = int_or_percent(part("maxUnavailable"), wanted, false).unwrap_or(0);
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
}

/// How big the new set may be now, given the sizes of all sets together and its own.
pub(super) fn new_size(deployment: &Value, all: i64, new: i64) -> i64 {
    let wanted = replicas(deployment);
    if text(deployment, "/spec/strategy/type") == "Recreate" {
        return wanted;
    }
    let room = wanted + max_surge(deployment) - all;
    if room <= 0 { new } else { new + room.min(wanted - new) }
}

/// One old set: its size and how many of its pods are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Old {
    pub(super) size: i64,
    pub(super) available: i64,
}

/// The sizes of the old sets (oldest first) after one step: unhealthy pods go first, then as many as the
/// availability allows.
pub(super) fn old_sizes(deployment: &Value, new: Old, old: &[Old]) -> Vec<i64> {
    let mut sizes: Vec<i64> = old.iter().map(|set| set.size).collect();
    let floor = replicas(deployment) - max_unavailable(deployment);
    let total: i64 = sizes.iter().sum::<i64>() + new.size;
    let mut budget = total - floor - (new.size - new.available);
    if budget <= 0 {
        return sizes;
    }
    for (size, set) in sizes.iter_mut().zip(old) {
        let unhealthy = (*size - set.available).clamp(0, budget);
        *size -= unhealthy;
        budget -= unhealthy;
    }
    let available: i64 = new.available + old.iter().map(|set| set.available).sum::<i64>();
    let mut spare = available - floor;
    for size in &mut sizes {
        let less = (*size).min(spare.max(0));
        *size -= less;
        spare -= less;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(wanted: i64, surge: Value, unavailable: Value) -> Value {
        json!({"spec": {"replicas": wanted, "strategy": {
            "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
        }}})
    }

    #[test]
    fn the_new_set_grows_within_the_surge() {
        let ten = deployment(10, json!("25%"), json!("25%"));
        assert_eq!(max_surge(&ten), 3);
        assert_eq!(max_unavailable(&ten), 2);
        assert_eq!(new_size(&ten, 10, 0), 3);
        assert_eq!(new_size(&ten, 13, 3), 3);
        assert_eq!(new_size(&ten, 11, 9), 10);
        let stuck = deployment(3, json!(0), json!(0));
        assert_eq!((max_surge(&stuck), max_unavailable(&stuck)), (0, 1));
    }

    #[test]
    fn old_sets_shrink_by_unhealthy_pods_first_and_never_below_the_floor() {
        let ten = deployment(10, json!(3), json!(2));
        let sizes = |new: (i64, i64), old: &[(i64, i64)]| {
            let set = |(size, available): (i64, i64)| Old { size, available };
            let old: Vec<Old> = old.iter().map(|set_| set(*set_)).collect();
            old_sizes(&ten, set(new), &old)
        };
        assert_eq!(sizes((3, 0), &[(10, 10)]), [8]);
        assert_eq!(sizes((3, 3), &[(10, 10)]), [5]);
        assert_eq!(sizes((5, 0), &[(8, 8)]), [8]);
        // Two of the old pods are down: they go although the floor allows no healthy pod to go.
        assert_eq!(sizes((3, 0), &[(10, 8)]), [8]);
        assert_eq!(sizes((10, 10), &[(1, 0), (2, 2)]), [0, 0]);
    }
}
