//! Which names a definition gets, and the conditions that say so.
//!
//! Names are unique within a group. A name once accepted is kept, whoever else asks for it later.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{list, text};
use crate::field::quote;
use crate::rest::set_condition;

/// The names that other definitions of a group hold.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Plural, singular and short names share one space.
    resources: BTreeSet<String>,
    /// Kinds and kinds of lists share the other.
    kinds: BTreeSet<String>,
}

impl Taken {
    /// Adds the `acceptedNames` of a definition.
    pub(super) fn add(&mut self, names: &Value) {
        let mut add = |space: bool, name: &str| {
            if !name.is_empty() {
                let space = if space { &mut self.resources } else { &mut self.kinds };
                space.insert(name.to_owned());
            }
        };
        add(true, text(names, "/plural"));
        add(true, text(names, "/singular"));
        list(names, "/shortNames").iter().filter_map(Value::as_str).for_each(|name| add(true, name));
        add(false, text(names, "/kind"));
        add(false, text(names, "/listKind"));
    }
}

/// Decides the names of a definition and writes them and the conditions into its status.
pub(super) fn decide(definition: &mut Value, taken: &Taken, now: &str) {
    let (accepted, conflict) = accepted(definition, taken);
    let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now});
    let names_condition = match &conflict {
        None => condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => condition("NamesAccepted", "False", reason, message),
    };
    let was_established = is_true(definition, "Established");
    let Some(map) = definition.as_object_mut() else { return };
    let status = map.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        status.insert("acceptedNames".to_owned(), Value::Object(accepted));
        if !status.get("conditions").is_some_and(Value::is_array) {
            status.insert("conditions".to_owned(), json!([]));
        }
    }
    set_condition(definition, names_condition);
    if !was_established {
        let initial = "the initial names have been accepted";
        let established = if conflict.is_none() {
            condition("Established", "True", "InitialNamesAccepted", initial)
        } else {
            condition("Established", "False", "NotAccepted", "not all names are accepted")
        };
        set_condition(definition, established);
    }
    approval(definition, now);
    stored_versions(definition);
}

/// The names to serve, and the last conflict if there is one.
fn accepted(definition: &Value, taken: &Taken) -> (Map<String, Value>, Option<(&'static str, String)>) {
    let null = Value::Null;
    let wanted = definition.pointer("/spec/names").unwrap_or(&null);
    let had = definition.pointer("/status/acceptedNames").unwrap_or(&null);
    let mut names = Map::new();
    let mut conflict = None;
    let in_use = |name: &str| format!("{} is already in use", quote(name));
    let single = [
        ("plural", &taken.resources, "PluralConflict"),
        ("singular", &taken.resources, "SingularConflict"),
        ("kind", &taken.kinds, "KindConflict"),
        ("listKind", &taken.kinds, "ListKindConflict"),
    ];
    for (key, space, reason) in single {
        let (name, before) = (member(wanted, key), member(had, key));
        let free = name == before || !space.contains(name);
        let shown = if free { name } else { before };
        if !free {
            conflict = Some((reason, in_use(name)));
        }
        if !shown.is_empty() || matches!(key, "plural" | "kind") {
            names.insert(key.to_owned(), json!(shown));
        }
        if key == "singular" {
            short_names(wanted, had, taken, &mut names, &mut conflict);
        }
    }
    if let Some(categories) = wanted.get("categories") {
        names.insert("categories".to_owned(), categories.clone());
    }
    (names, conflict)
}

/// Short names are accepted all together or not at all.
fn short_names(
    wanted: &Value,
    had: &Value,
    taken: &Taken,
    names: &mut Map<String, Value>,
    conflict: &mut Option<(&'static str, String)>,
) {
    let wanted_list = list(wanted, "/shortNames");
    let before = list(had, "/shortNames");
    let bad: Vec<String> = wanted_list
        .iter()
        .filter(|name| !before.contains(name))
        .filter_map(Value::as_str)
        .filter(|name| taken.resources.contains(*name))
        .map(|name| format!("{} is already in use", quote(name)))
        .collect();
    let shown = if bad.is_empty() { wanted_list } else { before };
    match bad.as_slice() {
        [] => {}
        [one] => *conflict = Some(("ShortNamesConflict", one.clone())),
        several => *conflict = Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
    }
    if !shown.is_empty() {
        names.insert("shortNames".to_owned(), json!(shown));
    }
}

/// Groups of the Kubernetes project say whether somebody approved them.
fn approval(definition: &mut Value, now: &str) {
    let group = text(definition, "/spec/group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owned| group == *owned || group.strip_suffix(owned).is_some_and(|rest| rest.ends_with('.')));
    let marks = definition.pointer("/metadata/annotations");
    let mark = marks.and_then(|marks| marks.get("api-approved.kubernetes.io")).and_then(Value::as_str);
    let (true, Some(mark)) = (protected, mark) else { return };
    let (status, reason, message) = if mark.starts_with("unapproved") {
        ("False", "UnapprovedAnnotation", format!("not approved: {}", quote(mark)))
    } else {
        ("True", "ApprovedAnnotation", format!("approved in {mark}"))
    };
    let condition = json!({
        "type": "KubernetesAPIApprovalPolicyConformant", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now,
    });
    set_condition(definition, condition);
}

/// Adds the storage version to those in which objects may be stored.
pub(super) fn stored_versions(definition: &mut Value) {
    let versions = list(definition, "/spec/versions");
    let storage = versions.iter().find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let Some(name) = storage.map(|version| text(version, "/name").to_owned()) else { return };
    let Some(map) = definition.as_object_mut() else { return };
    let Some(status) = map.entry("status").or_insert_with(|| json!({})).as_object_mut() else { return };
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    if !stored.is_array() {
        *stored = json!([]);
    }
    if let Some(stored) = stored.as_array_mut()
        && !stored.iter().any(|known| *known == name)
    {
        stored.push(json!(name));
    }
}

/// Whether a condition of the definition is true.
pub(super) fn is_true(definition: &Value, condition: &str) -> bool {
    let conditions = list(definition, "/status/conditions");
    conditions.iter().any(|found| text(found, "/type") == condition && text(found, "/status") == "True")
}

fn member<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(plural: &str, short: &[&str]) -> Value {
        json!({
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com",
                "names": {"plural": plural, "singular": "w", "kind": "W", "listKind": "WList", "shortNames": short},
                "versions": [{"name": "v1", "storage": true}],
            },
        })
    }

    #[test]
    fn the_first_definition_gets_its_names_and_the_second_one_waits() {
        let mut first = definition("ws", &["w1"]);
        decide(&mut first, &Taken::default(), "t");
        assert!(is_true(&first, "NamesAccepted") && is_true(&first, "Established"));
        assert_eq!(first["status"]["storedVersions"], json!(["v1"]));
        let mut taken = Taken::default();
        taken.add(&first["status"]["acceptedNames"]);

        let mut second = definition("others", &["w1", "o"]);
        decide(&mut second, &taken, "t");
        let conditions = &second["status"]["conditions"];
        assert_eq!(conditions[0]["reason"], "ListKindConflict");
        assert_eq!(conditions[0]["message"], "\"WList\" is already in use");
        assert_eq!(conditions[1]["reason"], "NotAccepted");
        assert_eq!(second["status"]["acceptedNames"], json!({"plural": "others", "kind": ""}));

        decide(&mut second, &Taken::default(), "t");
        assert!(is_true(&second, "Established"));
    }
}
