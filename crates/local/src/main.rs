//! `kruise-local`: reads options, starts a cluster, says what to type next, and ends cleanly.

use std::env;
use std::error::Error as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;
use kruise_local::cluster::{self, Cluster, Error, Settings};
use kruise_local::daemons::When;
use kruise_local::options::Options;
use kruise_local::{demo, kubeconfig};
use kruise_runtime::signals;

/// A cluster is millions of small objects; the system's allocator took a quarter of the time for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = Options::parse();
    log(options.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("cannot start: {error}")),
    };
    let given = options.kubeconfig.clone();
    let path = given.or_else(|| kubeconfig::default_path(folder("XDG_STATE_HOME"), folder("HOME")));
    let Some(path) = path else {
        return fail("there is no home folder to put the kubeconfig in; name a place with --kubeconfig");
    };
    match runtime.block_on(run(&options, path)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = error.to_string();
            let mut source = error.source();
            while let Some(inner) = source {
                text = format!("{text}: {inner}");
                source = inner.source();
            }
            fail(&text)
        }
    }
}

fn folder(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn fail(text: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {text}");
    ExitCode::FAILURE
}

/// Prints a line. A closed pipe is no reason to end.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn log(verbose: u8) {
    let level = match verbose {
        0 => "error",
        1 => "info",
        _ => "info,kruise_local=debug,kruise_apiserver=debug,kruise_sim=debug",
    };
    let filter = env::var("RUST_LOG").unwrap_or_else(|_| level.to_owned());
    let filter = tracing_subscriber::EnvFilter::new(filter);
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

async fn run(options: &Options, kubeconfig: PathBuf) -> Result<(), Error> {
    let settings = Settings {
        port: options.port,
        kubeconfig,
        data_dir: options.data_dir.clone(),
        nodes: options.nodes,
        speed: options.speed,
        seed: options.seed,
        now: now(),
        with_manager: !options.no_manager,
        daemons: match (options.node_daemons, options.no_manager) {
            (true, _) => When::Always,
            (false, false) => When::ThereIsWork,
            (false, true) => When::Never,
        },
        feature_gates: options.feature_gates.clone(),
    };
    let mut cluster = cluster::start(&settings).await?;
    greet(&cluster, &settings);
    let server = cluster.server().clone();
    let demo = async {
        if options.demo
            && let Err(status) = demo::run(server, |line| say(&line)).await
        {
            say(&format!("demo: stopped: {}", status.message));
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        outcome = cluster.ended() => return outcome,
        () = signals::asked_to_end() => {}
        () = demo => {}
    }
    say("ending");
    cluster.stop().await
}

fn greet(cluster: &Cluster, settings: &Settings) {
    let nodes = match settings.nodes {
        1 => "1 simulated node".to_owned(),
        nodes => format!("{nodes} simulated nodes"),
    };
    let end = match &settings.data_dir {
        Some(folder) => format!("it is kept in {}; Ctrl-C ends it.", folder.display()),
        None => "Ctrl-C ends it and all that is in it.".to_owned(),
    };
    say(&format!("A cluster with {nodes} is at https://{}; {end}", cluster.address()));
    if let Some(taken) = cluster.taken_port() {
        say(&format!("Port {taken} was taken, so this is another one."));
    }
    say("");
    say("In another terminal:");
    say("");
    say(&format!("  export KUBECONFIG={}", quoted(&settings.kubeconfig.display().to_string())));
    for line in [
        "kubectl get nodes",
        "kubectl apply -f examples/deployment.yaml",
        "kubectl rollout status deployment/web",
        "kubectl set image deployment/web web=registry.example/web:v2",
        "kubectl get pods -w",
        "kubectl apply -f examples/cloneset.yaml",
    ] {
        say(&format!("  {line}"));
    }
    say("");
}

/// A path as a shell reads it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[allow(clippy::disallowed_methods, reason = "the one place where the cluster learns what time it is")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
