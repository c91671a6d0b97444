//! Roles and bindings, as the store has them, by whom they are for.
//!
//! Built when somebody is first asked about who is not all-powerful, and from then on kept by the events of four tables. One
//! order of bindings, by name, so that one history gives one answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::rules::Rule;
use crate::admission::User;
use crate::field::quote;
use crate::store::{Cursor, Event, EventKind, Record, Store, TooOld};

const TABLES: [&str; 4] = [
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/roles",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "rbac.authorization.k8s.io/rolebindings",
];

/// Who a binding is for. Service accounts are users by their long names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    User(String),
    Group(String),
}

/// A role of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoleRef {
    pub(super) kind: String,
    pub(super) name: String,
}

impl RoleRef {
    pub(super) fn of(binding: &Value) -> Self {
        let text = |path: &str| binding.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { kind: text("/roleRef/kind"), name: text("/roleRef/name") }
    }
}

/// Who it is for, and how people are told.
type Named = (Subject, String);

#[derive(Debug)]
struct Binding {
    role: RoleRef,
    subjects: Vec<Named>,
}

/// The bindings of one namespace, or of the cluster.
#[derive(Debug, Default)]
struct Bindings {
    by_name: BTreeMap<Arc<str>, Binding>,
    by_subject: BTreeMap<Subject, BTreeSet<Arc<str>>>,
}

impl Bindings {
    fn remove(&mut self, name: &str) {
        let Some(binding) = self.by_name.remove(name) else { return };
        for (subject, _) in binding.subjects {
            if let Some(names) = self.by_subject.get_mut(&subject) {
                names.remove(name);
                if names.is_empty() {
                    self.by_subject.remove(&subject);
                }
            }
        }
    }

    fn put(&mut self, name: &str, binding: Binding) {
        self.remove(name);
        for (subject, _) in &binding.subjects {
            self.by_subject.entry(subject.clone()).or_default().insert(name.into());
        }
        self.by_name.insert(name.into(), binding);
    }

    /// The bindings for a user, by name, with how people are told for whom.
    fn of(&self, user: &User) -> Vec<(&str, &RoleRef, &str)> {
        let own = std::iter::once(Subject::User(user.name.clone()))
            .chain(user.groups.iter().cloned().map(Subject::Group));
        let names: BTreeSet<&Arc<str>> =
            own.filter_map(|subject| self.by_subject.get(&subject)).flatten().collect();
        let applies = |subject: &Subject| match subject {
            Subject::User(name) => *name == user.name,
            Subject::Group(group) => user.groups.contains(group),
        };
        names
            .into_iter()
            .filter_map(|name| {
                let binding = self.by_name.get(name)?;
                let (_, told) = binding.subjects.iter().find(|(subject, _)| applies(subject))?;
                Some((name.as_ref(), &binding.role, told.as_str()))
            })
            .collect()
    }
}

/// The rules of roles by name.
type Roles = BTreeMap<Arc<str>, Arc<[Rule]>>;
/// A rule with what tells where it comes from, or what is said of a role that is not there.
pub(super) type Shown<'a> = Result<(&'a dyn Fn() -> String, &'a Rule), String>;

/// Roles and bindings.
#[derive(Debug)]
pub(super) struct Index {
    cursors: [Cursor; 4],
    cluster_roles: Roles,
    roles: BTreeMap<Arc<str>, Roles>,
    cluster_bindings: Bindings,
    bindings: BTreeMap<Arc<str>, Bindings>,
}

impl Index {
    /// Reads all that is there.
    pub(super) fn read(store: &Arc<Store>) -> Self {
        let mut found = Vec::new();
        let cursors = TABLES.map(|table| {
            let (version, records) = store.list(table, None);
            found.extend(records.into_iter().map(|record| (table, record)));
            store.watch(table, version)
        });
        let mut index = Self {
            cursors,
            cluster_roles: BTreeMap::new(),
            roles: BTreeMap::new(),
            cluster_bindings: Bindings::default(),
            bindings: BTreeMap::new(),
        };
        for (table, record) in found {
            index.put(table, &record);
        }
        index
    }

    /// Catches up with the store.
    pub(super) fn refresh(&mut self, store: &Arc<Store>) {
        if self.follow().is_err() {
            *self = Self::read(store);
        }
    }

    fn follow(&mut self) -> Result<(), TooOld> {
        for (at, table) in TABLES.iter().enumerate() {
            while let Some(cursor) = self.cursors.get_mut(at) {
                let events = cursor.take()?;
                if events.is_empty() {
                    break;
                }
                for event in events {
                    self.hear(table, &event);
                }
            }
        }
        Ok(())
    }

    fn hear(&mut self, table: &str, event: &Event) {
        let record = &event.new;
        if event.kind != EventKind::Deleted {
            return self.put(table, record);
        }
        match table {
            "rbac.authorization.k8s.io/clusterroles" => {
                self.cluster_roles.remove(&record.name);
            }
            "rbac.authorization.k8s.io/roles" => {
                if let Some(roles) = self.roles.get_mut(&record.namespace) {
                    roles.remove(&record.name);
                    if roles.is_empty() {
                        self.roles.remove(&record.namespace);
                    }
                }
            }
            "rbac.authorization.k8s.io/clusterrolebindings" => self.cluster_bindings.remove(&record.name),
            _ => {
                if let Some(bindings) = self.bindings.get_mut(&record.namespace) {
                    bindings.remove(&record.name);
                    if bindings.by_name.is_empty() {
                        self.bindings.remove(&record.namespace);
                    }
                }
            }
        }
    }

    fn put(&mut self, table: &str, record: &Record) {
        let object = record.value();
        let (namespace, name) = (&record.namespace, &record.name);
        match table {
            "rbac.authorization.k8s.io/clusterroles" => {
                self.cluster_roles.insert(name.clone(), Rule::all_of(&object).into());
            }
            "rbac.authorization.k8s.io/roles" => {
                let roles = self.roles.entry(namespace.clone()).or_default();
                roles.insert(name.clone(), Rule::all_of(&object).into());
            }
            "rbac.authorization.k8s.io/clusterrolebindings" => {
                self.cluster_bindings.put(name, binding(&object, ""));
            }
            _ => self.bindings.entry(namespace.clone()).or_default().put(name, binding(&object, namespace)),
        }
    }

    /// Shows every rule that is for a user in a namespace, with where it comes from, and every role that is not there, until
    /// `visit` returns false.
    pub(super) fn visit(&self, user: &User, namespace: &str, visit: &mut dyn FnMut(Shown<'_>) -> bool) {
        for (name, role, told) in self.cluster_bindings.of(user) {
            let source = || {
                let (kind, role) = (&role.kind, quote(&role.name));
                format!("ClusterRoleBinding {} of {kind} {role} to {told}", quote(name))
            };
            if !show(self.rules(role, ""), &source, visit) {
                return;
            }
        }
        let Some(bindings) = self.bindings.get(namespace).filter(|_| !namespace.is_empty()) else { return };
        for (name, role, told) in bindings.of(user) {
            let source = || {
                let (kind, role) = (&role.kind, quote(&role.name));
                let place = quote(&format!("{name}/{namespace}"));
                format!("RoleBinding {place} of {kind} {role} to {told}")
            };
            if !show(self.rules(role, namespace), &source, visit) {
                return;
            }
        }
    }

    /// The rules of a role; or that it is not there.
    pub(super) fn rules(&self, role: &RoleRef, namespace: &str) -> Result<Arc<[Rule]>, String> {
        let name = role.name.as_str();
        let (found, resource) = match role.kind.as_str() {
            "ClusterRole" => (self.cluster_roles.get(name), "clusterrole"),
            "Role" => (self.roles.get(namespace).and_then(|roles| roles.get(name)), "role"),
            kind => return Err(format!("unsupported role reference kind: {}", quote(kind))),
        };
        let missing = || format!("{resource}.rbac.authorization.k8s.io {} not found", quote(name));
        found.cloned().ok_or_else(missing)
    }
}

fn show(
    rules: Result<Arc<[Rule]>, String>,
    source: &dyn Fn() -> String,
    visit: &mut dyn FnMut(Shown<'_>) -> bool,
) -> bool {
    match rules {
        Err(missing) => visit(Err(missing)),
        Ok(rules) => rules.iter().all(|rule| visit(Ok((source, rule)))),
    }
}

fn binding(object: &Value, namespace: &str) -> Binding {
    let subjects = object.get("subjects").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let subjects = subjects.iter().filter_map(|subject| named(subject, namespace)).collect();
    Binding { role: RoleRef::of(object), subjects }
}

fn named(subject: &Value, namespace: &str) -> Option<Named> {
    let text = |key: &str| subject.get(key).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let plain = || format!("{kind} {}", quote(name));
    match kind {
        "User" => Some((Subject::User(name.to_owned()), plain())),
        "Group" => Some((Subject::Group(name.to_owned()), plain())),
        "ServiceAccount" => {
            let own = text("namespace");
            let namespace = if own.is_empty() { namespace } else { own };
            let told = format!("{kind} {}", quote(&format!("{name}/{namespace}")));
            let user = super::service_account_name(namespace, name);
            (!namespace.is_empty()).then_some((Subject::User(user), told))
        }
        _ => None,
    }
}
