//! Rules of whole pod specs.

use super::container::{self, Pod};
use super::names;
use super::scheduling;
use super::volume::Volumes;
use super::{Violation, Violations, each, get, list, number, one_of, text};
use serde_json::Value;

/// What the caller knows about the pods a template makes.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Volumes that will be added later, such as those of claim templates.
    pub extra_volumes: Vec<String>,
}

/// What is wrong with a new pod, besides its metadata.
pub fn pod(pod: &Value) -> Violations {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let mut found = pod_spec(spec, "spec", &Options::default());
    images_without_blanks(&mut found, spec, "spec");
    if !list(spec, "ephemeralContainers").is_empty() {
        found.push(Violation::forbidden("spec.ephemeralContainers", "cannot be set on create"));
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        found.push(Violation::forbidden("spec.nodeName", detail));
    }
    found
}

/// What is wrong with a pod template at `path` (`spec.template`).
pub fn pod_template_spec(template: &Value, path: &str, options: &Options) -> Violations {
    let mut found = Violations::new();
    let metadata = template.get("metadata").unwrap_or(&Value::Null);
    container::labels(&mut found, metadata, "labels", &format!("{path}.labels"));
    for (key, _) in super::entries(metadata, "annotations") {
        each(&mut found, &format!("{path}.annotations"), key, names::qualified_name(&key.to_lowercase()));
    }
    let spec = template.get("spec").unwrap_or(&Value::Null);
    found.extend(judged(spec, &format!("{path}.spec"), options, Carrier::Template));
    if !list(spec, "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        found.push(Violation::forbidden(format!("{path}.spec.ephemeralContainers"), detail));
    }
    found
}

/// What is wrong with a pod spec at `path`.
pub fn pod_spec(spec: &Value, path: &str, options: &Options) -> Violations {
    judged(spec, path, options, Carrier::Pod)
}

/// What a pod spec stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    Pod,
    /// Its pods get defaults of their own when they are made.
    Template,
}

fn judged(spec: &Value, path: &str, options: &Options, carrier: Carrier) -> Violations {
    let mut found = Violations::new();
    let at = |member: &str| format!("{path}.{member}");
    if get(spec, "terminationGracePeriodSeconds").is_none() {
        found.push(Violation::required(at("terminationGracePeriodSeconds"), ""));
    }
    let volumes = Volumes::check(&mut found, spec, &options.extra_volumes, &at("volumes"));
    let restart_policy = text(spec, "restartPolicy");
    let pod = Pod { volumes: &volumes, grace: number(spec, "terminationGracePeriodSeconds"), restart_policy };
    container::containers(&mut found, &pod, list(spec, "containers"), &at("containers"));
    container::init_containers(&mut found, &pod, spec, &at("initContainers"));
    container::ephemeral_containers(&mut found, &pod, spec, &at("ephemeralContainers"));
    container::host_network(&mut found, spec, path, carrier);
    one_of(&mut found, at("restartPolicy"), restart_policy, &["Always", "OnFailure", "Never"]);
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(&mut found, at("dnsPolicy"), text(spec, "dnsPolicy"), &dns);
    scheduling::check(&mut found, spec, path);
    for member in ["serviceAccountName", "nodeName", "priorityClassName"] {
        let name = text(spec, member);
        if !name.is_empty() {
            each(&mut found, &at(member), name, names::dns_subdomain(name));
        }
    }
    if let Some(deadline) = get(spec, "activeDeadlineSeconds").and_then(Value::as_i64)
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        let detail = format!("must be between 1 and {}, inclusive", i32::MAX);
        found.push(Violation::invalid(at("activeDeadlineSeconds"), deadline, detail));
    }
    for member in ["hostname", "subdomain"] {
        let name = text(spec, member);
        if !name.is_empty() {
            each(&mut found, &at(member), name, names::dns_label(name));
        }
    }
    scheduling::tolerations(&mut found, spec, path);
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let ip = text(alias, "ip");
        if ip.parse::<std::net::IpAddr>().is_err() {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            found.push(Violation::invalid(format!("{path}.hostAliases[{index}].ip"), ip, detail));
        }
    }
    if let Some(policy) = get(spec, "preemptionPolicy").and_then(Value::as_str) {
        one_of(&mut found, at("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"]);
    }
    found
}

/// Pods refuse blanks around images; templates allow them for historical reasons.
fn images_without_blanks(found: &mut Violations, spec: &Value, path: &str) {
    for kind in ["containers", "initContainers"] {
        for (index, container) in list(spec, kind).iter().enumerate() {
            let image = text(container, "image");
            if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                found.push(Violation::invalid(format!("{path}.{kind}[{index}].image"), image, detail));
            }
        }
    }
}
