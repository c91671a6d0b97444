//! What a server writes into an object once, when it is created, and what the built-in admission adds to pods.

use super::object::{child_or_new, set_absent, set_text, text};
use kruise_api::kubernetes::validation::qos_class;
use serde_json::{Map, Value, json};

/// Writes what new objects of a kind begin with. The uid must be set.
pub fn prepare_create(group: &str, kind: &str, object: &mut Value) {
    match (group, kind) {
        ("", "Pod") => {
            let class = qos_class(object.get("spec").unwrap_or(&Value::Null));
            if let Some(pod) = object.as_object_mut() {
                pod.insert("status".to_owned(), json!({"phase": "Pending", "qosClass": class}));
            }
        }
        ("", "Namespace") => {
            if let Some(namespace) = object.as_object_mut() {
                namespace.insert("status".to_owned(), json!({"phase": "Active"}));
                if let Some(spec) = child_or_new(namespace, "spec") {
                    set_absent(spec, "finalizers", json!(["kubernetes"]));
                }
            }
        }
        ("", "PersistentVolumeClaim") => add_finalizer(object, "kubernetes.io/pvc-protection"),
        ("", "PersistentVolume") => add_finalizer(object, "kubernetes.io/pv-protection"),
        ("batch", "Job") => job_selector(object),
        _ => {}
    }
}

fn add_finalizer(object: &mut Value, name: &str) {
    let Some(metadata) = object.as_object_mut().and_then(|object| child_or_new(object, "metadata")) else {
        return;
    };
    set_absent(metadata, "finalizers", Vec::<Value>::new());
    if let Some(list) = metadata.get_mut("finalizers").and_then(Value::as_array_mut)
        && !list.iter().any(|found| found == name)
    {
        list.push(name.into());
    }
}

/// A job selects its pods by its own uid, unless its author takes care of that.
fn job_selector(job: &mut Value) {
    let metadata = job.get("metadata").cloned().unwrap_or_default();
    let (name, uid) = (text(&metadata, "name").to_owned(), text(&metadata, "uid").to_owned());
    let Some(spec) = job.as_object_mut().and_then(|job| child_or_new(job, "spec")) else { return };
    if spec.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    let template = child_or_new(spec, "template").and_then(|template| child_or_new(template, "metadata"));
    if let Some(own) = template.and_then(|metadata| child_or_new(metadata, "labels")) {
        for (key, value) in labels {
            own.insert(key.to_owned(), value.as_str().into());
        }
    }
    if let Some(selector) =
        child_or_new(spec, "selector").and_then(|selector| child_or_new(selector, "matchLabels"))
    {
        selector.insert("batch.kubernetes.io/controller-uid".to_owned(), uid.into());
    }
    // A job without labels takes those of its template.
    let labels = job.pointer("/spec/template/metadata/labels").cloned();
    if let Some(metadata) = job.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(labels) = labels
    {
        set_absent(metadata, "labels", labels);
    }
}

/// What the built-in admission of a default cluster writes into a new pod: the service account, the priority, and
/// tolerations that keep it on a lost node for five minutes. `priority` is that of its priority class, or of the global
/// default class. The token volume is left out: nothing here would read it.
pub fn admit_pod(pod: &mut Value, priority: i32, preemption: &str) {
    let Some(spec) = pod.as_object_mut().and_then(|pod| child_or_new(pod, "spec")) else { return };
    set_text(spec, "serviceAccountName", "default");
    if let Some(name) = spec.get("serviceAccountName").cloned() {
        spec.insert("serviceAccount".to_owned(), name);
    }
    set_absent(spec, "priority", priority);
    set_absent(spec, "preemptionPolicy", preemption);
    let tolerations = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    let missing: Vec<Value> = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
        .into_iter()
        .filter(|key| !tolerations.iter().any(|toleration| tolerates(toleration, key)))
        .map(|key| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}))
        .collect();
    if !missing.is_empty() {
        let all: Vec<Value> = tolerations.into_iter().chain(missing).collect();
        spec.insert("tolerations".to_owned(), all.into());
    }
}

fn tolerates(toleration: &Value, key: &str) -> bool {
    let none = Map::new();
    let members = toleration.as_object().unwrap_or(&none);
    let member = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    (member("key") == key || member("key").is_empty()) && matches!(member("effect"), "NoExecute" | "")
}
