//! What a node should list.

use std::collections::BTreeMap;

use kruise_api::{
    int_or_percent::IntOrString,
    nodepodprobe::v1alpha1::{ContainerProbe, PodProbe},
    probe::Probe,
};

use super::validate::address_of_pod;
use crate::{
    enhanced_liveness,
    object::ObjectKey,
    pod::{Container, Pod},
    podprobemarker::{Marker, Standing, full_name, is_probed, parts},
};

/// Whether the address of a pod can be listed. One that cannot be would be refused together with the pods of all others.
pub(super) fn has_usable_address(pod: &Pod) -> bool {
    let text = pod.status.pod_ip.as_str();
    text.is_empty() || address_of_pod(text).is_some()
}

/// The list that a node should have, in the order that it has: entries that are there keep their place.
pub(super) fn list(present: &[PodProbe], pods: &[&Pod], markers: &[Marker], liveness: bool) -> Vec<PodProbe> {
    let mut living: BTreeMap<(&str, &str), &Pod> = pods
        .iter()
        .filter(|pod| pod.is_active() && has_usable_address(pod))
        .map(|pod| ((pod.metadata.namespace.as_str(), pod.metadata.name.as_str()), *pod))
        .collect();
    let mut listed = Vec::new();
    for entry in present {
        let key = (entry.namespace.as_str(), entry.name.as_str());
        let Some(pod) = living.get(&key).copied().filter(|pod| *pod.metadata.uid == entry.uid) else {
            continue;
        };
        living.remove(&key);
        // A pod that was asked once goes on being asked while the kubelet sets it up anew.
        let wanted = probes(pod, markers, liveness);
        listed.extend(merged(entry, pod, wanted, markers));
    }
    let new = living.into_values().filter(|pod| is_probed(pod)).filter_map(|pod| {
        let probes = probes(pod, markers, liveness);
        (!probes.is_empty()).then(|| entry(pod, probes))
    });
    listed.extend(new);
    listed
}

/// What is asked of a pod, in the order of the markers and of their probes.
pub(super) fn probes(pod: &Pod, markers: &[Marker], liveness: bool) -> Vec<ContainerProbe> {
    let mut found: Vec<ContainerProbe> = Vec::new();
    for marker in markers.iter().filter(|marker| marker.chooses(pod)) {
        found.extend(marker.probes().iter().filter_map(|probe| {
            Some(ContainerProbe {
                name: full_name(&marker.key.name, &probe.name),
                container_name: probe.container_name.clone(),
                probe: resolved(&probe.probe, pod, &probe.container_name)?,
            })
        }));
    }
    if liveness {
        found.extend(enhanced_liveness::probes(pod).into_iter().filter_map(|probe| {
            Some(ContainerProbe { probe: resolved(&probe.probe, pod, &probe.container_name)?, ..probe })
        }));
    }
    found
}

/// A probe with numbers for the names of ports. Nothing where the container has no port of that name, and nothing for a
/// probe that leads away from the pod: it would be refused together with the probes of all other pods of the node.
fn resolved(probe: &Probe, pod: &Pod, container: &str) -> Option<Probe> {
    let hosts =
        [probe.http_get.as_ref().map(|get| &get.host), probe.tcp_socket.as_ref().map(|tcp| &tcp.host)];
    if hosts.into_iter().flatten().flatten().any(|host| !host.is_empty()) {
        return None;
    }
    let mut probe = probe.clone();
    let http = probe.http_get.as_mut().map(|http| &mut http.port);
    let tcp = probe.tcp_socket.as_mut().map(|tcp| &mut tcp.port);
    for port in [http, tcp].into_iter().flatten() {
        let IntOrString::String(name) = port else { continue };
        let number = name.parse().ok().or_else(|| named_port(pod, container, name))?;
        *port = IntOrString::Int(number);
    }
    Some(probe)
}

fn named_port(pod: &Pod, container: &str, name: &str) -> Option<i64> {
    let sidecars = pod.spec.init_containers.iter().filter(|container| container.restart_policy == "Always");
    let found: &Container =
        pod.spec.containers.iter().chain(sidecars).find(|present| present.name == *container)?;
    let port = found.ports.iter().find(|port| port.name == *name)?;
    Some(port.container_port.into())
}

/// An entry with what is wanted now. Nothing where nothing is left.
fn merged(
    present: &PodProbe,
    pod: &Pod,
    mut wanted: Vec<ContainerProbe>,
    markers: &[Marker],
) -> Option<PodProbe> {
    let mut kept = Vec::new();
    for probe in &present.probes {
        match wanted.iter().position(|one| one.name == probe.name) {
            Some(index) => kept.push(wanted.remove(index)),
            None if is_unreadable(&present.namespace, &probe.name, markers) => kept.push(probe.clone()),
            None => {}
        }
    }
    kept.extend(wanted);
    (!kept.is_empty()).then(|| entry(pod, kept))
}

/// Whether a probe belongs to a marker whose wishes cannot be read.
fn is_unreadable(namespace: &str, probe: &str, markers: &[Marker]) -> bool {
    let Some((marker, _)) = parts(probe) else { return false };
    let key = ObjectKey::new(namespace, marker);
    markers.iter().any(|one| one.key == key && matches!(one.standing, Standing::Unreadable))
}

fn entry(pod: &Pod, probes: Vec<ContainerProbe>) -> PodProbe {
    PodProbe {
        name: pod.metadata.name.to_string(),
        namespace: pod.metadata.namespace.to_string(),
        uid: pod.metadata.uid.to_string(),
        ip: pod.status.pod_ip.to_string(),
        probes,
    }
}
