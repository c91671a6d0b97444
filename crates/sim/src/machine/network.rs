//! Names that commands in containers look up: services of the cluster, and whatever is elsewhere.

use std::net::IpAddr;

use kruise_apiserver::store::Store;
use serde_json::Value;

use super::shell::Network;
use crate::json::{list, text};

/// An address of nobody (TEST-NET-3): nothing leaves the cluster.
const ELSEWHERE: &str = "203.0.113.1";

/// The names as a pod of this namespace sees them.
pub(super) struct Names<'a> {
    pub(super) store: &'a Store,
    pub(super) namespace: &'a str,
}

/// What a name means.
enum Meaning {
    /// A service: its namespace and its name, and perhaps one of its pods.
    Service(String, String, Option<String>),
    /// Something that has this address.
    Address(String),
}

impl Names<'_> {
    fn meaning(&self, host: &str) -> Option<Meaning> {
        let host = host.trim_end_matches('.');
        if host.is_empty() || host.parse::<IpAddr>().is_ok() {
            return (!host.is_empty()).then(|| Meaning::Address(host.to_owned()));
        }
        if host == "localhost" {
            return Some(Meaning::Address("127.0.0.1".to_owned()));
        }
        let inner = host.strip_suffix(".cluster.local").unwrap_or(host);
        let inner = inner.strip_suffix(".svc").unwrap_or(inner);
        let is_ours = inner.len() < host.len();
        let service = |namespace: &str, name: &str, pod: Option<&str>| {
            Meaning::Service(namespace.to_owned(), name.to_owned(), pod.map(str::to_owned))
        };
        Some(match inner.split('.').collect::<Vec<&str>>().as_slice() {
            [name] => service(self.namespace, name, None),
            [name, namespace] if is_ours || self.store.get("/namespaces", "", namespace).is_some() => {
                service(namespace, name, None)
            }
            // A pod of a service in this namespace, as stateful sets name them.
            [pod, name] if self.store.get("/services", self.namespace, name).is_some() => {
                service(self.namespace, name, Some(pod))
            }
            [pod, name, namespace] if is_ours || self.store.get("/namespaces", "", namespace).is_some() => {
                service(namespace, name, Some(pod))
            }
            _ => Meaning::Address(ELSEWHERE.to_owned()),
        })
    }

    /// The addresses of the pods of a service that are ready; with a name, of this one.
    fn ready(&self, namespace: &str, name: &str, pod: Option<&str>) -> Vec<String> {
        let Some(record) = self.store.get("/endpoints", namespace, name) else { return Vec::new() };
        let endpoints = record.value();
        let subsets = list(&endpoints, "/subsets").iter();
        let addresses = subsets.flat_map(|subset| list(subset, "/addresses"));
        let is_meant = |address: &&Value| {
            pod.is_none_or(|pod| text(address, "/hostname") == pod || text(address, "/targetRef/name") == pod)
        };
        addresses.filter(is_meant).map(|address| text(address, "/ip").to_owned()).collect()
    }
}

impl Network for Names<'_> {
    fn address(&self, host: &str) -> Option<String> {
        match self.meaning(host)? {
            Meaning::Address(address) => Some(address),
            Meaning::Service(namespace, name, pod) => {
                let service = self.store.get("/services", &namespace, &name)?.value();
                let own = text(&service, "/spec/clusterIP");
                if pod.is_none() && !matches!(own, "" | "None") {
                    return Some(own.to_owned());
                }
                if text(&service, "/spec/type") == "ExternalName" {
                    return Some(ELSEWHERE.to_owned());
                }
                self.ready(&namespace, &name, pod.as_deref()).into_iter().next()
            }
        }
    }

    fn answers(&self, host: &str) -> bool {
        match self.meaning(host) {
            None => false,
            Some(Meaning::Address(_)) => true,
            Some(Meaning::Service(namespace, name, pod)) => {
                (namespace == "default" && name == "kubernetes")
                    || !self.ready(&namespace, &name, pod.as_deref()).is_empty()
            }
        }
    }
}
