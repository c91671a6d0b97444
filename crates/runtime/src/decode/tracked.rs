//! Reads types from a tree of JSON, and says where one did not fit.

use std::fmt;

use serde::{
    Deserializer,
    de::{
        self, DeserializeSeed, EnumAccess, IntoDeserializer as _, MapAccess, SeqAccess, VariantAccess,
        Visitor,
        value::{BorrowedStrDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

use super::{Path, Step};

/// What did not fit, and where.
#[derive(Debug)]
pub(super) struct Failed {
    /// While it is on its way out: from the inside to the outside.
    pub(super) path: Path,
    pub(super) why: String,
}

impl Failed {
    /// The same with the path from the outside to the inside.
    pub(super) fn in_order(mut self) -> Self {
        self.path.0.reverse();
        self
    }

    fn inside(mut self, step: Step) -> Self {
        self.path.0.push(step);
        self
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.why)
    }
}

impl std::error::Error for Failed {}

impl de::Error for Failed {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self { path: Path::default(), why: why.to_string() }
    }
}

/// A tree that is read.
#[derive(Clone, Copy)]
pub(super) struct Tracked<'a>(pub(super) &'a Value);

impl<'de> Deserializer<'de> for Tracked<'de> {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(is) => visitor.visit_bool(*is),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (_, _, number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items { items: items.iter(), index: 0 }),
            Value::Object(members) => visitor.visit_map(Members { members: members.iter(), last: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        match self.0 {
            Value::String(name) => {
                let name: StrDeserializer<'_, Failed> = name.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            Value::Object(members) if members.len() == 1 => visitor.visit_enum(Variant(members)),
            _ => Err(de::Error::custom("neither a name nor an object with one member")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de> {
    items: std::slice::Iter<'de, Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Failed;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failed> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Tracked(item)).map(Some).map_err(|failed| failed.inside(Step::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Members<'de> {
    members: serde_json::map::Iter<'de>,
    last: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Failed;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failed> {
        let Some((key, value)) = self.members.next() else { return Ok(None) };
        self.last = Some((key, value));
        let named: BorrowedStrDeserializer<'_, Failed> = BorrowedStrDeserializer::new(key);
        seed.deserialize(named).map(Some).map_err(|failed| failed.inside(Step::Key(key.clone())))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Failed> {
        let Some((key, value)) = self.last.take() else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        seed.deserialize(Tracked(value)).map_err(|failed| failed.inside(Step::Key(key.to_owned())))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

/// An enum that has content: an object with one member.
struct Variant<'de>(&'de Map<String, Value>);

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Failed;
    type Variant = Content<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'de>), Failed> {
        let Some((key, value)) = self.0.iter().next() else {
            return Err(de::Error::custom("an object without members"));
        };
        let named: BorrowedStrDeserializer<'_, Failed> = BorrowedStrDeserializer::new(key);
        Ok((seed.deserialize(named)?, Content { key, value }))
    }
}

struct Content<'de> {
    key: &'de str,
    value: &'de Value,
}

impl<'de> VariantAccess<'de> for Content<'de> {
    type Error = Failed;

    fn unit_variant(self) -> Result<(), Failed> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Failed> {
        let Self { key, value } = self;
        seed.deserialize(Tracked(value)).map_err(|failed| failed.inside(Step::Key(key.to_owned())))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Failed> {
        let Self { key, value } = self;
        Tracked(value).deserialize_any(visitor).map_err(|failed| failed.inside(Step::Key(key.to_owned())))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        self.tuple_variant(0, visitor)
    }
}
