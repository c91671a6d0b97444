//! ResourceQuotas: their status tells what is used.

use super::object::{deleting, or_gone};
use super::{Context, Key, Outcome};
use crate::rest::quota_status;

/// Counts for one quota and writes the status if it changed.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let quotas = cx.client.resource("", "resourcequotas")?;
    let Some(record) = or_gone(cx.client.get(&quotas, &key.namespace, &key.name))? else { return Ok(None) };
    let mut quota = record.value();
    if deleting(&quota) {
        return Ok(None);
    }
    let status = quota_status(cx.client.server(), &key.namespace, &quota);
    if quota.get("status") == Some(&status) {
        return Ok(None);
    }
    if let Some(map) = quota.as_object_mut() {
        map.insert("status".to_owned(), status);
    }
    or_gone(cx.client.update(&quotas, Some("status"), quota).await)?;
    Ok(None)
}
