//! Short texts that are shared, not copied.
//!
//! A cluster of a hundred thousand pods has few different namespaces, labels, images and node names. A [`Text`] is
//! cheap to clone, and a [`Pool`] makes equal texts one.

use std::{borrow::Borrow, collections::BTreeSet, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An immutable text that is cheap to clone.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<str>);

impl Text {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0.as_ref().to_owned()
    }
}

impl From<Text> for serde_json::Value {
    fn from(text: Text) -> Self {
        Self::String(text.into())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Text;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text::from(text))
            }

            fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Text, E> {
                Ok(Text::from(text))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// Texts that were seen, each kept once.
#[derive(Debug, Default)]
pub struct Pool {
    texts: BTreeSet<Text>,
}

impl Pool {
    /// Replaces a text by the one of equal content that is already here, or keeps it for the next.
    pub fn share(&mut self, text: &mut Text) {
        match self.texts.get(text.as_str()) {
            Some(known) => *text = known.clone(),
            None => {
                self.texts.insert(text.clone());
            }
        }
    }

    /// Forgets the texts that nobody else holds any more.
    pub fn sweep(&mut self) {
        self.texts.retain(|text| Arc::strong_count(&text.0) > 1);
    }

    /// How many texts are kept.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_become_one_and_unused_ones_go() {
        let mut pool = Pool::default();
        let (mut first, mut second) = (Text::from("web"), Text::from("web"));
        pool.share(&mut first);
        pool.share(&mut second);
        assert!(Arc::ptr_eq(&first.0, &second.0));
        drop((first, second));
        pool.sweep();
        assert!(pool.is_empty());
    }
}
