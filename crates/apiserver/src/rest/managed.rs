//! Field management around the verbs: who writes, what the write may own, and what server-side apply makes of an object.

use std::sync::Arc;

use serde_json::{Value, json};

use super::decode::metadata;
use super::{Target, WriteOptions};
use crate::apply::{self, Conflicts, Entry, Managed, Manager, Operation, Reset, Set, Write};
use crate::patch::Applying;
use crate::registry::{Resource, StatusPart, split_api_version};
use crate::server::ApiServer;
use crate::status::Status;
use crate::store::Record;

/// What kubectl remembers of its own apply.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager for which the server keeps that up to date.
const KUBECTL: &str = "kubectl";
/// More than this is not kept there.
const MOST_ANNOTATIONS: usize = 256 << 10;

/// Takes `metadata.managedFields` out of an object.
pub(super) fn take(object: &mut Value) -> Option<Vec<Value>> {
    match metadata(object)?.remove("managedFields")? {
        Value::Array(list) => Some(list),
        _ => None,
    }
}

/// The managers that a write begins with: those that the client sent, if it sent any that can be read, or else those of
/// the live object. Subresources take none from clients.
fn base(given: Option<Vec<Value>>, live: Option<&Arc<Managed>>, subresource: Option<&str>) -> Managed {
    let live = || live.map(|managed| (**managed).clone()).unwrap_or_default();
    match given {
        Some(list) if subresource.is_none() => {
            if apply::is_reset(&list) {
                return Managed::default();
            }
            match Managed::read(&list) {
                Ok(managed) if !managed.is_empty() => managed,
                _ => live(),
            }
        }
        _ => live(),
    }
}

/// Fields that a write to this place cannot change.
fn reset(resource: &Resource, subresource: Option<&str>) -> Reset {
    match (subresource, resource.kind.as_ref()) {
        (None | Some("finalize"), _) if resource.status != StatusPart::None => Reset::Except(&[&["status"]]),
        (Some("status"), "Pod") if !resource.custom => {
            Reset::Except(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
        }
        (Some("status"), "Deployment") if !resource.custom => {
            Reset::Except(&[&["spec"], &["metadata", "labels"]])
        }
        (Some("status"), "CustomResourceDefinition" | "APIService" | "VolumeAttachment") => {
            Reset::Except(&[&["spec"], &["metadata"]])
        }
        (Some("status"), _) => Reset::Except(&[&["spec"]]),
        (Some("ephemeralcontainers"), _) => Reset::Only(&[&["spec", "ephemeralContainers"]]),
        (Some("resize"), _) => Reset::Only(&[
            &["spec", "containers", "*", "resources"],
            &["spec", "containers", "*", "resizePolicy"],
            &["spec", "initContainers", "*", "resources"],
            &["spec", "initContainers", "*", "resizePolicy"],
        ]),
        _ => Reset::Except(&[]),
    }
}

impl ApiServer {
    fn write_by(&self, target: &Target, options: &WriteOptions, operation: Operation) -> Write {
        let name = if options.field_manager.is_empty() { "unknown" } else { options.field_manager.as_str() };
        Write {
            manager: Manager {
                name: name.into(),
                operation,
                api_version: target.resource.api_version().into(),
                subresource: target.subresource.as_deref().unwrap_or_default().into(),
            },
            now: self.clock().now().as_second(),
        }
    }

    /// The managers of a new object.
    pub(super) fn managed_new(
        &self,
        target: &Target,
        object: &Value,
        given: Option<Vec<Value>>,
        options: &WriteOptions,
    ) -> Option<Arc<Managed>> {
        let resource = &target.resource;
        let base = base(given, None, None);
        let write = self.write_by(target, options, Operation::Update);
        let nothing = resource.rules.nothing(resource);
        let kind = resource.rules.typed(resource);
        let managed = apply::update(kind, &nothing, object, &base, &write, reset(resource, None));
        kept(&managed)
    }

    /// The managers of a changed object.
    pub(super) fn managed_after(
        &self,
        target: &Target,
        record: &Record,
        old: &Value,
        object: &Value,
        given: Option<Vec<Value>>,
        options: &WriteOptions,
    ) -> Option<Arc<Managed>> {
        let (resource, subresource) = (&target.resource, target.subresource.as_deref());
        if given.is_none() && record.managed.is_none() {
            // Who begins without account keeps none, until somebody applies.
            return None;
        }
        let base = base(given, record.managed.as_ref(), subresource);
        if base.is_empty() {
            return None;
        }
        let write = self.write_by(target, options, Operation::Update);
        let kind = resource.rules.typed(resource);
        let managed = apply::update(kind, old, object, &base, &write, reset(resource, subresource));
        if record.managed.as_deref() == Some(&managed) { record.managed.clone() } else { kept(&managed) }
    }

    /// Applies an object to the live one; or to nothing, where there is none.
    pub(super) fn apply_to(
        &self,
        target: &Target,
        live: Option<(&Value, &Record)>,
        applying: &Applying,
        options: &WriteOptions,
    ) -> Result<(Value, Option<Arc<Managed>>), Status> {
        let resource = &target.resource;
        let config = &applying.object;
        let text = |path: &str| config.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = split_api_version(text("/apiVersion"));
        let kind_text = format!("{group}/{version}, Kind={}", text("/kind"));
        if text("/apiVersion") != resource.api_version() || text("/kind") != resource.kind {
            return Err(Status::bad_request(format!("invalid object type: {kind_text}")));
        }
        if config.pointer("/metadata/managedFields").is_some_and(|list| !list.is_null()) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        let kind = resource.rules.typed(resource);
        if let Some(why) = apply::errors(kind, config) {
            let name = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
            let why = format!("failed to create typed patch object ({name}; {kind_text}): {why}");
            return Err(Status::failure(500, "", why));
        }
        let nothing = resource.rules.nothing(resource);
        let managed = live.and_then(|(_, record)| record.managed.as_deref().cloned()).unwrap_or_default();
        let object = live.map_or(&nothing, |(object, _)| object);
        let write = self.write_by(target, options, Operation::Apply);
        let reset = reset(resource, target.subresource.as_deref());
        let run = |force: bool| apply::apply(kind, &nothing, object, config, &managed, &write, reset, force);
        let by_kubectl = options.field_manager == KUBECTL;
        let mut outcome = run(applying.force);
        if by_kubectl && let Err(conflicts) = &outcome {
            // What kubectl applied itself before the server did is its own.
            let allowed = allowed_by_last_applied(resource, object);
            let left = conflicts.without(&allowed);
            outcome = if left.0.is_empty() { run(true) } else { Err(left) };
        }
        let mut applied = outcome.map_err(|conflicts| conflict(&conflicts))?;
        if by_kubectl {
            remember(&mut applied.object, config);
        }
        Ok((applied.object, kept(&applied.managed)))
    }

    /// The managers after a write of the scale, which is one field of the object.
    pub(super) fn managed_scale(
        &self,
        target: &Target,
        record: &Record,
        path: &str,
        changed: bool,
        applied: Option<bool>,
        options: &WriteOptions,
    ) -> Result<Option<Arc<Managed>>, Status> {
        let operation = if applied.is_some() { Operation::Apply } else { Operation::Update };
        let write = self.write_by(target, options, operation);
        let steps: Vec<&str> = path.split('.').filter(|step| !step.is_empty()).collect();
        let field = Set::of_field(&steps);
        let managed = record.managed.as_deref().cloned().unwrap_or_default();
        if applied.is_none() && (!changed || managed.is_empty()) {
            return Ok(record.managed.clone());
        }
        let others: Vec<&Entry> =
            managed.entries().iter().filter(|entry| !entry.manager.is(&write.manager)).collect();
        if changed && applied == Some(false) {
            let owners = others.iter().filter(|entry| !entry.fields.intersection(&field).is_empty());
            // A real server looks at the scale itself, where the field has this name and version.
            let shown = |entry: &&&Entry| {
                let manager = Manager { api_version: "autoscaling/v1".into(), ..(*entry.manager).clone() };
                (Arc::new(manager), Set::of_field(&["spec", "replicas"]))
            };
            let conflicts: Vec<_> = owners.map(|entry| shown(&entry)).collect();
            if !conflicts.is_empty() {
                return Err(conflict(&Conflicts(conflicts)));
            }
        }
        let mut entries: Vec<Entry> = others
            .into_iter()
            .map(|entry| match changed {
                true => Entry { fields: Arc::new(entry.fields.difference(&field)), ..entry.clone() },
                false => entry.clone(),
            })
            .collect();
        // Entries of scales carry no time.
        entries.push(Entry { manager: Arc::new(write.manager), time: None, fields: Arc::new(field) });
        Ok(kept(&apply::capped(entries)))
    }
}

/// Takes the managers out of an object that was kept elsewhere.
pub(crate) fn kept_managers(object: &mut Value) -> Option<Arc<Managed>> {
    let list = take(object)?;
    kept(&Managed::read(&list).ok()?)
}

/// What is stored of managers.
pub(crate) fn kept(managed: &Managed) -> Option<Arc<Managed>> {
    (!managed.is_empty()).then(|| Arc::new(apply::shared(managed)))
}

fn conflict(conflicts: &Conflicts) -> Status {
    let (message, causes) = conflicts.told();
    let status = Status::failure(409, "Conflict", message);
    causes
        .into_iter()
        .fold(status, |status, (cause, path)| status.with_cause("FieldManagerConflict", cause, &path))
}

/// The fields of the live object that are as kubectl's own annotation says.
fn allowed_by_last_applied(resource: &Resource, live: &Value) -> Set {
    let annotations = live.pointer("/metadata/annotations");
    let text = annotations.and_then(|all| all.get(LAST_APPLIED)).and_then(Value::as_str).unwrap_or_default();
    let Ok(last) = serde_json::from_str::<Value>(text) else { return Set::default() };
    if last.get("apiVersion").and_then(Value::as_str) != Some(resource.api_version().as_str()) {
        return Set::default();
    }
    let kind = resource.rules.typed(resource);
    let difference = apply::compare(kind, &last, live);
    let fields = apply::fields_of(kind, &last);
    fields.difference(&difference.changed()).difference(&difference.removed)
}

/// Keeps kubectl's own annotation up to date, where there is one.
fn remember(object: &mut Value, config: &Value) {
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    let there = annotations.get(LAST_APPLIED).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if !there {
        return;
    }
    let mut config = config.clone();
    if let Some(own) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        own.remove(LAST_APPLIED);
        if own.is_empty()
            && let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("annotations");
        }
    }
    let text = format!("{config}\n").replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    let others: usize = annotations
        .iter()
        .filter(|(key, _)| *key != LAST_APPLIED)
        .map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len())
        .sum();
    if others + text.len() + LAST_APPLIED.len() > MOST_ANNOTATIONS {
        annotations.remove(LAST_APPLIED);
    } else {
        annotations.insert(LAST_APPLIED.to_owned(), json!(text));
    }
}
