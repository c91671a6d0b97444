//! A node daemon, played by the test: it stops the containers that a request names, and says in the request when it is
//! done. It knows nothing but what the specification says about both sides.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kruise_api::containerrecreaterequest::v1beta1::ContainerRecreateRequest;
use kruise_sim::Sim;
use kruise_testkit::{Sandbox, pod::container as status_of};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    stage::Stage,
    words::{Room, named, runs},
};

/// The daemon of all nodes.
pub(crate) struct NodeDaemon<'a> {
    sim: &'a Sim,
    sandbox: Sandbox,
}

/// The ids of the containers that a request was about when it came, by the uid of the request.
type Begun = BTreeMap<String, BTreeMap<String, Option<String>>>;

impl<'a> NodeDaemon<'a> {
    pub(crate) fn new(stage: &'a Stage, room: &Room) -> Self {
        Self { sim: stage.sim(), sandbox: room.sandbox.clone() }
    }

    /// Works while something else happens.
    pub(crate) async fn during<T>(&self, story: impl Future<Output = T>) -> T {
        tokio::select! {
            told = story => told,
            never = self.work() => never,
        }
    }

    async fn work<T>(&self) -> T {
        let mut begun = Begun::new();
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let requests: Vec<ContainerRecreateRequest> = self.sandbox.list().await;
            for request in requests {
                self.look(&request, &mut begun).await;
            }
        }
    }

    async fn look(&self, request: &ContainerRecreateRequest, begun: &mut Begun) {
        let pods: Api<Pod> = self.sandbox.api();
        let is_done = request.status.as_ref().is_some_and(|status| status.completion_time.is_some());
        let Some(pod) = pods.get_opt(&request.spec.pod_name).await.unwrap().filter(|_| !is_done) else {
            return;
        };
        let id = |name: &str| status_of(&pod, name).and_then(|status| status.container_id.clone());
        let uid = request.metadata.uid.clone().unwrap();
        let Some(before) = begun.get(&uid) else {
            begun.insert(uid, named(request).into_iter().map(|name| (name.to_owned(), id(name))).collect());
            for container in named(request) {
                self.sim.kill_container(self.sandbox.namespace(), &request.spec.pod_name, container);
            }
            return;
        };
        if before.iter().all(|(name, before)| id(name) != *before || !runs(&pod, name)) {
            let now = self.sim.clock().now();
            let status = json!({"status": {"phase": "Completed", "completionTime": now.round(jiff::Unit::Second).unwrap()}});
            let requests: Api<ContainerRecreateRequest> = self.sandbox.api();
            let name = request.metadata.name.as_deref().unwrap();
            requests.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        }
    }
}
