//! Hollow nodes: real kubelet code on a fake runtime, one process each.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Result, bail};

use super::layout::{FIRST_HOLLOW_PORT, Layout, hollow_name, node_labels, zone_of};
use super::node;
use super::pki::Pki;
use super::process::{self, Part, Started};
use super::progress::Progress;
use super::version::{Binaries, Needs};

/// Starts the hollow nodes that do not run.
pub(crate) fn start(
    layout: &Layout,
    progress: &Progress,
    binaries: &Binaries,
    pki: &Pki,
    count: u16,
) -> Result<Started> {
    if count > 0 && (layout.state.starts_with("/tmp") || binaries.dir.starts_with("/tmp")) {
        bail!(
            "hollow nodes have a /tmp of their own, so neither the binaries ({}) nor the state folder ({}) may be \
             below /tmp: move the binaries, or set XDG_STATE_HOME",
            binaries.dir.display(),
            layout.state.display()
        );
    }
    let mut added = 0;
    for index in 0..count {
        if process::start(layout, &part(layout, binaries, pki, index)?)? == Started::Now {
            added += 1;
        }
    }
    if added == 0 {
        return Ok(Started::Before);
    }
    progress.say(format!("starting {added} hollow nodes"));
    Ok(Started::Now)
}

fn part(layout: &Layout, binaries: &Binaries, pki: &Pki, index: u16) -> Result<Part> {
    let name = hollow_name(index);
    let folder = layout.state.join("hollow").join(&name);
    fs::create_dir_all(&folder)?;
    let kubeconfig = node::kubeconfig_of(pki, &name)?;
    Ok(Part {
        args: args(&name, index, &kubeconfig.display().to_string(), binaries.needs()),
        name,
        program: binaries.program("kubemark"),
        // Even a hollow kubelet writes packet filter rules; without a program for that it only complains.
        env: BTreeMap::from([("PATH", folder.display().to_string())]),
        // It puts its root folder there, and up to 1.20 also the socket of its runtime, by a fixed name: a hollow node
        // that took another one's runtime would end the pods of both.
        tmp: Some(folder),
        ports: vec![FIRST_HOLLOW_PORT + index],
    })
}

fn args(name: &str, index: u16, kubeconfig: &str, needs: Needs) -> Vec<String> {
    let mut args = vec![
        "--morph=kubelet".to_owned(),
        format!("--name={name}"),
        format!("--kubeconfig={kubeconfig}"),
        format!("--kubelet-port={}", FIRST_HOLLOW_PORT + index),
        "--kubelet-read-only-port=0".to_owned(),
        format!("--node-labels={}", node_labels("hollow", zone_of(index))),
    ];
    if needs.fake_images_flag {
        args.push("--use-host-image-service=false".to_owned());
    }
    if needs.hollow_rates {
        // The defaults of a kubelet: nodes that report five times slower would hide what a rollout costs.
        args.extend(["--kube-api-qps=50", "--kube-api-burst=100"].map(ToOwned::to_owned));
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::version::{Version, needs};

    #[test]
    fn hollow_nodes_differ_in_name_port_and_zone() {
        let needs = needs(Version { major: 1, minor: 35, patch: 0 });
        assert_eq!(
            args("hollow-1", 1, "/k", needs),
            [
                "--morph=kubelet",
                "--name=hollow-1",
                "--kubeconfig=/k",
                "--kubelet-port=21601",
                "--kubelet-read-only-port=0",
                "--node-labels=kruise-rs.io/node-type=hollow,topology.kubernetes.io/zone=zone-b",
                "--use-host-image-service=false",
                "--kube-api-qps=50",
                "--kube-api-burst=100",
            ]
        );
    }
}
