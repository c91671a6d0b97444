//! PodUnavailableBudget between v1alpha1 (two settings in annotations) and v1beta1.
//!
//! This conversion never fails: one bad object in storage would break every list of the kind. Admission refuses bad
//! texts; here they stay in the annotation.

use serde_json::{Value, json};

use super::v1beta1::Operation;
use crate::{
    annotations::{PUB_PROTECT_OPERATIONS, PUB_PROTECT_TOTAL_REPLICAS},
    convert::{Error, annotation, set_annotation, take_annotation},
    json::{set, take},
};

const OPERATIONS: &[&str] = &["spec", "protectOperations"];
const TOTAL: &[&str] = &["spec", "protectTotalReplicas"];

/// v1alpha1 to v1beta1.
pub(super) fn up(object: &mut Value) -> Result<(), Error> {
    let operations: Vec<&str> = annotation(object, PUB_PROTECT_OPERATIONS)
        .into_iter()
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|operation| Operation::KNOWN.contains(operation))
        .collect();
    if !operations.is_empty() {
        let operations = json!(operations);
        take_annotation(object, PUB_PROTECT_OPERATIONS);
        set(object, OPERATIONS, operations);
    }
    let total = annotation(object, PUB_PROTECT_TOTAL_REPLICAS).and_then(|text| text.parse::<i32>().ok());
    if let Some(total) = total.filter(|total| *total >= 1) {
        take_annotation(object, PUB_PROTECT_TOTAL_REPLICAS);
        set(object, TOTAL, total);
    }
    Ok(())
}

/// v1beta1 to v1alpha1.
///
/// An annotation on an object without the field stays: such objects were stored before there was a conversion, and
/// the annotation still counts for them.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    if let Some(Value::Array(operations)) = take(object, OPERATIONS)
        && !operations.is_empty()
    {
        let operations: Vec<&str> = operations.iter().filter_map(Value::as_str).collect();
        set_annotation(object, PUB_PROTECT_OPERATIONS, operations.join(","));
    }
    if let Some(Value::Number(total)) = take(object, TOTAL) {
        set_annotation(object, PUB_PROTECT_TOTAL_REPLICAS, total.to_string());
    }
    take(object, &["spec", "ignoredPodSelector"]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_up(annotations: Value, expected_spec: Value, expected_annotations: Value) {
        let mut object = json!({"metadata": {"annotations": annotations}, "spec": {}});
        up(&mut object).unwrap();
        assert_eq!(object["spec"], expected_spec);
        assert_eq!(object["metadata"]["annotations"], expected_annotations);
    }

    #[test]
    fn annotations_become_fields_and_blanks_do_not_matter() {
        check_up(
            json!({"kruise.io/pub-protect-operations": " UPDATE , DELETE,,", "pub.kruise.io/protect-total-replicas": "15"}),
            json!({"protectOperations": ["UPDATE", "DELETE"], "protectTotalReplicas": 15}),
            Value::Null,
        );
    }

    #[test]
    fn bad_texts_never_fail_and_never_become_fields() {
        let bad = json!({"kruise.io/pub-protect-operations": "delete", "pub.kruise.io/protect-total-replicas": "0"});
        check_up(bad.clone(), json!({}), bad);
        check_up(
            json!({"kruise.io/pub-protect-operations": "DRAIN,EVICT"}),
            json!({"protectOperations": ["EVICT"]}),
            Value::Null,
        );
    }

    #[test]
    fn fields_become_annotations_in_the_older_form() {
        let mut object = json!({"metadata": {}, "spec": {
            "protectOperations": ["EVICT", "RESIZE"], "protectTotalReplicas": 3,
            "ignoredPodSelector": {"matchLabels": {"a": "b"}}, "maxUnavailable": 1}});
        down(&mut object).unwrap();
        assert_eq!(object["spec"], json!({"maxUnavailable": 1}));
        assert_eq!(
            object["metadata"]["annotations"],
            json!({"kruise.io/pub-protect-operations": "EVICT,RESIZE", "pub.kruise.io/protect-total-replicas": "3"})
        );
    }

    #[test]
    fn an_ignored_pod_selector_survives_a_write_in_the_older_version() {
        let hub = json!({"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
            "metadata": {"name": "a"}, "spec": {"maxUnavailable": 1, "ignoredPodSelector": {}}});
        let mut older = crate::convert::convert(hub.clone(), "policy.kruise.io/v1alpha1").unwrap();
        assert_eq!(older["spec"], json!({"maxUnavailable": 1}));
        older["spec"]["maxUnavailable"] = json!(2);
        let back = crate::convert::convert(older, "policy.kruise.io/v1beta1").unwrap();
        assert_eq!(back["spec"], json!({"maxUnavailable": 2, "ignoredPodSelector": {}}));
    }
}
