//! The sets of a cluster, found by the namespace and the labels of a pod.

use std::{collections::BTreeMap, sync::Arc};

use super::Set;
use crate::text::Text;

/// All sets that are ready for pods.
///
/// A set that names its namespaces is not looked at for pods of others, nor one that asks for a label for pods without it:
/// thousands of them cost a pod nothing.
#[derive(Clone, Debug, Default)]
pub struct Sets {
    all: BTreeMap<Text, Arc<Set>>,
    /// Sets that may be about pods of any namespace.
    anywhere: Shelf,
    /// Sets that name their namespaces.
    by_namespace: BTreeMap<String, Shelf>,
}

/// Sets, by a label that pods must have.
#[derive(Clone, Debug, Default)]
struct Shelf {
    /// By its key and its value.
    by_label: BTreeMap<String, BTreeMap<String, Vec<Arc<Set>>>>,
    /// Those that ask for no value.
    others: Vec<Arc<Set>>,
    /// How many depend on labels of namespaces.
    choosy: usize,
}

impl Shelf {
    fn insert(&mut self, set: &Arc<Set>) {
        self.choosy += usize::from(set.matching().chooses_namespaces());
        match set.matching().asked() {
            None => self.others.push(set.clone()),
            Some((key, values)) => {
                let by_value = self.by_label.entry(key.to_owned()).or_default();
                for value in values {
                    by_value.entry(value.clone()).or_default().push(set.clone());
                }
            }
        }
    }

    fn remove(&mut self, set: &Arc<Set>) {
        self.choosy -= usize::from(set.matching().chooses_namespaces());
        let is_other = |one: &Arc<Set>| !Arc::ptr_eq(one, set);
        self.others.retain(is_other);
        for by_value in self.by_label.values_mut() {
            by_value.retain(|_, sets| {
                sets.retain(is_other);
                !sets.is_empty()
            });
        }
        self.by_label.retain(|_, by_value| !by_value.is_empty());
    }

    fn is_empty(&self) -> bool {
        self.by_label.is_empty() && self.others.is_empty()
    }

    fn find<'a, 'l>(
        &'a self,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
        found: &mut Vec<&'a Arc<Set>>,
    ) {
        let sets = labels.filter_map(|(key, value)| self.by_label.get(key)?.get(value));
        found.extend(sets.flatten());
        found.extend(&self.others);
    }
}

impl Sets {
    /// Adds a set, or replaces the one of the same name.
    pub fn insert(&mut self, set: Arc<Set>) {
        self.remove(set.name());
        match set.matching().named_namespaces() {
            None => self.anywhere.insert(&set),
            Some(namespaces) => {
                for namespace in namespaces {
                    self.by_namespace.entry(namespace.clone()).or_default().insert(&set);
                }
            }
        }
        self.all.insert(set.name().clone(), set);
    }

    /// Removes a set.
    pub fn remove(&mut self, name: &str) {
        let Some(set) = self.all.remove(name) else { return };
        let Some(namespaces) = set.matching().named_namespaces() else { return self.anywhere.remove(&set) };
        for namespace in namespaces {
            if let Some(shelf) = self.by_namespace.get_mut(namespace) {
                shelf.remove(&set);
                if shelf.is_empty() {
                    self.by_namespace.remove(namespace);
                }
            }
        }
    }

    /// The sets that may be about a pod of a namespace with these labels, in no particular order.
    pub fn about<'l>(
        &self,
        namespace: &str,
        labels: impl Iterator<Item = (&'l str, &'l str)> + Clone,
    ) -> Vec<&Arc<Set>> {
        let mut found = Vec::new();
        for shelf in self.shelves(namespace) {
            shelf.find(labels.clone(), &mut found);
        }
        found
    }

    /// Whether sets that may be about pods of a namespace depend on its labels.
    pub fn choose_among(&self, namespace: &str) -> bool {
        self.shelves(namespace).any(|shelf| shelf.choosy > 0)
    }

    fn shelves(&self, namespace: &str) -> impl Iterator<Item = &Shelf> {
        [&self.anywhere].into_iter().chain(self.by_namespace.get(namespace))
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

    fn set(name: &str, selector: Value, namespaces: Value) -> Arc<Set> {
        let set: SidecarSet = serde_json::from_value(json!({"metadata": {"name": name},
            "spec": {"selector": selector, "namespaceSelector": namespaces}}))
        .unwrap();
        Arc::new(Set::compile(&set, &[]).unwrap())
    }

    #[track_caller]
    fn check(sets: &Sets, namespace: &str, labels: &[(&str, &str)], expected: &[&str]) {
        let found = sets.about(namespace, labels.iter().copied());
        let mut names: Vec<&str> = found.iter().map(|set| set.name().as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{namespace} {labels:?}");
    }

    #[test]
    fn sets_that_name_their_namespaces_are_found_only_there() {
        let named = |names: &[&str]| json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}]});
        let pods = || json!({"matchLabels": {"app": "x"}});
        let labels = &[("app", "x")];
        let mut sets = Sets::default();
        sets.insert(set("c", pods(), Value::Null));
        assert!(!sets.choose_among("shop"));
        sets.insert(set("b", pods(), named(&["shop", "bank"])));
        sets.insert(set("a", pods(), json!({"matchLabels": {"kubernetes.io/metadata.name": "shop"}})));
        assert!(sets.choose_among("shop") && !sets.choose_among("default"));
        sets.insert(set("d", pods(), json!({"matchLabels": {"team": "x"}})));
        check(&sets, "shop", labels, &["a", "b", "c", "d"]);
        check(&sets, "bank", labels, &["b", "c", "d"]);
        check(&sets, "default", labels, &["c", "d"]);
        sets.insert(set("b", pods(), named(&["default"])));
        check(&sets, "bank", labels, &["c", "d"]);
        check(&sets, "default", labels, &["b", "c", "d"]);
        sets.remove("c");
        sets.remove("b");
        sets.remove("unknown");
        check(&sets, "default", labels, &["d"]);
        assert_eq!((sets.len(), sets.is_empty(), sets.choose_among("default")), (2, false, true));
        sets.remove("d");
        assert!(!sets.choose_among("default"));
    }

    #[test]
    fn sets_that_ask_for_a_label_are_found_only_for_pods_that_have_it() {
        let asks = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]});
        let mut sets = Sets::default();
        sets.insert(set("app", json!({"matchLabels": {"app": "x"}}), Value::Null));
        sets.insert(set("either", asks("In", json!(["front", "back"])), Value::Null));
        sets.insert(set("exists", asks("Exists", json!([])), Value::Null));
        sets.insert(set("not", asks("NotIn", json!(["back"])), Value::Null));
        sets.insert(set("nothing", json!({}), Value::Null));
        check(&sets, "default", &[], &["exists", "not", "nothing"]);
        check(&sets, "default", &[("app", "y")], &["exists", "not", "nothing"]);
        check(&sets, "default", &[("app", "x")], &["app", "exists", "not", "nothing"]);
        check(&sets, "default", &[("tier", "back")], &["either", "exists", "not", "nothing"]);
        sets.insert(set("either", asks("In", json!(["front"])), Value::Null));
        check(&sets, "default", &[("tier", "back")], &["exists", "not", "nothing"]);
        check(&sets, "default", &[("tier", "front")], &["either", "exists", "not", "nothing"]);
        for name in ["app", "either", "exists", "not", "nothing"] {
            sets.remove(name);
        }
        check(&sets, "default", &[("app", "x"), ("tier", "front")], &[]);
        assert!(sets.anywhere.is_empty());
    }
}
