//! Deleting objects: grace periods, finalizers, preconditions and the marks for the garbage collector.

mod options;

use std::sync::Arc;

use serde_json::{Value, json};

use super::list::{ListOptions, Selection};
use super::{Target, WriteOptions, plugins, strategy};
use crate::admission::{Attributes, Operation};
use crate::clock::seconds_text;
use crate::crd;
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::{GroupResource, Status};
use crate::store::{Record, Refused};

pub use options::{DeleteOptions, Preconditions, Propagation};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// What a client hears that deletes a job without saying what becomes of its pods.
const PODS_STAY: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                         remove them or set propagationPolicy=Orphan to suppress this warning";
/// How often a delete is tried on the newest object.
const TRIES: usize = 20;

/// The outcome of a delete.
#[derive(Clone, Debug)]
pub enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Arc<Record>),
    /// The object is marked and goes later.
    Pending(Arc<Record>),
}

/// What the pass over the current object decided.
enum Step {
    /// Already on its way; nothing to do.
    Nothing,
    /// Store the marked object and leave it.
    Mark(Value),
    /// Store the marked object, then remove it.
    MarkAndRemove(Value),
    /// Remove it.
    Remove,
}

impl ApiServer {
    /// Deletes an object, or marks it so that it goes when its grace period and finalizers allow.
    pub async fn delete(
        &self,
        target: &Target,
        options: &DeleteOptions,
        write: &WriteOptions,
    ) -> Result<Deleted, Status> {
        plugins::namespace_lifecycle(self, target, Operation::Delete, &target.name)?;
        if target.resource.table.as_ref() == "batch/jobs"
            && options.propagation.is_none()
            && options.orphan_dependents.is_none()
        {
            write.warnings.add(PODS_STAY);
        }
        for _ in 0..TRIES {
            let record = self.get(target)?;
            check_preconditions(&target.resource, &record, options)?;
            let old = self.read(&target.resource, &record).await?;
            self.admit_delete(target, options, write, &old).await?;
            match self.delete_once(target, options, &record, old).await? {
                Ok(done) => {
                    if !options.dry_run {
                        let gone = matches!(done, Deleted::Gone(_));
                        self.definitions_follow(&target.resource, &target.name, gone).await;
                    }
                    return Ok(done);
                }
                Err(Refused::Moved) => {}
                Err(Refused::Malformed(why)) => return Err(Status::internal(why)),
                Err(Refused::Absent | Refused::Exists) => return Err(target.not_found()),
            }
        }
        Err(Status::modified(target.resource.group_resource(), &target.name))
    }

    /// Deletes an object from inside: nobody is asked. `target` is of the stored version.
    pub(crate) async fn purge(&self, target: &Target) {
        for _ in 0..TRIES {
            let Ok(record) = self.get(target) else { return };
            let done = self.delete_once(target, &DeleteOptions::default(), &record, record.value()).await;
            if !matches!(done, Ok(Err(Refused::Moved))) {
                return;
            }
        }
    }

    async fn admit_delete(
        &self,
        target: &Target,
        options: &DeleteOptions,
        write: &WriteOptions,
        old: &Value,
    ) -> Result<(), Status> {
        let hooks = self.admission(Operation::Delete, &target.resource, None);
        if hooks.is_empty() {
            return Ok(());
        }
        let request = options.to_value();
        let attributes = Attributes {
            server: self,
            operation: Operation::Delete,
            resource: &target.resource,
            subresource: None,
            namespace: &target.namespace,
            name: &target.name,
            user: &write.user,
            dry_run: options.dry_run,
            options: &request,
            old: Some(old),
            warnings: &write.warnings,
        };
        for hook in &hooks {
            hook.validate(&attributes, None).await?;
        }
        Ok(())
    }

    async fn delete_once(
        &self,
        target: &Target,
        options: &DeleteOptions,
        record: &Arc<Record>,
        old: Value,
    ) -> Result<Result<Deleted, Refused>, Status> {
        let resource = &target.resource;
        let store = self.store();
        let (object, remove) = match self.decide(resource, options, &old) {
            Step::Nothing => return Ok(Ok(Deleted::Pending(record.clone()))),
            Step::Remove if options.dry_run => return Ok(Ok(Deleted::Gone(record.clone()))),
            Step::Remove => {
                let gone = store.remove(&resource.table, &target.namespace, &target.name, record.rv);
                return Ok(gone.map(Deleted::Gone));
            }
            Step::Mark(object) => (object, false),
            Step::MarkAndRemove(object) => (object, true),
        };
        let mut draft = self.draft(resource, object).await?;
        draft.managed.clone_from(&record.managed);
        let outcome = match remove {
            _ if options.dry_run => Record::encode(draft, None).map(Arc::new).map_err(Refused::Malformed),
            true => store.replace_and_remove(&resource.table, draft, record.rv),
            false => store.replace(&resource.table, draft, record.rv),
        };
        Ok(outcome.map(if remove { Deleted::Gone } else { Deleted::Pending }))
    }

    fn decide(&self, resource: &Resource, options: &DeleteOptions, old: &Value) -> Step {
        let deleting = old.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
        let is = |kind: &str| resource.group.is_empty() && resource.kind == kind;
        if is("Namespace") {
            return self.decide_namespace(old, deleting);
        }
        if resource.table.as_ref() == crd::TABLE
            && let Some(marked) = crd::marked_for_deletion(old, &self.clock().now_text())
        {
            return Step::Mark(marked);
        }
        let grace = if is("Pod") { pod_grace(old, options, deleting) } else { Grace::None };
        let mut object = old.clone();
        let (graceful, seconds) = match grace {
            Grace::Pending => return Step::Nothing,
            Grace::None => (false, 0),
            Grace::Start(seconds) => (true, seconds),
            Grace::Shorten { from, to } => {
                let at =
                    old.pointer("/metadata/deletionTimestamp").and_then(Value::as_str).unwrap_or_default();
                let at: jiff::Timestamp = at.parse().unwrap_or_else(|_| self.clock().now());
                let at = at.checked_add(jiff::SignedDuration::from_secs(to - from)).unwrap_or(at);
                strategy::set_meta(&mut object, "deletionTimestamp", json!(seconds_text(at)));
                strategy::set_meta(&mut object, "deletionGracePeriodSeconds", json!(to));
                (true, to)
            }
        };
        let finalizers = collector_finalizers(resource, old, options);
        let changed = set_finalizers(&mut object, &finalizers);
        if !graceful {
            if finalizers.is_empty() {
                return Step::Remove;
            }
            if deleting && !changed {
                return Step::Nothing;
            }
            if !deleting {
                self.mark(&mut object, 0);
            }
            return Step::Mark(object);
        }
        if !deleting {
            self.mark(&mut object, seconds);
        }
        if !finalizers.is_empty() || seconds > 0 { Step::Mark(object) } else { Step::MarkAndRemove(object) }
    }

    /// A namespace is emptied first: by the namespace controller, which then removes its mark from the spec.
    fn decide_namespace(&self, old: &Value, deleting: bool) -> Step {
        let has =
            |path: &str| old.pointer(path).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if !deleting {
            let mut object = old.clone();
            let at = self.clock().now_text();
            strategy::set_meta(&mut object, "deletionTimestamp", json!(at));
            if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                status.insert("phase".to_owned(), json!("Terminating"));
            }
            return Step::Mark(object);
        }
        if has("/spec/finalizers") || has("/metadata/finalizers") { Step::Nothing } else { Step::Remove }
    }

    /// Sets the deletion marks; the spec's generation counts this as a change.
    fn mark(&self, object: &mut Value, seconds: i64) {
        let now = self.clock().now();
        let at = now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
        strategy::set_meta(object, "deletionTimestamp", json!(seconds_text(at)));
        strategy::set_meta(object, "deletionGracePeriodSeconds", json!(seconds));
        if let Some(generation) = object.pointer("/metadata/generation").and_then(Value::as_i64)
            && generation > 0
        {
            strategy::set_meta(object, "generation", json!(generation + 1));
        }
    }

    /// Deletes what a selection finds. Returns the objects as they were found.
    pub async fn delete_collection(
        &self,
        target: &Target,
        selection: &Selection,
        options: &DeleteOptions,
        write: &WriteOptions,
    ) -> Result<Vec<Arc<Record>>, Status> {
        let list = ListOptions { selection: selection.clone(), ..ListOptions::default() };
        let page = self.list(target, &list)?;
        for record in &page.records {
            let one = Target {
                name: record.name.to_string(),
                namespace: record.namespace.to_string(),
                ..target.clone()
            };
            match self.delete(&one, options, write).await {
                Ok(_) => {}
                // Someone else was faster.
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        Ok(page.records)
    }
}

/// What a pod's grace period means for this delete.
enum Grace {
    /// No grace period: remove, or wait for finalizers.
    None,
    /// Begin with so many seconds.
    Start(i64),
    /// Already begun; end earlier.
    Shorten { from: i64, to: i64 },
    /// Already begun, nothing to change.
    Pending,
}

fn pod_grace(pod: &Value, options: &DeleteOptions, deleting: bool) -> Grace {
    // A negative period means: as soon as possible, but not by force.
    let asked = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if deleting {
        let Some(from) = pod.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64) else {
            return Grace::None;
        };
        return match asked {
            Some(to) if to < from => Grace::Shorten { from, to },
            _ => Grace::Pending,
        };
    }
    let text = |path: &str| pod.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    let finished = matches!(text("/status/phase"), "Failed" | "Succeeded");
    let seconds = if text("/spec/nodeName").is_empty() || finished { 0 } else { asked.unwrap_or(own) };
    Grace::Start(if seconds < 0 { 1 } else { seconds })
}

/// The finalizers after the garbage collector's marks are set as the options say.
fn collector_finalizers(resource: &Resource, object: &Value, options: &DeleteOptions) -> Vec<String> {
    let existing: Vec<String> = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let has = |mark: &str| existing.iter().any(|name| name == mark);
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation) {
        (Some(orphan), _) => (orphan, false),
        (None, Some(Propagation::Orphan)) => (true, false),
        (None, Some(Propagation::Background)) => (false, false),
        (None, Some(Propagation::Foreground)) => (false, true),
        // Without a word, what the object already says holds, and then the habit of the kind.
        (None, None) => (has(ORPHAN) || (orphans_by_default(resource) && !has(FOREGROUND)), has(FOREGROUND)),
    };
    let mut names: Vec<String> =
        existing.iter().filter(|name| *name != ORPHAN && *name != FOREGROUND).cloned().collect();
    if orphan {
        names.push(ORPHAN.to_owned());
    }
    if foreground {
        names.push(FOREGROUND.to_owned());
    }
    names
}

/// The oldest kinds leave their pods behind where nobody says otherwise.
fn orphans_by_default(resource: &Resource) -> bool {
    matches!(resource.table.as_ref(), "batch/jobs" | "/replicationcontrollers")
}

fn set_finalizers(object: &mut Value, names: &[String]) -> bool {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return false };
    let before = meta.get("finalizers").cloned();
    if names.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".to_owned(), json!(names));
    }
    before != meta.get("finalizers").cloned()
}

fn check_preconditions(resource: &Resource, record: &Record, options: &DeleteOptions) -> Result<(), Status> {
    // The real server names the kind where a resource should be.
    let kind = GroupResource::new(&resource.group, &resource.kind);
    if let Some(uid) = &options.preconditions.uid
        && uid.as_str() != record.uid.as_ref()
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            record.uid
        );
        return Err(Status::conflict(kind, &record.name, why));
    }
    if let Some(version) = &options.preconditions.resource_version
        && *version != record.rv.to_string()
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            record.rv
        );
        return Err(Status::conflict(kind, &record.name, why));
    }
    Ok(())
}
