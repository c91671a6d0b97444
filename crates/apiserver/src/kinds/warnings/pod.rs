//! Pods and their templates.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::kubernetes::quantity::Quantity;
use serde_json::Value;

use super::super::object::{entries, get, integer, list, text};
use super::{NULL, annotation};
use crate::field::quote;
use crate::selector::syntax;

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Labels of nodes that have better names by now.
const NODE_LABELS: &[(&str, &str)] = &[
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
];

const ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

const VOLUMES: &[(&str, &str)] = &[
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Warns about a pod, whose path is empty, or a template at a path.
pub(super) fn warn(found: &mut Vec<String>, path: &str, pod: &Value) {
    let root = if path.is_empty() { String::new() } else { format!("{path}.") };
    let spec = pod.get("spec").unwrap_or(NULL);
    let at = format!("{root}spec");
    placement(found, &at, spec);
    for (key, why) in ANNOTATIONS {
        if annotation(pod, key).is_some() {
            found.push(format!("{root}metadata.annotations[{key}]: {why}"));
        }
    }
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        for (key, why) in VOLUMES.iter().filter(|(key, _)| get(volume, key).is_some()) {
            // The path has the name of the field in the server, not that on the wire.
            let key = if *key == "storageos" { "storageOS" } else { key };
            found.push(format!("{at}.volumes[{index}].{key}: {why}"));
        }
    }
    repeated(found, &format!("{at}.hostAliases"), list(spec, "hostAliases"), "ip");
    let secrets = list(spec, "imagePullSecrets");
    repeated(found, &format!("{at}.imagePullSecrets"), secrets, "name");
    for (index, _) in secrets.iter().enumerate().filter(|(_, secret)| text(secret, "name").is_empty()) {
        found.push(format!("{at}.imagePullSecrets[{index}].name: invalid empty name \"\""));
    }
    fractions(found, &format!("{at}.overhead"), spec.get("overhead"));
    let has_seccomp = |owner: &Value| owner.pointer("/securityContext/seccompProfile").is_some();
    let seccomp = |key: &str| {
        format!(
            "{root}metadata.annotations[{key}]: non-functional in v1.27+; use the \"seccompProfile\" field instead"
        )
    };
    if annotation(pod, SECCOMP_POD).is_some() && !has_seccomp(spec) {
        found.push(seccomp(SECCOMP_POD));
    }
    let containers: Vec<(String, &Value)> = ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|part| {
            let numbered = list(spec, part).iter().enumerate();
            numbered
                .map(|(index, container)| (format!("{at}.{part}[{index}]"), container))
                .collect::<Vec<_>>()
        })
        .collect();
    for (at, container) in &containers {
        let name = text(container, "name");
        let key = format!("{SECCOMP_CONTAINER}{name}");
        if annotation(pod, &key).is_some() && !has_seccomp(container) {
            found.push(seccomp(&key));
        }
        let key = format!("{APP_ARMOR}{name}");
        let has_profile = |owner: &Value| owner.pointer("/securityContext/appArmorProfile").is_some();
        // A profile of the whole pod may say the same.
        if !path.is_empty()
            && annotation(pod, &key).is_some()
            && !has_profile(container)
            && !has_profile(spec)
        {
            found.push(format!(
                "{root}metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
            ));
        }
        let resources = container.get("resources").unwrap_or(NULL);
        for name in ["memory", "ephemeral-storage"] {
            for part in ["limits", "requests"] {
                fraction(found, &format!("{at}.resources.{part}"), resources.get(part), name);
            }
        }
        hidden_variables(found, at, container);
    }
    ports(found, &containers);
    if integer(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        found.push(format!("{at}.terminationGracePeriodSeconds: {why}"));
    }
    affinity(found, &format!("{at}.affinity"), spec.get("affinity").unwrap_or(NULL));
}

fn better_label(key: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(old, _)| *old == key).map(|(_, why)| *why)
}

/// Which nodes are wanted.
fn placement(found: &mut Vec<String>, at: &str, spec: &Value) {
    for (key, _) in entries(spec, "nodeSelector") {
        found.extend(better_label(key).map(|why| format!("{at}.nodeSelector[{key}]: {why}")));
    }
    let affinity = spec.pointer("/affinity/nodeAffinity").unwrap_or(NULL);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    for (index, term) in list(affinity.get(required).unwrap_or(NULL), "nodeSelectorTerms").iter().enumerate()
    {
        let at = format!("{at}.affinity.nodeAffinity.{required}.nodeSelectorTerms[{index}]");
        node_term(found, &at, term, false);
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for (index, term) in list(affinity, preferred).iter().enumerate() {
        let at = format!("{at}.affinity.nodeAffinity.{preferred}[{index}].preference");
        node_term(found, &at, term.get("preference").unwrap_or(NULL), true);
    }
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let at = format!("{at}.topologySpreadConstraints[{index}]");
        let key = text(constraint, "topologyKey");
        found.extend(better_label(key).map(|why| format!("{at}.topologyKey: {key} is {why}")));
        selects_nothing(found, &at, constraint);
    }
}

fn node_term(found: &mut Vec<String>, at: &str, term: &Value, are_values_checked: bool) {
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let at = format!("{at}.matchExpressions[{index}]");
        let key = text(expression, "key");
        found.extend(better_label(key).map(|why| format!("{at}.key: {key} is {why}")));
        let values = list(expression, "values").iter().filter(|_| are_values_checked);
        for (index, value) in values.filter_map(Value::as_str).enumerate() {
            let broken = syntax::label_value(value);
            found.extend(broken.iter().map(|why| format!("{at}.values[{index}]: {value} is invalid, {why}")));
        }
    }
}

fn selects_nothing(found: &mut Vec<String>, at: &str, term: &Value) {
    if get(term, "labelSelector").is_none() {
        found.push(format!("{at}.labelSelector: a null labelSelector results in matching no pod"));
    }
}

fn affinity(found: &mut Vec<String>, at: &str, affinity: &Value) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = affinity.get(kind).unwrap_or(NULL);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in list(terms, required).iter().enumerate() {
            selects_nothing(found, &format!("{at}.{kind}.{required}[{index}]"), term);
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in list(terms, preferred).iter().enumerate() {
            let at = format!("{at}.{kind}.{preferred}[{index}].podAffinityTerm");
            selects_nothing(found, &at, term.get("podAffinityTerm").unwrap_or(NULL));
        }
    }
}

/// Lists that are merged by a key lose items with the same key.
fn repeated(found: &mut Vec<String>, at: &str, items: &[Value], key: &str) {
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let name = text(item, key);
        if !seen.insert(name) {
            found.push(format!("{at}[{index}].{key}: duplicate {key} {}", quote(name)));
        }
    }
}

fn fractions(found: &mut Vec<String>, at: &str, resources: Option<&Value>) {
    for name in ["memory", "ephemeral-storage"] {
        fraction(found, at, resources, name);
    }
}

/// There is no part of a byte.
fn fraction(found: &mut Vec<String>, at: &str, resources: Option<&Value>, name: &str) {
    let quantity = resources.and_then(|resources| resources.get(name));
    let Some(quantity) = quantity.and_then(|quantity| Quantity::from_json(quantity).ok()) else { return };
    if quantity.millis() % 1000 != 0 {
        let shown = quote(&quantity.to_string());
        found.push(format!("{at}[{name}]: fractional byte value {shown} is invalid, must be an integer"));
    }
}

/// A variable that comes again is fine if it only adds to what it was.
fn hidden_variables(found: &mut Vec<String>, at: &str, container: &Value) {
    let mut seen = BTreeSet::new();
    for (index, variable) in list(container, "env").iter().enumerate() {
        let name = text(variable, "name");
        if seen.insert(name) {
            continue;
        }
        let (value, reference) = (text(variable, "value"), format!("$({name})"));
        if get(variable, "valueFrom").is_some() || value == reference || !value.contains(&reference) {
            let name = quote(name);
            found.push(format!(
                "{at}.env[{index}]: hides previous definition of {name}, which may be dropped when using apply"
            ));
        }
    }
}

/// A port of a container, and where it stands.
struct Port<'p> {
    at: String,
    host_ip: &'p str,
    host_port: i64,
}

fn ports(found: &mut Vec<String>, containers: &[(String, &Value)]) {
    let all = || {
        containers.iter().flat_map(|(at, container)| {
            let numbered = list(container, "ports").iter().enumerate();
            numbered.map(move |(index, port)| (format!("{at}.ports[{index}]"), port))
        })
    };
    let mut known: BTreeMap<(i64, &str), Vec<Port<'_>>> = BTreeMap::new();
    for (at, port) in all() {
        let (number, protocol) = (integer(port, "containerPort").unwrap_or(0), text(port, "protocol"));
        let (host_ip, host_port) = (text(port, "hostIP"), integer(port, "hostPort").unwrap_or(0));
        if !host_ip.is_empty() && host_port == 0 {
            found.push(format!(
                "{at}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{number} Protocol:{protocol} \
                 HostIP:{host_ip}}}",
                text(port, "name")
            ));
        }
        let others = known.entry((number, protocol)).or_default();
        for other in others.iter() {
            let same_port = host_port == other.host_port;
            let how = if same_port && host_ip == other.host_ip {
                "duplicate"
            } else if host_port == 0 || other.host_port == 0 {
                "overlapping"
            } else if same_port && host_ip.is_empty() != other.host_ip.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            found.push(format!("{at}: {how} port definition with {}", other.at));
        }
        others.push(Port { at, host_ip, host_port });
    }
    let mut named: BTreeMap<&str, String> = BTreeMap::new();
    for (at, port) in all() {
        let name = text(port, "name");
        match named.get(name) {
            _ if name.is_empty() => {}
            Some(other) => found.push(format!(
                "{at}: duplicate port name {} with {other}, services and probes that select ports by name will use \
                 {other}",
                quote(name)
            )),
            None => drop(named.insert(name, at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(path: &str, pod: &Value, expected: &[&str]) {
        let mut found = Vec::new();
        warn(&mut found, path, pod);
        assert_eq!(found, expected, "{pod}");
    }

    #[test]
    fn what_has_a_better_name_is_told() {
        let expression = json!({"matchExpressions": [{"key": "beta.kubernetes.io/arch", "values": ["-"]}]});
        let pod = json!({
            "metadata": {"annotations": {
                "scheduler.alpha.kubernetes.io/critical-pod": "", "seccomp.security.alpha.kubernetes.io/pod": "a",
                "container.seccomp.security.alpha.kubernetes.io/c": "a", "container.apparmor.security.beta.kubernetes.io/c": "a",
            }},
            "spec": {
                "nodeSelector": {"beta.kubernetes.io/os": "linux", "kubernetes.io/os": "linux"},
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [expression]}}},
                "topologySpreadConstraints": [{"topologyKey": "node-role.kubernetes.io/master"}],
                "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "rbd": {}}],
                "containers": [{"name": "c"}],
            },
        });
        let annotations = "spec.template.metadata.annotations";
        check(
            "spec.template",
            &pod,
            &[
                "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" \
                 instead",
                "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms\
                 [0].matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use \"kubernetes.io/arch\" \
                 instead",
                "spec.template.spec.topologySpreadConstraints[0].topologyKey: node-role.kubernetes.io/master is use \
                 \"node-role.kubernetes.io/control-plane\" instead",
                "spec.template.spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no \
                 pod",
                &format!(
                    "{annotations}[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the \
                     \"priorityClassName\" field instead"
                ),
                "spec.template.spec.volumes[1].rbd: deprecated in v1.28, non-functional in v1.31+",
                &format!(
                    "{annotations}[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the \
                     \"seccompProfile\" field instead"
                ),
                &format!(
                    "{annotations}[container.seccomp.security.alpha.kubernetes.io/c]: non-functional in v1.27+; use the \
                     \"seccompProfile\" field instead"
                ),
                &format!(
                    "{annotations}[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the \
                     \"appArmorProfile\" field instead"
                ),
            ],
        );
    }

    #[test]
    fn what_is_there_twice_is_told() {
        let env = json!([
            {"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"},
            {"name": "A", "valueFrom": {}},
        ]);
        let port = |more: Value| {
            let mut port = json!({"containerPort": 80, "protocol": "TCP"});
            json_patch::merge(&mut port, &more);
            port
        };
        let first = [port(json!({"name": "web"})), port(json!({}))];
        let second = [
            port(json!({"hostPort": 80, "name": "web"})),
            port(json!({"containerPort": 81, "hostIP": "1.2.3.4"})),
        ];
        let pod = json!({"spec": {
            "hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}],
            "imagePullSecrets": [{"name": "a"}, {"name": "a"}, {"name": ""}],
            "containers": [{"name": "c", "env": env, "ports": first}, {"name": "d", "ports": second}],
        }});
        check(
            "",
            &pod,
            &[
                "spec.hostAliases[1].ip: duplicate ip \"1.1.1.1\"",
                "spec.imagePullSecrets[1].name: duplicate name \"a\"",
                "spec.imagePullSecrets[2].name: invalid empty name \"\"",
                "spec.containers[0].env[2]: hides previous definition of \"A\", which may be dropped when using apply",
                "spec.containers[0].env[3]: hides previous definition of \"A\", which may be dropped when using apply",
                "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
                "spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[0]",
                "spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[1]",
                "spec.containers[1].ports[1]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:81 Protocol:TCP \
                 HostIP:1.2.3.4}",
                "spec.containers[1].ports[0]: duplicate port name \"web\" with spec.containers[0].ports[0], services and \
                 probes that select ports by name will use spec.containers[0].ports[0]",
            ],
        );
    }

    #[test]
    fn what_means_nothing_is_told() {
        let preferred = json!([{"weight": 1, "podAffinityTerm": {"topologyKey": "a"}}]);
        let pod = json!({"spec": {
            "overhead": {"memory": "100m"}, "terminationGracePeriodSeconds": -1,
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
            "containers": [{"name": "c", "resources": {"limits": {"memory": "1500m", "cpu": "1500m"}}}],
        }});
        check(
            "",
            &pod,
            &[
                "spec.overhead[memory]: fractional byte value \"100m\" is invalid, must be an integer",
                "spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is invalid, must be an integer",
                "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.\
                 labelSelector: a null labelSelector results in matching no pod",
            ],
        );
    }
}
