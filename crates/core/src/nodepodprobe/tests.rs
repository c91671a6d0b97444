use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    effect::{Effect, Patch},
    object::ObjectKey,
    podprobemarker::Marker,
};

fn pod(name: &str, change: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "labels": {"app": "web"}},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "ports": [{"name": "web", "containerPort": 8080}, {"containerPort": 9}]}],
            "initContainers": [{"name": "nat", "restartPolicy": "Always", "ports": [{"name": "admin", "containerPort": 99}]}],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Initialized", "status": "True"}]},
    });
    json_patch::merge(&mut pod, &change);
    pod
}

fn exec(name: &str) -> Value {
    json!({"name": name, "containerName": "main", "podConditionType": format!("x.io/{name}"),
        "probe": {"exec": {"command": ["true"]}, "periodSeconds": 1}})
}

fn marker(name: &str, app: &str, probes: Value) -> Marker {
    let marker = json!({"metadata": {"name": name, "namespace": "ns"},
        "spec": {"selector": {"matchLabels": {"app": app}}, "probes": probes}});
    Marker::new(ObjectKey::new("ns", name), false, Some(Arc::new(serde_json::from_value(marker).unwrap())))
}

fn leaving(name: &str) -> Marker {
    Marker::new(ObjectKey::new("ns", name), true, None)
}

fn node(change: Value) -> Value {
    let mut node = json!({"metadata": {"name": "n1", "uid": "node"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    json_patch::merge(&mut node, &change);
    node
}

/// Entries are written `pod: probe probe`.
fn object(entries: &[&str]) -> Value {
    let entry = |text: &&str| {
        let (name, probes) = text.split_once(':').unwrap();
        let probes: Vec<Value> = probes
            .split_whitespace()
            .map(|name| {
                json!({"name": name, "containerName": "main",
                "probe": {"exec": {"command": ["true"]}, "periodSeconds": 1}})
            })
            .collect();
        json!({"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "IP": "10.0.0.1", "probes": probes})
    };
    json!({"metadata": {"name": "n1", "uid": "o1", "resourceVersion": "5"},
        "spec": {"podProbes": entries.iter().map(entry).collect::<Vec<_>>()}})
}

fn seen(object: Option<Value>, pods: &[Value], markers: Vec<Marker>) -> Observed {
    Observed {
        name: "n1".into(),
        node: Some(Arc::new(serde_json::from_value(node(json!({}))).unwrap())),
        object: object.map(|object| Arc::new(serde_json::from_value(object).unwrap())),
        pods: pods.iter().map(|pod| Arc::new(serde_json::from_value(pod.clone()).unwrap())).collect(),
        markers,
        liveness: false,
    }
}

/// What a plan does, in words: a list as in [`object`], with addresses that are not the usual one.
fn told(plan: &Plan) -> String {
    let entry = |entry: &Value| {
        let probes = entry["probes"].as_array().unwrap().iter();
        let probes: Vec<&str> = probes.map(|probe| probe["name"].as_str().unwrap()).collect();
        let ip = entry["IP"].as_str().unwrap();
        let ip = if ip == "10.0.0.1" { String::new() } else { format!("@{ip}") };
        format!("{}{ip}: {}", entry["name"].as_str().unwrap(), probes.join(" "))
    };
    let effect = |effect: &Effect| match effect {
        Effect::Patch { subresource: None, patch: Patch::Merge(patch), target } => {
            assert_eq!(target.resource_version.as_deref(), Some("5"), "the list is replaced as a whole");
            let entries: Vec<String> =
                patch["spec"]["podProbes"].as_array().unwrap().iter().map(entry).collect();
            format!("list [{}]", entries.join(", "))
        }
        Effect::Patch { target, subresource: Some("status"), patch: Patch::Strategic(patch) } => {
            format!("mark {} {patch}", target.key.name)
        }
        Effect::Create { object, .. } => format!("create {}", object["metadata"]["name"]),
        Effect::Delete { target, .. } => format!("delete {}", target.key),
        other => panic!("{other:?}"),
    };
    plan.effects.iter().map(effect).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(seen: &Observed, expected: &str) {
    assert_eq!(told(&plan(seen)), expected);
}

/// DAEMON-1: one for each ready node that has a daemon.
#[test]
fn the_object_comes_and_goes_with_its_node() {
    let with = |node: Option<Value>, object: Option<Value>| {
        let node = node.map(|node| Arc::new(serde_json::from_value(node).unwrap()));
        told(&plan(&Observed { node, ..seen(object, &[], Vec::new()) }))
    };
    let empty = || Some(object(&[]));
    let is_virtual = || Some(node(json!({"metadata": {"labels": {"type": "virtual-kubelet"}}})));
    assert_eq!(with(Some(node(json!({}))), None), "create \"n1\"");
    assert_eq!(with(Some(node(json!({}))), empty()), "");
    assert_eq!(with(Some(node(json!({"status": {"conditions": []}}))), None), "", "it is not ready");
    assert_eq!(with(Some(node(json!({"status": {"conditions": []}}))), empty()), "", "and keeps what it has");
    assert_eq!(with(is_virtual(), None), "");
    assert_eq!(with(is_virtual(), empty()), "delete n1");
    assert_eq!(with(None, empty()), "delete n1");
    let going = node(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(with(Some(going), empty()), "delete n1");
    assert_eq!(with(None, None), "");
}

/// DAEMON-2 and DAEMON-20: pods get the probes of their markers.
#[test]
fn pods_that_can_be_asked_are_listed_with_the_probes_of_all_their_markers() {
    let markers = || {
        vec![
            marker("a", "web", json!([exec("one"), exec("two")])),
            marker("b", "web", json!([exec("ok")])),
            marker("c", "db", json!([exec("ok")])),
        ]
    };
    let pods = [
        pod("p2", json!({})),
        pod("p1", json!({})),
        pod("young", json!({"status": {"conditions": []}})),
        pod("done", json!({"status": {"phase": "Failed"}})),
        pod("other", json!({"metadata": {"labels": {"app": "x"}}})),
    ];
    check(&seen(Some(object(&[])), &pods, markers()), "list [p1: a#one a#two b#ok, p2: a#one a#two b#ok]");
    let listed = object(&["p2: b#ok a#two a#one", "p1: a#one a#two b#ok"]);
    check(&seen(Some(listed), &pods, markers()), "");
}

/// DAEMON-15: only the probes of the marker that goes, and PPM-D3: not those of one whose name ends like it.
#[test]
fn probes_of_a_marker_that_goes_leave_and_those_of_others_stay() {
    let pods = [pod("p", json!({}))];
    let listed = || Some(object(&["p: b#ok a-b#ok"]));
    let other = || marker("a-b", "web", json!([exec("ok")]));
    check(&seen(listed(), &pods, vec![other(), leaving("b")]), "list [p: a-b#ok]");
    check(&seen(listed(), &pods, vec![other()]), "list [p: a-b#ok]");
    check(&seen(Some(object(&["p: b#ok"])), &pods, vec![leaving("b")]), "list []");
}

/// DAEMON-14, DAEMON-16, DAEMON-17 (PPM-D2): what is not wanted any more is not asked any more.
#[test]
fn probes_end_with_their_pods_their_labels_and_their_lines_in_the_marker() {
    let marker = || vec![marker("m", "web", json!([exec("ok")]))];
    let listed = || Some(object(&["p: m#ok m#old"]));
    check(&seen(listed(), &[pod("p", json!({}))], marker()), "list [p: m#ok]");
    check(&seen(listed(), &[], marker()), "list []");
    check(&seen(listed(), &[pod("p", json!({"metadata": {"labels": {"app": "x"}}}))], marker()), "list []");
    check(&seen(listed(), &[pod("p", json!({"status": {"phase": "Succeeded"}}))], marker()), "list []");
    let namesake = pod("p", json!({"metadata": {"uid": "new"}}));
    let seen = seen(listed(), &[namesake], marker());
    let Plan { effects, .. } = plan(&seen);
    let [Effect::Patch { patch: Patch::Merge(patch), .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(patch["spec"]["podProbes"][0]["uid"], "new");
}

/// PPM-D4: the address follows the pod.
#[test]
fn a_new_address_of_a_pod_is_told() {
    let moved = pod("p", json!({"status": {"podIP": "10.0.0.9"}}));
    let markers = vec![marker("m", "web", json!([exec("ok")]))];
    check(&seen(Some(object(&["p: m#ok"])), &[moved], markers), "list [p@10.0.0.9: m#ok]");
}

#[test]
fn a_pod_that_the_kubelet_sets_up_anew_stays_listed() {
    let again = pod("p", json!({"status": {"conditions": [{"type": "Initialized", "status": "False"}]}}));
    let markers = vec![marker("m", "web", json!([exec("ok")]))];
    check(&seen(Some(object(&["p: m#ok"])), &[again], markers), "");
}

#[test]
fn probes_of_a_marker_that_cannot_be_read_stay_as_they_are() {
    let broken = Marker::new(ObjectKey::new("ns", "m"), false, None);
    check(&seen(Some(object(&["p: m#ok gone#ok"])), &[pod("p", json!({}))], vec![broken]), "list [p: m#ok]");
}

/// DAEMON-9: the manager's half, names of ports.
#[test]
fn names_of_ports_become_numbers() {
    let http = |port: Value| json!({"httpGet": {"path": "/", "port": port}});
    let probe = |name: &str, container: &str, probe: Value| json!({"name": name, "containerName": container, "podConditionType": format!("x.io/{name}"), "probe": probe});
    let probes = json!([
        probe("named", "main", http(json!("web"))),
        probe("number", "main", http(json!(81))),
        probe("text", "main", http(json!("82"))),
        probe("sidecar", "nat", json!({"tcpSocket": {"port": "admin"}})),
        probe("unknown", "main", http(json!("nope"))),
        probe("lost", "nobody", http(json!("web"))),
    ]);
    let seen = seen(Some(object(&[])), &[pod("p", json!({}))], vec![marker("m", "web", probes)]);
    let Plan { effects, .. } = plan(&seen);
    let [Effect::Patch { patch: Patch::Merge(patch), .. }] = &effects[..] else { panic!("{effects:?}") };
    let ports: Vec<String> = patch["spec"]["podProbes"][0]["probes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|probe| {
            let way = probe["probe"].get("httpGet").unwrap_or(&probe["probe"]["tcpSocket"]);
            format!("{}={}", probe["name"].as_str().unwrap(), way["port"])
        })
        .collect();
    assert_eq!(ports, ["m#named=8080", "m#number=81", "m#text=82", "m#sidecar=99"]);
}

fn found(mut object: Value, states: Value) -> Value {
    object["status"] = json!({"podProbeStatuses": [{"name": "p", "namespace": "ns", "uid": "uid-p", "probeStates": states}]});
    object
}

/// DAEMON-2, DAEMON-11 and DAEMON-13: what a node found goes to the pods, each probe by itself.
#[test]
fn results_are_written_to_the_pods() {
    let states = json!([
        {"name": "m#one", "state": "Succeeded", "message": "up", "lastProbeTime": "2026-01-01T00:00:02Z",
            "lastTransitionTime": "2026-01-01T00:00:01Z"},
        {"name": "m#two", "state": "Failed", "message": "Container(main) is Non-running"},
        {"name": "m#gone", "state": "Failed"},
        {"name": "stranger#one", "state": "Failed"},
        {"name": "p-main", "state": "Failed"},
    ]);
    let object = found(object(&["p: m#one m#two"]), states);
    let markers = || vec![marker("m", "web", json!([exec("one"), exec("two")]))];
    check(
        &seen(Some(object.clone()), &[pod("p", json!({}))], markers()),
        r#"mark p {"status":{"conditions":[{"lastProbeTime":"2026-01-01T00:00:02Z","lastTransitionTime":"2026-01-01T00:00:01Z","message":"up","status":"True","type":"x.io/one"},{"message":"Container(main) is Non-running","status":"False","type":"x.io/two"}]}}"#,
    );
    let told = pod(
        "p",
        json!({"status": {"conditions": [
            {"type": "Initialized", "status": "True"},
            {"type": "x.io/one", "status": "True", "message": "up"},
            {"type": "x.io/two", "status": "False", "message": "Container(main) is Non-running"},
        ]}}),
    );
    check(&seen(Some(object.clone()), &[told], markers()), "");
    let namesake = pod("p", json!({"metadata": {"uid": "new"}}));
    assert!(!super::tests::told(&plan(&seen(Some(object), &[namesake], markers()))).contains("mark"));
}

/// DAEMON-15 and DAEMON-16: what is written stays on the pod when nobody asks any more.
#[test]
fn marks_stay_when_the_marker_or_the_label_goes() {
    let object = found(object(&["p: m#one"]), json!([{"name": "m#one", "state": "Failed"}]));
    check(&seen(Some(object.clone()), &[pod("p", json!({}))], vec![leaving("m")]), "list []");
    let other = pod("p", json!({"metadata": {"labels": {"app": "x"}}}));
    check(&seen(Some(object), &[other], vec![marker("m", "web", json!([exec("one")]))]), "list []");
}

/// EL-1: probes that were taken from the kubelet are listed too, and EL-5: switched off they are not.
#[test]
fn liveness_probes_of_pods_that_gave_them_away_are_listed() {
    let context =
        r#"[{"name":"main","livenessProbe":{"httpGet":{"path":"/","port":"web"},"failureThreshold":5}}]"#;
    let given = |switch: &str| {
        pod(
            "p",
            json!({"metadata": {"annotations": {"apps.kruise.io/using-enhanced-liveness": switch,
            "apps.kruise.io/container-probe-context": context}}}),
        )
    };
    let on =
        |pod: Value, object: Value| Observed { liveness: true, ..seen(Some(object), &[pod], Vec::new()) };
    let Plan { effects, .. } = plan(&on(given("true"), object(&[])));
    let [Effect::Patch { patch: Patch::Merge(patch), .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(
        patch["spec"]["podProbes"][0]["probes"],
        json!([{"name": "p-main", "containerName": "main", "probe": {"httpGet": {"path": "/", "port": 8080},
            "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 5}}])
    );
    check(&on(given("false"), object(&["p: p-main"])), "list []");
    check(&seen(Some(object(&["p: p-main"])), &[given("true")], Vec::new()), "list []");
}

/// The annotation can be written by whoever may change a pod. One probe that is refused would keep the whole list from being
/// written, also for the pods of others.
#[test]
fn probes_that_lead_away_from_their_pod_are_not_listed() {
    let context = r#"[{"name":"main","livenessProbe":{"httpGet":{"path":"/","port":80,"host":"x"}}},{"name":"main","livenessProbe":{"tcpSocket":{"port":80,"host":"x"}}}]"#;
    let annotations = json!({"apps.kruise.io/using-enhanced-liveness": "true",
        "apps.kruise.io/container-probe-context": context});
    let pods = [pod("p", json!({"metadata": {"annotations": annotations}})), pod("q", json!({}))];
    let markers = vec![marker(
        "m",
        "web",
        json!([exec("ok"), {"name": "far", "containerName": "main",
        "probe": {"tcpSocket": {"port": 80, "host": "x"}}, "podConditionType": "x.io/far"}]),
    )];
    let seen = Observed { liveness: true, ..seen(Some(object(&[])), &pods, markers) };
    check(&seen, "list [p: m#ok, q: m#ok]");
}

/// The kubelet writes the address, and so can whoever may write the status of pods. Our own rules refuse what is none, for
/// the whole list.
#[test]
fn a_pod_without_a_possible_address_is_left_out_and_others_are_listed() {
    let at = |ip: &str| pod("odd", json!({"status": {"podIP": ip}}));
    for ip in ["::::", "host", "127.0.0.1", "0.0.0.0", "::1", "224.0.0.1"] {
        let markers = vec![marker("m", "web", json!([exec("ok")]))];
        let seen = seen(Some(object(&["odd: m#ok"])), &[at(ip), pod("p", json!({}))], markers);
        check(&seen, "list [p: m#ok]");
        let notices = plan(&seen).notices;
        assert_eq!(notices.len(), 1);
        assert_eq!(notices[0].regarding.key, ObjectKey::new("ns", "odd"));
        let message = format!("status.podIP {ip:?} is not an address of a pod, so nobody probes it");
        assert_eq!(notices[0].message, message);
    }
    let unasked = seen(Some(object(&[])), &[at("::::")], Vec::new());
    assert_eq!(plan(&unasked), Plan::default(), "nobody wants to probe it");
}

#[test]
fn the_markers_of_a_list_are_found_by_their_whole_names() {
    let object = serde_json::from_value(object(&["p: b#ok a-b#ok p-main"])).unwrap();
    assert_eq!(listed_markers(&object).collect::<Vec<_>>(), ["ns/b", "ns/a-b"]);
}

/// A converged world stays as it is, whatever the order of what is seen.
#[test]
fn the_order_in_which_pods_are_seen_changes_nothing() {
    let pods = [pod("p1", json!({})), pod("p2", json!({})), pod("p3", json!({}))];
    let turned: Vec<Value> = pods.iter().rev().cloned().collect();
    let markers = || vec![marker("a", "web", json!([exec("x")])), marker("b", "web", json!([exec("y")]))];
    let first = plan(&seen(Some(object(&["p2: b#y"])), &pods, markers()));
    assert_eq!(first, plan(&seen(Some(object(&["p2: b#y"])), &turned, markers())));
    assert_eq!(told(&first), "list [p2: b#y a#x, p1: a#x b#y, p3: a#x b#y]");
}
