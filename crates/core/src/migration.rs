//! Which version of our kinds a cluster stores, and how to change it without losing an object.
//!
//! OpenKruise v1.9.0 stores seven kinds as `v1alpha1` and knows no other version of them; we store the newest. An API
//! server drops a version of a definition only when `status.storedVersions` does not list it any more, and it is for us
//! to make that true: set the stored version, write every object once, then say so. The way back is the same with the
//! other version.

use kruise_api::{
    catalogue::CRDS,
    crd::{Crd, Scope},
};
use serde_json::{Value, json};

use crate::{
    effect::{Effect, Patch, Target},
    object::{ObjectKey, Resource},
    text::Text,
};

/// CustomResourceDefinitions.
pub const DEFINITION: Resource =
    Resource::cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");

/// The kinds of which OpenKruise v1.9.0 knows and stores only `v1alpha1`.
const STORED_OLD_BY_V1_9: &[&str] = &[
    "CloneSet",
    "ContainerRecreateRequest",
    "PersistentPodState",
    "PodUnavailableBudget",
    "ResourceDistribution",
    "UnitedDeployment",
    "WorkloadSpread",
];

/// Where a cluster goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// What we store: the newest version of every kind.
    Ours,
    /// What OpenKruise v1.9.0 can read, for going back to it.
    OpenKruise19,
}

impl Goal {
    /// The version of a kind to store.
    pub fn version(self, crd: &Crd) -> Option<&'static str> {
        let chosen = match self {
            Self::OpenKruise19 if STORED_OLD_BY_V1_9.contains(&crd.kind) => crd.versions.first(),
            Self::Ours | Self::OpenKruise19 => crd.versions.last(),
        };
        chosen.map(|version| version.name)
    }

    /// Every kind with the version to store.
    pub fn kinds(self) -> impl Iterator<Item = (&'static Crd, &'static str)> {
        CRDS.iter().filter_map(move |crd| self.version(crd).map(|version| (*crd, version)))
    }
}

/// Why a kind cannot be migrated.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The installed definition is too old or too new.
    #[error(
        "the installed definition {definition} does not serve version {version}; install the definitions of this release first"
    )]
    NotServed {
        /// Its name.
        definition: String,
        /// The version to store.
        version: &'static str,
    },
}

/// What is left to do for one kind.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Nothing: the version is stored, and no other was.
    Done,
    /// The server must first be told which version to store.
    SetStorage(Effect),
    /// Every object must be written once; [`rewrite`] makes the effects. Then [`prune`].
    Rewrite,
}

/// The next step for one kind, from its definition as the server has it.
pub fn step(definition: &Value, version: &'static str) -> Result<Step, Error> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let versions = versions.map(Vec::as_slice).unwrap_or_default();
    let is = |entry: &Value, flag: &str| entry.get(flag).and_then(Value::as_bool) == Some(true);
    let named = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(version);
    if !versions.iter().any(|entry| named(entry) && is(entry, "served")) {
        return Err(Error::NotServed { definition: target(definition).key.to_string(), version });
    }
    if !versions.iter().any(|entry| named(entry) && is(entry, "storage")) {
        // One of them must store at every moment, so all flags change in one patch.
        let operations: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(index, entry)| {
                let path = format!("/spec/versions/{index}/storage");
                json!({"op": "replace", "path": path, "value": named(entry)})
            })
            .collect();
        let patch = Patch::Json(operations.into());
        return Ok(Step::SetStorage(Effect::Patch { target: target(definition), subresource: None, patch }));
    }
    let stored = definition.pointer("/status/storedVersions").unwrap_or(&Value::Null);
    Ok(if *stored == json!([version]) { Step::Done } else { Step::Rewrite })
}

/// Writes an object as it is. The server stores what it writes in the stored version.
pub fn rewrite(crd: &'static Crd, version: &'static str, key: ObjectKey) -> Effect {
    let target = Target { resource: resource(crd, version), key, uid: None, resource_version: None };
    Effect::Patch { target, subresource: None, patch: Patch::Merge(json!({})) }
}

/// Says that only this version is stored. True after every object was written since the version was set.
pub fn prune(definition: &Value, version: &'static str) -> Effect {
    let patch = Patch::Merge(json!({"status": {"storedVersions": [version]}}));
    Effect::Patch { target: target(definition), subresource: Some("status"), patch }
}

/// A kind as the API addresses it in a version.
pub fn resource(crd: &'static Crd, version: &'static str) -> Resource {
    let namespaced = crd.scope == Scope::Namespaced;
    Resource { group: crd.group, version, kind: crd.kind, plural: crd.plural, namespaced }
}

fn target(definition: &Value) -> Target {
    let text = |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default();
    Target {
        resource: DEFINITION,
        key: ObjectKey::cluster(text("/metadata/name")),
        uid: Some(Text::from(text("/metadata/uid"))),
        resource_version: Some(Text::from(text("/metadata/resourceVersion"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(storage: &str, stored: &[&str]) -> Value {
        let version = |name: &str| json!({"name": name, "served": true, "storage": name == storage});
        json!({
            "metadata": {"name": "clonesets.apps.kruise.io", "uid": "u", "resourceVersion": "7"},
            "spec": {"versions": [version("v1alpha1"), version("v1beta1")]},
            "status": {"storedVersions": stored},
        })
    }

    #[test]
    fn a_cluster_of_the_original_is_rewritten_and_then_done() {
        assert_eq!(step(&definition("v1beta1", &["v1alpha1", "v1beta1"]), "v1beta1"), Ok(Step::Rewrite));
        assert_eq!(step(&definition("v1beta1", &["v1beta1"]), "v1beta1"), Ok(Step::Done));
    }

    #[test]
    fn going_back_first_changes_what_is_stored_in_one_patch() {
        let Ok(Step::SetStorage(Effect::Patch { target, patch: Patch::Json(operations), .. })) =
            step(&definition("v1beta1", &["v1beta1"]), "v1alpha1")
        else {
            panic!("the stored version is another one");
        };
        assert_eq!(target.resource_version.as_deref(), Some("7"));
        assert_eq!(
            operations,
            json!([
                {"op": "replace", "path": "/spec/versions/0/storage", "value": true},
                {"op": "replace", "path": "/spec/versions/1/storage", "value": false},
            ])
        );
    }

    #[test]
    fn a_version_that_is_not_installed_is_an_error_with_its_name() {
        let old = json!({
            "metadata": {"name": "clonesets.apps.kruise.io"},
            "spec": {"versions": [{"name": "v1alpha1", "served": true, "storage": true}]},
        });
        let error = step(&old, "v1beta1").unwrap_err().to_string();
        assert!(error.contains("clonesets.apps.kruise.io does not serve version v1beta1"), "{error}");
    }

    #[test]
    fn only_seven_kinds_go_back_to_the_old_version() {
        let old: Vec<_> =
            CRDS.iter().filter(|crd| Goal::OpenKruise19.version(crd) != Goal::Ours.version(crd)).collect();
        assert_eq!(old.len(), 7);
        assert!(old.iter().all(|crd| Goal::OpenKruise19.version(crd) == Some("v1alpha1")));
    }
}
