//! The sets of a cluster, found by the namespace of a pod.

use std::{collections::BTreeMap, sync::Arc};

use super::Set;
use crate::text::Text;

/// All sets that are ready for pods.
///
/// A set that names its namespaces is not looked at for pods of others: thousands of them cost a pod nothing.
#[derive(Clone, Debug, Default)]
pub struct Sets {
    all: BTreeMap<Text, Arc<Set>>,
    /// Sets that may be about pods of any namespace.
    anywhere: BTreeMap<Text, Arc<Set>>,
    /// Sets that name their namespaces.
    by_namespace: BTreeMap<String, BTreeMap<Text, Arc<Set>>>,
}

impl Sets {
    /// Adds a set, or replaces the one of the same name.
    pub fn insert(&mut self, set: Arc<Set>) {
        self.remove(set.name());
        let name = set.name().clone();
        match set.matching().named_namespaces() {
            None => {
                self.anywhere.insert(name.clone(), set.clone());
            }
            Some(namespaces) => {
                for namespace in namespaces {
                    let named = self.by_namespace.entry(namespace.clone()).or_default();
                    named.insert(name.clone(), set.clone());
                }
            }
        }
        self.all.insert(name, set);
    }

    /// Removes a set.
    pub fn remove(&mut self, name: &str) {
        let Some(set) = self.all.remove(name) else { return };
        self.anywhere.remove(name);
        for namespace in set.matching().named_namespaces().into_iter().flatten() {
            if let Some(names) = self.by_namespace.get_mut(namespace) {
                names.remove(name);
                if names.is_empty() {
                    self.by_namespace.remove(namespace);
                }
            }
        }
    }

    /// The sets that may be about pods of a namespace, sorted by name.
    pub fn of_namespace<'a>(&'a self, namespace: &str) -> impl Iterator<Item = &'a Arc<Set>> + use<'a> {
        let named = self.by_namespace.get(namespace);
        let mut sets: Vec<&Arc<Set>> = self.anywhere.values().collect();
        if let Some(named) = named {
            sets.extend(named.values());
            sets.sort_by(|left, right| left.name().cmp(right.name()));
        }
        sets.into_iter()
    }

    /// A set.
    pub fn get(&self, name: &str) -> Option<&Arc<Set>> {
        self.all.get(name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use kruise_api::sidecarset::v1beta1::SidecarSet;
    use serde_json::{Value, json};

    use super::*;

    fn set(name: &str, namespaces: Value) -> Arc<Set> {
        let set: SidecarSet = serde_json::from_value(json!({"metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "namespaceSelector": namespaces}}))
        .unwrap();
        Arc::new(Set::compile(&set, &[]).unwrap())
    }

    #[track_caller]
    fn check(sets: &Sets, namespace: &str, expected: &[&str]) {
        let names: Vec<&str> = sets.of_namespace(namespace).map(|set| set.name().as_str()).collect();
        assert_eq!(names, expected, "{namespace}");
    }

    #[test]
    fn sets_that_name_their_namespaces_are_found_only_there() {
        let named = |names: &[&str]| json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}]});
        let mut sets = Sets::default();
        sets.insert(set("c", Value::Null));
        sets.insert(set("b", named(&["shop", "bank"])));
        sets.insert(set("a", json!({"matchLabels": {"kubernetes.io/metadata.name": "shop"}})));
        sets.insert(set("d", json!({"matchLabels": {"team": "x"}})));
        check(&sets, "shop", &["a", "b", "c", "d"]);
        check(&sets, "bank", &["b", "c", "d"]);
        check(&sets, "default", &["c", "d"]);
        sets.insert(set("b", named(&["default"])));
        check(&sets, "bank", &["c", "d"]);
        check(&sets, "default", &["b", "c", "d"]);
        sets.remove("c");
        sets.remove("b");
        sets.remove("unknown");
        check(&sets, "default", &["d"]);
        assert_eq!((sets.len(), sets.is_empty()), (2, false));
    }
}
