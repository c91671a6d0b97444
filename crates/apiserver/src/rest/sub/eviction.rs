//! `eviction`: a delete that asks the pod's disruption budget first.

use serde_json::{Value, json};

use super::super::decode::expect_kind;
use super::super::delete::{DeleteOptions, Preconditions};
use super::super::{Query, Target, WriteOptions};
use super::set_condition;
use crate::admission::Operation;
use crate::selector::Labels;
use crate::server::ApiServer;
use crate::status::{GroupResource, Status};

const BUDGET: GroupResource<'static> = GroupResource::new("policy", "poddisruptionbudget");
const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const CAUSE: &str = "DisruptionBudget";
/// More evictions than this may not be under way for one budget.
const MOST_DISRUPTED: usize = 2000;

impl ApiServer {
    pub(super) async fn evict(
        &self,
        target: &Target,
        mut eviction: Value,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        let api_version = eviction.get("apiVersion").and_then(Value::as_str).unwrap_or("policy/v1");
        let api_version = if api_version == "policy/v1beta1" { "policy/v1beta1" } else { "policy/v1" };
        expect_kind(&mut eviction, api_version, "Eviction", false)?;
        let name = eviction.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if name != target.name {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        self.admit_sub(target, Operation::Create, &mut eviction, None, |_| Ok(()), options).await?;
        let mut delete = DeleteOptions::read(eviction.get("deleteOptions"), &Query::default())?;
        delete.dry_run |= options.dry_run;

        let pod_target = Target { subresource: None, ..target.clone() };
        let record = self.get(&pod_target)?;
        let pod = self.read(&target.resource, &record).await?;
        let mut checked = false;
        if !ignores_budget(&pod)
            && let Some(budget) = self.budget_of(&pod, &target.namespace)?
        {
            if covers_unready(&budget, &pod) {
                checked = true;
            } else {
                self.take_disruption(&budget, target, delete.dry_run).await?;
            }
        }
        let mut delete_options = delete.clone();
        if checked {
            // The pod must not have become ready since it was looked at.
            let version = Some(record.rv.to_string());
            delete_options.preconditions =
                Preconditions { resource_version: version, ..delete.preconditions };
            self.delete(&pod_target, &delete_options, options).await?;
            return Ok(());
        }
        if !delete.dry_run {
            let now = self.clock().now_text();
            self.rewrite(&pod_target, false, |pod, record| {
                set_condition(
                    pod,
                    json!({
                        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
                    }),
                );
                Ok(record.managed.clone())
            })
            .await?;
        }
        self.delete(&pod_target, &delete_options, options).await?;
        Ok(())
    }

    /// The one budget that covers the pod.
    fn budget_of(&self, pod: &Value, namespace: &str) -> Result<Option<Value>, Status> {
        let labels = pod.pointer("/metadata/labels").and_then(Value::as_object);
        let (_, budgets) = self.store().list("policy/poddisruptionbudgets", Some(namespace));
        let mut covering = budgets.iter().map(|record| record.value()).filter(|budget| {
            let selector = Labels::from_object(budget.pointer("/spec/selector"));
            selector.is_ok_and(|selector| selector.matches_json(labels))
        });
        let first = covering.next();
        if covering.next().is_some() {
            let mut status = Status::failure(
                500,
                "",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            );
            status.details = None;
            return Err(status);
        }
        Ok(first)
    }

    /// Takes one disruption out of the budget, or says why there is none.
    async fn take_disruption(&self, budget: &Value, target: &Target, dry_run: bool) -> Result<(), Status> {
        let name = budget.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let Some(resource) = self.registry().find("policy", "v1", "poddisruptionbudgets") else {
            return Err(Status::internal("poddisruptionbudgets are not served"));
        };
        let budget_target = Target::object(&resource, &target.namespace, name);
        let now = self.clock().now_text();
        self.rewrite(&budget_target, dry_run, |budget, record| {
            take_one(budget, name, &target.name, &now).map(|()| record.managed.clone())
        })
        .await?;
        Ok(())
    }
}

/// Pods that are finished, not yet running or already leaving disturb nobody.
fn ignores_budget(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending")
        || pod.pointer("/metadata/deletionTimestamp").is_some()
}

/// A pod that is not ready may go without being counted, if the budget's policy or its numbers allow.
fn covers_unready(budget: &Value, pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().any(|condition| {
        condition.get("type") == Some(&json!("Ready")) && condition.get("status") == Some(&json!("True"))
    });
    if ready {
        return false;
    }
    if budget.pointer("/spec/unhealthyPodEvictionPolicy") == Some(&json!("AlwaysAllow")) {
        return true;
    }
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    healthy >= desired && desired > 0
}

fn count(budget: &Value, key: &str) -> i64 {
    budget.get("status").and_then(|status| status.get(key)).and_then(Value::as_i64).unwrap_or(0)
}

fn take_one(budget: &mut Value, name: &str, pod: &str, now: &str) -> Result<(), Status> {
    let generation = budget.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    if count(budget, "observedGeneration") < generation {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(Status::too_many_requests(VIOLATES, 10).with_cause(CAUSE, cause, ""));
    }
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return Err(Status::forbidden(BUDGET, name, "pdb disruptions allowed is negative"));
    }
    let disrupted =
        budget.pointer("/status/disruptedPods").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    if disrupted > MOST_DISRUPTED {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(BUDGET, name, why));
    }
    if allowed == 0 {
        let cause = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            count(budget, "desiredHealthy"),
            count(budget, "currentHealthy")
        );
        return Err(Status::too_many_requests(VIOLATES, 0).with_cause(CAUSE, cause, ""));
    }
    if let Some(status) = budget.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("disruptionsAllowed".to_owned(), json!(allowed - 1));
        let disrupted = status.entry("disruptedPods").or_insert_with(|| json!({}));
        if let Some(disrupted) = disrupted.as_object_mut() {
            disrupted.insert(pod.to_owned(), json!(now));
        }
    }
    if allowed == 1 {
        set_condition(
            budget,
            json!({
                "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
                "observedGeneration": generation, "lastTransitionTime": now,
            }),
        );
    }
    Ok(())
}
