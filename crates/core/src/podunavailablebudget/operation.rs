//! What a request does to a pod, as budgets count it. This sees every update and deletion of a pod in the cluster, so what
//! is no business of a budget leaves first.

use kruise_api::{
    annotations::{RELATED_PUB, RELATED_PUB_OLD},
    gates::{Gate, Gates},
    json,
    kubernetes::quantity::Quantity,
    labels::UNAVAILABLE_POD_PREFIX,
    podunavailablebudget::v1beta1::Operation,
};
use serde_json::{Map, Value};

use crate::admission::{self, Request};

/// What must be found out about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The old object of the request is the pod, and this budget protects it.
    Pod {
        /// The name of the budget.
        budget: String,
        /// What is done.
        operation: Operation,
    },
    /// The request does not carry the pod: it must be read.
    Evicted,
}

/// The question of a request at the webhook of pods, if there is one.
pub fn question(request: &Request, gates: &Gates) -> Option<Question> {
    let delete = gates.enabled(Gate::PodUnavailableBudgetDeleteGate);
    let update = gates.enabled(Gate::PodUnavailableBudgetUpdateGate);
    let old = &request.old_object;
    match (request.operation, request.subresource.as_str()) {
        (admission::Operation::Create, "eviction") => delete.then_some(Question::Evicted),
        (admission::Operation::Delete, "") if delete => {
            Some(Question::Pod { budget: related(old)?.to_owned(), operation: Operation::Delete })
        }
        (admission::Operation::Update, "" | "resize") if update => {
            let budget = related(old)?.to_owned();
            let operation = operation(old, &request.object)?;
            Some(Question::Pod { budget, operation })
        }
        _ => None,
    }
}

fn related(pod: &Value) -> Option<&str> {
    let annotations = json::at(pod, &["metadata", "annotations"])?;
    let text = |key: &str| annotations.get(key).and_then(Value::as_str);
    text(RELATED_PUB).or_else(|| text(RELATED_PUB_OLD)).filter(|name| !name.is_empty())
}

/// What an update of a pod is: nothing where the pod serves as before.
pub fn operation(old: &Value, new: &Value) -> Option<Operation> {
    let is_marked = marks(new).any(|key| !marks(old).any(|known| known == key));
    let (old_spec, new_spec) = (old.get("spec"), new.get("spec"));
    if is_marked {
        return Some(Operation::Update);
    }
    if old_spec == new_spec {
        return None;
    }
    let is_resize = !is_static(old)
        && !is_static(new)
        && is_in_place_resize(old_spec.unwrap_or(&Value::Null), new_spec.unwrap_or(&Value::Null));
    Some(if is_resize { Operation::Resize } else { Operation::Update })
}

fn marks(pod: &Value) -> impl Iterator<Item = &str> {
    let labels = json::at(pod, &["metadata", "labels"]).and_then(Value::as_object);
    labels
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .filter(|key| key.starts_with(UNAVAILABLE_POD_PREFIX))
}

/// Whether a kubelet read the pod from a file or an address: the server does not decide about it.
fn is_static(pod: &Value) -> bool {
    let annotation = |key: &str| json::text(pod, &["metadata", "annotations", key]);
    annotation("kubernetes.io/config.source").is_some_and(|source| source != "api")
        || annotation("kubernetes.io/config.mirror").is_some()
}

/// Whether only cpu and memory of containers differ that need no restart for it.
fn is_in_place_resize(old: &Value, new: &Value) -> bool {
    let blank = |spec: &Value| {
        let mut spec = spec.clone();
        json::items_mut(&mut spec, &["containers"]).for_each(|container| {
            json::take(container, &["resources"]);
        });
        spec
    };
    if blank(old) != blank(new) || class(old) != class(new) {
        return false;
    }
    let before = containers(old, "containers");
    let after = containers(new, "containers");
    before.zip(after).all(|(before, after)| {
        ["requests", "limits"].into_iter().all(|member| {
            let (before, after_amounts) = (amounts(before, member), amounts(after, member));
            let names = before.keys().chain(after_amounts.keys());
            names
                .filter(|name| !is_same(before.get(*name), after_amounts.get(*name)))
                .all(|name| needs_no_restart(after, name))
        })
    })
}

fn containers<'a>(spec: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    spec.get(list).and_then(Value::as_array).into_iter().flatten()
}

fn amounts(container: &Value, member: &str) -> Map<String, Value> {
    json::at(container, &["resources", member]).and_then(Value::as_object).cloned().unwrap_or_default()
}

fn needs_no_restart(container: &Value, resource: &str) -> bool {
    let policies = container.get("resizePolicy").and_then(Value::as_array).into_iter().flatten();
    let own = policies.filter(|policy| json::text(policy, &["resourceName"]) == Some(resource));
    matches!(resource, "cpu" | "memory")
        && own
            .map(|policy| json::text(policy, &["restartPolicy"]).unwrap_or_default())
            .all(|policy| matches!(policy, "" | "NotRequired"))
}

fn quantity(amount: &Value) -> Option<Quantity> {
    match amount {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}

/// Whether two amounts are equal, however they are written. One that is absent differs from any other.
fn is_same(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => match (quantity(left), quantity(right)) {
            (Some(left), Some(right)) => left == right,
            _ => left == right,
        },
        (left, right) => left == right,
    }
}

/// The quality of service that a pod gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    BestEffort,
    Burstable,
    Guaranteed,
}

fn class(spec: &Value) -> Class {
    let all = || containers(spec, "containers").chain(containers(spec, "initContainers"));
    let counts = |amounts: &Map<String, Value>, name: &str| {
        amounts.get(name).and_then(quantity).is_some_and(|amount| amount.nanos() > 0)
    };
    let asks = |container: &Value| {
        ["requests", "limits"].into_iter().any(|member| {
            let amounts = amounts(container, member);
            ["cpu", "memory"].into_iter().any(|name| counts(&amounts, name))
        })
    };
    let is_fixed = |container: &Value| {
        let (requests, limits) = (amounts(container, "requests"), amounts(container, "limits"));
        ["cpu", "memory"].into_iter().all(|name| {
            counts(&limits, name)
                && requests.get(name).is_none_or(|asked| is_same(Some(asked), limits.get(name)))
        })
    };
    match (all().any(asks), all().all(is_fixed)) {
        (false, _) => Class::BestEffort,
        (true, true) => Class::Guaranteed,
        (true, false) => Class::Burstable,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(container: Value) -> Value {
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}})
    }

    fn sized(cpu: &str, memory: &str, policy: Value) -> Value {
        pod(json!({"name": "main", "image": "app:1", "resizePolicy": policy,
            "resources": {"requests": {"cpu": cpu, "memory": memory}}}))
    }

    #[track_caller]
    fn check(old: &Value, new: &Value, expected: Option<Operation>) {
        assert_eq!(operation(old, new), expected);
    }

    #[test]
    fn an_update_that_changes_nothing_that_serves_is_none() {
        let old = pod(json!({"name": "main", "image": "app:1"}));
        let mut new = old.clone();
        new["metadata"]["labels"]["more"] = json!("x");
        new["metadata"]["annotations"] = json!({"a": "b"});
        check(&old, &new, None);
    }

    #[test]
    fn images_and_the_label_that_takes_a_pod_out_of_service_are_updates() {
        let old = pod(json!({"name": "main", "image": "app:1"}));
        check(&old, &pod(json!({"name": "main", "image": "app:2"})), Some(Operation::Update));
        let mut new = old.clone();
        new["metadata"]["labels"]["unavailable-pod.kruise.io/offline"] = json!("1");
        check(&old, &new, Some(Operation::Update));
        check(&new, &old, None);
        check(&new, &new, None);
    }

    /// PROTECTION-24: which changes are resizes.
    #[test]
    fn a_resize_is_one_only_where_no_container_restarts() {
        let none = json!(null);
        let restart = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
        let not = json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"}]);
        let (resize, update) = (Some(Operation::Resize), Some(Operation::Update));
        check(&sized("1", "1Gi", none.clone()), &sized("2", "1Gi", none.clone()), resize.clone());
        check(&sized("1", "1Gi", not.clone()), &sized("2", "1Gi", not), resize.clone());
        check(&sized("1", "1Gi", restart.clone()), &sized("1", "2Gi", restart.clone()), update.clone());
        check(&sized("1", "1Gi", restart.clone()), &sized("2", "1Gi", restart), resize.clone());
        // The same amount in another writing.
        check(&sized("1", "1Gi", none.clone()), &sized("1000m", "1Gi", none.clone()), resize);
        // Another class of service.
        let mut guaranteed = sized("1", "1Gi", none.clone());
        guaranteed["spec"]["containers"][0]["resources"]["limits"] = json!({"cpu": "1", "memory": "1Gi"});
        check(&sized("1", "1Gi", none.clone()), &guaranteed, update.clone());
        // Another resource.
        let mut storage = sized("1", "1Gi", none.clone());
        storage["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = json!("1Gi");
        check(&sized("1", "1Gi", none.clone()), &storage, update.clone());
        let mut fixed = sized("1", "1Gi", none.clone());
        fixed["metadata"]["annotations"] = json!({"kubernetes.io/config.source": "file"});
        check(&fixed, &sized("2", "1Gi", none), update);
    }

    fn request(operation: admission::Operation, subresource: &str, old: Value) -> Request {
        Request { operation, subresource: subresource.to_owned(), old_object: old, ..Request::default() }
    }

    /// A pod that no budget protects, and a gate that is closed, cost nothing.
    #[test]
    fn only_protected_pods_raise_a_question() {
        let gates = Gates::default();
        let delete = |old| request(admission::Operation::Delete, "", old);
        let noted = |key: &str| json!({"metadata": {"annotations": {key: "web"}}});
        assert_eq!(question(&delete(json!({"metadata": {}})), &gates), None);
        assert_eq!(question(&delete(Value::Null), &gates), None);
        let web = Some(Question::Pod { budget: "web".to_owned(), operation: Operation::Delete });
        assert_eq!(question(&delete(noted("kruise.io/related-pub")), &gates), web);
        assert_eq!(question(&delete(noted("pub.kruise.io/related-pub")), &gates), web);
        let eviction = request(admission::Operation::Create, "eviction", Value::Null);
        assert_eq!(question(&eviction, &gates), Some(Question::Evicted));
        let closed = Gates::default().without(Gate::PodUnavailableBudgetDeleteGate);
        assert_eq!(question(&eviction, &closed), None);
        assert_eq!(question(&delete(noted("kruise.io/related-pub")), &closed), None);
        // PROTECTION-20: the gate of updates is closed unless somebody opens it.
        let mut update = request(admission::Operation::Update, "", noted("kruise.io/related-pub"));
        update.object = json!({"spec": {"containers": [{"image": "app:2"}]}});
        assert_eq!(question(&update, &gates), None);
        let open = gates.with(Gate::PodUnavailableBudgetUpdateGate);
        let web = Some(Question::Pod { budget: "web".to_owned(), operation: Operation::Update });
        assert_eq!(question(&update, &open), web);
    }
}
