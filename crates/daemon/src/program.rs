//! From the command line to a running daemon, step by step, and its end.

use std::{ffi::OsString, path::Path, process::ExitCode, time::Duration};

use kruise_api::gates::{self, Gate, Gates};
use kruise_runtime::{
    clock::Clock,
    endpoints,
    logging::{self, Format},
    random::Random,
    scope::{BoxError, Scope},
    signals,
};
use kube::{Client, Config, config::KubeConfigOptions};

use crate::{
    cri::discovery,
    daemon,
    endpoints::Pages,
    node::{Node, Settings},
    options::Options,
    pulling::{Wanted, plugins::Plugins, secrets::Sources},
};

/// How long everything gets when the daemon ends: less than the ten seconds that its pod has.
const FAREWELL: Duration = Duration::from_secs(8);

/// Why the daemon does not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody says which node this is.
    #[error("not found NODE_NAME in environments")]
    NoNode,
    /// A flag makes no sense.
    #[error("{0}")]
    Setting(String),
    /// An address is taken.
    #[error("failed to listen on {address} (--addr)")]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        source: std::io::Error,
    },
    /// There is no way to the API server.
    #[error(
        "failed to find out how to reach the API server; run inside of a cluster, or name a kubeconfig with --kubeconfig"
    )]
    Config(#[source] BoxError),
    /// There is no container runtime.
    #[error("failed to new runtime factory")]
    Runtime(#[from] discovery::Error),
    /// A part ended that should not have.
    #[error(transparent)]
    Ended(#[from] kruise_runtime::scope::Error),
    /// Somebody is in a hurry.
    #[error("asked to end a second time")]
    Hurry,
}

/// The whole program: words of the command line and a look-up of variables in, exit code out.
pub fn main(words: impl Iterator<Item = OsString>, variable: impl Fn(&str) -> Option<String>) -> ExitCode {
    let options = match Options::read(words) {
        Ok(options) => options,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    // In a process that has a log already, this one is not needed.
    let _ = logging::start(options.level, Format::named(&options.logging_format), Clock::wall());
    // A node has better things to do with its cores.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(run(options, variable)).map_err(BoxError::from),
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let reasons = kruise_core::causes::told(&*error);
            tracing::error!(error = %reasons, "the daemon ends");
            eprintln!("error: {reasons}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options, variable: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
    let node_name = variable("NODE_NAME").filter(|name| !name.is_empty()).ok_or(Error::NoNode)?;
    let gates = gates(&options)?;
    let listener = endpoints::bind(&options.addr).await;
    let listener = listener.map_err(|source| Error::Listen { address: options.addr.clone(), source })?;
    let client =
        client(Some(options.kubeconfig.as_str()).filter(|path| !path.is_empty()).map(Path::new)).await?;
    let file = Some(options.socket_file.as_str()).filter(|file| !file.is_empty());
    let runtimes = discovery::discover(&options.socket_folder, file).await?;
    let random = Random::from_entropy();
    let files = Sources::default_files(variable("HOME").as_deref());
    let sources = Sources { files, plugins: plugins(&options) };
    let settings = Settings {
        node: node_name,
        gates,
        rate: options.rate(),
        most_pulls: options.most_pulls(),
        space: Wanted { percent: options.image_fs_min_free_percent },
        clock: Clock::wall(),
        random,
    };
    let node = Node::new(client, runtimes, sources, settings);
    let mut scope = Scope::default();
    let pages = Pages::Daemon {
        checks: daemon::checks(&node),
        numbers: endpoints::numbers::Numbers::new(node.registry.clone()),
    };
    if let Some(listener) = listener {
        serve(&mut scope, "--addr", listener, pages);
    }
    if options.enable_pprof {
        // Nothing depends on it, so a taken port is only told.
        match endpoints::bind(&options.pprof_addr).await {
            Ok(Some(listener)) => serve(&mut scope, "--pprof-addr", listener, Pages::Profiles),
            Ok(None) => {}
            Err(error) => tracing::warn!(address = %options.pprof_addr, %error, "profiles are not served"),
        }
    }
    daemon::start(&node, &mut scope);
    tracing::info!(node = %node.settings.node, "the daemon runs");
    let outcome = tokio::select! {
        ended = scope.next_end() => match ended {
            Some(Err(error)) => Err(Error::from(error)),
            Some(Ok(_)) | None => Ok(()),
        },
        () = signals::asked_to_end() => Ok(()),
    };
    tracing::info!("asked to end");
    tokio::select! {
        stopped = scope.shutdown(FAREWELL) => outcome.and(stopped.map_err(Error::from)),
        () = signals::asked_to_end() => Err(Error::Hurry),
    }
}

fn serve(scope: &mut Scope, name: &'static str, listener: tokio::net::TcpListener, pages: Pages) {
    let stop = scope.stop();
    scope.spawn(name, async move {
        endpoints::serve(listener, pages.handler(), async move { stop.asked().await }).await;
        Ok::<(), BoxError>(())
    });
}

fn gates(options: &Options) -> Result<Gates, Error> {
    let (gates, notices) = Gates::parse(&options.feature_gates(), &gates::Options::default())
        .map_err(|error| Error::Setting(error.to_string()))?;
    for notice in notices {
        tracing::warn!(%notice, "feature gates");
    }
    if !gates.enabled(Gate::KruiseDaemon) {
        tracing::warn!("KruiseDaemon is off: only images and requests that exist already are served");
    }
    Ok(gates)
}

/// Plugins that cannot be used are told; everything else goes on without them.
fn plugins(options: &Options) -> Option<Plugins> {
    Plugins::read(&options.plugin_config_file, &options.plugin_bin_dir).unwrap_or_else(|error| {
        let error = kruise_core::causes::told(&error);
        tracing::error!(%error, "credential plugins are not used");
        None
    })
}

/// A client that does not retry: whoever calls knows better when to try again.
async fn client(kubeconfig: Option<&Path>) -> Result<Client, Error> {
    let mut config = match kubeconfig {
        Some(path) => {
            let file =
                kube::config::Kubeconfig::read_from(path).map_err(|error| Error::Config(error.into()))?;
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(file, &options).await;
            config.map_err(|error| Error::Config(error.into()))?
        }
        None => Config::infer().await.map_err(|error| Error::Config(error.into()))?,
    };
    config.default_retry = false;
    Client::try_from(config).map_err(|error| Error::Config(error.into()))
}
