//! WorkloadSpread between v1alpha1 and v1beta1: two renamed node selectors, and conditions that must be complete in
//! v1beta1.

use serde_json::Value;

use crate::{
    convert::Error,
    json::{at_mut, default_at, items_mut, rename, set, take, text},
};

/// Condition times that nobody wrote down: v1beta1 demands a time.
const UNKNOWN_TIME: &str = "1970-01-01T00:00:00Z";

/// v1alpha1 to v1beta1.
pub(super) fn up(object: &mut Value) -> Result<(), Error> {
    for subset in items_mut(object, &["spec", "subsets"]) {
        rename(subset, &["requiredNodeSelectorTerm"], &["requiredNodeSelector"]);
        rename(subset, &["preferredNodeSelectorTerms"], &["preferredNodeSelector"]);
    }
    for_each_condition(object, |condition| {
        if text(condition, &["reason"]).is_none_or(str::is_empty) {
            set(condition, &["reason"], "Unknown");
        }
        default_at(condition, &["message"], "");
        default_at(condition, &["lastTransitionTime"], UNKNOWN_TIME);
    });
    Ok(())
}

/// v1beta1 to v1alpha1.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    for subset in items_mut(object, &["spec", "subsets"]) {
        rename(subset, &["requiredNodeSelector"], &["requiredNodeSelectorTerm"]);
        rename(subset, &["preferredNodeSelector"], &["preferredNodeSelectorTerms"]);
    }
    for_each_condition(object, |condition| {
        take(condition, &["observedGeneration"]);
        // The older version has no message where there is nothing to say.
        if text(condition, &["message"]) == Some("") {
            take(condition, &["message"]);
        }
        if text(condition, &["lastTransitionTime"]) == Some(UNKNOWN_TIME) {
            take(condition, &["lastTransitionTime"]);
        }
    });
    Ok(())
}

fn for_each_condition(object: &mut Value, change: impl Fn(&mut Value)) {
    let change_all = |subset: &mut Value| items_mut(subset, &["conditions"]).for_each(&change);
    items_mut(object, &["status", "subsetStatuses"]).for_each(change_all);
    let versions = at_mut(object, &["status", "versionedSubsetStatuses"]).and_then(Value::as_object_mut);
    for subsets in versions.into_iter().flat_map(|versions| versions.values_mut()) {
        items_mut(subsets, &[]).for_each(change_all);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn node_selectors_are_renamed_in_every_subset() {
        let old = json!({"spec": {"subsets": [
            {"name": "a", "requiredNodeSelectorTerm": {"matchFields": []}},
            {"name": "b", "preferredNodeSelectorTerms": [{"weight": 3, "preference": {}}], "maxReplicas": "50%"},
        ]}});
        let mut object = old.clone();
        up(&mut object).unwrap();
        let new = json!({"spec": {"subsets": [
            {"name": "a", "requiredNodeSelector": {"matchFields": []}},
            {"name": "b", "preferredNodeSelector": [{"weight": 3, "preference": {}}], "maxReplicas": "50%"},
        ]}});
        assert_eq!(object, new);
        down(&mut object).unwrap();
        assert_eq!(object, old);
    }

    #[test]
    fn conditions_are_completed_on_the_way_up() {
        let condition = json!({"type": "Schedulable", "status": "True"});
        let mut object = json!({"status": {
            "subsetStatuses": [{"name": "a", "conditions": [condition]}],
            "versionedSubsetStatuses": {"v1": [{"name": "a", "conditions": [condition]}], "v2": []},
        }});
        up(&mut object).unwrap();
        let complete = json!([{"type": "Schedulable", "status": "True", "reason": "Unknown", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z"}]);
        assert_eq!(object["status"]["subsetStatuses"][0]["conditions"], complete);
        assert_eq!(object["status"]["versionedSubsetStatuses"]["v1"][0]["conditions"], complete);
    }

    #[test]
    fn the_older_form_has_no_observed_generation_and_no_empty_message() {
        let mut object = json!({"status": {"subsetStatuses": [{"name": "a", "conditions": [
            {"type": "Schedulable", "status": "False", "reason": "X", "message": "", "observedGeneration": 3,
                "lastTransitionTime": "2026-11-15T19:00:00Z"}]}]}});
        down(&mut object).unwrap();
        assert_eq!(
            object["status"]["subsetStatuses"][0]["conditions"],
            json!([{"type": "Schedulable", "status": "False", "reason": "X",
                "lastTransitionTime": "2026-11-15T19:00:00Z"}])
        );
    }
}
