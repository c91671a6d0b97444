//! What a ContainerRecreateRequest gets for what its author left out. What comes from the pod is filled in by
//! admission, which knows the pod.

use serde_json::Value;

use crate::json::{default_at, object_mut};

/// Fills in the defaults of either version. What is set stays as it is.
pub(super) fn apply(object: &mut Value) {
    if object_mut(object, &["spec"]).is_some() {
        default_at(object, &["spec", "strategy", "failurePolicy"], "Fail");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failure_ends_the_request_unless_it_says_otherwise() {
        let mut object = json!({"spec": {"podName": "a"}});
        apply(&mut object);
        assert_eq!(object, json!({"spec": {"podName": "a", "strategy": {"failurePolicy": "Fail"}}}));
        let ignoring = json!({"spec": {"strategy": {"failurePolicy": "Ignore", "orderedRecreate": true}}});
        let mut object = ignoring.clone();
        apply(&mut object);
        assert_eq!(object, ignoring);
    }
}
