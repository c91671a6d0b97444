//! How an object is named, addressed and pointed at.

use std::fmt;

use serde_json::{Value, json};

use crate::text::Text;

/// Namespace and name. A cluster-wide object has an empty namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace, or nothing.
    pub namespace: Text,
    /// The name.
    pub name: Text,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    pub fn new(namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of a cluster-wide object.
    pub fn cluster(name: impl Into<Text>) -> Self {
        Self { namespace: Text::default(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return formatter.write_str(&self.name);
        }
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// A kind as the API addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The version that we read and write.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The name in paths.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// A kind of objects that live in namespaces.
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { group, version, kind, plural, namespaced: true }
    }

    /// A kind of objects that the whole cluster shares.
    pub const fn cluster(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { group, version, kind, plural, namespaced: false }
    }

    /// `apiVersion` of the objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Where the objects of a namespace are; the namespace is not looked at where the whole cluster shares them.
    pub fn path(&self, namespace: &str) -> String {
        let Self { group, version, plural, namespaced, .. } = self;
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if *namespaced {
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }
}

/// Pods.
pub const POD: Resource = Resource::namespaced("", "v1", "Pod", "pods");
/// Nodes.
pub const NODE: Resource = Resource::cluster("", "v1", "Node", "nodes");
/// Namespaces.
pub const NAMESPACE: Resource = Resource::cluster("", "v1", "Namespace", "namespaces");
/// ConfigMaps.
pub const CONFIG_MAP: Resource = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
/// Secrets.
pub const SECRET: Resource = Resource::namespaced("", "v1", "Secret", "secrets");
/// Claims of persistent volumes.
pub const PERSISTENT_VOLUME_CLAIM: Resource =
    Resource::namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
/// Storage classes.
pub const STORAGE_CLASS: Resource =
    Resource::cluster("storage.k8s.io", "v1", "StorageClass", "storageclasses");
/// Revisions of workloads.
pub const CONTROLLER_REVISION: Resource =
    Resource::namespaced("apps", "v1", "ControllerRevision", "controllerrevisions");

/// Jobs of Kubernetes.
pub const JOB: Resource = Resource::namespaced("batch", "v1", "Job", "jobs");

/// Which object an event or an error is about, or who owns one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// The kind.
    pub resource: Resource,
    /// Namespace and name.
    pub key: ObjectKey,
    /// The uid, so that a namesake is not meant.
    pub uid: Text,
}

impl ObjectRef {
    /// The entry in `metadata.ownerReferences` of a child whose controller this object is.
    pub fn controller_reference(&self) -> Value {
        json!({
            "apiVersion": self.resource.api_version(),
            "kind": self.resource.kind,
            "name": self.key.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_as_people_write_it() {
        assert_eq!(ObjectKey::new("default", "web").to_string(), "default/web");
        assert_eq!(ObjectKey::cluster("node-1").to_string(), "node-1");
    }
}
