//! What sidecars take over from the pod.

use serde_json::{Value, json};

use super::kit::{World, container, find, names, plain_pod, pod, set};

fn env(container: &Value) -> Vec<(String, Value)> {
    let all = container["env"].as_array().unwrap().iter();
    all.map(|one| {
        let value = one.get("value").or(one.get("valueFrom")).cloned().unwrap_or_default();
        (one["name"].as_str().unwrap().to_owned(), value)
    })
    .collect()
}

/// SIDECARSET-1
#[test]
fn a_sidecar_comes_first_with_its_mark_and_its_volumes() {
    let spec = json!({
        "containers": [container("sc", json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "pods", "mountPath": "/p"}]}))],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "unused", "emptyDir": {}}]});
    let pod = World::new([set("s", spec)]).inject(plain_pod()).unwrap();
    assert_eq!(names(&pod["spec"]["containers"]), "sc app");
    assert_eq!(names(&pod["spec"]["volumes"]), "v", "a volume that nobody mounts stays out");
    assert_eq!(env(find(&pod, "sc")), [("IS_INJECTED".to_owned(), json!("true"))]);
    assert_eq!(pod["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"], "s");
    let only_sets =
        ["podInjectPolicy", "upgradeStrategy", "shareVolumePolicy", "transferEnv", "resourcesPolicy"];
    assert!(only_sets.iter().all(|member| find(&pod, "sc").get(*member).is_none()), "{pod}");
}

/// SIDECARSET-8
#[test]
fn shared_mounts_bring_the_variables_of_their_paths() {
    let share = json!({"shareVolumePolicy": {"type": "enabled"}, "volumeMounts": [{"name": "own", "mountPath": "/a"}]});
    let spec =
        json!({"containers": [container("sc", share.clone())], "initContainers": [container("init", share)]});
    let app = json!({"name": "app", "env": [{"name": "POD_NAME", "value": "n"}, {"name": "OTHER", "value": "o"}],
        "volumeMounts": [{"name": "data", "mountPath": "/a"}, {"name": "data", "mountPath": "/b", "subPathExpr": "x/$(POD_NAME)/$(GONE)"}]});
    let second = json!({"name": "app2", "volumeMounts": [{"name": "data", "mountPath": "/b"}, {"name": "data", "mountPath": "/c"}]});
    let injected = json!({"name": "earlier", "env": [{"name": "IS_INJECTED", "value": "true"}],
        "volumeMounts": [{"name": "data", "mountPath": "/secret"}]});
    let pod =
        World::new([set("s", spec)]).inject(pod(json!({"containers": [app, second, injected]}))).unwrap();
    for name in ["sc", "init"] {
        let sidecar = find(&pod, name);
        let mounts: Vec<(&str, &str)> = sidecar["volumeMounts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|mount| (mount["name"].as_str().unwrap(), mount["mountPath"].as_str().unwrap()))
            .collect();
        assert_eq!(mounts, [("own", "/a"), ("data", "/b"), ("data", "/c")], "{name}");
        let expected = [("IS_INJECTED".to_owned(), json!("true")), ("POD_NAME".to_owned(), json!("n"))];
        assert_eq!(env(sidecar), expected, "{name}");
    }
}

/// SIDECARSET-9
#[test]
fn shared_devices_stay_off_paths_that_are_taken() {
    let spec = json!({"containers": [
        container("sc", json!({"shareVolumeDevicePolicy": {"type": "enabled"}})),
        container("taken", json!({"shareVolumeDevicePolicy": {"type": "enabled"},
            "volumeMounts": [{"name": "own", "mountPath": "/dev/xvda"}]})),
        container("none", json!({})),
    ]});
    let app = json!({"name": "app", "volumeDevices": [{"name": "d", "devicePath": "/dev/xvda"}]});
    let pod = World::new([set("s", spec)]).inject(pod(json!({"containers": [app]}))).unwrap();
    assert_eq!(find(&pod, "sc")["volumeDevices"], json!([{"name": "d", "devicePath": "/dev/xvda"}]));
    assert_eq!(find(&pod, "taken").get("volumeDevices"), None);
    assert_eq!(find(&pod, "none").get("volumeDevices"), None);
}

/// A mount that an app has must not come where the sidecar has a device.
#[test]
fn shared_mounts_stay_off_devices_of_the_sidecar() {
    let spec = json!({"containers": [container("sc", json!({"shareVolumePolicy": {"type": "enabled"},
        "volumeDevices": [{"name": "own", "devicePath": "/a"}]}))]});
    let app = json!({"name": "app", "volumeMounts": [{"name": "data", "mountPath": "/a"}]});
    let pod = World::new([set("s", spec)]).inject(pod(json!({"containers": [app]}))).unwrap();
    assert_eq!(find(&pod, "sc").get("volumeMounts"), None);
}

/// SIDECARSET-10
#[test]
fn variables_come_from_the_container_that_is_named() {
    let from = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let spec = json!({"containers": [container("sc", json!({
    "env": [{"name": "OWN", "value": "own"}],
    "transferEnv": [
        {"sourceContainerName": "main", "envName": "E1", "envNames": ["E2", "E9"]},
        {"sourceContainerName": "main", "envName": "OWN"},
        {"sourceContainerNameFrom": from("metadata.labels['c']"), "envName": "F"},
        {"sourceContainerName": "main", "sourceContainerNameFrom": from("metadata.annotations['Src.io/From']"), "envName": "G"},
        {"sourceContainerNameFrom": from("metadata.labels['none']"), "envName": "F2"},
        {"envName": "NOBODY"},
    ]}))]});
    let mut given = pod(json!({"containers": [
        {"name": "main", "env": [{"name": "E1", "value": "1"}, {"name": "E2", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "OWN", "value": "theirs"}, {"name": "G", "value": "main"}]},
        {"name": "second", "env": [{"name": "F", "value": "f"}, {"name": "G", "value": "second"}]},
    ]}));
    given["metadata"]["labels"]["c"] = "second".into();
    given["metadata"]["annotations"] = json!({"Src.io/From": "second"});
    let pod = World::new([set("s", spec)]).inject(given).unwrap();
    let field = json!({"fieldRef": {"fieldPath": "status.podIP"}});
    let expected = [
        ("OWN", json!("own")),
        ("IS_INJECTED", json!("true")),
        ("E1", json!("1")),
        ("E2", field),
        ("F", json!("f")),
        ("G", json!("second")),
    ];
    assert_eq!(env(find(&pod, "sc")), expected.map(|(name, value)| (name.to_owned(), value)));
}

/// SIDECARSET-11
#[test]
fn pull_secrets_of_the_pod_come_first() {
    let spec = json!({"containers": [container("sc", json!({}))], "imagePullSecrets": [{"name": "p1"}, {"name": "p2"}]});
    let given = pod(json!({"containers": [{"name": "app"}], "imagePullSecrets": [{"name": "p1"}]}));
    let pod = World::new([set("s", spec)]).inject(given).unwrap();
    assert_eq!(pod["spec"]["imagePullSecrets"], json!([{"name": "p1"}, {"name": "p2"}]));
}

/// A volume that the pod has wins, and the pod starts.
#[test]
fn volumes_of_the_pod_win() {
    let spec = json!({"containers": [container("sc", json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}))],
        "volumes": [{"name": "v", "emptyDir": {}}]});
    let given =
        pod(json!({"containers": [{"name": "app"}], "volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}));
    let pod = World::new([set("s", spec)]).inject(given).unwrap();
    assert_eq!(pod["spec"]["volumes"], json!([{"name": "v", "hostPath": {"path": "/x"}}]));
}

/// SIDECARSET-15
#[test]
fn annotations_are_patched_before_anything_looks_at_them() {
    let spec = json!({
    "containers": [container("sc", json!({"transferEnv": [{"envName": "E",
        "sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.annotations['from']"}}}]}))],
    "patchPodMetadata": [
        {"annotations": {"k1": "set", "from": "app"}, "patchPolicy": "Retain"},
        {"annotations": {"k2": "set"}, "patchPolicy": "Overwrite"},
        {"annotations": {"k3": "{\"b\":2}"}, "patchPolicy": "MergePatchJson"},
    ]});
    let world = World::new([set("s", spec)]);
    let mut given = pod(json!({"containers": [{"name": "app", "env": [{"name": "E", "value": "e"}]}]}));
    given["metadata"]["annotations"] = json!({"k1": "x", "k2": "y", "k3": "{\"a\":1}"});
    let pod = world.inject(given.clone()).unwrap();
    let annotations = &pod["metadata"]["annotations"];
    assert_eq!((&annotations["k1"], &annotations["k2"]), (&json!("x"), &json!("set")));
    assert_eq!(annotations["k3"], "{\"a\":1,\"b\":2}");
    assert!(env(find(&pod, "sc")).contains(&("E".to_owned(), json!("e"))));
    given["metadata"]["annotations"]["k3"] = "not json".into();
    assert_eq!(world.inject(given), Err("Invalid JSON Document".to_owned()));
}

fn with_limits(name: &str, cpu: &str) -> Value {
    json!({"name": name, "resources": {"limits": {"cpu": cpu}}})
}

/// SIDECARSET-17
#[test]
fn resources_count_containers_that_came_with_the_pod() {
    let policy = json!({"resourcesPolicy": {"targetContainersMode": "sum", "resourcesExpr": {"limits": {"cpu": "cpu"}}}});
    let world = World::new([
        set("a", json!({"containers": [container("sc", policy.clone())]})),
        set("b", json!({"containers": [container("fixed", json!({"resources": {"limits": {"cpu": "8"}}}))]})),
    ]);
    let given = || {
        let mut native = with_limits("native", "100m");
        native["restartPolicy"] = "Always".into();
        pod(
            json!({"containers": [with_limits("app", "1")], "initContainers": [native, with_limits("plain", "4")]}),
        )
    };
    let once = world.inject(given()).unwrap();
    assert_eq!(find(&once, "sc")["resources"], json!({"limits": {"cpu": "1100m"}}));
    let twice = world.inject(once.clone()).unwrap();
    assert_eq!(twice, once, "doing it again changes nothing");
    let unlimited = pod(json!({"containers": [{"name": "app"}]}));
    assert_eq!(find(&world.inject(unlimited).unwrap(), "sc")["resources"], json!({}));
}

/// SIDECARSET-18
#[test]
fn pods_for_which_nothing_can_be_computed_are_refused() {
    let spec = |regex: &str| {
        let policy = json!({"targetContainersMode": "sum", "targetContainersNameRegex": regex,
            "resourcesExpr": {"limits": {"cpu": "cpu-100m"}}});
        json!({"containers": [container("sc", json!({"resourcesPolicy": policy}))]})
    };
    let given = || pod(json!({"containers": [with_limits("app", "50m")]}));
    assert_eq!(
        World::new([set("s", spec("^large"))]).inject(given()),
        Err("no containers match the regex pattern \"^large\"".to_owned())
    );
    let refused = World::new([set("s", spec("app"))]).inject(given()).unwrap_err();
    assert!(refused.ends_with("calculation result is negative: -50m"), "{refused}");
}
