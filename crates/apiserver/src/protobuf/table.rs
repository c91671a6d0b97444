//! Which messages there are: facts about the API of Kubernetes 1.35, one line for each type, in `messages.txt`.
//!
//! ```text
//! core.EnvVar name=1:s! value=2:s valueFrom=3:*core.EnvVarSource
//! core.Secret@ metadata=1:meta.ObjectMeta data=2:{}y type=3:s
//! ```
//!
//! A member has a name in JSON, a number on the wire and a type. Codes: `s` text, `b` boolean, `i` and `l` integers of 32
//! and 64 bit, `f` float, `q` quantity, `t` time, `m` time with microseconds, `x` integer or text, `y` bytes, `j` any
//! JSON, `w` a message with a list of texts; `orbool`, `orarray` and `orstrings` a schema or something simpler; `*T` may be
//! absent, `[]T` list, `{}T` map from text, `^T` a message whose members stand in the owner's JSON. A `!` says that JSON has
//! the member even when it is empty, a `?` that JSON leaves it out although it is no simple value. An `@` marks kinds:
//! what they say about kind and version stands beside the message.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::registry::split_api_version;

const MESSAGES: &str = include_str!("messages.txt");

/// The type of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Bool,
    Int32,
    Int64,
    Float,
    Quantity,
    Time,
    MicroTime,
    IntOrString,
    Bytes,
    Json,
    Words,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrStrings,
    Message(usize),
    Inline(usize),
    Pointer(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
}

/// When JSON leaves a member out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// When it is an empty simple value, list or map.
    LeftOut,
    /// Never.
    Written,
    /// Whenever it is empty.
    AlwaysLeftOut,
}

/// One member of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) number: u32,
    pub(super) kind: Type,
    pub(super) empty: Empty,
}

/// One message: its fields by number.
#[derive(Debug)]
pub(super) struct Message {
    /// The name of the type without its package.
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    /// The message of the items, if this is a list.
    pub(super) items: Option<usize>,
}

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        let at = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        self.fields.get(at)
    }
}

/// All messages.
#[derive(Debug)]
pub(super) struct Table {
    messages: Vec<Message>,
    by_name: BTreeMap<String, usize>,
    /// The message of schemas, which some types mention.
    pub(super) schema: usize,
}

impl Table {
    /// The one table, read when it is needed first.
    pub(super) fn get() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(read)
    }

    pub(super) fn message(&self, index: usize) -> Option<&Message> {
        self.messages.get(index)
    }

    pub(super) fn named(&self, name: &str) -> Option<&Message> {
        self.message(*self.by_name.get(name)?)
    }

    /// The message of a kind.
    pub(super) fn of(&self, api_version: &str, kind: &str) -> Option<&Message> {
        // Options and answers exist in every group.
        if let Some(found) = MetaKind::named(kind) {
            return self.named(found.0);
        }
        let package = package(api_version)?;
        self.named(&format!("{package}.{kind}@"))
    }

    #[cfg(test)]
    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().filter_map(|name| name.strip_suffix('@'))
    }
}

struct MetaKind(&'static str);

impl MetaKind {
    fn named(kind: &str) -> Option<Self> {
        Some(Self(match kind {
            "DeleteOptions" => "meta.DeleteOptions@",
            "CreateOptions" => "meta.CreateOptions@",
            "UpdateOptions" => "meta.UpdateOptions@",
            "PatchOptions" => "meta.PatchOptions@",
            "Status" => "meta.Status@",
            "PartialObjectMetadata" => "meta.PartialObjectMetadata@",
            "PartialObjectMetadataList" => "meta.PartialObjectMetadataList@",
            "APIGroup" => "meta.APIGroup@",
            "APIGroupList" => "meta.APIGroupList@",
            "APIResourceList" => "meta.APIResourceList@",
            "APIVersions" => "meta.APIVersions@",
            _ => return None,
        }))
    }
}

/// How `messages.txt` calls a group in a version.
fn package(api_version: &str) -> Option<&'static str> {
    Some(match split_api_version(api_version) {
        ("", "v1") => "core",
        ("apps", "v1") => "apps",
        ("batch", "v1") => "batch",
        ("autoscaling", "v1") => "autoscaling1",
        ("autoscaling", "v2") => "autoscaling",
        // Of the old version only evictions are left, which did not change.
        ("policy", "v1" | "v1beta1") => "policy",
        ("rbac.authorization.k8s.io", "v1") => "rbac",
        ("networking.k8s.io", "v1") => "networking",
        ("discovery.k8s.io", "v1") => "discovery",
        ("events.k8s.io", "v1") => "events",
        ("coordination.k8s.io", "v1") => "coordination",
        ("node.k8s.io", "v1") => "node",
        ("scheduling.k8s.io", "v1") => "scheduling",
        ("storage.k8s.io", "v1") => "storage",
        ("admissionregistration.k8s.io", "v1") => "admission",
        ("authentication.k8s.io", "v1") => "authn",
        ("authorization.k8s.io", "v1") => "authz",
        ("certificates.k8s.io", "v1") => "certificates",
        ("apiextensions.k8s.io", "v1") => "apiextensions",
        ("apiregistration.k8s.io", "v1") => "apiregistration",
        _ => return None,
    })
}

fn read() -> Table {
    let lines: Vec<(&str, &str)> =
        MESSAGES.lines().map(|line| line.split_once(' ').unwrap_or((line, ""))).collect();
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for (index, (name, _)) in lines.iter().enumerate() {
        by_name.insert((*name).to_owned(), index);
    }
    // Members name types without the mark of kinds.
    let types: BTreeMap<&str, usize> =
        lines.iter().enumerate().map(|(index, (name, _))| (name.trim_end_matches('@'), index)).collect();
    let mut messages: Vec<Message> = lines
        .iter()
        .map(|(name, members)| {
            let fields = members.split(' ').filter_map(|member| field(member, &types)).collect();
            let name = name.trim_end_matches('@');
            Message { name: name.rsplit('.').next().unwrap_or(name).to_owned(), fields, items: None }
        })
        .collect();
    let kinds: Vec<(String, usize)> = lines
        .iter()
        .enumerate()
        .filter_map(|(index, (name, _))| Some((name.strip_suffix('@')?.to_owned(), index)))
        .collect();
    for (name, item) in kinds {
        let list = format!("{name}List");
        // Of all kinds, those of discovery have lists of their own shape.
        if types.contains_key(list.as_str()) {
            continue;
        }
        let Some(metadata) = types.get("meta.ListMeta").copied() else { continue };
        by_name.insert(format!("{list}@"), messages.len());
        let short = list.rsplit('.').next().unwrap_or(&list).to_owned();
        messages.push(list_of(short, metadata, item));
    }
    let schema = types.get("apiextensions.JSONSchemaProps").copied().unwrap_or_default();
    Table { messages, by_name, schema }
}

fn list_of(name: String, metadata: usize, item: usize) -> Message {
    let fields = vec![
        Field { name: "metadata", number: 1, kind: Type::Message(metadata), empty: Empty::LeftOut },
        Field {
            name: "items",
            number: 2,
            kind: Type::List(Box::new(Type::Message(item))),
            empty: Empty::Written,
        },
    ];
    Message { name, fields, items: Some(item) }
}

fn field(member: &'static str, types: &BTreeMap<&str, usize>) -> Option<Field> {
    let (name, rest) = member.split_once('=')?;
    let (number, code) = rest.split_once(':')?;
    let (code, empty) = match (code.strip_suffix('!'), code.strip_suffix('?')) {
        (Some(code), _) => (code, Empty::Written),
        (None, Some(code)) => (code, Empty::AlwaysLeftOut),
        (None, None) => (code, Empty::LeftOut),
    };
    Some(Field { name, number: number.parse().ok()?, kind: kind(code, types)?, empty })
}

fn kind(code: &str, types: &BTreeMap<&str, usize>) -> Option<Type> {
    let inner = |code: &str| kind(code, types).map(Box::new);
    if let Some(code) = code.strip_prefix('*') {
        return inner(code).map(Type::Pointer);
    }
    if let Some(code) = code.strip_prefix("[]") {
        return inner(code).map(Type::List);
    }
    if let Some(code) = code.strip_prefix("{}") {
        return inner(code).map(Type::Map);
    }
    if let Some(name) = code.strip_prefix('^') {
        return types.get(name).copied().map(Type::Inline);
    }
    Some(match code {
        "s" => Type::Text,
        "b" => Type::Bool,
        "i" => Type::Int32,
        "l" => Type::Int64,
        "f" => Type::Float,
        "q" => Type::Quantity,
        "t" => Type::Time,
        "m" => Type::MicroTime,
        "x" => Type::IntOrString,
        "y" => Type::Bytes,
        "j" => Type::Json,
        "w" => Type::Words,
        "orbool" => Type::SchemaOrBool,
        "orarray" => Type::SchemaOrArray,
        "orstrings" => Type::SchemaOrStrings,
        name => Type::Message(*types.get(name)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let table = Table::get();
        for (line, message) in MESSAGES.lines().zip(&table.messages) {
            let members = line.split(' ').count() - 1;
            assert_eq!(message.fields.len(), members, "{line}");
            assert!(message.fields.is_sorted_by_key(|field| field.number), "{line}");
        }
        assert_eq!(table.messages[table.schema].name, "JSONSchemaProps");
    }

    /// What is served without a form in protobuf would make `kubectl create` fail.
    #[test]
    fn every_built_in_kind_has_a_message_and_so_have_lists_and_parts() {
        let table = Table::get();
        // Figures are asked for in JSON.
        let kinds =
            crate::registry::builtin::resources().filter(|resource| resource.group != crate::metrics::GROUP);
        for resource in kinds {
            let api_version = resource.api_version();
            assert!(table.of(&api_version, &resource.kind).is_some(), "{resource:?}");
            assert!(table.of(&api_version, &resource.list_kind).is_some(), "{resource:?}");
            // Connections are asked for with parameters, not with a body.
            for sub in resource.subresources.iter().filter(|sub| !sub.kind.ends_with("Options")) {
                let own = (resource.group.clone(), resource.version.clone());
                let (group, version) = sub.group_version.clone().unwrap_or(own);
                let api_version = crate::registry::api_version(&group, &version);
                assert!(table.of(&api_version, &sub.kind).is_some(), "{resource:?} {}", sub.name);
            }
        }
    }
}
