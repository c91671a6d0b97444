//! Claims and volumes: a claim gets a volume at once, whatever its class.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::graph::Meta;
use super::object::{annotate, deleting, items, merge, or_gone, set, text};
use super::recorder::Involved;
use super::{Context, Key, Outcome};
use crate::registry::Resource;
use crate::selector::Labels;
use crate::status::Status;
use crate::store::Record;
use kruise_api::kubernetes::quantity::Quantity;

const COMPONENT: &str = "persistentvolume-controller";
const BOUND: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONER: &str = "kruise.io/local";

/// Binds a claim.
pub(super) async fn claim(cx: &Context, key: &Key) -> Outcome {
    let claims = cx.client.resource("", "persistentvolumeclaims")?;
    let volumes = cx.client.resource("", "persistentvolumes")?;
    let Some(record) = or_gone(cx.client.get(&claims, &key.namespace, &key.name))? else { return Ok(None) };
    let mut claim = record.value();
    if deleting(&claim) {
        if !in_use(cx, &claim) {
            unprotect(cx, &claims, &record, "kubernetes.io/pvc-protection").await?;
        }
        return Ok(None);
    }
    if text(&claim, "/status/phase") == "Bound" {
        return Ok(None);
    }
    let wanted = text(&claim, "/spec/volumeName").to_owned();
    let volume = if wanted.is_empty() {
        match available(cx, &claim) {
            Some(volume) => Some(volume),
            // An empty class asks for volumes that somebody made by hand.
            None if claim.pointer("/spec/storageClassName") == Some(&json!("")) => {
                let message = "no persistent volumes available for this claim and no storage class is set";
                let involved = Involved::of(&claims, &claim);
                cx.record(COMPONENT, &involved, "Normal", "FailedBinding", message).await;
                None
            }
            None => Some(provision(cx, &claim).await?),
        }
    } else {
        or_gone(cx.client.get(&volumes, "", &wanted))?.map(|record| record.value())
    };
    let Some(mut volume) = volume else { return Ok(None) };
    if !is_free(&volume, &claim) {
        return Ok(None);
    }
    if text(&volume, "/spec/claimRef/uid").is_empty() {
        set(&mut volume, "spec", "claimRef", reference(&claim));
        volume = cx.client.update(&volumes, None, volume).await?.value();
    }
    if text(&volume, "/status/phase") != "Bound" {
        set(&mut volume, "status", "phase", json!("Bound"));
        volume = cx.client.update(&volumes, Some("status"), volume).await?.value();
    }
    set(&mut claim, "spec", "volumeName", json!(text(&volume, "/metadata/name")));
    annotate(&mut claim, BOUND, "yes");
    annotate(&mut claim, BOUND_BY, "yes");
    let mut claim = cx.client.update(&claims, None, claim).await?.value();
    let status = json!({
        "phase": "Bound", "accessModes": volume.pointer("/spec/accessModes"),
        "capacity": volume.pointer("/spec/capacity"),
    });
    if let Some(map) = claim.as_object_mut() {
        map.insert("status".to_owned(), status);
    }
    or_gone(cx.client.update(&claims, Some("status"), claim).await)?;
    Ok(None)
}

/// Whether a pod on a node, that has not finished, has the claim.
fn in_use(cx: &Context, claim: &Value) -> bool {
    let name = text(claim, "/metadata/name");
    let pods = cx.pods().in_namespace(text(claim, "/metadata/namespace"));
    pods.iter().filter(|pod| !pod.node.is_empty() && !pod.is_finished()).any(|pod| {
        let pod = pod.record.value();
        items(&pod, "/spec/volumes")
            .iter()
            .any(|volume| text(volume, "/persistentVolumeClaim/claimName") == name)
    })
}

/// Lets go of what is being deleted.
async fn unprotect(cx: &Context, of: &Arc<Resource>, record: &Record, finalizer: &str) -> Result<(), Status> {
    let known = Meta::of(record);
    if !known.has_finalizer(finalizer) {
        return Ok(());
    }
    let left: Vec<String> = known.finalizers.into_iter().filter(|name| name != finalizer).collect();
    let left = if left.is_empty() { Value::Null } else { json!(left) };
    let patch = merge(json!({"metadata": {"finalizers": left, "resourceVersion": record.rv.to_string()}}));
    or_gone(cx.client.patch(of, &record.namespace, &record.name, None, &patch).await).map(|_| ())
}

fn reference(claim: &Value) -> Value {
    json!({
        "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": text(claim, "/metadata/namespace"),
        "name": text(claim, "/metadata/name"), "uid": text(claim, "/metadata/uid"),
        "resourceVersion": text(claim, "/metadata/resourceVersion"),
    })
}

/// Whether nobody else holds the volume. A reference without a uid keeps it for whoever gets the name.
fn is_free(volume: &Value, claim: &Value) -> bool {
    let Some(holder) = volume.pointer("/spec/claimRef") else { return true };
    match text(holder, "/uid") {
        "" => ["namespace", "name"]
            .iter()
            .all(|key| text(holder, &format!("/{key}")) == text(claim, &format!("/metadata/{key}"))),
        uid => uid == text(claim, "/metadata/uid"),
    }
}

/// The volume that is kept for the claim, or the smallest free one of the claim's class that its selector wants. Either
/// is big enough and has the claim's modes. Who keeps a volume for a claim need not think of its class.
fn available(cx: &Context, claim: &Value) -> Option<Value> {
    let size = |object: &Value, path: &str| {
        object.pointer(path).and_then(|size| Quantity::from_json(size).ok()).map_or(0, |size| size.value())
    };
    let need = size(claim, "/spec/resources/requests/storage");
    let selector = match claim.pointer("/spec/selector") {
        None | Some(Value::Null) => None,
        selector => Some(Labels::from_object(selector).unwrap_or_else(|_| Labels::nothing())),
    };
    let is_kept = |volume: &Value| volume.pointer("/spec/claimRef").is_some();
    let same = |volume: &Value, key: &str| {
        text(volume, &format!("/spec/{key}")) == text(claim, &format!("/spec/{key}"))
    };
    let (_, volumes) = cx.client.server().store().list("/persistentvolumes", None);
    let candidates = volumes.iter().filter(|record| !record.deleting).filter_map(|record| {
        let volume = record.value();
        let selected = || selector.as_ref().is_none_or(|wanted| wanted.matches_by(|key| record.label(key)));
        let modes = items(&volume, "/spec/accessModes");
        let fits = is_free(&volume, claim)
            && size(&volume, "/spec/capacity/storage") >= need
            && items(claim, "/spec/accessModes").iter().all(|mode| modes.contains(mode))
            && volume_mode(&volume) == volume_mode(claim)
            && same(&volume, "volumeAttributesClassName")
            && (is_kept(&volume) || (same(&volume, "storageClassName") && selected()));
        fits.then_some(volume)
    });
    candidates.min_by_key(|volume| {
        let name = text(volume, "/metadata/name").to_owned();
        (!is_kept(volume), size(volume, "/spec/capacity/storage"), name)
    })
}

fn volume_mode(object: &Value) -> &str {
    match text(object, "/spec/volumeMode") {
        "" => "Filesystem",
        mode => mode,
    }
}

/// Makes a volume for a claim.
async fn provision(cx: &Context, claim: &Value) -> Result<Value, Status> {
    let volumes = cx.client.resource("", "persistentvolumes")?;
    let name = format!("pvc-{}", text(claim, "/metadata/uid"));
    if let Some(known) = or_gone(cx.client.get(&volumes, "", &name))? {
        return Ok(known.value());
    }
    let mut spec = Map::new();
    spec.insert(
        "capacity".to_owned(),
        claim.pointer("/spec/resources/requests").cloned().unwrap_or_default(),
    );
    spec.insert("accessModes".to_owned(), claim.pointer("/spec/accessModes").cloned().unwrap_or_default());
    spec.insert(
        "hostPath".to_owned(),
        json!({"path": format!("/var/lib/volumes/{name}"), "type": "DirectoryOrCreate"}),
    );
    spec.insert("persistentVolumeReclaimPolicy".to_owned(), json!("Delete"));
    spec.insert("claimRef".to_owned(), reference(claim));
    for key in ["storageClassName", "volumeMode"] {
        if let Some(value) = claim.get("spec").and_then(|spec| spec.get(key)) {
            spec.insert(key.to_owned(), value.clone());
        }
    }
    let volume = json!({
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}}, "spec": spec,
    });
    let claims = cx.client.resource("", "persistentvolumeclaims")?;
    let made = cx.client.create(&volumes, "", volume).await?.value();
    let message = format!("Successfully provisioned volume {name}");
    cx.record(COMPONENT, &Involved::of(&claims, claim), "Normal", "ProvisioningSucceeded", &message).await;
    Ok(made)
}

/// Looks after a volume: it is available, bound, or released and then deleted if its policy says so.
pub(super) async fn volume(cx: &Context, key: &Key) -> Outcome {
    let volumes = cx.client.resource("", "persistentvolumes")?;
    let Some(record) = or_gone(cx.client.get(&volumes, "", &key.name))? else { return Ok(None) };
    let mut volume = record.value();
    let uid = text(&volume, "/spec/claimRef/uid").to_owned();
    let (namespace, name) = (text(&volume, "/spec/claimRef/namespace"), text(&volume, "/spec/claimRef/name"));
    let claim = cx.client.server().store().get("/persistentvolumeclaims", namespace, name);
    if deleting(&volume) {
        if claim.is_none_or(|claim| *claim.uid != *uid) {
            unprotect(cx, &volumes, &record, "kubernetes.io/pv-protection").await?;
        }
        return Ok(None);
    }
    let phase = if uid.is_empty() {
        "Available"
    } else if claim.is_some_and(|claim| *claim.uid == *uid) {
        // The claim's own pass says when it is bound.
        return Ok(None);
    } else if text(&volume, "/spec/persistentVolumeReclaimPolicy") == "Delete" {
        or_gone(cx.client.delete(&volumes, "", &key.name, &Default::default()).await)?;
        return Ok(None);
    } else {
        "Released"
    };
    if text(&volume, "/status/phase") != phase {
        set(&mut volume, "status", "phase", json!(phase));
        or_gone(cx.client.update(&volumes, Some("status"), volume).await)?;
    }
    Ok(None)
}
