//! The values of expressions.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kruise_api::kubernetes::quantity::Quantity;

/// A value. Copies are cheap.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<List>),
    Map(Arc<BTreeMap<Key, Value>>),
    Timestamp(Timestamp),
    Duration(SignedDuration),
    Optional(Option<Arc<Value>>),
    Type(Arc<str>),
    Quantity(Quantity),
    Url(Arc<str>),
    Ip(IpAddr),
    Cidr(IpAddr, u8),
    Semver(Arc<Semver>),
    Format(&'static str),
}

/// A list. Two lists that are sets are equal whatever their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<Value>,
    pub(crate) is_set: bool,
}

/// What a map may be indexed by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Int(i64),
    /// Only those that are too large for an integer.
    Uint(u64),
    Text(Arc<str>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Semver {
    pub(crate) numbers: [u64; 3],
    pub(crate) before: Vec<String>,
}

impl Value {
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self::Text(text.as_ref().into())
    }

    pub(crate) fn list(items: Vec<Value>) -> Self {
        Self::List(Arc::new(List { items, is_set: false }))
    }

    pub(crate) fn some(value: Value) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The name of the value's type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(..) => "net.CIDR",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }

    /// Whether it is the value that a field has when nobody set it.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::Text(value) => value.is_empty(),
            Self::Bytes(value) => value.is_empty(),
            Self::List(list) => list.items.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Duration(value) => value.is_zero(),
            Self::Optional(value) => value.is_none(),
            _ => false,
        }
    }

    /// As the key of a map; `None` for what cannot be one.
    pub(crate) fn key(&self) -> Option<Key> {
        match self {
            Self::Bool(value) => Some(Key::Bool(*value)),
            Self::Int(value) => Some(Key::Int(*value)),
            Self::Uint(value) => Some(i64::try_from(*value).map_or(Key::Uint(*value), Key::Int)),
            Self::Text(value) => Some(Key::Text(value.clone())),
            // A number that is whole, from JSON.
            Self::Double(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                Some(Key::Int(*value as i64))
            }
            _ => None,
        }
    }

    /// How two values compare, if they do.
    pub(crate) fn compared(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Uint(a), Self::Uint(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Uint(a), Self::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Double(a), Self::Int(b)) => a.partial_cmp(&(*b as f64)),
            (Self::Int(a), Self::Double(b)) => (*a as f64).partial_cmp(b),
            (Self::Double(a), Self::Uint(b)) => a.partial_cmp(&(*b as f64)),
            (Self::Uint(a), Self::Double(b)) => (*a as f64).partial_cmp(b),
            (Self::Text(a), Self::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Quantity(a), Self::Quantity(b)) => Some(a.nanos().cmp(&b.nanos())),
            (Self::Semver(a), Self::Semver(b)) => Some(a.compared(b)),
            _ => None,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::List(a), Self::List(b)) if a.is_set && b.is_set => {
                let within = |a: &List, b: &List| a.items.iter().all(|item| b.items.contains(item));
                a.items.len() == b.items.len() && within(a, b) && within(b, a)
            }
            (Self::List(a), Self::List(b)) => a.items == b.items,
            (Self::Map(a), Self::Map(b)) => a == b,
            (Self::Optional(a), Self::Optional(b)) => a == b,
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::Url(a), Self::Url(b)) => a == b,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a, n), Self::Cidr(b, m)) => a == b && n == m,
            (Self::Format(a), Self::Format(b)) => a == b,
            _ => self.compared(other) == Some(Ordering::Equal),
        }
    }
}

impl From<Key> for Value {
    fn from(key: Key) -> Self {
        match key {
            Key::Bool(value) => Self::Bool(value),
            Key::Int(value) => Self::Int(value),
            Key::Uint(value) => Self::Uint(value),
            Key::Text(value) => Self::Text(value),
        }
    }
}

impl Semver {
    fn compared(&self, other: &Self) -> Ordering {
        let before = || match (self.before.is_empty(), other.before.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let rank = |word: &String| match word.parse::<u64>() {
                    Ok(number) => (0, number, String::new()),
                    Err(_) => (1, 0, word.clone()),
                };
                self.before.iter().map(rank).cmp(other.before.iter().map(rank))
            }
        };
        self.numbers.cmp(&other.numbers).then_with(before)
    }
}
