//! A client inside the process, for built-in controllers and simulated nodes.
//!
//! It runs the same verbs as HTTP does, with admission and validation, but neither encodes nor decodes.

use std::sync::Arc;

use serde_json::Value;

use crate::patch::Patch;
use crate::registry::Resource;
use crate::rest::watch::Watch;
use crate::rest::{DeleteOptions, Deleted, ListOptions, Page, Selection, Target, WatchOptions, WriteOptions};
use crate::server::ApiServer;
use crate::status::Status;
use crate::store::Record;

/// A handle to the verbs of a server.
#[derive(Clone, Debug)]
pub struct Local {
    server: ApiServer,
    /// Who writes, for field management.
    manager: Arc<str>,
}

impl Local {
    pub(crate) fn new(server: ApiServer) -> Self {
        Self { server, manager: "unknown".into() }
    }

    /// The same client under a name: the manager of what it writes.
    #[must_use]
    pub fn named(&self, manager: &str) -> Self {
        Self { server: self.server.clone(), manager: manager.into() }
    }

    fn options(&self) -> WriteOptions {
        WriteOptions { field_manager: self.manager.to_string(), ..WriteOptions::default() }
    }

    /// The server behind it.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// A resource by group (empty for core) and plural, in its preferred version.
    pub fn resource(&self, group: &str, plural: &str) -> Result<Arc<Resource>, Status> {
        self.server.registry().find_any_version(group, plural).ok_or_else(Status::resource_not_found)
    }

    /// One object.
    pub fn get(&self, resource: &Arc<Resource>, namespace: &str, name: &str) -> Result<Arc<Record>, Status> {
        self.server.get(&Target::object(resource, namespace, name))
    }

    /// All objects of a namespace, or of all namespaces when it is empty.
    pub fn list(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        selection: Selection,
    ) -> Result<Page, Status> {
        let options = ListOptions { selection, ..ListOptions::default() };
        self.server.list(&Target::object(resource, namespace, ""), &options)
    }

    /// Watches a namespace, or all namespaces when it is empty.
    pub fn watch(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        options: WatchOptions,
    ) -> Result<Watch, Status> {
        self.server.watch(&Target::object(resource, namespace, ""), options)
    }

    /// Creates an object; apiVersion and kind may be left out.
    pub async fn create(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Record>, Status> {
        crate::rest::decode(&mut object, resource)?;
        self.server.create(&Target::object(resource, namespace, ""), object, &self.options()).await
    }

    /// Replaces an object, or with `subresource` only what that may write.
    pub async fn update(
        &self,
        resource: &Arc<Resource>,
        subresource: Option<&str>,
        object: Value,
    ) -> Result<Arc<Record>, Status> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let mut target = Target::object(resource, &namespace, &name);
        target.subresource = subresource.map(str::to_owned);
        Ok(self.server.update(&target, object, &self.options()).await?.record)
    }

    /// Applies a patch to an object, or with `subresource` only to what that may write.
    pub async fn patch(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        subresource: Option<&str>,
        patch: &Patch,
    ) -> Result<Arc<Record>, Status> {
        let mut target = Target::object(resource, namespace, name);
        target.subresource = subresource.map(str::to_owned);
        self.server.patch(&target, patch, &self.options()).await
    }

    /// Deletes an object.
    pub async fn delete(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        self.server.delete(&Target::object(resource, namespace, name), options, &self.options()).await
    }

    /// Gives a pod its node, as a scheduler does.
    pub async fn bind(&self, namespace: &str, pod: &str, node: &str) -> Result<(), Status> {
        let pods = self.resource("", "pods")?;
        let target = Target::object(&pods, namespace, pod).with_subresource("binding");
        let binding =
            serde_json::json!({"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}});
        self.server.post_sub(&target, binding, &self.options()).await.map(|_| ())
    }

    /// The scale of a target that names the subresource.
    pub(crate) async fn scale(&self, target: &Target) -> Result<Value, Status> {
        self.server.scale(target).await
    }

    /// Changes the scale of a target that names the subresource.
    pub(crate) async fn patch_scale(&self, target: &Target, patch: &Patch) -> Result<(), Status> {
        self.server.patch_sub(target, patch, &WriteOptions::default()).await.map(|_| ())
    }

    /// Evicts a pod: deletes it if its disruption budget allows.
    pub async fn evict(&self, namespace: &str, pod: &str) -> Result<(), Status> {
        let pods = self.resource("", "pods")?;
        let target = Target::object(&pods, namespace, pod).with_subresource("eviction");
        let eviction = serde_json::json!({"metadata": {"name": pod}});
        self.server.post_sub(&target, eviction, &self.options()).await.map(|_| ())
    }
}
