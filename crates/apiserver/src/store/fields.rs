//! What field selectors may ask about an object.
//!
//! All objects of a kind have the same names, which they share; the values of one object stand in one piece of memory.
//! An event has ten of them.

use std::sync::Arc;

use super::packed::{put, take};

/// Names and values. An empty value is the same as none.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    names: Arc<[Arc<str>]>,
    /// For each name the length of its value and the value.
    values: Box<[u8]>,
}

impl Fields {
    /// The values of an object for these names.
    pub fn new(names: &Arc<[Arc<str>]>, value: impl Fn(&str) -> Option<String>) -> Self {
        let mut values = Vec::new();
        for name in names.iter() {
            let value = value(name).unwrap_or_default();
            put(&mut values, value.len());
            values.extend_from_slice(value.as_bytes());
        }
        Self { names: names.clone(), values: values.into() }
    }

    /// The value of a field; empty when it is not set.
    pub fn get(&self, wanted: &str) -> &str {
        let mut values = self.values.as_ref();
        for name in self.names.iter() {
            let length = take(&mut values);
            let Some((value, rest)) = values.split_at_checked(length) else { break };
            if name.as_ref() == wanted {
                return std::str::from_utf8(value).unwrap_or_default();
            }
            values = rest;
        }
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name() {
        let names: Arc<[Arc<str>]> = ["spec.a", "spec.none", "spec.long", "spec.b"].map(Arc::from).into();
        let long = "x".repeat(1_000);
        let fields = Fields::new(&names, |name| match name {
            "spec.a" => Some("first".to_owned()),
            "spec.b" => Some("\0ü".to_owned()),
            "spec.long" => Some(long.clone()),
            _ => None,
        });
        let found = ["spec.a", "spec.b", "spec.none", "spec.other"].map(|name| fields.get(name));
        assert_eq!(found, ["first", "\0ü", "", ""]);
        assert_eq!(fields.get("spec.long"), long);
        assert_eq!(Fields::default().get("spec.a"), "");
    }
}
