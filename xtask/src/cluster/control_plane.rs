//! etcd, API server, controller manager and scheduler.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::kubectl::Kubectl;
use super::layout::{
    API_SERVER_PORT, CONTROLLER_MANAGER_PORT, ETCD_CLIENT_PORT, ETCD_PEER_PORT, Layout, SCHEDULER_PORT,
    SERVICE_RANGE, machine_address, text,
};
use super::packages::Packages;
use super::pki::{ADMIN, CONTROLLER_MANAGER, Pki, SCHEDULER};
use super::process::{self, Part, Started};
use super::progress::{Progress, wait_for};
use super::tool;
use super::version::Binaries;

/// The names of the parts, in the order of their start.
pub(crate) const PARTS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// Starts what does not run and waits until the API server answers. The answer is whether anything was started.
pub(crate) fn start(
    layout: &Layout,
    progress: &Progress,
    binaries: &Binaries,
    packages: &Packages,
    pki: &Pki,
) -> Result<Started> {
    let mut started = process::start(layout, &etcd(layout, &etcd_program(binaries, packages)?))?;
    let server = api_server(binaries, pki);
    if process::pid_of(layout, &server).is_none() {
        pki.write_server(machine_address()?)?;
        pki.ensure(ADMIN)?;
        process::start(layout, &server)?;
        started = Started::Now;
        progress.say(format!("starting etcd and kube-apiserver {}", binaries.version));
    }
    tool::write_atomically(&layout.kubeconfig(), pki.kubeconfig_text(ADMIN))?;
    let kubectl = Kubectl::find(layout)?;
    wait_for("the start of the API server", Duration::from_secs(90), || {
        process::check_alive(layout, &server)?;
        Ok(kubectl.is_ready().then_some(()))
    })?;
    for part in [controller_manager(binaries, pki)?, scheduler(binaries, pki)?] {
        if process::start(layout, &part)? == Started::Now {
            progress.say(format!("starting {}", part.name));
            started = Started::Now;
        }
    }
    Ok(started)
}

/// The folder of binaries may bring its own etcd.
pub(crate) fn etcd_program(binaries: &Binaries, packages: &Packages) -> Result<PathBuf> {
    let own = binaries.program("etcd");
    if tool::is_program(&own) { Ok(own) } else { packages.program("etcd") }
}

fn etcd(layout: &Layout, program: &std::path::Path) -> Part {
    let client = format!("http://127.0.0.1:{ETCD_CLIENT_PORT}");
    let peer = format!("http://127.0.0.1:{ETCD_PEER_PORT}");
    Part {
        name: "etcd".to_owned(),
        program: program.to_path_buf(),
        args: vec![
            "--name=kruise-rs".to_owned(),
            format!("--data-dir={}", layout.state.join("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=kruise-rs={peer}"),
            // The data need not outlive the machine; without this a slow disk slows every test down.
            "--unsafe-no-fsync".to_owned(),
        ],
        env: BTreeMap::new(),
        tmp: None,
        ports: vec![ETCD_CLIENT_PORT, ETCD_PEER_PORT],
    }
}

fn api_server(binaries: &Binaries, pki: &Pki) -> Part {
    let file = |name: &str| text(&pki.file(name));
    let mut args = vec![
        format!("--etcd-servers=http://127.0.0.1:{ETCD_CLIENT_PORT}"),
        format!("--secure-port={API_SERVER_PORT}"),
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--client-ca-file={}", text(&pki.authority())),
        format!("--kubelet-client-certificate={}", text(&pki.certificate(ADMIN))),
        format!("--kubelet-client-key={}", text(&pki.key(ADMIN))),
        // Node names are in no name service, so logs and exec would fail on the look-up.
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-account-signing-key-file={}", file("service-accounts.key")),
        format!("--service-account-key-file={}", file("service-accounts.pub")),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
    ];
    if binaries.needs().ephemeral_containers_gate {
        args.push("--feature-gates=EphemeralContainers=true".to_owned());
    }
    Part {
        name: "kube-apiserver".to_owned(),
        program: binaries.program("kube-apiserver"),
        args,
        env: BTreeMap::new(),
        tmp: None,
        ports: vec![API_SERVER_PORT],
    }
}

fn controller_manager(binaries: &Binaries, pki: &Pki) -> Result<Part> {
    let mut args = client_args(binaries, &pki.kubeconfig(CONTROLLER_MANAGER)?, CONTROLLER_MANAGER_PORT);
    args.extend([
        format!("--root-ca-file={}", text(&pki.authority())),
        format!("--service-account-private-key-file={}", text(&pki.file("service-accounts.key"))),
        format!("--cluster-signing-cert-file={}", text(&pki.authority())),
        format!("--cluster-signing-key-file={}", text(&pki.file("ca.key"))),
        "--use-service-account-credentials=true".to_owned(),
    ]);
    Ok(Part {
        name: "kube-controller-manager".to_owned(),
        program: binaries.program("kube-controller-manager"),
        args,
        env: BTreeMap::new(),
        tmp: None,
        ports: vec![CONTROLLER_MANAGER_PORT],
    })
}

fn scheduler(binaries: &Binaries, pki: &Pki) -> Result<Part> {
    Ok(Part {
        name: "kube-scheduler".to_owned(),
        program: binaries.program("kube-scheduler"),
        args: client_args(binaries, &pki.kubeconfig(SCHEDULER)?, SCHEDULER_PORT),
        env: BTreeMap::new(),
        tmp: None,
        ports: vec![SCHEDULER_PORT],
    })
}

/// What the controller manager and the scheduler share.
fn client_args(binaries: &Binaries, kubeconfig: &std::path::Path, port: u16) -> Vec<String> {
    let kubeconfig = kubeconfig.display();
    let mut args = vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        // There is one of each; waiting for a lease would only slow the start down.
        "--leader-elect=false".to_owned(),
    ];
    if binaries.needs().insecure_port_closed {
        args.push("--port=0".to_owned());
    }
    args
}
