//! Fills cluster roles that are made of others.

use serde_json::Value;

use super::{Context, Outcome};
use crate::access;
use crate::patch::Patch;

/// Looks at all cluster roles at once: there are few, and each may be part of any other.
pub(super) async fn sync(cx: &Context) -> Outcome {
    let roles = cx.client.resource("rbac.authorization.k8s.io", "clusterroles")?;
    let (_, records) = cx.client.server().store().list(&roles.table, None);
    let all: Vec<Value> = records.iter().map(|record| record.value()).collect();
    for role in &all {
        let Some(rules) = access::gathered(role, &all) else { continue };
        let (Some(Value::Object(change)), Some(name)) =
            (access::changed(role, rules), role.pointer("/metadata/name").and_then(Value::as_str))
        else {
            continue;
        };
        match cx.client.patch(&roles, "", name, None, &Patch::Merge(change)).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    Ok(None)
}
