//! Lists: selections, versions and pages.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::json;

use super::{Query, Target};
use crate::field;
use crate::registry::{Resource, fields};
use crate::selector::{Fields, Labels, Term};
use crate::server::ApiServer;
use crate::status::{GroupKind, Status};
use crate::store::{Record, Scan};

const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. \
    You can start a new list without the continue parameter, or use the continue token in this response to retrieve \
    the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that \
    were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Which objects of a collection are meant.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    labels: Option<Labels>,
    fields: Option<Fields>,
    /// Whether fields are read from the objects themselves. What a definition calls selectable may be newer than them.
    from_objects: bool,
}

impl Selection {
    /// From selectors as text; empty text selects everything.
    pub fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Status> {
        let bad = |error: crate::selector::Error| Status::bad_request(error.0);
        let labels = if labels.is_empty() { None } else { Some(Labels::parse(labels).map_err(bad)?) };
        let fields = if fields.is_empty() { None } else { Some(known_fields(resource, fields)?) };
        let own = |term: &Term| !term.field.starts_with("metadata.");
        let from_objects =
            resource.custom && fields.as_ref().is_some_and(|fields| fields.terms().iter().any(own));
        Ok(Self { labels, fields, from_objects })
    }

    pub(crate) fn from_query(resource: &Resource, query: &Query) -> Result<Self, Status> {
        let labels = query.text("labelSelector");
        Self::parse(resource, labels, query.text("fieldSelector"))
    }

    /// Selects by labels.
    pub fn labels(labels: Labels) -> Self {
        Self { labels: Some(labels), fields: None, from_objects: false }
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.as_ref().is_none_or(Labels::is_everything)
            && self.fields.as_ref().is_none_or(Fields::is_everything)
    }

    /// Whether a record is selected.
    pub fn matches(&self, record: &Record) -> bool {
        self.labels.as_ref().is_none_or(|labels| labels.matches_by(|key| record.label(key)))
            && self.fields.as_ref().is_none_or(|fields| match self.from_objects {
                true => matches_object(fields, record),
                false => fields.matches_by(|name| record.field(name)),
            })
    }

    /// The one name that is selected, if there is only one.
    pub(super) fn name(&self) -> Option<&str> {
        self.fields.as_ref()?.exact("metadata.name")
    }
}

fn matches_object(fields: &Fields, record: &Record) -> bool {
    let object = record.value();
    let found: Vec<(&str, String)> = fields
        .terms()
        .iter()
        .filter(|term| !term.field.starts_with("metadata."))
        .map(|term| (term.field.as_str(), fields::text_at(&object, &term.field).unwrap_or_default()))
        .collect();
    fields.matches_by(|name| match found.iter().find(|(field, _)| *field == name) {
        Some((_, value)) => value,
        None => record.field(name),
    })
}

/// Parses a field selector and renames its fields to those that records keep.
fn known_fields(resource: &Resource, text: &str) -> Result<Fields, Status> {
    let parsed = Fields::parse(text).map_err(|error| Status::bad_request(error.0))?;
    let rename = |label: &str| match fields::canonical(resource, label) {
        Some(name) => Ok(name.into_owned()),
        None => Err(Status::bad_request(unsupported(resource, label))),
    };
    parsed.renamed(rename)
}

/// The words differ between kinds that have fields of their own and kinds that have none.
fn unsupported(resource: &Resource, label: &str) -> String {
    if !resource.custom && resource.selectable.is_empty() {
        format!(
            "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
            field::quote(label)
        )
    } else if resource.group == "batch" && resource.kind == "Job" {
        format!("field label {} not supported for Job", field::quote(label))
    } else {
        format!("field label not supported: {label}")
    }
}

/// How a list's `resourceVersion` is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VersionMatch {
    /// The newest state.
    #[default]
    MostRecent,
    /// Any state at least as new as this version.
    NotOlderThan(u64),
    /// The state at exactly this version.
    Exact(u64),
}

/// What a list asks for.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Which objects.
    pub selection: Selection,
    /// Which state.
    pub version: VersionMatch,
    /// At most so many; zero is all.
    pub limit: usize,
    /// Where the last page ended.
    pub continuation: Option<String>,
}

impl ListOptions {
    pub(crate) fn from_query(resource: &Resource, query: &Query) -> Result<Self, Status> {
        let selection = Selection::from_query(resource, query)?;
        let limit = usize::try_from(query.number("limit")?.unwrap_or(0)).unwrap_or(0);
        let continuation = Some(query.text("continue")).filter(|text| !text.is_empty()).map(str::to_owned);
        let given = query.text("resourceVersion");
        let matching = query.text("resourceVersionMatch");
        let mut errors = Vec::new();
        let path = "resourceVersionMatch";
        if !matching.is_empty() {
            if given.is_empty() {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(field::Error::forbidden(path, detail));
            }
            if continuation.is_some() {
                errors.push(field::Error::forbidden(
                    path,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                errors.push(field::Error::not_supported(path, matching, &["Exact", "NotOlderThan", ""]));
            }
            if matching == "Exact" && given == "0" {
                let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(field::Error::forbidden(path, detail));
            }
        }
        if query.has("sendInitialEvents") {
            let detail = "sendInitialEvents is forbidden for list";
            errors.push(field::Error::forbidden("sendInitialEvents", detail));
        }
        if !errors.is_empty() {
            return Err(Status::invalid(GroupKind::new("meta.k8s.io", "ListOptions"), "", errors));
        }
        if continuation.is_some() && !given.is_empty() && given != "0" {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let version = match (version_number(given)?, matching) {
            (None, _) => VersionMatch::MostRecent,
            (Some(version), "Exact") => VersionMatch::Exact(version),
            // Without a word, a page of a named version is a page of exactly that version.
            (Some(version), "") if limit > 0 && version > 0 => VersionMatch::Exact(version),
            (Some(version), _) => VersionMatch::NotOlderThan(version),
        };
        // A list that takes any version is answered from memory, whole.
        let limit = if version == VersionMatch::NotOlderThan(0) { 0 } else { limit };
        Ok(Self { selection, version, limit, continuation })
    }
}

/// A resource version as a number; `None` when it is not given.
pub(super) fn version_number(text: &str) -> Result<Option<u64>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|_| Status::bad_request(format!("invalid resource version: {}", not_a_version(text))))
}

/// Why a text is no resource version.
pub(super) fn not_a_version(text: &str) -> field::Error {
    let detail = format!("strconv.ParseUint: parsing {}: invalid syntax", field::quote(text));
    field::Error::invalid("resourceVersion", text, detail)
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The version that the list shows.
    pub version: u64,
    /// The objects, by namespace and name.
    pub records: Vec<Arc<Record>>,
    /// Where the next page begins; absent on the last one.
    pub continuation: Option<String>,
    /// How many objects follow, where it is known.
    pub remaining: Option<usize>,
}

impl ApiServer {
    /// Lists a collection: of the target's namespace, or of all when that is empty.
    pub fn list(&self, target: &Target, options: &ListOptions) -> Result<Page, Status> {
        let resume = options.continuation.as_deref().map(Continuation::decode).transpose()?;
        let now = self.store().version();
        let at = match (&resume, options.version) {
            (Some(resume), _) => resume.version,
            (None, VersionMatch::MostRecent) => None,
            (None, VersionMatch::NotOlderThan(version)) => {
                too_large(version, now)?;
                None
            }
            (None, VersionMatch::Exact(version)) => {
                too_large(version, now)?;
                Some(version)
            }
        };
        let namespace = Some(target.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let after = resume.as_ref().map(|resume| (resume.namespace.as_str(), resume.name.as_str()));
        let mut records = Vec::new();
        let mut remaining = 0_usize;
        let limit = if options.limit == 0 { usize::MAX } else { options.limit };
        let only = options.selection.name();
        let version = self
            .store()
            .scan(&target.resource.table, Scan { namespace, after, at }, |record| {
                if records.len() >= limit {
                    remaining += 1;
                } else if only.is_none_or(|name| name == record.name.as_ref())
                    && options.selection.matches(record)
                {
                    records.push(record.clone());
                }
                ControlFlow::Continue(())
            })
            .map_err(|_| match &resume {
                None => Status::expired("The resourceVersion for the provided list is too old."),
                Some(resume) => {
                    let again = Continuation { version: None, ..resume.clone() };
                    let mut status = Status::expired(CONTINUE_TOO_OLD);
                    status.metadata.insert("continue".to_owned(), json!(again.encode()));
                    status
                }
            })?;
        let last = records.last().filter(|_| remaining > 0);
        let continuation = last.map(|last| {
            let (namespace, name) = (last.namespace.to_string(), last.name.to_string());
            Continuation { version: Some(version), namespace, name }.encode()
        });
        // With a selector nobody knows how many of the rest are selected.
        let remaining = (remaining > 0 && options.selection.is_everything()).then_some(remaining);
        Ok(Page { version, records, continuation, remaining })
    }
}

/// A version from the future.
fn too_large(asked: u64, now: u64) -> Result<(), Status> {
    if asked <= now {
        return Ok(());
    }
    Err(Status::timeout(format!("Too large resource version: {asked}, current: {now}"), 1).with_cause(
        "ResourceVersionTooLarge",
        "Too large resource version",
        "",
    ))
}

/// Where a page ended, and at which version it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Continuation {
    /// Absent when the list goes on without being consistent.
    version: Option<u64>,
    namespace: String,
    name: String,
}

impl Continuation {
    fn encode(&self) -> String {
        let version = self.version.map_or(-1, |version| i64::try_from(version).unwrap_or(i64::MAX));
        let start = format!("{}/{}\u{0}", self.namespace, self.name);
        base64(json!({"v": "meta.k8s.io/v1", "rv": version, "start": start}).to_string().as_bytes())
    }

    fn decode(token: &str) -> Result<Self, Status> {
        let bad = |why: &str| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = unbase64(token).ok_or_else(|| bad("illegal base64 data at input byte 0"))?;
        let value: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|_| bad("invalid character looking for beginning of value"))?;
        if value.get("v").and_then(serde_json::Value::as_str) != Some("meta.k8s.io/v1") {
            let found = value.get("v").and_then(serde_json::Value::as_str).unwrap_or_default();
            return Err(bad(&format!("server does not recognize this encoded version {found}")));
        }
        let version = value.get("rv").and_then(serde_json::Value::as_i64).unwrap_or(0);
        if version == 0 {
            return Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        let start = value.get("start").and_then(serde_json::Value::as_str).unwrap_or_default();
        let (namespace, name) = start
            .trim_end_matches('\u{0}')
            .split_once('/')
            .ok_or_else(|| bad("encoded start key empty (version meta.k8s.io/v1)"))?;
        let version = u64::try_from(version).ok();
        Ok(Self { version, namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// URL-safe base64 without padding.
fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for i in 0..=chunk.len() {
            let at = (word >> (18 - 6 * i)) & 63;
            out.push(char::from(ALPHABET.get(at as usize).copied().unwrap_or(b'A')));
        }
    }
    out
}

fn unbase64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut word = 0_u32;
        for byte in chunk {
            word = (word << 6) | u32::try_from(ALPHABET.iter().position(|known| known == byte)?).ok()?;
        }
        word <<= 6 * (4 - chunk.len());
        let bytes = word.to_be_bytes();
        out.extend(bytes.iter().skip(1).take(chunk.len().saturating_sub(1)));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continue_token_survives_its_journey() {
        for (namespace, name) in [("", "a"), ("default", "web-1"), ("x", "äöü")] {
            let token = Continuation { version: Some(7), namespace: namespace.into(), name: name.into() };
            assert_eq!(Continuation::decode(&token.encode()).unwrap(), token);
        }
        assert_eq!(Continuation::decode("!!").unwrap_err().code, 400);
        assert_eq!(Continuation::decode(&base64(b"[]")).unwrap_err().code, 400);
    }
}
