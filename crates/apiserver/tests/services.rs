//! Addresses and ports of services: given, kept, chosen by the client, and let go with the type.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use kruise_apiserver::ApiServer;
use kruise_apiserver::client::Local;
use kruise_apiserver::patch::Patch;
use serde_json::{Value, json};

fn local() -> Local {
    ApiServer::builder().seed(1).build().local()
}

/// Creates a service of one port, with changes of its spec.
async fn create(local: &Local, name: &str, spec: Value) -> Result<Value, String> {
    let services = local.resource("", "services").unwrap();
    let mut service = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    json_patch::merge(&mut service["spec"], &spec);
    let made = local.create(&services, "default", service).await;
    made.map(|record| record.value()).map_err(|status| status.message)
}

async fn patch(local: &Local, name: &str, sub: Option<&str>, patch: Value) -> Result<Value, String> {
    let services = local.resource("", "services").unwrap();
    let patch = Patch::Strategic(patch.as_object().unwrap().clone());
    let made = local.patch(&services, "default", name, sub, &patch).await;
    made.map(|record| record.value()).map_err(|status| status.message)
}

#[tokio::test(start_paused = true)]
async fn what_belonged_to_the_old_type_of_a_service_goes_with_it() {
    let local = local();
    create(&local, "web", json!({"type": "LoadBalancer"})).await.unwrap();
    let ingress = json!({"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}});
    patch(&local, "web", Some("status"), ingress).await.unwrap();

    let nodes = patch(&local, "web", None, json!({"spec": {"type": "NodePort"}})).await.unwrap();
    assert!(nodes["spec"]["ports"][0]["nodePort"].is_u64(), "{nodes}");
    assert!(nodes["spec"]["allocateLoadBalancerNodePorts"].is_null(), "{nodes}");
    assert_eq!(nodes["spec"]["externalTrafficPolicy"], "Cluster");
    assert_eq!(nodes["status"]["loadBalancer"], json!({}));

    let inside = patch(&local, "web", None, json!({"spec": {"type": "ClusterIP"}})).await.unwrap();
    assert!(inside["spec"]["ports"][0]["nodePort"].is_null(), "{inside}");
    assert!(inside["spec"]["externalTrafficPolicy"].is_null(), "{inside}");
    assert_eq!(inside["spec"]["clusterIP"], nodes["spec"]["clusterIP"]);

    let name = json!({"spec": {"type": "ExternalName", "externalName": "a.b"}});
    let name = patch(&local, "web", None, name).await.unwrap();
    for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
        assert!(name["spec"][key].is_null(), "{key}: {name}");
    }
    let back = patch(&local, "web", None, json!({"spec": {"type": "ClusterIP"}})).await.unwrap();
    assert!(back["spec"]["clusterIP"].as_str().unwrap().starts_with("10."), "{back}");
}

#[tokio::test(start_paused = true)]
async fn what_the_client_changes_together_with_the_type_is_not_taken_away() {
    let local = local();
    create(&local, "web", json!({"type": "NodePort"})).await.unwrap();
    let ports = json!([{"port": 80, "nodePort": 30999}]);
    let change = json!({"spec": {"type": "ClusterIP", "ports": ports}});
    let refused = patch(&local, "web", None, change).await.unwrap_err();
    assert!(refused.contains("spec.ports[0].nodePort: Forbidden: may not be used when `type`"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn addresses_and_ports_of_ones_own_choice_must_be_valid_and_free() {
    let local = local();
    let node_port =
        |port: u32| json!({"type": "NodePort", "ports": [{"name": "p", "port": 80, "nodePort": port}]});
    create(&local, "a", node_port(30080)).await.unwrap();
    create(&local, "c", json!({"clusterIP": "10.96.0.77"})).await.unwrap();
    let range = "provided port is not in the valid range. The range of valid ports is 30000-32767";
    let address = |address: &str, why: &str| {
        format!("spec.clusterIPs: Invalid value: [\"{address}\"]: failed to allocate IP {address}: {why}")
    };
    let network = "the provided network does not match the current range";
    for (spec, expected) in [
        (
            node_port(30080),
            "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated".to_owned(),
        ),
        (node_port(80), format!("spec.ports[0].nodePort: Invalid value: 80: {range}")),
        (json!({"clusterIP": "10.96.0.77"}), address("10.96.0.77", "provided IP is already allocated")),
        (json!({"clusterIP": "1.2.3.4"}), address("1.2.3.4", network)),
        (json!({"clusterIP": "10.96.0.0"}), address("10.96.0.0", network)),
        (
            json!({"clusterIP": "nonsense"}),
            "spec.clusterIPs[0]: Invalid value: \"nonsense\": must be a valid IP address, (e.g. 10.9.8.7 or \
             2001:db8::ffff)"
                .to_owned(),
        ),
        (
            json!({"type": "NodePort", "ports": [
                {"name": "t", "port": 53, "nodePort": 31111}, {"name": "u", "port": 54, "nodePort": 31111},
            ]}),
            "spec.ports[1].nodePort: Invalid value: 31111: provided port is already allocated".to_owned(),
        ),
    ] {
        let refused = create(&local, "b", spec.clone()).await.unwrap_err();
        assert_eq!(refused, format!("Service \"b\" is invalid: {expected}"), "{spec}");
    }
    let change = json!({"spec": {"ports": [{"name": "p", "port": 80, "nodePort": 8}]}});
    let refused = patch(&local, "a", None, change).await.unwrap_err();
    assert_eq!(
        refused,
        format!("Service \"a\" is invalid: spec.ports[0].nodePort: Invalid value: 8: {range}")
    );
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    patch(&local, "a", None, label).await.unwrap();
    create(&local, "none", json!({"clusterIP": "None"})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ports_of_one_number_share_a_node_port_and_a_balancer_may_do_without() {
    let local = local();
    let ports = json!([{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]);
    let dns = create(&local, "dns", json!({"type": "NodePort", "ports": ports})).await.unwrap();
    assert!(dns["spec"]["ports"][0]["nodePort"].is_u64());
    assert_eq!(dns["spec"]["ports"][0]["nodePort"], dns["spec"]["ports"][1]["nodePort"]);
    let spec = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
    let plain = create(&local, "plain", spec).await.unwrap();
    assert!(plain["spec"]["ports"][0]["nodePort"].is_null(), "{plain}");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_gets_no_more_node_ports_keeps_those_it_has() {
    let local = local();
    let made = create(&local, "web", json!({"type": "LoadBalancer"})).await.unwrap();
    let off = json!({"spec": {"allocateLoadBalancerNodePorts": false}});
    let kept = patch(&local, "web", None, off).await.unwrap();
    assert!(made["spec"]["ports"][0]["nodePort"].is_u64(), "{made}");
    assert_eq!(kept["spec"]["ports"], made["spec"]["ports"]);
}

/// Replaces the ports of a service, and leaves out what the server gave.
async fn replace(local: &Local, name: &str, ports: Value) -> Result<Value, String> {
    let services = local.resource("", "services").unwrap();
    let meta = json!({"name": name, "namespace": "default"});
    let service = json!({"metadata": meta, "spec": {"type": "NodePort", "ports": ports}});
    let made = local.update(&services, None, service).await;
    made.map(|record| record.value()).map_err(|status| format!("{} {}", status.code, status.message))
}

#[tokio::test(start_paused = true)]
async fn a_port_that_keeps_its_name_keeps_its_node_port() {
    let local = local();
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    let made = create(&local, "web", json!({"type": "NodePort", "ports": ports})).await.unwrap();
    let of = |service: &Value, index: usize| service["spec"]["ports"][index]["nodePort"].as_i64().unwrap();
    let ports = json!([{"name": "b", "port": 80}, {"name": "a", "port": 8080}, {"name": "c", "port": 81}]);
    let moved = replace(&local, "web", ports).await.unwrap();
    assert_eq!((of(&moved, 0), of(&moved, 1)), (of(&made, 1), of(&made, 0)));
    assert!(![of(&made, 0), of(&made, 1)].contains(&of(&moved, 2)), "{moved}");
    // What comes later shares nothing.
    let ports = json!([{"name": "b", "port": 80}, {"name": "u", "port": 80, "protocol": "UDP"}]);
    let grown = replace(&local, "web", ports).await.unwrap();
    assert_ne!(of(&grown, 0), of(&grown, 1));
}

#[tokio::test(start_paused = true)]
async fn two_ports_of_a_protocol_do_not_share_a_node_port() {
    let local = local();
    create(&local, "web", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}))
        .await
        .unwrap();
    for number in [30080, 30081] {
        let ports = json!([
            {"name": "a", "port": 80, "nodePort": number}, {"name": "b", "port": 81, "nodePort": number},
        ]);
        let refused = replace(&local, "web", ports).await.unwrap_err();
        assert_eq!(refused, format!("500 duplicate nodePort: {{TCP {number}}}"));
    }
    let ports = json!([
        {"name": "a", "port": 80, "nodePort": 30080},
        {"name": "b", "port": 80, "nodePort": 30080, "protocol": "UDP"},
    ]);
    replace(&local, "web", ports).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_addresses_of_a_service_begin_with_its_address() {
    let local = local();
    let first = "first value must match `clusterIP`";
    let empty = "must be empty when `clusterIP` is not specified";
    for (spec, expected) in [
        (
            json!({"clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.6"]}),
            format!("spec.clusterIPs: Invalid value: [\"10.96.0.6\"]: {first}"),
        ),
        (
            json!({"clusterIPs": ["10.96.0.6"]}),
            format!("spec.clusterIPs: Invalid value: [\"10.96.0.6\"]: {empty}"),
        ),
        (
            json!({"clusterIP": "None", "clusterIPs": ["None", "10.96.0.6"]}),
            "spec.clusterIPs: Invalid value: [\"None\",\"10.96.0.6\"]: 'None' must be the first and only value"
                .to_owned(),
        ),
        (
            json!({"clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.5", "10.96.0.6"]}),
            "spec.clusterIPs: Invalid value: [\"10.96.0.5\",\"10.96.0.6\"]: may specify no more than one IP for each IP \
             family"
                .to_owned(),
        ),
    ] {
        let refused = create(&local, "web", spec.clone()).await.unwrap_err();
        assert_eq!(refused, format!("Service \"web\" is invalid: {expected}"), "{spec}");
    }
    let made = create(&local, "web", json!({"clusterIP": "10.96.0.5"})).await.unwrap();
    assert_eq!(made["spec"]["clusterIPs"], json!(["10.96.0.5"]));
    for (spec, expected) in [
        (
            json!({"clusterIPs": ["10.96.0.6"]}),
            format!("spec.clusterIPs: Invalid value: [\"10.96.0.6\"]: {first}"),
        ),
        (
            json!({"clusterIP": "10.96.0.6"}),
            "spec.clusterIPs[0]: Invalid value: [\"10.96.0.6\"]: may not change once set".to_owned(),
        ),
    ] {
        let refused = patch(&local, "web", None, json!({"spec": spec})).await.unwrap_err();
        assert_eq!(refused, format!("Service \"web\" is invalid: {expected}"), "{spec}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_exists_has_its_choices_even_if_a_new_one_has_its_name() {
    let local = local();
    let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]});
    create(&local, "web", spec.clone()).await.unwrap();
    assert_eq!(
        create(&local, "web", spec).await.unwrap_err(),
        "Service \"web\" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
    );
    create(&local, "own", json!({"clusterIP": "10.96.0.7"})).await.unwrap();
    assert_eq!(
        create(&local, "own", json!({"clusterIP": "10.96.0.7"})).await.unwrap_err(),
        "Service \"own\" is invalid: spec.clusterIPs: Invalid value: [\"10.96.0.7\"]: failed to allocate IP \
         10.96.0.7: provided IP is already allocated"
    );
    let again = create(&local, "own", json!({})).await.unwrap_err();
    assert_eq!(again, "services \"own\" already exists");
}

#[tokio::test(start_paused = true)]
async fn a_service_without_address_and_selector_may_have_either_family() {
    let local = local();
    let bare = create(&local, "bare", json!({"clusterIP": "None"})).await.unwrap();
    assert_eq!(bare["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(bare["spec"]["ipFamilyPolicy"], "RequireDualStack");
    let selects = json!({"clusterIP": "None", "selector": {"a": "b"}});
    let selects = create(&local, "selects", selects).await.unwrap();
    assert_eq!(selects["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(selects["spec"]["ipFamilyPolicy"], "SingleStack");
}
