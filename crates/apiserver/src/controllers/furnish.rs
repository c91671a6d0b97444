//! What every namespace has: the default service account and, where there is one, the cluster's certificate.

use serde_json::json;

use super::object::{is_terminating, or_gone};
use super::{Context, Key, Outcome};
use crate::status::Status;

const ROOT_CA: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
     such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of \
     Kubernetes clusters.";

/// Whether an object is one of those that are kept here.
pub(super) fn is_kept(table: &str, name: &str) -> bool {
    matches!((table, name), ("/serviceaccounts", "default") | ("/configmaps", ROOT_CA))
}

/// Brings back what is missing in a namespace.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let namespaces = cx.client.resource("", "namespaces")?;
    let Some(namespace) = or_gone(cx.client.get(&namespaces, "", &key.name))? else { return Ok(None) };
    if namespace.deleting {
        return Ok(None);
    }
    let accounts = cx.client.resource("", "serviceaccounts")?;
    if cx.client.get(&accounts, &key.name, "default").is_err() {
        let made = cx.client.create(&accounts, &key.name, json!({"metadata": {"name": "default"}})).await;
        made.map(|_| ()).or_else(forgive)?;
    }
    let Some(certificate) = &cx.root_ca else { return Ok(None) };
    let maps = cx.client.resource("", "configmaps")?;
    if cx.client.get(&maps, &key.name, ROOT_CA).is_err() {
        let map = json!({
            "metadata": {"name": ROOT_CA, "annotations": {"kubernetes.io/description": DESCRIPTION}},
            "data": {"ca.crt": certificate},
        });
        cx.client.create(&maps, &key.name, map).await.map(|_| ()).or_else(forgive)?;
    }
    Ok(None)
}

/// Somebody was faster, or the namespace is going away.
fn forgive(status: Status) -> Result<(), Status> {
    if status.code == 409 || status.code == 404 || is_terminating(&status) { Ok(()) } else { Err(status) }
}
