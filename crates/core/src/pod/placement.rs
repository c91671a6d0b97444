//! Which nodes a pod demands, in few bytes: what many pods have in common is kept as one text.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::text::{Pool, Text};

/// The required part of a pod's node affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeAffinity {
    /// The only node that it allows, where it names one. Pods that run once on each node have it.
    pub node: Text,
    /// Its terms as JSON; empty where there is nothing but the [node](Self::node).
    pub terms: Text,
}

impl NodeAffinity {
    pub(super) fn share(&mut self, pool: &mut Pool) {
        // Each node has few pods of its own, but all pools see its name often.
        pool.share(&mut self.node);
        pool.share(&mut self.terms);
    }
}

impl<'de> Deserialize<'de> for NodeAffinity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let affinity = Value::deserialize(deserializer)?;
        let required = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let Some(terms) = affinity.pointer(required).filter(|terms| !terms.is_null()) else {
            return Ok(Self::default());
        };
        let node = terms.as_array().and_then(|terms| only_node(terms)).unwrap_or_default();
        let is_all = !node.is_empty() && terms.as_array().is_some_and(|terms| terms.iter().all(names_only));
        let terms = if is_all { Text::default() } else { terms.to_string().into() };
        Ok(Self { node: node.into(), terms })
    }
}

/// The node that each of the terms names, if it is the same one.
fn only_node(terms: &[Value]) -> Option<&str> {
    let mut named = terms.iter().map(named);
    let first = named.next()??;
    named.all(|other| other == Some(first)).then_some(first)
}

fn named(term: &Value) -> Option<&str> {
    let fields = term.get("matchFields").and_then(Value::as_array)?;
    fields.iter().find_map(|field| {
        let text = |key: &str| field.get(key).and_then(Value::as_str);
        let is_name = text("key") == Some("metadata.name") && text("operator") == Some("In");
        match field.get("values").and_then(Value::as_array).map(Vec::as_slice) {
            Some([one]) if is_name => one.as_str(),
            _ => None,
        }
    })
}

/// Whether a term has one demand only.
fn names_only(term: &Value) -> bool {
    let count = |key: &str| term.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    count("matchExpressions") == 0 && count("matchFields") == 1
}

/// Keeps a value as its JSON; nothing for an empty one.
pub(super) fn json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    Ok(if is_empty { Text::default() } else { value.to_string().into() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(terms: Value) -> NodeAffinity {
        let required = json!({"nodeSelectorTerms": terms});
        serde_json::from_value(
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}),
        )
        .unwrap()
    }

    #[test]
    fn a_node_that_is_named_is_kept_apart_from_other_demands() {
        let name = |name: &str| json!({"key": "metadata.name", "operator": "In", "values": [name]});
        let only = read(json!([{"matchFields": [name("n1")]}]));
        assert_eq!((only.node.as_str(), only.terms.as_str()), ("n1", ""));
        let zone = json!({"key": "zone", "operator": "Exists"});
        let more = read(json!([{"matchFields": [name("n1")], "matchExpressions": [zone]}]));
        assert_eq!(more.node, "n1");
        assert!(more.terms.contains("zone"));
        let two = read(json!([{"matchFields": [name("n1")]}, {"matchFields": [name("n2")]}]));
        assert_eq!(two.node, "");
        assert!(two.terms.contains("n2"));
        assert_eq!(
            serde_json::from_value::<NodeAffinity>(json!({"podAffinity": {}})).unwrap(),
            NodeAffinity::default()
        );
    }
}
