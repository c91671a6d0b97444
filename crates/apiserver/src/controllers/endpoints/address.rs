//! A pod as services see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::object::{condition, items, number, text, time};
use super::super::pods::Pod;

/// The address of a pod, and what services say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) namespace: Box<str>,
    pub(super) name: Arc<str>,
    pub(super) uid: Arc<str>,
    pub(super) ip: Box<str>,
    pub(super) node: Box<str>,
    pub(super) hostname: Box<str>,
    pub(super) subdomain: Box<str>,
    pub(super) ready: bool,
    pub(super) leaving: bool,
    /// When it became ready, or ceased to be.
    pub(super) changed: Option<Timestamp>,
    /// Numbers of ports by name and protocol.
    pub(super) ports: BTreeMap<(Box<str>, Box<str>), i64>,
}

impl Address {
    pub(super) fn of(pod: &Pod) -> Self {
        let object = pod.record.value();
        let mut ports = BTreeMap::new();
        let sidecars = items(&object, "/spec/initContainers")
            .iter()
            .filter(|container| text(container, "/restartPolicy") == "Always");
        for container in items(&object, "/spec/containers").iter().chain(sidecars) {
            for port in items(container, "/ports").iter().filter(|port| !text(port, "/name").is_empty()) {
                let key = (text(port, "/name").into(), text(port, "/protocol").into());
                ports.entry(key).or_insert_with(|| number(port, "/containerPort").unwrap_or(0));
            }
        }
        Self {
            namespace: pod.record.namespace.as_ref().into(),
            name: pod.record.name.clone(),
            uid: pod.record.uid.clone(),
            ip: text(&object, "/status/podIP").into(),
            node: pod.node.clone(),
            hostname: text(&object, "/spec/hostname").into(),
            subdomain: text(&object, "/spec/subdomain").into(),
            ready: pod.is_ready(),
            leaving: pod.record.deleting,
            changed: condition(&object, "Ready").and_then(|ready| time(ready, "/lastTransitionTime")),
            ports,
        }
    }

    /// The pod, as references name it.
    pub(super) fn target(&self) -> Value {
        json!({"kind": "Pod", "namespace": self.namespace, "name": &*self.name, "uid": &*self.uid})
    }

    /// The name under which a service publishes the pod, if it does.
    pub(super) fn hostname_for(&self, service: &Value) -> Option<&str> {
        let named = !self.hostname.is_empty() && &*self.subdomain == text(service, "/metadata/name");
        named.then_some(&*self.hostname)
    }

    /// The number of a service's port on this pod.
    fn port(&self, port: &Value) -> Option<i64> {
        match port.get("targetPort") {
            Some(Value::String(name)) => {
                self.ports.get(&(name.as_str().into(), text(port, "/protocol").into())).copied()
            }
            Some(Value::Number(number)) => number.as_i64(),
            _ => number(port, "/port"),
        }
    }

    /// The service's ports that this pod has, each with its number here.
    pub(super) fn ports_of<'s>(&self, service: &'s Value) -> Vec<(&'s Value, i64)> {
        items(service, "/spec/ports").iter().filter_map(|port| Some((port, self.port(port)?))).collect()
    }
}

/// Addresses for tests: `name=ip` with `!` when it is not ready and `-` when it leaves.
#[cfg(test)]
pub(super) fn parse(text: &str) -> Vec<std::sync::Arc<Address>> {
    let one = |word: &str| {
        let (name, rest) = word.split_once('=').unwrap();
        std::sync::Arc::new(Address {
            namespace: "ns".into(),
            name: name.into(),
            uid: format!("uid-{name}").into(),
            ip: rest.trim_end_matches(['!', '-']).into(),
            node: "n1".into(),
            ready: !rest.contains('!'),
            leaving: rest.contains('-'),
            ports: [(("http".into(), "TCP".into()), 8080)].into(),
            ..Address::default()
        })
    };
    text.split_whitespace().map(one).collect()
}
