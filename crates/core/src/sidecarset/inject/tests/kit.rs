//! Sets and pods for tests of injection.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::sidecarset::v1beta1::SidecarSet;
use serde_json::{Value, json};

use crate::{
    pod::Pairs,
    revision::Revision,
    sidecarset::{Seen, Set, defaults, inject},
};

/// A set for pods with `app=x`, with its defaults.
pub(super) fn set(name: &str, spec: Value) -> SidecarSet {
    set_with(name, json!({}), spec)
}

/// The same with annotations.
pub(super) fn set_with(name: &str, annotations: Value, spec: Value) -> SidecarSet {
    let mut object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "annotations": annotations},
        "spec": {"selector": {"matchLabels": {"app": "x"}}}});
    json_patch::merge(&mut object["spec"], &spec);
    defaults::apply(&mut object, None);
    serde_json::from_value(object).unwrap()
}

/// A container with a policy.
pub(super) fn container(name: &str, more: Value) -> Value {
    let mut container = json!({"name": name, "image": format!("{name}:1")});
    json_patch::merge(&mut container, &more);
    container
}

/// A pod with `app=x`.
pub(super) fn pod(spec: Value) -> Value {
    json!({"metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "x"}}, "spec": spec})
}

/// A pod with one container.
pub(super) fn plain_pod() -> Value {
    pod(json!({"containers": [{"name": "app", "image": "app:1"}]}))
}

/// What is known at injection.
pub(super) struct World {
    pub(super) sets: Vec<SidecarSet>,
    pub(super) revisions: Vec<Arc<Revision>>,
    pub(super) namespace: Option<Pairs>,
    pub(super) sorts_by_name: bool,
    pub(super) now: Timestamp,
    pub(super) seed: u64,
}

impl World {
    pub(super) fn new(sets: impl IntoIterator<Item = SidecarSet>) -> Self {
        Self {
            sets: sets.into_iter().collect(),
            revisions: Vec::new(),
            namespace: Some(Pairs::default()),
            sorts_by_name: false,
            now: "2026-01-02T03:04:05Z".parse().unwrap(),
            seed: 7,
        }
    }

    /// The pod after injection, or why it is refused.
    pub(super) fn inject(&self, pod: Value) -> Result<Value, String> {
        let compiled = self.compiled();
        self.inject_by(&compiled.iter().collect::<Vec<_>>(), pod)
    }

    pub(super) fn compiled(&self) -> Vec<Arc<Set>> {
        self.sets.iter().map(|set| Arc::new(Set::compile(set, &self.revisions).unwrap())).collect()
    }

    /// The same with sets that are ready.
    pub(super) fn inject_by(&self, sets: &[&Arc<Set>], mut pod: Value) -> Result<Value, String> {
        let seen = Seen {
            sets,
            namespace: "shop",
            namespace_labels: self.namespace.as_ref(),
            sorts_by_name: self.sorts_by_name,
            now: self.now,
            seed: self.seed,
        };
        let before = pod.clone();
        let changed = inject(&mut pod, &seen).map_err(|error| error.to_string())?;
        assert!(changed || before == pod, "a pod that is said to be left alone is left alone");
        Ok(pod)
    }

    /// The containers of a pod after injection, as `name name`.
    #[track_caller]
    pub(super) fn order(&self, pod: Value) -> String {
        names(&self.inject(pod).unwrap()["spec"]["containers"])
    }
}

/// The names in a list.
pub(super) fn names(list: &Value) -> String {
    let names = list.as_array().into_iter().flatten().map(|one| one["name"].as_str().unwrap());
    names.collect::<Vec<_>>().join(" ")
}

/// The container of a name.
#[track_caller]
pub(super) fn find<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let lists = [&pod["spec"]["containers"], &pod["spec"]["initContainers"]];
    let mut all = lists.into_iter().filter_map(Value::as_array).flatten();
    all.find(|one| one["name"] == name).unwrap_or_else(|| panic!("no container {name}"))
}
