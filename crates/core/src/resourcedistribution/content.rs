//! What a Secret or ConfigMap holds, in one form, whoever wrote it.

use std::fmt;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::{
    canonical_json,
    object::{CONFIG_MAP, Resource, SECRET},
    text::Text,
};

/// Servers also take base64 whose last bits are not zero.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The type of a Secret that names none.
const OPAQUE: &str = "Opaque";

/// The kinds that are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl Kind {
    /// All of them, in the order in which refusals name them.
    pub const ALL: [Self; 2] = [Self::Secret, Self::ConfigMap];

    /// The kind as the API addresses it.
    pub fn resource(self) -> Resource {
        match self {
            Self::Secret => SECRET,
            Self::ConfigMap => CONFIG_MAP,
        }
    }
}

/// Distinguishes contents without keeping them.
pub(super) type Digest = [u8; 32];

/// What an object holds. Equal contents are equal, also where one leaves out what the server fills in.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Content(Map<String, Value>);

impl fmt::Debug for Content {
    /// The data of Secrets belongs into no log.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Content").finish_non_exhaustive()
    }
}

impl Content {
    /// What an object has that was written down by somebody: the server has not completed it.
    pub(super) fn written(kind: Kind, object: &Map<String, Value>) -> Self {
        let mut content = Self::stored(object);
        if kind == Kind::Secret {
            content.0.remove("binaryData");
            let mut data = content.map("data");
            data.values_mut().for_each(canonical);
            for (key, value) in object.get("stringData").and_then(Value::as_object).into_iter().flatten() {
                let text = value.as_str().unwrap_or_default();
                let value = match value {
                    Value::String(_) | Value::Null => Value::String(STANDARD.encode(text)),
                    // The server refuses it, with a reason.
                    other => other.clone(),
                };
                data.insert(key.clone(), value);
            }
            content.put("data", data);
            content.0.entry("type").or_insert_with(|| OPAQUE.into());
        } else {
            content.0.remove("type");
            let mut data = content.map("binaryData");
            data.values_mut().for_each(canonical);
            content.put("binaryData", data);
        }
        content
    }

    /// What an object has that a server has stored.
    pub(super) fn stored(object: &Map<String, Value>) -> Self {
        let mut content = Self::default();
        for member in ["data", "binaryData"] {
            match object.get(member) {
                Some(Value::Object(members)) => {
                    let mut members = members.clone();
                    members.values_mut().filter(|value| value.is_null()).for_each(|value| *value = "".into());
                    content.put(member, members);
                }
                None | Some(Value::Null) => {}
                Some(other) => drop(content.0.insert(member.to_owned(), other.clone())),
            }
        }
        match object.get("type") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(other) => drop(content.0.insert("type".to_owned(), other.clone())),
        }
        match object.get("immutable") {
            None | Some(Value::Null | Value::Bool(false)) => {}
            Some(other) => drop(content.0.insert("immutable".to_owned(), other.clone())),
        }
        content
    }

    fn map(&self, member: &str) -> Map<String, Value> {
        self.0.get(member).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    fn put(&mut self, member: &str, members: Map<String, Value>) {
        match members.is_empty() {
            true => drop(self.0.remove(member)),
            false => drop(self.0.insert(member.to_owned(), members.into())),
        }
    }

    /// The members, as an object has them.
    pub(super) fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The keys of a member.
    pub(super) fn keys(&self, member: &str) -> Box<[Text]> {
        let members = self.0.get(member).and_then(Value::as_object);
        members.into_iter().flat_map(Map::keys).map(|key| key.as_str().into()).collect()
    }

    /// Whether nobody may change the object.
    pub(super) fn is_immutable(&self) -> bool {
        self.0.get("immutable") == Some(&Value::Bool(true))
    }

    /// Its digest, different for different contents.
    pub(super) fn digest(&self) -> Digest {
        Sha256::digest(self.text().as_bytes()).into()
    }

    /// How many bytes it has on the wire.
    pub(super) fn size(&self) -> usize {
        self.text().len()
    }

    fn text(&self) -> String {
        canonical_json::text(&Value::Object(self.0.clone()))
    }
}

/// Base64 as servers write it. What is none stays as it is: the server refuses it, with a reason.
fn canonical(value: &mut Value) {
    if let Value::String(text) = value {
        let line: String = text.chars().filter(|letter| !matches!(letter, '\n' | '\r')).collect();
        if let Ok(bytes) = LENIENT.decode(line) {
            *text = STANDARD.encode(bytes);
        }
    }
}
