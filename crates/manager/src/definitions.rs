//! Which of our kinds the cluster has, now and as their definitions come.
//!
//! A cluster need not have all of them. What needs a kind that is missing waits for it here and begins when its
//! definition is installed, without a restart.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use kruise_api::names::{APPS_GROUP, POLICY_GROUP};
use kruise_core::{migration::DEFINITION, object::Resource};
use kruise_runtime::live;
use kube::Client;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::watch::{DEFINITIONS, Watch};

/// How long until the server is asked again although nothing was heard.
const AGAIN: Duration = Duration::from_secs(300);
/// Definitions come in groups; one look sees them all.
const GATHER: Duration = Duration::from_millis(200);
/// The waits between the first looks, while the server does not answer.
const FIRST_WAITS: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_millis(2500), Duration::from_millis(12_500)];

/// Which of our kinds the cluster has. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Definitions(Arc<watch::Sender<Known>>);

#[derive(Debug, Default, PartialEq, Eq)]
enum Known {
    /// The server was not asked yet.
    #[default]
    Nothing,
    /// The server does not tell, so all are taken for installed.
    Untold,
    /// The names of all definitions.
    Names(BTreeSet<String>),
}

impl Known {
    fn has(&self, name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Untold => true,
            Self::Names(names) => names.contains(name),
        }
    }
}

/// The name of the definition of a kind, if it is one of ours.
pub fn name(resource: Resource) -> Option<String> {
    let Resource { group, plural, .. } = resource;
    (group == APPS_GROUP || group == POLICY_GROUP).then(|| format!("{plural}.{group}"))
}

impl Definitions {
    /// Whether the definition of this name is installed. Waits until the server was asked once.
    pub async fn has(&self, name: &str) -> bool {
        let mut known = self.0.subscribe();
        let known = known.wait_for(|known| *known != Known::Nothing).await;
        known.is_ok_and(|known| known.has(name))
    }

    /// Whether the server has told that the definition of this name is not installed.
    pub fn is_missing(&self, name: &str) -> bool {
        matches!(&*self.0.borrow(), Known::Names(names) if !names.contains(name))
    }

    /// Waits until the definition of this name is installed.
    pub async fn installed(&self, name: &str) {
        // It cannot fail: the other side is in `self`.
        let _ = self.0.subscribe().wait_for(|known| known.has(name)).await;
    }

    /// Follows the definitions for ever.
    pub async fn run(&self, client: Client) {
        let changed = Arc::new(Notify::new());
        let mut watches = JoinSet::new();
        watches.spawn(Watch::new(&client, DEFINITIONS.to_owned()).only_ours().run(changed.clone()));
        let mut waits = FIRST_WAITS.into_iter();
        loop {
            let looked = look(&client).await;
            let wait = match looked {
                Ok(names) => {
                    self.learn(Known::Names(names));
                    AGAIN
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to ask which kinds are installed");
                    // What was known before still is.
                    let wait = waits.next().filter(|_| *self.0.borrow() == Known::Nothing);
                    if wait.is_none() && *self.0.borrow() == Known::Nothing {
                        tracing::warn!("taking all kinds for installed");
                        self.learn(Known::Untold);
                    }
                    wait.unwrap_or(AGAIN)
                }
            };
            if tokio::time::timeout(wait, changed.notified()).await.is_ok() {
                tokio::time::sleep(GATHER).await;
            }
        }
    }

    fn learn(&self, new: Known) {
        self.0.send_if_modified(|known| {
            let is_news = *known != new;
            *known = new;
            is_news
        });
    }
}

async fn look(client: &Client) -> Result<BTreeSet<String>, kube::Error> {
    let mut names = BTreeSet::new();
    live::each_metadata(client, DEFINITION, |found| {
        names.insert(found.metadata.name.to_string());
    })
    .await?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use kruise_core::object::POD;

    use super::*;

    #[test]
    fn only_our_kinds_have_a_definition() {
        let own = Resource::namespaced(APPS_GROUP, "v1beta1", "StatefulSet", "statefulsets");
        let built_in = Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets");
        assert_eq!(name(own).as_deref(), Some("statefulsets.apps.kruise.io"));
        assert_eq!((name(built_in), name(POD)), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_a_kind_goes_on_when_it_comes() {
        let definitions = Definitions::default();
        let asking = {
            let definitions = definitions.clone();
            async move { definitions.has("a").await }
        };
        let telling = async {
            tokio::task::yield_now().await;
            definitions.learn(Known::Names(BTreeSet::new()));
        };
        let (has, ()) = futures::join!(asking, telling);
        assert!(!has);
        let coming = async {
            tokio::task::yield_now().await;
            definitions.learn(Known::Names(BTreeSet::from(["a".to_owned()])));
        };
        futures::join!(definitions.installed("a"), coming);
        assert!(definitions.has("a").await && !definitions.has("b").await);
    }

    /// A server that does not answer is asked four times; then everything begins as if all kinds were there.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_tell_has_everything() {
        let refusing = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("nobody there"))
        });
        let definitions = Definitions::default();
        let began = tokio::time::Instant::now();
        let client = Client::new(refusing, "default");
        tokio::select! {
            () = definitions.run(client) => {}
            has = definitions.has("a") => assert!(has),
        }
        assert_eq!(began.elapsed(), Duration::from_millis(15_500));
    }
}
