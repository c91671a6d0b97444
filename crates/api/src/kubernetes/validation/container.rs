//! Rules of containers, their ports, environment, probes and hooks.

use super::environment;
use super::names;
use super::pod::Carrier;
use super::resources::resource_requirements;
use super::volume::Volumes;
use super::{Violation, Violations, each, entries, get, is_true, list, not_negative, number, one_of, text};
use serde_json::Value;
use std::collections::BTreeSet;

const NOT_IN_INIT: &str = "may not be set for init containers without restartPolicy=Always";
const NOT_IN_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// What the rules of a container need to know about its pod.
pub(super) struct Pod<'a> {
    pub(super) volumes: &'a Volumes,
    pub(super) grace: i64,
    pub(super) restart_policy: &'a str,
}

pub(super) fn containers(found: &mut Violations, pod: &Pod<'_>, list: &[Value], path: &str) {
    if list.is_empty() {
        found.push(Violation::required(path, ""));
        return;
    }
    let mut names = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for (index, container) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        common(found, pod, container, &path);
        if !names.insert(text(container, "name")) {
            found.push(Violation::duplicate(format!("{path}.name"), text(container, "name")));
        }
        long_running(found, pod, container, &path);
        if get(container, "restartPolicy").is_some() {
            let detail = "may not be set for non-init containers";
            found.push(Violation::forbidden(format!("{path}.restartPolicy"), detail));
        }
    }
    for (index, container) in list.iter().enumerate() {
        unique_host_ports(found, &mut host_ports, container, &format!("{path}[{index}]"));
    }
}

pub(super) fn init_containers(found: &mut Violations, pod: &Pod<'_>, spec: &Value, path: &str) {
    let mut names: BTreeSet<&str> =
        list(spec, "containers").iter().map(|container| text(container, "name")).collect();
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let path = format!("{path}[{index}]");
        common(found, pod, container, &path);
        let policy = get(container, "restartPolicy").map(|_| text(container, "restartPolicy"));
        if let Some(policy) = policy.filter(|policy| *policy != "Always") {
            found.push(Violation::not_supported(format!("{path}.restartPolicy"), policy, &["Always"]));
        }
        let name = text(container, "name");
        if names.contains(name) {
            found.push(Violation::duplicate(format!("{path}.name"), name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        unique_host_ports(found, &mut BTreeSet::new(), container, &path);
        if policy == Some("Always") {
            long_running(found, pod, container, &path);
            continue;
        }
        for member in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if get(container, member).is_some() {
                found.push(Violation::forbidden(format!("{path}.{member}"), NOT_IN_INIT));
            }
        }
    }
}

pub(super) fn ephemeral_containers(found: &mut Violations, pod: &Pod<'_>, spec: &Value, path: &str) {
    let others: BTreeSet<&str> = list(spec, "containers")
        .iter()
        .chain(list(spec, "initContainers"))
        .map(|container| text(container, "name"))
        .collect();
    let mut names = others.clone();
    for (index, container) in list(spec, "ephemeralContainers").iter().enumerate() {
        let path = format!("{path}[{index}]");
        common(found, pod, container, &path);
        if !names.insert(text(container, "name")) {
            found.push(Violation::duplicate(format!("{path}.name"), text(container, "name")));
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            found.push(Violation::not_found(format!("{path}.targetContainerName"), target));
        }
        for member in
            ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resizePolicy"]
        {
            let set = get(container, member)
                .is_some_and(|value| value.as_array().is_none_or(|list| !list.is_empty()));
            if set {
                found.push(Violation::forbidden(format!("{path}.{member}"), NOT_IN_EPHEMERAL));
            }
        }
        if get(container, "resources").and_then(Value::as_object).is_some_and(|map| !map.is_empty()) {
            found.push(Violation::forbidden(format!("{path}.resources"), NOT_IN_EPHEMERAL));
        }
    }
}

fn common(found: &mut Violations, pod: &Pod<'_>, container: &Value, path: &str) {
    let name = text(container, "name");
    match name {
        "" => found.push(Violation::required(format!("{path}.name"), "")),
        name => each(found, &format!("{path}.name"), name, names::dns_label(name)),
    }
    if text(container, "image").is_empty() {
        found.push(Violation::required(format!("{path}.image"), ""));
    }
    let policy = text(container, "terminationMessagePolicy");
    one_of(found, format!("{path}.terminationMessagePolicy"), policy, &["File", "FallbackToLogsOnError"]);
    ports(found, list(container, "ports"), &format!("{path}.ports"));
    environment::check(found, container, path);
    pod.volumes.check_mounts(found, container, path);
    let policy = text(container, "imagePullPolicy");
    one_of(found, format!("{path}.imagePullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    if let Some(resources) = get(container, "resources") {
        found.extend(resource_requirements(resources, &format!("{path}.resources")));
    }
    resize_policy(found, pod, container, &format!("{path}.resizePolicy"));
    if let Some(context) = get(container, "securityContext") {
        security_context(found, context, &format!("{path}.securityContext"));
    }
}

/// Who a container runs as, and that it does not both gain and refuse privileges.
fn security_context(found: &mut Violations, context: &Value, path: &str) {
    for member in ["runAsUser", "runAsGroup"] {
        let id = number(context, member);
        if !(0..=i64::from(i32::MAX)).contains(&id) {
            let detail = format!("must be between 0 and {}, inclusive", i32::MAX);
            found.push(Violation::invalid(format!("{path}.{member}"), id, detail));
        }
    }
    if context.get("allowPrivilegeEscalation").and_then(Value::as_bool) != Some(false) {
        return;
    }
    let added = get(context, "capabilities").map_or(&[][..], |capabilities| list(capabilities, "add"));
    let detail = if is_true(context, "privileged") {
        "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
    } else if added.iter().any(|capability| capability == "CAP_SYS_ADMIN") {
        "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
    } else {
        return;
    };
    found.push(Violation::invalid(path, context.clone(), detail));
}

fn resize_policy(found: &mut Violations, pod: &Pod<'_>, container: &Value, path: &str) {
    let mut seen = BTreeSet::new();
    for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
        let resource = text(policy, "resourceName");
        if !seen.insert(resource) {
            found.push(Violation::duplicate(format!("{path}[{index}]"), resource));
        }
        one_of(found, path.to_owned(), resource, &["cpu", "memory"]);
        let restart = text(policy, "restartPolicy");
        one_of(found, path.to_owned(), restart, &["NotRequired", "RestartContainer"]);
        if pod.restart_policy == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            found.push(Violation::invalid(path, restart, detail));
        }
    }
}

fn ports(found: &mut Violations, ports: &[Value], path: &str) {
    let mut names_seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let rules = names::port_name(name);
            if !rules.is_empty() {
                each(found, &format!("{path}.name"), name, rules);
            } else if !names_seen.insert(name) {
                found.push(Violation::duplicate(format!("{path}.name"), name));
            }
        }
        match number(port, "containerPort") {
            0 => found.push(Violation::required(format!("{path}.containerPort"), "")),
            number => found.extend(
                names::port_number(number)
                    .map(|rule| Violation::invalid(format!("{path}.containerPort"), number, rule)),
            ),
        }
        let host = number(port, "hostPort");
        if host != 0 {
            found.extend(
                names::port_number(host)
                    .map(|rule| Violation::invalid(format!("{path}.hostPort"), host, rule)),
            );
        }
        one_of(found, format!("{path}.protocol"), text(port, "protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

fn unique_host_ports(found: &mut Violations, seen: &mut BTreeSet<String>, container: &Value, path: &str) {
    for (index, port) in list(container, "ports").iter().enumerate() {
        let number = number(port, "hostPort");
        if number == 0 {
            continue;
        }
        let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
        if !seen.insert(key.clone()) {
            found.push(Violation::duplicate(format!("{path}.ports[{index}].hostPort"), key));
        }
    }
}

/// Rules of what only containers that keep running have.
fn long_running(found: &mut Violations, pod: &Pod<'_>, container: &Value, path: &str) {
    if let Some(lifecycle) = get(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(action) = get(lifecycle, hook) {
                handler(found, pod, action, &format!("{path}.lifecycle.{hook}"));
            }
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = get(container, name) else { continue };
        let path = format!("{path}.{name}");
        handler(found, pod, probe, &path);
        for member in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            not_negative(found, format!("{path}.{member}"), number(probe, member));
        }
        if get(probe, "terminationGracePeriodSeconds").is_some() {
            let (member, value) =
                ("terminationGracePeriodSeconds", number(probe, "terminationGracePeriodSeconds"));
            if name == "readinessProbe" {
                let detail = "must not be set for readinessProbes";
                found.push(Violation::invalid(format!("{path}.{member}"), value, detail));
            } else if value <= 0 {
                found.push(Violation::invalid(format!("{path}.{member}"), value, "must be greater than 0"));
            }
        }
        let threshold = number(probe, "successThreshold");
        if name != "readinessProbe" && threshold != 1 {
            found.push(Violation::invalid(format!("{path}.successThreshold"), threshold, "must be 1"));
        }
    }
}

fn handler(found: &mut Violations, pod: &Pod<'_>, handler: &Value, path: &str) {
    let mut count = 0;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = get(handler, kind) else { continue };
        let path = format!("{path}.{kind}");
        count += 1;
        if count > 1 {
            found.push(Violation::forbidden(path, "may not specify more than 1 handler type"));
            continue;
        }
        match kind {
            "exec" if list(action, "command").is_empty() => {
                found.push(Violation::required(format!("{path}.command"), ""));
            }
            "httpGet" => http_get(found, action, &path),
            "tcpSocket" | "grpc" => port_reference(found, action, &format!("{path}.port")),
            "sleep" => {
                let seconds = number(action, "seconds");
                if seconds < 0 || seconds > pod.grace {
                    let detail = format!(
                        "must be non-negative and less than terminationGracePeriodSeconds ({})",
                        pod.grace
                    );
                    found.push(Violation::invalid(path, seconds, detail));
                }
            }
            _ => {}
        }
    }
    if count == 0 {
        found.push(Violation::required(path, "must specify a handler type"));
    }
}

fn http_get(found: &mut Violations, action: &Value, path: &str) {
    if text(action, "path").is_empty() {
        found.push(Violation::required(format!("{path}.path"), ""));
    }
    port_reference(found, action, &format!("{path}.port"));
    let scheme = text(action, "scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        found.push(Violation::not_supported(format!("{path}.scheme"), scheme, &["HTTP", "HTTPS"]));
    }
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        each(found, &format!("{path}.httpHeaders"), name, names::http_header(name));
    }
}

fn port_reference(found: &mut Violations, action: &Value, path: &str) {
    match action.get("port") {
        Some(Value::String(name)) => each(found, path, name, names::port_name(name)),
        _ => {
            let port = number(action, "port");
            found.extend(names::port_number(port).map(|rule| Violation::invalid(path, port, rule)));
        }
    }
}

/// With host networking a port of a container is the port of the node. A template may leave it out: pods get it by default.
pub(super) fn host_network(found: &mut Violations, spec: &Value, path: &str, carrier: Carrier) {
    if !is_true(spec, "hostNetwork") {
        return;
    }
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (port_index, port) in list(container, "ports").iter().enumerate() {
            let host = number(port, "hostPort");
            let may_be_left_out = carrier == Carrier::Template && host == 0;
            if host != number(port, "containerPort") && !may_be_left_out {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                let path = format!("{path}.containers[{index}].ports[{port_index}].hostPort");
                found.push(Violation::invalid(path, host, detail));
            }
        }
    }
}

/// Labels that select: keys and values follow the rules of labels.
pub(super) fn labels(found: &mut Violations, owner: &Value, key: &str, path: &str) {
    for (name, value) in entries(owner, key) {
        each(found, path, name, names::qualified_name(name));
        let value = value.as_str().unwrap_or_default();
        each(found, path, value, names::label_value(value));
    }
}
