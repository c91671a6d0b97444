use super::*;
use crate::kubernetes::defaults;
use proptest::prelude::*;
use serde_json::json;

/// A pod with defaults whose spec was changed by `change`.
fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut pod = json!({"spec": {
        "containers": [{"name": "main", "image": "app:1"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }});
    change(&mut pod["spec"]);
    defaults::pod(&mut pod, &defaults::Options::KUBERNETES);
    pod
}

fn lines(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(change: impl FnOnce(&mut Value), expected: &[&str]) {
    assert_eq!(lines(&pod(&changed(change))), expected);
}

#[test]
fn a_plain_pod_is_fine() {
    check(|_| {}, &[]);
}

#[test]
fn containers_are_required_and_have_name_and_image() {
    check(|spec| spec["containers"] = json!([]), &["spec.containers: Required value"]);
    check(
        |spec| spec["containers"] = json!([{}]),
        &["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"],
    );
}

#[test]
fn container_names_are_labels_and_unique() {
    check(
        |spec| spec["containers"][0]["name"] = "Main".into(),
        &[
            "spec.containers[0].name: Invalid value: \"Main\": a lowercase RFC 1123 label must consist of lower case \
           alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
           '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ],
    );
    check(
        |spec| {
            spec["containers"] = json!([{"name": "a", "image": "a"}, {"name": "a", "image": "a"}]);
            spec["initContainers"] = json!([{"name": "a", "image": "a"}]);
        },
        &[
            "spec.containers[1].name: Duplicate value: \"a\"",
            "spec.initContainers[0].name: Duplicate value: \"a\"",
        ],
    );
}

#[test]
fn ports_have_numbers_and_unique_names() {
    check(
        |spec| spec["containers"][0]["ports"] = json!([{"containerPort": 0}, {"containerPort": 70000}]),
        &[
            "spec.containers[0].ports[0].containerPort: Required value",
            "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ],
    );
    check(
        |spec| {
            spec["containers"][0]["ports"] = json!([{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a", "protocol": "X"}]);
        },
        &[
            "spec.containers[0].ports[1].name: Duplicate value: \"a\"",
            "spec.containers[0].ports[1].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ],
    );
}

#[test]
fn variables_have_one_source() {
    check(
        |spec| {
            spec["containers"][0]["env"] =
                json!([{"value": "x"}, {"name": "a=b"}, {"name": "c", "valueFrom": {}}]);
        },
        &[
            "spec.containers[0].env[0].name: Required value",
            "spec.containers[0].env[1].name: Invalid value: \"a=b\": a valid environment variable name must consist only of \
             printable ASCII characters other than '='",
            "spec.containers[0].env[2].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, \
             `configMapKeyRef` or `secretKeyRef`",
        ],
    );
}

#[test]
fn labels_and_annotations_can_be_variables() {
    check(
        |spec| {
            spec["containers"][0]["env"] = json!([
                {"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                {"name": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['x.io/Y']"}}}]);
        },
        &[],
    );
}

#[test]
fn mounts_need_their_volume() {
    check(
        |spec| {
            spec["containers"][0]["volumeMounts"] = json!([
                {"name": "data", "mountPath": "/a"}, {"name": "no", "mountPath": "/a"}]);
        },
        &[
            "spec.containers[0].volumeMounts[1].name: Not found: \"no\"",
            "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique",
        ],
    );
}

#[test]
fn claim_templates_count_as_volumes() {
    let spec = changed(|spec| {
        spec["containers"][0]["volumeMounts"] = json!([{"name": "claim", "mountPath": "/a"}]);
    });
    let options = Options { extra_volumes: vec!["claim".to_owned()] };
    assert_eq!(lines(&pod_template_spec(&spec, "spec.template", &options)), Vec::<String>::new());
    assert_eq!(
        lines(&pod_template_spec(&spec, "spec.template", &Options::default())),
        ["spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"claim\""]
    );
}

/// Pods get the port of the node by default, so a template need not say it; what it says must be right.
#[test]
fn a_template_on_the_network_of_the_host_may_leave_out_the_port_of_the_node() {
    let template = |host: i64| {
        let container =
            json!({"name": "main", "image": "app:1", "ports": [{"containerPort": 80, "hostPort": host}]});
        let mut template = json!({"spec": {"hostNetwork": true, "containers": [container]}});
        defaults::pod_template_spec(&mut template, &defaults::Options::KUBERNETES);
        template
    };
    let judged = |host| lines(&pod_template_spec(&template(host), "spec.template", &Options::default()));
    assert_eq!(judged(0), Vec::<String>::new());
    assert_eq!(judged(80), Vec::<String>::new());
    let wrong = |path: &str, port| {
        format!(
            "{path}.hostPort: Invalid value: {port}: must match `containerPort` when `hostNetwork` is true"
        )
    };
    assert_eq!(judged(81), [wrong("spec.template.spec.containers[0].ports[0]", 81)]);
    assert_eq!(
        lines(&pod_spec(&template(0)["spec"], "spec", &Options::default())),
        [wrong("spec.containers[0].ports[0]", 0)]
    );
}

#[test]
fn volumes_have_one_source() {
    check(
        |spec| spec["volumes"] = json!([{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}}]),
        &["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
    );
    check(
        |spec| spec["volumes"] = json!([{"name": "a", "configMap": {"defaultMode": 512}}]),
        &[
            "spec.volumes[0].configMap.name: Required value",
            "spec.volumes[0].configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both \
             inclusive",
        ],
    );
}

#[test]
fn probes_have_one_action() {
    check(
        |spec| {
            spec["containers"][0]["livenessProbe"] = json!({"successThreshold": 2});
            spec["containers"][0]["readinessProbe"] = json!({"tcpSocket": {"port": 0}, "periodSeconds": -1});
        },
        &[
            "spec.containers[0].livenessProbe: Required value: must specify a handler type",
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
            "spec.containers[0].readinessProbe.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
        ],
    );
}

#[test]
fn plain_init_containers_have_no_probes() {
    check(
        |spec| {
            spec["initContainers"] = json!([
                {"name": "i", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}},
                {"name": "s", "image": "s", "restartPolicy": "Always", "livenessProbe": {"exec": {"command": ["x"]}}}]);
        },
        &["spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without \
           restartPolicy=Always"],
    );
}

#[test]
fn requests_stay_below_limits() {
    check(
        |spec| {
            spec["containers"][0]["resources"] =
                json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1100m"}});
        },
        &[
            "spec.containers[0].resources.requests: Invalid value: \"1100m\": must be less than or equal to cpu limit of 1",
        ],
    );
    check(
        |spec| {
            spec["containers"][0]["resources"] =
                json!({"limits": {"x.io/gpu": "1"}, "requests": {"x.io/gpu": "2", "memory": "-1"}});
        },
        &[
            "spec.containers[0].resources.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be equal to x.io/gpu limit of 1",
        ],
    );
}

#[test]
fn a_privileged_container_cannot_refuse_privileges() {
    check(
        |spec| {
            spec["containers"][0]["securityContext"] =
                json!({"privileged": true, "allowPrivilegeEscalation": false, "runAsUser": -1});
        },
        &[
            "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            "spec.containers[0].securityContext: Invalid value: \
             {\"allowPrivilegeEscalation\":false,\"privileged\":true,\"runAsUser\":-1}: cannot set \
             `allowPrivilegeEscalation` to false and `privileged` to true",
        ],
    );
}

#[test]
fn policies_are_among_the_known_ones() {
    check(
        |spec| spec["restartPolicy"] = "Sometimes".into(),
        &[
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        ],
    );
    check(
        |spec| spec["containers"][0]["imagePullPolicy"] = "Soon".into(),
        &["spec.containers[0].imagePullPolicy: Unsupported value: \"Soon\": supported values: \"Always\", \
           \"IfNotPresent\", \"Never\""],
    );
}

#[test]
fn tolerations_are_consistent() {
    check(
        |spec| {
            spec["tolerations"] = json!([
                {"operator": "Equal"},
                {"key": "a", "operator": "Exists", "value": "b"},
                {"key": "a", "tolerationSeconds": 5, "effect": "NoSchedule"}]);
        },
        &[
            "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which \
             means \"match all values and all keys\"",
            "spec.tolerations[1].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
            "spec.tolerations[2].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when \
             `tolerationSeconds` is set",
        ],
    );
}

#[test]
fn gated_pods_have_no_node_yet() {
    check(
        |spec| {
            spec["schedulingGates"] = json!([{"name": "x.io/g"}]);
            spec["nodeName"] = "n".into();
        },
        &["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
    );
}

#[track_caller]
fn check_update(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let old = changed(|spec| spec["tolerations"] = json!([{"key": "a", "operator": "Exists"}]));
    let mut new = old.clone();
    change(&mut new["spec"]);
    let found: Vec<String> = lines(&pod_update(&new, &old))
        .iter()
        .map(|line| line.split('\n').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(found, expected);
}

const FORBIDDEN: &str = "spec: Forbidden: pod updates may not change fields other than \
`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

#[test]
fn images_deadlines_and_new_tolerations_may_change() {
    check_update(|spec| spec["containers"][0]["image"] = "app:2".into(), &[]);
    check_update(|spec| spec["activeDeadlineSeconds"] = 5.into(), &[]);
    check_update(
        |spec| {
            spec["tolerations"] =
                json!([{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]);
        },
        &[],
    );
    check_update(|spec| spec["tolerations"][0]["tolerationSeconds"] = 5.into(), &[]);
}

#[test]
fn nothing_else_may_change() {
    check_update(|spec| spec["containers"][0]["command"] = json!(["x"]), &[FORBIDDEN]);
    check_update(|spec| spec["containers"][0]["resources"] = json!({"limits": {"cpu": "1"}}), &[FORBIDDEN]);
    check_update(|spec| spec["nodeName"] = "n".into(), &[FORBIDDEN]);
    check_update(
        |spec| spec["containers"] = json!([]),
        &["spec.containers: Forbidden: pod updates may not add or remove containers"],
    );
    check_update(
        |spec| spec["tolerations"] = json!([]),
        &[
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ],
    );
    check_update(
        |spec| spec["schedulingGates"] = json!([{"name": "g"}]),
        &[
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'",
        ],
    );
}

#[track_caller]
fn check_resize(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let old = changed(|spec| {
        spec["containers"][0]["resources"] = json!({"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}});
    });
    let mut new = old.clone();
    change(&mut new["spec"]["containers"][0]);
    assert_eq!(lines(&resize(&new, &old)), expected);
}

#[test]
fn cpu_and_memory_can_be_resized() {
    check_resize(|container| container["resources"]["requests"]["cpu"] = "150m".into(), &[]);
    check_resize(|container| container["resources"]["limits"]["memory"] = "256Mi".into(), &[]);
}

/// Since Kubernetes 1.34 this needs no restart; the node looks at what is used.
#[test]
fn memory_limits_may_shrink_and_come() {
    check_resize(|container| container["resources"]["limits"]["memory"] = "96Mi".into(), &[]);
    let old = changed(|spec| spec["containers"][0]["resources"] = json!({"requests": {"memory": "64Mi"}}));
    let mut new = old.clone();
    new["spec"]["containers"][0]["resources"]["limits"] = json!({"memory": "128Mi"});
    assert_eq!(lines(&resize(&new, &old)), [""; 0]);
}

#[test]
fn some_pods_are_never_resized() {
    let check = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut old = changed(|spec| spec["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}}));
        change(&mut old);
        let mut new = old.clone();
        new["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2".into();
        assert_eq!(lines(&resize(&new, &old)), [format!(": Forbidden: {expected}")]);
    };
    check(
        &|pod| pod["spec"]["resources"] = json!({"limits": {"cpu": "4"}}),
        "pods with pod-level resources cannot be resized",
    );
    check(
        &|pod| pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"}),
        "static pods cannot be resized",
    );
    check(&|pod| pod["spec"]["os"] = json!({"name": "windows"}), "windows pods cannot be resized");
}

#[test]
fn of_init_containers_only_sidecars_are_resized() {
    let with = |init: Value| changed(|spec| spec["initContainers"] = json!([init]));
    let sidecar = |resources: Value| {
        with(json!({"name": "s", "image": "s:1", "restartPolicy": "Always", "resources": resources}))
    };
    let setup = |resources: Value| with(json!({"name": "s", "image": "s:1", "resources": resources}));
    let (old, new) = (json!({"requests": {"cpu": "1"}}), json!({"requests": {"cpu": "2"}}));
    assert_eq!(lines(&resize(&sidecar(new.clone()), &sidecar(old.clone()))), [""; 0]);
    assert_eq!(
        lines(&resize(&setup(new), &setup(old.clone()))),
        ["spec: Forbidden: resources for non-sidecar init containers are immutable"]
    );
    let more = json!({"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}});
    assert_eq!(
        lines(&resize(&sidecar(more), &sidecar(old))),
        ["spec: Forbidden: only cpu and memory resources for sidecar containers are mutable"]
    );
}

#[test]
fn other_changes_are_no_resize() {
    check_resize(
        |container| container["image"] = "app:2".into(),
        &["spec: Forbidden: only cpu and memory resources are mutable"],
    );
    check_resize(
        |container| {
            container["resizePolicy"] = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
        },
        &["spec: Forbidden: only cpu and memory resources are mutable"],
    );
    check_resize(
        |container| container["resources"]["requests"] = json!({"cpu": "200m", "memory": "128Mi"}),
        &["spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing"],
    );
    check_resize(
        |container| container["resources"]["requests"] = json!({"cpu": "100m"}),
        &["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
    );
}

#[test]
fn ephemeral_containers_are_only_added() {
    let with = |containers: Value| json!({"spec": {"ephemeralContainers": containers}});
    let old = with(json!([{"name": "a", "image": "x"}]));
    let added = with(json!([{"name": "a", "image": "x"}, {"name": "b"}]));
    assert!(ephemeral_containers_update(&added, &old).is_empty());
    assert_eq!(
        lines(&ephemeral_containers_update(&with(json!([])), &old)),
        ["spec.ephemeralContainers: Forbidden: existing ephemeral containers \"a\" may not be removed\n"]
    );
}

#[test]
fn quality_of_service_follows_requests_and_limits() {
    let class = |resources: Value| qos_class(&json!({"containers": [{"resources": resources}]}));
    assert_eq!(class(json!({})), "BestEffort");
    assert_eq!(class(json!({"requests": {"cpu": "1"}})), "Burstable");
    assert_eq!(class(json!({"limits": {"cpu": "1", "memory": "1Gi"}})), "Guaranteed");
    let same =
        json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1Gi"}});
    assert_eq!(class(same), "Guaranteed");
}

proptest! {
    #[test]
    fn any_json_is_checked_without_a_panic(text in "[\\[{\"a-z:,0-9}\\] ]{0,60}") {
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!({"spec": {"containers": text}}));
        let _ = pod(&value);
        let _ = pod(&json!({"spec": {"containers": [value], "volumes": [value], "tolerations": value}}));
        let _ = pod_update(&value, &json!({"spec": value}));
        let _ = resize(&json!({"spec": value}), &value);
    }
}
