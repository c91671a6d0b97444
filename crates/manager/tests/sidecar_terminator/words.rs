//! Jobs with sidecars, and words to talk about them.

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kruise_api::{
    containerrecreaterequest::v1beta1::ContainerRecreateRequest,
    env::{TERMINATE_SIDECAR, TERMINATE_SIDECAR_IGNORE_EXIT_CODE},
};
use kruise_testkit::{
    Cluster, Sandbox, Skip,
    cluster::REAL_NODES,
    events::Seen,
    pod::container as status_of,
    wait::{Look, seen},
};
use serde_json::{Value, json};

use crate::{kit::merged, stage::Stage};

/// What a manager is started with: the feature is off by default.
pub(crate) const ON: [&str; 1] = ["--feature-gates=SidecarTerminator=true"];

/// A namespace for jobs whose containers really run, where there are such.
pub(crate) struct Room {
    pub(crate) sandbox: Sandbox,
    cluster: Cluster,
}

impl Room {
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Result<Self, Skip> {
        stage.cluster.require_nodes(REAL_NODES).await?;
        let cluster = stage.cluster.clone();
        Ok(Self { sandbox: cluster.sandbox(purpose).await, cluster })
    }

    pub(crate) fn image(&self, name: &str) -> String {
        self.cluster.image(name)
    }

    /// A container that ends with a code after some seconds.
    pub(crate) fn main(&self, name: &str, seconds: u32, code: u8) -> Value {
        let script = format!("sleep {seconds}; exit {code}");
        json!({"name": name, "image": self.image("app:v1"), "command": ["sh", "-c", script]})
    }

    /// A container that runs until it is told to stop, with variables.
    pub(crate) fn sidecar(&self, name: &str, image: &str, variables: &[(&str, &str)]) -> Value {
        let port = 8080 + name.bytes().map(u32::from).sum::<u32>() % 1000;
        let mut env = vec![json!({"name": "PORT", "value": port.to_string()})];
        env.extend(variables.iter().map(|(name, value)| json!({"name": name, "value": value})));
        json!({"name": name, "image": self.image(image), "env": env})
    }

    /// A sidecar that ends well when it is told to.
    pub(crate) fn normal(&self, name: &str) -> Value {
        self.sidecar(name, "app:v1", &[(TERMINATE_SIDECAR, "true")])
    }

    /// A sidecar that has to be killed, and whose code must not count.
    pub(crate) fn ignored(&self, name: &str) -> Value {
        let variables = [(TERMINATE_SIDECAR, "true"), (TERMINATE_SIDECAR_IGNORE_EXIT_CODE, "true")];
        self.sidecar(name, "stubborn:v1", &variables)
    }

    /// Creates the job `work`, changed by a merge patch.
    pub(crate) async fn job(&self, policy: &str, containers: &[Value], change: &Value) {
        let job = json!({
            "metadata": {"name": "work"},
            "spec": {"backoffLimit": 0, "template": {"spec": pod_spec(policy, containers)}},
        });
        let _: Job = self.sandbox.create(merged(job, change)).await;
    }

    /// Creates a pod that nobody owns.
    pub(crate) async fn pod(&self, name: &str, policy: &str, containers: &[Value]) -> Pod {
        self.sandbox.create(json!({"metadata": {"name": name}, "spec": pod_spec(policy, containers)})).await
    }

    /// The pods of the namespace, of which there is one in most scenarios.
    pub(crate) async fn pods(&self) -> Vec<Pod> {
        self.sandbox.list().await
    }

    /// Waits until the only pod is as wanted.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Pod) -> bool) -> Pod {
        self.sandbox
            .eventually(what, async || match self.pods().await.as_slice() {
                [pod] if is_so(pod) => Look::Yes(pod.clone()),
                pods => {
                    Look::No(pods.iter().map(kruise_testkit::pod::summary).collect::<Vec<_>>().join(", "))
                }
            })
            .await
    }

    /// Waits until the main container has ended.
    pub(crate) async fn main_has_ended(&self) -> Pod {
        self.until("the main container has ended", |pod| exit_code(pod, "main").is_some()).await
    }

    /// Waits until the job has a condition.
    pub(crate) async fn job_is(&self, condition: &str) {
        let look = async || {
            let job: Job = self.sandbox.get("work").await;
            let conditions = job.status.and_then(|status| status.conditions).unwrap_or_default();
            let is_so = conditions.iter().any(|one| one.type_ == condition && one.status == "True");
            let pods: Vec<String> = self.pods().await.iter().map(kruise_testkit::pod::summary).collect();
            seen(is_so, format!("{conditions:?}, pods {pods:?}"))
        };
        self.sandbox.eventually(&format!("the job is {condition}"), look).await;
    }

    /// The requests to kill containers.
    pub(crate) async fn requests(&self) -> Vec<ContainerRecreateRequest> {
        self.sandbox.list().await
    }

    /// Waits until there is a request, which is then the only one.
    pub(crate) async fn request(&self) -> ContainerRecreateRequest {
        self.sandbox
            .eventually("there is a request", async || match self.requests().await.as_slice() {
                [request] => Look::Yes(request.clone()),
                requests => Look::No(format!("{} requests, {:?}", requests.len(), self.pods().await)),
            })
            .await
    }

    /// Checks over a while that nobody asks for anything, and nothing is told.
    pub(crate) async fn nothing_happens(&self, seconds: u64) {
        let look = async || {
            let (requests, events) = (self.requests().await, self.events().await);
            seen(requests.is_empty() && events.is_empty(), format!("{requests:?}, {events:?}"))
        };
        let during = std::time::Duration::from_secs(seconds);
        self.sandbox.always("nothing is done", during, look).await;
    }

    /// What was told about sidecars.
    pub(crate) async fn events(&self) -> Vec<Seen> {
        let events = self.sandbox.events().await.into_iter();
        events.filter(|event| event.reason == "SidecarTerminator").collect()
    }
}

pub(crate) fn pod_spec(policy: &str, containers: &[Value]) -> Value {
    json!({
        "restartPolicy": policy,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {REAL_NODES.0: REAL_NODES.1},
        "containers": containers,
    })
}

/// The code with which a container ended, if it has.
pub(crate) fn exit_code(pod: &Pod, container: &str) -> Option<i32> {
    Some(status_of(pod, container)?.state.as_ref()?.terminated.as_ref()?.exit_code)
}

/// Whether a container runs.
pub(crate) fn runs(pod: &Pod, container: &str) -> bool {
    status_of(pod, container)
        .is_some_and(|status| status.state.as_ref().is_some_and(|state| state.running.is_some()))
}

/// The phase of a pod.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The containers that a request names.
pub(crate) fn named(request: &ContainerRecreateRequest) -> Vec<&str> {
    request.spec.containers.iter().map(|container| container.name.as_str()).collect()
}
