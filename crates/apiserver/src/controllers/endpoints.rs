//! Endpoints and EndpointSlices: the addresses behind services that select pods.

mod address;
mod slices;
mod subsets;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::object::{annotation, deleting, flag, items, or_gone, text, time};
use super::pods::{Name, Pod};
use super::{Context, Key, Outcome, lock};
use crate::clock::seconds_text;
use crate::registry::Resource;
use crate::status::Status;
use crate::store::{Event, EventKind, Record};
use address::Address;
use slices::Change;

const HEADLESS: &str = "service.kubernetes.io/headless";
const TRIGGERED: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const ENDPOINTS_MANAGED_BY: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";

/// What a service selects by: labels with their values.
type Selector = Vec<(Arc<str>, Arc<str>)>;

/// The services that select pods, so that a pod that nobody selects costs nothing; and what was read from pods that
/// somebody does select.
#[derive(Debug, Default)]
pub(super) struct Services {
    selectors: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Selector>>,
    addresses: BTreeMap<Name, (u64, Arc<Address>)>,
}

impl Services {
    /// Takes in an event about a service.
    pub(super) fn observe(&mut self, event: &Event) {
        let record = &event.new;
        let selector = Some(record.value()).filter(|_| event.kind != EventKind::Deleted);
        let selector = selector.as_ref().and_then(selector_of);
        match selector {
            Some(selector) => {
                let known = self.selectors.entry(record.namespace.clone()).or_default();
                known.insert(record.name.clone(), selector);
            }
            None => {
                if let Some(known) = self.selectors.get_mut(&record.namespace) {
                    known.remove(&record.name);
                    if known.is_empty() {
                        self.selectors.remove(&record.namespace);
                    }
                }
            }
        }
    }

    /// The services that select a pod, as it was or as it is.
    pub(super) fn selecting(&mut self, before: Option<&Pod>, after: Option<&Pod>) -> Vec<Arc<str>> {
        let Some(pod) = after.or(before) else { return Vec::new() };
        let Some(services) = self.selectors.get(&pod.record.namespace) else { return Vec::new() };
        let selects =
            |selector: &Selector, pod: Option<&Pod>| pod.is_some_and(|pod| matches(selector, &pod.record));
        let found: Vec<Arc<str>> = services
            .iter()
            .filter(|(_, selector)| selects(selector, before) || selects(selector, after))
            .map(|(name, _)| name.clone())
            .collect();
        if after.is_none() {
            self.addresses.remove(&(pod.record.namespace.clone(), pod.record.name.clone()));
        }
        found
    }

    /// What a service needs to know of a pod, read once for each change of it.
    fn address(&mut self, pod: &Pod) -> Arc<Address> {
        let record = &pod.record;
        let name: Name = (record.namespace.clone(), record.name.clone());
        if let Some((version, known)) = self.addresses.get(&name)
            && *version == record.rv
        {
            return known.clone();
        }
        let read = Arc::new(Address::of(pod));
        self.addresses.insert(name, (record.rv, read.clone()));
        read
    }
}

/// The selector of a service that has pods; an empty one selects every pod, none selects nothing.
fn selector_of(service: &Value) -> Option<Selector> {
    if text(service, "/spec/type") == "ExternalName" {
        return None;
    }
    let selector = service.pointer("/spec/selector")?.as_object()?;
    let pairs =
        selector.iter().map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()));
    Some(pairs.collect())
}

fn matches(selector: &Selector, record: &Record) -> bool {
    selector.iter().all(|(key, value)| record.label(key) == Some(value))
}

/// Whether a slice is one of ours, by its service.
pub(super) fn service_of(record: &Record) -> Option<&str> {
    record.label(SERVICE_NAME).filter(|_| record.label(MANAGED_BY) == Some(MANAGER))
}

/// Brings the endpoints of one service up to date.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let services = cx.client.resource("", "services")?;
    let endpoints = cx.client.resource("", "endpoints")?;
    let slices = cx.client.resource("discovery.k8s.io", "endpointslices")?;
    let Some(record) = or_gone(cx.client.get(&services, &key.namespace, &key.name))? else {
        // Slices go with their owner; endpoints have none.
        let known = cx.client.server().store().get(&endpoints.table, &key.namespace, &key.name);
        if known.is_some_and(|known| known.label(ENDPOINTS_MANAGED_BY.0).is_some()) {
            or_gone(cx.client.delete(&endpoints, &key.namespace, &key.name, &Default::default()).await)?;
        }
        return Ok(None);
    };
    let service = record.value();
    let Some(selector) = selector_of(&service).filter(|_| !deleting(&service)) else { return Ok(None) };
    let pods = cx.pods().in_namespace(&key.namespace);
    let chosen = pods.iter().filter(|pod| matches(&selector, &pod.record) && !pod.is_finished());
    let addresses: Vec<Arc<Address>> = {
        let mut known = lock(&cx.services);
        chosen.map(|pod| known.address(pod)).filter(|address| !address.ip.is_empty()).collect()
    };
    let wanted = Wanted::of(cx, &service, &addresses);
    write_endpoints(cx, &endpoints, &service, &wanted).await?;
    write_slices(cx, (&services, &slices), &service, &wanted).await?;
    Ok(None)
}

/// What a service publishes.
struct Wanted<'a> {
    addresses: &'a [Arc<Address>],
    /// The zones of the nodes that the addresses are on.
    zones: BTreeMap<&'a str, String>,
    /// Whether pods that are not ready count as ready.
    lenient: bool,
    /// When the last thing happened that matters here.
    triggered: Option<Timestamp>,
}

impl<'a> Wanted<'a> {
    fn of(cx: &Context, service: &Value, addresses: &'a [Arc<Address>]) -> Self {
        let mut zones = BTreeMap::new();
        for address in addresses {
            zones.entry(&*address.node).or_insert_with(|| {
                let node = cx.client.server().store().get("/nodes", "", &address.node);
                node.and_then(|node| node.label("topology.kubernetes.io/zone").map(str::to_owned))
                    .unwrap_or_default()
            });
        }
        let created = time(service, "/metadata/creationTimestamp");
        let readied = addresses.iter().filter_map(|address| address.changed).max();
        Self {
            addresses,
            zones,
            lenient: flag(service, "/spec/publishNotReadyAddresses"),
            triggered: readied.max(created),
        }
    }
}

fn is_headless(service: &Value) -> bool {
    matches!(text(service, "/spec/clusterIP"), "" | "None")
}

/// The labels of a service without those that are ours, and whether it has an address of its own.
fn labels_of(service: &Value) -> Map<String, Value> {
    let mut labels =
        service.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
    labels.remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    labels
}

async fn write_endpoints(
    cx: &Context,
    resource: &Arc<Resource>,
    service: &Value,
    wanted: &Wanted<'_>,
) -> Result<(), Status> {
    let (namespace, name) = (text(service, "/metadata/namespace"), text(service, "/metadata/name"));
    let (subsets, truncated) = subsets::of(service, wanted.addresses, wanted.lenient);
    let mut labels = labels_of(service);
    labels.insert(ENDPOINTS_MANAGED_BY.0.to_owned(), json!(ENDPOINTS_MANAGED_BY.1));
    let known = or_gone(cx.client.get(resource, namespace, name))?.map(|record| record.value());
    if let Some(known) = &known {
        let same = items(known, "/subsets") == subsets.as_slice()
            && known.pointer("/metadata/labels").and_then(Value::as_object) == Some(&labels)
            && annotation(known, OVER_CAPACITY).is_some() == truncated;
        if same {
            return Ok(());
        }
    }
    let is_new = known.is_none();
    let mut object = known.unwrap_or_else(|| json!({"metadata": {"name": name, "namespace": namespace}}));
    if let Some(map) = object.as_object_mut() {
        match subsets.is_empty() {
            true => map.remove("subsets"),
            false => map.insert("subsets".to_owned(), Value::Array(subsets)),
        };
    }
    label(&mut object, labels, wanted.triggered);
    if let Some(marks) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        match truncated {
            true => marks.insert(OVER_CAPACITY.to_owned(), json!("truncated")),
            false => marks.remove(OVER_CAPACITY),
        };
    }
    if is_new {
        cx.client.create(resource, namespace, object).await.map(|_| ()).or_else(forgive)
    } else {
        or_gone(cx.client.update(resource, None, object).await).map(|_| ())
    }
}

/// Sets the labels of an object, and when it last had a reason to change.
fn label(object: &mut Value, labels: Map<String, Value>, triggered: Option<Timestamp>) {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    meta.insert("labels".to_owned(), Value::Object(labels));
    let marks = meta.entry("annotations").or_insert_with(|| json!({}));
    if let (Some(marks), Some(at)) = (marks.as_object_mut(), triggered) {
        marks.insert(TRIGGERED.to_owned(), json!(seconds_text(at)));
    }
}

/// The namespace is going away, or somebody was faster.
fn forgive(status: Status) -> Result<(), Status> {
    if super::object::is_terminating(&status) || status.code == 409 { Ok(()) } else { Err(status) }
}

async fn write_slices(
    cx: &Context,
    (services, resource): (&Arc<Resource>, &Arc<Resource>),
    service: &Value,
    wanted: &Wanted<'_>,
) -> Result<(), Status> {
    let namespace = text(service, "/metadata/namespace");
    let name = text(service, "/metadata/name");
    let owned = cx.graph().controlled(&resource.table, text(service, "/metadata/uid"));
    let store = cx.client.server().store();
    let known: Vec<Value> = owned
        .iter()
        .filter_map(|(table, namespace, name)| store.get(table, namespace, name))
        .filter(|record| !record.deleting && service_of(record) == Some(name))
        .map(|record| record.value())
        .collect();
    let mut labels = labels_of(service);
    labels.insert(SERVICE_NAME.to_owned(), json!(name));
    labels.insert(MANAGED_BY.to_owned(), json!(MANAGER));
    for change in slices::changes(service, wanted, &known, &labels) {
        match change {
            Change::Create(mut slice) => {
                super::object::set(&mut slice, "metadata", "generateName", json!(format!("{name}-")));
                let owner = super::object::controller_reference(services, service);
                super::object::set(&mut slice, "metadata", "ownerReferences", json!([owner]));
                label(&mut slice, labels.clone(), wanted.triggered);
                cx.client.create(resource, namespace, slice).await.map(|_| ()).or_else(forgive)?;
            }
            Change::Update(mut slice) => {
                label(&mut slice, labels.clone(), wanted.triggered);
                or_gone(cx.client.update(resource, None, slice).await)?;
            }
            Change::Delete(name) => {
                or_gone(cx.client.delete(resource, namespace, &name, &Default::default()).await)?;
            }
        }
    }
    Ok(())
}
