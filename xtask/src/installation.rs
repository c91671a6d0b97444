//! An installation on a cluster, for scenarios and benchmarks: definitions, webhook configurations, and the manager as a
//! process on this machine, of the same build as this program.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::{Clock, Manager};
use crate::cluster;

/// An installation. To be [ended](Self::end): nobody must be refused because the manager is gone.
pub(crate) struct Installation {
    kubeconfig: PathBuf,
    webhooks: String,
    folder: PathBuf,
    pub(crate) manager: Manager,
    /// The daemon of the real node, where there is one.
    daemon: Option<Daemon>,
}

impl Installation {
    /// Installs, and waits until the manager leads and its webhooks answer.
    pub(crate) fn start(root: &Path, kubeconfig: &Path) -> Result<Self> {
        Self::start_with(root, kubeconfig, &[])
    }

    /// The same with more flags for the manager.
    pub(crate) fn start_with(root: &Path, kubeconfig: &Path, flags: &[&str]) -> Result<Self> {
        let folder = env::temp_dir().join(format!("kruise-manager-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let path = |folder: &str| root.join(folder).display().to_string();
        let (definitions, webhooks) = (path("charts/kruise/crds"), path("config/webhook"));
        let applied =
            run(kubeconfig, &["apply", "--server-side", "--force-conflicts", "-f", &definitions], None);
        // A manager outside of the cluster has put its address where ours have a Service: both is not allowed.
        if applied.is_err() {
            run(kubeconfig, &["replace", "-f", &definitions], None)?;
        }
        let metadata =
            json!({"name": kruise_api::names::NAMESPACE, "labels": {"control-plane": "openkruise"}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        run(kubeconfig, &["apply", "-f", "-"], Some(&namespace.to_string()))?;
        run(kubeconfig, &["apply", "-f", &webhooks], None)?;
        let program = env::current_exe()?.with_file_name("kruise-manager");
        let manager = Manager::start_with(&program, kubeconfig, &folder, flags)?;
        let kubeconfig = kubeconfig.to_owned();
        let installation = Self { kubeconfig, webhooks, folder, manager, daemon: None };
        let manager = &installation.manager;
        if let Err(error) = Clock::new().until(|| Ok(manager.is_ready() && manager.knows(0.0))) {
            installation.end(false);
            return Err(error).context("the manager did not become ready");
        }
        Ok(installation)
    }

    /// Starts the daemon of the real node, if that node is this machine.
    pub(crate) fn start_daemon(&mut self) -> Result<()> {
        let label = format!("{}=real", cluster::NODE_TYPE_LABEL);
        let found = self.kubectl(&["get", "nodes", "-l", &label, "-o", "name"], None)?;
        let node = found.lines().find_map(|line| line.strip_prefix("node/"));
        let socket = cluster::runtime_socket()?;
        if let (Some(node), true) = (node, socket.exists()) {
            self.daemon = Some(Daemon::start(node, &self.kubeconfig, &socket, &self.folder)?);
        }
        Ok(())
    }

    /// Runs kubectl; the answer is what it prints.
    pub(crate) fn kubectl(&self, args: &[&str], input: Option<&str>) -> Result<String> {
        run(&self.kubeconfig, args, input)
    }

    /// Creates or changes an object.
    pub(crate) fn apply(&self, object: &Value) -> Result<()> {
        self.kubectl(&["apply", "-f", "-"], Some(&object.to_string())).map(drop)
    }

    /// Takes the webhooks away and ends the manager. Its log stays if it is needed.
    pub(crate) fn end(self, well: bool) {
        let _ = self.kubectl(&["delete", "--ignore-not-found", "-f", &self.webhooks], None);
        drop((self.manager, self.daemon));
        if well {
            let _ = fs::remove_dir_all(&self.folder);
        } else {
            println!("the logs of the manager and of the daemon are in {}", self.folder.display());
        }
    }
}

/// The daemon of a node, ended with this value.
struct Daemon(Child);

impl Daemon {
    fn start(node: &str, kubeconfig: &Path, socket: &Path, folder: &Path) -> Result<Self> {
        let program = env::current_exe()?.with_file_name("kruise-daemon");
        let part = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let child = Command::new(&program)
            .env("NODE_NAME", node)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--addr=127.0.0.1:0", "--enable-pprof=false", "--v=4"])
            .arg(format!("--socket-folder={}", part(socket.parent().map(Path::as_os_str))))
            .arg(format!("--socket-file={}", part(socket.file_name())))
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("daemon.log"))?)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self(child))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(kubeconfig: &Path, args: &[&str], input: Option<&str>) -> Result<String> {
    let mut child = Command::new(cluster::kubectl()?)
        .env("KUBECONFIG", kubeconfig)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start kubectl")?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "kubectl {} failed", args.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}
