//! Which resources are served, and how each behaves.
//!
//! The built-in ones are plain data in [`builtin`]; custom resources join and leave at run time. Everything
//! that differs between resources is a field of [`Resource`] or a method of its [`Rules`]: the verbs
//! themselves know no kind by name, except for the few subresources that only pods have.

pub mod builtin;
mod convert;
pub mod fields;
mod rules;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use crate::status::{GroupKind, GroupResource};
use crate::table::Printer;
pub use rules::{BuiltIn, Rules};

/// A word of the registry: static for built-in resources, owned for custom ones.
pub type Text = Cow<'static, str>;

/// A verb as discovery names it.
pub type Verb = &'static str;

/// What a write to the main resource and to `/status` may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusPart {
    /// The kind has no status subresource; everything is written at once.
    None,
    /// The main resource ignores `status`, `/status` ignores the rest.
    Separate,
    /// As [`Self::Separate`], but a create keeps the status (nodes register with theirs).
    KeptOnCreate,
}

/// Which of its own fields a `/scale` subresource reads and writes, as dotted paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Where the wanted number is, for example `.spec.replicas`.
    pub spec_replicas: Text,
    /// Where the seen number is.
    pub status_replicas: Text,
    /// Where the selector is: a string field, or a label selector object.
    pub selector: Option<Text>,
}

/// A path below an object: `status`, `scale`, `log` and so on.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last part of the path.
    pub name: Text,
    /// The kind that is read and written there.
    pub kind: Text,
    /// That kind's group, when it differs from the resource's.
    pub group_version: Option<(Text, Text)>,
    /// The verbs, in discovery's order.
    pub verbs: Vec<Verb>,
}

/// One resource in one version.
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: Text,
    /// The version.
    pub version: Text,
    /// The kind of one object.
    pub kind: Text,
    /// The kind of a list.
    pub list_kind: Text,
    /// The plural name, as in paths.
    pub plural: Text,
    /// The singular name.
    pub singular: Text,
    /// Short names for people.
    pub short_names: Vec<Text>,
    /// Groups of resources for people, such as `all`.
    pub categories: Vec<Text>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The verbs, in discovery's order.
    pub verbs: Vec<Verb>,
    /// The subresources, in discovery's order.
    pub subresources: Vec<Subresource>,
    /// The store's table; versions of one resource share it.
    pub table: Arc<str>,
    /// The `apiVersion` in the store.
    pub storage_api_version: Text,
    /// How status is written.
    pub status: StatusPart,
    /// Whether `metadata.generation` counts changes of the spec.
    pub generation: bool,
    /// Whether a PUT of an unknown name creates.
    pub create_on_update: bool,
    /// Whether a PUT without a resource version overwrites.
    pub unconditional_update: bool,
    /// Whether a delete answers with the object instead of a `Status`.
    pub returns_deleted: bool,
    /// The scale subresource's fields.
    pub scale: Option<ScalePaths>,
    /// What those are told who use it although it is on its way out.
    pub deprecation: Option<Text>,
    /// Field selectors beyond `metadata.name` and `metadata.namespace`.
    pub selectable: Arc<[Arc<str>]>,
    /// Whether this is a custom resource: other update rules, lists with typed items, no strategic merge.
    pub custom: bool,
    /// The columns that people see.
    pub printer: Printer,
    /// The `openAPIV3Schema` of a custom resource's version, as its author wrote it.
    pub schema: Option<Arc<Value>>,
    /// Defaults, validation and conversion.
    pub rules: Arc<dyn Rules>,
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resource({} {})", self.api_version(), self.plural)
    }
}

impl Resource {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// For errors about requests.
    pub fn group_resource(&self) -> GroupResource<'_> {
        GroupResource::new(&self.group, &self.plural)
    }

    /// For errors about content.
    pub fn group_kind(&self) -> GroupKind<'_> {
        GroupKind::new(&self.group, &self.kind)
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether objects are stored under another `apiVersion` than this one.
    pub fn needs_conversion(&self) -> bool {
        self.storage_api_version != self.api_version()
    }
}

/// `v1` for the core group, `group/version` otherwise.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Splits an `apiVersion` into group and version.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.rsplit_once('/').unwrap_or(("", api_version))
}

type Key = (Text, Text, Text);

#[derive(Debug, Default)]
struct Served {
    /// By group, version, plural.
    resources: BTreeMap<Key, Arc<Resource>>,
    /// Versions of each group, the preferred one first.
    groups: BTreeMap<Text, Vec<Text>>,
    /// Counts changes, for discovery's ETag.
    edition: u64,
}

/// The served resources. Cheap to share; changes when custom resources come and go.
#[derive(Debug)]
pub struct Registry {
    served: RwLock<Served>,
}

impl Registry {
    /// A registry with the built-in resources.
    pub fn built_in() -> Self {
        let registry = Self { served: RwLock::new(Served::default()) };
        for resource in builtin::resources() {
            registry.insert(resource);
        }
        registry
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Served> {
        self.served.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The resource of a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let key: Key = (group.to_owned().into(), version.to_owned().into(), plural.to_owned().into());
        self.read().resources.get(&key).cloned()
    }

    /// The resource of a kind.
    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        let served = self.read();
        let found =
            served.resources.values().find(|r| r.group == group && r.version == version && r.kind == kind);
        found.cloned()
    }

    /// The resource in any version, the preferred one first.
    pub fn find_any_version(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        let versions = self.read().groups.get(group).cloned().unwrap_or_default();
        versions.iter().find_map(|version| self.find(group, version, plural))
    }

    /// All resources, by group, version and plural.
    pub fn all(&self) -> Vec<Arc<Resource>> {
        self.read().resources.values().cloned().collect()
    }

    /// The groups with their versions, the preferred version first.
    pub fn groups(&self) -> BTreeMap<Text, Vec<Text>> {
        self.read().groups.clone()
    }

    /// Changes whenever a resource comes or goes.
    pub fn edition(&self) -> u64 {
        self.read().edition
    }

    /// Serves a resource (again).
    pub fn insert(&self, resource: impl Into<Arc<Resource>>) {
        let resource = resource.into();
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        let versions = served.groups.entry(resource.group.clone()).or_default();
        if !versions.contains(&resource.version) {
            versions.push(resource.version.clone());
            versions.sort_by(|a, b| version_order(a, b));
        }
        let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        served.resources.insert(key, resource);
        served.edition += 1;
    }

    /// Stops serving a resource.
    pub fn remove(&self, group: &str, version: &str, plural: &str) {
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        let key: Key = (group.to_owned().into(), version.to_owned().into(), plural.to_owned().into());
        if served.resources.remove(&key).is_none() {
            return;
        }
        served.edition += 1;
        let version_left = served.resources.keys().any(|(g, v, _)| g == group && v == version);
        if version_left {
            return;
        }
        if let Some(versions) = served.groups.get_mut(group) {
            versions.retain(|v| v != version);
            if versions.is_empty() {
                served.groups.remove(group);
            }
        }
    }
}

/// Kubernetes' order of versions: stable before beta before alpha, then the higher number, then other names.
pub fn version_order(a: &str, b: &str) -> std::cmp::Ordering {
    let rank = |version: &str| -> Option<(u8, u64, u64)> {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, tail) = rest.split_at_checked(digits)?;
        let major = major.parse().ok()?;
        for (stage, name) in [(2, "beta"), (1, "alpha")] {
            if let Some(minor) = tail.strip_prefix(name) {
                return Some((stage, major, minor.parse().ok()?));
            }
        }
        tail.is_empty().then_some((3, major, 0))
    };
    rank(b).cmp(&rank(a)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_prefers_them() {
        let mut versions = vec!["v1alpha1", "foo", "v1", "v2beta1", "v1beta2", "v10", "v2"];
        versions.sort_by(|a, b| version_order(a, b));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]);
    }
}
