use super::*;
use serde_json::json;

fn now() -> Timestamp {
    "2026-01-02T00:00:00Z".parse().expect("a time")
}

/// Cells as one line, separated by bars.
fn line(printer: &Printer, object: &Value) -> String {
    let row = printer.row(object, IncludeObject::None, now());
    let cells = row["cells"].as_array().expect("cells").clone();
    assert_eq!(cells.len(), printer.columns().len(), "every column has a cell");
    let text = |cell: &Value| match cell {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    cells.iter().map(text).collect::<Vec<_>>().join("|")
}

#[track_caller]
fn check(group: &str, kind: &str, mut object: Value, expected: &str) {
    object["metadata"]["name"] = "x".into();
    object["metadata"]["creationTimestamp"] = "2026-01-01T22:00:00Z".into();
    assert_eq!(line(&Printer::built_in(group, kind), &object), expected);
}

/// A pod with the given status and two containers, of which `init` come before.
#[track_caller]
fn check_pod(init: Value, status: Value, expected: &str) {
    let object = json!({
        "metadata": {"name": "x", "creationTimestamp": "2026-01-01T23:55:00Z"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": init, "nodeName": "n1"},
        "status": status,
    });
    let line = line(&Printer::built_in("", "Pod"), &object);
    let shown: Vec<&str> = line.split('|').skip(1).take(3).collect();
    assert_eq!(shown.join("|"), expected);
}

fn running(name: &str) -> Value {
    json!({"name": name, "ready": true, "restartCount": 0, "state": {"running": {}}})
}

#[test]
fn a_running_pod() {
    check_pod(
        json!([]),
        json!({"phase": "Running", "containerStatuses": [running("a"), running("b")]}),
        "2/2|Running|0",
    );
}

#[test]
fn wide_columns_of_a_pod() {
    check(
        "",
        "Pod",
        json!({
            "spec": {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
            "status": {"phase": "Pending", "podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "b", "status": "True"}]},
        }),
        "x|0/0|Pending|0|120m|10.0.0.1|<none>|<none>|1/2",
    );
}

#[test]
fn init_containers_show_how_far_they_are() {
    let init = json!([{"name": "i"}, {"name": "j"}]);
    check_pod(
        init.clone(),
        json!({"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "state": {"terminated": {"exitCode": 0}}},
            {"name": "j", "state": {"waiting": {"reason": "PodInitializing"}}}]}),
        "0/2|Init:1/2|0",
    );
    check_pod(
        init.clone(),
        json!({"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
        "0/2|Init:CrashLoopBackOff|3",
    );
    check_pod(
        init,
        json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 2}}}]}),
        "0/2|Init:ExitCode:2|0",
    );
}

#[test]
fn started_sidecars_count_as_containers() {
    check_pod(
        json!([{"name": "s", "restartPolicy": "Always"}]),
        json!({"phase": "Running",
            "initContainerStatuses": [{"name": "s", "started": true, "ready": true, "restartCount": 1, "state": {"running": {}}}],
            "containerStatuses": [running("a"), running("b")]}),
        "3/3|Running|1",
    );
}

#[test]
fn restarts_say_how_long_ago_the_last_one_was() {
    let crashed = json!({
        "name": "b", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"finishedAt": "2026-01-01T23:59:30Z"}},
    });
    check_pod(
        json!([]),
        json!({"phase": "Running", "containerStatuses": [running("a"), crashed]}),
        "1/2|CrashLoopBackOff|2 (30s ago)",
    );
}

#[test]
fn ended_containers_name_their_reason() {
    let ended = |state: Value| json!({"phase": "Failed", "containerStatuses": [{"name": "a", "state": {"terminated": state}}]});
    check_pod(json!([]), ended(json!({"reason": "Error", "exitCode": 1})), "0/2|Error|0");
    check_pod(json!([]), ended(json!({"exitCode": 137})), "0/2|ExitCode:137|0");
    check_pod(json!([]), ended(json!({"signal": 9, "exitCode": 137})), "0/2|Signal:9|0");
}

#[test]
fn a_completed_container_beside_a_running_one_is_not_the_end() {
    let ended = json!({"name": "a", "state": {"terminated": {"reason": "Completed", "exitCode": 0}}});
    let status = |ready: &str| {
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [ended, running("b")]})
    };
    check_pod(json!([]), status("True"), "1/2|Running|0");
    check_pod(json!([]), status("False"), "1/2|NotReady|0");
}

#[test]
fn deleted_pods_are_terminating() {
    let pod = json!({"metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}});
    assert!(line(&Printer::built_in("", "Pod"), &pod).contains("|Terminating|"));
}

#[test]
fn gated_pods_say_so() {
    check_pod(
        json!([]),
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
        "0/2|SchedulingGated|0",
    );
}

#[test]
fn finished_pods_are_marked_in_their_row() {
    let row = Printer::built_in("", "Pod").row(
        &json!({"status": {"phase": "Succeeded"}}),
        IncludeObject::None,
        now(),
    );
    assert_eq!(row["conditions"][0]["reason"], "Succeeded");
}

#[test]
fn workloads() {
    let template =
        json!({"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]}});
    let selector = json!({"matchLabels": {"app": "x"}, "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["b", "a"]}, {"key": "old", "operator": "DoesNotExist"}]});
    let spec = json!({"replicas": 3, "template": template, "selector": selector});
    let status = json!({"replicas": 3, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2});
    let object = json!({"spec": spec, "status": status});
    check("apps", "Deployment", object.clone(), "x|2/3|1|2|120m|a,b|a:1,b:2|app=x,!old,tier in (a,b)");
    check("apps", "ReplicaSet", object.clone(), "x|3|3|2|120m|a,b|a:1,b:2|app=x,!old,tier in (a,b)");
    check("apps", "StatefulSet", object, "x|2/3|120m|a,b|a:1,b:2");
    check(
        "apps",
        "DaemonSet",
        json!({"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}, "status": {
            "desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
            "updatedNumberScheduled": 2, "numberAvailable": 1}}),
        "x|5|4|3|2|1|a=b|120m|||<none>",
    );
    check(
        "apps",
        "ControllerRevision",
        json!({"revision": 3, "metadata": {"ownerReferences": [
            {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "controller": true}]}}),
        "x|cloneset.apps.kruise.io/web|3|120m",
    );
}

#[test]
fn jobs() {
    check(
        "batch",
        "Job",
        json!({"spec": {"completions": 3}, "status": {
            "succeeded": 1, "startTime": "2026-01-01T23:59:00Z"}}),
        "x|Running|1/3|60s|120m|||<none>",
    );
    check(
        "batch",
        "Job",
        json!({"spec": {"parallelism": 2}, "status": {
            "succeeded": 1, "startTime": "2026-01-01T23:00:00Z", "completionTime": "2026-01-01T23:00:05Z",
            "conditions": [{"type": "Complete", "status": "True"}]}}),
        "x|Complete|1/1 of 2|5s|120m|||<none>",
    );
    check(
        "batch",
        "CronJob",
        json!({"spec": {"schedule": "* * * * *", "suspend": false}, "status": {
            "active": [{}], "lastScheduleTime": "2026-01-01T23:59:50Z"}}),
        "x|* * * * *|<none>|False|1|10s|120m|||<none>",
    );
}

#[test]
fn services() {
    check(
        "",
        "Service",
        json!({"spec": {"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": [
            {"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30000}]}}),
        "x|ClusterIP|10.0.0.1|<none>|80/TCP,53:30000/UDP|120m|<none>",
    );
    check(
        "",
        "Service",
        json!({"spec": {"type": "LoadBalancer"}}),
        "x|LoadBalancer|<none>|<pending>|<none>|120m|<none>",
    );
}

#[test]
fn nodes() {
    check(
        "",
        "Node",
        json!({
            "metadata": {"labels": {"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/a": ""}},
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": "v1.35.8", "osImage": "os"},
                "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]},
        }),
        "x|Ready,SchedulingDisabled|a,control-plane|120m|v1.35.8|10.0.0.9|<none>|os|<unknown>|<unknown>",
    );
}

#[test]
fn claims_and_volumes() {
    check(
        "",
        "PersistentVolumeClaim",
        json!({"spec": {"volumeName": "pv", "storageClassName": "fast", "volumeMode": "Filesystem"}, "status": {
            "phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce", "ReadWriteMany"]}}),
        "x|Bound|pv|1Gi|RWO,RWX|fast|<unset>|120m|Filesystem",
    );
    check(
        "",
        "PersistentVolumeClaim",
        json!({"status": {"phase": "Pending"}}),
        "x|Pending|||||<unset>|120m|<unset>",
    );
}

#[test]
fn events() {
    check(
        "",
        "Event",
        json!({
            "type": "Normal", "reason": "Created", "message": " made it\n", "count": 2,
            "firstTimestamp": "2026-01-01T23:58:00Z", "lastTimestamp": "2026-01-01T23:59:55Z",
            "involvedObject": {"kind": "Pod", "name": "p"}, "source": {"component": "kubelet", "host": "n1"},
        }),
        "5s|Normal|Created|pod/p||kubelet, n1|made it|2m|2|x",
    );
}

#[test]
fn budgets_and_autoscalers() {
    check(
        "policy",
        "PodDisruptionBudget",
        json!({"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}}),
        "x|50%|N/A|1|120m",
    );
    check(
        "autoscaling",
        "HorizontalPodAutoscaler",
        json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 5,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}]}}),
        "x|Deployment/web|cpu: <unknown>/80%|1|5|0|120m",
    );
}

#[test]
fn kinds_without_columns_show_when_they_were_created() {
    check("apiextensions.k8s.io", "CustomResourceDefinition", json!({}), "x|2026-01-01T22:00:00Z");
    check("rbac.authorization.k8s.io", "Role", json!({}), "x|2026-01-01T22:00:00Z");
}

#[test]
fn custom_columns_follow_their_paths_and_types() {
    let printer = Printer::custom(&[
        json!({"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"}),
        json!({"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}),
        json!({"name": "Paused", "type": "boolean", "jsonPath": ".spec.paused", "priority": 1}),
        json!({"name": "Missing", "type": "string", "jsonPath": ".spec.nothing"}),
        json!({"name": "Wrong", "type": "integer", "jsonPath": ".metadata.name"}),
        json!({"name": "Limit", "type": "string", "jsonPath": ".spec.limit"}),
        json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}),
    ]);
    let object = json!({
        "metadata": {"name": "x", "creationTimestamp": "2026-01-01T23:57:57Z"},
        "spec": {"replicas": 3, "paused": false, "limit": 5},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    assert_eq!(line(&printer, &object), "x|3|True|false|null|null|5|2m3s");
    assert_eq!(printer.columns()[3].priority, 1);
}

#[test]
fn custom_kinds_without_columns_show_their_age() {
    let printer = Printer::custom(&[]);
    let object = json!({"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}});
    assert_eq!(line(&printer, &object), "x|24h");
}

#[test]
fn a_table_carries_columns_rows_and_the_metadata_of_objects() {
    let printer = Printer::built_in("", "ConfigMap");
    let object = json!({"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}});
    let table =
        printer.table(json!({"resourceVersion": "7"}), [&object], IncludeObject::Metadata, true, now());
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["metadata"]["resourceVersion"], "7");
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
    assert_eq!(table["rows"][0]["cells"], json!(["x", 1, "<unknown>"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["rows"][0]["object"].get("data"), None);
    let next = printer.table(json!({}), [&object], IncludeObject::Object, false, now());
    assert_eq!(next["columnDefinitions"], Value::Null);
    assert_eq!(next["rows"][0]["object"]["data"]["a"], "b");
}

#[test]
fn every_printer_bears_any_object() {
    for kind in ["Pod", "Node", "Service", "Event", "Secret", "Unknown"] {
        for object in [json!(null), json!([]), json!({"metadata": 5, "spec": "x", "status": [1]})] {
            line(&Printer::built_in("", kind), &object);
        }
    }
}
