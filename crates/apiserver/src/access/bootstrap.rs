//! The roles and bindings of every cluster. `policy.txt` lists those of Kubernetes 1.35:
//!
//! ```text
//! clusterrole NAME [part-of=LABELS] [gathers=LABELS]
//!   VERBS GROUPS RESOURCES [NAMES]
//!   VERBS URLS
//! clusterrolebinding NAME of=ROLE
//!   KIND NAME
//! ```
//!
//! with commas inside of words, `core` for the group without a name, and `role` and `rolebinding` with their namespace before
//! a slash.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::server::ApiServer;
use crate::store::{Draft, Refused};

const POLICY: &str = include_str!("policy.txt");
const GROUP: &str = "rbac.authorization.k8s.io";
const LABEL: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// What is in the file, with the table of each object. Read once for all servers of a process.
static OBJECTS: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let mut objects = read(POLICY);
    // Roles that gather others gather in turn, so twice is enough for chains of two: view, edit, admin.
    for _ in 0..3 {
        let roles: Vec<Value> = objects.iter().map(|(_, object)| object.clone()).collect();
        for (_, object) in &mut objects {
            if let Some(rules) = super::gathered(object, &roles)
                && let Some(map) = object.as_object_mut()
            {
                map.insert("rules".to_owned(), rules.into());
            }
        }
    }
    objects
});

/// Stores them. They go past admission and validation, which have nothing to add, and do not draw from the server's luck.
pub(crate) fn fill(server: &ApiServer, seed: u64) {
    let mut random = Random::seeded(seed ^ 0x7262_6163);
    let now = server.clock().now_text();
    for (table, object) in OBJECTS.iter() {
        let mut value = object.clone();
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("creationTimestamp".to_owned(), now.clone().into());
            meta.insert("uid".to_owned(), random.uid().into());
        }
        let stored = server.store().create(table, Draft::new(value));
        // A server that goes on where another one stopped has them already.
        debug_assert!(matches!(stored, Ok(_) | Err(Refused::Exists)), "{stored:?}");
    }
}

fn read(text: &str) -> Vec<(String, Value)> {
    let mut objects: Vec<(String, Value)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("  ") {
            None => objects.extend(object(line)),
            Some(member) => {
                let Some((_, object)) = objects.last_mut() else { continue };
                let Some(map) = object.as_object_mut() else { continue };
                let key = if map.contains_key("roleRef") { "subjects" } else { "rules" };
                let value = if key == "rules" { rule(member) } else { subject(member) };
                let list = map.entry(key).or_insert_with(|| json!([]));
                if let (Some(list), Some(value)) = (list.as_array_mut(), value) {
                    list.push(value);
                }
            }
        }
    }
    objects
}

fn words(text: &str) -> Vec<&str> {
    text.split(',').map(|word| if word == "core" { "" } else { word }).collect()
}

fn object(line: &str) -> Option<(String, Value)> {
    let mut parts = line.split(' ');
    let (kind, plural) = match parts.next()? {
        "clusterrole" => ("ClusterRole", "clusterroles"),
        "role" => ("Role", "roles"),
        "clusterrolebinding" => ("ClusterRoleBinding", "clusterrolebindings"),
        _ => ("RoleBinding", "rolebindings"),
    };
    let name = parts.next()?;
    let (namespace, name) = match kind {
        "Role" | "RoleBinding" => name.split_once('/')?,
        _ => ("", name),
    };
    let mut labels = Map::new();
    labels.insert("kubernetes.io/bootstrapping".to_owned(), "rbac-defaults".into());
    let mut object = json!({
        "kind": kind, "apiVersion": format!("{GROUP}/v1"),
        "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}, "name": name},
    });
    let map = object.as_object_mut()?;
    for part in parts {
        match part.split_once('=')? {
            ("part-of", whole) => {
                labels.extend(words(whole).iter().map(|word| (format!("{LABEL}{word}"), "true".into())));
            }
            ("gathers", whole) => {
                let label = |word: &&str| json!({"matchLabels": {format!("{LABEL}{word}"): "true"}});
                let selectors: Vec<Value> = words(whole).iter().map(label).collect();
                map.insert("aggregationRule".to_owned(), json!({"clusterRoleSelectors": selectors}));
            }
            (_, role) => {
                let (kind, name) =
                    role.split_once("Role/").map_or(("ClusterRole", role), |(_, name)| ("Role", name));
                map.insert("roleRef".to_owned(), json!({"apiGroup": GROUP, "kind": kind, "name": name}));
            }
        }
    }
    let meta = map.get_mut("metadata")?.as_object_mut()?;
    meta.insert("labels".to_owned(), labels.into());
    if !namespace.is_empty() {
        meta.insert("namespace".to_owned(), namespace.into());
    }
    if plural.ends_with("roles") {
        map.insert("rules".to_owned(), json!([]));
    }
    Some((format!("{GROUP}/{plural}"), object))
}

fn rule(text: &str) -> Option<Value> {
    let parts: Vec<Vec<&str>> = text.split(' ').map(words).collect();
    match parts.as_slice() {
        [verbs, urls] => Some(json!({"nonResourceURLs": urls, "verbs": verbs})),
        [verbs, groups, resources] => {
            Some(json!({"apiGroups": groups, "resources": resources, "verbs": verbs}))
        }
        [verbs, groups, resources, names] => {
            Some(json!({"apiGroups": groups, "resourceNames": names, "resources": resources, "verbs": verbs}))
        }
        _ => None,
    }
}

fn subject(text: &str) -> Option<Value> {
    let (kind, name) = text.split_once(' ')?;
    Some(match name.split_once('/').filter(|_| kind == "ServiceAccount") {
        Some((namespace, name)) => json!({"kind": kind, "name": name, "namespace": namespace}),
        None => json!({"apiGroup": GROUP, "kind": kind, "name": name}),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_read_whole() {
        let lines = POLICY.lines().filter(|line| !line.starts_with(' ')).count();
        assert_eq!(OBJECTS.len(), lines);
        let rules = POLICY.lines().filter(|line| line.starts_with(' ')).count();
        let read: usize = read(POLICY)
            .iter()
            .flat_map(|(_, object)| [object.get("rules"), object.get("subjects")])
            .filter_map(|list| Some(list?.as_array()?.len()))
            .sum();
        assert_eq!(read, rules);
    }

    #[test]
    fn an_administrator_of_a_namespace_has_what_readers_have() {
        let rules = |name: &str| {
            let found = OBJECTS.iter().find(|(table, object)| {
                table.ends_with("/clusterroles") && object.pointer("/metadata/name") == Some(&json!(name))
            });
            found.unwrap().1.get("rules").unwrap().as_array().unwrap().clone()
        };
        let (admin, edit, view) = (rules("admin"), rules("edit"), rules("view"));
        assert!(!view.is_empty());
        assert!(view.iter().all(|rule| edit.contains(rule)));
        assert!(edit.iter().all(|rule| admin.contains(rule)));
        assert!(admin.len() > edit.len() && edit.len() > view.len());
    }
}
