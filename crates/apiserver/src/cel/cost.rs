//! What an expression may cost at worst, as far as sizes are known before anything is evaluated.
//!
//! What is reached from `self` by fields and indices is as large as the schema lets it be (`maxItems`, `maxLength`, or what
//! fits into a request). What a function makes is as large as its line in [`calls`] says. Of everything else nothing is
//! known but its type: `string(self.count) + '!'` is dearer than any budget, `'%d!'.format([self.count])` is not. The numbers
//! decide which definitions are taken, so they are those of the real server, with its oddities.

mod calls;

use super::ast::{Expr, Kind, Literal, Macro, Word};
use super::shape::{Of, Shape};
use super::signatures;

/// The least and the most characters, items or members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    least: u64,
    most: u64,
}

impl Size {
    const UNKNOWN: Self = Self { least: 0, most: u64::MAX };

    fn exactly(count: u64) -> Self {
        Self { least: count, most: count }
    }

    fn up_to(most: u64) -> Self {
        Self { least: 0, most }
    }

    fn either(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    fn by(self, other: Self, how: fn(u64, u64) -> u64) -> Self {
        Self { least: how(self.least, other.least), most: how(self.most, other.most) }
    }
}

/// What sort of value it is, as far as that changes what functions cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Number,
    Text,
    Bytes,
    List,
    Map,
    Url,
    Format,
    Opaque,
    Other,
}

/// Where in the schema a value is.
#[derive(Clone, Copy, Debug)]
enum Place<'s> {
    /// A function made it.
    Nowhere,
    At(&'s Shape),
    /// A key of a map, which has no limit of its own and counts as nothing.
    Key,
    /// Somewhere that the schema does not name, such as a key of a map after a dot.
    Lost,
}

/// What is known about the value of an expression.
#[derive(Clone, Copy, Debug)]
struct Known<'s> {
    cost: u64,
    place: Place<'s>,
    size: Option<Size>,
    /// The size of the members of a list or map that stands in the expression.
    member: Option<Size>,
    sort: Sort,
    /// Its type, where the schema says one.
    shape: Option<&'s Shape>,
    /// The number itself, where it stands in the expression.
    number: Option<u64>,
}

impl<'s> Known<'s> {
    fn made(cost: u64, size: Option<Size>, sort: Sort) -> Self {
        Self { cost, place: Place::Nowhere, size, member: None, sort, shape: None, number: None }
    }

    fn placed(cost: u64, place: Place<'s>, shape: Option<&'s Shape>) -> Self {
        Self { place, shape, ..Self::made(cost, None, shape.map_or(Sort::Other, sort)) }
    }

    fn size(&self) -> Size {
        let by_place = match self.place {
            Place::At(shape) => Some(Size::up_to(shape.max)),
            Place::Key => Some(Size::exactly(0)),
            Place::Nowhere | Place::Lost => None,
        };
        let by_sort = (self.sort == Sort::Number).then_some(Size::exactly(1));
        self.size.or(by_place).or(by_sort).unwrap_or(Size::UNKNOWN)
    }
}

/// The most that an expression on variables of these shapes can cost. All have the shape of the first.
pub(crate) fn estimate(expr: &Expr, variables: &[(&str, &Shape)]) -> u64 {
    let Some(&(_, root)) = variables.first() else { return 0 };
    let known =
        |&(name, shape): &(&str, _)| (name.to_owned(), Known::placed(1, Place::At(shape), Some(shape)));
    Estimator { root, local: variables.iter().map(known).collect() }.of(expr).cost
}

struct Estimator<'s> {
    root: &'s Shape,
    local: Vec<(String, Known<'s>)>,
}

impl<'s> Estimator<'s> {
    fn of(&mut self, expr: &Expr) -> Known<'s> {
        match &expr.kind {
            Kind::Literal(literal) => literal_of(literal),
            Kind::Ident(name) => {
                let found = self.local.iter().rev().find(|(known, _)| known == name);
                found.map_or(Known::made(1, None, Sort::Other), |(_, known)| Known { cost: 1, ..*known })
            }
            Kind::Select { operand, field } => {
                let from = self.of(operand);
                // Nobody pays for looking into what has no type.
                let is_dyn = from.shape.is_some_and(|shape| matches!(shape.of, Of::Dyn));
                let place = self.below(from.place, |shape| field_of(shape, field));
                let shape = from.shape.and_then(|shape| field_of(shape, field).or_else(|| value_of(shape)));
                Known::placed(from.cost.saturating_add(u64::from(!is_dyn)), place, shape)
            }
            Kind::Optional { operand, field } => {
                let from = self.of(operand);
                let shape = from.shape.and_then(|shape| field_of(shape, field).or_else(|| value_of(shape)));
                Known::placed(from.cost.saturating_add(1), Place::Nowhere, shape)
            }
            Kind::Has { operand, .. } => Known::made(self.of(operand).cost, None, Sort::Number),
            Kind::List(items) => {
                let items: Vec<_> = items.iter().map(|(item, _)| self.of(item)).collect();
                literal_with(&items, items.iter(), 10, Sort::List)
            }
            Kind::Map(entries) => {
                let parts = entries.iter().flat_map(|(key, value, _)| [key, value]);
                let parts: Vec<_> = parts.map(|part| self.of(part)).collect();
                literal_with(&parts, parts.iter().skip(1).step_by(2), 30, Sort::Map)
            }
            Kind::Call { function, target, args } => self.call(function, target.as_deref(), args),
            Kind::Macro(inner) => self.macro_of(inner),
        }
    }

    /// One step down. The real server forgets the first step from what a function made, and is then at `self`.
    fn below(&self, from: Place<'s>, step: impl Fn(&'s Shape) -> Option<&'s Shape>) -> Place<'s> {
        match from {
            Place::Nowhere => Place::At(self.root),
            Place::At(shape) => step(shape).map_or(Place::Lost, Place::At),
            Place::Key | Place::Lost => Place::Lost,
        }
    }

    fn call(&mut self, function: &str, target: Option<&Expr>, args: &[Expr]) -> Known<'s> {
        let qualified = super::qualified(function, target).filter(|(name, first)| {
            !signatures::of(name).is_empty() && !self.local.iter().any(|(known, _)| known == first)
        });
        let (function, target) = match &qualified {
            Some((name, _)) => (name.as_str(), None),
            None => (function, target),
        };
        let parts: Vec<_> = target.into_iter().chain(args).map(|part| self.of(part)).collect();
        let inner = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.cost));
        let first = parts.first().copied().unwrap_or(Known::made(0, None, Sort::Other));
        match (function, parts.as_slice()) {
            ("_?_:_", [condition, one, other]) => {
                let cost = condition.cost.saturating_add(one.cost.max(other.cost));
                let sort = if one.sort == other.sort { one.sort } else { Sort::Other };
                let made = Known::made(cost, Some(one.size().either(other.size())), sort);
                let member = one.member.zip(other.member).map(|(one, other)| one.either(other));
                Known { member, shape: one.shape, ..made }
            }
            ("_[_]", _) => {
                let shape = first.shape.and_then(value_of);
                let place = self.below(first.place, value_of);
                Known { size: first.member, ..Known::placed(inner.saturating_add(1), place, shape) }
            }
            ("dyn", _) => {
                let cost = inner.saturating_add(1);
                Known { cost, place: Place::Nowhere, size: Some(first.size()), ..first }
            }
            // Types go through these, sizes do not.
            ("_[?_]", _) => {
                Known::placed(inner.saturating_add(1), Place::Nowhere, first.shape.and_then(value_of))
            }
            ("or" | "orValue" | "value", _) => {
                Known { shape: first.shape, ..Known::made(inner.saturating_add(1), None, first.sort) }
            }
            _ => {
                let each = match first.place {
                    Place::At(_) => Known::placed(0, self.below(first.place, value_of), None).size(),
                    _ => Size::UNKNOWN,
                };
                let call = calls::Call { function, is_method: target.is_some(), parts: &parts, each };
                let (own, made) = call.known();
                Known { cost: inner.saturating_add(own), ..made }
            }
        }
    }

    fn macro_of(&mut self, inner: &Macro) -> Known<'s> {
        let Macro { word, range, names, filter, body } = inner;
        let over = self.of(range);
        let is_optional = matches!(word, Word::OptMap | Word::OptFlatMap);
        let outer = self.local.len();
        for (at, name) in names.iter().enumerate() {
            // One name is that of the items of a list, but of the keys of a map.
            let is_value = if names.len() == 2 { at == 1 } else { over.sort != Sort::Map };
            let known = match (is_value, over.sort) {
                _ if is_optional => Known::placed(1, Place::Nowhere, over.shape),
                (true, _) => {
                    let shape = over.shape.and_then(value_of);
                    Known::placed(1, self.below(over.place, value_of), shape)
                }
                (false, Sort::Map) => {
                    let place = match over.place {
                        Place::At(_) => Place::Key,
                        other => self.below(other, |_| None),
                    };
                    Known { place, ..Known::made(1, None, Sort::Text) }
                }
                (false, _) => Known::made(1, None, Sort::Number),
            };
            self.local.push((name.clone(), known));
        }
        let each = self.of(body);
        let kept = filter.as_ref().map_or(0, |filter| self.of(filter).cost);
        let item = self.local.last().map_or(Size::UNKNOWN, |(_, known)| known.size());
        self.local.truncate(outer);
        // What a macro is written out as costs something for each member, and something once.
        let (step, once) = match word {
            Word::All => (3, 1),
            Word::Exists => (4, 1),
            Word::ExistsOne => (2, 2),
            Word::Filter => (13, 11),
            Word::Map | Word::TransformList => (12, 11),
            Word::TransformMap => (3, 31),
            Word::OptMap => (13, 0),
            Word::OptFlatMap => (12, 0),
        };
        let turn = each.cost.saturating_add(kept).saturating_add(step);
        if is_optional {
            let cost = over.cost.saturating_mul(2).saturating_add(turn);
            return Known { cost, place: Place::Nowhere, size: None, member: None, ..each };
        }
        let turns = over.size().most.saturating_mul(turn);
        let cost = over.cost.saturating_add(turns).saturating_add(once);
        let (sort, shape) = match word {
            Word::All | Word::Exists | Word::ExistsOne => return Known::made(cost, None, Sort::Number),
            Word::TransformMap => (Sort::Map, None),
            // Of a map, the keys stay.
            Word::Filter => (Sort::List, over.shape.filter(|_| over.sort == Sort::List)),
            _ => (Sort::List, None),
        };
        let member = match word {
            Word::Filter => Some(item),
            Word::TransformMap => None,
            _ => Some(each.size()),
        };
        Known { member, shape, ..Known::made(cost, Some(over.size()), sort) }
    }
}

fn literal_of<'s>(literal: &Literal) -> Known<'s> {
    let (size, sort) = match literal {
        Literal::Text(text) => (text.chars().count() as u64, Sort::Text),
        Literal::Bytes(bytes) => (bytes.len() as u64, Sort::Bytes),
        _ => (1, Sort::Number),
    };
    let number = match literal {
        Literal::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    Known { number, ..Known::made(0, Some(Size::exactly(size)), sort) }
}

fn literal_with<'k, 's: 'k>(
    parts: &[Known<'s>],
    members: impl ExactSizeIterator<Item = &'k Known<'s>>,
    base: u64,
    sort: Sort,
) -> Known<'s> {
    let cost = parts.iter().fold(base, |sum, part| sum.saturating_add(part.cost));
    let count = members.len() as u64;
    let member = members.map(Known::size).reduce(Size::either).unwrap_or(Size::exactly(0));
    Known { member: Some(member), ..Known::made(cost, Some(Size::exactly(count)), sort) }
}

fn sort(shape: &Shape) -> Sort {
    match &shape.of {
        Of::Bool | Of::Int | Of::Double | Of::Timestamp { .. } | Of::Duration => Sort::Number,
        Of::Text => Sort::Text,
        Of::Bytes => Sort::Bytes,
        Of::List { .. } => Sort::List,
        Of::Map(_) => Sort::Map,
        Of::Dyn | Of::Object(_) => Sort::Other,
    }
}

/// The items of a list, or the values of a map.
fn value_of(shape: &Shape) -> Option<&Shape> {
    match &shape.of {
        Of::List { item, .. } => Some(item),
        Of::Map(value) => Some(value),
        _ => None,
    }
}

fn field_of<'s>(shape: &'s Shape, field: &str) -> Option<&'s Shape> {
    let Of::Object(fields) = &shape.of else { return None };
    let named = |property: &str| super::escaped(property).as_deref() == Some(field);
    fields.iter().find(|(property, _)| named(property)).map(|(_, shape)| shape.as_ref())
}
