//! A manager without sockets: caches, webhooks and controllers around one client.
//!
//! The program gives it sockets and certificates; the local cluster and tests give it the API server of their own
//! process.

use std::{convert::Infallible, sync::Arc, time::Duration};

use kruise_api::{catalogue, crd::Crd, gates::Gate, names::CONFIGURATION};
use kruise_core::{features, object::Resource, workload};
use kruise_runtime::{
    cache::{self, Cache, View},
    scope::{BoxError, Scope, Stop, kept},
};
use kruise_webhook::{listener::Current, selfcheck::Check, service::Webhooks};
use tokio::sync::watch;

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
    /// Whether this process leads.
    leads: Arc<watch::Sender<bool>>,
    notes: certificates::Notes,
}

impl Manager {
    /// A manager that does nothing yet.
    pub fn new(shared: Shared) -> Self {
        let webhooks = webhooks::all(&shared);
        // Without an election there is nobody to wait for.
        let leads = watch::Sender::new(!shared.settings.options.election.enable_leader_election);
        Self {
            shared,
            webhooks,
            certificate: Current::default(),
            check: Check::default(),
            leads: Arc::new(leads),
            notes: certificates::Notes::default(),
        }
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
        let (host, port) = address.rsplit_once(':').unwrap_or_default();
        let port = port.parse().unwrap_or(settings.environment.certificates.port);
        let asked = match host.trim_matches(['[', ']']) {
            "" | "0.0.0.0" | "::" => self.check.ready(port).await,
            host => self.check.ready_at(host, port).await,
        };
        asked.map_err(|error| error.to_string())
    }

    /// What is missing although it is ready: webhooks that open gates need and that could not be registered.
    pub fn notes(&self) -> Vec<String> {
        self.notes.read()
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
        let wanted = certificates::wanted(&settings.environment, &settings.gates);
        let certificates = certificates::Settings::new(&settings.environment, is_external, wanted);
        let mut certificates = Certificates::new(
            shared.client.clone(),
            certificates,
            settings.clock.clone(),
            self.certificate.clone(),
            self.check.clone(),
        )
        .with_metrics(&shared.metrics)
        .led_by(self.leads.subscribe())
        .with_notes(&self.notes);
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
        self.watch_when_wanted(&shared.caches.storage_classes, self.cache_options(), scope, &stop);
        self.watch_when_wanted(&shared.caches.secrets, self.cache_options(), scope, &stop);
        self.watch_when_wanted(&shared.caches.jobs, self.cache_options(), scope, &stop);
        for resource in workload::KNOWN {
            if let Some(cache) = shared.caches.workloads(resource) {
                self.watch_when_wanted(cache, self.cache_options(), scope, &stop);
            }
        }
        let configuration = cache::Options {
            namespace: Some(shared.settings.environment.namespace.clone()),
            fields: Some(format!("metadata.name={CONFIGURATION}")),
            ..self.cache_options()
        };
        self.watch_when_wanted(&shared.caches.configuration, configuration, scope, &stop);
        let (copies, client, options) = (shared.copies.clone(), shared.client.clone(), self.cache_options());
        self.until(scope, &stop, "copies", move || {
            let (copies, client, options) = (copies.clone(), client.clone(), options.clone());
            async move { copies.run(client, options).await }
        });
        let (listed, options) = (shared.clone(), self.cache_options());
        self.until(scope, &stop, "listed workloads", move || {
            let (shared, options) = (listed.clone(), options.clone());
            async move { shared.listed_workloads.run(&shared, options).await }
        });
        let (definitions, client) = (shared.definitions.clone(), shared.client.clone());
        self.until(scope, &stop, "definitions", move || {
            let (definitions, client) = (definitions.clone(), client.clone());
            async move { definitions.run(client).await }
        });
        let (events, client) = (shared.events.clone(), shared.client.clone());
        self.until(scope, &stop, "events", move || {
            let (events, client) = (events.clone(), client.clone());
            async move { events.run(client).await }
        });
        let looking = shared.clone();
        self.until(scope, &stop, "kinds", move || {
            let shared = looking.clone();
            async move { shared.kinds.run(&shared).await }
        });
        let shared = shared.clone();
        self.until(scope, &stop, "own namespace", move || {
            let shared = shared.clone();
            async move { own_namespace::check(&shared).await }
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
        let (cache, shared) = (cache.clone(), self.shared.clone());
        let Resource { group, plural, .. } = cache.resource();
        let name = if group.is_empty() {
            format!("cache of {plural}")
        } else {
            format!("cache of {plural}.{group}")
        };
        self.until(scope, stop, name, move || {
            let (cache, shared, options) = (cache.clone(), shared.clone(), options.clone());
            async move {
                if let Some(definition) = definitions::name(cache.resource()) {
                    shared.definitions.installed(&definition).await;
                }
                cache.run_when_wanted(shared.client.clone(), options).await;
            }
        });
    }

    /// Follows a kind, where a cache for it exists, from when the cluster has the kind.
    fn watch(&self, resource: Resource, scope: &mut Scope, stop: &Stop) {
        let (shared, options) = (self.shared.clone(), self.cache_options());
        self.until(scope, stop, format!("cache of {}", resource.plural), move || {
            let (shared, options) = (shared.clone(), options.clone());
            async move {
                let Parts { caches, client, definitions, .. } = &*shared;
                let Some(following) = caches.follow(resource, client.clone(), options) else { return };
                if let Some(definition) = definitions::name(resource) {
                    definitions.installed(&definition).await;
                }
                following.await;
            }
        });
    }

    /// Runs something until it is asked to stop. A part that panics begins again; it must not end the others.
    fn until<F: Future<Output = ()> + Send + 'static>(
        &self,
        scope: &mut Scope,
        stop: &Stop,
        name: impl Into<String>,
        mut begin: impl FnMut() -> F + Send + 'static,
    ) {
        let (name, stop, restarts) =
            (name.into(), stop.clone(), self.shared.metrics.controller_restarts.clone());
        scope.spawn(name.clone(), async move {
            let work = move || {
                let work = begin();
                async move {
                    work.await;
                    Ok::<(), Infallible>(())
                }
            };
            let failed = |problem: &str, pause: Duration| {
                restarts.inc(&[name.as_str()]);
                tracing::error!(
                    part = name.as_str(),
                    problem,
                    ?pause,
                    "a part of the manager ended and begins again"
                );
            };
            tokio::select! {
                // What ends by itself has nothing more to do: that ends nothing else either.
                () = kept(work, failed) => stop.asked().await,
                () = stop.asked() => {}
            }
            Ok::<(), BoxError>(())
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
    /// definition of its kind is installed and what its feature watches is read. None of them ends another one: one that
    /// cannot begin waits, and one that panics begins again.
    pub async fn lead(&self, stop: &Stop) -> Result<(), Error> {
        self.leads.send_replace(true);
        let shared = &self.shared;
        shared.caches.tell_unreadable(&shared.events.recorder("kruise-manager"));
        shared.configuration.tell_unreadable(shared.events.recorder("kruise-manager"));
        let mut scope = Scope::default();
        for (feature, described) in features::controllers(&shared.settings.gates) {
            let Some(entry) = controllers::ALL.iter().find(|entry| entry.name == described.name) else {
                continue;
            };
            let (shared, within) = (shared.clone(), scope.stop());
            let restarts = shared.metrics.controller_restarts.clone();
            let work = move || {
                let (shared, within) = (shared.clone(), within.clone());
                async move {
                    let controller = (entry.build)(&shared);
                    tokio::select! {
                        () = within.asked() => return Ok(()),
                        () = beginning(&shared, feature, described) => {}
                    }
                    controller.run(within, GRACE).await;
                    Ok::<(), Infallible>(())
                }
            };
            scope.spawn(described.name, async move {
                kept(work, |problem, pause| {
                    restarts.inc(&[described.name]);
                    tracing::error!(
                        controller = described.name,
                        problem,
                        ?pause,
                        "a controller ended and begins again"
                    );
                })
                .await;
                Ok::<(), Error>(())
            });
        }
        stop.asked().await;
        scope.shutdown(GRACE + Duration::from_secs(1)).await.map_err(Error::from)
    }
}

/// Waits until a controller may begin.
async fn beginning(shared: &Shared, feature: &features::Feature, controller: &features::Controller) {
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
    let mut has_waited = false;
    for resource in feature.watches {
        loop {
            // Of a kind that the cluster does not have there is nothing to read.
            if let Some(definition) = definitions::name(*resource)
                && !shared.definitions.has(&definition).await
            {
                break;
            }
            if shared.caches.synced(*resource, patience).await {
                break;
            }
            has_waited = true;
            let problem = shared.kinds.problem(*resource);
            tracing::warn!(
                controller = controller.name,
                kind = resource.kind,
                ?patience,
                problem,
                "waits for objects that were not read yet (--controller-cache-sync-timeout)"
            );
        }
    }
    if has_waited {
        tracing::info!(controller = controller.name, "begins, everything that it needs is read now");
    }
    shared.kinds.has_begun(controller.name);
}
