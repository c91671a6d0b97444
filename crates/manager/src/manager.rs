//! A manager without sockets: caches, webhooks and controllers around one client.
//!
//! The program gives it sockets and certificates; the local cluster and tests give it the API server of their own
//! process.

use std::time::Duration;

use kruise_api::{catalogue, crd::Crd, gates::Gate, names::CONFIGURATION};
use kruise_core::{features, object::Resource};
use kruise_runtime::{
    cache::{self, Cache, View},
    scope::{BoxError, Scope, Stop},
};
use kruise_webhook::{listener::Current, selfcheck::Check, service::Webhooks};

use crate::{
    certificates::{self, Certificates},
    controllers, definitions, own_namespace,
    shared::{Parts, Shared},
    webhooks,
};

/// How often readiness is looked at before controllers start.
const READY_RETRY: Duration = Duration::from_secs(2);

/// How long running reconciles get when the manager ends.
const GRACE: Duration = Duration::from_secs(10);

/// Why a manager cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Objects could not be read in time.
    #[error("{kind} objects were not read within {patience:?} (--controller-cache-sync-timeout)")]
    NotSynced {
        /// The kind.
        kind: &'static str,
        /// The time it had.
        patience: Duration,
    },
    /// The webhooks cannot be called.
    #[error(transparent)]
    Certificates(#[from] certificates::Error),
    /// A controller ended.
    #[error(transparent)]
    Ended(#[from] kruise_runtime::scope::Error),
}

/// A manager. Clones are the same.
#[derive(Clone)]
pub struct Manager {
    shared: Shared,
    webhooks: Webhooks,
    certificate: Current,
    check: Check,
}

impl Manager {
    /// A manager that does nothing yet.
    pub fn new(shared: Shared) -> Self {
        let webhooks = webhooks::all(&shared);
        Self { shared, webhooks, certificate: Current::default(), check: Check::default() }
    }

    /// What its parts share.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The web service of its webhooks.
    pub fn webhooks(&self) -> Webhooks {
        self.webhooks.clone()
    }

    /// The certificate that its listener shows.
    pub fn certificate(&self) -> Current {
        self.certificate.clone()
    }

    /// The check of its readiness.
    pub fn check(&self) -> Check {
        self.check.clone()
    }

    /// Whether the webhooks answer, over the socket and with the certificate that API servers trust.
    pub async fn ready(&self) -> Result<(), String> {
        let settings = &self.shared.settings;
        let address = settings.options.webhook_address(&settings.environment);
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.unwrap_or(settings.environment.certificates.port);
        self.check.ready(port).await.map_err(|error| error.to_string())
    }

    /// Waits until it is ready, and says what is missing.
    pub async fn wait_until_ready(&self, stop: &Stop) {
        let mut waited = Duration::ZERO;
        while let Err(reason) = self.ready().await {
            if waited > Duration::from_secs(5) {
                tracing::error!(%reason, "the webhooks are not ready yet");
            }
            tokio::select! {
                () = stop.asked() => return,
                () = tokio::time::sleep(READY_RETRY) => waited += READY_RETRY,
            }
        }
    }

    /// Puts certificates and webhook configurations in order, and keeps them so.
    pub async fn secure(&self, scope: &mut Scope) -> Result<(), Error> {
        let shared = &self.shared;
        let settings = &shared.settings;
        let is_external = settings.gates.enabled(Gate::EnableExternalCerts);
        let paths = self.webhooks.paths().map(ToOwned::to_owned).collect();
        let certificates = certificates::Settings::new(&settings.environment, is_external, paths);
        let mut certificates = Certificates::new(
            shared.client.clone(),
            certificates,
            settings.clock.clone(),
            self.certificate.clone(),
            self.check.clone(),
        )
        .with_metrics(&shared.metrics);
        certificates.initialize(settings.options.webhook_initialize_timeout).await?;
        let stop = scope.stop();
        scope.spawn("certificates", async move {
            certificates.run(stop).await;
            Ok::<(), BoxError>(())
        });
        Ok(())
    }

    /// Starts what every replica does: caches and the sending of events.
    pub fn start(&self, scope: &mut Scope) {
        let shared = &self.shared;
        let stop = scope.stop();
        for resource in features::watches(&shared.settings.gates) {
            self.watch(resource, scope, &stop);
        }
        self.watch_when_wanted(&shared.caches.nodes, self.cache_options(), scope, &stop);
        self.watch_when_wanted(&shared.caches.namespaces, self.cache_options(), scope, &stop);
        self.watch_when_wanted(&shared.caches.secrets, self.cache_options(), scope, &stop);
        let configuration = cache::Options {
            namespace: Some(shared.settings.environment.namespace.clone()),
            fields: Some(format!("metadata.name={CONFIGURATION}")),
            ..self.cache_options()
        };
        self.watch_when_wanted(&shared.caches.configuration, configuration, scope, &stop);
        let (definitions, client) = (shared.definitions.clone(), shared.client.clone());
        until(scope, &stop, "definitions", async move { definitions.run(client).await });
        let (events, client) = (shared.events.clone(), shared.client.clone());
        until(scope, &stop, "events", async move { events.run(client).await });
        let shared = shared.clone();
        scope.spawn("own namespace", async move {
            own_namespace::check(&shared).await;
            stop.asked().await;
            Ok::<(), BoxError>(())
        });
    }

    /// Follows a kind from when somebody wants to know of it.
    fn watch_when_wanted<V: View>(
        &self,
        cache: &Cache<V>,
        options: cache::Options,
        scope: &mut Scope,
        stop: &Stop,
    ) {
        let (cache, client) = (cache.clone(), self.shared.client.clone());
        let name = format!("cache of {}", cache.resource().plural);
        until(scope, stop, name, async move { cache.run_when_wanted(client, options).await });
    }

    /// Follows a kind, where a cache for it exists, from when the cluster has the kind.
    fn watch(&self, resource: Resource, scope: &mut Scope, stop: &Stop) {
        let Parts { caches, client, definitions, .. } = &*self.shared;
        let Some(following) = caches.follow(resource, client.clone(), self.cache_options()) else { return };
        let definitions = definitions.clone();
        until(scope, stop, format!("cache of {}", resource.plural), async move {
            if let Some(definition) = definitions::name(resource) {
                definitions.installed(&definition).await;
            }
            following.await;
        });
    }

    fn cache_options(&self) -> cache::Options {
        let options = &self.shared.settings.options;
        cache::Options {
            namespace: Some(options.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            resync: options.resync().ok().flatten(),
            ..cache::Options::default()
        }
    }

    /// Runs the controllers until it is asked to stop, then lets those that are at work end. A controller begins when the
    /// definition of its kind is installed and what its feature watches is read.
    pub async fn lead(&self, stop: &Stop) -> Result<(), Error> {
        let shared = &self.shared;
        let mut scope = Scope::default();
        for (feature, described) in features::controllers(&shared.settings.gates) {
            let Some(entry) = controllers::ALL.iter().find(|entry| entry.name == described.name) else {
                continue;
            };
            let controller = (entry.build)(shared);
            let (shared, within) = (shared.clone(), scope.stop());
            scope.spawn(described.name, async move {
                tokio::select! {
                    () = within.asked() => return Ok(()),
                    begun = beginning(&shared, feature, described) => begun?,
                }
                controller.run(within, GRACE).await;
                Ok::<(), Error>(())
            });
        }
        tokio::select! {
            () = stop.asked() => {}
            ended = scope.next_end() => if let Some(Err(error)) = ended { return Err(error.into()) },
        }
        scope.shutdown(GRACE + Duration::from_secs(1)).await.map_err(Error::from)
    }
}

/// Waits until a controller may begin.
async fn beginning(
    shared: &Shared,
    feature: &features::Feature,
    controller: &features::Controller,
) -> Result<(), Error> {
    let kind = controller.needs_kind.and_then(catalogue::by_kind);
    if let Some(definition) = kind.map(Crd::name)
        && !shared.definitions.has(&definition).await
    {
        tracing::info!(
            controller = controller.name,
            kind = controller.needs_kind,
            "left out, the definition of its kind is not installed"
        );
        shared.definitions.installed(&definition).await;
        tracing::info!(controller = controller.name, "begins, the definition of its kind is installed now");
    }
    let patience = shared.settings.options.controller_cache_sync_timeout;
    for resource in feature.watches {
        // Of a kind that the cluster does not have there is nothing to read.
        if let Some(definition) = definitions::name(*resource)
            && !shared.definitions.has(&definition).await
        {
            continue;
        }
        if !shared.caches.synced(*resource, patience).await {
            return Err(Error::NotSynced { kind: resource.kind, patience });
        }
    }
    Ok(())
}

/// Runs something until it is asked to stop.
fn until(
    scope: &mut Scope,
    stop: &Stop,
    name: impl Into<String>,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let stop = stop.clone();
    scope.spawn(name, async move {
        tokio::select! {
            () = work => {}
            () = stop.asked() => {}
        }
        Ok::<(), BoxError>(())
    });
}
