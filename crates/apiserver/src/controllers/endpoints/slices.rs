//! EndpointSlices: endpoints stay in the slice they are in, new ones fill what has room, and slices hold a hundred.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::object::{items, text};
use super::{Address, Wanted};

/// Most endpoints of one slice.
const MOST: usize = 100;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    Create(Value),
    Update(Value),
    Delete(String),
}

/// What has to change so that the slices show what is wanted. Labels that differ are a change too.
pub(super) fn changes(
    service: &Value,
    wanted: &Wanted<'_>,
    known: &[Value],
    labels: &Map<String, Value>,
) -> Vec<Change> {
    let mut groups = group(service, wanted);
    let mut kept = Vec::new();
    let mut free = Vec::new();
    for slice in known {
        match groups.get_mut(&ports_key(items(slice, "/ports"))) {
            Some(group) => kept.push(keep(slice, group)),
            None => free.push(slice.clone()),
        }
    }
    for (ports, left) in groups.values_mut() {
        let key = ports_key(ports);
        fill(&mut kept, &key, left);
        while !left.is_empty() {
            let some: BTreeMap<String, Value> = std::iter::from_fn(|| left.pop_first()).take(MOST).collect();
            // A slice that nobody needs any more begins anew before another one is made.
            let base = free.pop();
            kept.push(Slice { known: base, ports: ports.clone(), endpoints: some.into_values().collect() });
        }
    }
    let mut empty: Vec<Slice> = Vec::new();
    kept.retain(|slice| {
        let keep = !slice.endpoints.is_empty();
        if !keep {
            empty.push(slice.clone());
        }
        keep
    });
    if kept.is_empty() {
        // A service without endpoints has one slice that says so.
        let base = empty.pop().and_then(|slice| slice.known).or_else(|| free.pop());
        kept.push(Slice { known: base, ports: Vec::new(), endpoints: Vec::new() });
    }
    let unused = empty.into_iter().filter_map(|slice| slice.known).chain(free);
    let deletes = unused.map(|slice| Change::Delete(text(&slice, "/metadata/name").to_owned()));
    kept.into_iter().filter_map(|slice| slice.change(labels)).chain(deletes).collect()
}

/// A slice as it shall be, and as it is.
#[derive(Clone, Debug)]
struct Slice {
    known: Option<Value>,
    ports: Vec<Value>,
    endpoints: Vec<Value>,
}

impl Slice {
    fn change(self, labels: &Map<String, Value>) -> Option<Change> {
        let list = |items: Vec<Value>| if items.is_empty() { Value::Null } else { Value::Array(items) };
        let Some(mut object) = self.known else {
            let slice = json!({
                "metadata": {}, "addressType": "IPv4", "endpoints": list(self.endpoints), "ports": list(self.ports),
            });
            return Some(Change::Create(slice));
        };
        let same = items(&object, "/endpoints") == self.endpoints.as_slice()
            && items(&object, "/ports") == self.ports.as_slice()
            && object.pointer("/metadata/labels").and_then(Value::as_object) == Some(labels);
        if same {
            return None;
        }
        if let Some(map) = object.as_object_mut() {
            map.insert("endpoints".to_owned(), list(self.endpoints));
            map.insert("ports".to_owned(), list(self.ports));
        }
        Some(Change::Update(object))
    }
}

/// Ports and the endpoints that have them, by the name of their pod.
type Group = (Vec<Value>, BTreeMap<String, Value>);

fn group(service: &Value, wanted: &Wanted<'_>) -> BTreeMap<String, Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for address in wanted.addresses {
        let ports: Vec<Value> =
            address.ports_of(service).into_iter().map(|(port, number)| slice_port(port, number)).collect();
        let (_, endpoints) = groups.entry(ports_key(&ports)).or_insert_with(|| (ports, BTreeMap::new()));
        endpoints.insert(address.name.to_string(), endpoint(service, wanted, address));
    }
    groups
}

fn ports_key(ports: &[Value]) -> String {
    let mut texts: Vec<String> = ports.iter().map(Value::to_string).collect();
    texts.sort_unstable();
    texts.join(",")
}

fn slice_port(port: &Value, number: i64) -> Value {
    let mut entry = json!({"name": text(port, "/name"), "port": number, "protocol": text(port, "/protocol")});
    let application = text(port, "/appProtocol");
    if let Some(map) = entry.as_object_mut().filter(|_| !application.is_empty()) {
        map.insert("appProtocol".to_owned(), json!(application));
    }
    entry
}

fn endpoint(service: &Value, wanted: &Wanted<'_>, address: &Address) -> Value {
    let mut entry = json!({
        "addresses": [address.ip],
        "conditions": {
            "ready": wanted.lenient || (address.ready && !address.leaving),
            "serving": address.ready, "terminating": address.leaving,
        },
        "targetRef": address.target(),
    });
    let Some(map) = entry.as_object_mut() else { return entry };
    if !address.node.is_empty() {
        map.insert("nodeName".to_owned(), json!(address.node));
    }
    if let Some(zone) = wanted.zones.get(&*address.node).filter(|zone| !zone.is_empty()) {
        map.insert("zone".to_owned(), json!(zone));
    }
    if let Some(name) = address.hostname_for(service) {
        map.insert("hostname".to_owned(), json!(name));
    }
    entry
}

/// A slice with those of its endpoints that are still wanted, in their new state. They leave the group.
fn keep(slice: &Value, (ports, group): &mut Group) -> Slice {
    let stay = items(slice, "/endpoints").iter();
    let endpoints = stay.filter_map(|endpoint| group.remove(text(endpoint, "/targetRef/name")));
    Slice { known: Some(slice.clone()), endpoints: endpoints.collect(), ports: ports.clone() }
}

/// Puts endpoints where there is room, the fullest slice first.
fn fill(slices: &mut [Slice], key: &str, left: &mut BTreeMap<String, Value>) {
    let mut order: Vec<&mut Slice> =
        slices.iter_mut().filter(|slice| ports_key(&slice.ports) == key).collect();
    order.sort_by_key(|slice| std::cmp::Reverse(slice.endpoints.len()));
    for slice in order {
        while slice.endpoints.len() < MOST
            && let Some((_, endpoint)) = left.pop_first()
        {
            slice.endpoints.push(endpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::parse;
    use super::*;
    use std::sync::Arc;

    fn service(port: i64) -> Value {
        let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "targetPort": port}]);
        json!({"metadata": {"name": "web"}, "spec": {"clusterIP": "10.96.0.9", "ports": ports}})
    }

    /// Applies the changes to slices until there are none; returns how often something changed.
    fn settle(
        service: &Value,
        addresses: &[Arc<Address>],
        known: &mut Vec<Value>,
        made: &mut usize,
    ) -> usize {
        let labels = Map::new();
        let wanted = Wanted { addresses, zones: BTreeMap::new(), lenient: false, triggered: None };
        let all = changes(service, &wanted, known, &labels);
        let count = all.len();
        for change in all {
            match change {
                Change::Create(mut slice) => {
                    *made += 1;
                    slice["metadata"] = json!({"name": format!("s{made}"), "labels": {}});
                    known.push(slice);
                }
                Change::Update(slice) => {
                    let at =
                        known.iter().position(|one| one["metadata"]["name"] == slice["metadata"]["name"]);
                    known[at.unwrap()] = slice;
                }
                Change::Delete(name) => known.retain(|one| one["metadata"]["name"] != name),
            }
        }
        assert_eq!(changes(service, &wanted, known, &labels), [], "the second look changes nothing");
        count
    }

    fn render(known: &[Value]) -> String {
        let one = |slice: &Value| {
            let endpoints: Vec<String> = items(slice, "/endpoints")
                .iter()
                .map(|endpoint| {
                    let conditions = &endpoint["conditions"];
                    let mark = |key: &str, mark: &str| {
                        if conditions[key] == true { mark.to_owned() } else { String::new() }
                    };
                    let marks = [mark("ready", "r"), mark("serving", "s"), mark("terminating", "t")].concat();
                    format!("{}:{marks}", text(endpoint, "/targetRef/name"))
                })
                .collect();
            let port = slice.pointer("/ports/0/port").map(Value::to_string).unwrap_or_default();
            format!("{}[{}]{port}", slice["metadata"]["name"].as_str().unwrap(), endpoints.join(" "))
        };
        known.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn endpoints_stay_where_they_are_and_show_how_pods_are() {
        let (mut known, mut made) = (Vec::new(), 0);
        settle(&service(8080), &[], &mut known, &mut made);
        assert_eq!(render(&known), "s1[]");
        settle(&service(8080), &parse("b=10.0.0.2"), &mut known, &mut made);
        assert_eq!(render(&known), "s1[b:rs]8080", "the empty slice is used");
        settle(&service(8080), &parse("a=10.0.0.1! b=10.0.0.2-"), &mut known, &mut made);
        assert_eq!(render(&known), "s1[b:st a:]8080");
        settle(&service(9090), &parse("a=10.0.0.1"), &mut known, &mut made);
        assert_eq!(render(&known), "s1[a:rs]9090", "another port, the same slice");
        settle(&service(9090), &[], &mut known, &mut made);
        assert_eq!(render(&known), "s1[]");
    }

    #[test]
    fn a_slice_holds_a_hundred() {
        let (mut known, mut made) = (Vec::new(), 0);
        let pods = |numbers: std::ops::Range<usize>| {
            parse(&numbers.map(|n| format!("p{n:03}=10.0.{}.{} ", n / 200, n % 200)).collect::<String>())
        };
        settle(&service(1), &pods(0..250), &mut known, &mut made);
        let sizes = |known: &[Value]| -> Vec<usize> {
            known.iter().map(|one| items(one, "/endpoints").len()).collect()
        };
        assert_eq!(sizes(&known), [100, 100, 50]);
        assert_eq!(
            settle(&service(1), &pods(0..260), &mut known, &mut made),
            1,
            "only the one with room changes"
        );
        assert_eq!(sizes(&known), [100, 100, 60]);
        settle(&service(1), &pods(100..200), &mut known, &mut made);
        assert_eq!(sizes(&known), [100]);
    }
}
