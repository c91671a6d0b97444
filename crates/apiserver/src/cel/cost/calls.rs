//! The functions whose cost depends on what they are given, and those that say how large their result is.

use super::super::shape::Of;
use super::super::signatures;
use super::super::types::Type;
use super::{Known, Size, Sort};

/// The most characters that the name of a format may have.
const LONGEST_FORMAT: u64 = 64;

/// A call of a function.
pub(super) struct Call<'k, 's> {
    pub(super) function: &'k str,
    pub(super) is_method: bool,
    /// What it is given, the target of a method first.
    pub(super) parts: &'k [Known<'s>],
    /// The size of the members of the first part, if that is in the schema.
    pub(super) each: Size,
}

/// Names, the cost beyond that of the parts, and the size of the result.
type Row = (&'static str, fn(&Call<'_, '_>) -> u64, fn(&Call<'_, '_>) -> Option<Size>);

/// Functions that are not here cost one, and nothing is known about the size of what they make.
const TABLE: &[Row] = &[
    ("_&&_ _||_", |_| 0, unsaid),
    ("_==_", |call| call.equal(), unsaid),
    ("_!=_", |call| call.smaller(), unsaid),
    ("_<_ _<=_ _>_ _>=_", |call| if call.has(Sort::Number) { 1 } else { call.smaller() }, unsaid),
    (
        "_+_",
        |call| if call.adds_text() { tenth(call.both().most) } else { 1 },
        |call| (!call.has(Sort::Number)).then(|| call.both()),
    ),
    ("@in", |call| if call.sort(1) == Sort::Map { 1 } else { call.most(1) }, unsaid),
    ("startsWith endsWith", |call| tenth(call.most(1)), unsaid),
    ("contains", |call| tenth(call.most(0)).saturating_mul(tenth(call.most(1))), unsaid),
    ("matches", |call| call.search(), unsaid),
    ("find findAll", |call| call.search(), |call| Some(Size::up_to(call.most(0)))),
    ("url lowerAscii upperAscii substring trim", |call| tenth(call.most(0)), |call| Some(call.size(0))),
    ("replace", |call| call.most(0).div_ceil(5), |call| Some(call.replaced())),
    (
        "split",
        |call| call.most(0).div_ceil(5),
        |call| Some(Size::up_to(call.number(2).unwrap_or(call.most(0)))),
    ),
    ("join", |call| tenth(call.joined().most), |call| Some(call.joined())),
    ("format quantity isQuantity semver isSemver cidr isIP isCIDR", |call| tenth(call.most(0)), unsaid),
    ("ip", |call| if call.is_method { 1 } else { tenth(call.most(0)) }, unsaid),
    ("ip.isCanonical", |call| call.most(0).div_ceil(5), unsaid),
    ("containsIP", |call| call.parsed(1).saturating_add(4), unsaid),
    ("containsCIDR", |call| call.parsed(1).saturating_add(7), unsaid),
    ("validate", |call| tenth(call.most(1)).saturating_mul(32), unsaid),
    (
        "bytes",
        |call| call.parsed(0).max(1),
        |call| {
            Some(Size { most: call.most(0).saturating_mul(4), ..call.size(0) })
                .filter(|_| call.sort(0) == Sort::Text)
        },
    ),
    (
        "strings.quote",
        |call| tenth(call.most(0)),
        |call| {
            let Size { least, most } = call.size(0);
            Some(Size { least: least.saturating_add(2), most: most.saturating_mul(2).saturating_add(2) })
        },
    ),
    (
        "string",
        |call| if call.may_be_bytes() { tenth(call.most(0)).max(1) } else { 1 },
        |call| {
            let Size { least, most } = call.size(0);
            call.may_be_bytes().then_some(Size { least: least / 4, most })
        },
    ),
    ("isSorted sum max min indexOf lastIndexOf", |call| call.compared(), unsaid),
    ("sets.contains sets.intersects", |call| call.product().saturating_add(1), unsaid),
    ("sets.equivalent", |call| call.product().saturating_mul(2).saturating_add(1), unsaid),
    ("reverse", |call| call.most(0).saturating_add(11), |call| Some(call.size(0))),
    ("slice lists.range", |call| call.taken().saturating_add(11), |call| Some(Size::exactly(call.taken()))),
    (
        "flatten",
        |call| {
            let depth = if call.parts.len() > 1 { call.number(1).unwrap_or(u64::MAX) } else { 1 };
            call.most(0).saturating_mul(depth).saturating_add(11)
        },
        |call| Some(call.size(0)),
    ),
    (
        "distinct",
        |call| call.squared().most.saturating_mul(2).saturating_add(11),
        |call| Some(call.squared()),
    ),
    ("sort", |call| call.sorted().saturating_add(11), |call| Some(call.squared())),
];

impl<'s> Call<'_, 's> {
    /// What the call itself costs, and what is known about its result.
    pub(super) fn known(&self) -> (u64, Known<'s>) {
        let row = TABLE.iter().find(|(names, ..)| names.split(' ').any(|name| name == self.function));
        let (own, size) = row.map_or((1, None), |(_, own, size)| (own(self), size(self)));
        let sort = match self.function {
            "_+_" if self.has(Sort::Number) => Sort::Number,
            "_+_" if self.has(Sort::List) => Sort::List,
            _ => self.result(),
        };
        let member = match (self.function, self.parts) {
            ("_+_", [one, other]) => one.member.zip(other.member).map(|(one, other)| one.either(other)),
            _ => None,
        };
        (own, Known { member, ..Known::made(0, size, sort) })
    }

    fn size(&self, at: usize) -> Size {
        self.parts.get(at).map_or(Size::exactly(0), Known::size)
    }

    fn most(&self, at: usize) -> u64 {
        self.size(at).most
    }

    fn sort(&self, at: usize) -> Sort {
        self.parts.get(at).map_or(Sort::Other, |part| part.sort)
    }

    fn number(&self, at: usize) -> Option<u64> {
        self.parts.get(at)?.number
    }

    fn has(&self, sort: Sort) -> bool {
        self.parts.iter().any(|part| part.sort == sort)
    }

    fn adds_text(&self) -> bool {
        !self.has(Sort::Number) && !self.has(Sort::List)
    }

    fn both(&self) -> Size {
        self.size(0).by(self.size(1), u64::saturating_add)
    }

    fn smaller(&self) -> u64 {
        tenth(self.most(0).min(self.most(1)))
    }

    /// The real server knows what the types of its libraries cost when they are asked to be equal, not to be different.
    fn equal(&self) -> u64 {
        match (self.sort(0), self.sort(1)) {
            (Sort::Opaque, Sort::Opaque) => 1,
            (Sort::Format, Sort::Format) => tenth(LONGEST_FORMAT),
            // It looks at the second one only.
            (Sort::Url, Sort::Url) => {
                tenth(self.parts.get(1).and_then(|part| part.size).map_or(1, |size| size.most))
            }
            _ => self.smaller(),
        }
    }

    fn product(&self) -> u64 {
        self.most(0).saturating_mul(self.most(1))
    }

    fn squared(&self) -> Size {
        self.size(0).by(self.size(0), u64::saturating_mul)
    }

    /// What reading a text costs; other things are read already.
    fn parsed(&self, at: usize) -> u64 {
        if matches!(self.sort(at), Sort::Text | Sort::Other) { tenth(self.most(at)) } else { 0 }
    }

    /// Each letter may meet each part of the pattern, whose parts have about four letters.
    fn search(&self) -> u64 {
        tenth(self.most(0).saturating_add(1)).saturating_mul(self.most(1).div_ceil(4))
    }

    /// The worst is that the shortest text is replaced by the longest as often as it fits. An empty one is around all
    /// letters.
    fn replaced(&self) -> Size {
        let (text, old, new) = (self.most(0), self.size(1), self.most(2));
        Size::up_to(match old.least {
            0 => text.saturating_add(1).saturating_mul(new).saturating_add(text),
            least if new <= least => text,
            least => text.div_ceil(least).saturating_mul(new),
        })
    }

    fn joined(&self) -> Size {
        let count = self.size(0);
        let gaps = Size { least: count.least.saturating_sub(1), most: count.most.saturating_sub(1) };
        let gaps = gaps.by(self.size(1), u64::saturating_mul);
        count.by(self.each, u64::saturating_mul).by(gaps, u64::saturating_add)
    }

    fn may_be_bytes(&self) -> bool {
        let Some(first) = self.parts.first() else { return false };
        first.sort == Sort::Bytes || first.shape.is_some_and(|shape| matches!(shape.of, Of::Dyn))
    }

    /// What the members of the first part are, if the schema says it.
    fn members(&self) -> Option<Sort> {
        self.parts.first()?.shape.and_then(super::value_of).map(super::sort)
    }

    fn holds_texts(&self) -> bool {
        self.members().is_none_or(|sort| matches!(sort, Sort::Text | Sort::Bytes))
    }

    /// Each member is looked at; texts letter by letter.
    fn compared(&self) -> u64 {
        match self.sort(0) {
            Sort::Text => tenth(self.most(0)),
            _ if self.holds_texts() => self.most(0).saturating_mul(tenth(self.each.most).saturating_add(1)),
            _ => self.most(0),
        }
    }

    fn sorted(&self) -> u64 {
        let squared = self.squared().most;
        let letters = if self.holds_texts() { tenth(squared) } else { 0 };
        squared.saturating_mul(2).saturating_add(letters)
    }

    /// How many items a part of a list or a range has.
    fn taken(&self) -> u64 {
        match self.function {
            "slice" => {
                let end = self.number(2).unwrap_or(self.most(0));
                end.saturating_sub(self.number(1).unwrap_or(0))
            }
            _ => self.number(0).unwrap_or(u64::MAX),
        }
    }

    /// What all signatures of the function agree on.
    fn result(&self) -> Sort {
        let sort = |of: &Type| match of {
            Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Timestamp | Type::Duration => {
                Sort::Number
            }
            Type::Text => Sort::Text,
            Type::Bytes => Sort::Bytes,
            Type::List(_) => Sort::List,
            Type::Map(..) => Sort::Map,
            Type::Opaque("kubernetes.URL") => Sort::Url,
            Type::Opaque("kubernetes.NamedFormat") => Sort::Format,
            Type::Opaque(_) => Sort::Opaque,
            // The least or the sum of a list is like its items.
            Type::Param(_) => self.members().unwrap_or(Sort::Other),
            _ => Sort::Other,
        };
        let all = signatures::of(self.function).iter().filter(|one| one.is_method == self.is_method);
        let mut sorts = all.map(|one| sort(&one.result));
        let first = sorts.next().unwrap_or(Sort::Other);
        if sorts.all(|sort| sort == first) { first } else { Sort::Other }
    }
}

fn unsaid(_: &Call<'_, '_>) -> Option<Size> {
    None
}

/// Letters are read ten at a time.
fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}
