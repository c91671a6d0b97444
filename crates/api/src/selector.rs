//! Label selectors: which objects a rule is about.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Chooses objects by their labels. Everything stated must hold; an empty selector matches every object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LabelSelector {
    /// Labels that an object must carry with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further demands on labels. All of them must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<Requirement>,
}

/// One demand on one label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label that is looked at.
    pub key: String,
    /// How the label is compared: `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values to compare with. Given for `In` and `NotIn`, empty for `Exists` and `DoesNotExist`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}

/// Why a selector cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operator has no meaning.
    #[error(
        "{operator:?} is not a valid label selector operator (In, NotIn, Exists, DoesNotExist) for key {key:?}"
    )]
    Operator {
        /// The label key.
        key: String,
        /// What was written.
        operator: String,
    },
    /// `In` or `NotIn` without values.
    #[error("key {key:?}: for 'in', 'notin' operators, values set can't be empty")]
    NoValues {
        /// The label key.
        key: String,
    },
    /// `Exists` or `DoesNotExist` with values.
    #[error("key {key:?}: values set must be empty for exists and does not exist")]
    Values {
        /// The label key.
        key: String,
    },
}

/// A selector whose operators were checked: matching cannot fail any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    tests: Vec<Test>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In { key: String, values: Vec<String> },
    NotIn { key: String, values: Vec<String> },
    Exists { key: String },
    Absent { key: String },
}

impl LabelSelector {
    /// The selector as kubectl and autoscalers write it.
    pub fn text(&self) -> String {
        let labels = self.match_labels.iter().map(|(key, value)| (key, format!("{key}={value}")));
        let expressions = self.match_expressions.iter().map(|one| {
            let mut values = one.values.clone();
            values.sort();
            let (key, values) = (&one.key, values.join(","));
            let text = match one.operator.as_str() {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.clone(),
            };
            (key, text)
        });
        let mut parts: Vec<(&String, String)> = labels.chain(expressions).collect();
        parts.sort_by(|left, right| left.0.cmp(right.0));
        parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
    }

    /// Whether the selector states nothing and so matches everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Checks the operators once, for many matches.
    pub fn matcher(&self) -> Result<Matcher, Error> {
        let labels = self
            .match_labels
            .iter()
            .map(|(key, value)| Ok(Test::In { key: key.clone(), values: vec![value.clone()] }));
        let tests =
            labels.chain(self.match_expressions.iter().map(Requirement::test)).collect::<Result<_, _>>()?;
        Ok(Matcher { tests })
    }
}

impl Requirement {
    fn test(&self) -> Result<Test, Error> {
        let key = self.key.clone();
        let values = self.values.clone();
        match (self.operator.as_str(), values.is_empty()) {
            ("In" | "NotIn", true) => Err(Error::NoValues { key }),
            ("Exists" | "DoesNotExist", false) => Err(Error::Values { key }),
            ("In", _) => Ok(Test::In { key, values }),
            ("NotIn", _) => Ok(Test::NotIn { key, values }),
            ("Exists", _) => Ok(Test::Exists { key }),
            ("DoesNotExist", _) => Ok(Test::Absent { key }),
            (operator, _) => Err(Error::Operator { key, operator: operator.to_owned() }),
        }
    }
}

impl Matcher {
    /// A label that everything has that is chosen, with the values that it may have.
    pub fn asked(&self) -> Option<(&str, &[String])> {
        self.wanted().next()
    }

    /// All such labels.
    pub fn wanted(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.tests.iter().filter_map(|test| match test {
            Test::In { key, values } => Some((key.as_str(), values.as_slice())),
            _ => None,
        })
    }

    /// Whether an object with these labels is chosen. A label that is absent satisfies `NotIn`.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.accepts(|key| labels.get(key).map(String::as_str))
    }

    /// The same for labels that are kept in another form: `label` gives the value of a key.
    pub fn accepts<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        let is_one_of = |values: &[String], value: &str| values.iter().any(|one| one == value);
        self.tests.iter().all(|test| match test {
            Test::In { key, values } => label(key).is_some_and(|value| is_one_of(values, value)),
            Test::NotIn { key, values } => label(key).is_none_or(|value| !is_one_of(values, value)),
            Test::Exists { key } => label(key).is_some(),
            Test::Absent { key } => label(key).is_none(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(selector: serde_json::Value, labels: &[(&str, &str)], expected: bool) {
        let selector: LabelSelector = serde_json::from_value(selector).unwrap();
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(selector.matcher().unwrap().matches(&labels), expected);
    }

    #[test]
    fn every_operator_decides_by_the_label() {
        let one = |op: &str, values: &[&str]| json!({"matchExpressions": [{"key": "a", "operator": op, "values": values}]});
        check(json!({}), &[], true);
        check(json!({"matchLabels": {"a": "1"}}), &[("a", "1")], true);
        check(json!({"matchLabels": {"a": "1"}}), &[("a", "2")], false);
        check(one("In", &["1", "2"]), &[("a", "2")], true);
        check(one("In", &["1", "2"]), &[], false);
        check(one("NotIn", &["1"]), &[], true);
        check(one("NotIn", &["1"]), &[("a", "1")], false);
        check(one("Exists", &[]), &[("a", "")], true);
        check(one("DoesNotExist", &[]), &[("a", "")], false);
    }

    #[test]
    fn wrong_operators_are_named() {
        let requirement = |operator: &str, values: &[&str]| LabelSelector {
            match_expressions: vec![Requirement {
                key: "a".into(),
                operator: operator.into(),
                values: values.iter().map(|v| (*v).to_owned()).collect(),
            }],
            ..Default::default()
        };
        assert_eq!(
            requirement("Near", &[]).matcher().unwrap_err().to_string(),
            r#""Near" is not a valid label selector operator (In, NotIn, Exists, DoesNotExist) for key "a""#
        );
        assert_eq!(requirement("In", &[]).matcher().unwrap_err(), Error::NoValues { key: "a".into() });
        assert_eq!(requirement("Exists", &["x"]).matcher().unwrap_err(), Error::Values { key: "a".into() });
    }
}
