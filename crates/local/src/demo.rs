//! Something that moves: a Deployment that rolls between two images, and lines that say how it goes.

use std::time::Duration;

use kruise_apiserver::ApiServer;
use kruise_apiserver::patch::{Accepts, Patch};
use kruise_apiserver::status::Status;
use serde_json::{Value, json};

/// The name of the Deployment.
pub const NAME: &str = "demo";
const REPLICAS: i64 = 6;
const IMAGES: [&str; 2] = ["registry.example/demo:v1", "registry.example/demo:v2"];
/// How often the state is looked at, in the cluster's time.
const LOOK: Duration = Duration::from_millis(250);
/// How long a finished rollout stands, in the cluster's time.
const REST: Duration = Duration::from_secs(5);

/// Rolls for ever; `say` gets each line.
pub async fn run(server: ApiServer, say: impl Fn(String) + Send) -> Result<std::convert::Infallible, Status> {
    let local = server.local();
    let deployments = local.resource("apps", "deployments")?;
    local.create(&deployments, "default", deployment(IMAGES.first().copied().unwrap_or_default())).await?;
    for image in IMAGES.iter().cycle().skip(1) {
        wait(&server, &say).await?;
        tokio::time::sleep(server.clock().real(REST)).await;
        say(format!("demo: rolling {NAME} to {image}"));
        let patch = json!({ "spec": { "template": { "spec": {
            "containers": [{ "name": NAME, "image": image }],
        } } } });
        let kind = "application/strategic-merge-patch+json";
        let patch = Patch::parse(kind, patch.to_string().as_bytes(), Accepts::All)?;
        local.patch(&deployments, "default", NAME, None, &patch).await?;
    }
    Err(Status::internal("there are no images to roll between"))
}

/// Says what changes until all pods are of the newest revision and ready.
async fn wait(server: &ApiServer, say: &impl Fn(String)) -> Result<(), Status> {
    let local = server.local();
    let deployments = local.resource("apps", "deployments")?;
    let mut before = None;
    loop {
        let progress = Progress::of(&local.get(&deployments, "default", NAME)?.value());
        // What was counted before the controller saw the change says nothing about it.
        if progress.seen && before != Some(progress) {
            say(format!("demo: {progress}"));
            before = Some(progress);
        }
        if progress.is_done() {
            return Ok(());
        }
        tokio::time::sleep(server.clock().real(LOOK)).await;
    }
}

/// How far a rollout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    seen: bool,
    updated: i64,
    ready: i64,
    old: i64,
}

impl Progress {
    fn of(deployment: &Value) -> Self {
        let number = |path: &str| deployment.pointer(path).and_then(Value::as_i64).unwrap_or(0);
        let updated = number("/status/updatedReplicas");
        Self {
            seen: number("/status/observedGeneration") == number("/metadata/generation"),
            updated,
            ready: number("/status/readyReplicas"),
            old: number("/status/replicas") - updated,
        }
    }

    fn is_done(self) -> bool {
        self.seen && self.updated == REPLICAS && self.ready == REPLICAS && self.old == 0
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seen: _, updated, ready, old } = self;
        write!(f, "{updated} of {REPLICAS} pods are new, {old} are old, {ready} are ready")
    }
}

fn deployment(image: &str) -> Value {
    json!({
        "metadata": { "name": NAME, "labels": { "app": NAME } },
        "spec": {
            "replicas": REPLICAS,
            "selector": { "matchLabels": { "app": NAME } },
            "template": {
                "metadata": { "labels": { "app": NAME } },
                "spec": { "containers": [{ "name": NAME, "image": image }] },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_is_done_when_it_was_seen_and_nothing_old_is_left() {
        let status = |observed: i64, replicas: i64, updated: i64, ready: i64| {
            Progress::of(&json!({
                "metadata": { "generation": 2 },
                "status": {
                    "observedGeneration": observed, "replicas": replicas,
                    "updatedReplicas": updated, "readyReplicas": ready,
                },
            }))
        };
        assert!(status(2, 6, 6, 6).is_done());
        assert!(!status(1, 6, 6, 6).is_done());
        assert!(!status(2, 7, 6, 6).is_done());
        assert!(!status(2, 6, 6, 5).is_done());
        assert_eq!(status(2, 7, 3, 5).to_string(), "3 of 6 pods are new, 4 are old, 5 are ready");
    }
}
