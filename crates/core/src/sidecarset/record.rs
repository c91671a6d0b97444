//! What pods record about the sets in them, as annotations. Bytes equal the original's.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::time::Time;
use serde::{Deserialize, Serialize};

use crate::pod::or_default;

/// What `kruise.io/sidecarset-hash` and `kruise.io/sidecarset-hash-without-image` say about one set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Entry {
    /// When the sidecars were injected or updated last.
    pub update_timestamp: Option<Time>,
    /// The hash of the set that the pod follows.
    #[serde(deserialize_with = "or_default")]
    pub hash: String,
    /// The set.
    #[serde(deserialize_with = "or_default")]
    pub sidecar_set_name: String,
    /// The sidecars as the set calls them, sorted.
    pub sidecar_list: Option<Vec<String>>,
    /// The revision of the set; never in `kruise.io/sidecarset-hash-without-image`.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub controller_revision: String,
}

/// The entries of one annotation, by the name of the set.
pub type Entries = BTreeMap<String, Entry>;

impl Entry {
    /// What a pod records that now has the sidecars of a set.
    pub fn new(set: &str, hash: &str, sidecars: &[String], revision: &str, now: Timestamp) -> Self {
        Self {
            update_timestamp: Some(Time(now)),
            hash: hash.to_owned(),
            sidecar_set_name: set.to_owned(),
            sidecar_list: Some(sidecars.to_vec()),
            controller_revision: revision.to_owned(),
        }
    }
}

/// Reads an annotation. Both forms are known: entries, and from before 1.0 only hashes.
pub fn read(text: &str) -> Result<Entries, serde_json::Error> {
    let forms: BTreeMap<String, Option<Form>> = serde_json::from_str(text)?;
    let entry = |(set, form): (String, Option<Form>)| {
        let entry = match form.unwrap_or(Form::Entry(Entry::default())) {
            Form::Entry(entry) => entry,
            Form::Hash(hash) => Entry { hash, sidecar_set_name: set.clone(), ..Entry::default() },
        };
        (set, entry)
    };
    Ok(forms.into_iter().map(entry).collect())
}

/// The text of an annotation.
pub fn write(entries: &Entries) -> String {
    serde_json::to_string(entries).expect("entries are texts and lists of texts")
}

/// Which container works for each sidecar that takes turns (`kruise.io/sidecarset-working-hotupgrade-container`). A text
/// that cannot be read says nothing.
pub fn working(text: &str) -> BTreeMap<String, String> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The text of that annotation.
pub fn write_working(working: &BTreeMap<String, String>) -> String {
    serde_json::to_string(working).expect("a map of texts")
}

/// The sets in `kruise.io/sidecarset-injected-list`.
pub fn injected(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|name| !name.is_empty())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Hash(String),
    Entry(Entry),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from the original.
    #[test]
    fn entries_are_written_as_the_original_writes_them() {
        let text = concat!(
            r#"{"cap-b-ha":{"updateTimestamp":"2026-11-15T19:42:33Z","hash":"xcf4","sidecarSetName":"cap-b-ha","#,
            r#""sidecarList":["sc"],"controllerRevision":"cap-b-ha-6f6bc8f79d"},"#,
            r#""old":{"updateTimestamp":null,"hash":"oldhash","sidecarSetName":"old","sidecarList":null}}"#
        );
        let entries = read(text).unwrap();
        assert_eq!(write(&entries), text);
        assert_eq!(entries["cap-b-ha"].controller_revision, "cap-b-ha-6f6bc8f79d");
    }

    #[test]
    fn hashes_alone_become_entries() {
        let entries = read(r#"{"old":"oldhash"}"#).unwrap();
        let expected =
            r#"{"old":{"updateTimestamp":null,"hash":"oldhash","sidecarSetName":"old","sidecarList":null}}"#;
        assert_eq!(write(&entries), expected);
        assert!(read("junk").is_err());
    }

    #[test]
    fn working_containers_and_lists_are_read_and_written() {
        let working = working(r#"{"mesh":"mesh-1"}"#);
        assert_eq!(working["mesh"], "mesh-1");
        assert_eq!(write_working(&working), r#"{"mesh":"mesh-1"}"#);
        assert_eq!(super::working("junk"), BTreeMap::new());
        assert_eq!(injected("a,b").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(injected("").count(), 0);
    }
}
