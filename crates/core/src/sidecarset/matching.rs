//! Which pods a set is about, and whether two sets can be about the same pod.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::{
    annotations::{SIDECARSET_BASE, SIDECARSET_CANARY},
    labels::NAMESPACE_NAME,
    selector::{Error, LabelSelector, Matcher},
    sidecarset::v1beta1::{SidecarSet, Spec},
};

/// The selectors of a set, read once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matching {
    /// Nothing for a selector that is missing or empty: such a set is about no pod.
    pods: Option<Matcher>,
    /// Nothing when pods of all namespaces are meant.
    namespaces: Option<Matcher>,
    /// The only namespaces that can be meant, if the selector tells them by name.
    named: Option<Vec<String>>,
}

impl Matching {
    /// Reads the selectors of a set.
    pub fn of(spec: &Spec) -> Result<Self, Error> {
        let pods = spec.selector.as_ref().filter(|selector| !selector.is_empty());
        Ok(Self {
            pods: pods.map(LabelSelector::matcher).transpose()?,
            namespaces: spec.namespace_selector.as_ref().map(LabelSelector::matcher).transpose()?,
            named: spec.namespace_selector.as_ref().and_then(named),
        })
    }

    /// Whether the labels of a pod are chosen. `label` gives the value of a key.
    pub fn selects<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.pods.as_ref().is_some_and(|pods| pods.accepts(label))
    }

    /// A label that all chosen pods have, with the values that it may have: what an index goes by.
    pub fn asked(&self) -> Option<(&str, &[String])> {
        self.pods.as_ref().and_then(Matcher::asked)
    }

    /// Whether pods of a namespace with these labels are meant.
    pub fn covers<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.namespaces.as_ref().is_none_or(|namespaces| namespaces.accepts(label))
    }

    /// Whether [`covers`](Self::covers) depends on the namespace at all.
    pub fn chooses_namespaces(&self) -> bool {
        self.namespaces.is_some()
    }

    /// The only namespaces that can be meant, if the selector tells them by name: what an index goes by.
    pub fn named_namespaces(&self) -> Option<&[String]> {
        self.named.as_deref()
    }
}

/// The names that a selector of namespaces admits, if it says any.
fn named(selector: &LabelSelector) -> Option<Vec<String>> {
    let by_label = selector.match_labels.get(NAMESPACE_NAME).map(|name| vec![name.clone()]);
    let by_list = || {
        let lists = &selector.match_expressions;
        let list = lists.iter().find(|one| one.key == NAMESPACE_NAME && one.operator == "In")?;
        Some(list.values.clone())
    };
    by_label.or_else(by_list)
}

/// The set that a canary stands in for. A set is a canary only with both annotations.
pub fn base_of(set: &SidecarSet) -> Option<&str> {
    let annotation = |key: &str| super::annotation(set, key);
    (annotation(SIDECARSET_CANARY) == Some("true"))
        .then(|| annotation(SIDECARSET_BASE))
        .flatten()
        .filter(|base| !base.is_empty())
}

/// Whether one pod can be meant by both sets.
pub fn can_meet(left: &Spec, right: &Spec) -> bool {
    let namespaces = match (&left.namespace_selector, &right.namespace_selector) {
        (Some(left), Some(right)) => overlap(left, right),
        _ => true,
    };
    let pods = match (&left.selector, &right.selector) {
        (Some(left), Some(right)) => overlap(left, right),
        _ => false,
    };
    namespaces && pods
}

/// Whether some labels satisfy both selectors.
pub fn overlap(left: &LabelSelector, right: &LabelSelector) -> bool {
    let mut demands: BTreeMap<&str, Demand<'_>> = BTreeMap::new();
    for selector in [left, right] {
        for (key, value) in &selector.match_labels {
            demands.entry(key).or_default().one_of([value.as_str()].into());
        }
        for requirement in &selector.match_expressions {
            let demand = demands.entry(&requirement.key).or_default();
            let values = || requirement.values.iter().map(String::as_str);
            match requirement.operator.as_str() {
                "In" => demand.one_of(values().collect()),
                "NotIn" => demand.refused.extend(values()),
                "Exists" => demand.exists = true,
                "DoesNotExist" => demand.absent = true,
                _ => {}
            }
        }
    }
    demands.values().all(Demand::can_be_met)
}

/// What both selectors demand of one label.
#[derive(Default)]
struct Demand<'a> {
    allowed: Option<BTreeSet<&'a str>>,
    refused: BTreeSet<&'a str>,
    exists: bool,
    absent: bool,
}

impl<'a> Demand<'a> {
    fn one_of(&mut self, values: BTreeSet<&'a str>) {
        self.allowed = Some(match self.allowed.take() {
            Some(allowed) => allowed.intersection(&values).copied().collect(),
            None => values,
        });
    }

    fn can_be_met(&self) -> bool {
        let value =
            self.allowed.as_ref().is_none_or(|allowed| allowed.difference(&self.refused).next().is_some());
        // A label may have any of endless values, so refusals alone exclude nothing.
        value && !(self.absent && (self.exists || self.allowed.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn selector(value: Value) -> LabelSelector {
        serde_json::from_value(value).unwrap()
    }

    fn expression(operator: &str, values: &[&str]) -> Value {
        json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]})
    }

    fn spec(value: Value) -> Spec {
        serde_json::from_value(value).unwrap()
    }

    /// SIDECARSET-2
    #[test]
    fn pods_are_chosen_by_labels_and_namespace() {
        let set = spec(json!({"selector": {"matchLabels": {"app": "x"}},
            "namespaceSelector": {"matchLabels": {"team": "a"}}}));
        let matching = Matching::of(&set).unwrap();
        assert!(matching.selects(|key| (key == "app").then_some("x")));
        assert!(!matching.selects(|_| None));
        assert!(matching.covers(|key| (key == "team").then_some("a")));
        assert!(!matching.covers(|_| None));
    }

    #[test]
    fn a_set_without_a_selector_is_about_no_pod() {
        for set in [json!({}), json!({"selector": {}})] {
            let matching = Matching::of(&spec(set)).unwrap();
            assert!(!matching.selects(|_| Some("x")));
            assert!(matching.covers(|_| None));
        }
    }

    #[test]
    fn namespaces_that_are_told_by_name_are_known() {
        let name = NAMESPACE_NAME;
        for (namespaces, expected) in [
            (json!({"matchLabels": {name: "shop", "team": "a"}}), Some(vec!["shop"])),
            (
                json!({"matchExpressions": [{"key": name, "operator": "In", "values": ["a", "b"]}]}),
                Some(vec!["a", "b"]),
            ),
            (json!({"matchExpressions": [{"key": name, "operator": "NotIn", "values": ["a"]}]}), None),
            (json!({"matchLabels": {"team": "a"}}), None),
        ] {
            let matching = Matching::of(&spec(json!({"namespaceSelector": namespaces}))).unwrap();
            let named = matching.named_namespaces().map(|names| names.iter().map(String::as_str).collect());
            assert_eq!(named, expected);
        }
    }

    /// SIDECARSET-38, and the pairs that were recorded from the original but for `Exists` on another key.
    #[test]
    fn selectors_overlap_when_some_labels_satisfy_both() {
        let label = |value: &str| json!({"matchLabels": {"a": value}});
        for (left, right, expected) in [
            (label("b"), label("b"), true),
            (label("b"), label("c"), false),
            (label("b"), json!({"matchLabels": {"c": "d"}}), true),
            (label("b"), expression("In", &["b", "y"]), true),
            (label("b"), expression("In", &["y"]), false),
            (label("b"), expression("NotIn", &["b"]), false),
            (label("b"), expression("NotIn", &["y"]), true),
            (label("b"), expression("Exists", &[]), true),
            (label("b"), expression("DoesNotExist", &[]), false),
            (expression("Exists", &[]), expression("DoesNotExist", &[]), false),
            (expression("NotIn", &["b"]), expression("DoesNotExist", &[]), true),
            (expression("NotIn", &["b"]), expression("Exists", &[]), true),
            (label("b"), json!({"matchExpressions": [{"key": "c", "operator": "Exists"}]}), true),
        ] {
            let (left, right) = (selector(left), selector(right));
            assert_eq!(overlap(&left, &right), expected, "{left:?} {right:?}");
            assert_eq!(overlap(&right, &left), expected, "{right:?} {left:?}");
        }
    }

    fn any_selector() -> impl Strategy<Value = LabelSelector> {
        let requirement =
            ("[ab]", 0..4_usize, prop::collection::vec("[xyz]", 1..3)).prop_map(|(key, operator, values)| {
                let operator = ["In", "NotIn", "Exists", "DoesNotExist"][operator].to_owned();
                let values = if operator.ends_with("In") { values } else { Vec::new() };
                kruise_api::selector::Requirement { key, operator, values }
            });
        prop::collection::vec(requirement, 0..3)
            .prop_map(|match_expressions| LabelSelector { match_expressions, ..LabelSelector::default() })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// With three values in the selectors, four are enough to try every case.
        #[test]
        fn overlap_is_what_trying_all_labels_says(left in any_selector(), right in any_selector()) {
            let (one, other) = (left.matcher().unwrap(), right.matcher().unwrap());
            let values = [None, Some("x"), Some("y"), Some("z"), Some("w")];
            let some_labels = values.iter().any(|a| values.iter().any(|b| {
                let label = |key: &str| if key == "a" { *a } else { *b };
                one.accepts(label) && other.accepts(label)
            }));
            prop_assert_eq!(overlap(&left, &right), some_labels);
        }
    }
}
