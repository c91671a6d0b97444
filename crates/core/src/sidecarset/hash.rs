//! The hashes of a set: what pods follow, and by which they are known to be up to date.
//!
//! Bytes equal the original's. A cluster that changes hands must not see a new hash, or every pod would look outdated. So
//! members stand in the order in which Go writes the structs of the API of Kubernetes 0.32, those that are empty are
//! left out as Go leaves them out, and members that are newer come after the known ones.

use std::collections::BTreeMap;

use kruise_api::{
    annotations::{SIDECARSET_HASH, SIDECARSET_HASH_WITHOUT_IMAGE},
    json,
    kubernetes::quantity::Quantity,
    sidecarset::v1beta1::SidecarSet,
};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::{canonical_json, hash::safe_encode};

/// Both hashes of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    /// Over the containers.
    pub full: String,
    /// Over the containers without their images: pods that differ here cannot be updated in place.
    pub without_image: String,
}

/// The hashes of a spec with its defaults, in either version of the API.
pub fn of_spec(spec: &Value) -> Hashes {
    Hashes { full: digest(&hashed(spec, Images::Kept)), without_image: digest(&hashed(spec, Images::Left)) }
}

/// The hashes of a set: those that it carries, else those of its spec.
pub fn of_set(set: &SidecarSet) -> Hashes {
    let carried = |key: &str| super::annotation(set, key).filter(|hash| !hash.is_empty()).map(str::to_owned);
    let known = (carried(SIDECARSET_HASH), carried(SIDECARSET_HASH_WITHOUT_IMAGE));
    if let (Some(full), Some(without_image)) = known {
        return Hashes { full, without_image };
    }
    let computed = of_spec(&serde_json::to_value(&set.spec).unwrap_or_default());
    Hashes {
        full: known.0.unwrap_or(computed.full),
        without_image: known.1.unwrap_or(computed.without_image),
    }
}

/// Whether the hashed parts of two specs mean the same.
pub fn is_same(left: &Value, right: &Value) -> bool {
    hashed(left, Images::Kept) == hashed(right, Images::Kept)
}

/// Whether images are a part of what is hashed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Images {
    Kept,
    Left,
}

/// The text that is hashed.
pub(super) fn hashed(spec: &Value, images: Images) -> String {
    let list = |name: &str| json::at(spec, &[name]).and_then(Value::as_array);
    let mut out = String::from("{\"containers\":");
    match list("containers").filter(|containers| !containers.is_empty()) {
        Some(containers) => write_containers(containers, images, &mut out),
        None => out.push_str("null"),
    }
    let is_native = |container: &Value| json::text(container, &["restartPolicy"]) == Some("Always");
    if let Some(init) = list("initContainers").filter(|init| init.iter().any(is_native)) {
        out.push_str(",\"initContainers\":");
        write_containers(init, images, &mut out);
    }
    out.push('}');
    out
}

fn digest(text: &str) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    safe_encode(&hex)
}

fn write_containers(containers: &[Value], images: Images, out: &mut String) {
    canonical_json::list(containers, out, |container, out| match container {
        Value::Object(members) => write_members("container", members, images, out),
        other => out.push_str(&canonical_json::text(other)),
    });
}

/// The structs with their members in order. A member is `name`, then what it is: nothing for a plain value, `:struct`,
/// `:[]struct`, `:{}` for a map of quantities, `:q` for a quantity. A `*` before that says that it is kept whenever it is set,
/// a `!` at the end that it is written always, with the empty value behind it.
const STRUCTS: &[(&str, &str)] = &[
    (
        "container",
        "name!\"\" image command args workingDir ports:[]port envFrom:[]envFrom env:[]env resources:resources!{} \
         resizePolicy:[]resize restartPolicy:* volumeMounts:[]mount volumeDevices:[]device livenessProbe:*probe \
         readinessProbe:*probe startupProbe:*probe lifecycle:*lifecycle terminationMessagePath \
         terminationMessagePolicy imagePullPolicy securityContext:*security stdin stdinOnce tty podInjectPolicy \
         upgradeStrategy:upgrade!{} shareVolumePolicy:share!{} shareVolumeDevicePolicy:*share transferEnv:[]transfer \
         resourcesPolicy:*policy",
    ),
    ("upgrade", "upgradeType hotUpgradeEmptyImage"),
    ("share", "type"),
    ("transfer", "sourceContainerName sourceContainerNameFrom:*nameFrom envName envNames"),
    ("nameFrom", "fieldRef:*field"),
    ("field", "apiVersion fieldPath!\"\""),
    ("policy", "targetContainersMode!\"\" targetContainersNameRegex resourcesExpr:formulas!{}"),
    ("formulas", "limits:*formula requests:*formula"),
    ("formula", "cpu memory"),
    ("port", "name hostPort containerPort!0 protocol hostIP"),
    ("envFrom", "prefix configMapRef:*source secretRef:*source"),
    ("source", "name optional:*"),
    ("env", "name!\"\" value valueFrom:*valueFrom"),
    ("valueFrom", "fieldRef:*field resourceFieldRef:*resource configMapKeyRef:*key secretKeyRef:*key"),
    ("resource", "containerName resource!\"\" divisor:q!\"0\""),
    ("key", "name key!\"\" optional:*"),
    ("resources", "limits:{} requests:{} claims:[]claim"),
    ("claim", "name!\"\" request"),
    ("resize", "resourceName!\"\" restartPolicy!\"\""),
    ("mount", "name!\"\" readOnly recursiveReadOnly:* mountPath!\"\" subPath mountPropagation:* subPathExpr"),
    ("device", "name!\"\" devicePath!\"\""),
    (
        "probe",
        "exec:*exec httpGet:*http tcpSocket:*tcp grpc:*grpc initialDelaySeconds timeoutSeconds periodSeconds \
         successThreshold failureThreshold terminationGracePeriodSeconds:*",
    ),
    ("exec", "command"),
    ("http", "path port!0 host scheme httpHeaders:[]header"),
    ("header", "name!\"\" value!\"\""),
    ("tcp", "port!0 host"),
    ("grpc", "port!0 service!null"),
    ("lifecycle", "postStart:*handler preStop:*handler"),
    ("handler", "exec:*exec httpGet:*http tcpSocket:*tcp sleep:*sleep"),
    ("sleep", "seconds!0"),
    (
        "security",
        "capabilities:*capabilities privileged:* seLinuxOptions:*selinux windowsOptions:*windows runAsUser:* runAsGroup:* \
         runAsNonRoot:* readOnlyRootFilesystem:* allowPrivilegeEscalation:* procMount:* seccompProfile:*profile \
         appArmorProfile:*profile",
    ),
    ("capabilities", "add drop"),
    ("selinux", "user role type level"),
    ("windows", "gmsaCredentialSpecName:* gmsaCredentialSpec:* runAsUserName:* hostProcess:*"),
    ("profile", "type!\"\" localhostProfile:*"),
];

/// What a member is.
enum Shape<'a> {
    Plain,
    Quantity,
    Quantities,
    Struct(&'a str),
    Structs(&'a str),
}

/// One member of [`STRUCTS`].
struct Member<'a> {
    name: &'a str,
    shape: Shape<'a>,
    /// Kept whenever it is set, also when it is empty.
    is_pointer: bool,
    /// What is written when it is not set.
    always: Option<&'a str>,
}

impl<'a> Member<'a> {
    fn parse(text: &'a str) -> Self {
        let (text, always) = match text.split_once('!') {
            Some((text, empty)) => (text, Some(empty)),
            None => (text, None),
        };
        let (name, code) = text.split_once(':').unwrap_or((text, ""));
        let (code, is_pointer) = match code.strip_prefix('*') {
            Some(code) => (code, true),
            None => (code, false),
        };
        let shape = match code {
            "" => Shape::Plain,
            "q" => Shape::Quantity,
            "{}" => Shape::Quantities,
            code => match code.strip_prefix("[]") {
                Some(name) => Shape::Structs(name),
                None => Shape::Struct(code),
            },
        };
        Self { name, shape, is_pointer, always }
    }
}

fn write_members(name: &str, members: &Map<String, Value>, images: Images, out: &mut String) {
    let known = STRUCTS.iter().find(|(known, _)| *known == name).map_or("", |(_, members)| *members);
    let mut unknown: BTreeMap<&str, &Value> =
        members.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let mut is_first = true;
    let mut key = |name: &str, out: &mut String| {
        out.push(if std::mem::take(&mut is_first) { '{' } else { ',' });
        canonical_json::quote(name, out);
        out.push(':');
    };
    for member in known.split_whitespace().map(Member::parse) {
        let mut value = unknown.remove(member.name).filter(|value| !value.is_null());
        if name == "container" && member.name == "image" && images == Images::Left {
            value = None;
        }
        match (value, member.always) {
            (Some(value), always) if always.is_some() || member.is_pointer || !is_empty(value) => {
                key(member.name, out);
                write(&member.shape, value, out);
            }
            (None, Some(empty)) => {
                key(member.name, out);
                out.push_str(empty);
            }
            _ => {}
        }
    }
    for (name, value) in unknown.into_iter().filter(|(_, value)| !value.is_null()) {
        key(name, out);
        out.push_str(&canonical_json::text(value));
    }
    out.push_str(if is_first { "{}" } else { "}" });
}

fn write(shape: &Shape<'_>, value: &Value, out: &mut String) {
    match (shape, value) {
        (Shape::Struct(name), Value::Object(members)) => write_members(name, members, Images::Kept, out),
        (Shape::Structs(name), Value::Array(items)) => {
            canonical_json::list(items, out, |item, out| write(&Shape::Struct(name), item, out));
        }
        (Shape::Quantity, value) => write_quantity(value, out),
        (Shape::Quantities, Value::Object(members)) => {
            let sorted: BTreeMap<&str, &Value> =
                members.iter().map(|(name, value)| (name.as_str(), value)).collect();
            for (index, (name, value)) in sorted.into_iter().enumerate() {
                out.push(if index == 0 { '{' } else { ',' });
                canonical_json::quote(name, out);
                out.push(':');
                write_quantity(value, out);
            }
            out.push('}');
        }
        (_, other) => out.push_str(&canonical_json::text(other)),
    }
}

fn write_quantity(value: &Value, out: &mut String) {
    match Quantity::from_json(value) {
        Ok(quantity) => canonical_json::quote(&quantity.to_string(), out),
        Err(_) => out.push_str(&canonical_json::text(value)),
    }
}

/// What Go leaves out unless it is behind a pointer.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

#[cfg(test)]
mod tests;
