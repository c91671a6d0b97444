//! Creating objects.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::decode::{metadata, settle_namespace, settle_shape};
use super::update::report_unknown;
use super::{Target, WriteOptions, limits, managed, meta, plugins, quota, strategy};
use crate::admission::{Attributes, Operation};
use crate::apply::Managed;
use crate::kinds;
use crate::server::ApiServer;
use crate::status::Status;
use crate::store::{Record, Refused};

/// How often a taken generated name is drawn again.
const NAME_TRIES: usize = 8;

/// Who manages a new object.
pub(super) enum Managers {
    /// Whoever creates it.
    Creator,
    /// It was applied; perhaps nothing of it belongs to anybody.
    Applied(Option<Arc<Managed>>),
}

impl ApiServer {
    /// Creates an object. `object` must be of the target's kind; its name may be in the object only.
    pub async fn create(
        &self,
        target: &Target,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Record>, Status> {
        self.create_managed(target, object, Managers::Creator, options).await
    }

    /// The same for an object whose managers may be known.
    pub(super) async fn create_managed(
        &self,
        target: &Target,
        mut object: Value,
        managers: Managers,
        options: &WriteOptions,
    ) -> Result<Arc<Record>, Status> {
        let resource = &target.resource;
        resource.rules.takes_new(resource, &text(&object, "name"))?;
        settle_namespace(&mut object, target)?;
        if !matches!(text(&object, "resourceVersion").as_str(), "" | "0") {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Status::failure(500, "", why));
        }
        let given = managed::take(&mut object);
        clear_system_fields(&mut object);
        let unknown = settle_shape(resource, &mut object)?;
        report_unknown(resource, options, &unknown)?;
        let managed = match managers {
            Managers::Creator => self.managed_new(target, &object, given, options),
            Managers::Applied(managed) => managed,
        };

        let name = text(&object, "name");
        plugins::namespace_lifecycle(self, target, Operation::Create, &name)?;
        let request = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"});
        let attributes = Attributes {
            server: self,
            operation: Operation::Create,
            resource,
            subresource: None,
            namespace: &target.namespace,
            name: &name,
            user: &options.user,
            dry_run: options.dry_run,
            options: &request,
            old: None,
            warnings: &options.warnings,
        };
        plugins::mutate(&attributes, &mut object)?;
        let hooks = self.admission(Operation::Create, resource, None);
        let mut changed = false;
        for hook in &hooks {
            changed |= hook.mutate(&attributes, &mut object).await?;
        }
        if changed {
            settle_shape(resource, &mut object)?;
        }
        self.check_escalation(&options.user, target, &object, None)?;

        let generate = text(&object, "generateName");
        let generated = text(&object, "name").is_empty() && !generate.is_empty();
        // A generated name that is taken is drawn again.
        for tries in 1.. {
            self.fill_system_fields(&mut object, if generated { Some(&generate) } else { None });
            let taken =
                || self.store().get(&resource.table, &target.namespace, &text(&object, "name")).is_some();
            if !generated || tries >= NAME_TRIES || !taken() {
                break;
            }
        }
        strategy::prepare_create(self, resource, &mut object);
        let name = text(&object, "name");
        // As in the real server, what is to be given out is looked at before the rest of the object.
        strategy::service::chosen::check(self, resource, &object, None)?;
        let mut errors = meta::validate(resource, &object);
        errors.extend(resource.rules.validate_create(resource, &object));
        if !errors.is_empty() {
            return Err(Status::invalid(resource.group_kind(), &name, errors));
        }
        kinds::warnings(resource, &object, None).into_iter().for_each(|text| options.warnings.add(text));
        let named = Attributes { name: &name, ..attributes_of(&attributes) };
        for hook in &hooks {
            hook.validate(&named, Some(&object)).await?;
        }
        limits::check(self, resource, &target.namespace, &name, &object)?;
        // Right before storing. What another thread stores at this moment is not counted.
        if !hooks.is_empty() {
            strategy::service::chosen::check(self, resource, &object, None)?;
        }
        quota::admit(self, resource, &target.namespace, &name, &object)?;
        let mut draft = self.draft(resource, object).await?;
        draft.managed = managed;
        let stored = if options.dry_run {
            match self.store().get(&resource.table, &target.namespace, &name) {
                Some(_) => Err(Refused::Exists),
                None => Record::encode(draft, None).map(Arc::new).map_err(Refused::Malformed),
            }
        } else {
            self.store().create(&resource.table, draft)
        };
        match stored {
            Ok(record) => {
                if !options.dry_run {
                    self.definitions_follow(resource, &name, false).await;
                }
                if resource.table.as_ref() == "/namespaces" && !options.dry_run {
                    self.furnish(&record.name).await?;
                }
                Ok(record)
            }
            Err(Refused::Exists) if generated => {
                Err(Status::generate_name_conflict(resource.group_resource(), &name, 1))
            }
            Err(Refused::Malformed(why)) => Err(Status::bad_request(why)),
            Err(_) => Err(Status::already_exists(resource.group_resource(), &name)),
        }
    }

    /// What controllers of a real cluster put into every new namespace: here, the default service account.
    async fn furnish(&self, namespace: &str) -> Result<(), Status> {
        let Some(accounts) = self.registry().find("", "v1", "serviceaccounts") else { return Ok(()) };
        let account = json!({
            "kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"},
        });
        let target = Target::object(&accounts, namespace, "");
        let manager = "kube-controller-manager".to_owned();
        let options = WriteOptions { field_manager: manager, ..WriteOptions::default() };
        match Box::pin(self.create(&target, account, &options)).await {
            // The controller that keeps it may be faster, where there are several threads.
            Err(status) if status.code != 409 => Err(status),
            _ => Ok(()),
        }
    }

    /// Gives a new object its uid, its time and, where asked, its name.
    fn fill_system_fields(&self, object: &mut Value, generate: Option<&str>) {
        let now = self.clock().now_text();
        let (uid, name) = self.random(|random| (random.uid(), generate.map(|base| random.name(base))));
        let Some(meta) = metadata(object) else { return };
        meta.insert("uid".to_owned(), Value::String(uid));
        meta.insert("creationTimestamp".to_owned(), Value::String(now));
        if let Some(name) = name {
            meta.insert("name".to_owned(), Value::String(name));
        }
    }
}

/// Removes what only the server may set.
fn clear_system_fields(object: &mut Value) {
    let Some(meta) = metadata(object) else { return };
    for key in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        meta.remove(key);
    }
    drop_empty(meta, "labels");
    drop_empty(meta, "annotations");
}

/// Typed metadata does not write empty maps and lists.
pub(super) fn drop_empty(meta: &mut Map<String, Value>, key: &str) {
    let empty = match meta.get(key) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Null) => true,
        _ => false,
    };
    if empty {
        meta.remove(key);
    }
}

fn text(object: &Value, key: &str) -> String {
    object.get("metadata").and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn attributes_of<'a>(attributes: &Attributes<'a>) -> Attributes<'a> {
    Attributes { ..*attributes }
}
