//! What programs on a node see of it and do to it, beside the kubelet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::oneshot;

use super::container::{Container, State};
use super::pod::Pod;
use super::{Key, Kubelets};
use crate::image::normalized;
use crate::json::{list, number, text};
use crate::machine;
use crate::steps::Then;

/// A question of a program on a node. A node that is down drops it unanswered.
#[derive(Debug)]
pub(crate) enum Question {
    /// Which containers are there?
    Containers(oneshot::Sender<Vec<machine::Container>>),
    /// Tell this container to stop; when will it have ended? Nothing for one that has.
    Stop { id: String, grace: Duration, answer: oneshot::Sender<Option<Timestamp>> },
    /// The process of this container ends by itself, with a code.
    Leave { id: String, code: i32, answer: oneshot::Sender<()> },
    /// Which images are there?
    Images(oneshot::Sender<Vec<String>>),
    /// From now on this image is there.
    Keep { image: String, answer: oneshot::Sender<()> },
}

impl Kubelets {
    pub(super) fn answer(&mut self, node: &str, question: Question, dirty: &mut BTreeSet<Key>) {
        let Some(host) = self.hosts.get_mut(node).filter(|host| host.up) else { return };
        match question {
            Question::Containers(answer) => {
                let now = self.clock.now();
                let keys: Vec<Key> = host.pods.iter().cloned().collect();
                let own = keys.iter().filter_map(|key| self.pods.get(key));
                let all = own.flat_map(|pod| self.containers_of(pod, now)).collect();
                let _ = answer.send(all);
            }
            Question::Stop { id, grace, answer } => {
                let images = self.options.images.read().unwrap_or_else(PoisonError::into_inner).clone();
                let now = self.clock.now();
                let mut due = None;
                for key in &host.pods {
                    let Some(pod) = self.pods.get_mut(key) else { continue };
                    if let Some(own) = pod.signal(&id, &images, now, grace) {
                        due = Some(own);
                        dirty.insert(key.clone());
                    }
                }
                let _ = answer.send(due);
            }
            Question::Leave { id, code, answer } => {
                let now = self.clock.now();
                for key in &host.pods {
                    if self.pods.get_mut(key).is_some_and(|pod| pod.leave(&id, code, now)) {
                        dirty.insert(key.clone());
                    }
                }
                let _ = answer.send(());
            }
            Question::Images(answer) => {
                let _ = answer.send(host.pulled.iter().cloned().collect());
            }
            Question::Keep { image, answer } => {
                host.pulled.insert(normalized(&image));
                let _ = answer.send(());
            }
        }
    }

    fn containers_of(&self, pod: &Pod, now: Timestamp) -> Vec<machine::Container> {
        let record = self.store.get(&self.resources.pods.table, &pod.namespace, &pod.name);
        let object = record.map(|record| record.value()).unwrap_or_default();
        let count = pod.containers.len();
        (0..count).filter_map(|at| pod.shown(at, &object, now)).collect()
    }
}

impl Pod {
    /// A container as a program on the node sees it.
    pub(super) fn shown(&self, at: usize, object: &Value, now: Timestamp) -> Option<machine::Container> {
        let (spec, container) = (self.spec.containers.get(at)?, self.containers.get(at)?);
        let (state, restarts) = shown(container)?;
        let definition = definition(object, &spec.name);
        let run = container.run();
        let mounts = definition.map_or(&[][..], |one| list(one, "/volumeMounts"));
        Some(machine::Container {
            id: container.id.trim_start_matches("containerd://").to_owned(),
            namespace: self.namespace.to_string(),
            pod: self.name.to_string(),
            pod_uid: self.uid.to_string(),
            name: spec.name.clone(),
            image: container.image.clone(),
            state,
            restarts,
            created: container.created,
            started: run.map(|run| run.on_node),
            is_ready: run.is_some_and(|run| run.is_ready(now)),
            environment: environment(definition, &container.environment),
            address: Some(self.ip.clone()).filter(|_| !self.spec.host_network),
            ports: definition.and_then(|one| one.get("ports")).cloned().unwrap_or_default(),
            mounts: mounts.iter().map(|mount| text(mount, "/mountPath").to_owned()).collect(),
            pre_stop: definition.and_then(|one| one.pointer("/lifecycle/preStop")).cloned(),
            grace: self.spec.grace,
        })
    }
}

/// What a runtime shows of a container, and how often it was restarted; nothing before it was made.
fn shown(container: &Container) -> Option<(machine::State, u32)> {
    if container.id.is_empty() {
        return None;
    }
    let restarts = container.restarts;
    Some(match &container.state {
        State::Running(_) | State::Stopping { .. } => (machine::State::Running, restarts),
        State::Doing { then: Then::Started, .. } => {
            (machine::State::Created, restarts + u32::from(container.last.is_some()))
        }
        _ => (machine::State::Exited, restarts),
    })
}

fn definition<'a>(pod: &'a Value, container: &str) -> Option<&'a Value> {
    ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"]
        .iter()
        .flat_map(|pointer| list(pod, pointer))
        .find(|one| text(one, "/name") == container)
}

/// Literal values as they stand in the definition, the others as they were at the start.
fn environment(definition: Option<&Value>, taken: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let entries = definition.map_or(&[][..], |one| list(one, "/env"));
    let literal = entries.iter().filter(|entry| entry.get("valueFrom").is_none());
    let literal = literal.map(|entry| (text(entry, "/name").to_owned(), text(entry, "/value").to_owned()));
    literal.chain(taken.clone()).collect()
}

/// The variables of a container whose values are fields of its pod, with the values of now.
pub(super) fn from_metadata(pod: &Value, container: &str) -> BTreeMap<String, String> {
    let entries = definition(pod, container).map_or(&[][..], |one| list(one, "/env"));
    let of = |entry: &Value| {
        let path = text(entry, "/valueFrom/fieldRef/fieldPath");
        let value = match path.split_once("['") {
            Some((member, rest)) => {
                let key = rest.strip_suffix("']")?;
                pod.get("metadata")?.get(member.strip_prefix("metadata.")?).and_then(|map| map.get(key))
            }
            None if path.is_empty() => return None,
            None => pod.pointer(&format!("/{}", path.replace('.', "/"))),
        };
        let value = value.and_then(Value::as_str).unwrap_or_default();
        Some((text(entry, "/name").to_owned(), value.to_owned()))
    };
    entries.iter().filter_map(of).collect()
}

/// The numbers of the ports that a container says it listens on.
pub(crate) fn port_numbers(ports: &Value) -> Vec<u16> {
    let number = |port: &Value| number(port, "/containerPort").and_then(|port| u16::try_from(port).ok());
    ports.as_array().into_iter().flatten().filter_map(number).collect()
}
