//! A deployment that is scaled in the middle of a rollout: all its sets take their share.

use serde_json::Value;

use super::super::object::{annotation, number, text};
use super::{DESIRED, MAXIMUM, Pass, available, name, numbers, replicas, sum, uid};
use crate::status::Status;

/// Whether a set still carries another wanted number than the deployment's.
pub(super) fn is_due(pass: &Pass<'_>) -> bool {
    let wanted = replicas(&pass.deployment);
    pass.all.iter().filter(|set| replicas(set) > 0).any(|set| {
        annotation(set, DESIRED)
            .and_then(|text| text.parse::<i64>().ok())
            .is_some_and(|known| known != wanted)
    })
}

impl Pass<'_> {
    pub(super) async fn scale(&mut self, new: Option<&Value>) -> Result<(), Status> {
        let wanted = replicas(&self.deployment);
        let active: Vec<Value> = self.all.iter().filter(|set| replicas(set) > 0).cloned().collect();
        let only = match active.as_slice() {
            [] => new.cloned().or_else(|| self.all.last().cloned()),
            [one] => Some(one.clone()),
            _ => None,
        };
        if let Some(set) = only {
            if replicas(&set) != wanted {
                self.scale_to(&set, wanted).await?;
            }
            return Ok(());
        }
        if active.is_empty() {
            return Ok(());
        }
        if new.is_some_and(|new| is_saturated(new, wanted)) {
            let new = new.map(uid).unwrap_or_default();
            for set in active.iter().filter(|set| uid(set) != new) {
                self.scale_to(set, 0).await?;
            }
            return Ok(());
        }
        if text(&self.deployment, "/spec/strategy/type") == "Recreate" {
            return Ok(());
        }
        let allowed = if wanted > 0 { wanted + numbers::max_surge(&self.deployment) } else { 0 };
        let add = allowed - sum(&active, replicas);
        let shares = shares(&active, add, allowed);
        for (set, to) in shares {
            self.scale_to(&set, to).await?;
        }
        Ok(())
    }
}

fn is_saturated(new: &Value, wanted: i64) -> bool {
    let desired = annotation(new, DESIRED).and_then(|text| text.parse::<i64>().ok());
    replicas(new) == wanted
        && desired == Some(wanted)
        && available(new) == wanted
        && number(new, "/status/replicas").unwrap_or(0) == wanted
}

/// The new size of each set: the difference is shared by size, the biggest first; what is left over goes to
/// the first.
fn shares(active: &[Value], add: i64, allowed: i64) -> Vec<(Value, i64)> {
    let mut sets: Vec<Value> = active.to_vec();
    let born = |set: &Value| text(set, "/metadata/creationTimestamp").to_owned();
    sets.sort_by(|a, b| {
        // Of equal ones the newer grows first and the older shrinks first.
        let age = if add > 0 { born(b).cmp(&born(a)) } else { born(a).cmp(&born(b)) };
        replicas(b).cmp(&replicas(a)).then(age).then_with(|| name(a).cmp(name(b)))
    });
    let mut added = 0;
    let mut result: Vec<(Value, i64)> = Vec::with_capacity(sets.len());
    for set in sets {
        let size = replicas(&set);
        let mut part = 0;
        if add != 0 {
            let known = annotation(&set, MAXIMUM).and_then(|text| text.parse::<i64>().ok());
            let known = known.filter(|known| *known > 0).unwrap_or(allowed.max(1));
            // To the nearest whole number, halves up.
            let fair = (2 * size * allowed + known).div_euclid(2 * known) - size;
            let left = add - added;
            part = if add > 0 { fair.clamp(0, left) } else { fair.clamp(left, 0) };
        }
        added += part;
        result.push((set, size + part));
    }
    if let Some((_, first)) = result.first_mut() {
        *first = (*first + add - added).max(0);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(name: &str, size: i64, maximum: i64) -> Value {
        json!({
            "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {
                MAXIMUM: maximum.to_string(),
            }},
            "spec": {"replicas": size},
        })
    }

    #[track_caller]
    fn check(sizes: &[(i64, i64)], allowed: i64, expected: &[i64]) {
        let sets: Vec<Value> =
            sizes.iter().enumerate().map(|(at, (size, max))| set(&format!("s{at}"), *size, *max)).collect();
        let add = allowed - sum(&sets, replicas);
        let got: Vec<i64> = shares(&sets, add, allowed).into_iter().map(|(_, to)| to).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_change_of_size_is_shared_by_size() {
        // From 10 + 3 to 15 + 3 in the middle of a rollout (8 old, 5 new).
        check(&[(8, 13), (5, 13)], 18, &[11, 7]);
        check(&[(8, 13), (5, 13)], 8, &[5, 3]);
        check(&[(8, 13), (5, 13)], 0, &[0, 0]);
        check(&[(5, 10), (5, 10)], 11, &[6, 5]);
    }
}
