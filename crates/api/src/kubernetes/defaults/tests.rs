use super::*;
use crate::kubernetes::shape;
use proptest::prelude::*;
use serde_json::json;

const SERVER: &Options = &Options::KUBERNETES;

/// Defaults of a template with this one container, and the container that comes out.
fn defaulted_container(options: &Options, container: &Value) -> Value {
    let mut template = json!({"spec": {"containers": [container]}});
    pod_template_spec(&mut template, options);
    template["spec"]["containers"][0].take()
}

/// `expected` lists the members to look at.
#[track_caller]
fn check_container(options: &Options, container: Value, expected: Value) {
    let written = defaulted_container(options, &container);
    for (key, value) in expected.as_object().expect("members") {
        assert_eq!(&written[key], value, "{key}");
    }
}

#[track_caller]
fn check_volume(options: &Options, source: Value, expected: Value) {
    let mut value = source;
    volume(&mut value, options);
    assert_eq!(value, expected);
}

#[test]
fn a_minimal_template_gets_the_known_members() {
    let mut template = json!({"spec": {"containers": [{"name": "main", "image": "app:v1"}]}});
    pod_template_spec(&mut template, SERVER);
    assert_eq!(
        template,
        json!({"spec": {
            "containers": [{
                "name": "main", "image": "app:v1", "imagePullPolicy": "IfNotPresent", "resources": {},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30,
        }})
    );
}

#[test]
fn kruise_templates_always_pull_ordinary_containers() {
    let mut template = json!({"spec": {
        "containers": [{"name": "main", "image": "app:v1"}],
        "initContainers": [{"name": "init", "image": "init:7"}],
    }});
    pod_template_spec(&mut template, &Options::KRUISE_TEMPLATE);
    assert_eq!(template["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(template["spec"]["initContainers"][0]["imagePullPolicy"], "IfNotPresent");
}

#[test]
fn empty_text_counts_as_unset() {
    check_container(
        SERVER,
        json!({"image": "app", "imagePullPolicy": "", "terminationMessagePath": null}),
        json!({"imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log"}),
    );
}

#[test]
fn set_values_stay() {
    check_container(
        SERVER,
        json!({"image": "app:1", "imagePullPolicy": "Never", "terminationMessagePolicy": "FallbackToLogsOnError"}),
        json!({"imagePullPolicy": "Never", "terminationMessagePolicy": "FallbackToLogsOnError"}),
    );
}

#[test]
fn ports_speak_tcp() {
    check_container(
        SERVER,
        json!({"ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]}),
        json!({"ports": [
            {"containerPort": 80, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]}),
    );
}

#[test]
fn field_references_are_of_version_v1() {
    check_container(
        SERVER,
        json!({"env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, {"name": "M"}]}),
        json!({"env": [
            {"name": "N", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
            {"name": "M"}]}),
    );
}

#[test]
fn probes_get_their_numbers() {
    check_container(
        SERVER,
        json!({
            "livenessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 5, "periodSeconds": 7},
            "readinessProbe": {"tcpSocket": {"port": 80}, "timeoutSeconds": 0},
            "startupProbe": {"grpc": {"port": 9}},
        }),
        json!({
            "livenessProbe": {
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "initialDelaySeconds": 5,
                "periodSeconds": 7, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3},
            "readinessProbe": {
                "tcpSocket": {"port": 80}, "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1,
                "failureThreshold": 3},
            "startupProbe": {
                "grpc": {"port": 9, "service": ""}, "periodSeconds": 10, "timeoutSeconds": 1,
                "successThreshold": 1, "failureThreshold": 3},
        }),
    );
}

#[test]
fn kruise_templates_get_no_grpc_service() {
    check_container(
        &Options::KRUISE_TEMPLATE,
        json!({"startupProbe": {"grpc": {"port": 9}}}),
        json!({"startupProbe": {"grpc": {"port": 9}, "periodSeconds": 10, "timeoutSeconds": 1,
            "successThreshold": 1, "failureThreshold": 3}}),
    );
}

#[test]
fn sidecar_sets_leave_startup_probes_alone() {
    let mut value =
        json!({"name": "s", "image": "s:1", "startupProbe": {"exec": {}}, "livenessProbe": {"exec": {}}});
    container(&mut value, &Options::KRUISE_SIDECAR);
    assert_eq!(value["startupProbe"], json!({"exec": {}}));
    assert_eq!(value["livenessProbe"]["periodSeconds"], 10);
    assert_eq!(value["imagePullPolicy"], "IfNotPresent");
}

#[test]
fn life_cycle_requests_go_to_the_root_over_http() {
    check_container(
        SERVER,
        json!({"lifecycle": {"postStart": {"httpGet": {"port": 80}}, "preStop": {"sleep": {"seconds": 3}}}}),
        json!({"lifecycle": {
            "postStart": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}},
            "preStop": {"sleep": {"seconds": 3}}}}),
    );
}

#[test]
fn amounts_are_rounded_up_to_thousandths() {
    check_container(
        SERVER,
        json!({"resources": {"requests": {"cpu": "1234567n", "memory": "1024Ki"}}}),
        json!({"resources": {"requests": {"cpu": "2m", "memory": "1024Ki"}}}),
    );
}

#[test]
fn volumes_without_a_source_are_empty_directories() {
    check_volume(SERVER, json!({"name": "a"}), json!({"name": "a", "emptyDir": {}}));
    check_volume(SERVER, json!({"name": "a", "emptyDir": null}), json!({"name": "a", "emptyDir": {}}));
    check_volume(SERVER, json!({"name": "a", "nfs": {}}), json!({"name": "a", "nfs": {}}));
}

#[test]
fn files_from_the_api_are_readable_for_all() {
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        check_volume(
            SERVER,
            json!({"name": "a", kind: {}}),
            json!({"name": "a", kind: {"defaultMode": 420}}),
        );
        let set = json!({"name": "a", kind: {"defaultMode": 0}});
        check_volume(SERVER, set.clone(), set);
    }
}

#[test]
fn host_paths_have_a_type() {
    check_volume(
        SERVER,
        json!({"name": "a", "hostPath": {"path": "/x"}}),
        json!({"name": "a", "hostPath": {"path": "/x", "type": ""}}),
    );
}

#[test]
fn projections_get_an_expiry_and_versions() {
    check_volume(
        SERVER,
        json!({"name": "a", "projected": {"sources": [
            {"serviceAccountToken": {"path": "t"}},
            {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}}),
        json!({"name": "a", "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
            {"downwardAPI": {"items": [
                {"path": "l", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}}]}}]}}),
    );
}

#[test]
fn storage_systems_get_defaults_on_a_server_and_not_in_kruise_templates() {
    let volumes = [
        ("iscsi", json!({}), json!({"iscsiInterface": "default"})),
        ("rbd", json!({}), json!({"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"})),
        (
            "azureDisk",
            json!({}),
            json!({
            "cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"}),
        ),
        ("scaleIO", json!({}), json!({"storageMode": "ThinProvisioned", "fsType": "xfs"})),
        (
            "ephemeral",
            json!({"volumeClaimTemplate": {"spec": {}}}),
            json!({
            "volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}}),
        ),
    ];
    for (kind, source, expected) in volumes {
        check_volume(SERVER, json!({"name": "a", kind: source}), json!({"name": "a", kind: expected}));
        let same = json!({"name": "a", kind: source});
        check_volume(&Options::KRUISE_TEMPLATE, same.clone(), same);
    }
}

#[test]
fn claims_are_pending_file_systems() {
    let mut claim = json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}});
    persistent_volume_claim(&mut claim, SERVER);
    assert_eq!(
        claim,
        json!({
            "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
            "status": {"phase": "Pending"},
        })
    );
    let mut claim = json!({"spec": {}});
    persistent_volume_claim(&mut claim, &Options::KRUISE_TEMPLATE);
    assert_eq!(claim, json!({"spec": {}, "status": {"phase": "Pending"}}));
}

#[test]
fn both_names_of_the_service_account_agree() {
    for (given, expected) in [
        (json!({"serviceAccountName": "a"}), ("a", "a")),
        (json!({"serviceAccount": "b"}), ("b", "b")),
        (json!({"serviceAccountName": "a", "serviceAccount": "b"}), ("a", "a")),
    ] {
        let mut spec = given;
        pod_spec(&mut spec, SERVER);
        assert_eq!(
            (spec["serviceAccountName"].as_str(), spec["serviceAccount"].as_str()),
            (Some(expected.0), Some(expected.1))
        );
    }
}

#[test]
fn host_ports_are_filled_in_pods_and_in_templates_only_on_request() {
    let spec = json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}]}]});
    let host_port = |spec: &Value| spec["containers"][0]["ports"][0]["hostPort"].clone();

    let mut template = spec.clone();
    pod_spec(&mut template, SERVER);
    assert_eq!(host_port(&template), Value::Null);

    let mut template = spec.clone();
    pod_spec(&mut template, &Options { host_network_host_ports: true, ..Options::KUBERNETES });
    assert_eq!(host_port(&template), 80);

    let mut whole = json!({"spec": spec});
    pod(&mut whole, SERVER);
    assert_eq!(host_port(&whole["spec"]), 80);
}

#[test]
fn pods_get_requests_from_limits_and_templates_do_not() {
    let container =
        json!({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}});
    let mut whole = json!({"spec": {"containers": [container], "initContainers": [container]}});
    pod(&mut whole, SERVER);
    for list in ["containers", "initContainers"] {
        assert_eq!(whole["spec"][list][0]["resources"]["requests"], json!({"cpu": "100m", "memory": "1Gi"}));
    }
    let in_template = defaulted_container(SERVER, &container);
    assert_eq!(in_template["resources"], container["resources"]);
}

#[test]
fn only_pods_get_service_links() {
    let mut whole = json!({"spec": {"containers": []}});
    pod(&mut whole, SERVER);
    assert_eq!(whole["spec"]["enableServiceLinks"], true);
    let mut spec = json!({"containers": []});
    pod_spec(&mut spec, SERVER);
    assert_eq!(spec.get("enableServiceLinks"), None);
}

#[test]
fn a_negative_grace_period_of_a_pod_becomes_one_second() {
    let mut whole = json!({"spec": {"terminationGracePeriodSeconds": -5}});
    pod(&mut whole, SERVER);
    assert_eq!(whole["spec"]["terminationGracePeriodSeconds"], 1);
}

#[test]
fn pod_level_requests_are_what_the_containers_need_together() {
    let options = Options { pod_level_resources: true, ..Options::KUBERNETES };
    let cpu = |amount: &str| json!({"resources": {"requests": {"cpu": amount}}});
    let mut sidecar = cpu("50m");
    sidecar["restartPolicy"] = "Always".into();
    let mut whole = json!({"spec": {
        "containers": [cpu("100m"), cpu("200m")],
        "initContainers": [sidecar, cpu("400m")],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
    }});
    pod(&mut whole, &options);
    assert_eq!(whole["spec"]["resources"]["requests"], json!({"cpu": "450m", "memory": "1Gi"}));
}

#[test]
fn jobs_run_once_by_default() {
    let mut value = json!({"metadata": {"name": "j"}, "spec": {"template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}}});
    job(&mut value, SERVER);
    assert_eq!(value["metadata"]["labels"], json!({"a": "b"}));
    let spec = &value["spec"];
    assert_eq!(spec["completions"], 1);
    assert_eq!(spec["parallelism"], 1);
    assert_eq!(spec["backoffLimit"], 6);
    assert_eq!(spec["completionMode"], "NonIndexed");
    assert_eq!(spec["suspend"], false);
    assert_eq!(spec["manualSelector"], false);
    assert_eq!(spec["podReplacementPolicy"], "TerminatingOrFailed");
    assert_eq!(spec["template"]["spec"]["dnsPolicy"], "ClusterFirst");
}

#[test]
fn parallel_jobs_get_no_completions() {
    let mut spec = json!({"parallelism": 3, "backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": [
        {"onPodConditions": [{"type": "DisruptionTarget"}]}]}});
    job_spec(&mut spec, SERVER);
    assert_eq!(spec.get("completions"), None);
    assert_eq!(spec["backoffLimit"], i32::MAX);
    assert_eq!(spec["podReplacementPolicy"], "Failed");
    assert_eq!(spec["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"], "True");
}

#[test]
fn job_templates_get_defaults_for_their_pods_only() {
    let mut template = json!({"spec": {"template": {"spec": {}}}});
    job_template_spec(&mut template, SERVER);
    assert_eq!(template["spec"].get("parallelism"), None);
    assert_eq!(template["spec"]["template"]["spec"]["restartPolicy"], "Always");
}

/// Seen running: what a cluster with OpenKruise stored for this template.
#[test]
fn a_rich_kruise_template_is_stored_as_the_original_stores_it() {
    let mut template = json!({
        "metadata": {"labels": {"app": "rich"}},
        "spec": {
            "terminationGracePeriodSeconds": 3,
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "initContainers": [{"name": "prep", "image": "init"}, {"name": "prep2", "image": "init:7"}],
            "containers": [
                {
                    "name": "main", "image": "registry.example:5000/web", "args": [],
                    "env": [{"name": "EMPTY", "value": ""},
                        {"name": "LIM", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
                    "ports": [{"containerPort": 8080, "name": "http"}],
                    "resources": {"requests": {"cpu": 0.05, "memory": "1024Ki", "ephemeral-storage": "0"},
                        "limits": {"cpu": "1000m", "memory": "2048Mi"}},
                    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch", "readOnly": false}],
                },
                {
                    "name": "second", "image": "web:latest", "imagePullPolicy": "",
                    "livenessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 3000},
                    "startupProbe": {"grpc": {"port": 9000}, "failureThreshold": 500},
                },
            ],
            "volumes": [
                {"name": "scratch"},
                {"name": "eph", "ephemeral": {"volumeClaimTemplate": {"spec": {
                    "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "0.5Gi"}}}}}},
            ],
        },
    });
    pod_template_spec(&mut template, &Options::KRUISE_TEMPLATE);
    shape::canonical("core.PodTemplateSpec", &mut template, shape::Unknown::Drop).expect("fits its type");
    let log = "/dev/termination-log";
    assert_eq!(
        template,
        json!({
            "metadata": {"creationTimestamp": null, "labels": {"app": "rich"}},
            "spec": {
                "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                "securityContext": {}, "terminationGracePeriodSeconds": 3,
                "tolerations": [{"key": "k", "operator": "Exists"}],
                "initContainers": [
                    {"name": "prep", "image": "init", "imagePullPolicy": "Always", "resources": {},
                        "terminationMessagePath": log, "terminationMessagePolicy": "File"},
                    {"name": "prep2", "image": "init:7", "imagePullPolicy": "IfNotPresent", "resources": {},
                        "terminationMessagePath": log, "terminationMessagePolicy": "File"}],
                "containers": [
                    {
                        "name": "main", "image": "registry.example:5000/web", "imagePullPolicy": "Always",
                        "env": [{"name": "EMPTY"}, {"name": "LIM", "valueFrom": {"resourceFieldRef": {
                            "divisor": "0", "resource": "limits.cpu"}}}],
                        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "1", "memory": "2Gi"},
                            "requests": {"cpu": "50m", "ephemeral-storage": "0", "memory": "1Mi"}},
                        "terminationMessagePath": log, "terminationMessagePolicy": "File",
                        "volumeMounts": [{"mountPath": "/scratch", "name": "scratch"}],
                    },
                    {
                        "name": "second", "image": "web:latest", "imagePullPolicy": "Always", "resources": {},
                        "livenessProbe": {"failureThreshold": 3, "initialDelaySeconds": 3000, "periodSeconds": 10,
                            "successThreshold": 1, "timeoutSeconds": 1,
                            "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}},
                        "startupProbe": {"failureThreshold": 500, "grpc": {"port": 9000, "service": null},
                            "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
                        "terminationMessagePath": log, "terminationMessagePolicy": "File",
                    }],
                "volumes": [
                    {"emptyDir": {}, "name": "scratch"},
                    {"name": "eph", "ephemeral": {"volumeClaimTemplate": {
                        "metadata": {"creationTimestamp": null},
                        "spec": {"accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "512Mi"}}}}}}],
            },
        })
    );
}

/// Values from the words that pod specs are made of, so that generated objects reach the rules.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..100).prop_map(Value::from),
        prop_oneof![Just(""), Just("app:1"), Just("100m"), Just("Always"), Just("1234567n")]
            .prop_map(Value::from),
    ];
    let word = prop_oneof![
        Just("spec"),
        Just("containers"),
        Just("initContainers"),
        Just("volumes"),
        Just("resources"),
        Just("limits"),
        Just("requests"),
        Just("cpu"),
        Just("ports"),
        Just("env"),
        Just("valueFrom"),
        Just("fieldRef"),
        Just("livenessProbe"),
        Just("startupProbe"),
        Just("httpGet"),
        Just("grpc"),
        Just("projected"),
        Just("sources"),
        Just("hostNetwork"),
        Just("image"),
        Just("template"),
        Just("metadata"),
        Just("labels"),
        Just("ephemeral"),
        Just("volumeClaimTemplate"),
        Just("status"),
        Just("serviceAccountName"),
    ];
    leaf.prop_recursive(7, 64, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn apply_all(value: &mut Value) {
    let options = Options { host_network_host_ports: true, pod_level_resources: true, ..Options::KUBERNETES };
    pod(value, &options);
    pod_template_spec(value, &options);
    pod_spec(value, &Options::KRUISE_TEMPLATE);
    container(value, &Options::KRUISE_SIDECAR);
    volume(value, &options);
    persistent_volume_claim(value, &options);
    job(value, &options);
    job_template_spec(value, &options);
}

/// Whether everything that was set in `old` is the same in `new`.
fn kept(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.iter().all(|(key, value)| new.get(key).is_some_and(|new| kept(value, new)))
        }
        (Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| kept(old, new))
        }
        (Value::Null, _) => true,
        (Value::String(text), _) if text.is_empty() || text == "1234567n" => true,
        (Value::Number(number), _) if number.as_i64() == Some(0) => true,
        (old, new) => old == new,
    }
}

proptest! {
    #[test]
    fn running_twice_changes_nothing_more(value in any_value()) {
        let mut once = value;
        apply_all(&mut once);
        let mut twice = once.clone();
        apply_all(&mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn set_values_are_never_changed(value in any_value()) {
        let mut written = value.clone();
        apply_all(&mut written);
        prop_assert!(kept(&value, &written), "{} became {}", value, written);
    }
}
