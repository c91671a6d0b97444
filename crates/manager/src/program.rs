//! From the command line to a running manager, step by step, and its end.

mod sockets;

use std::{ffi::OsString, path::Path, process::ExitCode, time::Duration};

use kruise_api::gates::{self, Gates};
use kruise_runtime::{
    clock::Clock,
    lease,
    logging::{self, Format},
    metrics::Registry,
    random::Random,
    scope::{BoxError, Scope, Stop},
    signals,
};
use kube::{Client, Config, config::KubeConfigOptions};

use crate::{
    manager::{self, Manager},
    migrate,
    options::{Environment, Options},
    shared::{Settings, Shared},
};

/// How long running reconciles and requests get when the manager ends.
const FAREWELL: Duration = Duration::from_secs(20);
/// The same after a failure.
const SHORT_FAREWELL: Duration = Duration::from_millis(500);

/// Why a manager does not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A flag or variable makes no sense.
    #[error("{0}")]
    Setting(String),
    /// There is no way to the API server.
    #[error(
        "failed to find out how to reach the API server; run inside of a cluster, or name a kubeconfig with --kubeconfig"
    )]
    Config(#[source] BoxError),
    /// The API server does not answer.
    #[error("failed to ask the API server for its version")]
    Server(#[source] kube::Error),
    /// An address is taken.
    #[error("failed to listen on {address} ({flag})")]
    Listen {
        /// The address.
        address: String,
        /// The flag or variable that says so.
        flag: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// A part ended that should not have.
    #[error(transparent)]
    Ended(#[from] kruise_runtime::scope::Error),
    /// Another manager leads.
    #[error(transparent)]
    Lost(#[from] lease::Lost),
    /// The manager cannot do its work.
    #[error(transparent)]
    Manager(#[from] manager::Error),
}

/// The whole program: words of the command line and a look-up of variables in, exit code out.
pub fn main(words: impl Iterator<Item = OsString>, variable: impl Fn(&str) -> Option<String>) -> ExitCode {
    let words: Vec<OsString> = words.collect();
    if let Some(command) = migrate::Command::of(&words) {
        return in_runtime(async { migrate::main(command?).await });
    }
    let options = match Options::read(&words) {
        Ok(options) => options,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let flags = &options.logging;
    let format = Format::named(&flags.logging_format);
    if let Err(error) = logging::start(flags.level, format, Clock::wall()) {
        eprintln!("error: failed to start the log: {error}");
        return ExitCode::FAILURE;
    }
    in_runtime(async {
        let environment = Environment::read(&variable).map_err(Error::Setting)?.in_zone_of_process(&variable);
        run(options, environment).await.map_err(BoxError::from)
    })
}

/// Runs a future to its end, and tells what went wrong with all its reasons.
fn in_runtime(future: impl Future<Output = Result<(), BoxError>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(future) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let reasons: Vec<String> =
                std::iter::successors(Some(&*error as &dyn std::error::Error), |error| error.source())
                    .map(ToString::to_string)
                    .collect();
            let reasons = reasons.join(": ");
            tracing::error!(error = %reasons, "the manager ends");
            eprintln!("error: {reasons}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options, environment: Environment) -> Result<(), Error> {
    let gates = gates(&options, &environment)?;
    let clock = Clock::wall();
    let settings = Settings { options, environment, gates, clock, random: Random::from_entropy() };
    if let Err(problem) = settings.options.resync() {
        tracing::warn!(%problem, "--sync-period is ignored");
    }
    let client = client(settings.options.kubeconfig.as_deref()).await?;
    let version = client.apiserver_version().await.map_err(Error::Server)?.git_version;
    tracing::info!(%version, "reached the API server");
    let registry = Registry::default();
    let mut scope = Scope::default();
    let stop = scope.stop();
    let election = election(&client, &settings, &registry);
    let fence = election.as_ref().map_or_else(lease::Fence::default, lease::Candidate::fence);
    let shared = Shared::new(client, settings, &version, fence, registry);
    let manager = Manager::new(shared.clone());
    sockets::open(&manager, &mut scope).await?;
    manager.start(&mut scope);
    tokio::select! {
        secured = manager.secure(&mut scope) => secured?,
        () = signals::asked_to_end() => return Ok(()),
    }
    let leading = manager.clone();
    let until = stop.clone();
    scope.spawn("leader", async move {
        leading.wait_until_ready(&until).await;
        let Some(candidate) = election else {
            shared.metrics.is_leader.set(&[], 1.0);
            return leading.lead(&until).await.map_err(BoxError::from);
        };
        let Some(leader) = candidate.acquire(&until).await else { return Ok(()) };
        // The lease is given back only after the last write, which is why it has a wish to stop of its own.
        let done = Stop::default();
        let mut held = std::pin::pin!(leader.hold(&done));
        tokio::select! {
            lost = &mut held => lost.map_err(BoxError::from),
            ended = leading.lead(&until) => {
                done.ask();
                held.await?;
                ended.map_err(BoxError::from)
            }
        }
    });
    let outcome = tokio::select! {
        ended = scope.next_end() => match ended {
            Some(Err(error)) => Err(Error::from(error)),
            Some(Ok(_)) | None => Ok(()),
        },
        () = signals::asked_to_end() => {
            tracing::info!("asked to end");
            Ok(())
        }
    };
    // Who has lost the lease must be gone before another one leads.
    let farewell = if outcome.is_ok() { FAREWELL } else { SHORT_FAREWELL };
    tokio::select! {
        stopped = scope.shutdown(farewell) => outcome.and(stopped.map_err(Error::from)),
        () = signals::asked_to_end() => Err(Error::Setting("asked to end a second time".to_owned())),
    }
}

fn gates(options: &Options, environment: &Environment) -> Result<Gates, Error> {
    let others = gates::Options { custom_resource_enable: environment.custom_resource_enable.clone() };
    let (gates, notices) =
        Gates::parse(&options.feature_gates(), &others).map_err(|error| Error::Setting(error.to_string()))?;
    for notice in notices {
        tracing::warn!(%notice, "feature gates");
    }
    Ok(gates)
}

/// A client that does not retry: whoever calls knows better when to try again.
pub(crate) async fn client(kubeconfig: Option<&Path>) -> Result<Client, Error> {
    let mut config = match kubeconfig {
        Some(path) => {
            let file =
                kube::config::Kubeconfig::read_from(path).map_err(|error| Error::Config(error.into()))?;
            let options = KubeConfigOptions::default();
            Config::from_custom_kubeconfig(file, &options)
                .await
                .map_err(|error| Error::Config(error.into()))?
        }
        None => Config::infer().await.map_err(|error| Error::Config(error.into()))?,
    };
    config.default_retry = false;
    Client::try_from(config).map_err(|error| Error::Config(error.into()))
}

fn election(client: &Client, settings: &Settings, registry: &Registry) -> Option<lease::Candidate> {
    let flags = &settings.options.election;
    if !flags.enable_leader_election {
        return None;
    }
    let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let namespace = Some(&flags.leader_election_namespace).filter(|namespace| !namespace.is_empty());
    let lease = lease::Settings {
        namespace: namespace.unwrap_or(&settings.environment.namespace).clone(),
        name: flags.leader_election_id.clone(),
        identity: lease::Settings::identity(&hostname, &settings.random),
        lease: flags.leader_election_lease_duration,
        renew_deadline: flags.leader_election_renew_deadline,
        retry: flags.leader_election_retry_period,
    };
    let metrics = kruise_runtime::metrics::Framework::new(registry);
    Some(lease::Candidate::new(
        client.clone(),
        lease,
        settings.clock.clone(),
        settings.random.clone(),
        metrics,
    ))
}
