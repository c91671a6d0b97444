//! The server as a value: its store, its resources, its clock and its hooks.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::access::Access;
use crate::admission::policies::Policies;
use crate::admission::{Admission, Operation};
use crate::client::Local;
use crate::clock::Clock;
use crate::connect::Connector;
use crate::crd;
use crate::discovery::Documents;
use crate::metrics;
use crate::openapi::Document;
use crate::random::Random;
use crate::registry::{Registry, Resource};
use crate::status::Status;
use crate::store::{Journal, Limits, Record, Store};
use crate::webhook::{Dispatcher, Webhooks};

/// An embedded API server. Clones are handles to the same server.
///
/// It is a [`tower::Service`] of HTTP requests; see the crate's documentation.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<Store>,
    registry: Registry,
    clock: Clock,
    random: Mutex<Random>,
    admission: RwLock<Vec<Arc<dyn Admission>>>,
    logs: RwLock<Option<Arc<dyn LogSource>>>,
    metrics: RwLock<Option<Arc<dyn metrics::Source>>>,
    connector: RwLock<Option<Arc<dyn Connector>>>,
    documents: Documents,
    policies: Arc<Policies>,
    webhooks: Arc<Webhooks>,
    definitions: crd::Served,
    access: Access,
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").field("version", &self.store().version()).finish_non_exhaustive()
    }
}

/// What a reader of a pod's log asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// The container; empty when the pod has only one.
    pub container: String,
    /// Whether to go on as lines come.
    pub follow: bool,
    /// The log of the container's last life.
    pub previous: bool,
    /// Whether each line begins with its time.
    pub timestamps: bool,
    /// Only the last lines.
    pub tail_lines: Option<u64>,
    /// Only lines of the last seconds.
    pub since_seconds: Option<u64>,
    /// Only lines since this time.
    pub since_time: Option<String>,
    /// At most so many bytes.
    pub limit_bytes: Option<u64>,
}

/// Where pods' logs come from: the simulated nodes.
pub trait LogSource: Send + Sync {
    /// The log as text.
    fn log<'a>(
        &'a self,
        pod: &'a Record,
        request: &'a LogRequest,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Bytes>, Status>>;
}

/// How to build an [`ApiServer`].
#[derive(Debug, Default)]
pub struct Builder {
    clock: Option<Clock>,
    seed: u64,
    limits: Limits,
    journal: Option<Arc<dyn Journal>>,
}

impl Builder {
    /// The clock for timestamps. Default: 2026-01-01T00:00:00Z, moving with tokio's time.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The seed of uids and generated names.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How much history watches and lists of older versions can use.
    #[must_use]
    pub fn history(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where objects are kept over the end of the process. The server begins with what is kept there.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// A server with the objects that every cluster has.
    pub fn build(self) -> ApiServer {
        let saved = self.journal.as_ref().map(|journal| journal.saved()).unwrap_or_default();
        let store = Arc::new(match self.journal {
            Some(journal) => Store::kept_by(journal, saved.version, self.limits),
            None => Store::new(self.limits),
        });
        let clock = self.clock.unwrap_or_default();
        let dispatcher = Arc::new(Dispatcher::new(store.clone(), clock, self.seed));
        let server = ApiServer {
            inner: Arc::new(Inner {
                store,
                registry: Registry::built_in(),
                clock,
                random: Mutex::new(Random::seeded(self.seed)),
                admission: RwLock::default(),
                logs: RwLock::default(),
                metrics: RwLock::default(),
                connector: RwLock::default(),
                documents: Documents::default(),
                policies: Arc::default(),
                webhooks: Arc::new(Webhooks::new(dispatcher)),
                definitions: crd::Served::default(),
                access: Access::default(),
            }),
        };
        server.restore(saved);
        crate::bootstrap::fill(&server);
        crate::access::fill(&server, self.seed);
        server
    }
}

impl ApiServer {
    /// Starts to build a server.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The objects. Reads may go here directly; writes should go through [`Self::local`] or HTTP.
    pub fn store(&self) -> &Arc<Store> {
        &self.inner.store
    }

    /// The served resources.
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// The clock behind all timestamps.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// A client inside the process: the same verbs without HTTP and encoding.
    pub fn local(&self) -> Local {
        Local::new(self.clone())
    }

    /// Adds a hook behind those already there.
    pub fn add_admission(&self, hook: Arc<dyn Admission>) {
        self.inner.admission.write().unwrap_or_else(PoisonError::into_inner).push(hook);
    }

    /// The hooks for such a request, in order: those that were added, then policies and webhooks if any is concerned.
    pub(crate) fn admission(
        &self,
        operation: Operation,
        resource: &Arc<Resource>,
        subresource: Option<&str>,
    ) -> Vec<Arc<dyn Admission>> {
        let mut hooks = self.inner.admission.read().unwrap_or_else(PoisonError::into_inner).clone();
        if self.inner.policies.concern(self, operation, resource, subresource) {
            hooks.push(self.inner.policies.clone());
        }
        if self.inner.webhooks.concern(self, operation, resource, subresource) {
            hooks.push(self.inner.webhooks.clone());
        }
        hooks
    }

    /// The admission webhooks.
    pub(crate) fn webhooks(&self) -> &Webhooks {
        &self.inner.webhooks
    }

    /// The custom resource definitions that are served.
    pub(crate) fn definitions(&self) -> &crd::Served {
        &self.inner.definitions
    }

    /// What decides about rights.
    pub(crate) fn access(&self) -> &Access {
        &self.inner.access
    }

    /// Sets where `pods/log` reads.
    pub fn set_log_source(&self, logs: Arc<dyn LogSource>) {
        *self.inner.logs.write().unwrap_or_else(PoisonError::into_inner) = Some(logs);
    }

    /// Sets where `pods/exec` and its like lead.
    pub fn set_connector(&self, connector: Arc<dyn Connector>) {
        *self.inner.connector.write().unwrap_or_else(PoisonError::into_inner) = Some(connector);
    }

    /// Where `pods/exec` and its like lead.
    pub(crate) fn connector(&self) -> Option<Arc<dyn Connector>> {
        self.inner.connector.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where `pods/log` reads.
    pub(crate) fn log_source(&self) -> Option<Arc<dyn LogSource>> {
        self.inner.logs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves `metrics.k8s.io` with what this source knows.
    pub fn set_metrics_source(&self, source: Arc<dyn metrics::Source>) {
        *self.inner.metrics.write().unwrap_or_else(PoisonError::into_inner) = Some(source);
        for resource in metrics::resources() {
            self.registry().insert(resource);
        }
    }

    /// Who knows what nodes and pods use.
    pub(crate) fn metrics_source(&self) -> Option<Arc<dyn metrics::Source>> {
        self.inner.metrics.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The OpenAPI documents of what is served now.
    pub(crate) fn documents(&self) -> Vec<Document> {
        self.inner.documents.of(self.registry())
    }

    /// Uses the server's random generator.
    pub(crate) fn random<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut self.inner.random.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
