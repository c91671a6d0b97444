//! CustomResourceDefinitions at work: from an object in the store to resources that are served.
//!
//! A real server has controllers for this, which take a moment. Here everything happens inside the write itself:
//! when the create of a definition is answered, its names are decided, its conditions are written (as a second
//! version of the object) and its resources are served. The deletion of a definition likewise deletes all
//! instances at once; it waits only for finalizers that others put on them.

mod convert;
mod custom;
mod names;
mod resource;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

pub(crate) use rules::Definitions as DefinitionRules;

use crate::apply::{self, Managed, Manager, Operation, Reset, Write};
use crate::registry::{Resource, fields};
use crate::rest::{Target, kept, set_condition};
use crate::server::ApiServer;
use crate::store::{Draft, Record, Refused};

/// The table of the definitions.
pub(crate) const TABLE: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// What keeps a definition while its instances are deleted.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// How often a definition's status is tried on its newest version.
const TRIES: usize = 20;

/// The definitions that are served now.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// By the definition's name.
    known: Mutex<BTreeMap<String, resource::Definition>>,
    /// Those that wait for names or for their end, and have to be looked at whenever something changes.
    waiting: Mutex<BTreeSet<String>>,
    /// One change at a time, so that the newest definition is the one that is served.
    turn: tokio::sync::Mutex<()>,
}

impl ApiServer {
    /// Called after every write, to follow what it means for definitions: a definition came or changed, or an
    /// instance went whose definition waits for it.
    pub(crate) async fn definitions_follow(&self, resource: &Resource, name: &str, gone: bool) {
        let name = if resource.table.as_ref() == TABLE {
            name.to_owned()
        } else if resource.custom && gone {
            format!("{}.{}", resource.plural, resource.group)
        } else {
            return;
        };
        if resource.custom && !self.store().get(TABLE, "", &name).is_some_and(|record| record.deleting) {
            return;
        }
        let _turn = self.definitions().turn.lock().await;
        self.unserve_removed();
        self.settle(&name).await;
        loop {
            let waiting = self.definitions().waiting.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut left = false;
            for name in &waiting {
                left |= self.settle(name).await;
            }
            if !left {
                return;
            }
            // The names of the one that left are free for those that were settled before it.
        }
    }

    /// Serves the definitions that the store begins with. Those that wait for something are looked at again with
    /// the next change.
    pub(crate) fn serve_restored(&self) {
        let (_, records) = self.store().list(TABLE, None);
        for record in records {
            let object = record.value();
            if record.deleting || !names::is_true(&object, "NamesAccepted") {
                let mut waiting = self.definitions().waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.insert(record.name.to_string());
            }
            if names::is_true(&object, "Established") {
                self.serve(&object);
            }
        }
    }

    /// Stops serving definitions that are no longer there (or are others under the same name).
    fn unserve_removed(&self) {
        let mut known = self.definitions().known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|name, definition| {
            let stays =
                self.store().get(TABLE, "", name).is_some_and(|record| *record.uid == *definition.uid);
            if !stays {
                definition.unserve(self.registry());
                self.store().end(&definition.stored.table);
            }
            stays
        });
    }

    /// Brings one definition to where it belongs: names, conditions, resources, and its end. Returns whether that
    /// was its end.
    async fn settle(&self, name: &str) -> bool {
        let now = self.clock().now_text();
        let written = self.rewrite_definition(name, |definition, server| {
            let others = server.other_names(definition);
            names::decide(definition, &others, &now);
        });
        let object = written.as_ref().map(|record| record.value()).unwrap_or_default();
        let waits = written
            .as_ref()
            .is_some_and(|record| record.deleting || !names::is_true(&object, "NamesAccepted"));
        {
            let mut waiting = self.definitions().waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waits {
                waiting.insert(name.to_owned());
            } else {
                waiting.remove(name);
            }
        }
        let Some(record) = written else { return false };
        if names::is_true(&object, "Established") {
            self.serve(&object);
        }
        record.deleting && has_cleanup(&object) && self.clean_up(name).await
    }

    fn serve(&self, object: &Value) {
        let mut known = self.definitions().known.lock().unwrap_or_else(PoisonError::into_inner);
        let name = text(object, "/metadata/name").to_owned();
        let before = known.get(&name);
        if before.is_some_and(|before| before.is_of(object)) {
            return;
        }
        let dispatcher = self.webhooks().dispatcher().clone();
        let definition = resource::Definition::new(object, before, self.store().version(), dispatcher);
        if let Some(before) = before {
            definition.replace(before, self.registry());
        } else {
            definition.serve(self.registry());
        }
        known.insert(name, definition);
    }

    /// Deletes all instances, then the definition. Returns whether it is gone.
    async fn clean_up(&self, name: &str) -> bool {
        let now = self.clock().now_text();
        let condition = |status: &str, reason: &str, message: &str| {
            json!({
                "type": "Terminating", "status": status, "reason": reason, "message": message,
                "lastTransitionTime": now,
            })
        };
        let running =
            condition("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress");
        if self.rewrite_definition(name, |object, _| set_condition(object, running.clone())).is_none() {
            return false;
        }
        let stored = {
            let known = self.definitions().known.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(name).map(|definition| definition.stored.clone())
        };
        if let Some(stored) = stored {
            let (_, records) = self.store().list(&stored.table, None);
            for record in records {
                self.purge(&Target::object(&stored, &record.namespace, &record.name)).await;
            }
            let (_, left) = self.store().list(&stored.table, None);
            if !left.is_empty() {
                return false;
            }
        }
        let done = condition("False", "InstanceDeletionCompleted", "removed all instances");
        let last = self.rewrite_definition(name, |object, _| {
            set_condition(object, done.clone());
            if let Some(list) = object.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut) {
                list.retain(|finalizer| finalizer != CLEANUP);
            }
        });
        let gone = last.is_some_and(|last| {
            !has_finalizers(&last.value()) && self.store().remove(TABLE, "", name, last.rv).is_ok()
        });
        if gone {
            self.unserve_removed();
        }
        gone
    }

    /// The names that other definitions of the same group hold.
    fn other_names(&self, definition: &Value) -> names::Taken {
        let (own, group) = (text(definition, "/metadata/name"), text(definition, "/spec/group"));
        let is_other =
            |name: &str| name != own && name.split_once('.').is_some_and(|(_, found)| found == group);
        let mut taken = names::Taken::default();
        let known = self.definitions().known.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, other) in known.iter().filter(|(name, _)| is_other(name)) {
            taken.add(other.accepted_names());
        }
        // Those that are not served may hold some of their names.
        let waiting = self.definitions().waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for name in waiting.iter().filter(|name| is_other(name) && !known.contains_key(*name)) {
            if let Some(record) = self.store().get(TABLE, "", name)
                && let Some(names) = record.value().pointer("/status/acceptedNames")
            {
                taken.add(names);
            }
        }
        taken
    }

    /// Changes a definition from inside. Returns its newest version; `None` if it is gone.
    fn rewrite_definition(
        &self,
        name: &str,
        mut change: impl FnMut(&mut Value, &Self),
    ) -> Option<Arc<Record>> {
        let resource = self.registry().find("apiextensions.k8s.io", "v1", "customresourcedefinitions")?;
        for _ in 0..TRIES {
            let record = self.store().get(TABLE, "", name)?;
            let old = record.value();
            let mut object = old.clone();
            change(&mut object, self);
            if object == old {
                return Some(record);
            }
            let fields = fields::of(&resource, &object);
            let managed =
                managed_by_server(&resource, &record, &old, &object, self.clock().now().as_second());
            match self.store().replace(TABLE, Draft { value: object, fields, managed }, record.rv) {
                Ok(record) => return Some(record),
                Err(Refused::Moved) => {}
                Err(_) => return None,
            }
        }
        self.store().get(TABLE, "", name)
    }
}

/// Who manages a definition after the server itself wrote its status.
fn managed_by_server(
    resource: &Resource,
    record: &Record,
    old: &Value,
    new: &Value,
    now: i64,
) -> Option<Arc<Managed>> {
    let managed = record.managed.as_ref()?;
    let manager = Manager {
        name: "kube-apiserver".into(),
        operation: Operation::Update,
        api_version: resource.api_version().into(),
        subresource: "status".into(),
    };
    let kind = resource.rules.typed(resource);
    let reset = Reset::Except(&[&["spec"], &["metadata"]]);
    kept(&apply::update(kind, old, new, managed, &Write { manager, now }, reset))
}

/// The marks of a deletion on a definition: it stays until its instances are gone. `None` when it has them.
pub(crate) fn marked_for_deletion(definition: &Value, now: &str) -> Option<Value> {
    if definition.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null()) {
        return None;
    }
    let mut object = definition.clone();
    let meta = object.get_mut("metadata")?.as_object_mut()?;
    meta.insert("deletionTimestamp".to_owned(), json!(now));
    let finalizers = meta.entry("finalizers").or_insert_with(|| json!([])).as_array_mut()?;
    if !finalizers.iter().any(|known| known == CLEANUP) {
        finalizers.push(json!(CLEANUP));
    }
    set_condition(
        &mut object,
        json!({
            "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            "lastTransitionTime": now,
        }),
    );
    Some(object)
}

fn has_finalizers(object: &Value) -> bool {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

fn has_cleanup(object: &Value) -> bool {
    let list = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    list.into_iter().flatten().any(|finalizer| finalizer == CLEANUP)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
