//! A real Kubernetes on this machine: `cargo xtask cluster up | status | down`.
//!
//! Control plane, one real node and hollow nodes, from Debian's packages and sources. What can be built once is kept in a
//! cache; everything else lives in a state folder and goes with `down`. See `docs/real-cluster.md`.

pub(crate) mod archive;
mod build;
mod cgroups;
mod cleanup;
mod control_plane;
mod footprint;
mod hollow;
pub(crate) mod images;
mod kubectl;
mod layout;
mod mounts;
mod node;
mod packages;
mod pki;
mod process;
mod progress;
mod record;
mod registry;
mod repair;
mod sources;
mod status;
mod tool;
mod version;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};

use self::kubectl::Kubectl;
pub(crate) use self::layout::NODE_TYPE_LABEL;
use self::layout::{Layout, MAX_HOLLOW};
use self::packages::{Apt, Packages};
use self::pki::Pki;
use self::process::Started;
use self::progress::{Progress, wait_for};
use self::record::Record;
use self::version::Binaries;

/// What to do with the cluster.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Install, build and start what is missing. Running it again is safe.
    Up(Options),
    /// Stop everything and remove all traces; packages and binaries stay in the cache.
    Down,
    /// Tell what runs. Succeeds only when the cluster is usable.
    Status,
}

/// What the cluster shall be.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// How many hollow nodes: real kubelet code on a fake runtime.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=i64::from(MAX_HOLLOW)))]
    pub(crate) hollow: u16,
    /// Leave out the node that runs real containers.
    #[arg(long)]
    pub(crate) no_real_node: bool,
    /// Run the Kubernetes binaries of this folder: kube-apiserver, kube-controller-manager, kube-scheduler, kubelet,
    /// kubemark, and etcd if it is there.
    #[arg(long, value_name = "DIR")]
    pub(crate) bin_dir: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { hollow: 3, no_real_node: false, bin_dir: None }
    }
}

/// A cluster that is ready.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    /// How to reach it.
    pub(crate) kubeconfig: PathBuf,
    /// Whether this call started any part of it: whoever started it takes it down.
    pub(crate) started_here: bool,
}

/// Runs one command of a person.
pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Up(options) => {
            let running = up(&options)?;
            print_next_steps(&running);
            Ok(())
        }
        Command::Down => down(),
        Command::Status => print_status(),
    }
}

/// Whether a cluster can be started on this machine; if not, the sentence to print.
pub(crate) fn can_run_here() -> Result<(), String> {
    const INSTEAD: &str = "To use a cluster that you have: KUBECONFIG=/path/to/kubeconfig cargo xtask test";
    if !rustix::process::geteuid().is_root() {
        return Err(format!("A local cluster needs root, for containers and networks. {INSTEAD}"));
    }
    let is_cached = Layout::of_this_machine().is_ok_and(|layout| {
        Packages::cached(&layout).is_some()
            && build::cached(&layout).is_some()
            && packages::have(&packages::RUN_TOOLS)
    });
    if !is_cached && tool::find("apt-get").is_none() {
        return Err(format!(
            "A local cluster is made from Debian's packages, and this machine has no apt-get. {INSTEAD}"
        ));
    }
    Ok(())
}

/// Where kubectl is.
pub(crate) fn kubectl() -> Result<PathBuf> {
    kubectl::program(&Layout::of_this_machine()?)
}

/// Where the container runtime of the real node listens: the one that `KRUISE_CRI_SOCKET` names, or that of the local cluster.
pub(crate) fn runtime_socket() -> Result<PathBuf> {
    match std::env::var_os("KRUISE_CRI_SOCKET") {
        Some(socket) => Ok(socket.into()),
        None => Ok(Layout::of_this_machine()?.containerd_socket()),
    }
}

/// Brings the cluster up, whatever of it runs already.
pub(crate) fn up(options: &Options) -> Result<Running> {
    can_run_here().map_err(|sentence| anyhow!(sentence))?;
    let layout = Layout::of_this_machine()?;
    let progress = Progress::start();
    let _lock = lock(&layout, &progress)?;
    prepare_state(&layout, &progress)?;
    let apt = Apt::new(&layout, &progress);
    apt.install(&packages::RUN_TOOLS)?;
    let packages = apt.unpack()?;
    let binaries = binaries(&layout, &progress, &apt, options.bin_dir.as_deref())?;
    let record = decide(&layout, options, &binaries)?;
    record.write(&layout)?;
    footprint::note(&layout)?;

    let pki = Pki::open(&layout)?;
    let mut started = vec![registry::start(&layout, &progress, &packages)?];
    if record.real_node {
        started.push(node::start_runtime(&layout, &progress, &packages)?);
    }
    started.push(control_plane::start(&layout, &progress, &binaries, &packages, &pki)?);
    if record.real_node {
        started.push(node::start_kubelet(&layout, &progress, &binaries, &pki)?);
    }
    started.push(hollow::start(&layout, &progress, &binaries, &pki, record.hollow)?);
    registry::fill(&layout, &progress, &packages)?;
    wait_until_ready(&layout, &progress, &record)?;
    progress.say("the cluster is ready");
    Ok(Running { kubeconfig: layout.kubeconfig(), started_here: started.contains(&Started::Now) })
}

/// Takes the cluster away. Safe when there is none.
pub(crate) fn down() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("a local cluster belongs to root: run this as root");
    }
    let layout = Layout::of_this_machine()?;
    let progress = Progress::start();
    let _lock = lock(&layout, &progress)?;
    process::end_left_over_tasks(&layout)?;
    cleanup::everything(&layout)?;
    progress.say(format!("the cluster is down; logs stay in {}", layout.logs().display()));
    Ok(())
}

/// One command at a time. The lock ends with its process, however that ends.
fn lock(layout: &Layout, progress: &Progress) -> Result<File> {
    let path = layout.lock_file();
    let file = tool::append_to(&path)?;
    if file.try_lock().is_err() {
        progress.say("waiting for another cluster command to end");
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

/// Leaves a state folder that this run can go on with.
fn prepare_state(layout: &Layout, progress: &Progress) -> Result<()> {
    process::end_left_over_tasks(layout)?;
    let is_new = Record::read(layout)?.is_none();
    if !record::is_of_this_boot(layout) {
        if !is_new {
            progress.say("removing a cluster from before the machine was restarted");
        }
        cleanup::everything(layout)?;
    }
    if is_new {
        tool::remove(&layout.logs())?;
    }
    fs::create_dir_all(layout.logs())?;
    record::note_boot(layout)
}

/// The binaries to run: the given ones, those of the cluster that runs, or Debian's.
fn binaries(layout: &Layout, progress: &Progress, apt: &Apt<'_>, given: Option<&Path>) -> Result<Binaries> {
    match (given, Record::read(layout)?) {
        (Some(dir), _) => Binaries::open(dir),
        (None, Some(record)) => Binaries::open(&record.bin_dir),
        (None, None) => build::build(layout, progress, apt),
    }
}

/// What the cluster becomes.
fn decide(layout: &Layout, options: &Options, binaries: &Binaries) -> Result<Record> {
    let wanted = Record::new(binaries, !options.no_real_node, options.hollow);
    let Some(record) = Record::read(layout)? else {
        return Ok(wanted);
    };
    if record.bin_dir != wanted.bin_dir {
        bail!(
            "a cluster with Kubernetes {} of {} exists: run `cargo xtask cluster down` first",
            record.version,
            record.bin_dir.display()
        );
    }
    Ok(record.grown(&wanted))
}

/// A cluster is ready when its nodes are, and when pods may be created: they need the default service account.
fn wait_until_ready(layout: &Layout, progress: &Progress, record: &Record) -> Result<()> {
    let kubectl = Kubectl::find(layout)?;
    let expected = status::expected_nodes(record);
    let mut told = false;
    wait_for("waiting for the nodes", Duration::from_secs(120), || {
        if let Some(part) = status::stopped_parts(layout, record).first() {
            bail!(process::died(layout, part));
        }
        let nodes = kubectl.nodes().unwrap_or_default();
        let is_ready = |name: &String| nodes.iter().any(|node| node.ready && node.name == *name);
        if expected.iter().all(is_ready) && kubectl.has_default_service_account() {
            return Ok(Some(()));
        }
        if !told {
            progress.say(format!("waiting for {} nodes", expected.len()));
            told = true;
        }
        Ok(None)
    })
    .with_context(|| format!("the nodes are not all Ready; logs are in {}", layout.logs().display()))
}

fn print_next_steps(running: &Running) {
    if !running.started_here {
        println!("All of it was running already.");
    }
    println!(
        "
  export KUBECONFIG={}
  kubectl get nodes -L {},{}

  Real containers:  nodeSelector {{ {}: real }}, image 127.0.0.1:{}/app:v1
  Private images:   127.0.0.1:{}/app:v1, user {}, password {}
  Hollow nodes:     nodeSelector {{ {}: hollow }}, any image name
  cargo xtask cluster status | down",
        running.kubeconfig.display(),
        layout::NODE_TYPE_LABEL,
        layout::ZONE_LABEL,
        layout::NODE_TYPE_LABEL,
        layout::REGISTRY_PORT,
        layout::PRIVATE_REGISTRY_PORT,
        registry::USER,
        registry::PASSWORD,
        layout::NODE_TYPE_LABEL,
    );
}

fn print_status() -> Result<()> {
    let report = status::look(&Layout::of_this_machine()?)?;
    print!("{}", report.text);
    if report.problems.is_empty() {
        return Ok(());
    }
    bail!("the cluster is not usable: {}", report.problems.join("; "));
}
