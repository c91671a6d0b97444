//! Quotas: how many objects of a kind a namespace may have, and how much its pods and claims may ask for.
//!
//! Usage is counted when something is created, so that a deletion or a higher limit counts at once; a controller writes
//! it into the status for people.

mod usage;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::Status;
use kruise_api::kubernetes::quantity::Quantity;

/// Refuses an object that would be too much.
pub(super) fn admit(
    server: &ApiServer,
    resource: &Resource,
    namespace: &str,
    name: &str,
    object: &Value,
) -> Result<(), Status> {
    if !resource.namespaced {
        return Ok(());
    }
    let (_, quotas) = server.store().list("/resourcequotas", Some(namespace));
    for quota in quotas.iter().filter(|quota| !quota.deleting) {
        let value = quota.value();
        if !usage::covers(&value, &resource.table, object) {
            continue;
        }
        let Some(hard) = value.pointer("/spec/hard").and_then(Value::as_object) else { continue };
        let refuse = |why: String| Err(Status::forbidden(resource.group_resource(), name, why));
        if let Some(missing) = usage::missing(hard, &resource.table, object) {
            return refuse(format!("failed quota: {}: must specify {missing}", quota.name));
        }
        let over = exceeded(server, namespace, &value, hard, (&resource.table, object));
        if !over.is_empty() {
            let list = |pick: fn(&Over) -> &Quantity| {
                over.iter().map(|(key, one)| format!("{key}={}", pick(one))).collect::<Vec<_>>().join(",")
            };
            return refuse(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                quota.name,
                list(|one| &one.requested),
                list(|one| &one.used),
                list(|one| &one.limit)
            ));
        }
    }
    Ok(())
}

/// One limit that would be passed.
struct Over {
    requested: Quantity,
    used: Quantity,
    limit: Quantity,
}

fn exceeded(
    server: &ApiServer,
    namespace: &str,
    quota: &Value,
    hard: &Map<String, Value>,
    (table, object): (&str, &Value),
) -> BTreeMap<String, Over> {
    let mut over = BTreeMap::new();
    for (key, limit) in hard {
        let Some(requested) = usage::amount(key, table, object).filter(|amount| !amount.is_zero()) else {
            continue;
        };
        let Ok(limit) = Quantity::from_json(limit) else { continue };
        let used = in_use(server, namespace, quota, key);
        if used.plus(&requested) > limit {
            over.insert(key.clone(), Over { requested, used, limit });
        }
    }
    over
}

/// What the objects of a namespace use of one limit of a quota.
fn in_use(server: &ApiServer, namespace: &str, quota: &Value, key: &str) -> Quantity {
    let Some(table) = usage::table(key) else { return Quantity::from_integer(0) };
    let (_, records) = server.store().list(&table, Some(namespace));
    let amounts = records.iter().map(|record| record.value()).filter_map(|object| {
        if !usage::covers(quota, &table, &object) {
            return None;
        }
        usage::amount(key, &table, &object)
    });
    amounts.reduce(|sum, one| sum.plus(&one)).unwrap_or_else(|| Quantity::from_integer(0))
}

/// The status of a quota: its limits, and what is used of them.
pub(crate) fn status(server: &ApiServer, namespace: &str, quota: &Value) -> Value {
    let hard = quota.pointer("/spec/hard").and_then(Value::as_object).cloned().unwrap_or_default();
    let used: Map<String, Value> = hard
        .keys()
        .map(|key| (key.clone(), Value::String(in_use(server, namespace, quota, key).to_string())))
        .collect();
    serde_json::json!({"hard": hard, "used": used})
}
