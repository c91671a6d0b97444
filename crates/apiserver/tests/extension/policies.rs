//! ValidatingAdmissionPolicies, and the one that keeps our daemons to their own nodes.

use kruise_api::catalogue;
use kruise_apiserver::admission::User;
use serde_json::{Value, json};

use crate::kit::Cluster;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A policy for config maps.
fn policy(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [
            {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
        ]}},
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

fn binding(policy: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": format!("{policy}-binding")},
        "spec": {"policyName": policy, "validationActions": ["Deny"]},
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

async fn enforce(cluster: &Cluster, name: &str, spec: Value, bound: Value) {
    cluster.post(&format!("{ADMISSION}/validatingadmissionpolicies"), &policy(name, spec)).await.ok();
    cluster.post(&format!("{ADMISSION}/validatingadmissionpolicybindings"), &binding(name, bound)).await.ok();
}

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

#[tokio::test(start_paused = true)]
async fn a_policy_counts_where_it_is_bound_and_what_it_says_is_told() {
    let cluster = Cluster::new();
    let spec = json!({
        "variables": [
            {"name": "keys", "expression": "has(object.data) ? object.data.map(k, k) : []"},
            {"name": "count", "expression": "size(variables.keys)"},
        ],
        "validations": [
            {"expression": "variables.count <= 2", "messageExpression": "'too many keys: ' + variables.keys.join(',')",
             "reason": "Forbidden"},
            {"expression": "!('secret' in variables.keys)", "message": "no secrets"},
            {"expression": "object.metadata.name != 'bad'"},
        ],
    });
    cluster.post(&format!("{ADMISSION}/validatingadmissionpolicies"), &policy("p", spec)).await.ok();
    cluster.post(MAPS, &map("free", &json!({"a": "", "b": "", "c": ""}))).await.ok();

    let bindings = format!("{ADMISSION}/validatingadmissionpolicybindings");
    let some = json!({"matchResources": {"namespaceSelector": {"matchLabels": {
        "kubernetes.io/metadata.name": "default"}}}});
    cluster.post(&bindings, &binding("p", some)).await.ok();
    let refused = cluster.post(MAPS, &map("a", &json!({"a": "", "b": "", "c": ""}))).await;
    let message =
        "ValidatingAdmissionPolicy 'p' with binding 'p-binding' denied request: too many keys: a,b,c";
    assert_eq!(refused.refused(), (403, format!("configmaps \"a\" is forbidden: {message}").as_str()));
    assert_eq!(refused.body["reason"], "Forbidden");
    assert_eq!(refused.body["details"]["causes"], json!([{"message": message}]));

    let refused = cluster.post(MAPS, &map("a", &json!({"secret": ""}))).await;
    let (code, message) = refused.refused();
    assert_eq!((code, refused.body["reason"].as_str()), (422, Some("Invalid")));
    assert!(message.ends_with("denied request: no secrets"), "{message}");
    let refused = cluster.post(MAPS, &map("bad", &json!({}))).await;
    assert!(refused.refused().1.ends_with("failed expression: object.metadata.name != 'bad'"));

    cluster.post(MAPS, &map("good", &json!({"a": ""}))).await.ok();
    cluster.post("/api/v1/namespaces", &json!({"metadata": {"name": "other"}})).await.ok();
    let elsewhere = "/api/v1/namespaces/other/configmaps";
    cluster.post(elsewhere, &map("a", &json!({"secret": ""}))).await.ok();
    cluster.delete(&format!("{bindings}/p-binding")).await.ok();
    cluster.post(MAPS, &map("bad", &json!({}))).await.ok();
}

#[tokio::test(start_paused = true)]
async fn actions_conditions_and_failures_are_as_the_author_wants_them() {
    let cluster = Cluster::new();
    let rule = json!([{"expression": "object.data.level == 'low'", "message": "too high"}]);
    enforce(
        &cluster,
        "warns",
        json!({"validations": rule, "failurePolicy": "Ignore", "matchConditions": [
            {"name": "creations", "expression": "request.operation == 'CREATE'"},
        ]}),
        json!({"validationActions": ["Warn", "Audit"]}),
    )
    .await;
    let reply = cluster.post(MAPS, &map("a", &json!({"level": "high"}))).await;
    assert_eq!(
        reply.warnings,
        [
            "299 - \"Validation failed for ValidatingAdmissionPolicy 'warns' with binding 'warns-binding': too high\""
        ]
    );
    reply.ok();
    let reply = cluster.patch(&format!("{MAPS}/a"), &json!({"data": {"level": "higher"}})).await;
    assert!(reply.warnings.is_empty(), "{:?}", reply.warnings);
    reply.ok();
    // The expression fails here, and failures are ignored.
    let reply = cluster.post(MAPS, &map("b", &json!({"other": ""}))).await;
    assert!(reply.warnings.is_empty(), "{:?}", reply.warnings);
    reply.ok();

    enforce(&cluster, "fails", json!({"validations": rule}), json!({})).await;
    let refused = cluster.post(MAPS, &map("c", &json!({"other": ""}))).await;
    assert_eq!(
        refused.refused(),
        (
            422,
            "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'fails' with binding 'fails-binding' denied request: \
             expression 'object.data.level == 'low'' resulted in error: no such key: level"
        )
    );
    // Deletions have no object; policies themselves are never held against policies.
    let refused = cluster.delete(&format!("{MAPS}/a")).await;
    assert_eq!(refused.refused().0, 422);
    cluster.delete(&format!("{ADMISSION}/validatingadmissionpolicies/fails")).await.ok();
    cluster.delete(&format!("{MAPS}/a")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_the_code_of_its_reason() {
    let cluster = Cluster::new();
    for (reason, code) in [("Forbidden", 403), ("RequestEntityTooLarge", 413), ("Invalid", 422)] {
        let name = reason.to_lowercase();
        let rule = json!([{"expression": format!("object.metadata.name != '{name}'"), "reason": reason}]);
        enforce(&cluster, &name, json!({"validations": rule}), json!({})).await;
        let refused = cluster.post(MAPS, &map(&name, &json!({}))).await;
        assert_eq!((refused.code, &refused.body["reason"]), (code, &json!(reason)));
        assert_eq!(refused.body["code"], code);
    }
    // Whoever is refused by a policy is known, so the one reason that says otherwise is none.
    let rule = json!([{"expression": "true", "reason": "Unauthorized"}]);
    let refused = cluster
        .post(&format!("{ADMISSION}/validatingadmissionpolicies"), &policy("u", json!({"validations": rule})))
        .await;
    assert!(refused.refused().1.contains("spec.validations[0].reason: Unsupported value"), "{refused:?}");
}

/// One expression may use a tenth of what a policy may, and the others are still asked.
#[tokio::test(start_paused = true)]
async fn an_expression_that_is_too_dear_fails_alone() {
    let cluster = Cluster::new();
    let dear = "object.data.all(k, object.data.all(l, k == l || k != l))";
    let rules = json!([{"expression": dear}, {"expression": "object.metadata.name != 'bad'"}]);
    enforce(&cluster, "p", json!({"validations": rules}), json!({})).await;
    let keys = |count: usize| -> Value { (0..count).map(|key| (format!("k{key}"), json!(""))).collect() };
    cluster.post(MAPS, &map("few", &keys(100))).await.ok();
    let refused = cluster.post(MAPS, &map("many", &keys(600))).await;
    let (code, message) = refused.refused();
    assert_eq!(code, 422);
    let end =
        format!("expression '{dear}' resulted in error: operation cancelled: actual cost limit exceeded");
    assert!(message.ends_with(&end), "{message}");
    enforce(&cluster, "q", json!({"validations": rules, "failurePolicy": "Ignore"}), json!({})).await;
    cluster.delete(&format!("{ADMISSION}/validatingadmissionpolicies/p")).await.ok();
    cluster.post(MAPS, &map("many", &keys(600))).await.ok();
    let refused = cluster.post(MAPS, &map("bad", &keys(600))).await;
    assert!(refused.refused().1.ends_with("failed expression: object.metadata.name != 'bad'"));
}

#[tokio::test(start_paused = true)]
async fn connections_are_held_against_policies() {
    let cluster = Cluster::new();
    let connects = json!({"resourceRules": [
        {"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec", "pods/portforward"]},
    ]});
    let rules = json!([
        {"expression": "object.kind != 'PodExecOptions' || object.command[0] != 'sh'", "message": "no shells"},
        {"expression": "object.kind != 'PodPortForwardOptions' || !(22 in object.ports)", "message": "no way in"},
    ]);
    enforce(&cluster, "p", json!({"matchConstraints": connects, "validations": rules}), json!({})).await;
    let pods = "/api/v1/namespaces/default/pods";
    let denied =
        "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p-binding' denied request:";
    // Nobody looks whether the pod is there.
    let refused = cluster.get(&format!("{pods}/web/exec?command=sh&stdout=1")).await;
    assert_eq!(refused.refused(), (422, format!("{denied} no shells").as_str()));
    let refused = cluster.post(&format!("{pods}/web/portforward?ports=80,22"), &Value::Null).await;
    assert_eq!(refused.refused(), (422, format!("{denied} no way in").as_str()));
    for path in ["exec?command=ls&stdout=1", "portforward?ports=80", "attach?stdout=1"] {
        assert_eq!(cluster.get(&format!("{pods}/web/{path}")).await.refused().0, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_come_from_objects() {
    let cluster = Cluster::new();
    cluster.post(MAPS, &map("limits", &json!({"most": "1"}))).await.ok();
    enforce(
        &cluster,
        "p",
        json!({
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [{"expression": "size(object.data) <= int(params.data.most)"}],
        }),
        json!({"paramRef": {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}}),
    )
    .await;
    cluster.post(MAPS, &map("a", &json!({"x": ""}))).await.ok();
    assert_eq!(cluster.post(MAPS, &map("b", &json!({"x": "", "y": ""}))).await.code, 422);
    // What the policy needs goes, and then nothing is let through.
    cluster.delete(&format!("{ADMISSION}/validatingadmissionpolicybindings/p-binding")).await.ok();
    cluster.delete(&format!("{MAPS}/limits")).await.ok();
    let bound =
        json!({"paramRef": {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}});
    cluster.post(&format!("{ADMISSION}/validatingadmissionpolicybindings"), &binding("p", bound)).await.ok();
    let refused = cluster.post(MAPS, &map("c", &json!({}))).await;
    let message = refused.refused().1;
    assert!(
        message.ends_with(
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
        ),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn policies_with_mistakes_are_refused() {
    let cluster = Cluster::new();
    let path = format!("{ADMISSION}/validatingadmissionpolicies");
    let check = async |spec: Value, expected: &str| {
        let refused = cluster.post(&path, &policy("p", spec)).await;
        let (code, message) = refused.refused();
        let whole =
            format!("ValidatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: {expected}");
        assert_eq!((code, message), (422, whole.as_str()));
    };
    check(
        json!({}),
        "[spec.validations: Required value: validations or auditAnnotations must contain at least one item, \
         spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item]",
    )
    .await;
    check(
        json!({"validations": [{"expression": "object.x +"}]}),
        "spec.validations[0].expression: Invalid value: \"object.x +\": compilation failed: ERROR: <input>:1:11: Syntax \
         error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, \
         NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | object.x +\n | ..........^",
    )
    .await;
    check(
        json!({"validations": [{"expression": "request.name"}]}),
        "spec.validations[0].expression: Invalid value: \"request.name\": must evaluate to bool but got string",
    )
    .await;
    check(
        json!({"variables": [{"name": "in", "expression": "1"}], "validations": [{"expression": "true"}]}),
        "spec.variables[0].name: Invalid value: \"in\": must be a valid CEL identifier",
    )
    .await;
    check(
        json!({"validations": [{"expression": "true"}], "matchConditions": [{"name": "c", "expression": "params.x"}]}),
        "spec.matchConditions[0].expression: Invalid value: \"params.x\": compilation failed: ERROR: <input>:1:1: \
         undeclared reference to 'params' (in container '')\n | params.x\n | ^",
    )
    .await;
    let bindings = format!("{ADMISSION}/validatingadmissionpolicybindings");
    let refused =
        cluster.post(&bindings, &binding("p", json!({"validationActions": ["Deny", "Warn"]}))).await;
    assert_eq!(refused.refused().0, 422);
}

#[tokio::test(start_paused = true)]
async fn a_node_daemon_writes_only_for_its_own_node() {
    let cluster = Cluster::new();
    let images = catalogue::by_kind("NodeImage").unwrap();
    // Stored as it is served, so that no webhook has to convert it.
    let mut definition = images.object();
    definition["spec"]["conversion"] = json!({"strategy": "None"});
    cluster.define(&definition).await.ok();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/policy/daemon.yaml");
    let objects = serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap();
    for object in &objects {
        let plural = match object["kind"].as_str().unwrap() {
            "ValidatingAdmissionPolicy" => "validatingadmissionpolicies",
            _ => "validatingadmissionpolicybindings",
        };
        cluster.post(&format!("{ADMISSION}/{plural}"), object).await.ok();
    }
    let pods = "/api/v1/namespaces/default/pods";
    for (pod, node) in [("here", "node-a"), ("there", "node-b")] {
        let spec = json!({"nodeName": node, "containers": [{"name": "main", "image": "i"}]});
        cluster.post(pods, &json!({"metadata": {"name": pod}, "spec": spec})).await.ok();
    }
    let version = images.versions.last().unwrap().name;
    let nodes = format!("/apis/{}/{version}/{}", images.group, images.plural);
    for node in ["node-a", "node-b"] {
        let object = json!({
            "apiVersion": format!("{}/{version}", images.group), "kind": "NodeImage", "metadata": {"name": node}, "spec": {},
        });
        cluster.post(&nodes, &object).await.ok();
    }

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/rbac/manager.yaml");
    let objects = serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (kind, plural) in [("ClusterRole", "clusterroles"), ("ClusterRoleBinding", "clusterrolebindings")] {
        let is_daemons = |object: &&Value| {
            object["kind"] == kind
                && object["metadata"]["name"].as_str().unwrap().starts_with("kruise-daemon")
        };
        let object = objects.iter().find(is_daemons).unwrap();
        cluster.post(&format!("/apis/rbac.authorization.k8s.io/v1/{plural}"), object).await.ok();
    }

    let daemon = |extra: &[(&str, &str)]| {
        let mut user = User::service_account("kruise-system", "kruise-daemon");
        user.extra =
            extra.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()])).collect();
        user
    };
    let own = daemon(&[("authentication.kubernetes.io/node-name", "node-a")]);
    let report = json!({"status": {"message": "from the daemon"}});
    cluster.patch_as(&own, &format!("{pods}/here/status"), &report).await.ok();
    let refused = cluster.patch_as(&own, &format!("{pods}/there/status"), &report).await;
    assert_eq!(
        refused.refused(),
        (
            403,
            "pods \"there\" is forbidden: ValidatingAdmissionPolicy 'kruise-daemon-own-node' with binding \
             'kruise-daemon-own-node' denied request: the node daemon of node-a may not report on objects of node \"node-b\""
        )
    );
    assert!(cluster.get(&format!("{pods}/there")).await.ok()["status"].get("message").is_none());
    let image = json!({"status": {"desired": 1, "succeeded": 0, "failed": 0, "pulling": 0}});
    cluster.patch_as(&own, &format!("{nodes}/node-a/status"), &image).await.ok();
    assert_eq!(cluster.patch_as(&own, &format!("{nodes}/node-b/status"), &image).await.code, 403);

    // A token that is of no pod says no node, and is good for nothing.
    let nowhere = daemon(&[("authentication.kubernetes.io/credential-id", "x")]);
    let refused = cluster.patch_as(&nowhere, &format!("{pods}/here/status"), &report).await;
    let (code, message) = refused.refused();
    assert_eq!(code, 403);
    assert!(message.ends_with("names no node: it must use the token of its pod"), "{message}");
    // Others are not meant.
    cluster.patch(&format!("{pods}/there/status"), &report).await.ok();
}
