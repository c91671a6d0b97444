//! What PodUnavailableBudgets say to a deletion, an eviction or a change of a pod.

use std::time::Duration;

use kruise_api::{json, podunavailablebudget::v1beta1::Operation};
use kruise_core::{
    admission::{Answer, Request, protection},
    effect::{Event, Level},
    object::{ObjectKey, POD},
    pod::Pod,
    podunavailablebudget::{Kind, POD_UNAVAILABLE_BUDGET, Question, Refusal, question, related},
};
use kruise_runtime::{
    live,
    metrics::{Counter, Registry},
};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::{
    budgets::{Answered, Wish},
    definitions,
    shared::Shared,
};

/// How long an answer may take; API servers wait a second longer.
const WITHIN: Duration = Duration::from_secs(4);

/// Counts refusals by budgets.
#[derive(Clone, Debug)]
pub(super) struct Held(Counter);

impl Held {
    pub(super) fn new(registry: &Registry) -> Self {
        Self(registry.counter(
            "pod_unavailable_budget",
            "Deletions, evictions and updates of pods that a PodUnavailableBudget refused.",
            &["kind_namespace_name", "username"],
        ))
    }
}

/// The answer of a budget; nothing where none holds the pod back.
pub(super) async fn answer(shared: &Shared, held: &Held, request: &Request) -> Option<Answer> {
    let resource = &request.resource;
    if !resource.group.is_empty() || resource.resource != "pods" {
        return None;
    }
    let question = question(request, &shared.settings.gates)?;
    let until = Instant::now() + WITHIN;
    let (pod, budget, operation) = match question {
        Question::Pod { budget, operation } => {
            // Of a pod that cannot be read nobody knows that it serves.
            let pod = Pod::deserialize(&request.old_object).ok()?;
            (pod, budget, operation)
        }
        Question::Evicted => {
            if is_unprotected(shared, request) {
                return None;
            }
            match evicted(shared, request, until).await {
                Ok(pod) => {
                    let pod = pod?;
                    let budget = related(&pod.metadata.annotations)?.to_owned();
                    (pod, budget, Operation::Evict)
                }
                Err(why) => return Some(Answer::internal(why)),
            }
        }
    };
    // Only now: a pod that no budget protects never waits for them.
    if let Err(why) = read(shared, until).await {
        return Some(Answer::internal(why));
    }
    let dry_run = request.dry_run || is_dry(&request.object);
    let record = Kind::of_operation(&operation);
    let wish = Wish { budget: &budget, pod: &pod, operation: &operation, record, dry_run, until };
    match shared.budgets.ask(shared, &wish).await {
        Answered::Go { .. } => None,
        // Who drains a node tries again after 429, and gives up after 500.
        Answered::Late(why) if operation == Operation::Evict => {
            Some(Answer::Denied { code: 429, message: why })
        }
        Answered::Failed(why) | Answered::Late(why) => Some(Answer::internal(why)),
        Answered::Refused(refusal) => {
            if !dry_run {
                tell(shared, held, request, &pod);
            }
            Some(said(&refusal, &operation))
        }
    }
}

/// Whether caches alone show that no budget protects the pod of an eviction. Where the pod names one, the cache of budgets is
/// not believed: it may be old.
fn is_unprotected(shared: &Shared, request: &Request) -> bool {
    let (budgets, pods) = (&shared.caches.budgets, &shared.caches.pods);
    let key = ObjectKey::new(request.namespace.as_str(), request.name.as_str());
    budgets.is_synced()
        && budgets.in_namespace(&request.namespace).is_empty()
        && pods.get(&key).is_some_and(|pod| related(&pod.metadata.annotations).is_none())
}

fn said(refusal: &Refusal, operation: &Operation) -> Answer {
    Answer::Held { code: refusal.code(operation), message: refusal.message.clone(), causes: refusal.causes() }
}

/// Waits until the budgets of the cluster are known, but no longer than this.
async fn read(shared: &Shared, until: Instant) -> Result<(), String> {
    let budgets = &shared.caches.budgets;
    if budgets.is_synced() {
        return Ok(());
    }
    let definition = definitions::name(POD_UNAVAILABLE_BUDGET).unwrap_or_default();
    if shared.definitions.is_missing(&definition) {
        return Ok(());
    }
    if let Some(problem) = shared.kinds.problem(POD_UNAVAILABLE_BUDGET) {
        return Err(format!("nobody knows which pods are protected, try again later: {problem}"));
    }
    let waiting = async {
        !shared.definitions.has(&definition).await
            || budgets.synced(until.saturating_duration_since(Instant::now())).await
    };
    match timeout_at(until, waiting).await {
        Ok(true) => Ok(()),
        _ => Err("this replica has not read the PodUnavailableBudgets yet, try again".to_owned()),
    }
}

/// The pod of an eviction, as the server has it.
async fn evicted(shared: &Shared, request: &Request, until: Instant) -> Result<Option<Pod>, String> {
    let key = ObjectKey::new(request.namespace.as_str(), request.name.as_str());
    match timeout_at(until, live::get::<Pod>(&shared.client, POD, &key)).await {
        Err(_) => Err(format!("failed to read pod {key} in time")),
        Ok(read) => read.map_err(|error| format!("failed to read pod {key}: {error}")),
    }
}

/// Whether an eviction says in its own options that nothing is to happen.
fn is_dry(eviction: &Value) -> bool {
    let dry = json::at(eviction, &["deleteOptions", "dryRun"]).and_then(Value::as_array);
    dry.is_some_and(|dry| !dry.is_empty())
}

/// Counts a refusal, says it on the pod and in the log for audits.
fn tell(shared: &Shared, held: &Held, request: &Request, pod: &Pod) {
    let namespace = if request.namespace.is_empty() { "default" } else { &request.namespace };
    let (kind, name) = match pod.metadata.controller() {
        Some(owner) => (owner.kind.as_str(), owner.name.as_str()),
        None => ("unknown", pod.metadata.name.as_str()),
    };
    let user = &request.user.username;
    held.0.inc(&[&format!("{kind}_{namespace}_{name}"), user]);
    shared.events.recorder("pub-controller").record(Event {
        regarding: pod.reference(),
        level: Level::Warning,
        reason: "PubPreventPodDeletion".into(),
        message: "openkruise pub prevents pod deletion".to_owned(),
    });
    let event = protection::BUDGET_EVENT;
    shared.protection_log.write(&protection::record(event, kind, namespace, name, user));
}
