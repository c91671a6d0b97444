//! Pods that wait for our condition, made all the time, and what happened to each of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kruise_runtime::scope::Stop;
use kruise_testkit::wait::{Look, eventually};
use kube::{
    Api, Client,
    api::{ListParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// How long between two pods.
const PERIOD: Duration = Duration::from_millis(100);

/// A pod with our gate, on no node.
pub(crate) fn waiting(name: &str) -> Pod {
    let pod = json!({
        "metadata": {"name": name},
        "spec": {"nodeSelector": {"no": "node"}, "readinessGates": [{"conditionType": "KruisePodReady"}],
            "containers": [{"name": "main", "image": "app:v1"}]},
    });
    serde_json::from_value(pod).unwrap()
}

/// Makes pods until it is asked to stop. A pod that is refused is tried again. Tells how many were made, and the
/// refusals.
pub(crate) async fn make(client: Client, namespace: &str, stop: &Stop) -> (usize, Vec<String>) {
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let mut refusals = Vec::new();
    let mut made = 0;
    while !stop.is_asked() {
        match pods.create(&PostParams::default(), &waiting(&format!("pod-{made:04}"))).await {
            Ok(_) => made += 1,
            Err(kube::Error::Api(status)) if status.is_already_exists() => made += 1,
            Err(error) => refusals.push(error.to_string()),
        }
        tokio::time::sleep(PERIOD).await;
    }
    (made, refusals)
}

/// Every value that our condition ever had, of each pod of a namespace.
pub(crate) struct Record {
    values: Arc<Mutex<BTreeMap<String, Vec<Value>>>>,
    _watching: JoinSet<()>,
}

impl Record {
    /// Begins to record. Pods must be made after this.
    pub(crate) async fn begin(client: Client, namespace: &str) -> Self {
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let mut version = pods.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
        let values = Arc::new(Mutex::new(BTreeMap::<String, Vec<Value>>::new()));
        let known = values.clone();
        let mut watching = JoinSet::new();
        watching.spawn(async move {
            loop {
                let wanted = WatchParams::default().timeout(290);
                let Ok(events) = pods.watch(&wanted, &version).await else { continue };
                let mut events = std::pin::pin!(events);
                while let Ok(Some(event)) = events.try_next().await {
                    let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else { continue };
                    version = pod.metadata.resource_version.clone().unwrap();
                    note(&mut known.lock().unwrap(), &pod);
                }
            }
        });
        Self { values, _watching: watching }
    }

    /// Waits until so many pods have their condition, and makes sure that none ever had another one.
    pub(crate) async fn each_has_one(&self, count: usize) {
        let all = eventually("every pod has its condition", Duration::from_secs(60), async || {
            let values = self.values.lock().unwrap();
            let without: Vec<&String> =
                values.iter().filter(|(_, values)| values.is_empty()).map(|(name, _)| name).collect();
            if values.len() == count && without.is_empty() {
                Look::Yes(())
            } else {
                Look::No(format!("{} of {count} pods, without condition: {without:?}", values.len()))
            }
        });
        all.await.unwrap();
        // Whoever wanted to act twice gets the time to do it.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (name, values) in &*self.values.lock().unwrap() {
            assert!(values.len() == 1 && values[0]["status"] == "True", "{name}: {values:?}");
        }
    }
}

fn note(known: &mut BTreeMap<String, Vec<Value>>, pod: &Pod) {
    let values = known.entry(pod.metadata.name.clone().unwrap()).or_default();
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ours = conditions.into_iter().flatten().find(|condition| condition.type_ == "KruisePodReady");
    match (ours, values.last()) {
        (None, None) => {}
        (ours, last) => {
            let value = serde_json::to_value(ours).unwrap();
            if last != Some(&value) {
                values.push(value);
            }
        }
    }
}
