//! What a UnitedDeployment gets for what its author left out.

use serde_json::{Value, json};

use crate::json::{at, default_at, items_mut, object_or_insert};

const SUBSETS: &[&str] = &["spec", "topology", "subsets"];

/// Fills in the defaults of either version. What is set stays as it is. Templates are defaulted apart from this.
pub(super) fn apply(object: &mut Value) {
    if object_or_insert(object, &["spec"]).is_none() {
        return;
    }
    default_at(object, &["spec", "replicas"], 1);
    default_at(object, &["spec", "revisionHistoryLimit"], 10);
    default_at(object, &["spec", "updateStrategy", "type"], "Manual");
    default_at(object, &["spec", "updateStrategy", "manualUpdate"], json!({}));
    let any_has = |field: &str| {
        let subsets = at(object, SUBSETS).and_then(Value::as_array);
        subsets.into_iter().flatten().any(|subset| at(subset, &[field]).is_some())
    };
    if (any_has("minReplicas") || any_has("maxReplicas")) && !any_has("replicas") {
        items_mut(object, SUBSETS).for_each(|subset| default_at(subset, &["minReplicas"], 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_subsets(subsets: Value, expected: Value) {
        let mut object = json!({"spec": {"topology": {"subsets": subsets}}});
        apply(&mut object);
        assert_eq!(object["spec"]["topology"]["subsets"], expected);
    }

    #[test]
    fn an_empty_spec_gets_every_default() {
        let mut object = json!({"spec": {}});
        apply(&mut object);
        assert_eq!(
            object["spec"],
            json!({"replicas": 1, "revisionHistoryLimit": 10,
                "updateStrategy": {"type": "Manual", "manualUpdate": {}}})
        );
    }

    #[test]
    fn subsets_with_limits_have_a_lower_one() {
        check_subsets(
            json!([{"name": "a", "minReplicas": "10%"}, {"name": "b", "maxReplicas": 3}, {"name": "c"}]),
            json!([{"name": "a", "minReplicas": "10%"}, {"name": "b", "maxReplicas": 3, "minReplicas": 0},
                {"name": "c", "minReplicas": 0}]),
        );
    }

    #[test]
    fn subsets_without_limits_or_with_fixed_numbers_get_none() {
        let plain = json!([{"name": "a", "replicas": 2}, {"name": "b", "maxReplicas": 3}]);
        check_subsets(plain.clone(), plain);
        let even = json!([{"name": "a"}, {"name": "b"}]);
        check_subsets(even.clone(), even);
    }
}
