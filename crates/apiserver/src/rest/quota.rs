//! Quotas: how many objects of a kind a namespace may have.
//!
//! Objects are counted when one is created, so that a deletion or a higher limit counts at once. Only numbers of
//! objects are limited (`pods`, `count/…` and their like), not amounts of CPU, memory or storage.

use serde_json::Value;

use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::Status;
use kruise_api::kubernetes::quantity::Quantity;

/// Kinds that may be counted by their plain plural too.
const PLAIN: [&str; 7] = [
    "/pods",
    "/services",
    "/secrets",
    "/configmaps",
    "/resourcequotas",
    "/replicationcontrollers",
    "/persistentvolumeclaims",
];

/// Refuses an object that would be one too many.
pub(super) fn admit(
    server: &ApiServer,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), Status> {
    if !resource.namespaced {
        return Ok(());
    }
    let (_, quotas) = server.store().list("/resourcequotas", Some(namespace));
    for quota in quotas.iter().filter(|quota| !quota.deleting) {
        let value = quota.value();
        let Some(hard) = value.pointer("/spec/hard").and_then(Value::as_object) else { continue };
        for (key, limit) in hard.iter().filter(|(key, _)| counts(key, resource)) {
            let Ok(limit) = Quantity::from_json(limit) else { continue };
            let used = in_use(server, resource, namespace);
            if used + 1 > limit.value() {
                let why = format!(
                    "exceeded quota: {}, requested: {key}=1, used: {key}={used}, limited: {key}={}",
                    quota.name,
                    limit.value()
                );
                return Err(Status::forbidden(resource.group_resource(), name, why));
            }
        }
    }
    Ok(())
}

/// Whether a limit is about this kind.
fn counts(key: &str, resource: &Resource) -> bool {
    let plain = PLAIN.contains(&resource.table.as_ref()) && *key == *resource.plural;
    let full = if resource.group.is_empty() {
        format!("count/{}", resource.plural)
    } else {
        format!("count/{}.{}", resource.plural, resource.group)
    };
    plain || key == full
}

/// Pods that have ended do not count.
fn in_use(server: &ApiServer, resource: &Resource, namespace: &str) -> i128 {
    let (_, records) = server.store().list(&resource.table, Some(namespace));
    let has_ended = |object: &Value| {
        let phase = object.pointer("/status/phase").and_then(Value::as_str);
        resource.table.as_ref() == "/pods" && matches!(phase, Some("Failed" | "Succeeded"))
    };
    records.iter().filter(|record| !has_ended(&record.value())).fold(0, |count, _| count + 1)
}
