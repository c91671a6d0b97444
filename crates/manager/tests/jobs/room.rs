//! What the scenarios have in common: a namespace, its nodes, and objects as JSON.

use std::time::Duration;

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Node, Pod},
};
use kruise_api::{
    advancedcronjob::v1beta1::AdvancedCronJob, broadcastjob::v1beta1::BroadcastJob,
    imagelistpulljob::v1beta1::ImageListPullJob,
};
use kruise_testkit::{
    Backend, Sandbox,
    cluster::{HOLLOW_NODES, REAL_NODES},
    wait::seen,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{kit::merged, stage::Stage};

pub(crate) const LONG: Duration = Duration::from_secs(240);

/// A namespace for one scenario.
pub(crate) struct Room {
    pub(crate) sandbox: Sandbox,
    client: kube::Client,
    image: String,
    node_type: (&'static str, &'static str),
    /// The names of the nodes that run commands, sorted.
    pub(crate) nodes: Vec<String>,
}

/// The node that a pod is on or bound to.
pub(crate) fn node_of(pod: &Pod) -> String {
    let pod = serde_json::to_value(pod).unwrap();
    let bound = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    let node = pod.pointer("/spec/nodeName").or_else(|| pod.pointer(bound));
    node.and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

impl Room {
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Self {
        let cluster = stage.cluster.clone();
        // Hollow nodes of a real cluster run no commands.
        let node_type = if cluster.backend() == Backend::Real { REAL_NODES } else { HOLLOW_NODES };
        let label = format!("{}={}", node_type.0, node_type.1);
        let api: Api<Node> = Api::all(cluster.client());
        let found = api.list(&ListParams::default().labels(&label)).await.unwrap();
        let mut nodes: Vec<String> = found.items.into_iter().filter_map(|node| node.metadata.name).collect();
        nodes.sort();
        let (client, image) = (cluster.client(), cluster.image("app:v1"));
        Self { sandbox: cluster.sandbox(purpose).await, client, image, node_type, nodes }
    }

    pub(crate) fn count(&self) -> i64 {
        i64::try_from(self.nodes.len()).unwrap()
    }

    /// A pod template whose container runs a script.
    pub(crate) fn template(&self, script: &str) -> Value {
        let (key, value) = self.node_type;
        json!({"spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {key: value},
            "containers": [{
                "name": "main",
                "image": self.image,
                "command": ["sh", "-c", script],
                "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            }],
        }})
    }

    /// A script that fails on the first node and takes so many seconds on the others.
    pub(crate) fn failing_on_first(&self, seconds: u32) -> String {
        let first = &self.nodes[0];
        format!("if [ \"$NODE\" = {first} ]; then exit 1; fi; sleep {seconds}")
    }

    /// Creates the BroadcastJob `job`.
    pub(crate) async fn broadcast(&self, script: &str, change: Value) {
        let job = json!({"metadata": {"name": "job"}, "spec": {"template": self.template(script)}});
        let _: BroadcastJob = self.sandbox.create(merged(job, &change)).await;
    }

    /// Creates the AdvancedCronJob `tick`.
    pub(crate) async fn schedule(&self, schedule: &str, change: Value) {
        let cron = json!({"metadata": {"name": "tick"}, "spec": {"schedule": schedule}});
        let _: AdvancedCronJob = self.sandbox.create(merged(cron, &change)).await;
    }

    /// A template of Jobs that run a script once.
    pub(crate) fn jobs(&self, script: &str) -> Value {
        json!({"spec": {"template": {"jobTemplate": {"spec": {"backoffLimit": 0, "template": self.template(script)}}}}})
    }

    pub(crate) async fn job(&self) -> Value {
        serde_json::to_value(self.sandbox.get::<BroadcastJob>("job").await).unwrap()
    }

    pub(crate) async fn tick(&self) -> Value {
        serde_json::to_value(self.sandbox.get::<AdvancedCronJob>("tick").await).unwrap()
    }

    pub(crate) async fn change_job(&self, change: Value) {
        let _: BroadcastJob = self.sandbox.merge("job", change).await;
    }

    pub(crate) async fn change_tick(&self, change: Value) {
        let _: AdvancedCronJob = self.sandbox.merge("tick", change).await;
    }

    pub(crate) async fn pods(&self) -> Vec<Pod> {
        self.sandbox.list().await
    }

    /// Phase, then desired/active/succeeded/failed.
    pub(crate) async fn told(&self) -> String {
        let status = self.job().await["status"].clone();
        let number = |field: &str| status[field].as_i64().unwrap_or(-1).to_string();
        let numbers = ["desired", "active", "succeeded", "failed"].map(number);
        format!("{} {}", status["phase"].as_str().unwrap_or("none"), numbers.join("/"))
    }

    /// Waits until the job says this about itself.
    pub(crate) async fn until(&self, told: &str) {
        let look = async || {
            let now = self.told().await;
            seen(now == told, format!("{now}; {}", self.job().await["status"]))
        };
        self.within(&format!("the job is {told}"), look).await;
    }

    /// Waits for as long as schedules need.
    pub(crate) async fn within<T>(
        &self,
        what: &str,
        look: impl AsyncFnMut() -> kruise_testkit::wait::Look<T>,
    ) -> T {
        match kruise_testkit::wait::eventually(what, LONG, look).await {
            Ok(value) => value,
            Err(message) => panic!("{message}\n{}", self.sandbox.describe().await),
        }
    }

    /// A condition of the job: status, reason and message.
    pub(crate) async fn condition(&self, kind: &str) -> Option<[String; 3]> {
        let job = self.job().await;
        let all = job["status"]["conditions"].as_array()?;
        let found = all.iter().find(|condition| condition["type"] == kind)?;
        Some(["status", "reason", "message"].map(|key| found[key].as_str().unwrap_or_default().to_owned()))
    }

    /// Messages of the events with this reason about objects of a kind.
    pub(crate) async fn events(&self, kind: &str, reason: &str) -> Vec<String> {
        let all = self.sandbox.events().await;
        let found =
            all.into_iter().filter(|one| one.reason == reason && one.about.starts_with(&format!("{kind}/")));
        found.map(|one| one.message).collect()
    }

    pub(crate) async fn change_node(&self, name: &str, change: Value) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    }

    pub(crate) async fn cordon(&self, node: &str, on: bool) {
        self.change_node(node, json!({"spec": {"unschedulable": on}})).await;
    }

    pub(crate) async fn taint(&self, node: &str, taints: Value) {
        self.change_node(node, json!({"spec": {"taints": taints}})).await;
    }

    /// The Jobs that were made, by name, as JSON.
    pub(crate) async fn made(&self) -> Vec<Value> {
        json_of(&self.sandbox.list::<Job>().await)
    }

    /// The BroadcastJobs that were made.
    pub(crate) async fn made_broadcasts(&self) -> Vec<Value> {
        json_of(&self.sandbox.list::<BroadcastJob>().await)
    }

    /// The ImageListPullJobs that were made.
    pub(crate) async fn made_lists(&self) -> Vec<Value> {
        json_of(&self.sandbox.list::<ImageListPullJob>().await)
    }
}

fn json_of<T: serde::Serialize>(objects: &[T]) -> Vec<Value> {
    objects.iter().map(|object| serde_json::to_value(object).unwrap()).collect()
}

/// The time that a job was made for, in seconds.
pub(crate) fn due(child: &Value) -> i64 {
    let annotation = &child["metadata"]["annotations"]["apps.kruise.io/scheduled-at"];
    annotation.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second()
}

pub(crate) fn name(child: &Value) -> &str {
    child["metadata"]["name"].as_str().unwrap()
}
