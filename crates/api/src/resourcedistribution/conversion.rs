//! ResourceDistribution between v1alpha1 and v1beta1: two renamed fields.

use serde_json::Value;

use crate::{
    convert::Error,
    json::{items_mut, rename},
};

const OLD_SELECTOR: &[&str] = &["spec", "targets", "namespaceLabelSelector"];
const NEW_SELECTOR: &[&str] = &["spec", "targets", "namespaceSelector"];

/// v1alpha1 to v1beta1.
pub(super) fn up(object: &mut Value) -> Result<(), Error> {
    rename(object, OLD_SELECTOR, NEW_SELECTOR);
    for condition in items_mut(object, &["status", "conditions"]) {
        rename(condition, &["failedNamespace"], &["failedNamespaces"]);
    }
    Ok(())
}

/// v1beta1 to v1alpha1.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    rename(object, NEW_SELECTOR, OLD_SELECTOR);
    for condition in items_mut(object, &["status", "conditions"]) {
        rename(condition, &["failedNamespaces"], &["failedNamespace"]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selector_and_failed_namespaces_change_their_names_and_back() {
        let old = json!({
            "spec": {"resource": {"kind": "Secret"}, "targets": {
                "namespaceLabelSelector": {"matchLabels": {"a": "b"}}, "allNamespaces": false}},
            "status": {"desired": 2, "conditions": [
                {"type": "CreateResourceFailed", "status": "True", "failedNamespace": ["x", "y"]},
                {"type": "GetResourceFailed", "status": "False"},
            ]},
        });
        let new = json!({
            "spec": {"resource": {"kind": "Secret"}, "targets": {
                "namespaceSelector": {"matchLabels": {"a": "b"}}, "allNamespaces": false}},
            "status": {"desired": 2, "conditions": [
                {"type": "CreateResourceFailed", "status": "True", "failedNamespaces": ["x", "y"]},
                {"type": "GetResourceFailed", "status": "False"},
            ]},
        });
        let mut object = old.clone();
        up(&mut object).unwrap();
        assert_eq!(object, new);
        down(&mut object).unwrap();
        assert_eq!(object, old);
    }
}
