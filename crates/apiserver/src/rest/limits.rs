//! Limit ranges: what containers get that say nothing, and how much they, their pods and claims may ask for.

use std::collections::BTreeSet;

use kruise_api::json::pointer as at;
use kruise_api::kubernetes::quantity::Quantity;
use serde_json::{Map, Value, json};

use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::Status;

const MARK: &str = "kubernetes.io/limit-ranger";

/// The limits of a namespace, in the order of their names.
fn limits(server: &ApiServer, namespace: &str) -> Vec<Value> {
    let (_, ranges) = server.store().list("/limitranges", Some(namespace));
    let limits = ranges.iter().filter(|range| !range.deleting).flat_map(|range| {
        let range = range.value();
        at(&range, "/spec/limits").and_then(Value::as_array).cloned().unwrap_or_default()
    });
    limits.collect()
}

/// Gives containers of a new pod what they do not ask for.
pub(super) fn fill(server: &ApiServer, namespace: &str, pod: &mut Value) {
    let limits = limits(server, namespace);
    let mut said = Vec::new();
    for limit in limits.iter().filter(|limit| text(limit, "type") == "Container") {
        for (list, word) in [("containers", "container"), ("initContainers", "init container")] {
            let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(list)?.as_array_mut());
            for container in containers.into_iter().flatten() {
                said.extend(fill_container(limit, container, word));
            }
        }
    }
    if said.is_empty() {
        return;
    }
    let text = format!("LimitRanger plugin set: {}", said.join("; "));
    let Some(meta) = pod.as_object_mut().and_then(|pod| child(pod, "metadata")) else { return };
    if let Some(annotations) = child(meta, "annotations") {
        annotations.insert(MARK.to_owned(), json!(text));
    }
}

fn child<'m>(map: &'m mut Map<String, Value>, key: &str) -> Option<&'m mut Map<String, Value>> {
    map.entry(key).or_insert_with(|| json!({})).as_object_mut()
}

/// Fills requests and limits of one container; the words say what was set.
fn fill_container(limit: &Value, container: &mut Value, word: &str) -> Vec<String> {
    let name = text(container, "name").to_owned();
    let mut said = Vec::new();
    for (from, part, what) in [("defaultRequest", "requests", "request"), ("default", "limits", "limit")] {
        let Some(defaults) = limit.get(from).and_then(Value::as_object) else { continue };
        let own = container.get("resources").and_then(|resources| resources.get(part));
        let lacks = |resource: &str| own.is_none_or(|own| own.get(resource).is_none());
        let set: BTreeSet<&str> = defaults.keys().map(String::as_str).filter(|name| lacks(name)).collect();
        if set.is_empty() {
            continue;
        }
        let resources = container.as_object_mut().and_then(|container| child(container, "resources"));
        if let Some(own) = resources.and_then(|resources| child(resources, part)) {
            own.extend(
                defaults
                    .iter()
                    .filter(|(name, _)| set.contains(name.as_str()))
                    .map(|(k, v)| (k.clone(), v.clone())),
            );
        }
        let set: Vec<&str> = set.into_iter().collect();
        said.push(format!("{} {what} for {word} {name}", set.join(", ")));
    }
    said
}

/// Refuses a pod or a claim that asks for too much or too little.
pub(super) fn check(
    server: &ApiServer,
    resource: &Resource,
    namespace: &str,
    name: &str,
    object: &Value,
) -> Result<(), Status> {
    if !matches!(resource.table.as_ref(), "/pods" | "/persistentvolumeclaims") {
        return Ok(());
    }
    let found: Vec<String> =
        limits(server, namespace).iter().flat_map(|limit| faults(limit, &resource.table, object)).collect();
    let why = match found.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        more => format!("[{}]", more.join(", ")),
    };
    Err(Status::forbidden(resource.group_resource(), name, why))
}

/// What is wrong with an object by one limit.
fn faults(limit: &Value, table: &str, object: &Value) -> Vec<String> {
    let kind = text(limit, "type");
    let lists = ["/spec/containers", "/spec/initContainers"];
    let containers = || lists.iter().filter_map(|list| at(object, list)?.as_array()).flatten();
    match (kind, table) {
        ("Container", "/pods") => containers()
            .flat_map(|container| {
                let resources = container.get("resources").unwrap_or(&Value::Null);
                compare(limit, kind, &|part, name| Quantity::from_json(resources.get(part)?.get(name)?).ok())
            })
            .collect(),
        ("Pod", "/pods") => {
            let main = || at(object, "/spec/containers").and_then(Value::as_array).into_iter().flatten();
            compare(limit, kind, &|part, name| {
                let asked = main().filter_map(|container| {
                    Quantity::from_json(container.get("resources")?.get(part)?.get(name)?).ok()
                });
                asked.reduce(|sum, one| sum.plus(&one))
            })
        }
        ("PersistentVolumeClaim", "/persistentvolumeclaims") => {
            let asked = |name: &str| {
                let requests = at(object, "/spec/resources/requests")?;
                Quantity::from_json(requests.get(name)?).ok()
            };
            // A claim has requests only; they are its limits too.
            compare(limit, kind, &|_, name| asked(name))
        }
        _ => Vec::new(),
    }
}

/// What is asked for under `requests` or `limits`, by the name of a resource.
type Asked<'a> = &'a dyn Fn(&str, &str) -> Option<Quantity>;

fn compare(limit: &Value, kind: &str, asked: Asked<'_>) -> Vec<String> {
    let bounds = |key: &str| -> Vec<(String, Quantity)> {
        let map = limit.get(key).and_then(Value::as_object).into_iter().flatten();
        map.filter_map(|(name, value)| Some((name.clone(), Quantity::from_json(value).ok()?))).collect()
    };
    let mut found = Vec::new();
    for (name, least) in bounds("min") {
        let words = format!("minimum {name} usage per {kind} is {least}");
        match (asked("requests", &name), asked("limits", &name)) {
            (None, _) => found.push(format!("{words}.  No request is specified")),
            (Some(request), _) if request < least => found.push(format!("{words}, but request is {request}")),
            (_, Some(limit)) if limit < least => found.push(format!("{words}, but limit is {limit}")),
            _ => {}
        }
    }
    for (name, most) in bounds("max") {
        let words = format!("maximum {name} usage per {kind} is {most}");
        match (asked("requests", &name), asked("limits", &name)) {
            (_, None) => found.push(format!("{words}.  No limit is specified")),
            (_, Some(limit)) if limit > most => found.push(format!("{words}, but limit is {limit}")),
            (Some(request), _) if request > most => found.push(format!("{words}, but request is {request}")),
            _ => {}
        }
    }
    for (name, ratio) in bounds("maxLimitRequestRatio") {
        let words = format!("{name} max limit to request ratio per {kind} is {ratio}, but");
        let some = |part: &str| asked(part, &name).filter(|amount| !amount.is_zero());
        match (some("requests"), some("limits")) {
            (None, _) => found.push(format!("{words} no request is specified or request is 0")),
            (_, None) => found.push(format!("{words} no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                // Six digits behind the point, without floating point.
                let millionths = limit.nanos().saturating_mul(1_000_000) / request.nanos().max(1);
                if limit.nanos().saturating_mul(1_000_000_000) > ratio.nanos().saturating_mul(request.nanos())
                {
                    let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
                    found.push(format!("{words} provided ratio is {whole}.{rest:06}"));
                }
            }
        }
    }
    found
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(requests: Value, limits: Value) -> Value {
        json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests, "limits": limits}}]}})
    }

    #[track_caller]
    fn check(limit: Value, pod: &Value, expected: &[&str]) {
        assert_eq!(faults(&limit, "/pods", pod), expected);
    }

    #[test]
    fn containers_and_pods_stay_between_the_bounds() {
        let some = pod(json!({"cpu": "100m", "memory": "64Mi"}), json!({"cpu": "1"}));
        let limit = |kind: &str, key: &str, value: Value| json!({"type": kind, key: value});
        check(limit("Container", "min", json!({"cpu": "50m"})), &some, &[]);
        check(
            limit("Container", "min", json!({"cpu": "200m"})),
            &some,
            &["minimum cpu usage per Container is 200m, but request is 100m"],
        );
        check(
            limit("Container", "max", json!({"cpu": "500m", "memory": "1Gi"})),
            &some,
            &[
                "maximum cpu usage per Container is 500m, but limit is 1",
                "maximum memory usage per Container is 1Gi.  No limit is specified",
            ],
        );
        check(
            limit("Pod", "max", json!({"cpu": "500m"})),
            &some,
            &["maximum cpu usage per Pod is 500m, but limit is 1"],
        );
        check(
            limit("Container", "maxLimitRequestRatio", json!({"cpu": "4"})),
            &some,
            &["cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000"],
        );
        check(limit("PersistentVolumeClaim", "max", json!({"storage": "1Gi"})), &some, &[]);
    }

    #[test]
    fn containers_that_say_nothing_get_the_defaults() {
        let limit = json!({"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}});
        let mut container = json!({"name": "c", "resources": {"limits": {"cpu": "2"}}});
        let said = fill_container(&limit, &mut container, "container");
        assert_eq!(said, ["cpu request for container c", "memory limit for container c"]);
        assert_eq!(
            container["resources"],
            json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "100m"}})
        );
    }
}
