//! What one object counts for, by the names that quotas have for it.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::json::pointer as at;
use kruise_api::kubernetes::quantity::Quantity;
use kruise_api::kubernetes::validation::qos_class;
use serde_json::{Map, Value};

/// Kinds that may be counted by their plain plural too.
const PLAIN: [&str; 7] = [
    "pods",
    "services",
    "secrets",
    "configmaps",
    "resourcequotas",
    "replicationcontrollers",
    "persistentvolumeclaims",
];

/// The table whose objects a limit is about.
pub(super) fn table(key: &str) -> Option<String> {
    if let Some(counted) = key.strip_prefix("count/") {
        return Some(match counted.split_once('.') {
            Some((plural, group)) => format!("{group}/{plural}"),
            None => format!("/{counted}"),
        });
    }
    let claims = key == "requests.storage" || key.contains(".storageclass.storage.k8s.io/");
    Some(match key {
        _ if PLAIN.contains(&key) => format!("/{key}"),
        "services.nodeports" | "services.loadbalancers" => "/services".to_owned(),
        _ if claims => "/persistentvolumeclaims".to_owned(),
        "cpu" | "memory" | "ephemeral-storage" => "/pods".to_owned(),
        _ if key.starts_with("requests.") || key.starts_with("limits.") => "/pods".to_owned(),
        _ if key.starts_with("hugepages-") => "/pods".to_owned(),
        _ => return None,
    })
}

/// How much of a limit an object of a table takes.
pub(super) fn amount(key: &str, of: &str, object: &Value) -> Option<Quantity> {
    if table(key).as_deref() != Some(of) || (of == "/pods" && has_ended(object)) {
        return None;
    }
    let one = Quantity::from_integer(1);
    if key.starts_with("count/") || PLAIN.contains(&key) {
        return Some(one);
    }
    let text = |path: &str| at(object, path).and_then(Value::as_str).unwrap_or_default();
    match of {
        "/services" => {
            let kind = text("/spec/type");
            if key == "services.loadbalancers" {
                return (kind == "LoadBalancer").then_some(one);
            }
            let ports = at(object, "/spec/ports").and_then(Value::as_array).map_or(0, Vec::len);
            let ports = i64::try_from(ports).unwrap_or(0);
            matches!(kind, "NodePort" | "LoadBalancer").then(|| Quantity::from_integer(ports))
        }
        "/persistentvolumeclaims" => {
            let class = text("/spec/storageClassName");
            let rest = match key.split_once(".storageclass.storage.k8s.io/") {
                Some((wanted, rest)) => (wanted == class).then_some(rest)?,
                None => key,
            };
            if rest == "persistentvolumeclaims" {
                return Some(one);
            }
            Quantity::from_json(at(object, "/spec/resources/requests/storage")?).ok()
        }
        _ => pod_amount(key, object),
    }
}

/// What the containers of a pod ask for: all together, or one before the others if that is more.
fn pod_amount(key: &str, pod: &Value) -> Option<Quantity> {
    let (part, resource) = match key.split_once('.') {
        Some((part @ ("requests" | "limits"), resource)) => (part, resource),
        _ => ("requests", key),
    };
    let ask = |container: &Value| {
        let resources = container.get("resources")?.get(part)?.get(resource)?;
        Quantity::from_json(resources).ok()
    };
    let containers = |list: &str| at(pod, list).and_then(Value::as_array).cloned().unwrap_or_default();
    let (sidecars, first): (Vec<Value>, Vec<Value>) = containers("/spec/initContainers")
        .into_iter()
        .partition(|one| one.get("restartPolicy").and_then(Value::as_str) == Some("Always"));
    let together = containers("/spec/containers")
        .iter()
        .chain(&sidecars)
        .filter_map(ask)
        .reduce(|sum, one| sum.plus(&one));
    together.into_iter().chain(first.iter().filter_map(ask)).max()
}

fn has_ended(pod: &Value) -> bool {
    matches!(at(pod, "/status/phase").and_then(Value::as_str), Some("Failed" | "Succeeded"))
}

/// What containers have to say because a quota limits it, and do not: `cpu for: a,b; memory for: a`.
pub(super) fn missing(hard: &Map<String, Value>, of: &str, object: &Value) -> Option<String> {
    if of != "/pods" {
        return None;
    }
    let mut lacking: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for key in hard.keys() {
        let (part, resource) = match key.split_once('.') {
            Some((part @ ("requests" | "limits"), resource)) => (part, resource),
            _ => ("requests", key.as_str()),
        };
        if !matches!(resource, "cpu" | "memory") {
            continue;
        }
        let lists = ["/spec/containers", "/spec/initContainers"];
        let containers = lists.iter().filter_map(|list| at(object, list)?.as_array()).flatten();
        for container in containers {
            if container.get("resources").and_then(|all| all.get(part)?.get(resource)).is_none() {
                let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
                lacking.entry(key).or_default().insert(name);
            }
        }
    }
    let texts: Vec<String> = lacking
        .into_iter()
        .map(|(key, names)| format!("{key} for: {}", names.into_iter().collect::<Vec<_>>().join(",")))
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Whether the scopes of a quota include an object. Only pods have any.
pub(super) fn covers(quota: &Value, of: &str, object: &Value) -> bool {
    let scopes = at(quota, "/spec/scopes").and_then(Value::as_array).into_iter().flatten();
    let expressions = at(quota, "/spec/scopeSelector/matchExpressions").and_then(Value::as_array);
    let mut scopes = scopes.filter_map(Value::as_str).peekable();
    let mut expressions = expressions.into_iter().flatten().peekable();
    if of != "/pods" {
        return scopes.peek().is_none() && expressions.peek().is_none();
    }
    scopes.all(|scope| in_scope(scope, object))
        && expressions.all(|expression| {
            let text = |key: &str| expression.get(key).and_then(Value::as_str).unwrap_or_default();
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let class = at(object, "/spec/priorityClassName").and_then(Value::as_str).unwrap_or_default();
            let mut values = values.filter_map(Value::as_str);
            match (text("scopeName"), text("operator")) {
                ("PriorityClass", "In") => values.any(|value| value == class),
                ("PriorityClass", "NotIn") => values.all(|value| value != class),
                ("PriorityClass", "DoesNotExist") => class.is_empty(),
                ("PriorityClass", _) => !class.is_empty(),
                (scope, "DoesNotExist") => !in_scope(scope, object),
                (scope, _) => in_scope(scope, object),
            }
        })
}

fn in_scope(scope: &str, pod: &Value) -> bool {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let ends = spec.get("activeDeadlineSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds >= 0);
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => qos_class(spec) == "BestEffort",
        "NotBestEffort" => qos_class(spec) != "BestEffort",
        "PriorityClass" => {
            spec.get("priorityClassName").and_then(Value::as_str).is_some_and(|name| !name.is_empty())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Value {
        let resources =
            |cpu: &str| json!({"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"cpu": cpu}});
        json!({"spec": {
            "containers": [{"name": "a", "resources": resources("100m")}, {"name": "b", "resources": resources("200m")}],
            "initContainers": [{"name": "i", "resources": resources("500m")}],
        }})
    }

    #[test]
    fn pods_count_for_what_their_containers_ask_for() {
        let of = |key: &str| amount(key, "/pods", &pod()).map(|amount| amount.to_string());
        assert_eq!(
            of("cpu").as_deref(),
            Some("500m"),
            "the first container needs more than the others together"
        );
        assert_eq!(of("requests.memory").as_deref(), Some("128Mi"));
        assert_eq!(of("limits.cpu").as_deref(), Some("500m"));
        assert_eq!(of("limits.memory"), None);
        assert_eq!(of("count/pods").as_deref(), Some("1"));
        assert_eq!(of("services"), None);
        let mut ended = pod();
        ended["status"] = json!({"phase": "Succeeded"});
        assert_eq!(amount("pods", "/pods", &ended), None);
    }

    #[test]
    fn claims_and_services_count_by_their_own_names() {
        let claim =
            json!({"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}}});
        let of = |key: &str| amount(key, "/persistentvolumeclaims", &claim).map(|amount| amount.to_string());
        assert_eq!(of("requests.storage").as_deref(), Some("5Gi"));
        assert_eq!(of("fast.storageclass.storage.k8s.io/requests.storage").as_deref(), Some("5Gi"));
        assert_eq!(of("slow.storageclass.storage.k8s.io/requests.storage"), None);
        let service = json!({"spec": {"type": "NodePort", "ports": [{}, {}]}});
        assert_eq!(
            amount("services.nodeports", "/services", &service).map(|a| a.to_string()).as_deref(),
            Some("2")
        );
        assert_eq!(amount("services.loadbalancers", "/services", &service), None);
        assert_eq!(table("count/deployments.apps").as_deref(), Some("apps/deployments"));
    }

    #[test]
    fn scopes_choose_pods_and_limits_want_to_be_spoken_of() {
        let quota = |scope: &str| json!({"spec": {"scopes": [scope]}});
        assert!(covers(&quota("NotBestEffort"), "/pods", &pod()));
        assert!(!covers(&quota("BestEffort"), "/pods", &pod()));
        assert!(covers(&quota("NotTerminating"), "/pods", &pod()));
        assert!(!covers(&quota("BestEffort"), "/services", &json!({})));
        let high = json!({"spec": {"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}});
        assert!(!covers(&high, "/pods", &pod()));
        let hard = json!({"limits.memory": "1Gi", "cpu": "1", "pods": "3"});
        let missing = missing(hard.as_object().unwrap(), "/pods", &pod());
        assert_eq!(missing.as_deref(), Some("limits.memory for: a,b,i"));
    }
}
