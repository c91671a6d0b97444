//! Addresses and node ports that a client chooses itself must be in their ranges, and free.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::{
    ADDRESSES, FIRST_ADDRESS, FIRST_NODE_PORT, NODE_PORTS, needs_node_ports, node_port, ports, text,
};
use crate::field;
use crate::server::ApiServer;

const NETWORK: &str = "the provided network does not match the current range";

/// What is wrong with the choice; the first mistake only, since each is found by trying. What the old service already
/// has is its own.
pub(in crate::rest) fn mistake(
    server: &ApiServer,
    service: &Value,
    old: Option<&Value>,
) -> Option<field::Error> {
    let spec = service.get("spec")?.as_object()?;
    let nothing = Map::new();
    let old = old.and_then(|old| old.get("spec")?.as_object()).unwrap_or(&nothing);
    let same = |key: &str| spec.get(key) == old.get(key);
    if text(spec, "type") == "ExternalName" || (same("clusterIP") && same("ports") && same("type")) {
        return None;
    }
    let part = |key: &str| service.pointer(&format!("/metadata/{key}")).and_then(Value::as_str);
    let own = (part("namespace").unwrap_or_default(), part("name").unwrap_or_default());
    let (_, services) = server.store().list("/services", None);
    let others = services.iter().filter(|record| (&*record.namespace, &*record.name) != own);
    let others: Vec<Value> = others.map(|record| record.value()).collect();
    let others: Vec<&Map<String, Value>> =
        others.iter().filter_map(|other| other.get("spec")?.as_object()).collect();
    let address = text(spec, "clusterIP");
    if !same("clusterIP") && !matches!(address, "" | "None") {
        let taken = || others.iter().any(|other| text(other, "clusterIP") == address);
        if let Some(mistake) = address_mistake(address, taken) {
            return Some(mistake);
        }
    }
    let kind = text(spec, "type");
    if !needs_node_ports(spec) && kind != "LoadBalancer" {
        return None;
    }
    let taken: BTreeSet<i64> = others.iter().flat_map(|other| ports(other)).filter_map(node_port).collect();
    let known: BTreeSet<i64> = ports(old).filter_map(node_port).collect();
    // Ports of one number and several protocols share a node port.
    let mut given: BTreeMap<i64, Option<&Value>> = BTreeMap::new();
    for (index, port) in ports(spec).enumerate() {
        let Some(number) = node_port(port).filter(|number| !known.contains(number)) else { continue };
        let shared = given.insert(number, port.get("port")).is_none_or(|before| before == port.get("port"));
        let inside =
            u64::try_from(number).is_ok_and(|n| (FIRST_NODE_PORT..FIRST_NODE_PORT + NODE_PORTS).contains(&n));
        let why = match (inside, taken.contains(&number) || !shared) {
            (false, _) => "provided port is not in the valid range. The range of valid ports is 30000-32767",
            (true, true) => "provided port is already allocated",
            (true, false) => continue,
        };
        return Some(field::Error::invalid(format!("spec.ports[{index}].nodePort"), number, why));
    }
    None
}

fn address_mistake(address: &str, taken: impl Fn() -> bool) -> Option<field::Error> {
    let why = match address.parse::<IpAddr>().ok()? {
        IpAddr::V6(_) => {
            let why = "IPv6 is not configured on this cluster";
            return Some(field::Error::invalid("spec.clusterIPs[0]", json!([address]), why));
        }
        // The first and the last address of a network belong to nobody.
        IpAddr::V4(ip) => match u64::from(u32::from(ip)).checked_sub(u64::from(FIRST_ADDRESS)) {
            Some(at) if at == 0 || at + 1 >= ADDRESSES => NETWORK,
            Some(_) if taken() => "provided IP is already allocated",
            Some(_) => return None,
            None => NETWORK,
        },
    };
    let why = format!("failed to allocate IP {address}: {why}");
    Some(field::Error::invalid("spec.clusterIPs", json!([address]), why))
}
