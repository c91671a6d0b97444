//! The label of the manager's own namespace.
//!
//! Webhooks for pods skip namespaces with this label. Without it the manager's own pods wait for its own webhooks, and
//! when all of them are down, none can start. Ours are also exempt by name, but configurations made by older charts are
//! not, so somebody should know.

use kruise_api::labels::{CONTROL_PLANE, CONTROL_PLANE_VALUE};
use kruise_core::{
    effect::{Event, Level},
    object::{NAMESPACE, ObjectKey, ObjectRef},
    text::Text,
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};

use crate::shared::Shared;

/// Looks at the namespace once, and warns in the log and with an event where the label is missing.
pub async fn check(shared: &Shared) {
    let name = &shared.settings.environment.namespace;
    let kind = GroupVersionKind::gvk(NAMESPACE.group, NAMESPACE.version, NAMESPACE.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, NAMESPACE.plural);
    let api: Api<DynamicObject> = Api::all_with(shared.client.clone(), &resource);
    let namespace = match api.get(name).await {
        Ok(namespace) => namespace,
        Err(error) => {
            tracing::warn!(namespace = %name, %error, "failed to look at the manager's own namespace");
            return;
        }
    };
    let (key, value) = (CONTROL_PLANE, CONTROL_PLANE_VALUE);
    let labels = namespace.metadata.labels.unwrap_or_default();
    if labels.get(key).is_some_and(|found| found == value) {
        return;
    }
    let message = format!(
        "namespace {name} lacks the label {key}={value}: webhooks may stop the manager's own pods from starting; \
         run `kubectl label namespace {name} {key}={value}`"
    );
    tracing::warn!(namespace = %name, "{message}");
    let uid = Text::from(namespace.metadata.uid.unwrap_or_default());
    let regarding = ObjectRef { resource: NAMESPACE, key: ObjectKey::cluster(name.as_str()), uid };
    shared.events.recorder("kruise-manager").record(Event {
        regarding,
        level: Level::Warning,
        reason: "MissingNamespaceLabel".into(),
        message,
    });
}
