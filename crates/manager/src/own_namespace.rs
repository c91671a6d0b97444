//! The label of the manager's own namespace.
//!
//! Webhooks for pods skip namespaces with this label. Without it the manager's own pods wait for its own webhooks, and
//! when all of them are down, none can start. Ours are also exempt by name, but configurations made by older charts are
//! not, so somebody should know.

use kruise_api::labels::{CONTROL_PLANE, CONTROL_PLANE_VALUE};
use kruise_core::{
    effect::{Event, Level},
    object::{NAMESPACE, ObjectKey, ObjectRef},
};
use kruise_runtime::{cache::Plain, live};

use crate::shared::Shared;

/// Looks at the namespace once, and warns in the log and with an event where the label is missing.
pub async fn check(shared: &Shared) {
    let name = &shared.settings.environment.namespace;
    let found = live::get::<Plain>(&shared.client, NAMESPACE, &ObjectKey::cluster(name.as_str())).await;
    let namespace = match found {
        Ok(Some(namespace)) => namespace,
        Ok(None) => {
            tracing::warn!(namespace = %name, "the manager's own namespace does not exist");
            return;
        }
        Err(error) => {
            tracing::warn!(namespace = %name, %error, "failed to look at the manager's own namespace");
            return;
        }
    };
    let (key, value) = (CONTROL_PLANE, CONTROL_PLANE_VALUE);
    if namespace.metadata.labels.text(key) == Some(value) {
        return;
    }
    let message = format!(
        "namespace {name} lacks the label {key}={value}: webhooks may stop the manager's own pods from starting; \
         run `kubectl label namespace {name} {key}={value}`"
    );
    tracing::warn!(namespace = %name, "{message}");
    let uid = namespace.metadata.uid;
    let regarding = ObjectRef { resource: NAMESPACE, key: ObjectKey::cluster(name.as_str()), uid };
    shared.events.recorder("kruise-manager").record(Event {
        regarding,
        level: Level::Warning,
        reason: "MissingNamespaceLabel".into(),
        message,
    });
}
