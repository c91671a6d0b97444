//! Services get addresses and ports that nobody else has.

pub(in crate::rest) mod chosen;
mod retype;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::server::ApiServer;

/// The services' network, 10.96.0.0/12: its first address and its size.
const FIRST_ADDRESS: u32 = 0x0a60_0000;
const ADDRESSES: u64 = 1 << 20;
/// The lowest part is for people who choose addresses themselves.
const RESERVED: u64 = 256;
const FIRST_NODE_PORT: u64 = 30_000;
const NODE_PORTS: u64 = 2_768;

/// Fills in what a new (or newly typed) service lacks.
pub(in crate::rest) fn allocate(server: &ApiServer, service: &mut Value) {
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or("ClusterIP").to_owned();
    if kind == "ExternalName" {
        spec.remove("internalTrafficPolicy");
        return;
    }
    let first = spec.get("clusterIPs").and_then(|list| list.get(0)).cloned();
    if let Some(first) = first.filter(|_| text(spec, "clusterIP").is_empty()) {
        spec.insert("clusterIP".to_owned(), first);
    }
    let (_, services) = server.store().list("/services", None);
    let others: Vec<Value> = services.iter().map(|record| record.value()).collect();
    if text(spec, "clusterIP").is_empty() {
        let taken: BTreeSet<&str> =
            others.iter().filter_map(|other| other.pointer("/spec/clusterIP")?.as_str()).collect();
        let address = draw(
            server,
            |server| {
                let at = RESERVED + server.random(|random| random.below(ADDRESSES - RESERVED));
                let address = FIRST_ADDRESS + u32::try_from(at).unwrap_or(0);
                std::net::Ipv4Addr::from(address).to_string()
            },
            |address| !taken.contains(address.as_str()),
        );
        spec.insert("clusterIP".to_owned(), json!(address));
    }
    let address = text(spec, "clusterIP").to_owned();
    spec.entry("clusterIPs").or_insert_with(|| json!([address]));
    if address != "None" || spec.contains_key("selector") {
        spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
        spec.entry("ipFamilyPolicy").or_insert_with(|| json!("SingleStack"));
    }
    if needs_node_ports(spec) {
        allocate_node_ports(server, spec, &others);
    }
}

/// Whether the server gives the service node ports. A load balancer may do without.
fn needs_node_ports(spec: &Map<String, Value>) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false)),
        _ => false,
    }
}

fn ports(spec: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    spec.get("ports").and_then(Value::as_array).into_iter().flatten()
}

/// The node port of a port, if it has one.
fn node_port(port: &Value) -> Option<i64> {
    port.get("nodePort")?.as_i64().filter(|number| *number != 0)
}

/// Ports of one number, such as those of DNS, share their node port.
fn allocate_node_ports(server: &ApiServer, spec: &mut Map<String, Value>, others: &[Value]) {
    let others = others.iter().filter_map(|other| other.get("spec")?.as_object());
    let mut taken: BTreeSet<i64> = others.flat_map(ports).chain(ports(spec)).filter_map(node_port).collect();
    let number = |port: &Value| port.get("port").and_then(Value::as_i64);
    let mut given: BTreeMap<Option<i64>, i64> = BTreeMap::new();
    for port in ports(spec) {
        if let Some(known) = node_port(port) {
            given.entry(number(port)).or_insert(known);
        }
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if node_port(port).is_some() {
            continue;
        }
        let chosen = *given.entry(number(port)).or_insert_with(|| {
            let next =
                |server: &ApiServer| FIRST_NODE_PORT + server.random(|random| random.below(NODE_PORTS));
            draw(server, |server| i64::try_from(next(server)).unwrap_or(0), |number| !taken.contains(number))
        });
        taken.insert(chosen);
        if let Some(port) = port.as_object_mut() {
            port.insert("nodePort".to_owned(), json!(chosen));
        }
    }
}

/// A PUT that leaves out what was allocated keeps it; what belonged to another type goes.
pub(in crate::rest) fn keep(service: &mut Value, old: &Value) {
    retype::drop_what_went_with_the_type(service, old);
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if text(spec, "type") == "ExternalName" {
        return;
    }
    for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let missing = spec.get(key).is_none_or(|value| value.is_null() || value.as_str() == Some(""));
        if missing && let Some(value) = old.get("spec").and_then(|spec| spec.get(key)) {
            spec.insert(key.to_owned(), value.clone());
        }
    }
    if !needs_node_ports(spec) {
        return;
    }
    let before = old.pointer("/spec/ports").and_then(Value::as_array);
    // What the client moved to another port is not kept at the old one.
    let used: BTreeSet<i64> = ports(spec).filter_map(node_port).collect();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if node_port(port).is_some() {
            continue;
        }
        let same = before.into_iter().flatten().find(|known| {
            known.get("port") == port.get("port") && known.get("protocol") == port.get("protocol")
        });
        let number = same.and_then(node_port).filter(|number| !used.contains(number));
        if let Some((port, number)) = port.as_object_mut().zip(number) {
            port.insert("nodePort".to_owned(), json!(number));
        }
    }
}

fn text<'m>(spec: &'m Map<String, Value>, key: &str) -> &'m str {
    spec.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Draws until something free turns up; the spaces are far bigger than any cluster here.
fn draw<T>(server: &ApiServer, next: impl Fn(&ApiServer) -> T, free: impl Fn(&T) -> bool) -> T {
    let mut drawn = next(server);
    for _ in 0..10_000 {
        if free(&drawn) {
            break;
        }
        drawn = next(server);
    }
    drawn
}
