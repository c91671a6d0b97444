//! Rules of volumes and of the mounts that use them.

use super::environment::field_ref;
use super::names;
use super::{Violation, Violations, each, get, list, number, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// The volumes that containers may mount.
pub(super) struct Volumes {
    /// By name, whether the volume is a claim (which may be used as a device).
    by_name: BTreeMap<String, bool>,
}

impl Volumes {
    /// Checks the volumes of a pod. `extra` names those that others will add.
    pub(super) fn check(found: &mut Violations, spec: &Value, extra: &[String], path: &str) -> Self {
        let mut by_name: BTreeMap<String, bool> = extra.iter().map(|name| (name.clone(), true)).collect();
        let mut own = BTreeSet::new();
        for (index, volume) in list(spec, "volumes").iter().enumerate() {
            let path = format!("{path}[{index}]");
            let before = found.len();
            source(found, volume, &path);
            let name = text(volume, "name");
            match name {
                "" => found.push(Violation::required(format!("{path}.name"), "")),
                name => each(found, &format!("{path}.name"), name, names::dns_label(name)),
            }
            if own.contains(name) {
                found.push(Violation::duplicate(format!("{path}.name"), name));
            }
            // A volume with errors does not count, so its mounts are reported as well.
            if found.len() == before {
                own.insert(name);
                let claim =
                    get(volume, "persistentVolumeClaim").or_else(|| get(volume, "ephemeral")).is_some();
                by_name.insert(name.to_owned(), claim);
            }
        }
        Self { by_name }
    }

    pub(super) fn check_mounts(&self, found: &mut Violations, container: &Value, path: &str) {
        let devices = list(container, "volumeDevices");
        let mut paths = BTreeSet::new();
        let all = format!("{path}.volumeMounts");
        for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
            let path = format!("{all}[{index}]");
            let (name, target) = (text(mount, "name"), text(mount, "mountPath"));
            if name.is_empty() {
                found.push(Violation::required(format!("{path}.name"), ""));
            }
            if !self.by_name.contains_key(name) {
                found.push(Violation::not_found(format!("{path}.name"), name));
            }
            if target.is_empty() {
                found.push(Violation::required(format!("{path}.mountPath"), ""));
            }
            if !paths.insert(target) {
                found.push(Violation::invalid(format!("{path}.mountPath"), target, "must be unique"));
            }
            if devices.iter().any(|device| text(device, "name") == name) {
                let detail = "must not already exist in volumeDevices";
                found.push(Violation::invalid(format!("{path}.name"), name, detail));
            }
            if devices.iter().any(|device| text(device, "devicePath") == target) {
                let detail = "must not already exist as a path in volumeDevices";
                found.push(Violation::invalid(format!("{path}.mountPath"), target, detail));
            }
            let (sub, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
            descending(found, sub, &format!("{all}.subPath"));
            if !expression.is_empty() && !sub.is_empty() {
                let detail = "subPathExpr and subPath are mutually exclusive";
                found.push(Violation::invalid(format!("{path}.subPathExpr"), expression, detail));
            }
            descending(found, expression, &format!("{all}.subPathExpr"));
        }
        for (index, device) in devices.iter().enumerate() {
            let path = format!("{path}.volumeDevices[{index}]");
            let name = text(device, "name");
            match self.by_name.get(name) {
                _ if name.is_empty() => found.push(Violation::required(format!("{path}.name"), "")),
                None => found.push(Violation::not_found(format!("{path}.name"), name)),
                Some(false) => {
                    let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                    found.push(Violation::invalid(format!("{path}.name"), name, detail));
                }
                Some(true) => {}
            }
            if text(device, "devicePath").is_empty() {
                found.push(Violation::required(format!("{path}.devicePath"), ""));
            }
        }
    }
}

/// A path below another: relative and without `..`.
fn descending(found: &mut Violations, target: &str, path: &str) {
    if target.starts_with('/') {
        found.push(Violation::invalid(path, target, "must be a relative path"));
    }
    no_backsteps(found, target, path);
}

fn no_backsteps(found: &mut Violations, target: &str, path: &str) {
    if target.split('/').any(|part| part == "..") {
        found.push(Violation::invalid(path, target, "must not contain '..'"));
    }
}

fn source(found: &mut Violations, volume: &Value, path: &str) {
    let sources = volume.as_object().into_iter().flatten();
    let mut count = 0;
    for (kind, source) in sources.filter(|(kind, source)| *kind != "name" && !source.is_null()) {
        let path = format!("{path}.{kind}");
        count += 1;
        if count > 1 {
            found.push(Violation::forbidden(path, "may not specify more than 1 volume type"));
            continue;
        }
        match kind.as_str() {
            "hostPath" => {
                let target = text(source, "path");
                if target.is_empty() {
                    found.push(Violation::required(format!("{path}.path"), ""));
                } else {
                    no_backsteps(found, target, &format!("{path}.path"));
                }
                let allowed = [
                    "",
                    "BlockDevice",
                    "CharDevice",
                    "Directory",
                    "DirectoryOrCreate",
                    "File",
                    "FileOrCreate",
                    "Socket",
                ];
                let kind = text(source, "type");
                if !allowed.contains(&kind) {
                    found.push(Violation::not_supported(format!("{path}.type"), kind, &allowed));
                }
            }
            "secret" | "configMap" => files(found, kind, source, &path),
            "persistentVolumeClaim" if text(source, "claimName").is_empty() => {
                found.push(Violation::required(format!("{path}.claimName"), ""));
            }
            "downwardAPI" => {
                mode(found, source, "defaultMode", &path);
                downward_files(found, source, &path);
            }
            "projected" => {
                mode(found, source, "defaultMode", &path);
                for (index, projection) in list(source, "sources").iter().enumerate() {
                    let path = format!("{path}.sources[{index}]");
                    if let Some(downward) = get(projection, "downwardAPI") {
                        downward_files(found, downward, &format!("{path}.downwardAPI"));
                    }
                    if let Some(token) = get(projection, "serviceAccountToken")
                        && text(token, "path").is_empty()
                    {
                        found.push(Violation::required(format!("{path}.serviceAccountToken.path"), ""));
                    }
                    for kind in ["secret", "configMap"] {
                        if let Some(part) = get(projection, kind)
                            && text(part, "name").is_empty()
                        {
                            found.push(Violation::required(format!("{path}.{kind}.name"), ""));
                        }
                    }
                }
            }
            "ephemeral" if get(source, "volumeClaimTemplate").is_none() => {
                found.push(Violation::required(format!("{path}.volumeClaimTemplate"), ""));
            }
            "nfs" => {
                for member in ["server", "path"] {
                    if text(source, member).is_empty() {
                        found.push(Violation::required(format!("{path}.{member}"), ""));
                    }
                }
            }
            _ => {}
        }
    }
    if count == 0 {
        found.push(Violation::required(path, "must specify a volume type"));
    }
}

fn files(found: &mut Violations, kind: &str, source: &Value, path: &str) {
    let name = if kind == "secret" { "secretName" } else { "name" };
    if text(source, name).is_empty() {
        found.push(Violation::required(format!("{path}.{name}"), ""));
    }
    mode(found, source, "defaultMode", path);
    for (index, item) in list(source, "items").iter().enumerate() {
        let path = format!("{path}.items[{index}]");
        for member in ["key", "path"] {
            if text(item, member).is_empty() {
                found.push(Violation::required(format!("{path}.{member}"), ""));
            }
        }
        descending(found, text(item, "path"), &format!("{path}.path"));
        mode(found, item, "mode", &path);
    }
}

fn downward_files(found: &mut Violations, source: &Value, path: &str) {
    for (index, item) in list(source, "items").iter().enumerate() {
        let path = format!("{path}.items[{index}]");
        if text(item, "path").is_empty() {
            found.push(Violation::required(format!("{path}.path"), ""));
        }
        descending(found, text(item, "path"), &format!("{path}.path"));
        match (get(item, "fieldRef"), get(item, "resourceFieldRef")) {
            (Some(field), _) => field_ref(found, field, &FILE_FIELDS, &format!("{path}.fieldRef")),
            (None, Some(_)) => {}
            (None, None) => {
                let detail = "one of fieldRef and resourceFieldRef is required";
                found.push(Violation::required(format!("{path}.fieldRef"), detail));
            }
        }
        mode(found, item, "mode", &path);
    }
}

fn mode(found: &mut Violations, owner: &Value, member: &str, path: &str) {
    let mode = number(owner, member);
    if !(0..=0o777).contains(&mode) {
        found.push(Violation::invalid(format!("{path}.{member}"), mode, MODE));
    }
}
