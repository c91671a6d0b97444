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

/// Fills in what a new service lacks, or a changed one, which has an old one.
pub(in crate::rest) fn allocate(server: &ApiServer, service: &mut Value, old: Option<&Value>) {
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or("ClusterIP").to_owned();
    if kind == "ExternalName" {
        spec.remove("internalTrafficPolicy");
        return;
    }
    let (_, services) = server.store().list("/services", None);
    let others: Vec<Value> = services.iter().map(|record| record.value()).collect();
    // Addresses without a first one are for the rules of the kind to refuse.
    if text(spec, "clusterIP").is_empty() && !is_listed(spec) {
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
    if !is_listed(spec) {
        spec.insert("clusterIPs".to_owned(), json!([address]));
    }
    let selects = spec.get("selector").and_then(Value::as_object).is_some_and(|labels| !labels.is_empty());
    // Nobody knows what is behind a service without an address and without a selector.
    let (families, policy) = match address == "None" && !selects {
        true => (json!(["IPv4", "IPv6"]), "RequireDualStack"),
        false => (json!(["IPv4"]), "SingleStack"),
    };
    spec.entry("ipFamilies").or_insert(families);
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!(policy));
    if needs_node_ports(spec) {
        allocate_node_ports(server, spec, &others, old.is_none());
    }
}

fn is_listed(spec: &Map<String, Value>) -> bool {
    spec.get("clusterIPs").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

/// Whether the server gives the service node ports. A load balancer may do without.
fn needs_node_ports(spec: &Map<String, Value>) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false)),
        _ => false,
    }
}

/// Whether the type of the service knows node ports, be they given or chosen.
fn may_have_node_ports(spec: &Map<String, Value>) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

fn ports(spec: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    spec.get("ports").and_then(Value::as_array).into_iter().flatten()
}

/// The node port of a port, if it has one.
fn node_port(port: &Value) -> Option<i64> {
    port.get("nodePort")?.as_i64().filter(|number| *number != 0)
}

/// Ports of one number, such as those of DNS, share their node port when they come together: at the creation.
fn allocate_node_ports(server: &ApiServer, spec: &mut Map<String, Value>, others: &[Value], is_new: bool) {
    let others = others.iter().filter_map(|other| other.get("spec")?.as_object());
    let mut taken: BTreeSet<i64> = others.flat_map(ports).chain(ports(spec)).filter_map(node_port).collect();
    let number = |port: &Value| port.get("port").and_then(Value::as_i64).filter(|_| is_new);
    let mut given: BTreeMap<i64, i64> = BTreeMap::new();
    for port in ports(spec) {
        if let (Some(number), Some(known)) = (number(port), node_port(port)) {
            given.entry(number).or_insert(known);
        }
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if node_port(port).is_some() {
            continue;
        }
        let number = number(port);
        let shared = number.and_then(|number| given.get(&number).copied());
        let chosen = shared.unwrap_or_else(|| {
            let next =
                |server: &ApiServer| FIRST_NODE_PORT + server.random(|random| random.below(NODE_PORTS));
            draw(server, |server| i64::try_from(next(server)).unwrap_or(0), |number| !taken.contains(number))
        });
        taken.insert(chosen);
        given.extend(number.map(|number| (number, chosen)));
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
    let Some(old) = old.get("spec").and_then(Value::as_object) else { return };
    // Who changes the first address and leaves the list as it was means both.
    let address = text(spec, "clusterIP");
    if !address.is_empty()
        && address != text(old, "clusterIP")
        && spec.get("clusterIPs") == old.get("clusterIPs")
    {
        let list = json!([address]);
        spec.insert("clusterIPs".to_owned(), list);
    }
    if !needs_node_ports(spec) || !needs_node_ports(old) {
        return;
    }
    // A port is known by its name, whatever else the client changed.
    let known: BTreeMap<&str, i64> =
        ports(old).filter_map(|port| Some((name(port), node_port(port)?))).collect();
    // What the client moved to another port is not kept at the old one.
    let used: BTreeSet<i64> = ports(spec).filter_map(node_port).collect();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if node_port(port).is_some() {
            continue;
        }
        let number = known.get(name(port)).filter(|number| !used.contains(number));
        if let Some((port, number)) = port.as_object_mut().zip(number) {
            port.insert("nodePort".to_owned(), json!(number));
        }
    }
}

fn name(port: &Value) -> &str {
    port.get("name").and_then(Value::as_str).unwrap_or_default()
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
