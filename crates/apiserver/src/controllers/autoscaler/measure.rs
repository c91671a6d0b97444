//! What the metrics of an autoscaler say: one proposal of them all.

use std::sync::Arc;

use kruise_api::kubernetes::quantity::Quantity;
use serde_json::{Value, json};

use super::super::Context;
use super::super::object::{condition, items, number, text, time};
use super::super::pods::{Phase, Pod};
use super::usage::{self, Counted, Goal, Sum, Tolerance};
use crate::metrics::{PodUsage, Usage, WINDOW_SECONDS};
use crate::selector::Labels;

/// A pod may be not ready for so long after its start without a meaning.
const INITIALIZATION: i64 = 300;
const INITIAL_READINESS: i64 = 30;

/// Why a metric says nothing.
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// With the name of the metric before it.
    pub(super) full: String,
}

/// What all metrics propose together: the highest number.
#[derive(Default)]
pub(super) struct Proposal {
    pub(super) replicas: i64,
    pub(super) metric: String,
    pub(super) statuses: Vec<Value>,
    pub(super) failures: Vec<Failure>,
}

/// Asks every metric.
pub(super) fn propose(cx: &Context, scaler: &Value, current: i64, selector: &Labels) -> Proposal {
    let pods = cx.pods().in_namespace(text(scaler, "/metadata/namespace"));
    let pods: Vec<Arc<Pod>> =
        pods.into_iter().filter(|pod| selector.matches_by(|key| pod.record.label(key))).collect();
    let records: Vec<_> = pods.iter().map(|pod| pod.record.clone()).collect();
    let measured = cx.client.server().metrics_source().map(|source| source.pods(&records));
    let mut proposal = Proposal::default();
    for metric in items(scaler, "/spec/metrics") {
        match one(cx, scaler, metric, current, (&pods, measured.as_deref())) {
            Ok((replicas, name, status)) => {
                proposal.statuses.push(status);
                if proposal.metric.is_empty() || replicas > proposal.replicas {
                    proposal.replicas = replicas;
                    proposal.metric = name;
                }
            }
            Err(failure) => {
                proposal.statuses.push(json!({"type": ""}));
                proposal.failures.push(failure);
            }
        }
    }
    if proposal.failures.len() == proposal.statuses.len() {
        proposal.statuses.clear();
    }
    proposal
}

type Seen<'a> = (&'a [Arc<Pod>], Option<&'a [Option<PodUsage>]>);

fn one(
    cx: &Context,
    scaler: &Value,
    metric: &Value,
    current: i64,
    (pods, measured): Seen<'_>,
) -> Result<(i64, String, Value), Failure> {
    let kind = text(metric, "/type");
    let (member, reason) = match kind {
        "Resource" => ("resource", "FailedGetResourceMetric"),
        "ContainerResource" => ("containerResource", "FailedGetContainerResourceMetric"),
        "Pods" => ("pods", "FailedGetPodsMetric"),
        "Object" => ("object", "FailedGetObjectMetric"),
        _ => ("external", "FailedGetExternalMetric"),
    };
    let source = metric.get(member).unwrap_or(&Value::Null);
    if !matches!(kind, "Resource" | "ContainerResource") {
        let name = text(source, "/metric/name");
        let api = if kind == "External" { "external metrics API" } else { "custom metrics API" };
        let group = if kind == "External" { "external.metrics.k8s.io" } else { "custom.metrics.k8s.io" };
        let message = format!(
            "unable to get metric {name}: unable to fetch metrics from {api}: the server could not find the requested \
             resource (get {name}.{group})"
        );
        let full = format!("failed to get {member} metric value: {message}");
        return Err(Failure { reason, message, full });
    }
    let (resource, container) = (text(source, "/name"), text(source, "/container"));
    let fail = |message: String| {
        let of = if container.is_empty() { "resource" } else { "container resource" };
        let target = if source.pointer("/target/averageValue").is_some() { "value" } else { "utilization" };
        let message = format!("failed to get {resource} {target}: {message}");
        Failure { reason, full: format!("failed to get {resource} {of} metric value: {message}"), message }
    };
    let unknown = |why: &str| fail(format!("unable to get metrics for resource {resource}: {why}"));
    let Some(measured) = measured else {
        let why = "unable to fetch metrics from resource metrics API: the server could not find the requested \
                   resource (get pods.metrics.k8s.io)";
        return Err(unknown(why));
    };
    if measured.iter().all(Option::is_none) {
        return Err(unknown("no metrics returned from resource metrics API"));
    }
    let goal = match source.pointer("/target/averageValue").and_then(|value| Quantity::from_json(value).ok())
    {
        Some(quantity) => Goal::Average(quantity.millis()),
        None => Goal::Utilization(number(source, "/target/averageUtilization").unwrap_or(80)),
    };
    let wanted = Wanted { resource, container, requests: matches!(goal, Goal::Utilization(_)) };
    let counted = wanted.count(cx, pods, measured).map_err(&fail)?;
    let tolerance = tolerance(scaler);
    let sum = usage::replicas(&counted, goal, current, tolerance).map_err(|why| fail(why.to_owned()))?;
    let name = match (container, goal) {
        ("", Goal::Utilization(_)) => format!("{resource} resource utilization (percentage of request)"),
        ("", Goal::Average(_)) => format!("{resource} resource"),
        (_, Goal::Utilization(_)) => {
            format!("{resource} container resource utilization (percentage of request)")
        }
        (_, Goal::Average(_)) => format!("{resource} container resource"),
    };
    Ok((sum.replicas, name, status(kind, member, (resource, container), sum)))
}

fn tolerance(scaler: &Value) -> Tolerance {
    let part = |direction: &str| {
        let value = scaler.pointer(&format!("/spec/behavior/{direction}/tolerance"))?;
        Quantity::from_json(value).ok().map(|quantity| quantity.millis())
    };
    let usual = Tolerance::default();
    Tolerance { down: part("scaleDown").unwrap_or(usual.down), up: part("scaleUp").unwrap_or(usual.up) }
}

/// What was seen, as the status tells it.
fn status(kind: &str, member: &str, (resource, container): (&str, &str), sum: Sum) -> Value {
    let average = match resource {
        "memory" => (sum.average / 1000).to_string(),
        _ => Quantity::parse(&format!("{}m", sum.average)).map(|q| q.to_string()).unwrap_or_default(),
    };
    let mut current = json!({"averageValue": average});
    let mut inner = json!({"name": resource});
    if let (Some(percent), Some(map)) = (sum.percent, current.as_object_mut()) {
        map.insert("averageUtilization".to_owned(), json!(percent));
    }
    if let Some(map) = inner.as_object_mut() {
        if !container.is_empty() {
            map.insert("container".to_owned(), json!(container));
        }
        map.insert("current".to_owned(), current);
    }
    json!({"type": kind, member: inner})
}

/// What is counted of pods.
struct Wanted<'w> {
    resource: &'w str,
    /// One container, or all when it is empty.
    container: &'w str,
    /// Whether requests matter.
    requests: bool,
}

impl Wanted<'_> {
    fn count(
        &self,
        cx: &Context,
        pods: &[Arc<Pod>],
        measured: &[Option<PodUsage>],
    ) -> Result<Counted, String> {
        if pods.is_empty() {
            return Err("no pods returned by selector while calculating replica count".to_owned());
        }
        let mut counted = Counted::default();
        for (pod, usage) in pods.iter().zip(measured) {
            let name = pod.record.name.to_string();
            let object = pod.record.value();
            if self.requests {
                counted.requests.insert(name.clone(), self.request(&object)?);
            }
            if pod.record.deleting || pod.phase == Phase::Failed {
                continue;
            }
            if pod.phase == Phase::Pending {
                counted.unready.push(name);
                continue;
            }
            match usage.as_ref().and_then(|usage| self.amount(usage)) {
                None => counted.missing.push(name),
                Some(_) if self.resource == "cpu" && is_unready(&object, cx.now().as_second()) => {
                    counted.unready.push(name);
                }
                Some(amount) => {
                    counted.used.insert(name, amount);
                }
            }
        }
        Ok(counted)
    }

    /// What a pod uses, in thousandths.
    fn amount(&self, usage: &PodUsage) -> Option<i128> {
        let of = |usage: &Usage| match self.resource {
            "cpu" => Some((i128::from(usage.cpu_nanos) + 999_999) / 1_000_000),
            "memory" => Some(i128::from(usage.memory_bytes) * 1000),
            _ => None,
        };
        let chosen: Vec<&Usage> = usage
            .iter()
            .filter(|(name, _)| self.container.is_empty() || name == self.container)
            .map(|(_, usage)| usage)
            .collect();
        if chosen.is_empty() {
            return None;
        }
        chosen.into_iter().map(of).sum()
    }

    /// What a pod requests, in thousandths.
    fn request(&self, pod: &Value) -> Result<i128, String> {
        let sidecars = items(pod, "/spec/initContainers")
            .iter()
            .filter(|container| text(container, "/restartPolicy") == "Always");
        let containers = items(pod, "/spec/containers").iter().chain(sidecars);
        let mut total = 0;
        for container in
            containers.filter(|one| self.container.is_empty() || text(one, "/name") == self.container)
        {
            let request = container.pointer(&format!("/resources/requests/{}", self.resource));
            let Some(request) = request.and_then(|request| Quantity::from_json(request).ok()) else {
                return Err(format!(
                    "missing request for {} in container {} of Pod {}",
                    self.resource,
                    text(container, "/name"),
                    text(pod, "/metadata/name")
                ));
            };
            total += request.millis();
        }
        Ok(total)
    }
}

/// Whether what a pod uses says nothing yet, because it does not serve or has only just begun to.
fn is_unready(pod: &Value, now: i64) -> bool {
    let (Some(ready), Some(started)) = (condition(pod, "Ready"), time(pod, "/status/startTime")) else {
        return true;
    };
    let not_ready = text(ready, "/status") == "False";
    let changed = time(ready, "/lastTransitionTime").map_or(0, jiff::Timestamp::as_second);
    if started.as_second() + INITIALIZATION > now {
        not_ready || now < changed + WINDOW_SECONDS
    } else {
        not_ready && started.as_second() + INITIAL_READINESS > changed
    }
}
