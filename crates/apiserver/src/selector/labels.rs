//! Selectors on labels.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::{Error, parse, syntax};
use crate::field::{self, Path};

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label has the value (`=` and `==`).
    Equals,
    /// The label is absent or has another value.
    NotEquals,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is a number greater than the value.
    GreaterThan,
    /// The label is a number less than the value.
    LessThan,
}

/// One condition of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, without repeats.
    values: Vec<String>,
}

impl Requirement {
    /// A requirement after the checks on key, operator and values.
    pub fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Self, Error> {
        let mut errors = Vec::new();
        push_invalid(&mut errors, "key", key, &syntax::qualified_name(key));
        let shown = || Value::from(values.clone());
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => errors.push(field::Error::invalid(
                "values",
                shown(),
                "for 'in', 'notin' operators, values set can't be empty",
            )),
            Operator::Equals | Operator::NotEquals if values.len() != 1 => {
                errors.push(field::Error::invalid(
                    "values",
                    shown(),
                    "exact-match compatibility requires one single value",
                ));
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                errors.push(field::Error::invalid(
                    "values",
                    shown(),
                    "values set must be empty for exists and does not exist",
                ));
            }
            Operator::GreaterThan | Operator::LessThan => {
                if values.len() != 1 {
                    errors.push(field::Error::invalid(
                        "values",
                        shown(),
                        "for 'Gt', 'Lt' operators, exactly one value is required",
                    ));
                }
                for (i, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err())
                {
                    errors.push(field::Error::invalid(
                        format!("values[{i}]"),
                        value.as_str(),
                        "for 'Gt', 'Lt' operators, the value must be an integer",
                    ));
                }
            }
            _ => {}
        }
        for (i, value) in values.iter().enumerate() {
            push_invalid(&mut errors, &format!("values[{i}][{key}]"), value, &syntax::label_value(value));
        }
        if !errors.is_empty() {
            return Err(Error(field::aggregate(&errors)));
        }
        values.sort();
        values.dedup();
        Ok(Self { key: key.to_owned(), operator, values })
    }

    /// The label that is looked at.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How it is compared.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values it is compared with, sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    fn matches(&self, label: Option<&str>) -> bool {
        let has = |label: &str| self.values.iter().any(|value| value == label);
        let compare = |holds: fn(i64, i64) -> bool| {
            let wanted = self.values.first().and_then(|value| value.parse().ok());
            match (label.and_then(|label| label.parse().ok()), wanted) {
                (Some(label), Some(wanted)) => holds(label, wanted),
                _ => false,
            }
        };
        match self.operator {
            Operator::In | Operator::Equals => label.is_some_and(has),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(has),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => compare(|label, wanted| label > wanted),
            Operator::LessThan => compare(|label, wanted| label < wanted),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// A selector: all its requirements must hold.
///
/// ```
/// use kruise_apiserver::selector::Labels;
/// let selector = Labels::parse("app in (a, b), !old").unwrap();
/// assert!(selector.matches(&[("app".to_owned(), "a".to_owned())].into()));
/// assert_eq!(selector.to_string(), "app in (a,b),!old");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// `None` selects nothing.
    requirements: Option<Vec<Requirement>>,
}

impl Labels {
    /// Selects every object.
    pub const fn everything() -> Self {
        Self { requirements: Some(Vec::new()) }
    }

    /// Selects no object.
    pub const fn nothing() -> Self {
        Self { requirements: None }
    }

    /// Reads the text of a `labelSelector` parameter.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut requirements = parse::requirements(text)?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements: Some(requirements) })
    }

    /// Reads a `LabelSelector` object: none selects nothing, an empty one everything.
    pub fn from_object(selector: Option<&Value>) -> Result<Self, Error> {
        let selector = match selector {
            None | Some(Value::Null) => return Ok(Self::nothing()),
            Some(selector) => selector,
        };
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key, Operator::Equals, vec![value])?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let text = |name| expression.get(name).and_then(Value::as_str).unwrap_or_default();
            let operator = match text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let quoted = field::quote(other);
                    return Err(Error(format!("{quoted} is not a valid label selector operator")));
                }
            };
            requirements.push(Requirement::new(text("key"), operator, strings(expression.get("values")))?);
        }
        Ok(Self { requirements: Some(requirements) })
    }

    /// The requirements; none for a selector that selects nothing.
    pub fn requirements(&self) -> Option<&[Requirement]> {
        self.requirements.as_deref()
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether these labels are selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// Whether the labels of an object's JSON are selected.
    pub fn matches_json(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.matches_by(|key| labels?.get(key)?.as_str())
    }

    /// Whether labels are selected that are looked up one by one.
    pub fn matches_by<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        match &self.requirements {
            None => false,
            Some(all) => all.iter().all(|requirement| requirement.matches(label(&requirement.key))),
        }
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().flatten().enumerate() {
            write!(f, "{}{requirement}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// What is wrong with a `LabelSelector` object, field by field, as validation of the built-in kinds says it.
pub fn validate(selector: &Value, path: &Path<'_>) -> Vec<field::Error> {
    let mut errors = Vec::new();
    let match_labels = path.child("matchLabels");
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        for rule in syntax::qualified_name(key) {
            errors.push(field::Error::invalid(match_labels, key.as_str(), rule));
        }
        for rule in syntax::label_value(value) {
            errors.push(field::Error::invalid(match_labels, value, rule));
        }
    }
    let list = path.child("matchExpressions");
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (i, expression) in expressions.into_iter().flatten().enumerate() {
        let path = list.index(i);
        let text = |name| expression.get(name).and_then(Value::as_str).unwrap_or_default();
        let values = strings(expression.get("values"));
        match text("operator") {
            "In" | "NotIn" if values.is_empty() => errors.push(field::Error::required(
                path.child("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(field::Error::forbidden(
                path.child("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(field::Error::invalid(
                path.child("operator"),
                other,
                "not a valid selector operator",
            )),
        }
        for rule in syntax::qualified_name(text("key")) {
            errors.push(field::Error::invalid(path.child("key"), text("key"), rule));
        }
        let values_path = path.child("values");
        for (i, value) in values.iter().enumerate() {
            for rule in syntax::label_value(value) {
                errors.push(field::Error::invalid(values_path.index(i), value.as_str(), rule));
            }
        }
    }
    errors
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(super) fn push_invalid(errors: &mut Vec<field::Error>, path: &str, value: &str, rules: &[String]) {
    if !rules.is_empty() {
        errors.push(field::Error::invalid(path, value, rules.join("; ")));
    }
}

#[cfg(test)]
mod tests;
