//! Addresses and node ports that a client chooses itself must be in their ranges, and free.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::{
    ADDRESSES, FIRST_ADDRESS, FIRST_NODE_PORT, NODE_PORTS, may_have_node_ports, node_port, ports, text,
};
use crate::field;
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::Status;

const NETWORK: &str = "the provided network does not match the current range";

/// Refuses a choice that cannot be had; the first mistake only, since each is found by trying. What the old service
/// already has is its own. A new service has nothing yet, not even if there is one of its name.
pub(in crate::rest) fn check(
    server: &ApiServer,
    resource: &Resource,
    service: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if resource.table.as_ref() != "/services" {
        return Ok(());
    }
    let spec_of = |service: &Value| service.get("spec").and_then(Value::as_object).cloned();
    let (Some(spec), before) = (spec_of(service), old.and_then(spec_of)) else { return Ok(()) };
    let before = before.unwrap_or_default();
    let same = |key: &str| spec.get(key) == before.get(key);
    if text(&spec, "type") == "ExternalName" || (same("clusterIP") && same("ports") && same("type")) {
        return Ok(());
    }
    let part =
        |key: &str| service.pointer(&format!("/metadata/{key}")).and_then(Value::as_str).unwrap_or_default();
    let own = old.is_some().then(|| (part("namespace"), part("name")));
    let (_, services) = server.store().list("/services", None);
    let others = services.iter().filter(|record| Some((&*record.namespace, &*record.name)) != own);
    let others: Vec<Map<String, Value>> = others.filter_map(|record| spec_of(&record.value())).collect();
    let invalid = |error| Status::invalid(resource.group_kind(), part("name"), vec![error]);
    let address = text(&spec, "clusterIP");
    // A service that has an address may not change it, as the rules of the kind say.
    let gets_address = old.is_none() || text(&before, "type") == "ExternalName";
    if gets_address && !matches!(address, "" | "None") {
        let taken = || others.iter().any(|other| text(other, "clusterIP") == address);
        if let Some(mistake) = address_mistake(address, taken) {
            return Err(invalid(mistake));
        }
    }
    if !may_have_node_ports(&spec) {
        return Ok(());
    }
    let mut pool = Pool { taken: others.iter().flat_map(ports).filter_map(node_port).collect() };
    match old {
        None => pool.give_all(&spec).map_err(invalid),
        Some(_) => {
            pool.give_new(&spec, &before).map_err(invalid)?;
            twice(&spec).map_or(Ok(()), |why| Err(Status::failure(500, "", why)))
        }
    }
}

/// The node ports that are taken.
struct Pool {
    taken: BTreeSet<i64>,
}

impl Pool {
    /// Ports of one number and several protocols share a node port.
    fn give_all(&mut self, spec: &Map<String, Value>) -> Result<(), field::Error> {
        let mut first: BTreeMap<Option<i64>, i64> = BTreeMap::new();
        for (index, port) in ports(spec).enumerate() {
            let Some(number) = node_port(port) else { continue };
            let known = first.entry(port.get("port").and_then(Value::as_i64));
            let shared = matches!(&known, Entry::Occupied(known) if *known.get() == number);
            if !shared {
                self.give(index, number)?;
            }
            known.or_insert(number);
        }
        Ok(())
    }

    /// What the service had, and what it was just given, need not be free.
    fn give_new(&mut self, spec: &Map<String, Value>, old: &Map<String, Value>) -> Result<(), field::Error> {
        let mut own: BTreeSet<i64> = ports(old).filter_map(node_port).collect();
        for (index, port) in ports(spec).enumerate() {
            if let Some(number) = node_port(port).filter(|number| own.insert(*number)) {
                self.give(index, number)?;
            }
        }
        Ok(())
    }

    fn give(&mut self, index: usize, number: i64) -> Result<(), field::Error> {
        let inside =
            u64::try_from(number).is_ok_and(|n| (FIRST_NODE_PORT..FIRST_NODE_PORT + NODE_PORTS).contains(&n));
        let why = match inside {
            false => "provided port is not in the valid range. The range of valid ports is 30000-32767",
            true if !self.taken.insert(number) => "provided port is already allocated",
            true => return Ok(()),
        };
        Err(field::Error::invalid(format!("spec.ports[{index}].nodePort"), number, why))
    }
}

/// A node port that two ports of one protocol want. The real server notices it without calling it invalid.
fn twice(spec: &Map<String, Value>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut wanted = ports(spec).filter_map(|port| {
        Some((port.get("protocol").and_then(Value::as_str).unwrap_or_default(), node_port(port)?))
    });
    let (protocol, number) = wanted.find(|wanted| !seen.insert(*wanted))?;
    Some(format!("duplicate nodePort: {{{protocol} {number}}}"))
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
