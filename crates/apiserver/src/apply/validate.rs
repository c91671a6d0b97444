//! Whether an applied object is of its type.

use std::collections::BTreeSet;

use serde_json::Value;

use super::element::Element;
use super::types::{Items, Scalar, Type, Typed};
use crate::patch::go_text;

/// What is wrong with an applied object; none if it is of its type.
pub fn errors(kind: Typed<'_>, value: &Value) -> Option<String> {
    let mut found = Vec::new();
    check(kind, value, &mut String::new(), &mut found);
    match found.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => {
            let lines: Vec<String> = many.iter().map(|line| format!("\n  {line}")).collect();
            Some(format!("errors:{}", lines.concat()))
        }
    }
}

fn check(kind: Typed<'_>, value: &Value, path: &mut String, found: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    let mut wrong = |what: String| found.push(if path.is_empty() { what } else { format!("{path}: {what}") });
    match (kind.get(), value) {
        (Type::Any, Value::Object(members)) => {
            let depth = path.len();
            for (name, value) in members {
                path.push_str(&Element::field(name).to_string());
                check(kind.field(name).0, value, path, found);
                path.truncate(depth);
            }
        }
        (Type::Any, _) => {}
        (Type::Scalar(scalar), value) => {
            let good = match scalar {
                Scalar::Text => value.is_string(),
                Scalar::Number => value.is_number(),
                Scalar::Bool => value.is_boolean(),
                Scalar::Any => !value.is_object() && !value.is_array(),
            };
            if !good {
                wrong(match scalar {
                    Scalar::Text => {
                        format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value))
                    }
                    Scalar::Number => format!("expected numeric (int or float), got {}", go_type(value)),
                    Scalar::Bool => format!("expected boolean, got &{{{}}}", go_text(value)),
                    Scalar::Any => format!("expected any scalar, got &{{{}}}", go_text(value)),
                });
            }
        }
        (Type::Map(map), Value::Object(members)) => {
            let depth = path.len();
            for (name, value) in members {
                path.push_str(&Element::field(name).to_string());
                if map.fields.contains_key(name.as_str()) || map.rest.is_some() {
                    check(kind.field(name).0, value, path, found);
                } else {
                    found.push(format!("{path}: field not declared in schema"));
                }
                path.truncate(depth);
            }
        }
        (Type::Map(_), _) => wrong(format!("expected map, got &{{{}}}", go_text(value))),
        (Type::List(list), Value::Array(items)) => {
            let depth = path.len();
            let mut seen = BTreeSet::new();
            for (i, item) in items.iter().enumerate() {
                let step = match list.items {
                    Items::Atomic => Element::Index(i64::try_from(i).unwrap_or_default()),
                    _ => match list.step(item) {
                        Ok(step) => step,
                        Err(why) => {
                            found.push(format!("{path}: element {i}: {why}"));
                            return;
                        }
                    },
                };
                if seen.contains(&step) {
                    found.push(format!("{path}: duplicate entries for key {step}"));
                }
                path.push_str(&step.to_string());
                check(kind.item(), item, path, found);
                path.truncate(depth);
                seen.insert(step);
            }
        }
        (Type::List(_), _) => wrong(format!("expected list, got &{{{}}}", go_text(value))),
    }
}

/// The type of a value in Go.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go writes it in source.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => crate::field::quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", crate::field::quote(name), go_syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}
