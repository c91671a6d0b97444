//! Quotas and limit ranges: what a namespace may use.

use kruise_sim::Sim;
use serde_json::{Value, json};

use super::{create, delete, get, list, pod, seconds};

fn asking(name: &str, cpu: &str) -> Value {
    let mut pod = pod(name, "app:1");
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
    pod
}

async fn refusal(sim: &Sim, object: Value) -> String {
    let local = sim.server().local();
    let pods = local.resource("", "pods").unwrap();
    local.create(&pods, "default", object).await.unwrap_err().message
}

#[tokio::test(start_paused = true)]
async fn a_quota_counts_and_refuses() {
    let sim = Sim::builder().start();
    let hard = json!({"pods": "3", "requests.cpu": "1", "count/deployments.apps": "1"});
    create(&sim, "resourcequotas", json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await;
    create(&sim, "pods", asking("a", "600m")).await;
    seconds(&sim, 10).await;
    let used = |sim: &Sim| get(sim, "resourcequotas", "q")["status"]["used"].clone();
    assert_eq!(used(&sim), json!({"pods": "1", "requests.cpu": "600m", "count/deployments.apps": "0"}));
    assert_eq!(
        refusal(&sim, asking("b", "500m")).await,
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, \
         limited: requests.cpu=1"
    );
    assert_eq!(
        refusal(&sim, pod("b", "app:1")).await,
        "pods \"b\" is forbidden: failed quota: q: must specify requests.cpu for: app"
    );
    create(&sim, "pods", asking("b", "400m")).await;
    delete(&sim, "pods", "a").await;
    seconds(&sim, 60).await;
    assert_eq!(used(&sim)["requests.cpu"], "400m");
    let mut history = sim.history();
    history.take();
    seconds(&sim, 60).await;
    let written: Vec<String> = history.take().into_iter().map(|(table, _)| table.to_string()).collect();
    assert!(!written.contains(&"/resourcequotas".to_owned()), "{written:?}");
}

#[tokio::test(start_paused = true)]
async fn a_limit_range_fills_and_refuses() {
    let sim = Sim::builder().start();
    let limit = json!({
        "type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "500m", "memory": "1Gi"},
        "defaultRequest": {"cpu": "100m"},
    });
    create(&sim, "limitranges", json!({"metadata": {"name": "l"}, "spec": {"limits": [limit]}})).await;
    create(&sim, "pods", pod("a", "app:1")).await;
    let made = &list(&sim, "pods")[0];
    assert_eq!(
        made["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}})
    );
    assert_eq!(made["status"]["qosClass"], "Burstable");
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu, memory request for container app; cpu, memory limit for container app"
    );
    assert_eq!(
        refusal(&sim, asking("b", "2")).await,
        "pods \"b\" is forbidden: maximum cpu usage per Container is 1, but limit is 2"
    );
}
