//! Fields that a JSON body names more than once, which a parsed object no longer tells.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The paths of such fields (`spec.containers[0].image`), each once, in the order of the text.
pub(crate) fn duplicates(body: &[u8]) -> Vec<String> {
    let (mut found, mut path) = (Vec::new(), String::new());
    let mut reader = serde_json::Deserializer::from_slice(body);
    // What is no JSON at all is refused elsewhere.
    let _ = Look { found: &mut found, path: &mut path }.deserialize(&mut reader);
    found
}

/// A look at one value.
struct Look<'a> {
    found: &'a mut Vec<String>,
    path: &'a mut String,
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let depth = self.path.len();
        for index in 0_usize.. {
            let _ = write!(self.path, "[{index}]");
            let item = items.next_element_seed(Look { found: self.found, path: self.path })?;
            self.path.truncate(depth);
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let depth = self.path.len();
        let mut seen = BTreeSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if depth > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if !seen.insert(key) && !self.found.contains(self.path) {
                self.found.push(self.path.clone());
            }
            members.next_value_seed(Look { found: self.found, path: self.path })?;
            self.path.truncate(depth);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_named_twice_are_found_wherever_they_are() {
        for (body, expected) in [
            (r#"{"a":1,"b":{"a":2}}"#, &[][..]),
            (r#"{"a":1,"a":1,"a":2}"#, &["a"]),
            (r#"{"a":{"b":[{"c":1},{"c":1,"d":null,"c":true}]},"a":"x"}"#, &["a.b[1].c", "a"]),
            (r#"{"a":1,"a":"#, &["a"]),
            ("nothing", &[]),
        ] {
            assert_eq!(duplicates(body.as_bytes()), expected, "{body}");
        }
    }
}
