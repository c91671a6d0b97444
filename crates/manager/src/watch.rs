//! Tells that something changed, and nothing about it: whoever hears it looks for itself.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use http::{Request, header};
use kruise_api::names::{APPS_GROUP, POLICY_GROUP};
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use tokio::sync::Notify;

/// Where the definitions of kinds are.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How long a server keeps a watch open.
const LIFETIME: Duration = Duration::from_secs(290);
/// The wait before a watch begins again.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest such wait, when the server refuses.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// A watch of a path.
pub(crate) struct Watch {
    client: Client,
    path: String,
    /// Only CRDs of our groups matter.
    only_ours: bool,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

impl Watch {
    pub(crate) fn new(client: &Client, path: String) -> Self {
        Self { client: client.clone(), path, only_ours: false }
    }

    pub(crate) fn only_ours(mut self) -> Self {
        self.only_ours = true;
        self
    }

    /// Watches for ever.
    pub(crate) async fn run(self, changed: Arc<Notify>) {
        let mut pause = PAUSE;
        loop {
            match self.once(&changed).await {
                Ok(()) => pause = PAUSE,
                Err(error) => {
                    tracing::debug!(path = self.path, %error, "a watch ended");
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// One watch, from what is there now until the server ends it.
    async fn once(&self, changed: &Notify) -> Result<(), kube::Error> {
        let mark = if self.path.contains('?') { '&' } else { '?' };
        let seconds = LIFETIME.as_secs();
        let uri = format!("{}{mark}watch=true&resourceVersion=0&timeoutSeconds={seconds}", self.path);
        let request = Request::get(uri).header(header::ACCEPT, METADATA).body(Vec::new());
        let events = self.client.request_events::<Object>(request.map_err(kube::Error::HttpError)?).await?;
        let mut events = pin!(events);
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    if !self.only_ours || is_ours(&object.metadata.name) {
                        changed.notify_one();
                    }
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            }
        }
        Ok(())
    }
}

fn is_ours(crd: &str) -> bool {
    let group = crd.split_once('.').map(|(_, group)| group);
    group.is_some_and(|group| group == APPS_GROUP || group == POLICY_GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crds_of_both_groups_are_ours() {
        assert!(is_ours("clonesets.apps.kruise.io"));
        assert!(is_ours("podunavailablebudgets.policy.kruise.io"));
        assert!(!is_ours("rollouts.rollouts.kruise.io"));
        assert!(!is_ours("certificates"));
    }
}
