//! Services get addresses and ports that nobody else has.

use std::collections::BTreeSet;

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
        return;
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
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        node_ports(server, spec, &others);
    }
}

fn node_ports(server: &ApiServer, spec: &mut Map<String, Value>, others: &[Value]) {
    let mut taken: BTreeSet<u64> = others
        .iter()
        .filter_map(|other| other.pointer("/spec/ports")?.as_array())
        .flatten()
        .filter_map(|port| port.get("nodePort")?.as_u64())
        .collect();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(port) = port.as_object_mut() else { continue };
        if port.get("nodePort").and_then(Value::as_u64).is_none_or(|number| number == 0) {
            let number = draw(
                server,
                |server| FIRST_NODE_PORT + server.random(|random| random.below(NODE_PORTS)),
                |number| !taken.contains(number),
            );
            taken.insert(number);
            port.insert("nodePort".to_owned(), json!(number));
        }
    }
}

/// A PUT that leaves out what was allocated keeps it.
pub(in crate::rest) fn keep(service: &mut Value, old: &Value) {
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
    if !matches!(text(spec, "type"), "NodePort" | "LoadBalancer") {
        return;
    }
    let before = old.pointer("/spec/ports").and_then(Value::as_array);
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(port) = port.as_object_mut() else { continue };
        if port.get("nodePort").and_then(Value::as_u64).is_some_and(|number| number != 0) {
            continue;
        }
        let same = before.into_iter().flatten().find(|known| {
            known.get("port") == port.get("port") && known.get("protocol") == port.get("protocol")
        });
        if let Some(number) = same.and_then(|known| known.get("nodePort")) {
            port.insert("nodePort".to_owned(), number.clone());
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
