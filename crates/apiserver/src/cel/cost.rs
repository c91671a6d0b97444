//! What an expression may cost at worst, as far as sizes are known before anything is evaluated.
//!
//! The sizes come from the limits of a schema (`maxItems`, `maxLength`); without them everything is as large as a
//! request may be. The numbers are close to those of the real server, not equal.

use super::ast::{Expr, Kind, Literal, Macro, Word};
use super::shape::{Of, Shape};

/// What is known about the value of an expression.
#[derive(Clone, Copy)]
struct Known<'s> {
    cost: u64,
    /// Most characters, items or members; none for what has no size.
    size: u64,
    shape: Option<&'s Shape>,
}

/// The most that an expression on variables of these shapes can cost.
pub(crate) fn estimate(expr: &Expr, variables: &[(&str, &Shape)]) -> u64 {
    let local = variables.iter().map(|(name, shape)| ((*name).to_owned(), shape.max, Some(*shape))).collect();
    Estimator { local }.of(expr).cost
}

struct Estimator<'s> {
    local: Vec<(String, u64, Option<&'s Shape>)>,
}

impl<'s> Estimator<'s> {
    fn of(&mut self, expr: &Expr) -> Known<'s> {
        match &expr.kind {
            Kind::Literal(literal) => {
                let size = match literal {
                    Literal::Text(text) => text.len() as u64,
                    Literal::Bytes(bytes) => bytes.len() as u64,
                    _ => 0,
                };
                Known { cost: 0, size, shape: None }
            }
            Kind::Ident(name) => {
                let found = self.local.iter().rev().find(|(known, ..)| known == name);
                found.map_or(Known { cost: 1, size: 0, shape: None }, |(_, size, shape)| Known {
                    cost: 1,
                    size: *size,
                    shape: *shape,
                })
            }
            Kind::Select { operand, field } | Kind::Optional { operand, field } => {
                let from = self.of(operand);
                let shape = from.shape.and_then(|shape| field_of(shape, field));
                Known { cost: from.cost.saturating_add(1), size: shape.map_or(0, |shape| shape.max), shape }
            }
            Kind::Has { operand, .. } => Known { size: 0, shape: None, ..self.of(operand) },
            Kind::List(items) => self.literal(items.iter().map(|(item, _)| item), 10, items.len()),
            Kind::Map(entries) => {
                let parts = entries.iter().flat_map(|(key, value, _)| [key, value]);
                self.literal(parts, 30, entries.len())
            }
            Kind::Call { function, target, args } => {
                let parts: Vec<Known<'s>> =
                    target.as_deref().into_iter().chain(args).map(|part| self.of(part)).collect();
                call(function, &parts)
            }
            Kind::Macro(inner) => self.macro_of(inner),
        }
    }

    fn literal<'e>(&mut self, parts: impl Iterator<Item = &'e Expr>, base: u64, size: usize) -> Known<'s> {
        let cost = parts.map(|part| self.of(part).cost).fold(base, u64::saturating_add);
        Known { cost, size: size as u64, shape: None }
    }

    fn macro_of(&mut self, inner: &Macro) -> Known<'s> {
        let Macro { word, range, names, filter, body } = inner;
        let over = self.of(range);
        let member = over.shape.and_then(|shape| match &shape.of {
            Of::List { item, .. } => Some(item.as_ref()),
            Of::Map(value) if names.len() == 2 => Some(value.as_ref()),
            _ => None,
        });
        let outer = self.local.len();
        let last = names.len().saturating_sub(1);
        for (at, name) in names.iter().enumerate() {
            let shape = member.filter(|_| at == last);
            self.local.push((name.clone(), shape.map_or(0, |shape| shape.max), shape));
        }
        let each =
            self.of(body).cost.saturating_add(filter.as_ref().map_or(0, |filter| self.of(filter).cost));
        self.local.truncate(outer);
        let times = if matches!(word, Word::OptMap | Word::OptFlatMap) { 1 } else { over.size };
        let cost = over.cost.saturating_add(times.saturating_mul(each.saturating_add(2))).saturating_add(2);
        let keeps = matches!(word, Word::Filter | Word::Map | Word::TransformList | Word::TransformMap);
        let shape = over.shape.filter(|_| *word == Word::Filter);
        Known { cost, size: if keeps { over.size } else { 0 }, shape }
    }
}

fn call<'s>(function: &str, parts: &[Known<'s>]) -> Known<'s> {
    let inner = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.cost));
    let first = parts.first().copied().unwrap_or(Known { cost: 0, size: 0, shape: None });
    let second = parts.get(1).copied().unwrap_or(Known { cost: 0, size: 0, shape: None });
    let tenth = |size: u64| size.div_ceil(10);
    let is_list = first.shape.is_some_and(|shape| matches!(shape.of, Of::List { .. }));
    let (own, size) = match function {
        "_&&_" | "_||_" => (0, 0),
        "_?_:_" => {
            let size = parts.iter().skip(1).map(|part| part.size).max().unwrap_or(0);
            (1, size)
        }
        "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => (tenth(first.size.min(second.size)).max(1), 0),
        "_+_" => {
            (tenth(first.size.saturating_add(second.size)).max(1), first.size.saturating_add(second.size))
        }
        "@in" => (second.size.max(1), 0),
        "matches" | "find" | "findAll" => {
            (tenth(first.size.saturating_add(1)).saturating_mul(second.size.div_ceil(4).max(1)), first.size)
        }
        "contains" => (tenth(first.size).saturating_mul(tenth(second.size).max(1)).max(1), 0),
        "startsWith" | "endsWith" => (tenth(second.size).max(1), 0),
        "indexOf" | "lastIndexOf" if is_list => (first.size.max(1), 0),
        "indexOf" | "lastIndexOf" => (tenth(first.size).saturating_mul(tenth(second.size).max(1)).max(1), 0),
        "split" | "lowerAscii" | "upperAscii" | "replace" | "substring" | "trim" | "join" => {
            (tenth(first.size).max(1), first.size)
        }
        "isSorted" | "sum" | "min" | "max" | "sort" | "reverse" | "distinct" => {
            (first.size.max(1), first.size)
        }
        "sets.contains" | "sets.equivalent" | "sets.intersects" => {
            (first.size.saturating_mul(second.size).max(1), 0)
        }
        "quantity" | "url" | "ip" | "cidr" | "isQuantity" | "isURL" | "isIP" | "isCIDR" => {
            (tenth(first.size).max(1), 0)
        }
        _ => (1, 0),
    };
    let member = match function {
        "_[_]" | "_[?_]" => first.shape.and_then(|shape| match &shape.of {
            Of::List { item, .. } => Some(item.as_ref()),
            Of::Map(value) => Some(value.as_ref()),
            _ => None,
        }),
        "orValue" | "value" => first.shape,
        _ => None,
    };
    Known { cost: inner.saturating_add(own), size: member.map_or(size, |shape| shape.max), shape: member }
}

fn field_of<'s>(shape: &'s Shape, field: &str) -> Option<&'s Shape> {
    match &shape.of {
        Of::Object(fields) => fields
            .iter()
            .find(|(property, _)| super::escaped(property).as_deref() == Some(field))
            .map(|(_, shape)| shape.as_ref()),
        Of::Map(value) => Some(value),
        _ => None,
    }
}
