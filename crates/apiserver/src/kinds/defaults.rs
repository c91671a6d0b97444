//! Which defaults each built-in kind gets. The parts shared with our own kinds are in `kruise_api::kubernetes`.

use super::object::{child_or_new, is_unset, items, set_absent, set_text};
use kruise_api::kubernetes::defaults::{self as shared, Options};
use serde_json::{Map, Value, json};

/// Writes the defaults of an object in place. Kinds without defaults stay as they are.
pub fn defaults(group: &str, version: &str, kind: &str, object: &mut Value) {
    let options = &Options::KUBERNETES;
    match (group, kind) {
        ("", "Pod") => {
            shared::pod(object, options);
            pod_status(object);
        }
        ("", "PodTemplate") => {
            with(object, "template", |template| shared::pod_template_spec(template, options));
        }
        ("", "Service") => service(object),
        ("", "Secret") => with_map(object, secret),
        ("", "Namespace") => namespace(object),
        ("", "Node") => node(object),
        ("", "PersistentVolumeClaim") => {
            with_map(object, |claim| {
                child_or_new(claim, "spec");
            });
            shared::persistent_volume_claim(object, options);
        }
        ("", "PersistentVolume") => persistent_volume(object),
        ("", "Endpoints") => endpoints(object),
        ("", "LimitRange") => limit_range(object),
        ("", "ReplicationController") => replication_controller(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") => spec(object, |spec| set_absent(spec, "replicas", 1)),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => shared::job(object, options),
        ("batch", "CronJob") => cron_job(object),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(version, object),
        ("scheduling.k8s.io", "PriorityClass") => {
            with_map(object, |class| set_absent(class, "preemptionPolicy", "PreemptLowerPriority"));
        }
        ("storage.k8s.io", "StorageClass") => with_map(object, |class| {
            set_absent(class, "reclaimPolicy", "Delete");
            set_absent(class, "volumeBindingMode", "Immediate");
        }),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => role_binding(object),
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("networking.k8s.io", "IngressClass") => spec(object, |spec| {
            if let Some(reference) = spec.get_mut("parameters").and_then(Value::as_object_mut) {
                set_absent(reference, "scope", "Cluster");
            }
        }),
        ("storage.k8s.io", "CSIDriver") => storage_driver(object),
        ("discovery.k8s.io", "EndpointSlice") => with_map(object, |slice| {
            for port in items(slice, "ports") {
                set_absent(port, "name", "");
                set_absent(port, "protocol", "TCP");
            }
        }),
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => webhooks(kind, object),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => spec(object, |spec| {
            set_absent(spec, "failurePolicy", "Fail");
            matched_resources(spec, "matchConstraints");
        }),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            spec(object, |spec| matched_resources(spec, "matchResources"));
        }
        _ => {}
    }
    if group == "apps" {
        spec(object, |spec| {
            if let Some(template) = spec.get_mut("template") {
                shared::pod_template_spec(template, options);
            }
        });
    }
}

fn with(object: &mut Value, key: &str, change: impl FnOnce(&mut Value)) {
    if let Some(value) = object.as_object_mut().and_then(|object| object.get_mut(key)) {
        change(value);
    }
}

fn with_map(object: &mut Value, change: impl FnOnce(&mut Map<String, Value>)) {
    if let Some(object) = object.as_object_mut() {
        change(object);
    }
}

/// Changes `spec`, which is made when it is absent.
fn spec(object: &mut Value, change: impl FnOnce(&mut Map<String, Value>)) {
    with_map(object, |object| {
        if let Some(spec) = child_or_new(object, "spec") {
            change(spec);
        }
    });
}

/// Both spellings of a pod's address agree.
fn pod_status(pod: &mut Value) {
    with_map(pod, |pod| {
        let Some(status) = child_or_new(pod, "status") else { return };
        let ip = status.get("podIP").and_then(Value::as_str).unwrap_or_default().to_owned();
        let first = status
            .get("podIPs")
            .and_then(|ips| ips.get(0))
            .and_then(|first| first.get("ip"))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if !ip.is_empty() && ip != first {
            status.insert("podIPs".to_owned(), json!([{ "ip": ip }]));
        } else if ip.is_empty() && !first.is_empty() {
            status.insert("podIP".to_owned(), first.into());
        }
    });
}

fn service(service: &mut Value) {
    spec(service, |spec| {
        set_text(spec, "sessionAffinity", "None");
        match spec.get("sessionAffinity").and_then(Value::as_str) {
            Some("None") => {
                spec.remove("sessionAffinityConfig");
            }
            Some("ClientIP") => {
                let timeout = spec
                    .get("sessionAffinityConfig")
                    .and_then(|config| config.pointer("/clientIP/timeoutSeconds"));
                if timeout.is_none_or(Value::is_null) {
                    let config = json!({"clientIP": {"timeoutSeconds": 10800}});
                    spec.insert("sessionAffinityConfig".to_owned(), config);
                }
            }
            _ => {}
        }
        set_text(spec, "type", "ClusterIP");
        for port in items(spec, "ports") {
            set_text(port, "protocol", "TCP");
            let unset = match port.get("targetPort") {
                None | Some(Value::Null) => true,
                Some(Value::String(text)) => text.is_empty(),
                Some(number) => number.as_i64() == Some(0),
            };
            if unset && let Some(number) = port.get("port").cloned() {
                port.insert("targetPort".to_owned(), number);
            }
        }
        let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let has_external_ips =
            spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
        let external =
            matches!(kind.as_str(), "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && has_external_ips);
        if external {
            set_text(spec, "externalTrafficPolicy", "Cluster");
        }
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
            set_absent(spec, "internalTrafficPolicy", "Cluster");
        }
        if kind == "LoadBalancer" {
            set_absent(spec, "allocateLoadBalancerNodePorts", true);
        }
    });
}

/// The label with the namespace's name, the phase, and the finalizer that keeps it until it is empty.
fn secret(secret: &mut Map<String, Value>) {
    super::config::fold_texts(secret);
    set_text(secret, "type", "Opaque");
}

fn namespace(namespace: &mut Value) {
    let name = namespace.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    with_map(namespace, |namespace| {
        if !name.is_empty()
            && let Some(metadata) = child_or_new(namespace, "metadata")
            && let Some(labels) = child_or_new(metadata, "labels")
        {
            labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
        }
        if let Some(status) = child_or_new(namespace, "status") {
            set_text(status, "phase", "Active");
        }
    });
}

fn node(node: &mut Value) {
    with(node, "status", |status| {
        with_map(status, |status| {
            if is_unset(status, "allocatable")
                && let Some(capacity) =
                    status.get("capacity").filter(|capacity| capacity.is_object()).cloned()
            {
                status.insert("allocatable".to_owned(), capacity);
            }
        });
    });
}

fn persistent_volume(volume: &mut Value) {
    with_map(volume, |volume| {
        if let Some(status) = child_or_new(volume, "status") {
            set_text(status, "phase", "Pending");
        }
    });
    spec(volume, |spec| {
        set_text(spec, "persistentVolumeReclaimPolicy", "Retain");
        set_absent(spec, "volumeMode", "Filesystem");
        if let Some(path) = spec.get_mut("hostPath").and_then(Value::as_object_mut) {
            set_absent(path, "type", "");
        }
    });
}

fn endpoints(endpoints: &mut Value) {
    with_map(endpoints, |endpoints| {
        for subset in items(endpoints, "subsets") {
            items(subset, "ports").for_each(|port| set_text(port, "protocol", "TCP"));
        }
    });
}

/// Limits of containers default to the maximum, requests to the limit, then to the minimum.
fn limit_range(range: &mut Value) {
    spec(range, |spec| {
        for item in items(spec, "limits") {
            if item.get("type").and_then(Value::as_str) != Some("Container") {
                continue;
            }
            for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
                let Some(source) = item.get(from).and_then(Value::as_object).cloned() else { continue };
                if let Some(target) = child_or_new(item, to) {
                    for (name, amount) in source {
                        target.entry(name).or_insert(amount);
                    }
                }
            }
        }
    });
}

/// Selects by the labels of its template, and has them too, unless it says otherwise.
fn replication_controller(controller: &mut Value) {
    let labels =
        controller.pointer("/spec/template/metadata/labels").filter(|labels| labels.is_object()).cloned();
    with_map(controller, |controller| {
        if let (Some(meta), Some(labels)) = (child_or_new(controller, "metadata"), &labels) {
            set_absent(meta, "labels", labels.clone());
        }
    });
    spec(controller, |spec| {
        set_absent(spec, "replicas", 1);
        if let Some(labels) = labels {
            set_absent(spec, "selector", labels);
        }
        if let Some(template) = spec.get_mut("template") {
            shared::pod_template_spec(template, &Options::KUBERNETES);
        }
    });
}

fn storage_driver(driver: &mut Value) {
    spec(driver, |spec| {
        set_absent(spec, "attachRequired", true);
        for key in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
            set_absent(spec, key, false);
        }
        set_absent(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if spec.get("volumeLifecycleModes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
        }
    });
}

fn deployment(deployment: &mut Value) {
    spec(deployment, |spec| {
        set_absent(spec, "replicas", 1);
        set_absent(spec, "revisionHistoryLimit", 10);
        set_absent(spec, "progressDeadlineSeconds", 600);
        let Some(strategy) = child_or_new(spec, "strategy") else { return };
        set_text(strategy, "type", "RollingUpdate");
        if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate")
            && let Some(rolling) = child_or_new(strategy, "rollingUpdate")
        {
            set_absent(rolling, "maxUnavailable", "25%");
            set_absent(rolling, "maxSurge", "25%");
        }
    });
}

fn daemon_set(set: &mut Value) {
    spec(set, |spec| {
        set_absent(spec, "revisionHistoryLimit", 10);
        let Some(strategy) = child_or_new(spec, "updateStrategy") else { return };
        set_text(strategy, "type", "RollingUpdate");
        if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate")
            && let Some(rolling) = child_or_new(strategy, "rollingUpdate")
        {
            set_absent(rolling, "maxUnavailable", 1);
            set_absent(rolling, "maxSurge", 0);
        }
    });
}

fn stateful_set(set: &mut Value) {
    spec(set, |spec| {
        set_absent(spec, "replicas", 1);
        set_absent(spec, "revisionHistoryLimit", 10);
        set_text(spec, "podManagementPolicy", "OrderedReady");
        if let Some(strategy) = child_or_new(spec, "updateStrategy") {
            if strategy.get("type").and_then(Value::as_str).unwrap_or_default().is_empty() {
                set_text(strategy, "type", "RollingUpdate");
                set_absent(strategy, "rollingUpdate", Map::new());
            }
            // A type that was written without its block stays without it.
            if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate")
                && let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut)
            {
                set_absent(rolling, "partition", 0);
            }
        }
        if let Some(policy) = child_or_new(spec, "persistentVolumeClaimRetentionPolicy") {
            set_text(policy, "whenDeleted", "Retain");
            set_text(policy, "whenScaled", "Retain");
        }
        for claim in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten()
        {
            shared::persistent_volume_claim(claim, &Options::KUBERNETES);
            with_map(claim, |claim| {
                set_text(claim, "apiVersion", "v1");
                set_text(claim, "kind", "PersistentVolumeClaim");
            });
        }
    });
}

fn cron_job(job: &mut Value) {
    spec(job, |spec| {
        set_text(spec, "concurrencyPolicy", "Allow");
        set_absent(spec, "suspend", false);
        set_absent(spec, "successfulJobsHistoryLimit", 3);
        set_absent(spec, "failedJobsHistoryLimit", 1);
        if let Some(template) = spec.get_mut("jobTemplate") {
            shared::job_template_spec(template, &Options::KUBERNETES);
        }
    });
}

fn autoscaler(version: &str, autoscaler: &mut Value) {
    spec(autoscaler, |spec| {
        set_absent(spec, "minReplicas", 1);
        if version == "v1" {
            set_absent(spec, "targetCPUUtilizationPercentage", 80);
            return;
        }
        if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            let cpu = json!([{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
            spec.insert("metrics".to_owned(), cpu);
        }
        let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) else { return };
        let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        if let Some(up) = child_or_new(behavior, "scaleUp") {
            set_absent(up, "stabilizationWindowSeconds", 0);
            set_absent(up, "selectPolicy", "Max");
            set_absent(up, "policies", json!([pods, percent]));
        }
        if let Some(down) = child_or_new(behavior, "scaleDown") {
            set_absent(down, "selectPolicy", "Max");
            set_absent(down, "policies", json!([percent]));
        }
    });
}

fn role_binding(binding: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    with_map(binding, |binding| {
        if let Some(role) = binding.get_mut("roleRef").and_then(Value::as_object_mut) {
            set_text(role, "apiGroup", GROUP);
        }
        for subject in items(binding, "subjects") {
            if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
                set_text(subject, "apiGroup", GROUP);
            }
        }
    });
}

fn network_policy(policy: &mut Value) {
    spec(policy, |spec| {
        for direction in ["ingress", "egress"] {
            for rule in items(spec, direction) {
                items(rule, "ports").for_each(|port| set_absent(port, "protocol", "TCP"));
            }
        }
        let named = |spec: &Map<String, Value>, key: &str| {
            spec.get(key).and_then(Value::as_array).is_some_and(|list| !list.is_empty())
        };
        if !named(spec, "policyTypes") {
            let types = if named(spec, "egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            spec.insert("policyTypes".to_owned(), types);
        }
    });
}

fn webhooks(kind: &str, configuration: &mut Value) {
    with_map(configuration, |configuration| {
        for webhook in items(configuration, "webhooks") {
            set_absent(webhook, "failurePolicy", "Fail");
            set_absent(webhook, "matchPolicy", "Equivalent");
            set_absent(webhook, "namespaceSelector", Map::new());
            set_absent(webhook, "objectSelector", Map::new());
            set_absent(webhook, "timeoutSeconds", 10);
            if kind == "MutatingWebhookConfiguration" {
                set_absent(webhook, "reinvocationPolicy", "Never");
            }
            items(webhook, "rules").for_each(|rule| set_absent(rule, "scope", "*"));
            if let Some(config) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut) {
                config.retain(|_, value| !value.is_null());
            }
            if let Some(service) = webhook
                .get_mut("clientConfig")
                .and_then(|config| config.get_mut("service"))
                .and_then(Value::as_object_mut)
            {
                set_absent(service, "port", 443);
            }
        }
    });
}

/// What a policy or a binding is about.
fn matched_resources(owner: &mut Map<String, Value>, key: &str) {
    let Some(resources) = owner.get_mut(key).and_then(Value::as_object_mut) else { return };
    set_absent(resources, "matchPolicy", "Equivalent");
    set_absent(resources, "namespaceSelector", Map::new());
    set_absent(resources, "objectSelector", Map::new());
    for rules in ["resourceRules", "excludeResourceRules"] {
        items(resources, rules).for_each(|rule| set_absent(rule, "scope", "*"));
    }
}
