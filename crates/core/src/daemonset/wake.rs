//! Which changes of nodes a set has to hear of. Most changes are heartbeats, and no set does.

use kruise_api::{daemonset::v1beta1::DaemonSet, selector::Matcher};

use super::{Fit, Placement};
use crate::node::Node;

/// What decides which changes of nodes a set has to hear of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    placement: Placement,
    /// The nodes whose pods are updated.
    selector: Option<Matcher>,
}

/// Whether a node says the same to every set as before.
pub fn is_heartbeat(old: &Node, new: &Node) -> bool {
    let is_ready = |node: &Node| node.status.ready_since.is_some();
    old.metadata.uid == new.metadata.uid
        && old.metadata.unreadable == new.metadata.unreadable
        && is_ready(old) == is_ready(new)
        && old.metadata.labels == new.metadata.labels
        && old.spec == new.spec
}

impl Watched {
    /// Of a set.
    pub fn of(set: &DaemonSet) -> Self {
        let rolling = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let selector = rolling.and_then(|rolling| rolling.selector.as_ref());
        Self {
            placement: Placement::of(&set.spec.template.0),
            selector: selector.and_then(|selector| selector.matcher().ok()),
        }
    }

    /// Whether a change of a node means something to the set.
    pub fn is_news(&self, old: Option<&Node>, new: Option<&Node>) -> bool {
        self.meaning(old) != self.meaning(new)
    }

    fn meaning(&self, node: Option<&Node>) -> (Fit, bool) {
        let Some(node) = node else { return (Fit::default(), false) };
        let is_selected = self
            .selector
            .as_ref()
            .is_some_and(|selector| selector.accepts(|key| node.metadata.labels.text(key)));
        let Fit { should_run, should_continue, .. } = self.placement.fit(node);
        (Fit { should_run, should_continue, misfit: None }, is_selected)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn watched() -> Watched {
        let set = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "metadata": {"name": "agent"},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {"spec": {"nodeSelector": {"role": "worker"}}},
                "updateStrategy": {"rollingUpdate": {"selector": {"matchLabels": {"canary": "true"}}}},
            },
        });
        Watched::of(&serde_json::from_value(set).unwrap())
    }

    fn node(labels: Value, taint: Option<&str>) -> Node {
        let taints: Vec<Value> = taint.iter().map(|effect| json!({"key": "k", "effect": effect})).collect();
        serde_json::from_value(
            json!({"metadata": {"name": "n1", "labels": labels}, "spec": {"taints": taints}}),
        )
        .unwrap()
    }

    #[test]
    fn only_changes_of_fit_and_of_the_node_selector_are_news() {
        let worker = node(json!({"role": "worker"}), None);
        let other = node(json!({"role": "other"}), None);
        let labelled = node(json!({"role": "worker", "x": "y"}), None);
        let canary = node(json!({"role": "worker", "canary": "true"}), None);
        let tainted = node(json!({"role": "worker"}), Some("NoSchedule"));
        let check = |old, new, expected| assert_eq!(watched().is_news(old, new), expected, "{old:?} {new:?}");
        check(None, Some(&worker), true);
        check(None, Some(&other), false);
        check(Some(&worker), None, true);
        check(Some(&worker), Some(&other), true);
        check(Some(&worker), Some(&labelled), false);
        check(Some(&worker), Some(&canary), true);
        check(Some(&worker), Some(&tainted), true);
    }

    #[test]
    fn a_heartbeat_changes_nothing_that_a_set_reads() {
        let with = |ready: &str, at: &str| -> Node {
            let condition = json!({"type": "Ready", "status": ready, "lastHeartbeatTime": at});
            serde_json::from_value(
                json!({"metadata": {"name": "n1", "uid": "u", "resourceVersion": at}, "status": {"conditions": [condition]}}),
            )
            .unwrap()
        };
        assert!(is_heartbeat(&with("True", "2026-01-01T00:00:00Z"), &with("True", "2026-01-01T00:00:10Z")));
        assert!(!is_heartbeat(
            &with("True", "2026-01-01T00:00:00Z"),
            &with("Unknown", "2026-01-01T00:00:10Z")
        ));
        assert!(!is_heartbeat(&node(json!({}), None), &node(json!({}), Some("NoSchedule"))));
    }
}
