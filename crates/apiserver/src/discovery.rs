//! What the server says about itself: groups, versions, resources, and its own version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::openapi::{self, Document};
use crate::registry::{Registry, Resource, Subresource, Text, api_version};

/// The version that the server shows.
pub const GIT_VERSION: &str = "v1.35.8";

/// The order in which groups are told: the real server's, by the priority it gives them. Others follow by name.
const GROUP_ORDER: [&str; 17] = [
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
];

/// The groups with their versions, in the order in which clients are told.
fn ordered(registry: &Registry) -> Vec<(Text, Vec<Text>)> {
    let mut groups: Vec<(Text, Vec<Text>)> = registry.groups().into_iter().collect();
    let place = |group: &str| GROUP_ORDER.iter().position(|known| *known == group);
    groups.sort_by_key(|(group, _)| place(group).unwrap_or(GROUP_ORDER.len()));
    groups
}

/// `/version`.
pub fn version() -> Value {
    json!({
        "major": "1", "minor": "35", "emulationMajor": "1", "emulationMinor": "35",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "34",
        "gitVersion": GIT_VERSION, "gitCommit": "", "gitTreeState": "clean", "buildDate": "2026-08-20T00:00:00Z",
        "goVersion": "", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// `/api`.
pub fn core_versions() -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    })
}

/// `/apis`.
pub fn groups(registry: &Registry) -> Value {
    let served = ordered(registry);
    let groups: Vec<Value> =
        served.iter().filter(|(group, _)| !group.is_empty()).map(|(g, v)| entry(g, v)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`.
pub fn group(registry: &Registry, group: &str) -> Option<Value> {
    let served = registry.groups();
    let mut entry = entry(group, served.get(group).filter(|_| !group.is_empty())?);
    if let Some(map) = entry.as_object_mut() {
        map.insert("kind".to_owned(), json!("APIGroup"));
        map.insert("apiVersion".to_owned(), json!("v1"));
    }
    Some(entry)
}

fn entry(group: &str, versions: &[Text]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": api_version(group, version), "version": version}))
        .collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions.first()})
}

/// `/api/v1` and `/apis/GROUP/VERSION`.
pub fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut entries = Vec::new();
    let mut served =
        registry.groups().get(group).is_some_and(|versions| versions.iter().any(|v| v == version));
    for resource in registry.all() {
        if resource.group != group || resource.version != version {
            continue;
        }
        served = true;
        entries.push(legacy_resource(&resource));
        entries.extend(resource.subresources.iter().map(|sub| legacy_subresource(&resource, sub)));
    }
    served.then(|| {
        json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, version),
            "resources": entries,
        })
    })
}

fn legacy_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": told_verbs(resource),
    });
    if let Some(map) = entry.as_object_mut() {
        names(map, resource);
    }
    entry
}

/// The verbs that clients are told of. What is on its way out can still be changed, but nobody should begin to.
fn told_verbs(resource: &Resource) -> Vec<&'static str> {
    let stays = |verb: &&str| !matches!(*verb, "create" | "patch" | "update");
    resource.verbs.iter().copied().filter(|verb| !resource.rules.is_ending() || stays(verb)).collect()
}

fn names(map: &mut Map<String, Value>, resource: &Resource) {
    if !resource.short_names.is_empty() {
        map.insert("shortNames".to_owned(), json!(resource.short_names));
    }
    if !resource.categories.is_empty() {
        map.insert("categories".to_owned(), json!(resource.categories));
    }
}

fn legacy_subresource(resource: &Resource, sub: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, sub.name), "singularName": "", "namespaced": resource.namespaced,
        "kind": sub.kind, "verbs": sub.verbs,
    });
    if let (Some(map), Some((group, version))) = (entry.as_object_mut(), &sub.group_version) {
        map.insert("group".to_owned(), json!(group));
        map.insert("version".to_owned(), json!(version));
    }
    entry
}

/// `/api` (the core group only) and `/apis` (all others) in the aggregated form of this version.
pub fn aggregated(registry: &Registry, core: bool, form: &str) -> Value {
    let all = registry.all();
    let items: Vec<Value> = ordered(registry)
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = all
                        .iter()
                        .filter(|resource| resource.group == *group && resource.version == *version)
                        .map(|resource| aggregated_resource(resource))
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{form}"), "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": told_verbs(resource),
    });
    let Some(map) = entry.as_object_mut() else { return entry };
    names(map, resource);
    if !resource.subresources.is_empty() {
        let subresources: Vec<Value> = resource
            .subresources
            .iter()
            .map(|sub| {
                let (group, version) = match &sub.group_version {
                    Some((group, version)) => (group.as_ref(), version.as_ref()),
                    None => (resource.group.as_ref(), resource.version.as_ref()),
                };
                json!({
                    "subresource": sub.name, "responseKind": kind(group, version, &sub.kind), "verbs": sub.verbs,
                })
            })
            .collect();
        map.insert("subresources".to_owned(), json!(subresources));
    }
    entry
}

/// The OpenAPI documents, each built when it is first asked for and again when its resources change.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<BTreeMap<(Text, Text), Kept>>);

/// A document and what it was built from.
#[derive(Debug)]
struct Kept {
    resources: Vec<Arc<Resource>>,
    document: Document,
}

impl Documents {
    /// The documents of all groups and versions.
    pub(crate) fn of(&self, registry: &Registry) -> Vec<Document> {
        let mut served: BTreeMap<(Text, Text), Vec<Arc<Resource>>> = BTreeMap::new();
        for resource in registry.all() {
            let key = (resource.group.clone(), resource.version.clone());
            served.entry(key).or_default().push(resource);
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|key, _| served.contains_key(key));
        for (key, resources) in served {
            let same = kept.get(&key).is_some_and(|known| {
                known.resources.len() == resources.len()
                    && known.resources.iter().zip(&resources).all(|(a, b)| Arc::ptr_eq(a, b))
            });
            if !same {
                let described: Vec<openapi::Resource> = resources.iter().map(|r| described(r)).collect();
                if let Some(document) = openapi::documents(&described).pop() {
                    kept.insert(key, Kept { resources, document });
                }
            }
        }
        kept.values().map(|known| known.document.clone()).collect()
    }
}

fn described(resource: &Resource) -> openapi::Resource {
    let verbs = |verbs: &[&str]| verbs.iter().map(|verb| (*verb).to_owned()).collect();
    let gvk = |group: &Text, version: &Text, kind: &Text| {
        openapi::Gvk::new(group.as_ref(), version.as_ref(), kind.as_ref())
    };
    openapi::Resource {
        gvk: gvk(&resource.group, &resource.version, &resource.kind),
        plural: resource.plural.to_string(),
        namespaced: resource.namespaced,
        verbs: verbs(&resource.verbs),
        subresources: resource
            .subresources
            .iter()
            .map(|sub| {
                let (group, version) =
                    sub.group_version.as_ref().map_or((&resource.group, &resource.version), |(g, v)| (g, v));
                openapi::Subresource {
                    name: sub.name.to_string(),
                    gvk: gvk(group, version, &sub.kind),
                    verbs: verbs(&sub.verbs),
                }
            })
            .collect(),
        custom_schema: resource.schema.as_deref().cloned(),
    }
}

/// A short mark of some bytes, for ETags: equal bytes, equal mark.
pub fn hash(bytes: &[u8]) -> String {
    // FNV-1a with 64 bits, twice from different starts: plenty to tell a few documents apart.
    let fnv = |start: u64| {
        bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    format!("{:016X}{:016X}", fnv(0xcbf2_9ce4_8422_2325), fnv(0x6b72_7569_7365_7273))
}
