//! Protection from deletion by a label: which deletions are refused, and with which words.
//!
//! There is no way around but to remove the label or to empty what it protects. An object that is on its way out
//! already passes, and so does everything while the gate is closed.

use kruise_api::{
    gates::{Gate, Gates},
    json,
    labels::{DELETE_PROTECTION, DELETE_PROTECTION_ALWAYS, DELETE_PROTECTION_CASCADING},
};
use serde_json::{Value, json};

use super::{Answer, Operation, Request};

/// How every refusal begins.
pub const REFUSAL: &str = "forbidden by ResourcesProtectionDeletion";

/// What `Cascading` looks at before an object may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Workloads: `spec.replicas`.
    Workload,
    /// Services and ingresses, which know only `Always`.
    Plain,
    /// Namespaces: what is in them.
    Namespace,
    /// Definitions of kinds: objects of them.
    Definition,
}

/// What is in the namespace, or of the kind, that someone wants to delete; counted by the caller where the gate is
/// open and the label says `Cascading`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Pods that have not ended and are not on their way out.
    pub active_pods: Result<usize, String>,
    /// Claims that are bound to volumes.
    pub bound_claims: Result<usize, String>,
    /// Objects of the kind that are not on their way out.
    pub objects: Result<usize, String>,
}

impl Default for Contents {
    fn default() -> Self {
        Self { active_pods: Ok(0), bound_claims: Ok(0), objects: Ok(0) }
    }
}

/// Whether [`Contents`] must be counted before this deletion can be judged.
pub fn needs_contents(subject: Subject, request: &Request, gates: &Gates) -> bool {
    let counted = match subject {
        Subject::Workload | Subject::Plain => false,
        Subject::Namespace => true,
        Subject::Definition => gates.enabled(Gate::DeletionProtectionForCRDCascadingGate),
    };
    counted && wanted(request, gates) == Some(DELETE_PROTECTION_CASCADING)
}

/// Judges a deletion.
pub fn judge(subject: Subject, request: &Request, gates: &Gates, contents: &Contents) -> Answer {
    match wanted(request, gates) {
        Some(DELETE_PROTECTION_ALWAYS) => Answer::protected(DELETE_PROTECTION_ALWAYS, ""),
        Some(DELETE_PROTECTION_CASCADING) => cascading(subject, &request.old_object, gates, contents),
        _ => Answer::allowed(),
    }
}

/// What people hear about the label when they set it, and when they delete an object that it does not protect.
pub fn warnings(subject: Subject, request: &Request, gates: &Gates) -> Vec<String> {
    let value =
        |object: &'_ Value| json::text(object, &["metadata", "labels", DELETE_PROTECTION]).map(str::to_owned);
    let (old, new) = (value(&request.old_object), value(&request.object));
    let is_deleting = json::at(&request.old_object, &["metadata", "deletionTimestamp"]).is_some();
    if !request.subresource.is_empty() || is_deleting {
        return Vec::new();
    }
    let (told, is_deletion) = match request.operation {
        Operation::Delete => (old, true),
        Operation::Create | Operation::Update if new != old => (new, false),
        _ => return Vec::new(),
    };
    let Some(told) = told else { return Vec::new() };
    let label = format!("label {DELETE_PROTECTION}={told}");
    if !gates.enabled(Gate::ResourcesDeletionProtection) {
        let gate = Gate::ResourcesDeletionProtection.name();
        return vec![format!("{label} protects nothing: feature gate {gate} is off")];
    }
    let why = match (told.as_str(), subject) {
        (DELETE_PROTECTION_ALWAYS, _) => return Vec::new(),
        (DELETE_PROTECTION_CASCADING, Subject::Plain) => {
            format!("use {DELETE_PROTECTION_ALWAYS} for this kind")
        }
        (DELETE_PROTECTION_CASCADING, _) => return Vec::new(),
        _ => format!("use {DELETE_PROTECTION_ALWAYS} or {DELETE_PROTECTION_CASCADING}"),
    };
    if is_deletion { Vec::new() } else { vec![format!("{label} protects nothing: {why}")] }
}

/// The value of the label, where this is a deletion that it can stop.
fn wanted<'a>(request: &'a Request, gates: &Gates) -> Option<&'a str> {
    let object = &request.old_object;
    let can_stop = request.operation == Operation::Delete
        && request.subresource.is_empty()
        && gates.enabled(Gate::ResourcesDeletionProtection)
        && json::at(object, &["metadata", "deletionTimestamp"]).is_none();
    can_stop.then(|| json::text(object, &["metadata", "labels", DELETE_PROTECTION])).flatten()
}

fn cascading(subject: Subject, object: &Value, gates: &Gates, contents: &Contents) -> Answer {
    let refuse = |details: String| Answer::protected(DELETE_PROTECTION_CASCADING, &details);
    let forbid = |why: String| Answer::Denied { code: 403, message: why };
    match subject {
        Subject::Plain => Answer::allowed(),
        Subject::Workload => {
            // A workload without a number wants one pod.
            let replicas = json::at(object, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(1);
            if replicas > 0 { refuse(format!(" and replicas {replicas}>0")) } else { Answer::allowed() }
        }
        Subject::Namespace => match (&contents.active_pods, &contents.bound_claims) {
            (Err(error), _) => {
                forbid(format!("forbidden by ResourcesProtectionDeletion for list pods error: {error}"))
            }
            (Ok(pods), _) if *pods > 0 => refuse(format!(" and active pods {pods}>0")),
            (_, Err(error)) => {
                forbid(format!("forbidden by ResourcesProtectionDeletion for list pvc error: {error}"))
            }
            (_, Ok(claims)) if *claims > 0 => refuse(format!(" and \"Bound\" status pvc {claims}>0")),
            _ => Answer::allowed(),
        },
        Subject::Definition if !gates.enabled(Gate::DeletionProtectionForCRDCascadingGate) => {
            Answer::gate_closed(Gate::DeletionProtectionForCRDCascadingGate.name())
        }
        Subject::Definition => match &contents.objects {
            Err(error) => forbid(error.clone()),
            Ok(objects) if *objects > 0 => refuse(format!(" and active CRs {objects}>0")),
            Ok(_) => Answer::allowed(),
        },
    }
}

/// A record of the protection log: who was stopped from doing what.
///
/// ```
/// use kruise_core::admission::protection::{DELETION_EVENT, record};
/// let record = record(DELETION_EVENT, "Namespace", "", "shop", "bob");
/// assert_eq!(record["UserAgent"], "bob");
/// ```
pub fn record(event: &str, kind: &str, namespace: &str, name: &str, username: &str) -> Value {
    json!({"Event": event, "Kind": kind, "Namespace": namespace, "Name": name, "UserAgent": username})
}

/// The event of a refused deletion in the protection log.
pub const DELETION_EVENT: &str = "DeletionProtection";
/// The event of a refusal by a budget in the protection log.
pub const BUDGET_EVENT: &str = "PodUnavailableBudget";

#[cfg(test)]
mod tests {
    use super::*;

    fn deletion(label: &str, spec: Value) -> Request {
        let labels = json!({"policy.kruise.io/delete-protection": label});
        Request {
            operation: Operation::Delete,
            old_object: json!({"metadata": {"name": "a", "labels": labels}, "spec": spec}),
            ..Request::default()
        }
    }

    fn gates() -> Gates {
        Gates::default().with(Gate::ResourcesDeletionProtection)
    }

    #[track_caller]
    fn check(subject: Subject, request: &Request, gates: &Gates, contents: Contents, expected: &str) {
        let said = match judge(subject, request, gates, &contents) {
            Answer::Allowed { .. } => "allowed".to_owned(),
            Answer::Denied { code: 403, message } => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(said, expected);
    }

    const ALWAYS: &str =
        "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always";
    const CASCADING: &str =
        "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading";

    #[test]
    fn always_stops_every_deletion_while_the_gate_is_open() {
        let request = deletion("Always", json!({"replicas": 0}));
        for subject in [Subject::Workload, Subject::Plain, Subject::Namespace, Subject::Definition] {
            check(subject, &request, &gates(), Contents::default(), ALWAYS);
            check(subject, &request, &Gates::default(), Contents::default(), "allowed");
            check(subject, &deletion("Sometimes", json!({})), &gates(), Contents::default(), "allowed");
        }
    }

    #[test]
    fn what_is_on_its_way_out_or_is_no_deletion_passes() {
        let mut request = deletion("Always", json!({}));
        request.old_object["metadata"]["deletionTimestamp"] = json!("2026-11-16T00:00:00Z");
        check(Subject::Workload, &request, &gates(), Contents::default(), "allowed");
        let update = Request { operation: Operation::Update, ..deletion("Always", json!({})) };
        check(Subject::Workload, &update, &gates(), Contents::default(), "allowed");
        let status = Request { subresource: "status".to_owned(), ..deletion("Always", json!({})) };
        check(Subject::Workload, &status, &gates(), Contents::default(), "allowed");
        let nothing = Request { operation: Operation::Delete, ..Request::default() };
        check(Subject::Workload, &nothing, &gates(), Contents::default(), "allowed");
    }

    #[test]
    fn cascading_stops_while_something_is_in_it() {
        let text = |rest: &str| format!("{CASCADING}{rest}");
        let workload = |spec| deletion("Cascading", spec);
        let none = Contents::default;
        check(
            Subject::Workload,
            &workload(json!({"replicas": 2})),
            &gates(),
            none(),
            &text(" and replicas 2>0"),
        );
        check(Subject::Workload, &workload(json!({})), &gates(), none(), &text(" and replicas 1>0"));
        check(Subject::Workload, &workload(json!({"replicas": 0})), &gates(), none(), "allowed");
        check(Subject::Plain, &workload(json!({})), &gates(), none(), "allowed");
        let namespace = workload(json!({}));
        check(Subject::Namespace, &namespace, &gates(), none(), "allowed");
        let pods = Contents { active_pods: Ok(3), ..none() };
        check(Subject::Namespace, &namespace, &gates(), pods, &text(" and active pods 3>0"));
        let claims = Contents { bound_claims: Ok(1), ..none() };
        check(Subject::Namespace, &namespace, &gates(), claims, &text(" and \"Bound\" status pvc 1>0"));
        let failed = Contents { active_pods: Err("timeout".into()), ..none() };
        let said = "forbidden by ResourcesProtectionDeletion for list pods error: timeout";
        check(Subject::Namespace, &namespace, &gates(), failed, said);
    }

    #[track_caller]
    fn check_warning(subject: Subject, request: &Request, gates: &Gates, expected: &[&str]) {
        assert_eq!(warnings(subject, request, gates), expected);
    }

    /// PROTECTION-42, PROTECTION-46: nobody relies on a label that does nothing.
    #[test]
    fn a_label_that_protects_nothing_is_reported_when_it_is_set() {
        let labelled =
            |value: &str| json!({"metadata": {"labels": {"policy.kruise.io/delete-protection": value}}});
        let set = |value: &str| Request {
            operation: Operation::Update,
            object: labelled(value),
            old_object: json!({"metadata": {}}),
            ..Request::default()
        };
        let off = "label policy.kruise.io/delete-protection=Always protects nothing: feature gate ResourcesDeletionProtection is off";
        check_warning(Subject::Workload, &set("Always"), &Gates::default(), &[off]);
        check_warning(Subject::Workload, &deletion("Always", json!({})), &Gates::default(), &[off]);
        check_warning(Subject::Workload, &set("Always"), &gates(), &[]);
        check_warning(Subject::Workload, &set("Cascading"), &gates(), &[]);
        let plain =
            "label policy.kruise.io/delete-protection=Cascading protects nothing: use Always for this kind";
        check_warning(Subject::Plain, &set("Cascading"), &gates(), &[plain]);
        let wrong =
            "label policy.kruise.io/delete-protection=always protects nothing: use Always or Cascading";
        check_warning(Subject::Namespace, &set("always"), &gates(), &[wrong]);
        // Only who sets it hears of it.
        let kept = Request { old_object: labelled("always"), ..set("always") };
        check_warning(Subject::Namespace, &kept, &gates(), &[]);
        check_warning(
            Subject::Namespace,
            &Request { operation: Operation::Create, ..Request::default() },
            &gates(),
            &[],
        );
    }

    #[test]
    fn definitions_need_a_gate_of_their_own_for_cascading() {
        let request = deletion("Cascading", json!({}));
        let closed = "feature-gate DeletionProtectionForCRDCascadingGate is not enabled";
        check(Subject::Definition, &request, &gates(), Contents::default(), closed);
        assert!(!needs_contents(Subject::Definition, &request, &gates()));
        let gates = gates().with(Gate::DeletionProtectionForCRDCascadingGate);
        assert!(needs_contents(Subject::Definition, &request, &gates));
        let objects = Contents { objects: Ok(4), ..Contents::default() };
        check(Subject::Definition, &request, &gates, objects, &format!("{CASCADING} and active CRs 4>0"));
        check(Subject::Definition, &request, &gates, Contents::default(), "allowed");
    }

    /// What the audit says of a refused deletion of a namespace.
    #[test]
    fn a_refusal_leaves_a_record_with_the_name_of_the_user() {
        let record = record(DELETION_EVENT, "Namespace", "", "shop", "bob");
        let text = r#"{"Event":"DeletionProtection","Kind":"Namespace","Name":"shop","Namespace":"","UserAgent":"bob"}"#;
        assert_eq!(record.to_string(), text);
    }
}
