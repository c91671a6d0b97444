//! Subresources that are more than a view of their object: scale, binding, eviction and log.

mod binding;
mod eviction;
mod scale;

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use serde_json::Value;

use super::update::Change;
use super::{Query, Target, WriteOptions};
use crate::admission::{Attributes, Operation};
use crate::apply::Managed;
use crate::patch::Patch;
use crate::server::{ApiServer, LogRequest};
use crate::status::Status;
use crate::store::{Record, Refused};

/// How often an internal write is tried on the newest object.
const TRIES: usize = 20;

/// What a subresource answers with.
pub(crate) enum Answer {
    /// The object itself.
    Record(Arc<Record>),
    /// Another kind of object.
    Value(Value),
    /// A plain success.
    Success,
    /// Text that may go on.
    Text(BoxStream<'static, Bytes>),
}

impl ApiServer {
    /// Reads a subresource.
    pub(crate) async fn get_sub(&self, target: &Target, query: &Query) -> Result<Answer, Status> {
        let record = self.get(target)?;
        match target.subresource.as_deref() {
            Some("scale") => {
                let object = self.read(&target.resource, &record).await?;
                Ok(Answer::Value(scale::of(&target.resource, &object)?))
            }
            Some("log") => self.log(&record, query).await,
            _ => Ok(Answer::Record(record)),
        }
    }

    /// Writes a subresource: PUT.
    pub(crate) async fn put_sub(
        &self,
        target: &Target,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        match target.subresource.as_deref() {
            Some("scale") => {
                self.change_scale(target, &Change::Put(&object), options).await.map(Answer::Value)
            }
            _ => self.update(target, object, options).await.map(|written| Answer::Record(written.record)),
        }
    }

    /// Writes a subresource: PATCH.
    pub(crate) async fn patch_sub(
        &self,
        target: &Target,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        match target.subresource.as_deref() {
            Some("scale") => {
                let change = match patch {
                    Patch::Apply(applying) => Change::Apply(applying),
                    _ => Change::Patch(patch),
                };
                self.change_scale(target, &change, options).await.map(Answer::Value)
            }
            _ => self.patch(target, patch, options).await.map(Answer::Record),
        }
    }

    /// Writes a subresource: POST.
    pub(crate) async fn post_sub(
        &self,
        target: &Target,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        match target.subresource.as_deref() {
            Some("binding") => self.bind(target, object, options).await.map(|()| Answer::Success),
            Some("token") => self.request_token(target, object, options).map(Answer::Value),
            Some("eviction") => self.evict(target, object, options).await.map(|()| Answer::Success),
            _ => Err(Status::http_method_not_allowed()),
        }
    }

    async fn log(&self, record: &Record, query: &Query) -> Result<Answer, Status> {
        check_container(&record.value(), query.text("container"))?;
        let Some(source) = self.log_source() else {
            return Err(Status::not_implemented("logs of pods without nodes that keep them"));
        };
        let positive = |name: &str| -> Result<Option<u64>, Status> {
            Ok(query.number(name)?.and_then(|number| u64::try_from(number).ok()))
        };
        let since = query.text("sinceTime");
        let request = LogRequest {
            container: query.text("container").to_owned(),
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            tail_lines: positive("tailLines")?,
            since_seconds: positive("sinceSeconds")?,
            since_time: (!since.is_empty()).then(|| since.to_owned()),
            limit_bytes: positive("limitBytes")?,
        };
        source.log(record, &request).await.map(Answer::Text)
    }

    /// Runs the hooks over what was posted to a subresource. `check` looks at what they made of it, before any of them
    /// may refuse it.
    async fn admit_sub(
        &self,
        target: &Target,
        operation: Operation,
        object: &mut Value,
        old: Option<&Value>,
        check: fn(&Value) -> Result<(), Status>,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        let hooks = self.admission(operation, &target.resource, target.subresource.as_deref());
        if hooks.is_empty() {
            return Ok(());
        }
        let kind = if operation == Operation::Create { "CreateOptions" } else { "UpdateOptions" };
        let request = serde_json::json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        let attributes = Attributes {
            server: self,
            operation,
            resource: &target.resource,
            subresource: target.subresource.as_deref(),
            namespace: &target.namespace,
            name: &target.name,
            user: &options.user,
            dry_run: options.dry_run,
            options: &request,
            old,
            warnings: &options.warnings,
        };
        for hook in &hooks {
            hook.mutate(&attributes, object).await?;
        }
        check(object)?;
        for hook in &hooks {
            hook.validate(&attributes, Some(object)).await?;
        }
        Ok(())
    }

    /// Changes an object from inside, without admission and validation, on its newest version. `change` also says who
    /// manages its fields then.
    pub(super) async fn rewrite(
        &self,
        target: &Target,
        dry_run: bool,
        mut change: impl FnMut(&mut Value, &Record) -> Result<Option<Arc<Managed>>, Status>,
    ) -> Result<Arc<Record>, Status> {
        for _ in 0..TRIES {
            let record = self.get(target)?;
            let old = self.read(&target.resource, &record).await?;
            let mut object = old.clone();
            let managed = change(&mut object, &record)?;
            match self.commit(target, &record, object, managed, &old, None, dry_run).await? {
                Ok(record) => return Ok(record),
                Err(Refused::Moved) => {}
                Err(Refused::Malformed(why)) => return Err(Status::internal(why)),
                Err(Refused::Absent | Refused::Exists) => return Err(target.not_found()),
            }
        }
        Err(Status::modified(target.resource.group_resource(), &target.name))
    }
}

/// A pod with several containers has no log of its own, and a container that it does not have has none either.
pub(crate) fn check_container(pod: &Value, container: &str) -> Result<(), Status> {
    let names = |list: &str| -> Vec<&str> {
        let list = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|one| one.get("name")?.as_str()).collect()
    };
    let (main, init, extra) = (names("containers"), names("initContainers"), names("ephemeralContainers"));
    let name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if container.is_empty() {
        let several = main.len() > 1;
        let mut message =
            format!("a container name must be specified for pod {name}, choose one of: [{}]", main.join(" "));
        if !init.is_empty() {
            message.push_str(&format!(" or one of the init containers: [{}]", init.join(" ")));
        }
        if !extra.is_empty() {
            message.push_str(&format!(" or one of the ephemeral containers: [{}]", extra.join(" ")));
        }
        return if several { Err(Status::bad_request(message)) } else { Ok(()) };
    }
    if [main, init, extra].iter().any(|names| names.contains(&container)) {
        return Ok(());
    }
    Err(Status::bad_request(format!("container {container} is not valid for pod {name}")))
}

/// Sets a condition in `status.conditions`; its time changes only when its status does.
pub(crate) fn set_condition(object: &mut Value, mut condition: Value) {
    let Some(map) = object.as_object_mut() else { return };
    let status = map.entry("status").or_insert_with(|| serde_json::json!({}));
    let Some(status) = status.as_object_mut() else { return };
    let list = status.entry("conditions").or_insert_with(|| serde_json::json!([]));
    let Some(list) = list.as_array_mut() else { return };
    let same = |known: &Value| known.get("type") == condition.get("type");
    match list.iter().position(same).and_then(|at| list.get_mut(at)) {
        Some(known) => {
            if known.get("status") == condition.get("status")
                && let (Some(time), Some(map)) =
                    (known.get("lastTransitionTime").cloned(), condition.as_object_mut())
            {
                map.insert("lastTransitionTime".to_owned(), time);
            }
            *known = condition;
        }
        None => list.push(condition),
    }
}
