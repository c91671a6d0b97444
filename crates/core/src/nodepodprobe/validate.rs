//! What a NodePodProbe must look like. Only the manager writes it; whoever else could would ask anything that a node can
//! reach, in the name of the node. So nothing in it may lead away from the pod.

use std::net::IpAddr;

use kruise_api::{json, kubernetes::validation::Violation};
use serde_json::Value;

use crate::{
    admission::{
        kinds::{Change, Context},
        rules::Violations,
    },
    object::ObjectKey,
    podprobemarker::validate::host,
};

/// What leads away from the pods that it names. Entries that are stored like that already do not keep others from being
/// written: the daemon asks only addresses that the runtime knows of the pod.
pub fn rule(change: &Change<'_>, context: &Context<'_>, found: &mut Violations) {
    let stored = change.old.map(|old| list(old, &["spec", "podProbes"])).unwrap_or_default();
    let entries = list(change.new, &["spec", "podProbes"]).iter().enumerate();
    for (index, entry) in entries.filter(|(_, entry)| !stored.contains(entry)) {
        let path = format!("spec.podProbes[{index}]");
        address(found, entry, &path, context);
        for (index, probe) in list(entry, &["probes"]).iter().enumerate() {
            for way in ["httpGet", "tcpSocket"] {
                if let Some(given) = json::at(probe, &["probe", way]) {
                    host(found, given, &format!("{path}.probes[{index}].probe.{way}"));
                }
            }
        }
    }
}

/// The address that a pod says it has, if it can be one. Whoever writes the status of a pod can write anything.
pub(super) fn address_of_pod(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    (!address.is_loopback() && !address.is_unspecified() && !address.is_multicast()).then_some(address)
}

/// The address is that of the pod, where the pod is known. The daemon compares it with what the runtime says as well.
fn address(found: &mut Violations, entry: &Value, path: &str, context: &Context<'_>) {
    let text = |member: &str| json::text(entry, &[member]).unwrap_or_default();
    let given = text("IP");
    if given.is_empty() {
        return;
    }
    let path = format!("{path}.IP");
    let Some(address) = address_of_pod(given) else {
        let detail = match given.parse::<IpAddr>() {
            Ok(_) => "must be the address of the pod",
            Err(_) => "must be a valid IP address",
        };
        found.push(Violation::invalid(path, given, detail));
        return;
    };
    let pod = context.cluster.pod(&ObjectKey::new(text("namespace"), text("name")));
    let pod = pod.filter(|pod| pod.metadata.uid == *text("uid") && !pod.status.pod_ip.is_empty());
    if let Some(pod) = pod.filter(|pod| pod.status.pod_ip.parse() != Ok(address)) {
        let detail = format!("must be the address of the pod, {}", pod.status.pod_ip);
        found.push(Violation::invalid(path, given, detail));
    }
}

fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    json::at(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kruise_api::gates::Gates;
    use serde_json::json;

    use super::*;
    use crate::{
        admission::{
            Answer, Kind, Request,
            kinds::{Cluster, validate},
        },
        pod::Pod,
    };

    struct World;

    impl Cluster for World {
        fn pod(&self, key: &ObjectKey) -> Option<Arc<Pod>> {
            let pod = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u1"}, "status": {"podIP": "10.0.0.7"}});
            (key.to_string() == "ns/a").then(|| Arc::new(serde_json::from_value(pod).unwrap()))
        }
    }

    #[track_caller]
    fn check(ip: &str, uid: &str, question: Value, expected: &str) {
        let object = json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "NodePodProbe", "metadata": {"name": "n1"},
            "spec": {"podProbes": [{"name": "a", "namespace": "ns", "uid": uid, "IP": ip, "probes": [
                {"name": "m#p", "containerName": "main", "probe": question},
            ]}]},
        });
        let kind = Kind {
            group: "apps.kruise.io".to_owned(),
            version: "v1alpha1".to_owned(),
            kind: "NodePodProbe".to_owned(),
        };
        let request = Request { kind, object, ..Request::default() };
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let gates = Gates::default();
        let context = Context { gates: &gates, allow_privileged: true, now, seed: 7, cluster: &World };
        let said = match validate(&request, &context) {
            Answer::Allowed { .. } => String::new(),
            Answer::Denied { message, .. } | Answer::Held { message, .. } => message,
        };
        assert_eq!(said, expected);
    }

    /// Another pod must not lose its probes because of what is stored.
    #[test]
    fn an_entry_that_is_stored_already_keeps_nobody_from_writing_others() {
        let entry = |name: &str, ip: &str| json!({"name": name, "namespace": "ns", "uid": name, "IP": ip, "probes": []});
        let object = |entries: Value| {
            json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "NodePodProbe", "metadata": {"name": "n1"},
                "spec": {"podProbes": entries}})
        };
        let request = |ip: &str| Request {
            kind: Kind {
                group: "apps.kruise.io".to_owned(),
                version: "v1alpha1".to_owned(),
                kind: "NodePodProbe".to_owned(),
            },
            operation: crate::admission::Operation::Update,
            old_object: object(json!([entry("odd", "::::")])),
            object: object(json!([entry("odd", "::::"), entry("new", ip)])),
            ..Request::default()
        };
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let gates = Gates::default();
        let context = Context { gates: &gates, allow_privileged: true, now, seed: 7, cluster: &World };
        assert_eq!(validate(&request("10.0.0.9"), &context), Answer::allowed());
        assert!(matches!(validate(&request("::::"), &context), Answer::Denied { code: 422, .. }));
    }

    #[test]
    fn probes_go_to_the_address_of_their_pod_and_nowhere_else() {
        let tcp = || json!({"tcpSocket": {"port": 80}});
        check("10.0.0.7", "u1", tcp(), "");
        check("", "u1", tcp(), "");
        check("10.0.0.8", "other", tcp(), "");
        check(
            "10.0.0.8",
            "u1",
            tcp(),
            "spec.podProbes[0].IP: Invalid value: \"10.0.0.8\": must be the address of the pod, 10.0.0.7",
        );
        check(
            "example.com",
            "u1",
            tcp(),
            "spec.podProbes[0].IP: Invalid value: \"example.com\": must be a valid IP address",
        );
        check(
            "127.0.0.1",
            "other",
            tcp(),
            "spec.podProbes[0].IP: Invalid value: \"127.0.0.1\": must be the address of the pod",
        );
        for way in ["httpGet", "tcpSocket"] {
            check(
                "10.0.0.7",
                "u1",
                json!({way: {"port": 80, "host": "169.254.169.254"}}),
                &format!(
                    "spec.podProbes[0].probes[0].probe.{way}.host: Invalid value: \"169.254.169.254\": host field in \
                     probes is not allowed"
                ),
            );
        }
    }
}
