//! Pods that someone asked to be deleted, by a label on them or by a list of names in the workload.

use std::collections::BTreeSet;

use kruise_api::labels;
use serde_json::json;

use crate::{effect::Effect, lifecycle, pod::Pod, text::Text};

/// Whether a pod was asked to go. The value of the label does not matter.
pub fn is_specified(pod: &Pod, names: &BTreeSet<Text>) -> bool {
    pod.metadata.labels.contains(labels::SPECIFIED_DELETE) || names.contains(&pod.metadata.name)
}

/// Asks for the deletion of a pod. Nothing when it was asked for already.
pub fn specify(pod: &Pod) -> Option<Effect> {
    (!pod.metadata.labels.contains(labels::SPECIFIED_DELETE))
        .then(|| lifecycle::patch(pod, json!({"metadata": {"labels": {labels::SPECIFIED_DELETE: "true"}}})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_any_value_or_a_name_asks_for_a_deletion() {
        let pod = |labels: serde_json::Value| -> Pod {
            serde_json::from_value(json!({"metadata": {"name": "a", "labels": labels}})).unwrap()
        };
        let none = BTreeSet::new();
        assert!(is_specified(&pod(json!({"apps.kruise.io/specified-delete": "false"})), &none));
        assert!(is_specified(&pod(json!({})), &[Text::from("a")].into()));
        assert!(!is_specified(&pod(json!({})), &[Text::from("b")].into()));
        assert_eq!(specify(&pod(json!({"apps.kruise.io/specified-delete": ""}))), None);
    }
}
