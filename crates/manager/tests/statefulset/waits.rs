//! Why a set makes no progress: its condition, its events, and what ends the wait.

use std::time::Duration;

use kruise_api::{podunavailablebudget::v1beta1::PodUnavailableBudget, statefulset::v1beta1::StatefulSet};
use kruise_testkit::{Backend, Outcome, wait::seen};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    stage::{Stage, managed},
    web::{Web, pulling},
};

/// The reason and the message of the condition.
pub(crate) fn waiting(set: &StatefulSet) -> (String, String) {
    let conditions = set.status.clone().unwrap_or_default().conditions;
    let found = conditions.into_iter().find(|one| one.kind == "Waiting");
    found.map(|one| (one.reason.unwrap_or_default(), one.message.unwrap_or_default())).unwrap_or_default()
}

/// WAITING-15
async fn an_ordered_set_says_which_pod_holds_it_and_why(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "order", json!({"podManagementPolicy": "OrderedReady", "replicas": 1})).await;
    let nowhere = json!({"spec": {"nodeSelector": {"kruise-rs.io/node-type": "none"}}});
    web.change(json!({"replicas": 3, "template": nowhere})).await;
    web.until("the condition names both", |set, _| {
        let (reason, message) = waiting(set);
        reason == "PodUnschedulable"
            && message.starts_with("1 pod cannot be scheduled (web-1): ")
            && message.contains(". pod web-1 must be available before web-2 is created")
    })
    .await;
    let look = async || {
        let told = web.messages("Waiting").await;
        let one = told.iter().filter(|message| message.starts_with("PodUnschedulable: ")).count();
        seen(one == 1, format!("{told:?}"))
    };
    web.sandbox.eventually("one event says so", look).await;
    Ok(())
}
managed!(an_ordered_set_says_which_pod_holds_it_and_why, []);

/// WAITING-5 and STATEFULSET-52: a bad image with OrderedReady is named, although no pod is missing.
async fn an_ordered_set_names_the_pod_that_its_update_broke(stage: &mut Stage) -> Outcome {
    let spec = json!({"podManagementPolicy": "OrderedReady", "replicas": 3});
    let web = Web::start(stage, "names", pulling(stage, spec).await?).await;
    web.set_image("nosuch:v1-fail").await;
    web.until("the condition names image and pod", |set, _| {
        let (reason, message) = waiting(set);
        reason == "ImagePullFailing"
            && message.contains("(web-2): ")
            && message.contains(". pod web-2 must be available before web-1 is updated")
    })
    .await;
    web.set_image("app:v1").await;
    web.sandbox.delete::<k8s_openapi::api::core::v1::Pod>("web-2").await;
    web.rests_at("0:v1 1:v1 2:v1").await;
    web.until("the wait is over", |set, _| waiting(set) == ("NotWaiting".to_owned(), String::new())).await;
    Ok(())
}
managed!(an_ordered_set_names_the_pod_that_its_update_broke, []);

/// How many deletions the server has refused.
async fn refused_deletions(stage: &Stage) -> u64 {
    let metrics = stage.metrics().await;
    let refused = metrics.lines().filter(|line| {
        line.starts_with("rest_client_requests_total{code=\"403\"") && line.contains("method=\"DELETE\"")
    });
    refused.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// WAITING-10: a budget that allows nothing holds a rollout, and its end is noticed at once, however long it lasted.
async fn a_budget_holds_a_rollout_and_lets_it_go_at_once(stage: &mut Stage) -> Outcome {
    let web = Web::start(stage, "budget", json!({"replicas": 3})).await;
    let budget = json!({
        "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0},
    });
    web.sandbox.create::<PodUnavailableBudget>(budget).await;
    let look = async || {
        let budget: PodUnavailableBudget = web.sandbox.get("web").await;
        let status = serde_json::to_value(&budget.status).unwrap();
        seen(status["totalReplicas"] == 3, status.to_string())
    };
    web.sandbox.eventually("the pods are counted", look).await;
    web.set_image("app:v2").await;
    web.until("the condition names the budget", |set, _| {
        let (reason, message) = waiting(set);
        reason == "BudgetRefuses" && message.contains(" for PodUnavailableBudget web (")
    })
    .await;
    if stage.cluster.backend() == Backend::Embedded {
        // By now the pauses between the tries are long.
        tokio::time::sleep(Duration::from_secs(20 * 60)).await;
        let before = refused_deletions(stage).await;
        tokio::time::sleep(Duration::from_secs(60 * 60)).await;
        let after = refused_deletions(stage).await;
        assert!((1..40).contains(&before) && after - before < 20, "{before} refusals, then {after}");
    }
    assert_eq!(web.shown(&web.pods().await), "0:v1 1:v1 2:v1");
    web.sandbox.merge::<PodUnavailableBudget>("web", json!({"spec": {"maxUnavailable": 1}})).await;
    let began = Instant::now();
    web.until("the rollout goes on", |_, pods| web.shown(pods) != "0:v1 1:v1 2:v1" || pods.len() < 3).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    web.rests_at("0:v2 1:v2 2:v2").await;
    web.until("the wait is over", |set, _| waiting(set).0 == "NotWaiting").await;
    Ok(())
}
managed!(a_budget_holds_a_rollout_and_lets_it_go_at_once, []);

/// WAITING-11: hooks that nobody answers.
async fn hooks_that_hold_pods_are_named(stage: &mut Stage) -> Outcome {
    let hook = json!({"preDelete": {"labelsHandler": {"hold": "yes"}}});
    let template = json!({"metadata": {"labels": {"hold": "yes"}}});
    let web =
        Web::start(stage, "hooks", json!({"replicas": 2, "template": template, "lifecycle": hook})).await;
    web.change(json!({"replicas": 1})).await;
    web.until("the condition names pod and label", |set, _| {
        waiting(set)
            == (
                "PreDeleteHook".to_owned(),
                "1 pod waits for its preDelete hook (web-1): label hold=yes is still on web-1".to_owned(),
            )
    })
    .await;
    web.change_pod(1, json!({"metadata": {"labels": {"hold": null}}})).await;
    web.rests_at("0:v1").await;
    web.until("the wait is over", |set, _| waiting(set).0 == "NotWaiting").await;
    Ok(())
}
managed!(hooks_that_hold_pods_are_named, []);
