//! The rules of a schema (`x-kubernetes-validations`): expressions that objects must fulfil.
//!
//! [`Checks`] is a tree beside that of the schema, with the levels that have rules or lead to some. Rules are compiled
//! once, when the schema is read. A rule that does not compile is an error when its definition is written
//! ([`definition`]), and refuses objects if a definition got past that.

mod definition;
mod evaluate;
mod path;
mod shape;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::node::{Additional, Kind, List, Node};
use crate::cel::shape::{Of, Shape};
use crate::cel::{Names, Program, Type};
use crate::field::ErrorKind;

pub(super) use definition::errors;
pub(super) use evaluate::evaluate;

/// What all rules of one request, or of all defaults of a definition, may cost.
pub(super) const BUDGET: u64 = 10_000_000;

/// The rules of a level and below it.
#[derive(Clone, Debug)]
pub(super) struct Checks {
    rules: Vec<Rule>,
    /// What expressions see of the value.
    shape: Option<Arc<Shape>>,
    kind: Option<Kind>,
    list: List,
    properties: BTreeMap<String, Checks>,
    additional: Option<Box<Checks>>,
    items: Option<Box<Checks>>,
    /// Rules in `allOf`, which see the same value.
    all_of: Vec<Checks>,
}

#[derive(Clone, Debug)]
struct Rule {
    /// As written.
    source: Value,
    expression: String,
    message: String,
    reason: Option<ErrorKind>,
    /// Below the value, where the message is about.
    place: Option<String>,
    /// Whether `oldSelf` is an optional, so that the rule holds for new values too.
    optional_old: bool,
    uses_old: bool,
    program: Result<Program, String>,
    message_program: Option<Result<Program, String>>,
}

impl Checks {
    /// The rules of a whole schema; `None` if it has none.
    pub(super) fn of(root: &Node) -> Option<Self> {
        if root.rule_count() == 0 {
            return None;
        }
        Self::build(root, root, shape::of(root))
    }

    /// The rules that `source` has for values described by `node`; they are the same but for `allOf`.
    fn build(source: &Node, node: &Node, shape: Option<Arc<Shape>>) -> Option<Self> {
        let limits = source.limits.as_deref();
        let sources = limits.map(|limits| limits.rules.as_slice()).unwrap_or_default();
        let inner = |source: &Node, node: &Node, known: Option<&Arc<Shape>>| {
            Self::build(source, node, known.cloned().or_else(|| shape::of(node)))
        };
        let known = shape.as_ref().map(|shape| &shape.of);
        let properties = source.properties.iter().filter_map(|(name, source)| {
            let fields = known.and_then(|known| match known {
                Of::Object(fields) => Some(fields),
                _ => None,
            });
            let checks =
                inner(source, node.properties.get(name)?, fields.and_then(|fields| fields.get(name)))?;
            Some((name.clone(), checks))
        });
        let properties: BTreeMap<_, _> = properties.collect();
        let additional = match (&source.additional, &node.additional, known) {
            (Additional::Schema(source), Additional::Schema(node), Some(Of::Map(value))) => {
                inner(source, node, Some(value))
            }
            (Additional::Schema(source), Additional::Schema(node), _) => inner(source, node, None),
            _ => None,
        };
        let items = match (&source.items, &node.items, known) {
            (Some(source), Some(node), Some(Of::List { item, .. })) => inner(source, node, Some(item)),
            (Some(source), Some(node), _) => inner(source, node, None),
            _ => None,
        };
        let all_of = limits.map(|limits| limits.all_of.as_slice()).unwrap_or_default();
        let all_of: Vec<Self> =
            all_of.iter().filter_map(|part| Self::build(part, node, shape.clone())).collect();
        let rules = rules(sources, node, shape.as_deref());
        let is_empty = rules.is_empty()
            && properties.is_empty()
            && additional.is_none()
            && items.is_none()
            && all_of.is_empty();
        (!is_empty).then(|| Self {
            rules,
            shape,
            kind: node.kind,
            list: node.list.clone(),
            properties,
            additional: additional.map(Box::new),
            items: items.map(Box::new),
            all_of,
        })
    }

    /// The type's name as messages show it.
    fn kind_name(&self) -> &'static str {
        match self.kind {
            None | Some(Kind::IntOrString) => "",
            Some(kind) => kind.name(),
        }
    }
}

/// Compiles the rules of one level.
fn rules(sources: &[Value], node: &Node, shape: Option<&Shape>) -> Vec<Rule> {
    if sources.is_empty() {
        return Vec::new();
    }
    let own = shape.map(|shape| shape.to_type("selfType"));
    sources.iter().map(|source| rule(source, node, own.as_ref())).collect()
}

fn rule(source: &Value, node: &Node, own: Option<&Type>) -> Rule {
    let text = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default();
    let optional_old = source.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or(false);
    let compiled = |expression: &str| match own {
        None => Err("failed to convert to declType for CEL validation rules".to_owned()),
        Some(own) => {
            let mut names = Names::default();
            names.add("self", own.clone());
            names.add("oldSelf", if optional_old { Type::optional(own.clone()) } else { own.clone() });
            Program::compile(expression, &names)
        }
    };
    let program = match compiled(text("rule")) {
        Err(why) => Err(format!("compilation failed: {why}")),
        Ok(program) if program.result != Type::Bool => {
            Err("cel expression must evaluate to a bool".to_owned())
        }
        Ok(program) => Ok(program),
    };
    let message = text("messageExpression");
    let message_program = (!message.is_empty() && program.is_ok()).then(|| match compiled(message) {
        Err(why) => Err(format!("messageExpression compilation failed: {why}")),
        Ok(program) if program.result != Type::Text => {
            Err("messageExpression must evaluate to a string".to_owned())
        }
        Ok(program) => Ok(program),
    });
    Rule {
        source: source.clone(),
        expression: text("rule").trim().to_owned(),
        message: text("message").trim().to_owned(),
        reason: match text("reason") {
            "FieldValueForbidden" => Some(ErrorKind::Forbidden),
            "FieldValueRequired" => Some(ErrorKind::Required),
            "FieldValueDuplicate" => Some(ErrorKind::Duplicate),
            _ => None,
        },
        place: path::normalized(text("fieldPath"), node).filter(|place| !place.is_empty()),
        optional_old,
        uses_old: program.as_ref().is_ok_and(|program| program.expr.reads("oldSelf")),
        program,
        message_program,
    }
}

#[cfg(test)]
mod tests;
