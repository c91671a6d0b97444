//! SidecarSet between v1alpha1 (a namespace by name, the custom version in a label) and v1beta1.

use serde_json::{Value, json};

use crate::{
    convert::{Error, set_label, take_label},
    json::{object_mut, set, take},
    labels::{NAMESPACE_NAME, SIDECARSET_CUSTOM_VERSION},
};

/// v1alpha1 to v1beta1.
pub(super) fn up(object: &mut Value) -> Result<(), Error> {
    if object_mut(object, &["spec"]).is_none() {
        return Ok(());
    }
    if let Some(Value::String(namespace)) = take(object, &["spec", "namespace"])
        && !namespace.is_empty()
    {
        set(object, &["spec", "namespaceSelector"], json!({"matchLabels": {NAMESPACE_NAME: namespace}}));
    }
    match take_label(object, SIDECARSET_CUSTOM_VERSION) {
        Some(version) if !version.is_empty() => set(object, &["spec", "customVersion"], version),
        _ => {}
    }
    Ok(())
}

/// v1beta1 to v1alpha1. The selector of namespaces stays a selector.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    // In v1beta1 the label means nothing; in v1alpha1 it would name the version.
    take_label(object, SIDECARSET_CUSTOM_VERSION);
    match take(object, &["spec", "customVersion"]) {
        Some(Value::String(version)) if is_label_value(&version) => {
            set_label(object, SIDECARSET_CUSTOM_VERSION, version);
        }
        _ => {}
    }
    Ok(())
}

/// Whether a text may be the value of a label, and says something. An API server refuses a converted object with a
/// broken label, and with it every list that contains the object.
fn is_label_value(text: &str) -> bool {
    let ends = |end: Option<char>| end.is_some_and(|end| end.is_ascii_alphanumeric());
    text.len() <= 63
        && ends(text.chars().next())
        && ends(text.chars().next_back())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{convert, label};

    const OLD: &str = "apps.kruise.io/v1alpha1";
    const HUB: &str = "apps.kruise.io/v1beta1";

    fn object(version: &str, labels: Value, spec: Value) -> Value {
        json!({"apiVersion": version, "kind": "SidecarSet", "metadata": {"name": "log", "labels": labels},
            "spec": spec})
    }

    /// SIDECARSET-3
    #[test]
    fn a_namespace_becomes_a_selector_and_wins_over_a_given_one() {
        let spec = json!({"namespace": "shop", "namespaceSelector": {"matchLabels": {"team": "a"}}});
        let hub = convert(object(OLD, json!({"a": "b"}), spec), HUB).unwrap();
        let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": "shop"}});
        assert_eq!(hub["spec"], json!({"namespaceSelector": selector}));
        assert_eq!(convert(hub, OLD).unwrap()["spec"], json!({"namespaceSelector": selector}));
    }

    #[test]
    fn an_empty_namespace_means_nothing() {
        let spec = json!({"namespace": "", "namespaceSelector": {"matchLabels": {"team": "a"}}});
        let hub = convert(object(OLD, json!({}), spec), HUB).unwrap();
        assert_eq!(hub["spec"], json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}));
    }

    /// SIDECARSET-3
    #[test]
    fn the_custom_version_is_a_label_of_the_older_version() {
        let old = object(OLD, json!({"a": "b", SIDECARSET_CUSTOM_VERSION: "v2"}), json!({}));
        let hub = convert(old.clone(), HUB).unwrap();
        assert_eq!(hub, object(HUB, json!({"a": "b"}), json!({"customVersion": "v2"})));
        assert_eq!(convert(hub, OLD).unwrap(), old);
    }

    #[test]
    fn a_label_left_over_in_the_newer_version_does_not_become_a_version() {
        let hub = object(HUB, json!({SIDECARSET_CUSTOM_VERSION: "v1"}), json!({}));
        let old = convert(hub.clone(), OLD).unwrap();
        assert_eq!(label(&old, SIDECARSET_CUSTOM_VERSION), None);
        assert_eq!(convert(old, HUB).unwrap(), hub);
    }

    #[test]
    fn a_version_that_no_label_can_hold_is_kept_apart() {
        for version in ["two words", "-v1", "v1.", &"x".repeat(64), "ü"] {
            let hub = object(HUB, json!({"a": "b"}), json!({"customVersion": version}));
            let old = convert(hub.clone(), OLD).unwrap();
            assert_eq!(label(&old, SIDECARSET_CUSTOM_VERSION), None, "{version}");
            assert_eq!(convert(old, HUB).unwrap(), hub);
        }
    }
}
