//! Changing objects: PUT and PATCH are the same pass with another way to make the new object.

use std::sync::Arc;

use kruise_api::json::pointer as at;
use serde_json::{Value, json};

use super::create::{Managers, drop_empty};
use super::decode::{decode, metadata, settle_namespace, settle_patched, settle_shape};
use super::{FieldValidation, Target, WriteOptions, Written, managed, meta, plugins, strategy};
use crate::admission::{Attributes, Operation, Warnings};
use crate::apply::Managed;
use crate::field;
use crate::kinds;
use crate::patch::{Applying, Patch, undecodable};
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::{GroupKind, Status};
use crate::store::{Record, Refused};

/// How often a patch is tried on the newest object before the conflict is the client's.
const PATCH_TRIES: usize = 5;

/// How the new object is made of the old one.
pub(super) enum Change<'a> {
    /// The client sent all of it.
    Put(&'a Value),
    /// The client sent a difference.
    Patch(&'a Patch),
    /// The client sent the fields that it wants to own.
    Apply(&'a Applying),
}

impl ApiServer {
    /// Replaces an object (or what its subresource may write). Some kinds are created when absent.
    pub async fn update(
        &self,
        target: &Target,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        check_name(target, &object)?;
        let mut object = object;
        settle_namespace(&mut object, target)?;
        let absent = self.store().get(&target.resource.table, &target.namespace, &target.name).is_none();
        if absent && target.resource.create_on_update && target.subresource.is_none() {
            if let Some(meta) = metadata(&mut object) {
                meta.insert("name".to_owned(), Value::String(target.name.clone()));
            }
            self.check_create(&options.user, target)?;
            let record = self.create(target, object, options).await?;
            return Ok(Written { record, created: true });
        }
        let record = self.change(target, &Change::Put(&object), options).await?;
        Ok(Written { record, created: false })
    }

    /// Applies a patch to an object (or to what its subresource may write).
    pub async fn patch(
        &self,
        target: &Target,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Arc<Record>, Status> {
        match patch {
            Patch::Apply(applying) => {
                self.apply(target, applying, options).await.map(|written| written.record)
            }
            _ => self.change(target, &Change::Patch(patch), options).await,
        }
    }

    /// Applies an object: its fields become the manager's own. Creates the object where there is none.
    pub async fn apply(
        &self,
        target: &Target,
        applying: &Applying,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let there = || self.store().get(&target.resource.table, &target.namespace, &target.name).is_some();
        if !there() && target.subresource.is_none() {
            let (object, managed) = self.apply_to(target, None, applying, options)?;
            report_repeated(applying, options)?;
            if let Some(uid) =
                at(&object, "/metadata/uid").and_then(Value::as_str).filter(|uid| !uid.is_empty())
            {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(Status::conflict(target.resource.group_resource(), &target.name, why));
            }
            check_name(target, &object)?;
            self.check_create(&options.user, target)?;
            match self.create_managed(target, object, Managers::Applied(managed), options).await {
                // Somebody else was faster.
                Err(status) if status.reason == "AlreadyExists" && there() => {}
                created => return created.map(|record| Written { record, created: true }),
            }
        }
        let record = self.change(target, &Change::Apply(applying), options).await?;
        Ok(Written { record, created: false })
    }

    async fn change(
        &self,
        target: &Target,
        change: &Change<'_>,
        options: &WriteOptions,
    ) -> Result<Arc<Record>, Status> {
        let resource = &target.resource;
        let mut tries = 0;
        loop {
            tries += 1;
            let record = self.get(target)?;
            let mut old = self.read(resource, &record).await?;
            let mut spec = if leaves_spec(target, change) { take_spec(&mut old) } else { None };
            let mut applied = None;
            let mut object = match change {
                Change::Put(object) => (*object).clone(),
                Change::Apply(applying) => {
                    let (mut object, managed) =
                        self.apply_to(target, Some((&old, &*record)), applying, options)?;
                    report_repeated(applying, options)?;
                    check_name(target, &object)?;
                    settle_namespace(&mut object, target)?;
                    applied = Some(managed);
                    object
                }
                Change::Patch(patch) => {
                    let mut before = old.clone();
                    if let Some(managed) = record.managed.as_ref().filter(|_| patch.touches_managed()) {
                        strategy::set_meta(&mut before, "managedFields", managed.to_json());
                    }
                    let mut patched = patch.apply(before, resource.group_kind())?;
                    // What is wrong with the patch itself is told even if its outcome is refused.
                    if options.field_validation == FieldValidation::Warn {
                        patch.unknown_fields().iter().for_each(|text| options.warnings.add(text.as_str()));
                    }
                    decode(&mut patched, resource)?;
                    check_name(target, &patched)?;
                    settle_namespace(&mut patched, target)?;
                    patched
                }
            };
            // A client that names a version means that version and no other.
            let pinned = check_version(resource, target, &object, &old, matches!(change, Change::Put(_)))?;
            let given = managed::take(&mut object);
            match change {
                Change::Put(_) => {
                    let unknown = settle_shape(resource, &mut object)?;
                    report_unknown(resource, options, &unknown)?;
                }
                Change::Apply(_) => {
                    settle_patched(resource, &mut object)?;
                }
                Change::Patch(patch) => {
                    // Only a refusal shows what the patch made.
                    let strict = options.field_validation == FieldValidation::Strict;
                    let patched = strict.then(|| patch.shown(&object));
                    let unknown = settle_patched(resource, &mut object)?;
                    report_unknown_in_patch(patch, patched, options, &unknown)?;
                }
            }
            let managed = match applied {
                Some(managed) => managed,
                None => self.managed_after(target, &record, &old, &object, given, options),
            };
            let hooks = self.admission(Operation::Update, resource, target.subresource.as_deref());
            // Hooks see whole objects.
            if let Some(spec) = spec.take_if(|_| !hooks.is_empty()) {
                put_spec(&mut object, spec.clone());
                put_spec(&mut old, spec);
            }

            let kind = if matches!(change, Change::Put(_)) { "UpdateOptions" } else { "PatchOptions" };
            let request = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
            let attributes = Attributes {
                server: self,
                operation: Operation::Update,
                resource,
                subresource: target.subresource.as_deref(),
                namespace: &target.namespace,
                name: &target.name,
                user: &options.user,
                dry_run: options.dry_run,
                options: &request,
                old: Some(&old),
                warnings: &options.warnings,
            };
            plugins::mutate(&attributes, &mut object)?;
            let mut changed = false;
            for hook in &hooks {
                changed |= hook.mutate(&attributes, &mut object).await?;
            }
            if changed {
                settle_shape(resource, &mut object)?;
            }
            self.check_escalation(&options.user, target, &object, Some(&old))?;
            self.finish(&mut object, &old, target, &options.warnings)?;
            for hook in &hooks {
                hook.validate(&attributes, Some(&object)).await?;
            }
            // Others may have stored services while the hooks were asked.
            if !hooks.is_empty() && target.subresource.is_none() {
                strategy::service::chosen::check(self, resource, &object, Some(&old))?;
            }
            match self.commit(target, &record, object, managed, &old, spec, options.dry_run).await? {
                Ok(record) => return Ok(record),
                Err(Refused::Moved) if !pinned && tries < PATCH_TRIES => {}
                Err(Refused::Moved) => return Err(Status::modified(resource.group_resource(), &target.name)),
                Err(Refused::Malformed(why)) => return Err(Status::bad_request(why)),
                Err(Refused::Absent | Refused::Exists) => return Err(target.not_found()),
            }
        }
    }

    /// Prepares and validates a changed object.
    fn finish(
        &self,
        object: &mut Value,
        old: &Value,
        target: &Target,
        warnings: &Warnings,
    ) -> Result<(), Status> {
        let resource = &target.resource;
        let subresource = target.subresource.as_deref();
        strategy::prepare_update(self, resource, subresource, object, old);
        if let Some(meta) = metadata(object) {
            // Field management is kept beside the object.
            meta.remove("managedFields");
            for key in ["labels", "annotations", "finalizers", "ownerReferences", "generateName"] {
                drop_empty(meta, key);
            }
        }
        if subresource.is_none() {
            strategy::service::chosen::check(self, resource, object, Some(old))?;
        }
        // The real server checks metadata for all kinds first, and once more with the rules of the kind.
        let mut errors = meta::validate_update(object, old);
        errors.extend_from_within(..);
        errors.extend(resource.rules.validate_update(resource, object, old, subresource));
        let errors = warnings.told(errors);
        if !errors.is_empty() {
            return Err(Status::invalid(resource.group_kind(), &target.name, errors));
        }
        if subresource.is_none() {
            let told = kinds::warnings(resource, object, Some(old));
            told.into_iter().for_each(|text| warnings.add(text));
        }
        Ok(())
    }

    /// Stores a changed object; or nothing, if nothing changed; or removes it, if this was the last thing its
    /// deletion waited for. `spec` is a part of both that was taken out.
    #[allow(clippy::too_many_arguments, reason = "what a write is made of, and nothing else")]
    pub(super) async fn commit(
        &self,
        target: &Target,
        record: &Arc<Record>,
        mut object: Value,
        managed: Option<Arc<Managed>>,
        old: &Value,
        spec: Option<Value>,
        dry_run: bool,
    ) -> Result<Result<Arc<Record>, Refused>, Status> {
        let resource = &target.resource;
        strategy::carry_meta(&mut object, old, "resourceVersion");
        // What is stored in another version is written anew even if nothing else changed: migrations rely on it.
        // A manager that changes nothing leaves no trace, not even its time.
        let same_managers = match (&managed, &record.managed) {
            (Some(new), Some(old)) => Arc::ptr_eq(new, old) || new.is_like(old),
            (new, old) => new.is_none() && old.is_none(),
        };
        if object == *old && same_managers && record.is_in(&resource.storage_api_version) {
            return Ok(Ok(record.clone()));
        }
        if let Some(spec) = spec {
            put_spec(&mut object, spec);
        }
        let ends = deletion_ends(resource, &object, old);
        let mut draft = self.draft(resource, object).await?;
        draft.managed = managed;
        if dry_run {
            return Ok(Record::encode(draft, None).map(Arc::new).map_err(Refused::Malformed));
        }
        let stored = if ends {
            let last = Record::encode(draft, None).map(Arc::new).map_err(Refused::Malformed);
            let gone = self.store().remove(&resource.table, &target.namespace, &target.name, record.rv);
            gone.and(last)
        } else {
            self.store().replace(&resource.table, draft, record.rv)
        };
        if stored.is_ok() {
            self.definitions_follow(resource, &target.name, ends).await;
        }
        Ok(stored)
    }
}

/// Whether the change is a patch of the status of a pod or a node that does not even name the spec. Such patches are
/// most of all writes; the spec, most of the object, then need not be patched and checked. Rules of other kinds may look
/// at both parts.
fn leaves_spec(target: &Target, change: &Change<'_>) -> bool {
    let status = target.subresource.as_deref() == Some("status");
    status
        && target.resource.group.is_empty()
        && matches!(target.resource.kind.as_ref(), "Pod" | "Node")
        && match change {
            Change::Patch(Patch::Merge(fields) | Patch::Strategic(fields)) => !fields.contains_key("spec"),
            _ => false,
        }
}

fn take_spec(object: &mut Value) -> Option<Value> {
    object.as_object_mut()?.remove("spec")
}

fn put_spec(object: &mut Value, spec: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert("spec".to_owned(), spec);
    }
}

/// Whether the change removes the last finalizer of an object whose grace period is over.
fn deletion_ends(resource: &Resource, object: &Value, old: &Value) -> bool {
    let list = |path: &str| at(object, path).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let deleting = at(old, "/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
    let grace = at(old, "/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let namespace = resource.group.is_empty() && resource.plural == "namespaces";
    deleting
        && !list("/metadata/finalizers")
        && grace.unwrap_or(0) == 0
        && !(namespace && list("/spec/finalizers"))
}

/// The name in the object and the name in the path must agree.
pub(super) fn check_name(target: &Target, object: &Value) -> Result<(), Status> {
    match at(object, "/metadata/name").and_then(Value::as_str).unwrap_or_default() {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name
        ))),
        name if name == target.name => Ok(()),
        name => Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        ))),
    }
}

/// Optimistic locking. Returns whether the client named a version.
fn check_version(
    resource: &Resource,
    target: &Target,
    object: &Value,
    old: &Value,
    put: bool,
) -> Result<bool, Status> {
    let text =
        |value: &Value, path: &str| at(value, path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (given, current) =
        (text(object, "/metadata/resourceVersion"), text(old, "/metadata/resourceVersion"));
    let (uid, old_uid) = (text(object, "/metadata/uid"), text(old, "/metadata/uid"));
    if put && !uid.is_empty() && uid != old_uid {
        let key = if target.namespace.is_empty() {
            format!("/registry/{}/{}", resource.plural, target.name)
        } else {
            format!("/registry/{}/{}/{}", resource.plural, target.namespace, target.name)
        };
        return Err(Status::conflict(
            resource.group_resource(),
            &target.name,
            format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: UID in precondition: {uid}, UID in object meta: {old_uid}"
            ),
        ));
    }
    if given.is_empty() || given == "0" {
        if !resource.unconditional_update {
            return Err(unversioned(resource, &target.name));
        }
        return Ok(false);
    }
    if given != current {
        if given.parse::<u64>().is_err() {
            let why = format!("strconv.ParseUint: parsing {}: invalid syntax", field::quote(&given));
            let error = field::Error::invalid("metadata.resourceVersion", given, why);
            return Err(Status::invalid(resource.group_kind(), &target.name, vec![error]));
        }
        return Err(Status::modified(resource.group_resource(), &target.name));
    }
    // A patch carries the current version along without meaning it.
    Ok(put)
}

/// The refusal of an update that must name a version.
fn unversioned(resource: &Resource, name: &str) -> Status {
    let error = field::Error::invalid("metadata.resourceVersion", 0, "must be specified for an update");
    // Here, and nowhere else, it names the resource and not the kind.
    Status::invalid(GroupKind::new(&resource.group, &resource.plural), name, vec![error])
}

/// Unknown and repeated fields: silence, warnings, or a refusal.
pub(super) fn report_unknown(
    resource: &Resource,
    options: &WriteOptions,
    paths: &[String],
) -> Result<(), Status> {
    if paths.is_empty() && options.duplicates.is_empty() {
        return Ok(());
    }
    let repeated = options.duplicates.iter().map(|path| format!("duplicate field {}", field::quote(path)));
    let texts: Vec<String> = repeated.chain(unknown_texts(paths)).collect();
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => texts.into_iter().for_each(|text| options.warnings.add(text)),
        FieldValidation::Strict => {
            return Err(Status::bad_request(format!(
                "{kind} in version \"{}\" cannot be handled as a {kind}: strict decoding error: {}",
                resource.version,
                texts.join(", "),
                kind = resource.kind,
            )));
        }
    }
    Ok(())
}

/// The same for a patch, where the refusal is about the patch.
fn report_unknown_in_patch(
    patch: &Patch,
    patched: Option<String>,
    options: &WriteOptions,
    paths: &[String],
) -> Result<(), Status> {
    let mut texts = patch.unknown_fields().to_vec();
    // The real server finds them in what the patch made, which it wrote down by sorted keys.
    let mut paths = paths.to_vec();
    paths.sort();
    texts.extend(unknown_texts(&paths));
    match patched {
        _ if texts.is_empty() || options.field_validation == FieldValidation::Ignore => {}
        None => texts.into_iter().for_each(|text| options.warnings.add(text)),
        Some(patched) => {
            return Err(undecodable(patched, &format!("strict decoding error: {}", texts.join(", "))));
        }
    }
    Ok(())
}

/// Keys that an applied object has twice.
fn report_repeated(applying: &Applying, options: &WriteOptions) -> Result<(), Status> {
    let Some(repeated) = &applying.repeated else { return Ok(()) };
    match options.field_validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => options.warnings.add(repeated.as_str()),
        FieldValidation::Strict => {
            return Err(Status::bad_request(format!("error strict decoding YAML: {repeated}")));
        }
    }
    Ok(())
}

fn unknown_texts(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("unknown field {}", field::quote(path))).collect()
}
