//! Sets of fields: who owns what.
//!
//! A set is a tree of steps. A step may be owned itself, have owned steps below it, or both (`f:labels` with `.` and
//! `f:app` inside). Sets never change; what an operation leaves as it was is shared with its argument.

use std::cmp::Ordering;
use std::sync::Arc;

use super::element::{Element, hash};

/// A set of fields.
#[derive(Clone, Debug, Default)]
pub struct Set {
    members: Box<[Member]>,
    hash: u64,
}

/// A step of a set.
#[derive(Clone, Debug)]
pub struct Member {
    /// The step.
    pub element: Element,
    /// Whether the field at its end is in the set.
    pub owned: bool,
    /// What is in the set below it. Never empty.
    pub below: Option<Arc<Set>>,
}

impl Member {
    /// A step with what is below it; none if it would say nothing.
    pub fn new(element: Element, owned: bool, below: Set) -> Option<Self> {
        Self::shared(element, owned, Some(Arc::new(below)))
    }

    /// The same with a set that is shared.
    pub fn shared(element: Element, owned: bool, below: Option<Arc<Set>>) -> Option<Self> {
        let below = below.filter(|below| !below.is_empty());
        (owned || below.is_some()).then_some(Self { element, owned, below })
    }

    fn hash(&self) -> u64 {
        let below = self.below.as_ref().map_or(0, |below| below.hash);
        let own = self.element.hash() ^ u64::from(self.owned);
        hash(&below.to_le_bytes(), own)
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        self.owned == other.owned && self.element == other.element && same(&self.below, &other.below)
    }
}

fn same(a: &Option<Arc<Set>>, b: &Option<Arc<Set>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        (None, None) => true,
        _ => false,
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.members == other.members
    }
}

impl Set {
    /// A set of steps in any order. Of equal steps only the first counts.
    pub fn new(mut members: Vec<Member>) -> Self {
        let in_order = members.iter().zip(members.iter().skip(1)).all(|(a, b)| a.element < b.element);
        if !in_order {
            members.sort_by(|a, b| a.element.cmp(&b.element));
            members.dedup_by(|a, b| a.element == b.element);
        }
        let sum = members.iter().fold(0, |sum, member| hash(&member.hash().to_le_bytes(), sum));
        Self { members: members.into(), hash: sum }
    }

    /// A set of one field below the root, by the names of the steps.
    pub fn of_field(path: &[&str]) -> Self {
        match path {
            [] => Self::default(),
            [name, rest @ ..] => {
                let below = Self::of_field(rest);
                Self::new(Member::new(Element::field(name), rest.is_empty(), below).into_iter().collect())
            }
        }
    }

    /// The steps, in order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// A number that is the same for equal sets.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// One step.
    pub fn member(&self, element: &Element) -> Option<&Member> {
        let at = self.members.binary_search_by(|member| member.element.cmp(element)).ok()?;
        self.members.get(at)
    }

    /// Whether a field is in it.
    pub fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.member(last).is_some_and(|member| member.owned),
            [first, rest @ ..] => {
                let below = self.member(first).and_then(|member| member.below.as_ref());
                below.is_some_and(|below| below.has(rest))
            }
        }
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() || self == other {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        self.joined(other, |a, b| match (a, b) {
            (Some(a), Some(b)) => {
                let below = match (&a.below, &b.below) {
                    (Some(a), Some(b)) if !Arc::ptr_eq(a, b) => Some(Arc::new(a.union(b))),
                    (a, b) => a.clone().or_else(|| b.clone()),
                };
                Member::shared(a.element.clone(), a.owned || b.owned, below)
            }
            (only, None) | (None, only) => only.cloned(),
        })
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.joined(other, |a, b| {
            let (a, b) = (a?, b?);
            let below = match (&a.below, &b.below) {
                (Some(a), Some(b)) => Some(Arc::new(a.intersection(b))),
                _ => None,
            };
            Member::shared(a.element.clone(), a.owned && b.owned, below)
        })
    }

    /// What is in this one and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.without(other, false)
    }

    /// The same, and with a field of the other goes everything below it.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.without(other, true)
    }

    fn without(&self, other: &Self, recursive: bool) -> Self {
        if other.is_empty() || self.is_empty() {
            return self.clone();
        }
        self.joined(other, |a, b| {
            let a = a?;
            let Some(b) = b else { return Some(a.clone()) };
            if recursive && b.owned {
                return None;
            }
            let below = match (&a.below, &b.below) {
                (Some(a), Some(b)) => Some(Arc::new(a.without(b, recursive))),
                (below, _) => below.clone(),
            };
            Member::shared(a.element.clone(), a.owned && !b.owned, below)
        })
    }

    /// Both sets step by step, in order.
    fn joined(
        &self,
        other: &Self,
        join: impl Fn(Option<&Member>, Option<&Member>) -> Option<Member>,
    ) -> Self {
        let mut out = Vec::with_capacity(self.members.len());
        let (mut own, mut others) = (self.members.iter().peekable(), other.members.iter().peekable());
        loop {
            let order = match (own.peek(), others.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.element.cmp(&b.element),
            };
            let a = if order.is_le() { own.next() } else { None };
            let b = if order.is_ge() { others.next() } else { None };
            out.extend(join(a, b));
        }
        Self::new(out)
    }

    /// All fields: first those that end here, then those below each step.
    pub fn paths(&self) -> Vec<Vec<Element>> {
        let mut out = Vec::new();
        self.walk(&mut Vec::new(), &mut out);
        out
    }

    fn walk(&self, way: &mut Vec<Element>, out: &mut Vec<Vec<Element>>) {
        for member in self.members.iter().filter(|member| member.owned) {
            out.push(way.iter().chain(std::iter::once(&member.element)).cloned().collect());
        }
        for member in &self.members {
            if let Some(below) = &member.below {
                way.push(member.element.clone());
                below.walk(way, out);
                way.pop();
            }
        }
    }
}
