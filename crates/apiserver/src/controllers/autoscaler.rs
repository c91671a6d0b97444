//! HorizontalPodAutoscalers: as many replicas as the load asks for.

mod limits;
mod measure;
mod usage;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::object::{child, deleting, items, merge, number, or_gone, set_condition, text};
use super::recorder::Involved;
use super::{Context, Key, Outcome, lock};
use crate::registry::split_api_version;
use crate::rest::Target;
use crate::selector::Labels;
use crate::status::Status;
use limits::{Bounds, Memory};

const COMPONENT: &str = "horizontal-pod-autoscaler";
/// How often an autoscaler looks.
const PERIOD: i64 = 15;

/// What autoscalers remember, by namespace and name.
pub(super) type Memories = BTreeMap<(String, String), Remembered>;

/// What one autoscaler remembers.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// When it looked last, and at which spec.
    looked: Option<(Timestamp, Value)>,
    memory: Memory,
}

/// One look, with the object whose status is written in the end.
struct Look<'c> {
    cx: &'c Context,
    name: (String, String),
    involved: Involved,
    scaler: Value,
}

/// The target and how many replicas it is said to have.
struct Scaled {
    target: Target,
    replicas: i64,
    selector: String,
}

/// Looks at one autoscaler, if it is time.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let scalers = cx.client.resource("autoscaling", "horizontalpodautoscalers")?;
    let name = (key.namespace.clone(), key.name.clone());
    let record = or_gone(cx.client.get(&scalers, &key.namespace, &key.name))?;
    let Some(scaler) = record.map(|record| record.value()).filter(|scaler| !deleting(scaler)) else {
        lock(&cx.autoscalers).remove(&name);
        return Ok(None);
    };
    let now = cx.now();
    let spec = scaler.get("spec").cloned().unwrap_or_default();
    {
        let mut all = lock(&cx.autoscalers);
        let known = all.entry(name.clone()).or_default();
        if let Some((looked, seen)) = &known.looked
            && *seen == spec
        {
            let left = looked.as_second() + PERIOD - now.as_second();
            if left > 0 {
                return Ok(u64::try_from(left).ok().map(Duration::from_secs));
            }
        }
        known.looked = Some((now, spec));
    }
    let before = scaler.get("status").cloned();
    let involved = Involved::of(&scalers, &scaler);
    let mut look = Look { cx, name, involved, scaler };
    look.run().await;
    if look.scaler.get("status") != before.as_ref() {
        or_gone(cx.client.update(&scalers, Some("status"), look.scaler).await)?;
    }
    Ok(Some(Duration::from_secs(PERIOD.unsigned_abs())))
}

impl Look<'_> {
    async fn tell(&self, kind: &'static str, reason: &str, message: &str) {
        self.cx.record(COMPONENT, &self.involved, kind, reason, message).await;
    }

    fn condition(&mut self, kind: &str, holds: bool, reason: &str, message: &str) {
        let condition = json!({
            "type": kind, "status": if holds { "True" } else { "False" }, "reason": reason, "message": message,
            "lastTransitionTime": self.cx.now_text(),
        });
        set_condition(&mut self.scaler, condition);
    }

    async fn run(&mut self) {
        let scaled = match self.target().await {
            Ok(scaled) => scaled,
            Err(why) => {
                self.tell("Warning", "FailedGetScale", &why).await;
                let message =
                    format!("the HPA controller was unable to get the target's current scale: {why}");
                self.condition("AbleToScale", false, "FailedGetScale", &message);
                return;
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        self.condition("AbleToScale", true, "SucceededGetScale", message);
        let current = scaled.replicas;
        let now = self.cx.now();
        self.with_memory(|memory| memory.begin(current, now));
        let bounds = Bounds::of(&self.scaler);
        if current == 0 && bounds.min != 0 {
            let message = "scaling is disabled since the replica count of the target is zero";
            self.condition("ScalingActive", false, "ScalingDisabled", message);
            self.status(current, current, &[], false);
            return;
        }
        let (desired, why, metrics) = if current > bounds.max {
            (bounds.max, "Current number of replicas above Spec.MaxReplicas".to_owned(), Vec::new())
        } else if current < bounds.min {
            (bounds.min, "Current number of replicas below Spec.MinReplicas".to_owned(), Vec::new())
        } else {
            let Some(proposed) = self.proposal(&scaled).await else { return };
            let why = match proposed.replicas.cmp(&current) {
                std::cmp::Ordering::Greater => format!("{} above target", proposed.metric),
                std::cmp::Ordering::Less => "All metrics below target".to_owned(),
                std::cmp::Ordering::Equal => String::new(),
            };
            (self.bring_within(current, proposed.replicas, &bounds), why, proposed.statuses)
        };
        let mut scaled_now = false;
        if desired != current {
            match self.rescale(&scaled, desired).await {
                Ok(()) => {
                    let message =
                        format!("the HPA controller was able to update the target scale to {desired}");
                    self.condition("AbleToScale", true, "SucceededRescale", &message);
                    self.tell("Normal", "SuccessfulRescale", &format!("New size: {desired}; reason: {why}"))
                        .await;
                    let behavior = self.scaler.pointer("/spec/behavior").is_some();
                    self.with_memory(|memory| memory.note_change(behavior, current, desired, now));
                    scaled_now = true;
                }
                Err(status) => {
                    let message = format!("New size: {desired}; reason: {why}; error: {}", status.message);
                    self.tell("Warning", "FailedRescale", &message).await;
                    let message = format!(
                        "the HPA controller was unable to update the target scale: {}",
                        status.message
                    );
                    self.condition("AbleToScale", false, "FailedUpdateScale", &message);
                    let known = number(&self.scaler, "/status/desiredReplicas").unwrap_or(0);
                    self.status(current, known, &metrics, false);
                    return;
                }
            }
        }
        self.status(current, desired, &metrics, scaled_now);
    }

    fn with_memory<T>(&self, work: impl FnOnce(&mut Memory) -> T) -> T {
        work(&mut lock(&self.cx.autoscalers).entry(self.name.clone()).or_default().memory)
    }

    /// The proposal of the metrics; without one the status says why.
    async fn proposal(&mut self, scaled: &Scaled) -> Option<measure::Proposal> {
        let selector = match Labels::parse(&scaled.selector) {
            Ok(selector) if !scaled.selector.is_empty() => selector,
            _ => {
                self.tell("Warning", "SelectorRequired", "selector is required").await;
                let message = "the HPA target's scale is missing a selector";
                self.condition("ScalingActive", false, "InvalidSelector", message);
                return None;
            }
        };
        let measured = measure::propose(self.cx, &self.scaler, scaled.replicas, &selector);
        for failure in &measured.failures {
            self.tell("Warning", failure.reason, &failure.message).await;
        }
        let all = items(&self.scaler, "/spec/metrics").len();
        if let Some(first) = measured.failures.first() {
            let lacking = measured.failures.len() >= all || measured.replicas < scaled.replicas;
            if lacking {
                let message = format!("the HPA was unable to compute the replica count: {}", first.message);
                self.condition("ScalingActive", false, first.reason, &message);
                let known = number(&self.scaler, "/status/desiredReplicas").unwrap_or(0);
                self.status(scaled.replicas, known, &measured.statuses, false);
                let message = format!(
                    "invalid metrics ({} invalid out of {all}), first error is: {}",
                    measured.failures.len(),
                    first.full
                );
                self.tell("Warning", "FailedComputeMetricsReplicas", &message).await;
                return None;
            }
        }
        let message =
            format!("the HPA was able to successfully calculate a replica count from {}", measured.metric);
        self.condition("ScalingActive", true, "ValidMetricFound", &message);
        Some(measured)
    }

    /// Recent recommendations, rates and bounds decide what becomes of a proposal.
    fn bring_within(&mut self, current: i64, proposed: i64, bounds: &Bounds) -> i64 {
        let now = self.cx.now();
        let decision = self.with_memory(|memory| memory.decide(bounds, current, proposed, now));
        let (reason, message) = decision.stable;
        self.condition("AbleToScale", true, reason, message);
        let (limited, reason, message) = decision.limited;
        self.condition("ScalingLimited", limited, reason, message);
        decision.replicas
    }

    fn status(&mut self, current: i64, desired: i64, metrics: &[Value], scaled: bool) {
        let now = self.cx.now_text();
        let Some(status) = child(&mut self.scaler, "status") else { return };
        match current {
            0 => status.remove("currentReplicas"),
            _ => status.insert("currentReplicas".to_owned(), json!(current)),
        };
        status.insert("desiredReplicas".to_owned(), json!(desired));
        let metrics = if metrics.is_empty() { Value::Null } else { json!(metrics) };
        status.insert("currentMetrics".to_owned(), metrics);
        if scaled {
            status.insert("lastScaleTime".to_owned(), json!(now));
        }
    }

    /// Finds the target by its kind and reads its scale.
    async fn target(&self) -> Result<Scaled, String> {
        let reference = |key: &str| text(&self.scaler, &format!("/spec/scaleTargetRef/{key}"));
        let (group, version) = split_api_version(reference("apiVersion"));
        let (kind, name) = (reference("kind"), reference("name"));
        let registry = self.cx.client.server().registry();
        let known = registry
            .find_kind(group, version, kind)
            .or_else(|| registry.all().into_iter().find(|one| one.group == group && one.kind == kind));
        let Some(resource) = known else {
            return Err(format!("no matches for kind \"{kind}\" in group \"{group}\""));
        };
        if resource.scale.is_none() {
            return Err("the server could not find the requested resource".to_owned());
        }
        let target = Target::object(&resource, &self.name.0, name).with_subresource("scale");
        let scale = self.cx.client.scale(&target).await.map_err(|status| status.message)?;
        Ok(Scaled {
            target,
            replicas: number(&scale, "/spec/replicas").unwrap_or(0),
            selector: text(&scale, "/status/selector").to_owned(),
        })
    }

    async fn rescale(&self, scaled: &Scaled, replicas: i64) -> Result<(), Status> {
        let patch = merge(json!({"spec": {"replicas": replicas}}));
        self.cx.client.patch_scale(&scaled.target, &patch).await
    }
}
