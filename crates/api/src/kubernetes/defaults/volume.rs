//! Defaults of volumes and of claims.

use super::{
    Options, field_ref, is_unset_text, items, member, member_or_new, round_resources, set_absent, set_text,
};
use serde_json::{Map, Value};

const READ_FOR_ALL: i64 = 0o644;

/// Writes the defaults of a volume in a pod.
pub fn volume(value: &mut Value, options: &Options) {
    if let Some(volume) = value.as_object_mut() {
        volume_members(volume, options);
    }
}

pub(super) fn volume_members(volume: &mut Map<String, Value>, options: &Options) {
    let has_source = volume.iter().any(|(key, value)| key != "name" && !value.is_null());
    if !has_source {
        volume.insert("emptyDir".to_owned(), Map::new().into());
    }
    if let Some(source) = member(volume, "hostPath") {
        set_absent(source, "type", "");
    }
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = member(volume, kind) {
            set_absent(source, "defaultMode", READ_FOR_ALL);
        }
    }
    if let Some(source) = member(volume, "downwardAPI") {
        items(source, "items").for_each(field_ref);
    }
    if let Some(source) = member(volume, "projected") {
        for projection in items(source, "sources") {
            if let Some(downward) = member(projection, "downwardAPI") {
                items(downward, "items").for_each(field_ref);
            }
            if let Some(token) = member(projection, "serviceAccountToken") {
                set_absent(token, "expirationSeconds", 3600);
            }
        }
    }
    if let Some(template) =
        member(volume, "ephemeral").and_then(|source| member(source, "volumeClaimTemplate"))
        && let Some(spec) = member(template, "spec")
    {
        claim_spec_members(spec, options);
    }
    if options.server_only {
        storage_systems(volume);
    }
}

/// Members of the volume types whose defaults are declared on the types themselves.
fn storage_systems(volume: &mut Map<String, Value>) {
    if let Some(source) = member(volume, "iscsi") {
        set_text(source, "iscsiInterface", "default");
    }
    if let Some(source) = member(volume, "rbd") {
        set_text(source, "pool", "rbd");
        set_text(source, "user", "admin");
        set_text(source, "keyring", "/etc/ceph/keyring");
    }
    if let Some(source) = member(volume, "azureDisk") {
        set_absent(source, "cachingMode", "ReadWrite");
        set_absent(source, "fsType", "ext4");
        set_absent(source, "readOnly", false);
        set_absent(source, "kind", "Shared");
    }
    if let Some(source) = member(volume, "scaleIO") {
        set_text(source, "storageMode", "ThinProvisioned");
        set_text(source, "fsType", "xfs");
    }
}

/// Writes the defaults of a whole claim, as an object or as a template in a workload.
pub fn persistent_volume_claim(value: &mut Value, options: &Options) {
    let Some(claim) = value.as_object_mut() else { return };
    if let Some(status) = member_or_new(claim, "status")
        && is_unset_text(status, "phase")
    {
        status.insert("phase".to_owned(), "Pending".into());
    }
    if let Some(spec) = member(claim, "spec") {
        claim_spec_members(spec, options);
    }
}

/// Writes the defaults of the `spec` of a claim.
pub fn persistent_volume_claim_spec(value: &mut Value, options: &Options) {
    if let Some(spec) = value.as_object_mut() {
        claim_spec_members(spec, options);
    }
}

fn claim_spec_members(spec: &mut Map<String, Value>, options: &Options) {
    round_resources(spec);
    if options.server_only {
        set_absent(spec, "volumeMode", "Filesystem");
    }
}
