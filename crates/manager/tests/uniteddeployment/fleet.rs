//! A UnitedDeployment in a namespace of its own, over the three zones of the cluster.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, Deployment, StatefulSet as NativeSet},
    core::v1::{Node, Pod},
};
use kruise_api::{
    cloneset::v1beta1::CloneSet,
    labels::{SUBSET_NAME, UNITED_DEPLOYMENT_RESERVED_POD, UNITED_DEPLOYMENT_REVISION},
    statefulset::v1beta1::StatefulSet,
    uniteddeployment::v1beta1::UnitedDeployment,
};
use kruise_testkit::{Sandbox, wait::seen};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{kit::merged, stage::Stage};

/// The fields of the four kinds of templates.
pub(crate) const KINDS: [&str; 4] =
    ["cloneSetTemplate", "advancedStatefulSetTemplate", "statefulSetTemplate", "deploymentTemplate"];

/// The UnitedDeployment `web` of the scenarios.
pub(crate) struct Fleet {
    pub(crate) sandbox: Sandbox,
    client: kube::Client,
    image: Box<dyn Fn(&str) -> String>,
    /// The field of its template.
    pub(crate) field: &'static str,
}

/// A subset on the nodes of a zone, with more of its spec.
pub(crate) fn subset(name: &str, zone: &str, more: Value) -> Value {
    let term = json!({"matchExpressions": [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]});
    merged(json!({"name": name, "nodeSelectorTerm": term}), &more)
}

/// Subsets `a`, `b` and `c` on the zones, with more of their specs.
pub(crate) fn subsets(more: [Value; 3]) -> Value {
    let [a, b, c] = more;
    json!({"topology": {"subsets": [subset("a", "zone-a", a), subset("b", "zone-b", b), subset("c", "zone-c", c)]}})
}

fn json_of<T: serde::Serialize>(objects: &[T]) -> Vec<Value> {
    objects.iter().map(|object| serde_json::to_value(object).unwrap()).collect()
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// A label of an object.
pub(crate) fn label<'v>(object: &'v Value, key: &str) -> &'v str {
    object["metadata"]["labels"][key].as_str().unwrap_or_default()
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

impl Fleet {
    pub(crate) async fn prepare(stage: &Stage, purpose: &str, field: &'static str) -> Self {
        let cluster = stage.cluster.clone();
        let (client, sandbox) = (cluster.client(), cluster.sandbox(purpose).await);
        Self { sandbox, client, image: Box::new(move |name| cluster.image(name)), field }
    }

    /// `web` with this spec, and its pods ready.
    pub(crate) async fn start(stage: &Stage, purpose: &str, field: &'static str, spec: Value) -> Self {
        let fleet = Self::prepare(stage, purpose, field).await;
        fleet.create(spec).await;
        fleet.settled().await;
        fleet
    }

    pub(crate) fn image(&self, name: &str) -> String {
        (self.image)(name)
    }

    /// The workload of a template.
    pub(crate) fn template(&self, field: &str) -> Value {
        let mut template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "terminationGracePeriodSeconds": 1,
                "nodeSelector": {"kruise-rs.io/node-type": "hollow"},
                "containers": [{"name": "main", "image": self.image("app:v1")}]}}}});
        if field.contains("tatefulSet") {
            template["spec"]["serviceName"] = json!("web");
            template["spec"]["podManagementPolicy"] = json!("Parallel");
        }
        template
    }

    /// The object, with its spec changed by a merge patch.
    pub(crate) fn object(&self, spec: &Value) -> Value {
        let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "UnitedDeployment",
            "metadata": {"name": "web", "namespace": self.sandbox.namespace()},
            "spec": {"replicas": 6, "selector": {"matchLabels": {"app": "web"}},
                "template": {self.field: self.template(self.field)}}});
        let object = merged(object, &json!({"spec": subsets([json!({}), json!({}), json!({})])}));
        merged(object, &json!({"spec": spec}))
    }

    pub(crate) async fn create(&self, spec: Value) {
        let _: UnitedDeployment = self.sandbox.create(self.object(&spec)).await;
    }

    /// The object as it is.
    pub(crate) async fn web(&self) -> Value {
        serde_json::to_value(self.sandbox.get::<UnitedDeployment>("web").await).unwrap()
    }

    pub(crate) async fn status(&self) -> Value {
        self.web().await["status"].clone()
    }

    /// A condition of the object.
    pub(crate) async fn condition(&self, kind: &str) -> Value {
        let status = self.status().await;
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["type"] == kind).unwrap_or_default()
    }

    /// The entry of a subset in the status.
    pub(crate) async fn entry(&self, subset: &str) -> Value {
        let status = self.status().await;
        let all = status["subsetStatuses"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["name"] == subset).unwrap_or_default()
    }

    pub(crate) async fn change(&self, spec: Value) {
        let _: UnitedDeployment = self.sandbox.merge("web", json!({"spec": spec})).await;
    }

    /// Changes the spec; the refusal, if there is one.
    pub(crate) async fn try_change(&self, spec: Value) -> Result<(), String> {
        let api: Api<UnitedDeployment> = self.sandbox.api();
        let patch = Patch::Merge(json!({"spec": spec}));
        match api.patch("web", &PatchParams::default(), &patch).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Scales as an autoscaler does.
    pub(crate) async fn scale(&self, replicas: i32) {
        let api: Api<UnitedDeployment> = self.sandbox.api();
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        api.patch_scale("web", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Gives all pods another image.
    pub(crate) async fn set_image(&self, image: &str) {
        let containers = json!([{"name": "main", "image": self.image(image)}]);
        let pods = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        self.change(json!({"template": {self.field: pods}})).await;
    }

    /// The workloads of all kinds, as JSON.
    pub(crate) async fn children(&self) -> Vec<Value> {
        let mut all = json_of(&self.sandbox.list::<CloneSet>().await);
        all.extend(json_of(&self.sandbox.list::<StatefulSet>().await));
        all.extend(json_of(&self.sandbox.list::<NativeSet>().await));
        all.extend(json_of(&self.sandbox.list::<Deployment>().await));
        all.retain(|one| !label(one, SUBSET_NAME).is_empty());
        all
    }

    /// The workload of a subset.
    pub(crate) async fn child(&self, subset: &str) -> Value {
        let all = self.children().await;
        all.into_iter().find(|one| label(one, SUBSET_NAME) == subset).unwrap()
    }

    pub(crate) async fn pods(&self) -> Vec<Value> {
        json_of(&self.sandbox.list::<Pod>().await)
    }

    /// The revisions of the object itself.
    pub(crate) async fn revisions(&self) -> Vec<Value> {
        let mut all = json_of(&self.sandbox.list::<ControllerRevision>().await);
        all.retain(|one| one["metadata"]["ownerReferences"][0]["kind"] == "UnitedDeployment");
        all
    }

    /// `spec.replicas` of the workloads, such as `2/5/3`.
    pub(crate) async fn numbers(&self) -> String {
        let of: BTreeMap<String, String> = self
            .children()
            .await
            .iter()
            .map(|one| (label(one, SUBSET_NAME).to_owned(), one["spec"]["replicas"].to_string()))
            .collect();
        of.into_values().collect::<Vec<_>>().join("/")
    }

    /// Waits until the workloads want so many pods.
    pub(crate) async fn divided(&self, expected: &str) {
        let look = async || {
            let found = self.numbers().await;
            seen(found == expected, format!("{found}, {}", self.status().await))
        };
        self.sandbox.eventually(&format!("the subsets have {expected}"), look).await;
    }

    /// Checks over a time that the workloads want so many pods.
    pub(crate) async fn stays(&self, expected: &str, during: Duration) {
        let look = async || {
            let found = self.numbers().await;
            seen(found == expected, format!("{found}, {}", self.status().await))
        };
        self.sandbox.always(&format!("the subsets have {expected}"), during, look).await;
    }

    /// Waits until all pods are ready and on the newest revision, and the status says so.
    pub(crate) async fn settled(&self) {
        self.until("all pods are ready and updated", |web| {
            let (spec, status) = (&web["spec"]["replicas"], &web["status"]);
            status["observedGeneration"] == web["metadata"]["generation"]
                && [&status["replicas"], &status["readyReplicas"], &status["updatedReadyReplicas"]]
                    == [spec; 3]
                && status["currentRevision"] == status["updatedRevision"]
        })
        .await;
    }

    /// Waits until the object is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        let look = async || {
            let web = self.web().await;
            seen(is_so(&web), format!("{}, {}", self.numbers().await, web["status"]))
        };
        self.sandbox.eventually(what, look).await;
    }

    /// The messages of events of the object with a reason.
    pub(crate) async fn told(&self, reason: &str) -> Vec<String> {
        let all = self.sandbox.events().await.into_iter();
        all.filter(|one| one.reason == reason && one.about == "UnitedDeployment/web")
            .map(|one| one.message)
            .collect()
    }

    /// Closes the node of a zone for new pods, or opens it.
    pub(crate) async fn cordon(&self, node: &str, closed: bool) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let change = json!({"spec": {"unschedulable": closed}});
        nodes.patch(node, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    }

    /// How many pods of a subset are on an older revision than the status says.
    pub(crate) async fn outdated(&self, subset: &str) -> usize {
        let updated = self.status().await["updatedRevision"].as_str().unwrap().to_owned();
        let pods = self.pods().await;
        let is_own = |pod: &&Value| {
            label(pod, SUBSET_NAME) == subset && pod["metadata"]["deletionTimestamp"].is_null()
        };
        pods.iter().filter(is_own).filter(|pod| label(pod, UNITED_DEPLOYMENT_REVISION) != updated).count()
    }

    /// How many pods of a subset are marked as kept while they wait.
    pub(crate) async fn reserved(&self, subset: &str) -> usize {
        let pods = self.pods().await;
        let own = pods.iter().filter(|pod| label(pod, SUBSET_NAME) == subset);
        own.filter(|pod| label(pod, UNITED_DEPLOYMENT_RESERVED_POD) == "true").count()
    }
}
