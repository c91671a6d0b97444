use super::*;
use serde_json::json;

#[track_caller]
fn check(type_name: &str, mut value: Value, expected: &Value) {
    canonical(type_name, &mut value, Unknown::Drop).expect("fits its type");
    assert_eq!(&value, expected);
}

#[test]
fn every_line_of_the_table_is_understood() {
    for line in TYPES.lines() {
        let (name, members) = line.split_once(' ').unwrap_or((line, ""));
        let index = shapes().by_name[name];
        assert_eq!(shapes().shapes[index].fields.len(), members.split_whitespace().count(), "{name}");
    }
}

#[test]
fn empty_optional_members_disappear_and_structs_by_value_appear() {
    check(
        "core.Container",
        json!({"name": "a", "env": [{"name": "A", "value": ""}], "args": [], "stdin": false, "tty": null}),
        &json!({"name": "a", "env": [{"name": "A"}], "resources": {}}),
    );
}

#[test]
fn pointers_keep_their_zero_values() {
    check(
        "core.PodSpec",
        json!({"containers": [], "hostUsers": false, "hostPID": false, "priority": 0, "securityContext": {}}),
        &json!({"containers": [], "hostUsers": false, "priority": 0, "securityContext": {}}),
    );
}

#[test]
fn required_members_are_written_even_when_absent() {
    check("core.GRPCAction", json!({"port": 9}), &json!({"port": 9, "service": null}));
    check(
        "core.PodTemplateSpec",
        json!({}),
        &json!({
        "metadata": {"creationTimestamp": null}, "spec": {"containers": null}}),
    );
    check(
        "core.ResourceFieldSelector",
        json!({"resource": "limits.cpu"}),
        &json!({"resource": "limits.cpu", "divisor": "0"}),
    );
}

#[test]
fn quantities_become_canonical() {
    check(
        "core.ResourceRequirements",
        json!({"limits": {"cpu": 0.05, "memory": "1024Ki"}, "requests": {}}),
        &json!({"limits": {"cpu": "50m", "memory": "1Mi"}}),
    );
}

#[test]
fn unknown_members_are_named_with_their_path() {
    let pod = json!({"spec": {"containers": [{"name": "a", "foo": 1}], "bar": {}}});
    let found = unknown_members("core.Pod", &pod).expect("fits its type");
    assert_eq!(found, ["spec.bar", "spec.containers[0].foo"]);
}

#[test]
fn unknown_members_can_be_kept() {
    let mut container = json!({"name": "a", "foo": 1});
    canonical("core.Container", &mut container, Unknown::Keep).expect("fits its type");
    assert_eq!(container, json!({"name": "a", "foo": 1, "resources": {}}));
}

#[test]
fn wrong_types_are_named_as_a_server_names_them() {
    let mut deployment = json!({"spec": {"replicas": "3"}});
    let error = canonical("apps.Deployment", &mut deployment, Unknown::Drop).expect_err("text is no number");
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    );
}

#[test]
fn kinds_are_found_by_group() {
    assert_eq!(type_of("", "v1", "Pod"), Some("core.Pod"));
    assert_eq!(type_of("apps", "v1", "Deployment"), Some("apps.Deployment"));
    assert_eq!(type_of("rbac.authorization.k8s.io", "v1", "Role"), Some("rbac.Role"));
    assert_eq!(
        type_of("autoscaling", "v1", "HorizontalPodAutoscaler"),
        Some("autoscaling1.HorizontalPodAutoscaler")
    );
    assert_eq!(type_of("apps.kruise.io", "v1", "CloneSet"), None);
}

#[test]
fn times_have_no_fraction_and_precise_times_have_six_digits() {
    check(
        "coordination.LeaseSpec",
        json!({"renewTime": "2026-01-01T00:00:00.5Z", "acquireTime": "2026-01-01T00:00:00Z"}),
        &json!({"renewTime": "2026-01-01T00:00:00.500000Z", "acquireTime": "2026-01-01T00:00:00.000000Z"}),
    );
    check(
        "core.ContainerStateRunning",
        json!({"startedAt": "2026-01-01T00:00:00.999Z"}),
        &json!({"startedAt": "2026-01-01T00:00:00Z"}),
    );
    let odd = json!({"startedAt": "2026-01-01T00:00:00+01:00"});
    check("core.ContainerStateRunning", odd.clone(), &odd);
}
