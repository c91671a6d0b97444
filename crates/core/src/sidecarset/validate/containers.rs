//! Rules of the containers of a set.

use kruise_api::{
    json,
    kubernetes::{
        defaults,
        validation::{
            self, Violation,
            names::{dns_label, qualified_name},
        },
    },
    sidecarset::{
        container::{
            FieldRef, PodInjectPolicy, ResourcesExpr, ResourcesPolicy, ShareVolumeType, SidecarContainer,
            UpgradeType,
        },
        v1beta1::SidecarSet,
    },
};
use regex::Regex;
use serde_json::{Value, json};

use super::{
    super::{
        containers::{Sidecar, Upgrade, containers, init_containers, twins},
        formula::{Formula, Resource},
    },
    Violations,
};

pub(super) fn check(found: &mut Violations, new: &Value, set: &SidecarSet) {
    let spec = &set.spec;
    if spec.init_containers.is_empty() && spec.containers.is_empty() {
        found.push(Violation::required("spec", "no initContainer or container defined for SidecarSet"));
        return;
    }
    for (index, container) in spec.init_containers.iter().enumerate() {
        if let Some(policy) = &container.resources_policy {
            let path = format!("spec[{index}].resourcesPolicy");
            if !Sidecar::of(container).is_native {
                let detail = "resourcesPolicy is only supported for containers with RestartPolicy Always";
                found.push(Violation::invalid(path.as_str(), shown(policy), detail));
            }
            resources(found, container, policy, &path);
        }
    }
    for (index, container) in spec.containers.iter().enumerate() {
        policies(found, container);
        for transfer in &container.transfer_env {
            let field = transfer.source_container_name_from.as_ref().and_then(|from| from.field_ref.as_ref());
            if let Some(field) = field {
                source(found, field, &format!("spec[{index}].transferEnv.fieldRef"));
            }
        }
        if let Some(policy) = &container.resources_policy {
            resources(found, container, policy, &format!("spec[{index}].resourcesPolicy"));
        }
    }
    as_a_pod(found, new);
    upgrades(found, set);
}

fn shown(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn policies(found: &mut Violations, container: &SidecarContainer) {
    let place = container.pod_inject_policy.as_ref();
    if !matches!(place, Some(PodInjectPolicy::BeforeAppContainer | PodInjectPolicy::AfterAppContainer)) {
        let given = place.map_or("", PodInjectPolicy::as_str);
        found.push(Violation::invalid(
            "spec.container.podInjectPolicy",
            given,
            "unsupported pod inject policy",
        ));
    }
    let share = container.share_volume_policy.as_ref();
    let kind = share.and_then(|share| share.kind.as_ref());
    if !matches!(kind, Some(ShareVolumeType::Enabled | ShareVolumeType::Disabled)) {
        let detail = "unsupported share volume policy";
        found.push(Violation::invalid("spec.container.shareVolumePolicy", shown(share), detail));
    }
    let devices = container.share_volume_device_policy.as_ref().and_then(|share| share.kind.as_ref());
    if let Some(ShareVolumeType::Other(kind)) = devices.filter(|kind| !kind.as_str().is_empty()) {
        let path = "spec.container.shareVolumeDevicePolicy.type";
        found.push(Violation::not_supported(path, kind.as_str(), ShareVolumeType::KNOWN));
    }
}

/// Where the name of a container is read: a label or an annotation.
fn source(found: &mut Violations, field: &FieldRef, path: &str) {
    let version = field.api_version.as_deref().unwrap_or_default();
    let field = field.field_path.as_str();
    if version.is_empty() {
        found.push(Violation::required(format!("{path}.apiVersion"), ""));
        return;
    }
    if field.is_empty() {
        found.push(Violation::required(format!("{path}.fieldPath"), ""));
        return;
    }
    let subscript = field.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    let problem = match subscript {
        _ if version != "v1" => format!("unsupported pod version: {version}"),
        Some((owner @ ("metadata.labels" | "metadata.annotations"), key)) => {
            let broken = match owner {
                "metadata.labels" => qualified_name(key),
                _ => qualified_name(&key.to_lowercase()),
            };
            found.extend(broken.into_iter().map(|rule| Violation::invalid(path, key, rule)));
            return;
        }
        Some((owner, _)) => format!("field path not supported: {owner}"),
        None => format!("field label not supported: {field}"),
    };
    let detail = format!("error converting fieldPath: {problem}");
    found.push(Violation::invalid(format!("{path}.fieldPath"), field, detail));
}

fn resources(found: &mut Violations, container: &SidecarContainer, policy: &ResourcesPolicy, path: &str) {
    let has = |kind: &str| {
        let list = container.container.get("resources").and_then(|resources| resources.get(kind));
        list.and_then(Value::as_object).is_some_and(|list| !list.is_empty())
    };
    if has("limits") || has("requests") {
        let detail = "resourcesPolicy and resources cannot be configured together";
        found.push(Violation::invalid(path, shown(policy), detail));
        return;
    }
    let pattern = policy.target_containers_name_regex.as_deref().unwrap_or_default();
    let at = format!("{path}.targetContainersNameRegex");
    if pattern.is_empty() {
        found.push(Violation::required(at, "invalid empty regex"));
    } else if let Err(error) = Regex::new(pattern) {
        let detail = format!("invalid regex pattern: error parsing regexp: {}: `{pattern}`", reason(&error));
        found.push(Violation::invalid(at, pattern, detail));
    }
    let ResourcesExpr { limits, requests } = &policy.resources_expr;
    let path = format!("{path}.resourcesExpr");
    if limits.is_none() && requests.is_none() {
        let detail = "at least one of limits or requests must be configured";
        found.push(Violation::invalid(path, shown(&policy.resources_expr), detail));
        return;
    }
    for (kind, formulas) in [("limits", limits), ("requests", requests)] {
        let Some(formulas) = formulas else { continue };
        for (resource, text) in [(Resource::Cpu, &formulas.cpu), (Resource::Memory, &formulas.memory)] {
            let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else { continue };
            if let Err(error) = Formula::parse(text, resource).and_then(|formula| formula.check()) {
                let path = format!("{path}.{kind}.{}", resource.name());
                found.push(Violation::invalid(path, text, format!("invalid expression: {error}")));
            }
        }
    }
}

/// What is wrong with a regular expression, in one line; the common mistakes in the words of the original.
pub(super) fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    match last.strip_prefix("error: ").unwrap_or(last) {
        "unclosed group" => "missing closing )",
        "unopened group" => "unexpected )",
        "unclosed character class" => "missing closing ]",
        "repetition operator missing expression" => "missing argument to repetition operator",
        other => other,
    }
    .to_owned()
}

/// The rules that Kubernetes has for the containers and volumes of a pod.
fn as_a_pod(found: &mut Violations, new: &Value) {
    let list = |name: &str| json::at(new, &["spec", name]).cloned().unwrap_or_else(|| json!([]));
    let mut pod = json!({"spec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "containers": list("containers"),
        "initContainers": list("initContainers"),
        "volumes": list("volumes"),
    }});
    for list in ["containers", "initContainers"] {
        // Startup probes of a set get no defaults, but those of a pod do: it is judged as it will be.
        for container in json::items_mut(&mut pod, &["spec", list]) {
            defaults::container(container, &defaults::Options::KUBERNETES);
        }
    }
    let nobody = list("containers").as_array().is_none_or(Vec::is_empty);
    if nobody {
        // A pod must have a container, a set need not.
        let mut stand_in = json!({"name": "test", "image": "busybox"});
        defaults::container(&mut stand_in, &defaults::Options::KUBERNETES);
        json::set(&mut pod, &["spec", "containers"], json!([stand_in]));
    }
    found.extend(validation::pod(&pod));
}

/// Upgrades that could not work: the original lets them pass, and pods break.
fn upgrades(found: &mut Violations, set: &SidecarSet) {
    let lists = [("initContainers", &set.spec.init_containers), ("containers", &set.spec.containers)];
    let names: Vec<&str> = init_containers(set).chain(containers(set)).map(|sidecar| sidecar.name).collect();
    for (list, containers) in lists {
        for (index, container) in containers.iter().enumerate() {
            let path = format!("spec.{list}[{index}]");
            let strategy = container.upgrade_strategy.as_ref();
            let kind = strategy.and_then(|strategy| strategy.upgrade_type.as_ref());
            if let Some(UpgradeType::Other(kind)) = kind.filter(|kind| !kind.as_str().is_empty()) {
                let path = format!("{path}.upgradeStrategy.upgradeType");
                found.push(Violation::not_supported(path, kind.as_str(), UpgradeType::KNOWN));
            }
            let sidecar = Sidecar::of(container);
            let Upgrade::Hot { empty_image } = sidecar.upgrade else { continue };
            if empty_image.is_empty() {
                let path = format!("{path}.upgradeStrategy.hotUpgradeEmptyImage");
                found.push(Violation::required(path, "HotUpgrade needs the image of the idle container"));
            }
            // A name that is broken itself was told already.
            if !dns_label(sidecar.name).is_empty() {
                continue;
            }
            for twin in twins(sidecar.name) {
                let path = format!("{path}.name");
                let broken = dns_label(&twin).into_iter();
                found.extend(broken.map(|rule| Violation::invalid(path.as_str(), twin.as_str(), rule)));
                if names.contains(&twin.as_str()) {
                    found.push(Violation::duplicate(path, twin));
                }
            }
        }
    }
}

/// What must stay when a set changes.
pub(super) fn changed(found: &mut Violations, set: &SidecarSet, stored: &SidecarSet) {
    fn kind(container: &SidecarContainer) -> Option<&UpgradeType> {
        let kind = container.upgrade_strategy.as_ref().and_then(|strategy| strategy.upgrade_type.as_ref());
        kind.filter(|kind| !kind.as_str().is_empty())
    }
    for container in &set.spec.containers {
        let name = Sidecar::of(container).name;
        let before = stored.spec.containers.iter().rfind(|before| Sidecar::of(before).name == name);
        let Some(before) = before else {
            let detail = format!("container {name} is not found");
            found.push(Violation::invalid("spec.containers.name", name, detail));
            continue;
        };
        if kind(before).is_some() && kind(before) != kind(container) {
            let path = "spec.containers.upgradeStrategy.upgradeType";
            found.push(Violation::invalid(path, name, format!("container {name} upgradeType is immutable")));
        }
    }
}
