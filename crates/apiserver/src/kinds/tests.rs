use super::*;
use proptest::prelude::*;
use serde_json::json;

fn lines(errors: &[Error]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// The object with defaults.
fn defaulted(group: &str, version: &str, kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    defaults(group, version, kind, &mut object);
    object
}

/// A workload of that kind whose spec was changed.
fn workload(kind: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({"metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        },
    }});
    change(&mut object["spec"]);
    defaulted("apps", "v1", kind, &object)
}

#[track_caller]
fn check(kind: &str, change: impl FnOnce(&mut Value), expected: &[&str]) {
    assert_eq!(lines(&validate_create("apps", kind, &workload(kind, change))), expected, "{kind}");
}

#[track_caller]
fn check_object(group: &str, kind: &str, object: &Value, expected: &[&str]) {
    let version = if group == "autoscaling" { "v2" } else { "v1" };
    let object = defaulted(group, version, kind, object);
    assert_eq!(lines(&validate_create(group, kind, &object)), expected, "{kind}");
}

#[test]
fn deployments_get_their_defaults() {
    let spec = workload("Deployment", |_| {})["spec"].clone();
    assert_eq!(spec["replicas"], 1);
    assert_eq!(spec["revisionHistoryLimit"], 10);
    assert_eq!(spec["progressDeadlineSeconds"], 600);
    let rolling =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    assert_eq!(spec["strategy"], rolling);
    assert_eq!(spec["template"]["spec"]["dnsPolicy"], "ClusterFirst");
    let recreate = workload("Deployment", |spec| spec["strategy"] = json!({"type": "Recreate"}));
    assert_eq!(recreate["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn stateful_sets_get_their_defaults() {
    let set = workload("StatefulSet", |spec| {
        spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {}}]);
    });
    let spec = &set["spec"];
    assert_eq!(spec["podManagementPolicy"], "OrderedReady");
    assert_eq!(spec["updateStrategy"], json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}));
    let policy = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
    assert_eq!(spec["persistentVolumeClaimRetentionPolicy"], policy);
    assert_eq!(
        spec["volumeClaimTemplates"][0],
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}})
    );
    let typed = workload("StatefulSet", |spec| spec["updateStrategy"] = json!({"type": "RollingUpdate"}));
    assert_eq!(typed["spec"]["updateStrategy"], json!({"type": "RollingUpdate"}));
}

#[test]
fn daemon_sets_get_their_defaults() {
    let set = workload("DaemonSet", |_| {});
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    assert_eq!(set["spec"]["updateStrategy"], rolling);
}

#[test]
fn services_get_their_defaults() {
    let service = defaulted("", "v1", "Service", &json!({"spec": {"ports": [{"port": 80}]}}));
    assert_eq!(
        service["spec"],
        json!({"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]})
    );
    let balanced = defaulted("", "v1", "Service", &json!({"spec": {"type": "LoadBalancer"}}));
    assert_eq!(balanced["spec"]["externalTrafficPolicy"], "Cluster");
    assert_eq!(balanced["spec"]["allocateLoadBalancerNodePorts"], true);
}

#[test]
fn namespaces_carry_their_name_as_a_label() {
    let namespace = defaulted("", "v1", "Namespace", &json!({"metadata": {"name": "a"}}));
    assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], "a");
    assert_eq!(namespace["status"]["phase"], "Active");
}

#[test]
fn webhooks_get_their_defaults() {
    let hook = json!({"webhooks": [{"rules": [{}], "clientConfig": {"service": {"name": "a"}}}]});
    let webhook =
        defaulted("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", &hook)["webhooks"][0]
            .clone();
    assert_eq!(
        webhook,
        json!({"failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
            "timeoutSeconds": 10, "reinvocationPolicy": "Never", "rules": [{"scope": "*"}],
            "clientConfig": {"service": {"name": "a", "port": 443}}})
    );
}

#[test]
fn autoscalers_watch_the_processor_by_default() {
    let scaler =
        defaulted("autoscaling", "v2", "HorizontalPodAutoscaler", &json!({"spec": {"behavior": {}}}));
    assert_eq!(scaler["spec"]["minReplicas"], 1);
    assert_eq!(scaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);
    assert_eq!(scaler["spec"]["behavior"]["scaleUp"]["policies"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_selector_must_match_the_template() {
    const UNMATCHED: &str = "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match \
                             template `labels`";
    for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
        check(kind, |_| {}, &[]);
        check(
            kind,
            |spec| spec["template"]["metadata"]["labels"] = json!({"app": "other"}),
            &[
                "spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: `selector` does not match template \
               `labels`",
            ],
        );
        check(
            kind,
            |spec| {
                spec.as_object_mut().expect("a spec").remove("selector");
            },
            match kind {
                "DaemonSet" => &[UNMATCHED],
                _ => &["spec.selector: Required value", UNMATCHED],
            },
        );
    }
    check(
        "Deployment",
        |spec| spec["selector"] = json!({}),
        &["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    );
}

#[test]
fn pods_of_workloads_always_restart() {
    check(
        "Deployment",
        |spec| spec["template"]["spec"]["restartPolicy"] = "Never".into(),
        &["spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""],
    );
}

#[test]
fn a_rolling_update_can_move() {
    check(
        "Deployment",
        |spec| spec["strategy"] = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
        &["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
    );
    check(
        "Deployment",
        |spec| spec["strategy"] = json!({"rollingUpdate": {"maxUnavailable": "101%"}}),
        &[
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%",
        ],
    );
    check(
        "Deployment",
        |spec| spec["replicas"] = (-1).into(),
        &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    );
}

#[test]
fn the_selector_of_a_deployment_stays() {
    let old = workload("Deployment", |_| {});
    let new = workload("Deployment", |spec| {
        spec["selector"]["matchLabels"]["x"] = "y".into();
        spec["template"]["metadata"]["labels"]["x"] = "y".into();
    });
    assert_eq!(
        lines(&validate_update("apps", "Deployment", &new, &old, None)),
        ["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"web\",\"x\":\"y\"}}: field is immutable"]
    );
}

#[test]
fn a_stateful_set_keeps_what_its_pods_rely_on() {
    let old = workload("StatefulSet", |spec| spec["serviceName"] = "a".into());
    let fine = workload("StatefulSet", |spec| {
        spec["serviceName"] = "a".into();
        spec["replicas"] = 5.into();
        spec["template"]["spec"]["containers"][0]["image"] = "app:2".into();
    });
    assert_eq!(lines(&validate_update("apps", "StatefulSet", &fine, &old, None)), Vec::<String>::new());
    let moved = workload("StatefulSet", |spec| spec["serviceName"] = "b".into());
    assert_eq!(
        lines(&validate_update("apps", "StatefulSet", &moved, &old, None)),
        [
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
          'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are \
          forbidden"
        ]
    );
}

#[test]
fn counters_of_a_status_add_up() {
    let status = |ready: i64| json!({"status": {"replicas": 1, "readyReplicas": ready, "collisionCount": 1}});
    assert!(validate_update("apps", "Deployment", &status(1), &status(1), Some("status")).is_empty());
    assert_eq!(
        lines(&validate_update("apps", "Deployment", &status(2), &status(1), Some("status"))),
        ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"]
    );
}

fn job(change: impl FnOnce(&mut Value)) -> Value {
    let mut job = json!({"metadata": {"name": "j", "uid": "u1"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}}}});
    change(&mut job["spec"]);
    let mut job = defaulted("batch", "v1", "Job", &job);
    prepare_create("batch", "Job", &mut job);
    job
}

#[test]
fn jobs_select_their_pods_by_uid() {
    let job = job(|_| {});
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}}));
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["job-name"], "j");
    assert_eq!(lines(&validate_create("batch", "Job", &job)), Vec::<String>::new());
}

#[test]
fn pods_of_jobs_end() {
    let always = job(|spec| spec["template"]["spec"]["restartPolicy"] = "Always".into());
    assert_eq!(
        lines(&validate_create("batch", "Job", &always)),
        ["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""]
    );
}

#[test]
fn the_template_of_a_job_stays() {
    let old = job(|_| {});
    let new = job(|spec| spec["template"]["spec"]["containers"][0]["image"] = "app:2".into());
    let found = lines(&validate_update("batch", "Job", &new, &old, None));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("spec.template: Invalid value:") && found[0].ends_with(": field is immutable")
    );
    let mut more = old.clone();
    more["spec"]["parallelism"] = 5.into();
    assert!(validate_update("batch", "Job", &more, &old, None).is_empty());
}

#[test]
fn keys_are_file_names() {
    check_object(
        "",
        "ConfigMap",
        &json!({"data": {"a/b": "", "ok.txt": ""}}),
        &[
            "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
           (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        ],
    );
    let fixed = json!({"immutable": true, "data": {"a": "1"}});
    let changed = json!({"immutable": true, "data": {"a": "2"}});
    assert_eq!(
        lines(&validate_update("", "ConfigMap", &changed, &fixed, None)),
        ["data: Forbidden: field is immutable when `immutable` is set"]
    );
}

#[test]
fn services_have_ports_and_keep_their_address() {
    check_object("", "Service", &json!({"spec": {}}), &["spec.ports: Required value"]);
    check_object("", "Service", &json!({"spec": {"clusterIP": "None"}}), &[]);
    check_object(
        "",
        "Service",
        &json!({"spec": {"ports": [{"port": 0, "targetPort": 1}, {"port": 80, "name": "a"}]}}),
        &[
            "spec.ports[0].name: Required value",
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ],
    );
    let with = |ip: &str| {
        let spec = json!({"spec": {"clusterIP": ip, "clusterIPs": [ip], "ports": [{"port": 80}]}});
        defaulted("", "v1", "Service", &spec)
    };
    assert_eq!(
        lines(&validate_update("", "Service", &with("10.0.0.2"), &with("10.0.0.1"), None)),
        ["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"]
    );
}

#[test]
fn claims_ask_for_storage_and_only_grow() {
    check_object(
        "",
        "PersistentVolumeClaim",
        &json!({"spec": {}}),
        &[
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ],
    );
    let claim = |size: &str, class: &str| {
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "volumeName": "v",
            "resources": {"requests": {"storage": size}}}, "status": {"phase": "Bound"}})
    };
    let update =
        |new: &Value| lines(&validate_update("", "PersistentVolumeClaim", new, &claim("2Gi", "a"), None));
    assert_eq!(update(&claim("3Gi", "a")), Vec::<String>::new());
    assert_eq!(
        update(&claim("1Gi", "a")),
        ["spec.resources.requests.storage: Forbidden: field can not be less than previous value"]
    );
    assert!(
        update(&claim("2Gi", "b"))[0].starts_with("spec: Forbidden: spec is immutable after creation except")
    );
}

#[test]
fn budgets_have_one_bound() {
    check_object("policy", "PodDisruptionBudget", &json!({"spec": {"minAvailable": "50%"}}), &[]);
    check_object(
        "policy",
        "PodDisruptionBudget",
        &json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}}),
        &["spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":1,\
             \"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set"],
    );
}

#[test]
fn webhooks_say_where_and_how_they_are_called() {
    let webhook = json!({"webhooks": [{"name": "a.b.c", "rules": [{"operations": ["CREATE"], "apiGroups": [""],
        "apiVersions": ["v1"], "resources": ["pods"]}], "clientConfig": {"url": "https://x/y"},
        "sideEffects": "None", "admissionReviewVersions": ["v1"]}]});
    let group = "admissionregistration.k8s.io";
    check_object(group, "ValidatingWebhookConfiguration", &webhook, &[]);
    let mut bad = webhook;
    bad["webhooks"][0]["clientConfig"] = json!({"url": "http://x"});
    bad["webhooks"][0]["timeoutSeconds"] = 31.into();
    check_object(
        group,
        "ValidatingWebhookConfiguration",
        &bad,
        &[
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired \
             format: https://host[/path]",
        ],
    );
}

#[test]
fn pods_change_resources_only_through_resize() {
    let pod = |cpu: &str| {
        defaulted(
            "",
            "v1",
            "Pod",
            &json!({"spec": {"containers": [
            {"name": "a", "image": "a:1", "resources": {"requests": {"cpu": cpu}}}]}}),
        )
    };
    assert!(!validate_update("", "Pod", &pod("2"), &pod("1"), None).is_empty());
    assert!(validate_update("", "Pod", &pod("2"), &pod("1"), Some("resize")).is_empty());
    assert!(validate_update("", "Pod", &pod("2"), &pod("1"), Some("status")).is_empty());
}

#[test]
fn new_pods_are_pending_and_have_a_class() {
    let mut pod = json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, "status": {"phase": "Running"}});
    prepare_create("", "Pod", &mut pod);
    assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "Burstable"}));
}

#[test]
fn admission_fills_account_priority_and_tolerations() {
    let mut pod =
        json!({"spec": {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]}});
    admit_pod(&mut pod, 0, "PreemptLowerPriority");
    let spec = &pod["spec"];
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["priority"], 0);
    assert_eq!(
        spec["tolerations"][1],
        json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 300})
    );
}

#[test]
fn canonical_objects_lose_unknown_members_and_name_them() {
    let mut pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {"containers": [], "x": 1}});
    assert_eq!(canonical("", "v1", "Pod", &mut pod), Ok(vec!["spec.x".to_owned()]));
    assert_eq!(
        pod,
        json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
            "spec": {"containers": []}, "status": {}})
    );
    let mut own = json!({"anything": 1});
    assert_eq!(canonical("x.io", "v1", "Thing", &mut own), Ok(Vec::new()));
}

const KINDS: [(&str, &str); 22] = [
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "Service"),
    ("", "Node"),
    ("", "Namespace"),
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ControllerRevision"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("policy", "PodDisruptionBudget"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "StorageClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
];

fn any_value() -> impl Strategy<Value = Value> {
    let words = [
        "spec", "metadata", "template", "status", "labels", "selector", "ports", "webhooks", "limits",
        "data", "rules",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..9).prop_map(Value::from),
        "[a-z%]{0,3}".prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map(
                proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
                inner,
                0..5
            )
            .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_defaulted_once_and_checked_without_a_panic(value in any_value()) {
        for (group, kind) in KINDS {
            let once = defaulted(group, "v1", kind, &value);
            prop_assert_eq!(&defaulted(group, "v1", kind, &once), &once);
            let mut created = once.clone();
            prepare_create(group, kind, &mut created);
            let _ = validate_create(group, kind, &created);
            let _ = validate_update(group, kind, &created, &value, None);
            let _ = validate_update(group, kind, &created, &value, Some("status"));
            let _ = canonical(group, "v1", kind, &mut created);
        }
    }
}
