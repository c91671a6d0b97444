//! PersistentPodState between v1alpha1 and v1beta1: `nodeTopologyKeys` became `keys`, and the retention policy became a
//! closed list of values.

use serde_json::Value;

use crate::{
    convert::Error,
    json::{items_mut, rename, take, text},
};

const REQUIRED: &[&str] = &["spec", "requiredPersistentTopology"];
const PREFERRED: &[&str] = &["spec", "preferredPersistentTopology"];
const RETENTION: &[&str] = &["spec", "persistentPodStateRetentionPolicy"];
const OLD: &str = "nodeTopologyKeys";
const NEW: &str = "keys";

/// v1alpha1 to v1beta1.
pub(super) fn up(object: &mut Value) -> Result<(), Error> {
    rename_keys(object, OLD, NEW);
    // An empty text means the same as none, and v1beta1 refuses it.
    if text(object, RETENTION) == Some("") {
        take(object, RETENTION);
    }
    Ok(())
}

/// v1beta1 to v1alpha1.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    rename_keys(object, NEW, OLD);
    Ok(())
}

fn rename_keys(object: &mut Value, from: &str, to: &str) {
    rename(object, &[REQUIRED, &[from]].concat(), &[REQUIRED, &[to]].concat());
    for wish in items_mut(object, PREFERRED) {
        rename(wish, &["preference", from], &["preference", to]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn topology_keys_change_their_name_and_back() {
        let old = json!({"spec": {
            "requiredPersistentTopology": {"nodeTopologyKeys": ["zone"]},
            "preferredPersistentTopology": [
                {"weight": 5, "preference": {"nodeTopologyKeys": ["host"]}},
                {"weight": 6, "preference": {"nodeTopologyKeys": []}},
            ],
        }});
        let new = json!({"spec": {
            "requiredPersistentTopology": {"keys": ["zone"]},
            "preferredPersistentTopology": [
                {"weight": 5, "preference": {"keys": ["host"]}}, {"weight": 6, "preference": {"keys": []}},
            ],
        }});
        let mut object = old.clone();
        up(&mut object).unwrap();
        assert_eq!(object, new);
        down(&mut object).unwrap();
        assert_eq!(object, old);
    }

    #[test]
    fn an_empty_retention_policy_is_no_policy() {
        let mut object = json!({"spec": {"persistentPodStateRetentionPolicy": ""}});
        up(&mut object).unwrap();
        assert_eq!(object, json!({"spec": {}}));
    }
}
