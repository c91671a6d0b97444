//! Defaults of pod specs, and those that only whole pods get.

use super::container::common;
use super::volume::volume_members;
use super::{
    Options, PullPolicy, is_unset_text, items, member, round_resource_list, round_resources, set_absent,
    set_number, set_text,
};
use crate::kubernetes::quantity::Quantity;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Writes the defaults of a pod template (`{metadata, spec}`).
pub fn pod_template_spec(value: &mut Value, options: &Options) {
    if let Some(spec) = value.as_object_mut().and_then(|template| template.get_mut("spec")) {
        pod_spec(spec, options);
    }
}

/// Writes the defaults of a pod spec inside a template.
pub fn pod_spec(value: &mut Value, options: &Options) {
    let Some(spec) = value.as_object_mut() else { return };
    set_text(spec, "dnsPolicy", "ClusterFirst");
    set_text(spec, "restartPolicy", "Always");
    set_text(spec, "schedulerName", "default-scheduler");
    set_absent(spec, "securityContext", Map::new());
    set_absent(spec, "terminationGracePeriodSeconds", 30);
    if options.server_only {
        service_account_alias(spec);
    }
    if options.host_network_host_ports {
        host_ports(spec);
    }
    items(spec, "volumes").for_each(|volume| volume_members(volume, options));
    items(spec, "containers").for_each(|container| common(container, options, options.pull_policy));
    for list in ["initContainers", "ephemeralContainers"] {
        items(spec, list).for_each(|container| common(container, options, PullPolicy::ByTag));
    }
    round_resource_list(spec, "overhead");
    round_resources(spec);
}

/// Writes the defaults of a pod object. It gets more than a template: requests from limits, service links, and host ports.
pub fn pod(value: &mut Value, options: &Options) {
    let Some(pod) = value.as_object_mut() else { return };
    if let Some(spec) = member(pod, "spec") {
        for list in ["containers", "initContainers"] {
            items(spec, list).for_each(requests_from_limits);
        }
        if options.pod_level_resources {
            pod_requests(spec);
        }
        set_absent(spec, "enableServiceLinks", true);
        host_ports(spec);
        if spec
            .get("terminationGracePeriodSeconds")
            .and_then(Value::as_i64)
            .is_some_and(|seconds| seconds < 0)
        {
            spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
        }
    }
    if let Some(spec) = pod.get_mut("spec") {
        pod_spec(spec, options);
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`; a server keeps both, and the new name wins.
fn service_account_alias(spec: &mut Map<String, Value>) {
    if is_unset_text(spec, "serviceAccountName") {
        if let Some(name) = spec.get("serviceAccount").filter(|name| name.is_string()).cloned() {
            spec.insert("serviceAccountName".to_owned(), name);
        }
    } else if let Some(name) = spec.get("serviceAccountName").filter(|name| name.is_string()).cloned() {
        spec.insert("serviceAccount".to_owned(), name);
    }
}

fn host_ports(spec: &mut Map<String, Value>) {
    if spec.get("hostNetwork").and_then(Value::as_bool) != Some(true) {
        return;
    }
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            for port in items(container, "ports") {
                if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
                    set_number(port, "hostPort", number);
                }
            }
        }
    }
}

fn requests_from_limits(container: &mut Map<String, Value>) {
    let Some(resources) = member(container, "resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    if limits.is_empty() {
        return;
    }
    set_absent(resources, "requests", Map::new());
    if let Some(requests) = member(resources, "requests") {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}

type Amounts = BTreeMap<String, Quantity>;

/// Pod-level requests: what the containers ask for together, else the pod's own limit.
fn pod_requests(spec: &mut Map<String, Value>) {
    let total = containers_together(spec);
    let Some(resources) = member(spec, "resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    if limits.is_empty() {
        return;
    }
    let supported = |name: &str| name == "cpu" || name == "memory" || name.starts_with("hugepages-");
    set_absent(resources, "requests", Map::new());
    if let Some(requests) = member(resources, "requests") {
        for (name, amount) in total.iter().filter(|(name, _)| *name == "cpu" || *name == "memory") {
            requests.entry(name.clone()).or_insert_with(|| amount.to_string().into());
        }
        for (name, limit) in limits.into_iter().filter(|(name, _)| supported(name)) {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// The most the containers need at one time: all ordinary ones with the sidecars, or one init container with the
/// sidecars started before it.
fn containers_together(spec: &mut Map<String, Value>) -> Amounts {
    let mut running = Amounts::new();
    for container in items(spec, "containers") {
        add(&mut running, &requests(container));
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in items(spec, "initContainers") {
        let own = requests(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut running, &own);
            add(&mut sidecars, &own);
            raise(&mut starting, &sidecars);
        } else {
            let mut together = sidecars.clone();
            add(&mut together, &own);
            raise(&mut starting, &together);
        }
    }
    raise(&mut running, &starting);
    running
}

fn requests(container: &mut Map<String, Value>) -> Amounts {
    member(container, "resources")
        .and_then(|resources| member(resources, "requests"))
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), Quantity::from_json(value).ok()?)))
        .collect()
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.get(name).unwrap_or(&Quantity::ZERO).plus(amount);
        total.insert(name.clone(), sum);
    }
}

fn raise(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let entry = total.entry(name.clone()).or_insert(*amount);
        *entry = (*entry).max(*amount);
    }
}
