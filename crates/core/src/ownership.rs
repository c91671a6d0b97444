//! Which pods belong to a workload: those it has, those it lets go, and those without an owner that it takes.

use std::sync::Arc;

use kruise_api::selector::Matcher;
use serde_json::json;

use crate::{effect::Effect, lifecycle, object::ObjectRef, pod::Pod};

/// The pods of a workload, each list sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pods<'a> {
    /// They belong to the workload and have not ended.
    pub active: Vec<&'a Pod>,
    /// They have an owner reference to the workload, but they ended or are being deleted.
    pub inactive: Vec<&'a Pod>,
    /// They have an owner reference to the workload, but the selector does not match them any more.
    pub released: Vec<&'a Pod>,
    /// They have no controller, have not ended, and the selector matches them.
    pub orphans: Vec<&'a Pod>,
}

/// Sorts pods by whose they are. Pods of other controllers are left out.
pub fn sort<'a>(pods: &'a [Arc<Pod>], owner: &ObjectRef, selector: &Matcher) -> Pods<'a> {
    sort_by(pods, owner, selector, &Pod::is_active)
}

/// The same for pods with names of their own: one that has ended is active too, because it keeps its name until it is
/// deleted.
pub fn sort_named<'a>(pods: &'a [Arc<Pod>], owner: &ObjectRef, selector: &Matcher) -> Pods<'a> {
    sort_by(pods, owner, selector, &|pod| !pod.metadata.is_deleting())
}

fn sort_by<'a>(
    pods: &'a [Arc<Pod>],
    owner: &ObjectRef,
    selector: &Matcher,
    is_active: &dyn Fn(&Pod) -> bool,
) -> Pods<'a> {
    let mut sorted = Pods::default();
    let mut pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    pods.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    for pod in pods {
        let is_ours = pod.metadata.owner_references.iter().any(|reference| reference.uid == owner.uid);
        let matches = selector.accepts(|key| pod.metadata.labels.text(key));
        if !is_ours {
            let is_free = pod.metadata.controller().is_none() && !pod.metadata.unreadable;
            if is_free && matches && is_active(pod) {
                sorted.orphans.push(pod);
            }
        } else if !is_active(pod) {
            sorted.inactive.push(pod);
        // What cannot be read may be a label: the pod counts until somebody can say.
        } else if pod.metadata.unreadable || matches {
            sorted.active.push(pod);
        } else {
            sorted.released.push(pod);
        }
    }
    sorted
}

/// Removes the owner reference: the pod runs on without the workload.
pub fn release(pod: &Pod, owner: &ObjectRef) -> Effect {
    lifecycle::patch(pod, json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner.uid}]}}))
}

/// Makes the workload the controller of a pod without one. Nothing else may have changed on the pod since it was seen: in
/// the meantime it may have got another controller, or other labels.
///
/// Plan this only after a live read has shown that the workload exists with the same uid and is not being deleted: the
/// garbage collector would delete a pod that was adopted for an owner that is gone.
pub fn adopt(pod: &Pod, owner: &ObjectRef) -> Effect {
    let change = json!({"metadata": {"ownerReferences": [owner.controller_reference()]}});
    match lifecycle::patch(pod, change) {
        Effect::Patch { target, subresource, patch } => {
            let target = target.at_version(pod.metadata.resource_version.clone());
            Effect::Patch { target, subresource, patch }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use kruise_api::selector::LabelSelector;
    use serde_json::Value;

    use super::*;
    use crate::object::{ObjectKey, POD};

    fn pod(name: &str, owner: Value, app: &str, change: &dyn Fn(&mut Pod)) -> Arc<Pod> {
        let mut pod: Pod = serde_json::from_value(json!({"metadata": {
            "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7", "labels": {"app": app}, "ownerReferences": owner,
        }}))
        .unwrap();
        change(&mut pod);
        Arc::new(pod)
    }

    fn owner() -> ObjectRef {
        ObjectRef { resource: POD, key: ObjectKey::new("default", "web"), uid: "mine".into() }
    }

    #[test]
    fn pods_are_sorted_by_owner_phase_and_labels() {
        let own = || json!([{"uid": "mine", "controller": true}]);
        let failed = |pod: &mut Pod| pod.status.phase = "Failed".into();
        let unreadable = |pod: &mut Pod| pod.metadata.unreadable = true;
        let pods = [
            pod("g", json!([{"uid": "other", "controller": true}]), "web", &|_| {}),
            pod("f", json!([]), "db", &|_| {}),
            pod("e", json!([]), "web", &failed),
            pod("d", json!([]), "web", &|_| {}),
            pod("c", own(), "db", &|_| {}),
            pod("h", own(), "db", &unreadable),
            pod("b", own(), "web", &failed),
            pod("a", own(), "web", &|_| {}),
        ];
        let selector: LabelSelector = serde_json::from_value(json!({"matchLabels": {"app": "web"}})).unwrap();
        let sorted = sort(&pods, &owner(), &selector.matcher().unwrap());
        let names = |pods: &[&Pod]| pods.iter().map(|pod| pod.metadata.name.as_str()).collect::<String>();
        let all = [&sorted.active, &sorted.inactive, &sorted.released, &sorted.orphans];
        assert_eq!(all.map(|pods| names(pods)), ["ah", "b", "c", "d"]);
    }

    #[test]
    fn adoption_holds_only_for_the_version_that_was_seen() {
        let orphan = pod("a", json!([]), "web", &|_| {});
        let Effect::Patch { target, .. } = adopt(&orphan, &owner()) else { panic!() };
        assert_eq!((target.uid.as_deref(), target.resource_version.as_deref()), (Some("uid-a"), Some("7")));
    }
}
