//! Rows of what workloads run on: nodes, services, endpoints, volumes, and the events about them.

use super::duration::{moment, since};
use super::read::{
    NONE, UNKNOWN, UNSET, age, at, condition, is_terminating, labels, list, name, number, scalar, shortened,
    size, text, text_or,
};
use jiff::Timestamp;
use kruise_api::kubernetes::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut status = match condition(object, "Ready") {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = list(object, "/status/addresses").iter().find(|address| text(address, "/type") == kind);
        found.map_or(NONE, |address| text(address, "/address")).to_owned()
    };
    let info = |key: &str| text_or(object, &format!("/status/nodeInfo/{key}"), UNKNOWN).to_owned();
    vec![
        name(object).into(),
        status.into(),
        roles(object).into(),
        age(object, now).into(),
        text(object, "/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        info("osImage").into(),
        info("kernelVersion").into(),
        info("containerRuntimeVersion").into(),
    ]
}

fn roles(node: &Value) -> String {
    let mut roles = BTreeSet::new();
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some("") => {}
            Some(role) => {
                roles.insert(role.to_owned());
            }
            None if key == "kubernetes.io/role" && value.as_str().is_some_and(|role| !role.is_empty()) => {
                roles.insert(scalar(value));
            }
            None => {}
        }
    }
    if roles.is_empty() { NONE.to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

pub(super) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<String> = list(object, "/spec/ports")
        .iter()
        .map(|port| {
            let (number_, node_port, protocol) =
                (number(port, "/port"), number(port, "/nodePort"), text(port, "/protocol"));
            if node_port > 0 {
                format!("{number_}:{node_port}/{protocol}")
            } else {
                format!("{number_}/{protocol}")
            }
        })
        .collect();
    let ports = if ports.is_empty() { NONE.to_owned() } else { ports.join(",") };
    vec![
        name(object).into(),
        text(object, "/spec/type").into(),
        text_or(object, "/spec/clusterIPs/0", NONE).into(),
        external_addresses(object).into(),
        ports.into(),
        age(object, now).into(),
        labels(object, "/spec/selector").into(),
    ]
}

fn external_addresses(service: &Value) -> String {
    let own: Vec<String> = list(service, "/spec/externalIPs").iter().map(scalar).collect();
    let (mut addresses, nothing) = match text(service, "/spec/type") {
        "ClusterIP" | "NodePort" => (Vec::new(), NONE),
        "LoadBalancer" => (load_balancer(service), "<pending>"),
        "ExternalName" => return text(service, "/spec/externalName").to_owned(),
        _ => return UNKNOWN.to_owned(),
    };
    addresses.extend(own);
    if addresses.is_empty() { nothing.to_owned() } else { addresses.join(",") }
}

fn load_balancer(object: &Value) -> Vec<String> {
    let addresses: BTreeSet<&str> = list(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|ingress| text_or(ingress, "/ip", text(ingress, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().map(str::to_owned).collect()
}

pub(super) fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let rules = list(object, "/spec/rules");
    let hosts: Vec<String> =
        rules.iter().map(|rule| text(rule, "/host").to_owned()).filter(|host| !host.is_empty()).collect();
    let hosts = if hosts.is_empty() { "*".to_owned() } else { shortened(&hosts, 3, ",") };
    let ports = if list(object, "/spec/tls").is_empty() { "80" } else { "80, 443" };
    vec![
        name(object).into(),
        text_or(object, "/spec/ingressClassName", NONE).into(),
        hosts.into(),
        load_balancer(object).join(",").into(),
        ports.into(),
        age(object, now).into(),
    ]
}

pub(super) fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    let subsets = list(object, "/subsets");
    let mut all = Vec::new();
    for subset in subsets {
        let ips = || list(subset, "/addresses").iter().map(|address| text(address, "/ip"));
        let ports = list(subset, "/ports");
        if ports.is_empty() {
            all.extend(ips().map(str::to_owned));
        }
        for port in ports {
            let port = number(port, "/port");
            all.extend(
                ips().map(
                    |ip| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") },
                ),
            );
        }
    }
    let shown = if subsets.is_empty() { NONE.to_owned() } else { shortened(&all, 3, ",") };
    vec![name(object).into(), shown.into(), age(object, now).into()]
}

pub(super) fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let or_unset =
        |items: Vec<String>| if items.is_empty() { UNSET.to_owned() } else { shortened(&items, 3, ",") };
    let ports = list(object, "/ports")
        .iter()
        .map(|port| match (at(port, "/port"), at(port, "/name")) {
            (Some(number), _) => scalar(number),
            (None, Some(name)) => scalar(name),
            (None, None) => "*".to_owned(),
        })
        .collect();
    let addresses = list(object, "/endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "/addresses"))
        .map(scalar)
        .collect();
    vec![
        name(object).into(),
        text(object, "/addressType").into(),
        or_unset(ports).into(),
        or_unset(addresses).into(),
        age(object, now).into(),
    ]
}

fn access_modes(object: &Value, pointer: &str) -> String {
    let has = |mode: &str| list(object, pointer).iter().any(|found| found.as_str() == Some(mode));
    [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ]
    .into_iter()
    .filter(|(mode, _)| has(mode))
    .map(|(_, short)| short)
    .collect::<Vec<_>>()
    .join(",")
}

/// The storage class: an old annotation wins over the member.
fn storage_class(object: &Value) -> &str {
    let annotation = object.pointer("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    annotation.and_then(Value::as_str).unwrap_or_else(|| text(object, "/spec/storageClassName"))
}

fn phase(object: &Value) -> &str {
    if is_terminating(object) { "Terminating" } else { text(object, "/status/phase") }
}

pub(super) fn persistent_volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = match at(object, "/spec/claimRef") {
        Some(claim) => format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")),
        None => String::new(),
    };
    vec![
        name(object).into(),
        at(object, "/spec/capacity/storage").map_or_else(|| "0".to_owned(), scalar).into(),
        access_modes(object, "/spec/accessModes").into(),
        text(object, "/spec/persistentVolumeReclaimPolicy").into(),
        phase(object).into(),
        claim.into(),
        storage_class(object).into(),
        text_or(object, "/spec/volumeAttributesClassName", UNSET).into(),
        text(object, "/status/reason").into(),
        age(object, now).into(),
        text_or(object, "/spec/volumeMode", UNSET).into(),
    ]
}

pub(super) fn persistent_volume_claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = !text(object, "/spec/volumeName").is_empty();
    let capacity = at(object, "/status/capacity/storage").map_or_else(|| "0".to_owned(), scalar);
    vec![
        name(object).into(),
        phase(object).into(),
        text(object, "/spec/volumeName").into(),
        if bound { capacity } else { String::new() }.into(),
        if bound { access_modes(object, "/status/accessModes") } else { String::new() }.into(),
        storage_class(object).into(),
        text_or(object, "/spec/volumeAttributesClassName", UNSET).into(),
        age(object, now).into(),
        text_or(object, "/spec/volumeMode", UNSET).into(),
    ]
}

pub(super) fn storage_class_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let annotations = object.pointer("/metadata/annotations");
    let is_default =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|key| annotations.and_then(|map| map.get(key)).and_then(Value::as_str) == Some("true"));
    let mark = if is_default { " (default)" } else { "" };
    vec![
        format!("{}{mark}", name(object)).into(),
        text(object, "/provisioner").into(),
        text_or(object, "/reclaimPolicy", "Delete").into(),
        text_or(object, "/volumeBindingMode", "Immediate").into(),
        object.get("allowVolumeExpansion").and_then(Value::as_bool).unwrap_or_default().into(),
        age(object, now).into(),
    ]
}

pub(super) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    // The two groups of events spell the same members differently.
    let pick = |a: &str, b: &str| moment(object.pointer(a)).or_else(|| moment(object.pointer(b)));
    let first =
        pick("/firstTimestamp", "/deprecatedFirstTimestamp").or_else(|| moment(object.get("eventTime")));
    let mut last = pick("/lastTimestamp", "/deprecatedLastTimestamp").or(first);
    let mut count = number(object, "/count").max(number(object, "/deprecatedCount")).max(1);
    if let Some(series) = at(object, "/series") {
        last = moment(series.get("lastObservedTime"));
        count = number(series, "/count");
    }
    let about = at(object, "/involvedObject").or_else(|| at(object, "/regarding")).unwrap_or(&Value::Null);
    let kind = text(about, "/kind").to_lowercase();
    let target = match text(about, "/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let source = at(object, "/source").or_else(|| at(object, "/deprecatedSource")).unwrap_or(&Value::Null);
    let component = text_or(source, "/component", text(object, "/reportingComponent"));
    let component = if component.is_empty() { text(object, "/reportingController") } else { component };
    let host = text_or(source, "/host", text(object, "/reportingInstance"));
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    let message = text_or(object, "/message", text(object, "/note")).trim();
    vec![
        since(last, now).into(),
        text(object, "/type").into(),
        text(object, "/reason").into(),
        target.into(),
        text(about, "/fieldPath").into(),
        source.into(),
        message.into(),
        since(first, now).into(),
        count.into(),
        name(object).into(),
    ]
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object).into(), text(object, "/spec/holderIdentity").into(), age(object, now).into()]
}

pub(super) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object).into(), list(object, "/webhooks").len().into(), age(object, now).into()]
}

pub(super) fn admission_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    let params = match object.pointer("/spec/paramKind") {
        Some(kind) if !kind.is_null() => format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")),
        _ => "<unset>".to_owned(),
    };
    let validations = list(object, "/spec/validations").len();
    vec![name(object).into(), validations.into(), params.into(), age(object, now).into()]
}

pub(super) fn policy_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let params = match text(object, "/spec/paramRef/name") {
        "" if object.pointer("/spec/paramRef/selector").is_some_and(Value::is_object) => {
            object.pointer("/spec/paramRef/selector").map(ToString::to_string).unwrap_or_default()
        }
        "" => "<unset>".to_owned(),
        params => format!("{}/{params}", text_or(object, "/spec/paramRef/namespace", "*")),
    };
    vec![name(object).into(), text(object, "/spec/policyName").into(), params.into(), age(object, now).into()]
}

pub(super) fn volume_attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object).into(),
        text(object, "/spec/attacher").into(),
        text(object, "/spec/source/persistentVolumeName").into(),
        text(object, "/spec/nodeName").into(),
        object.pointer("/status/attached").and_then(Value::as_bool).unwrap_or_default().into(),
        age(object, now).into(),
    ]
}

pub(super) fn csi_node(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object).into(), list(object, "/spec/drivers").len().into(), age(object, now).into()]
}

pub(super) fn resource_quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let hard = object.pointer("/status/hard").and_then(Value::as_object);
    for (resource, hard) in hard.into_iter().flatten() {
        let used = object.pointer("/status/used").and_then(|used| used.get(resource));
        let text = format!("{resource}: {}/{}", used.map_or_else(|| "0".to_owned(), scalar), scalar(hard));
        if resource.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
    }
    vec![name(object).into(), requests.join(", ").into(), limits.join(", ").into(), age(object, now).into()]
}

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object).into(),
        (size(object, "/data") + size(object, "/binaryData")).into(),
        age(object, now).into(),
    ]
}

pub(super) fn created_at(object: &Value, _now: Timestamp) -> Vec<Value> {
    vec![name(object).into(), text(object, "/metadata/creationTimestamp").into()]
}

/// What a node or a pod uses; a pod uses what its containers use together.
pub(super) fn metrics(object: &Value, _: Timestamp) -> Vec<Value> {
    let usages: Vec<&Value> = match object.get("usage") {
        Some(usage) => vec![usage],
        None => list(object, "/containers").iter().filter_map(|container| container.get("usage")).collect(),
    };
    let total = |resource: &str| {
        let amounts = usages.iter().filter_map(|usage| Quantity::parse(text(usage, resource)).ok());
        amounts.reduce(|sum, one| sum.plus(&one)).map(|sum| sum.to_string()).unwrap_or_default()
    };
    vec![name(object).into(), total("/cpu").into(), total("/memory").into(), text(object, "/window").into()]
}

pub(super) fn ingress_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameters = match at(object, "/spec/parameters") {
        None => NONE.to_owned(),
        Some(reference) => {
            let kind = match text(reference, "/apiGroup") {
                "" => text(reference, "/kind").to_owned(),
                group => format!("{}.{group}", text(reference, "/kind")),
            };
            format!("{kind}/{}", text(reference, "/name"))
        }
    };
    vec![
        name(object).into(),
        text(object, "/spec/controller").into(),
        parameters.into(),
        age(object, now).into(),
    ]
}
