//! The subsets of an Endpoints object: addresses that have the same ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::object::{items, text};
use super::Address;

/// Most addresses that an Endpoints object has.
const MOST: usize = 1000;

/// Ports, and the addresses that have them, by address and uid.
type Set<'a> = (Vec<Value>, BTreeMap<(&'a str, &'a str), &'a Arc<Address>>);

/// The subsets, and whether some addresses had to be left out.
pub(super) fn of(service: &Value, addresses: &[Arc<Address>], lenient: bool) -> (Vec<Value>, bool) {
    let portless = items(service, "/spec/ports").is_empty();
    let headless = matches!(text(service, "/spec/clusterIP"), "" | "None");
    // By ports; then by address, those that are ready before the others.
    let mut sets: BTreeMap<String, Set<'_>> = BTreeMap::new();
    let shown = addresses.iter().filter(|address| lenient || !address.leaving);
    for address in shown {
        let ports: Vec<Value> =
            address.ports_of(service).into_iter().map(|(port, number)| endpoint_port(port, number)).collect();
        if ports.is_empty() && !(portless && headless) {
            continue;
        }
        let key = Value::Array(ports.clone()).to_string();
        let set = sets.entry(key).or_insert_with(|| (ports, BTreeMap::new()));
        set.1.insert((&address.ip, &address.uid), address);
    }
    let total: usize = sets.values().map(|set| set.1.len()).sum();
    let mut left = MOST;
    let mut subsets = Vec::new();
    for (mut ports, set) in sets.into_values() {
        let ready = |address: &Address| lenient || address.ready;
        let (good, bad): (Vec<_>, Vec<_>) = set.into_values().partition(|address| ready(address));
        let good: Vec<Value> = good.into_iter().take(left).map(|address| entry(service, address)).collect();
        left -= good.len();
        let bad: Vec<Value> = bad.into_iter().take(left).map(|address| entry(service, address)).collect();
        left -= bad.len();
        ports.sort_by_key(Value::to_string);
        let mut subset = serde_json::Map::new();
        for (key, list) in [("addresses", good), ("notReadyAddresses", bad), ("ports", ports)] {
            if !list.is_empty() {
                subset.insert(key.to_owned(), Value::Array(list));
            }
        }
        subsets.push(Value::Object(subset));
    }
    (subsets, total > MOST)
}

fn endpoint_port(port: &Value, number: i64) -> Value {
    let mut entry = json!({"port": number, "protocol": text(port, "/protocol")});
    for key in ["name", "appProtocol"] {
        let value = text(port, &format!("/{key}"));
        if let Some(map) = entry.as_object_mut().filter(|_| !value.is_empty()) {
            map.insert(key.to_owned(), json!(value));
        }
    }
    entry
}

fn entry(service: &Value, address: &Address) -> Value {
    let mut entry = json!({"ip": address.ip, "targetRef": address.target()});
    if let Some(map) = entry.as_object_mut() {
        if !address.node.is_empty() {
            map.insert("nodeName".to_owned(), json!(address.node));
        }
        if let Some(name) = address.hostname_for(service) {
            map.insert("hostname".to_owned(), json!(name));
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::super::address::parse;
    use super::*;

    fn service(ports: Value) -> Value {
        json!({"metadata": {"name": "web"}, "spec": {"clusterIP": "10.96.0.9", "ports": ports}})
    }

    #[track_caller]
    fn check(ports: Value, lenient: bool, addresses: &str, expected: &str) {
        let (subsets, truncated) = of(&service(ports), &parse(addresses), lenient);
        assert!(!truncated);
        let ips = |subset: &Value, key: &str| -> String {
            let ips: Vec<&str> = items(subset, key).iter().map(|address| text(address, "/ip")).collect();
            ips.join(",")
        };
        let shown: Vec<String> = subsets
            .iter()
            .map(|subset| {
                let ports: Vec<String> = items(subset, "/ports")
                    .iter()
                    .map(|port| port.get("port").unwrap().to_string())
                    .collect();
                format!(
                    "{}!{}:{}",
                    ips(subset, "/addresses"),
                    ips(subset, "/notReadyAddresses"),
                    ports.join(",")
                )
            })
            .collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn addresses_are_sorted_and_split_by_readiness() {
        let http = || json!([{"port": 80, "protocol": "TCP", "targetPort": 8000}]);
        check(
            http(),
            false,
            "b=10.0.0.2 a=10.0.0.1 c=10.0.0.3! d=10.0.0.4-",
            "10.0.0.1,10.0.0.2!10.0.0.3:8000",
        );
        check(http(), true, "c=10.0.0.3! d=10.0.0.4-", "10.0.0.3,10.0.0.4!:8000");
        check(http(), false, "", "");
    }

    #[test]
    fn named_ports_are_found_on_the_pod_and_others_are_left_out() {
        let named = |name: &str| json!([{"port": 80, "protocol": "TCP", "targetPort": name}]);
        check(named("http"), false, "a=10.0.0.1", "10.0.0.1!:8080");
        check(named("grpc"), false, "a=10.0.0.1", "");
    }

    #[test]
    fn more_than_a_thousand_addresses_are_cut() {
        let many: String = (0..1001).map(|n| format!("p{n}=10.0.{}.{} ", n / 200, n % 200)).collect();
        let (subsets, truncated) =
            of(&service(json!([{"port": 80, "protocol": "TCP"}])), &parse(&many), false);
        assert!(truncated);
        assert_eq!(items(&subsets[0], "/addresses").len(), 1000);
    }
}
