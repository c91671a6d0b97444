//! A cluster with a manager on it.

#[path = "stage/network.rs"]
pub(crate) mod network;
#[path = "stage/process.rs"]
pub(crate) mod process;
#[path = "stage/served.rs"]
mod served;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use kruise_api::{catalogue, gates::Gates, names};
use kruise_core::{features::webhooks, migration::DEFINITION};
use kruise_manager::inside::{self, Inside, Surroundings};
use kruise_runtime::{clock::Clock, random::Random};
use kruise_sim::Sim;
use kruise_testkit::{
    Backend, Cluster, Outcome,
    wait::{Look, eventually},
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams},
};
use serde_json::{Value, json};

use process::{Launch, Process};
use served::Served;

/// A cluster with a manager on it.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    manager: Option<Running>,
    flags: Vec<String>,
    place: Place,
}

/// Where the cluster and its manager are.
enum Place {
    /// Both in this process, in virtual time.
    Inside(Sim),
    /// The embedded cluster in this process, the manager outside of it.
    Served(Served),
    /// Both outside.
    Real,
}

/// A manager that runs.
enum Running {
    Inside(Box<inside::Running>),
    Process(Process),
}

impl Stage {
    /// Definitions, namespace and webhook configurations are installed; no manager runs yet.
    async fn install(cluster: Cluster, place: Place, flags: &[&str]) -> Self {
        cluster.install_crds().await;
        let flags = flags.iter().map(|&flag| flag.into()).collect();
        let stage = Self { cluster, manager: None, flags, place };
        let label = json!({"control-plane": "openkruise"});
        stage.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names::NAMESPACE, "labels": label}})).await;
        stage.put_webhooks().await;
        stage
    }

    /// The webhook configurations, as an installation brings them.
    pub(crate) async fn put_webhooks(&self) {
        self.configure(&webhooks::Options::default()).await;
    }

    /// Takes them away: then nobody is refused because no manager is there.
    pub(crate) async fn remove_webhooks(&self) {
        for configuration in webhooks::configurations(&Gates::default(), &webhooks::Options::default()) {
            let name = configuration.pointer("/metadata/name").and_then(Value::as_str).unwrap().to_owned();
            let _ = self.api(&configuration).delete(&name, &DeleteParams::default()).await;
        }
    }

    /// Installs the webhook configurations, as a chart with these values does.
    pub(crate) async fn configure(&self, options: &webhooks::Options) {
        for configuration in webhooks::configurations(&Gates::default(), options) {
            self.put(configuration).await;
        }
    }

    pub(crate) async fn start_manager(&mut self) {
        self.manager = Some(match &self.place {
            Place::Inside(sim) => {
                let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
                Running::Inside(Box::new(inside(sim, &flags)))
            }
            Place::Served(_) | Place::Real => Running::Process(self.launch().ready().await),
        });
    }

    /// Starts the manager in this process with no more rights than its account has.
    pub(crate) fn start_manager_as(&mut self, account: &str) {
        let Place::Inside(sim) = &self.place else {
            panic!("only the embedded cluster has a manager inside")
        };
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let client = sim.account_client(names::NAMESPACE, account);
        self.manager = Some(Running::Inside(Box::new(inside_through(client, sim, &flags))));
    }

    /// What the manager says about kinds that it cannot read.
    pub(crate) fn unreadable_kinds(&self) -> Vec<String> {
        match &self.manager {
            Some(Running::Inside(running)) => running.manager().shared().kinds.report(),
            _ => panic!("no manager runs inside"),
        }
    }

    /// How a manager of this stage is started as a process.
    pub(crate) fn launch(&self) -> Launch {
        Launch::new(&self.flags, Some(&self.kubeconfig()))
    }

    /// How processes reach the cluster.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        match &self.place {
            Place::Inside(_) => panic!("no process reaches a cluster in virtual time"),
            Place::Served(served) => served.kubeconfig.clone(),
            Place::Real => Path::new(&std::env::var_os("KUBECONFIG").unwrap()).to_owned(),
        }
    }

    /// What processes have asked the embedded cluster so far. A real one does not tell.
    pub(crate) fn requests(&self) -> Vec<(http::Method, String)> {
        match &self.place {
            Place::Served(served) => served.requests.lock().unwrap().clone(),
            Place::Inside(_) | Place::Real => Vec::new(),
        }
    }

    /// Ends the manager as a node that fails would.
    pub(crate) fn kill_manager(&mut self) {
        if let Place::Inside(sim) = &self.place {
            let gone = tower::service_fn(|_: http::Request<http_body_util::Full<bytes::Bytes>>| async {
                Err::<http::Response<http_body_util::Full<bytes::Bytes>>, _>("connection refused")
            });
            sim.server().register_webhook_service(names::NAMESPACE, names::WEBHOOK_SERVICE, gone);
        }
        self.manager = None;
    }

    /// What the next manager is started with.
    pub(crate) fn set_flags(&mut self, flags: &[&str]) {
        self.flags = flags.iter().map(|&flag| flag.into()).collect();
    }

    /// The embedded cluster.
    pub(crate) fn sim(&self) -> &Sim {
        match &self.place {
            Place::Inside(sim) => sim,
            Place::Served(_) | Place::Real => panic!("only scenarios of the embedded cluster ask for it"),
        }
    }

    /// The manager, where it is a process.
    pub(crate) fn process(&self) -> &Process {
        match &self.manager {
            Some(Running::Process(process)) => process,
            _ => panic!("no manager runs as a process"),
        }
    }

    /// Everything that `/metrics` shows.
    pub(crate) async fn metrics(&self) -> String {
        match self.manager.as_ref().expect("a manager runs") {
            Running::Inside(running) => running.manager().shared().registry.text(),
            Running::Process(process) => process.metrics().await,
        }
    }

    /// Creates an object or makes an existing one equal to it.
    pub(crate) async fn put(&self, object: Value) {
        let api = self.api(&object);
        let mut object: DynamicObject = serde_json::from_value(object).unwrap();
        let name = object.metadata.name.clone().unwrap();
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => panic!("failed to create {name}: {error}"),
        }
        object.metadata.resource_version = api.get(&name).await.unwrap().metadata.resource_version;
        api.replace(&name, &PostParams::default(), &object).await.unwrap();
    }

    /// The API for objects like this one, in its version and namespace.
    pub(crate) fn api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
        match text("/metadata/namespace") {
            "" => Api::all_with(self.cluster.client(), &resource),
            namespace => Api::namespaced_with(self.cluster.client(), namespace, &resource),
        }
    }

    /// The definitions of kinds.
    pub(crate) fn definitions(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(DEFINITION.group, DEFINITION.version, DEFINITION.kind);
        Api::all_with(self.cluster.client(), &ApiResource::from_gvk_with_plural(&kind, DEFINITION.plural))
    }

    /// Removes the definitions of all our kinds but these.
    pub(crate) async fn keep_only(&self, kinds: &[&str]) {
        let definitions = self.definitions();
        let others: Vec<String> =
            catalogue::CRDS.iter().filter(|crd| !kinds.contains(&crd.kind)).map(|crd| crd.name()).collect();
        for name in &others {
            definitions.delete(name, &DeleteParams::default()).await.unwrap();
        }
        let gone = eventually("the definitions are gone", Duration::from_secs(60), async || {
            let left = definitions.list_metadata(&kube::api::ListParams::default()).await.unwrap();
            let left: Vec<String> = left.items.into_iter().filter_map(|found| found.metadata.name).collect();
            match left.iter().find(|name| others.contains(*name)) {
                None => Look::Yes(()),
                Some(name) => Look::No(name.clone()),
            }
        });
        gone.await.unwrap();
    }

    /// Creates an object; the answer or the words of the refusal.
    pub(crate) async fn create(&self, object: Value) -> Result<Value, String> {
        let typed: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        match self.api(&object).create(&PostParams::default(), &typed).await {
            Ok(made) => Ok(serde_json::to_value(made).unwrap()),
            Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Changes an object by a merge patch, in the version that it is written in; the answer or the words of the refusal.
    pub(crate) async fn patch(&self, object: &Value, change: &Value) -> Result<Value, String> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let patch = kube::api::Patch::Merge(change);
        match self.api(object).patch(name, &kube::api::PatchParams::default(), &patch).await {
            Ok(made) => Ok(serde_json::to_value(made).unwrap()),
            Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Leaves the cluster as it was: nobody must be refused because our manager is gone.
    async fn leave(mut self) {
        self.remove_webhooks().await;
        if self.cluster.backend() == Backend::Real {
            // Definitions without our address: the next test may have another.
            self.cluster.install_crds().await;
        }
        self.manager = None;
    }
}

/// A manager in this process, whose webhooks the embedded server calls directly.
fn inside(sim: &Sim, flags: &[&str]) -> inside::Running {
    inside_through(sim.faulty_client(), sim, flags)
}

/// The same with this way to the server.
fn inside_through(client: kube::Client, sim: &Sim, flags: &[&str]) -> inside::Running {
    let clock = *sim.clock();
    // A process that starts later draws other numbers, or new pods would get the names of old ones.
    let started = u64::try_from(clock.now().as_second()).unwrap_or(0);
    let surroundings = Surroundings {
        client,
        version: kruise_apiserver::discovery::GIT_VERSION.to_owned(),
        clock: Clock::from_fn(move || clock.now()),
        random: Random::seeded(seed() + 1 + started % 86_400),
    };
    let inside = Inside::new(surroundings, flags).unwrap();
    let (namespace, service) = (names::NAMESPACE, names::WEBHOOK_SERVICE);
    sim.server().register_webhook_service(namespace, service, inside.webhooks());
    inside.start()
}

/// Which of all possible histories the embedded cluster has: that of `KRUISE_SEED`, or always the same.
fn seed() -> u64 {
    std::env::var("KRUISE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

/// Runs a scenario with a manager in this process, in virtual time.
pub(crate) fn embedded(flags: &[&str], scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    embedded_prepared(flags, async |stage: &mut Stage| {
        stage.start_manager().await;
        scenario(stage).await
    });
}

/// The same before the manager is started.
pub(crate) fn embedded_prepared(flags: &[&str], scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (sim, cluster) = kruise_testkit::embedded::start(seed()).await;
        let mut stage = Stage::install(cluster, Place::Inside(sim), flags).await;
        scenario(&mut stage).await.unwrap();
    });
}

/// Runs a scenario that starts managers as processes, on the embedded cluster in real time.
pub(crate) fn served(flags: &[&str], scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (served, cluster) = Served::start().await;
        let mut stage = Stage::install(cluster, Place::Served(served), flags).await;
        scenario(&mut stage).await.unwrap();
    });
}

/// Runs a scenario with a manager as a process, on the cluster of `KUBECONFIG`.
pub(crate) fn real(name: &str, flags: &[&str], scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    match (std::env::var("KRUISE_TEST_MANAGER").as_deref(), crate::SHARES_A_MANAGER && flags.is_empty()) {
        (Ok("shared"), true) => return beside(name, scenario),
        (Ok("own"), true) => return println!("left to the other round"),
        _ => {}
    }
    alone(name, flags, scenario);
}

/// Runs a scenario beside others, on a cluster that has a manager already.
fn beside(name: &str, scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    kruise_testkit::scenario::on_real_cluster(name, async |cluster| {
        scenario(&mut Stage { cluster, manager: None, flags: Vec::new(), place: Place::Real }).await
    });
}

/// The same for a scenario that ends its manager, or looks at it as a process.
pub(crate) fn alone(name: &str, flags: &[&str], scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    prepared(name, flags, async |stage: &mut Stage| {
        stage.start_manager().await;
        scenario(stage).await
    });
}

/// The same without a manager.
pub(crate) fn prepared(name: &str, flags: &[&str], scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    if std::env::var("KRUISE_TEST_MANAGER").as_deref() == Ok("shared") {
        return println!("left to the other round");
    }
    kruise_testkit::scenario::on_real_cluster(name, async |cluster| {
        let mut stage = Stage::install(cluster, Place::Real, flags).await;
        let outcome =
            futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(scenario(&mut stage))).await;
        if outcome.is_err()
            && let Some(Running::Process(process)) = &stage.manager
        {
            eprintln!("{}", process.log());
        }
        stage.leave().await;
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
}

/// Makes tests of a scenario of a cluster with a manager: one for each kind of cluster.
macro_rules! managed {
    ($name:ident, $flags:expr) => {
        crate::stage::managed!($name, $flags, real);
    };
    // `alone` for a scenario that ends its manager, or looks at it as a process.
    ($name:ident, $flags:expr, $how:ident) => {
        mod $name {
            #[test]
            fn embedded() {
                crate::stage::embedded(&$flags, super::$name);
            }

            #[test]
            #[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
            fn real() {
                crate::stage::$how(stringify!($name), &$flags, super::$name);
            }
        }
    };
}
pub(crate) use managed;

/// Makes tests of a scenario that starts managers as processes: one for each kind of cluster.
#[allow(unused_macros, reason = "not all tests that share this file start processes")]
macro_rules! launched {
    ($name:ident) => {
        mod $name {
            #[test]
            fn embedded() {
                crate::stage::served(&[], super::$name);
            }

            #[test]
            #[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
            fn real() {
                crate::stage::prepared(stringify!($name), &[], super::$name);
            }
        }
    };
}
#[allow(unused_imports, reason = "not all tests that share this file start processes")]
pub(crate) use launched;

/// The same as [`managed`] for a scenario that only the embedded cluster can play: say in a comment why.
#[allow(unused_macros, reason = "not all scenarios have such")]
macro_rules! embedded_only {
    ($name:ident, $flags:expr) => {
        mod $name {
            #[test]
            fn embedded() {
                crate::stage::embedded(&$flags, super::$name);
            }
        }
    };
}
#[allow(unused_imports, reason = "not all scenarios have such")]
pub(crate) use embedded_only;
