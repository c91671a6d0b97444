//! What becomes of the claims of a StatefulSet: they stay, go with the set, or go with a pod that is too much.

use serde_json::{Value, json};

use super::super::garbage::change_owners;
use super::super::object::{controller_reference, items, number, text};
use super::ordinals::Seen;
use super::{Pass, claim_name};
use crate::status::Status;

/// Whose dependents the claims of a pod are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    Set,
    Pod,
}

/// The rule.
fn holder(set: &Value, condemned: bool) -> Holder {
    let goes =
        |when: &str| text(set, &format!("/spec/persistentVolumeClaimRetentionPolicy/{when}")) == "Delete";
    if condemned && goes("whenScaled") {
        Holder::Pod
    } else if goes("whenDeleted") {
        Holder::Set
    } else {
        Holder::Nobody
    }
}

/// Gives the claims of all pods the owner that the set's policy says.
pub(super) async fn settle(pass: &Pass<'_>, pods: &[Seen]) -> Result<(), Status> {
    let templates = items(&pass.set, "/spec/volumeClaimTemplates");
    if templates.is_empty() || pass.set.pointer("/spec/persistentVolumeClaimRetentionPolicy").is_none() {
        return Ok(());
    }
    let claims = pass.cx.client.resource("", "persistentvolumeclaims")?;
    let start = number(&pass.set, "/spec/ordinals/start").unwrap_or(0);
    let wanted = start..start + number(&pass.set, "/spec/replicas").unwrap_or(1);
    let namespace = text(&pass.set, "/metadata/namespace");
    let set_uid = text(&pass.set, "/metadata/uid");
    for seen in pods {
        let Some(pod) = pass.cx.pods().get(namespace, &seen.name) else { continue };
        let owner = match holder(&pass.set, !wanted.contains(&seen.ordinal)) {
            Holder::Nobody => None,
            Holder::Set => Some(controller_reference(&pass.sets, &pass.set)),
            Holder::Pod => Some(json!({
                "apiVersion": "v1", "kind": "Pod", "name": seen.name, "uid": &*pod.record.uid,
                "controller": true, "blockOwnerDeletion": true,
            })),
        };
        for template in templates {
            let name = claim_name(template, &pass.set, seen.ordinal);
            let name = name.as_str().unwrap_or_default();
            let Ok(claim) = pass.cx.client.get(&claims, namespace, name) else { continue };
            change_owners(pass.cx, &claims, &claim, |owners| {
                let ours = |known: &Value| {
                    text(known, "/uid") == set_uid
                        || (text(known, "/kind") == "Pod" && text(known, "/name") == seen.name)
                };
                if owner.as_ref().is_some_and(|owner| owners.contains(owner)) {
                    return;
                }
                owners.retain(|known| !ours(known));
                owners.extend(owner.clone());
            })
            .await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_stay_unless_the_policy_says_otherwise() {
        let set = |deleted: &str, scaled: &str| json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}}});
        assert_eq!(holder(&set("Retain", "Retain"), true), Holder::Nobody);
        assert_eq!(holder(&set("Delete", "Retain"), true), Holder::Set);
        assert_eq!(holder(&set("Delete", "Delete"), true), Holder::Pod);
        assert_eq!(holder(&set("Delete", "Delete"), false), Holder::Set);
        assert_eq!(holder(&set("Retain", "Delete"), false), Holder::Nobody);
    }
}
