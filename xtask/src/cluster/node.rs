//! The real node: containerd, network plugins and a kubelet.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::images;
use super::layout::{
    BRIDGE, CGROUP, DNS_ADDRESS, KUBELET_HEALTH_PORT, KUBELET_PORT, Layout, NETWORK, POD_RANGE, REAL_NODE,
    SANDBOX_IMAGE, node_labels, text, zone_of,
};
use super::mounts;
use super::packages::Packages;
use super::pki::{Identity, Pki};
use super::process::{self, Part, Started};
use super::progress::{Progress, wait_for};
use super::version::{Binaries, Needs};
use super::{cgroups, tool};

/// The names of the parts, in the order of their start.
pub(crate) const PARTS: [&str; 2] = ["containerd", "kubelet"];

/// Starts containerd unless it runs, and gives it the sandbox image.
pub(crate) fn start_runtime(layout: &Layout, progress: &Progress, packages: &Packages) -> Result<Started> {
    cgroups::create()?;
    let part = containerd(layout, packages)?;
    let started = process::start(layout, &part)?;
    if started == Started::Before {
        return Ok(started);
    }
    progress.say("starting containerd");
    wait_for("the start of containerd", Duration::from_secs(30), || {
        process::check_alive(layout, &part)?;
        Ok(UnixStream::connect(layout.containerd_socket()).is_ok().then_some(()))
    })?;
    let archive = images::write_sandbox_archive(layout, packages)?;
    let mut import = Command::new(packages.program("ctr")?);
    import.arg("--address").arg(layout.containerd_socket());
    import.args(["--namespace", "k8s.io", "images", "import"]).arg(&archive);
    tool::run(layout, progress, tool::TASK, "importing the sandbox image", &mut import)?;
    Ok(started)
}

/// Starts the kubelet unless it runs.
pub(crate) fn start_kubelet(
    layout: &Layout,
    progress: &Progress,
    binaries: &Binaries,
    pki: &Pki,
) -> Result<Started> {
    let started = process::start(layout, &kubelet(layout, binaries, pki)?)?;
    if started == Started::Now {
        progress.say(format!("starting kubelet {REAL_NODE}"));
    }
    Ok(started)
}

/// The certificate of a kubelet.
pub(crate) fn kubeconfig_of(pki: &Pki, node: &str) -> Result<std::path::PathBuf> {
    let user = format!("system:node:{node}");
    pki.kubeconfig(Identity { file: &format!("node-{node}"), user: &user, group: Some("system:nodes") })
}

fn containerd(layout: &Layout, packages: &Packages) -> Result<Part> {
    fs::create_dir_all(&layout.run).with_context(|| format!("cannot create {}", layout.run.display()))?;
    let folder = layout.state.join("containerd");
    let config = folder.join("config.toml");
    // An overlay cannot stand on an overlay, as it would inside a container.
    let on_overlay = mounts::kind_at(&mounts::all()?, &layout.state).as_deref() == Some("overlay");
    let snapshotter = if on_overlay { "native" } else { "overlayfs" };
    tool::write_atomically(&config, containerd_config(layout, packages, snapshotter)?)?;
    tool::write_atomically(
        &folder.join("networks/10-kruise-rs.conflist"),
        serde_json::to_string_pretty(&network(layout))?,
    )?;
    Ok(Part {
        name: "containerd".to_owned(),
        program: packages.program("containerd")?,
        args: vec!["--config".to_owned(), text(&config)],
        // The packages first: shims and runc must be of containerd's own version.
        env: BTreeMap::from([("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", packages.path()))]),
        tmp: None,
        ports: Vec::new(),
    })
}

fn containerd_config(layout: &Layout, packages: &Packages, snapshotter: &str) -> Result<String> {
    let folder = layout.state.join("containerd");
    Ok(format!(
        r#"version = 2
root = "{root}"
state = "{state}"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{opt}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{SANDBOX_IMAGE}"
stream_server_address = "127.0.0.1"
# Where a process may not lower its score, every sandbox would fail.
restrict_oom_score_adj = true
# Network namespaces then vanish with our mounts.
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{snapshotter}"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{runc}"
Root = "{runc_root}"
SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{networks}"
"#,
        root = folder.join("root").display(),
        state = layout.run.join("containerd").display(),
        socket = layout.containerd_socket().display(),
        opt = folder.join("opt").display(),
        runc = packages.program("runc")?.display(),
        runc_root = layout.run.join("runc").display(),
        plugins = packages.network_plugins().display(),
        networks = folder.join("networks").display(),
    ))
}

/// A bridge without address translation: pods talk to each other and to the machine, and no packet filter is touched.
fn network(layout: &Layout) -> Value {
    json!({
        "cniVersion": "0.4.0",
        "name": NETWORK,
        "plugins": [{
            "type": "bridge",
            "bridge": BRIDGE,
            "isGateway": true,
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "dataDir": layout.state.join("addresses"),
                "ranges": [[{ "subnet": POD_RANGE }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    })
}

fn kubelet(layout: &Layout, binaries: &Binaries, pki: &Pki) -> Result<Part> {
    let needs = binaries.needs();
    let folder = layout.state.join("kubelet");
    let config = folder.join("config.json");
    // The machine's own may name a server that pods cannot reach.
    tool::write_atomically(&folder.join("resolv.conf"), format!("nameserver {DNS_ADDRESS}\n"))?;
    tool::write_atomically(&config, serde_json::to_string_pretty(&kubelet_config(layout, pki, needs))?)?;
    let mut args = vec![
        format!("--config={}", config.display()),
        format!("--kubeconfig={}", kubeconfig_of(pki, REAL_NODE)?.display()),
        format!("--hostname-override={REAL_NODE}"),
        format!("--node-labels={}", node_labels("real", zone_of(0))),
        format!("--root-dir={}", folder.display()),
        format!("--cert-dir={}", folder.join("pki").display()),
    ];
    if needs.runtime_by_flags {
        args.extend([
            "--container-runtime=remote".to_owned(),
            format!("--container-runtime-endpoint={}", runtime_endpoint(layout)),
            format!("--pod-infra-container-image={SANDBOX_IMAGE}"),
        ]);
    }
    Ok(Part {
        name: "kubelet".to_owned(),
        program: binaries.program("kubelet"),
        args,
        env: BTreeMap::new(),
        tmp: None,
        ports: vec![KUBELET_PORT, KUBELET_HEALTH_PORT],
    })
}

fn runtime_endpoint(layout: &Layout) -> String {
    format!("unix://{}", layout.containerd_socket().display())
}

fn kubelet_config(layout: &Layout, pki: &Pki, needs: Needs) -> Value {
    let folder = layout.state.join("kubelet");
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": KUBELET_PORT,
        "readOnlyPort": 0,
        "healthzPort": KUBELET_HEALTH_PORT,
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": pki.authority() },
        },
        "authorization": { "mode": "Webhook" },
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{CGROUP}"),
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        // A full disk of a developer's machine must not evict pods; images are never collected.
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_ADDRESS],
        "resolvConf": folder.join("resolv.conf"),
        "volumePluginDir": folder.join("volume-plugins"),
        "makeIPTablesUtilChains": false,
        "serializeImagePulls": false,
        // A new node then becomes Ready at its second look, not after ten seconds.
        "nodeStatusUpdateFrequency": "2s",
        "nodeStatusReportFrequency": "5m",
    });
    if let Some(fields) = config.as_object_mut() {
        if !needs.runtime_by_flags {
            fields.insert("containerRuntimeEndpoint".to_owned(), json!(runtime_endpoint(layout)));
        }
        if needs.pod_logs_dir {
            fields.insert("podLogsDir".to_owned(), json!(layout.state.join("pod-logs")));
        }
        if needs.cgroup_v1_allowed {
            fields.insert("failCgroupV1".to_owned(), json!(false));
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::version::{Version, needs};

    #[track_caller]
    fn check_config(version: &str, expected: &[&str]) {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout {
            cache: folder.path().join("cache"),
            state: folder.path().to_path_buf(),
            run: folder.path().join("run"),
        };
        let pki = Pki::open(&layout).expect("made");
        let config = kubelet_config(&layout, &pki, needs(Version::parse(version).expect("a version")));
        let told: Vec<_> = ["containerRuntimeEndpoint", "podLogsDir", "failCgroupV1"]
            .into_iter()
            .filter(|field| config.get(field).is_some())
            .collect();
        assert_eq!(told, expected, "{version}");
    }

    #[test]
    fn a_kubelet_is_not_told_fields_it_does_not_know() {
        check_config("v1.20.2", &[]);
        check_config("v1.27.0", &["containerRuntimeEndpoint"]);
        check_config("v1.30.0", &["containerRuntimeEndpoint", "podLogsDir"]);
        check_config("v1.35.0", &["containerRuntimeEndpoint", "podLogsDir", "failCgroupV1"]);
    }
}
