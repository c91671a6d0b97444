//! Faults that do not heal by themselves: the objects say why they wait, and go on once the fault is lifted.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kruise_runtime::random::Random;
use kruise_sim::{
    Sim,
    faults::{Answer, Calls, Effect, Rule, Webhook, When},
};
use serde_json::{Value, json};

use crate::{
    around,
    process::Process,
    world::{all, api, broadcasts, change, create, get, install, jobs, pods, schedules, template},
};

/// Somebody's webhook for pods is down for an hour.
#[tokio::test(start_paused = true)]
async fn a_dead_webhook_is_reported_and_the_job_goes_on_after_it() {
    let sim = Sim::builder().nodes(3).without_events().start();
    install(&sim).await;
    around::install(&sim).await;
    sim.faults().webhook(around::HOST, Webhook::Refused);
    let _process = Process::start(&sim, &Random::seeded(1), None);
    let spec = json!({"template": template("sleep 2")});
    create(&broadcasts(&sim), json!({"metadata": {"name": "job"}, "spec": spec})).await;
    sim.advance(Duration::from_secs(60)).await;
    let waiting = async || {
        let job = get(&broadcasts(&sim), "job").await;
        let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|one| one["type"] == "Waiting").unwrap();
        found["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(waiting().await, "WebhookUnavailable");
    sim.advance(Duration::from_secs(3600)).await;
    let tries = sim.faults().writes();
    sim.advance(Duration::from_secs(3600)).await;
    assert!(sim.faults().writes() - tries < 60, "it asks again and again");
    sim.faults().webhook(around::HOST, Webhook::Slow(Duration::ZERO));
    sim.advance(Duration::from_secs(400)).await;
    let job = get(&broadcasts(&sim), "job").await;
    assert_eq!((&job["status"]["phase"], &job["status"]["succeeded"]), (&json!("completed"), &json!(3)));
    assert_eq!(waiting().await, "NotWaiting");
}

/// A quota allows no job for a while: the schedule tries at each of its times, and starts the latest run when it may.
#[tokio::test(start_paused = true)]
async fn a_full_quota_stops_no_schedule() {
    let sim = Sim::builder().nodes(2).without_events().start();
    install(&sim).await;
    let quotas = api(&sim, "", "v1", "ResourceQuota", "resourcequotas");
    create(&quotas, json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/jobs.batch": "0"}}})).await;
    sim.advance(Duration::from_secs(5)).await;
    let _process = Process::start(&sim, &Random::seeded(1), None);
    let job = json!({"spec": {"backoffLimit": 0, "template": template("exit 0")}});
    let spec = json!({"schedule": "* * * * *", "template": {"jobTemplate": job}});
    create(&schedules(&sim), json!({"metadata": {"name": "tick"}, "spec": spec})).await;
    sim.advance(Duration::from_secs(600)).await;
    assert_eq!(all(&jobs(&sim)).await.len(), 0);
    quotas.delete("q", &kube::api::DeleteParams::default()).await.unwrap();
    sim.advance(Duration::from_secs(65)).await;
    let made = all(&jobs(&sim)).await;
    assert!((1..=2).contains(&made.len()), "{} jobs", made.len());
    assert!(!all(&pods(&sim)).await.is_empty());
    let last = get(&schedules(&sim), "tick").await["status"]["lastScheduleTime"].clone();
    let last: jiff::Timestamp = last.as_str().unwrap().parse().unwrap();
    assert!(sim.clock().now().duration_since(last).as_secs() <= 60);
}

/// No create of this resource is answered, and none takes effect.
fn swallow_creates(sim: &Sim, plural: &str) {
    let answer = Answer::Timeout(Duration::from_secs(40));
    let calls = Calls::creates(plural);
    sim.faults().rule(Rule { calls, when: When::Chance(1.0), effect: Effect::Before, answer });
}

/// How late each job was created, in seconds.
fn delays(jobs: &[Value]) -> Vec<i64> {
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let delay = |job: &Value| {
        let metadata = &job["metadata"];
        let due = time(&metadata["annotations"]["apps.kruise.io/scheduled-at"]);
        time(&metadata["creationTimestamp"]).duration_since(due).as_secs()
    };
    jobs.iter().map(delay).collect()
}

/// Creates of Jobs get no answer for ten minutes. A run that was due then does not start after its starting deadline, nor beside
/// the latest one (spec 2.5).
#[tokio::test(start_paused = true)]
async fn a_run_whose_create_was_not_answered_does_not_start_too_late() {
    let sim = Sim::builder().nodes(2).without_events().start();
    install(&sim).await;
    let _process = Process::start(&sim, &Random::seeded(1), None);
    let job = json!({"spec": {"backoffLimit": 0, "template": template("exit 0")}});
    let spec = json!({"schedule": "*/5 * * * *", "startingDeadlineSeconds": 45, "successfulJobsHistoryLimit": 100,
        "template": {"jobTemplate": job}});
    create(&schedules(&sim), json!({"metadata": {"name": "tick"}, "spec": spec})).await;
    sim.advance(Duration::from_secs(600)).await;
    let before = all(&jobs(&sim)).await.len();
    assert_eq!(before, 2);
    swallow_creates(&sim, "jobs");
    sim.advance(Duration::from_secs(600)).await;
    assert_eq!(all(&jobs(&sim)).await.len(), before);
    sim.faults().heal();
    sim.advance(Duration::from_secs(900)).await;
    let after = all(&jobs(&sim)).await;
    assert!(after.len() >= before + 2, "the schedule goes on: {} jobs", after.len());
    assert!(delays(&after).iter().all(|delay| *delay <= 46), "{:?}", delays(&after));
}

/// JOBS-36, JOBS-58, JOBS-22: what was not answered is not sent again after somebody has paused the object.
#[tokio::test(start_paused = true)]
async fn a_pause_holds_back_what_was_not_answered() {
    let sim = Sim::builder().nodes(2).without_events().start();
    install(&sim).await;
    let _process = Process::start(&sim, &Random::seeded(1), None);
    swallow_creates(&sim, "jobs");
    swallow_creates(&sim, "pods");
    let job = json!({"spec": {"backoffLimit": 0, "template": template("exit 0")}});
    let spec = json!({"schedule": "* * * * *", "template": {"jobTemplate": job}});
    create(&schedules(&sim), json!({"metadata": {"name": "tick"}, "spec": spec})).await;
    let spec = json!({"template": template("sleep 5")});
    create(&broadcasts(&sim), json!({"metadata": {"name": "job"}, "spec": spec})).await;
    sim.advance(Duration::from_secs(200)).await;
    let pause = json!({"spec": {"paused": true}});
    change(&schedules(&sim), "tick", pause.clone()).await;
    change(&broadcasts(&sim), "job", pause).await;
    sim.advance(Duration::from_secs(5)).await;
    sim.faults().heal();
    sim.advance(Duration::from_secs(1800)).await;
    assert_eq!((all(&jobs(&sim)).await.len(), all(&pods(&sim)).await.len()), (0, 0));
    let go_on = json!({"spec": {"paused": false}});
    change(&schedules(&sim), "tick", go_on.clone()).await;
    change(&broadcasts(&sim), "job", go_on).await;
    sim.advance(Duration::from_secs(60)).await;
    assert!(!all(&jobs(&sim)).await.is_empty());
    assert_eq!(get(&broadcasts(&sim), "job").await["status"]["succeeded"], 2);
}

/// A quota is full of other people's pods for ten minutes. A job that was stored before its rules waits like any other.
#[tokio::test(start_paused = true)]
async fn a_full_quota_stops_no_job_that_was_stored_before_its_rules() {
    let sim = Sim::builder().nodes(2).without_events().start();
    install(&sim).await;
    let quotas = api(&sim, "", "v1", "ResourceQuota", "resourcequotas");
    create(&quotas, json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})).await;
    sim.advance(Duration::from_secs(5)).await;
    let _process = Process::start(&sim, &Random::seeded(1), None);
    let spec =
        json!({"failurePolicy": {"type": "FailFast", "restartLimit": -1}, "template": template("exit 0")});
    create(&broadcasts(&sim), json!({"metadata": {"name": "job"}, "spec": spec})).await;
    sim.advance(Duration::from_secs(600)).await;
    assert_eq!(all(&pods(&sim)).await.len(), 0);
    quotas.delete("q", &kube::api::DeleteParams::default()).await.unwrap();
    sim.advance(Duration::from_secs(900)).await;
    let job = get(&broadcasts(&sim), "job").await;
    assert_eq!((&job["status"]["phase"], &job["status"]["succeeded"]), (&json!("completed"), &json!(2)));
}

/// Pods have the same names whichever process creates them: a create of a process that died then makes no second pod.
#[tokio::test(start_paused = true)]
async fn each_process_gives_the_pod_of_a_node_the_same_name() {
    let sim = Sim::builder().nodes(3).without_events().start();
    install(&sim).await;
    let process = Process::start(&sim, &Random::seeded(1), None);
    let spec = json!({"template": template("sleep 3600")});
    create(&broadcasts(&sim), json!({"metadata": {"name": "job"}, "spec": spec})).await;
    sim.advance(Duration::from_secs(10)).await;
    let names = async || {
        let pods = all(&pods(&sim)).await;
        pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let before = names().await;
    assert_eq!(before.len(), 3);
    drop(process);
    for name in &before {
        pods(&sim).delete(name, &kube::api::DeleteParams::default()).await.unwrap();
    }
    sim.advance(Duration::from_secs(10)).await;
    assert_eq!(names().await.len(), 0);
    let _process = Process::start(&sim, &Random::seeded(2), None);
    sim.advance(Duration::from_secs(10)).await;
    assert_eq!(names().await, before);
}

/// A policy of somebody's webhook forbids the deletion of Jobs: a run that shall replace another asks less and less often.
#[tokio::test(start_paused = true)]
async fn a_job_that_may_not_be_deleted_is_not_asked_for_each_second() {
    let sim = Sim::builder().nodes(2).without_events().start();
    install(&sim).await;
    sim.server().register_webhook_host("guard.default.svc", tower::service_fn(deny));
    let kind = kube::core::GroupVersionKind::gvk(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
    );
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"},
        "webhooks": [{
            "name": "guard.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"service": {"namespace": "default", "name": "guard", "path": "/"}},
            "rules": [{"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["jobs"]}],
        }],
    });
    let all_hooks: kube::Api<kube::api::DynamicObject> =
        kube::Api::all_with(sim.client(), &kube::api::ApiResource::from_gvk(&kind));
    let configuration = serde_json::from_value(configuration).unwrap();
    all_hooks.create(&kube::api::PostParams::default(), &configuration).await.unwrap();
    let _process = Process::start(&sim, &Random::seeded(1), None);
    let job = json!({"spec": {"backoffLimit": 0, "template": template("sleep 36000")}});
    let spec =
        json!({"schedule": "*/5 * * * *", "concurrencyPolicy": "Replace", "template": {"jobTemplate": job}});
    create(&schedules(&sim), json!({"metadata": {"name": "tick"}, "spec": spec})).await;
    sim.advance(Duration::from_secs(360)).await;
    assert_eq!(all(&jobs(&sim)).await.len(), 1);
    let asked = DENIED.load(Ordering::SeqCst);
    sim.advance(Duration::from_secs(600)).await;
    let asked = DENIED.load(Ordering::SeqCst) - asked;
    assert!((1..60).contains(&asked), "{asked} deletions were tried in ten minutes");
    assert_eq!(all(&jobs(&sim)).await.len(), 1);
    all_hooks.delete("guard", &kube::api::DeleteParams::default()).await.unwrap();
    sim.advance(Duration::from_secs(600)).await;
    let jobs = all(&jobs(&sim)).await;
    assert!(jobs.len() == 1 && delays(&jobs).iter().all(|delay| *delay < 300), "{jobs:?}");
}

/// How many deletions were refused.
static DENIED: AtomicUsize = AtomicUsize::new(0);

async fn deny(request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Infallible> {
    DENIED.fetch_add(1, Ordering::SeqCst);
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let answer = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "response": {"uid": review["request"]["uid"], "allowed": false, "status": {"code": 403, "message": "not this one"}},
    });
    Ok(Response::new(Full::new(answer.to_string().into())))
}
