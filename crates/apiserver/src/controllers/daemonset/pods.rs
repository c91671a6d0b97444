//! The pods of a DaemonSet: made for one node each, and tolerant of what befalls nodes.

use std::sync::Arc;

use kruise_api::annotations::DAEMONSET_TEMPLATE_GENERATION;
use kruise_api::labels::POD_TEMPLATE_GENERATION;
use serde_json::{Value, json};

use super::super::object::{annotation, child, flag, items, pod_from_template, set as put, text};
use super::REVISION_LABEL;
use crate::registry::Resource;

const PREFIX: &str = "node.kubernetes.io/";
/// Taints that pods of a DaemonSet endure.
const ENDURED: [(&str, &str); 6] = [
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
];
/// One more, for pods in the network of their node.
const ENDURED_ON_HOST: (&str, &str) = ("network-unavailable", "NoSchedule");

/// The pod for a node.
pub(super) fn build(sets: &Arc<Resource>, set: &Value, hash: &str, node: &str) -> Value {
    let template = set.pointer("/spec/template").unwrap_or(&Value::Null);
    let mut pod = pod_from_template(sets, set, template);
    put(&mut pod, "metadata", "generateName", json!(format!("{}-", text(set, "/metadata/name"))));
    if let Some(meta) = pod.get_mut("metadata")
        && let Some(labels) = child(meta, "labels")
    {
        labels.insert(REVISION_LABEL.to_owned(), json!(hash));
        let generation = annotation(set, DAEMONSET_TEMPLATE_GENERATION);
        if let Some(generation) = generation.filter(|text| text.parse::<i64>().is_ok()) {
            labels.insert(POD_TEMPLATE_GENERATION.to_owned(), json!(generation));
        }
    }
    if let Some(spec) = pod.get_mut("spec") {
        let all = tolerations(spec);
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("tolerations".to_owned(), Value::Array(all));
        }
        pin(spec, node);
    }
    pod
}

/// The tolerations of a template and those that every daemon has. One that is alike is replaced.
pub(super) fn tolerations(spec: &Value) -> Vec<Value> {
    let mut all = items(spec, "/tolerations").to_vec();
    let on_host = flag(spec, "/hostNetwork").then_some(ENDURED_ON_HOST);
    for (name, effect) in ENDURED.into_iter().chain(on_host) {
        let ours = json!({"key": format!("{PREFIX}{name}"), "operator": "Exists", "effect": effect});
        let alike = |known: &&mut Value| {
            ["/key", "/effect", "/operator", "/value"]
                .iter()
                .all(|part| text(known, part) == text(&ours, part))
        };
        match all.iter_mut().find(alike) {
            Some(known) => *known = ours,
            None => all.push(ours),
        }
    }
    all
}

/// Lets the scheduler find one node only; wishes of the template stay.
fn pin(spec: &mut Value, node: &str) {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let Some(affinity) = child(spec, "affinity") else { return };
    let nodes = affinity.entry("nodeAffinity").or_insert_with(|| json!({}));
    let terms = json!([{"matchFields": [field]}]);
    put(nodes, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", terms);
}

/// The node that a pod was made for.
pub(super) fn target(pod: &Value) -> Option<&str> {
    let terms =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let fields = items(pod, terms).iter().flat_map(|term| items(term, "/matchFields"));
    let mut named =
        fields.filter(|one| text(one, "/key") == "metadata.name" && text(one, "/operator") == "In");
    match items(named.next()?, "/values") {
        [one] => one.as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_pinned_to_its_node_and_keeps_other_wishes() {
        let wish = json!([{"weight": 1, "preference": {"matchExpressions": []}}]);
        let mut spec = json!({"affinity": {"nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": wish,
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]},
        }}});
        pin(&mut spec, "n1");
        let pod = json!({"spec": spec});
        assert_eq!(target(&pod), Some("n1"));
        assert_eq!(
            pod.pointer("/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution"),
            Some(&wish)
        );
    }

    #[test]
    fn tolerations_of_daemons_replace_those_that_are_alike() {
        let own = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 5});
        let other = json!({"key": "mine", "operator": "Exists"});
        let all = tolerations(&json!({"tolerations": [other, own]}));
        assert_eq!(all.len(), 7);
        assert_eq!(all[0], other);
        assert_eq!(all[1].get("tolerationSeconds"), None);
        assert_eq!(tolerations(&json!({"hostNetwork": true})).len(), 7);
    }
}
