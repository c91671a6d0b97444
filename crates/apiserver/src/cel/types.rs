//! The types of expressions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::lex::RESERVED;

/// A type. Those of objects have names, and a name has one meaning within an environment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Optional(Arc<Type>),
    /// The type of a type.
    Kind(Arc<Type>),
    Object(Arc<Object>),
    /// A type that only functions look into.
    Opaque(&'static str),
    /// Any type, the same wherever it stands in a signature.
    Param(char),
}

/// An object with known fields.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) name: String,
    /// By their names in expressions; see [`escaped`].
    pub(crate) fields: BTreeMap<String, Type>,
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Type {
    pub(crate) fn list(item: Type) -> Self {
        Self::List(Arc::new(item))
    }

    pub(crate) fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub(crate) fn optional(inner: Type) -> Self {
        Self::Optional(Arc::new(inner))
    }

    pub(crate) fn object(name: &str, fields: impl IntoIterator<Item = (String, Type)>) -> Self {
        Self::Object(Arc::new(Object { name: name.to_owned(), fields: fields.into_iter().collect() }))
    }

    /// Whether the value may be null.
    fn takes_null(&self) -> bool {
        matches!(
            self,
            Self::Dyn | Self::Null | Self::Object(_) | Self::Timestamp | Self::Duration | Self::Opaque(_)
        )
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Kind(inner) => write!(f, "type({inner})"),
            Self::Object(object) => f.write_str(&object.name),
            Self::Opaque(name) => f.write_str(name),
            Self::Param(name) => write!(f, "<{name}>"),
        }
    }
}

/// What the parameters of a signature stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings(BTreeMap<char, Type>);

impl Bindings {
    /// Whether a value of type `given` can stand where `wanted` is expected; parameters learn what they are.
    pub(super) fn accept(&mut self, wanted: &Type, given: &Type) -> bool {
        match (wanted, given) {
            (Type::Param(name), _) => match self.0.get(name).cloned() {
                None => {
                    self.0.insert(*name, given.clone());
                    true
                }
                Some(known) => match joined(&known, given) {
                    Some(both) => {
                        self.0.insert(*name, both);
                        true
                    }
                    None => false,
                },
            },
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (wanted, Type::Null) if wanted.takes_null() => true,
            (Type::List(wanted), Type::List(given))
            | (Type::Optional(wanted), Type::Optional(given))
            | (Type::Kind(wanted), Type::Kind(given)) => self.accept(wanted, given),
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.accept(key, other_key) && self.accept(value, other_value)
            }
            _ => wanted == given,
        }
    }

    /// A type with its parameters filled in; what nobody said is any type.
    pub(super) fn fill(&self, wanted: &Type) -> Type {
        match wanted {
            Type::Param(name) => self.0.get(name).cloned().unwrap_or(Type::Dyn),
            Type::List(item) => Type::list(self.fill(item)),
            Type::Map(key, value) => Type::map(self.fill(key), self.fill(value)),
            Type::Optional(inner) => Type::optional(self.fill(inner)),
            Type::Kind(inner) => Type::Kind(Arc::new(self.fill(inner))),
            other => other.clone(),
        }
    }
}

/// The type that stands for both, if one does.
pub(super) fn joined(one: &Type, other: &Type) -> Option<Type> {
    match (one, other) {
        (Type::Dyn, _) | (_, Type::Dyn) => Some(Type::Dyn),
        (Type::Null, other) | (other, Type::Null) if other.takes_null() => Some(other.clone()),
        (Type::List(one), Type::List(other)) => joined(one, other).map(Type::list),
        (Type::Optional(one), Type::Optional(other)) => joined(one, other).map(Type::optional),
        (Type::Kind(one), Type::Kind(other)) => joined(one, other).map(|both| Type::Kind(Arc::new(both))),
        (Type::Map(key, value), Type::Map(other_key, other_value)) => {
            Some(Type::map(joined(key, other_key)?, joined(value, other_value)?))
        }
        _ => (one == other).then(|| one.clone()),
    }
}

/// The name of a property in expressions; `None` for one that cannot be named.
pub(crate) fn escaped(property: &str) -> Option<String> {
    if property.is_empty() || property.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&property) {
        return Some(format!("__{property}__"));
    }
    let mut name = String::with_capacity(property.len());
    let mut rest = property;
    while let Some(c) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("__") {
            name.push_str("__underscores__");
            rest = behind;
            continue;
        }
        match c {
            '.' => name.push_str("__dot__"),
            '-' => name.push_str("__dash__"),
            '/' => name.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => name.push(c),
            _ => return None,
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_get_names_that_expressions_can_say() {
        for (property, name) in [
            ("plain_1", Some("plain_1")),
            ("x-prop", Some("x__dash__prop")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("redact__d", Some("redact__underscores__d")),
            ("namespace", Some("__namespace__")),
            ("1st", None),
            ("ä", None),
        ] {
            assert_eq!(escaped(property).as_deref(), name, "{property}");
        }
    }
}
