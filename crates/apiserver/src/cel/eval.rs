//! What an expression comes to, within bounds.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;

use super::ast::{Expr, Kind, Literal, Macro, Word};
use super::value::{Key, Value};
use super::{Patterns, library};

/// What it costs to compile a pattern.
const PATTERN_COST: usize = 20_000;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The expression made a mistake.
    Error(String),
    /// It did more than it may.
    TooExpensive,
}

impl Fault {
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error(text) => f.write_str(text),
            Self::TooExpensive => f.write_str("operation cancelled: actual cost limit exceeded"),
        }
    }
}

pub(super) type Outcome<T = Value> = Result<T, Fault>;

/// What variables stand for.
pub(crate) type Variables<'v> = dyn Fn(&str) -> Option<Outcome<Value>> + 'v;

/// Evaluates an expression. Returns what it cost too.
pub(super) fn evaluate(
    expr: &Expr,
    patterns: &Patterns,
    variables: &Variables<'_>,
    limit: u64,
) -> (Outcome, u64) {
    let mut run = Run { variables, patterns, made: Patterns::new(), local: Vec::new(), cost: 0, limit };
    let outcome = run.value(expr);
    (outcome, run.cost)
}

pub(super) struct Run<'r> {
    variables: &'r Variables<'r>,
    patterns: &'r Patterns,
    /// Patterns that were made while it ran.
    made: Patterns,
    local: Vec<(String, Value)>,
    cost: u64,
    limit: u64,
}

impl Run<'_> {
    /// Counts work. A unit is about the time of one simple step.
    pub(super) fn spend(&mut self, units: usize) -> Outcome<()> {
        self.cost = self.cost.saturating_add(units as u64);
        if self.cost > self.limit { Err(Fault::TooExpensive) } else { Ok(()) }
    }

    /// Counts work on a text.
    pub(super) fn spend_on(&mut self, length: usize) -> Outcome<()> {
        self.spend(1 + length / 10)
    }

    /// What more may be spent.
    pub(super) fn left(&self) -> usize {
        usize::try_from(self.limit.saturating_sub(self.cost)).unwrap_or(usize::MAX)
    }

    /// A compiled pattern. Those that are not in the text of the expression are dear, for compiling one may take long.
    pub(super) fn pattern(&mut self, text: &Arc<str>) -> Outcome<Regex> {
        if let Some(known) = self.patterns.get(text).or_else(|| self.made.get(text)) {
            return Ok(known.clone());
        }
        self.spend(PATTERN_COST)?;
        let pattern = library::pattern(text)?;
        self.made.insert(text.clone(), pattern.clone());
        Ok(pattern)
    }

    fn value(&mut self, expr: &Expr) -> Outcome {
        match &expr.kind {
            Kind::Literal(literal) => Ok(match literal {
                Literal::Null => Value::Null,
                Literal::Bool(value) => Value::Bool(*value),
                Literal::Int(value) => Value::Int(*value),
                Literal::Uint(value) => Value::Uint(*value),
                Literal::Double(value) => Value::Double(*value),
                Literal::Text(value) => Value::Text(value.clone()),
                Literal::Bytes(value) => Value::Bytes(value.clone()),
            }),
            Kind::Ident(name) => self.variable(name),
            Kind::Select { operand, field } => {
                self.spend(1)?;
                // Of the variables of a policy, only those that are read are worked out.
                if let Kind::Ident(name) = &operand.kind
                    && name == "variables"
                    && let Some(found) = (self.variables)(&format!("variables.{field}"))
                {
                    return found;
                }
                let from = self.value(operand)?;
                select(&from, field)
            }
            Kind::Has { operand, field } => {
                let from = self.value(operand)?;
                Ok(Value::Bool(match &from {
                    Value::Map(map) => map.contains_key(&Key::Text(field.as_str().into())),
                    Value::Optional(Some(inner)) => {
                        matches!(inner.as_ref(), Value::Map(map) if map.contains_key(&Key::Text(field.as_str().into())))
                    }
                    Value::Optional(None) => false,
                    _ => return Err(no_overload()),
                }))
            }
            Kind::Optional { operand, field } => {
                self.spend(1)?;
                let from = self.value(operand)?;
                Ok(optional_index(&from, &Value::text(field)))
            }
            Kind::Call { function, target, args } => self.call(function, target.as_deref(), args),
            Kind::List(items) => {
                self.spend(10)?;
                let mut list = Vec::with_capacity(items.len());
                for (item, optional) in items {
                    let value = self.value(item)?;
                    match (optional, value) {
                        (true, Value::Optional(Some(inner))) => list.push(inner.as_ref().clone()),
                        (true, Value::Optional(None)) => {}
                        (_, value) => list.push(value),
                    }
                }
                Ok(Value::list(list))
            }
            Kind::Map(entries) => {
                self.spend(30)?;
                let mut map = BTreeMap::new();
                for (key, value, optional) in entries {
                    let key = self.value(key)?;
                    let key = key.key().ok_or_else(|| Fault::error("unsupported key type"))?;
                    let value = match (optional, self.value(value)?) {
                        (true, Value::Optional(Some(inner))) => inner.as_ref().clone(),
                        (true, Value::Optional(None)) => continue,
                        (_, value) => value,
                    };
                    map.insert(key, value);
                }
                Ok(Value::Map(Arc::new(map)))
            }
            Kind::Macro(inner) => self.macro_value(inner),
        }
    }

    fn variable(&mut self, name: &str) -> Outcome {
        self.spend(1)?;
        if let Some((_, value)) = self.local.iter().rev().find(|(known, _)| known == name) {
            return Ok(value.clone());
        }
        if let Some(value) = (self.variables)(name) {
            return value;
        }
        match name {
            "bool" | "int" | "uint" | "double" | "string" | "bytes" | "list" | "map" | "null_type"
            | "type" => Ok(Value::Type(name.into())),
            _ => Err(Fault::error(format!("no such attribute(s): {name}"))),
        }
    }

    fn call(&mut self, function: &str, target: Option<&Expr>, args: &[Expr]) -> Outcome {
        match (function, args) {
            ("_&&_", terms) => return self.logic(terms, false),
            ("_||_", terms) => return self.logic(terms, true),
            ("_?_:_", [condition, yes, no]) => {
                self.spend(1)?;
                return match self.value(condition)? {
                    Value::Bool(true) => self.value(yes),
                    Value::Bool(false) => self.value(no),
                    _ => Err(no_overload()),
                };
            }
            // The alternative is not looked at where it is not needed.
            ("or" | "orValue", [other]) if target.is_some() => {
                let target = target.map_or(Ok(Value::Null), |target| self.value(target))?;
                return match (target, function) {
                    (Value::Optional(Some(inner)), "orValue") => Ok(inner.as_ref().clone()),
                    (found @ Value::Optional(Some(_)), _) => Ok(found),
                    (Value::Optional(None), _) => self.value(other),
                    _ => Err(no_overload()),
                };
            }
            _ => {}
        }
        self.spend(1)?;
        let qualified = super::qualified(function, target).filter(|(_, first)| {
            !self.local.iter().any(|(known, _)| known == first) && (self.variables)(first).is_none()
        });
        let (name, target) = match &qualified {
            Some((name, _)) if !super::signatures::of(name).is_empty() => (name.as_str(), None),
            _ => (function, target),
        };
        let mut values = Vec::with_capacity(args.len() + 1);
        for part in target.into_iter().chain(args) {
            values.push(self.value(part)?);
        }
        if let ("_[_]" | "_[?_]", [_, Value::Text(key)]) = (name, values.as_slice()) {
            self.spend(key.len() / 10)?;
        }
        match (name, values.as_slice()) {
            ("_[_]", [from, index]) => index_of(from, index),
            ("_[?_]", [from, index]) => Ok(optional_index(from, index)),
            _ => library::call(self, name, target.is_some(), &values),
        }
    }

    /// `||` where `decides` is true, else `&&`: a term that decides makes up for errors of others.
    fn logic(&mut self, terms: &[Expr], decides: bool) -> Outcome {
        let mut error = None;
        for term in terms {
            match self.value(term) {
                Ok(Value::Bool(value)) if value == decides => return Ok(Value::Bool(decides)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => error = error.or_else(|| Some(no_overload())),
                Err(Fault::TooExpensive) => return Err(Fault::TooExpensive),
                Err(fault) => error = error.or(Some(fault)),
            }
        }
        error.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn macro_value(&mut self, inner: &Macro) -> Outcome {
        let Macro { word, range, names, filter, body } = inner;
        let over = self.value(range)?;
        if let Word::OptMap | Word::OptFlatMap = word {
            let Value::Optional(value) = over else { return Err(no_overload()) };
            let Some(value) = value else { return Ok(Value::Optional(None)) };
            let found = self.with(names, [value.as_ref().clone(), Value::Null], body)?;
            return Ok(if *word == Word::OptMap { Value::some(found) } else { found });
        }
        // One by one: most loops end early, and must not pay for what they do not look at.
        let members: Box<dyn Iterator<Item = [Value; 2]>> = match &over {
            Value::List(list) if names.len() == 2 => {
                Box::new((0_i64..).zip(&list.items).map(|(index, item)| [Value::Int(index), item.clone()]))
            }
            Value::List(list) => Box::new(list.items.iter().map(|item| [item.clone(), Value::Null])),
            Value::Map(map) => {
                Box::new(map.iter().map(|(key, value)| [Value::from(key.clone()), value.clone()]))
            }
            _ => return Err(no_overload()),
        };
        let (mut list, mut map, mut count, mut error) = (Vec::new(), BTreeMap::new(), 0_usize, None);
        for member in members {
            self.spend(1)?;
            if let Some(filter) = filter
                && !self.is_true(names, member.clone(), filter)?
            {
                continue;
            }
            match word {
                Word::All | Word::Exists => {
                    let decides = *word == Word::Exists;
                    match self.is_true(names, member, body) {
                        Ok(value) if value == decides => return Ok(Value::Bool(decides)),
                        Ok(_) => {}
                        Err(Fault::TooExpensive) => return Err(Fault::TooExpensive),
                        Err(fault) => error = error.or(Some(fault)),
                    }
                }
                Word::ExistsOne => count += usize::from(self.is_true(names, member, body)?),
                Word::Filter => {
                    let [item, _] = member.clone();
                    if self.is_true(names, member, body)? {
                        list.push(item);
                    }
                }
                Word::Map | Word::TransformList => list.push(self.with(names, member, body)?),
                Word::TransformMap => {
                    let key = member.first().and_then(Value::key).ok_or_else(no_overload)?;
                    map.insert(key, self.with(names, member, body)?);
                }
                Word::OptMap | Word::OptFlatMap => {}
            }
        }
        if let Some(fault) = error {
            return Err(fault);
        }
        Ok(match word {
            Word::All => Value::Bool(true),
            Word::Exists => Value::Bool(false),
            Word::ExistsOne => Value::Bool(count == 1),
            Word::TransformMap => Value::Map(Arc::new(map)),
            _ => Value::list(list),
        })
    }

    /// Evaluates with names for a member.
    fn with(&mut self, names: &[String], member: [Value; 2], body: &Expr) -> Outcome {
        let outer = self.local.len();
        self.local.extend(names.iter().cloned().zip(member));
        let outcome = self.value(body);
        self.local.truncate(outer);
        outcome
    }

    fn is_true(&mut self, names: &[String], member: [Value; 2], body: &Expr) -> Outcome<bool> {
        match self.with(names, member, body)? {
            Value::Bool(value) => Ok(value),
            _ => Err(no_overload()),
        }
    }
}

pub(super) fn no_overload() -> Fault {
    Fault::error("no such overload")
}

fn select(from: &Value, field: &str) -> Outcome {
    match from {
        Value::Map(map) => match map.get(&Key::Text(field.into())) {
            Some(value) => Ok(value.clone()),
            None => Err(Fault::error(format!("no such key: {field}"))),
        },
        Value::Optional(_) => Ok(optional_index(from, &Value::text(field))),
        _ => Err(no_overload()),
    }
}

fn index_of(from: &Value, index: &Value) -> Outcome {
    match from {
        Value::Optional(_) => Ok(optional_index(from, index)),
        Value::Map(map) => {
            let key = index.key().ok_or_else(no_overload)?;
            map.get(&key).cloned().ok_or_else(|| Fault::error(format!("no such key: {}", shown(&key))))
        }
        Value::List(list) => match index.key() {
            Some(Key::Int(at)) => {
                let item = usize::try_from(at).ok().and_then(|at| list.items.get(at)).cloned();
                item.ok_or_else(|| Fault::error(format!("index out of bounds: {at}")))
            }
            _ => Err(no_overload()),
        },
        _ => Err(no_overload()),
    }
}

fn optional_index(from: &Value, index: &Value) -> Value {
    let found = match from {
        Value::Optional(None) => None,
        Value::Optional(Some(inner)) => index_of(inner, index).ok(),
        other => index_of(other, index).ok(),
    };
    match found {
        Some(found @ Value::Optional(_)) => found,
        found => Value::Optional(found.map(Arc::new)),
    }
}

fn shown(key: &Key) -> String {
    match key {
        Key::Bool(value) => value.to_string(),
        Key::Int(value) => value.to_string(),
        Key::Uint(value) => value.to_string(),
        Key::Text(value) => value.to_string(),
    }
}
