//! Who may do what: roles, bindings, tokens, impersonation and reviews, as clients see them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kruise_apiserver::ApiServer;
use kruise_apiserver::admission::User;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const AUTHZ: &str = "/apis/authorization.k8s.io/v1";

fn server() -> ApiServer {
    ApiServer::builder().seed(1).build()
}

/// Sends `METHOD path` in somebody's name, with headers as `name: value`. A patch with a manager of fields applies.
async fn send(
    server: &ApiServer,
    user: Option<User>,
    line: &str,
    headers: &[&str],
    body: Value,
) -> (u16, Value) {
    let (method, path) = line.split_once(' ').unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut request = Request::builder().method(method.parse::<Method>().unwrap()).uri(path);
    let kind = match method {
        "PATCH" if path.contains("fieldManager=") => "application/apply-patch+yaml",
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    request = request.header("content-type", kind);
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name, value.as_bytes());
    }
    let mut request = request.body(Full::new(Bytes::from(body))).unwrap();
    if let Some(user) = user {
        request.extensions_mut().insert(user);
    }
    let response = server.clone().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (
        code,
        serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into()),
    )
}

/// What the cluster's administrator does, which succeeds.
async fn master(server: &ApiServer, line: &str, body: Value) -> Value {
    let (code, answer) = send(server, None, line, &[], body).await;
    assert!(code < 300, "{line}: {answer}");
    answer
}

fn jane() -> Option<User> {
    Some(User::named("jane", &["developers"]))
}

async fn role(server: &ApiServer, name: &str, rules: Value) {
    let line = format!("POST {RBAC}/namespaces/default/roles");
    master(server, &line, json!({"metadata": {"name": name}, "rules": rules})).await;
}

async fn bind(server: &ApiServer, name: &str, role: &str, subject: Value) {
    let line = format!("POST {RBAC}/namespaces/default/rolebindings");
    let (kind, role) = role.split_once('/').unwrap();
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role});
    master(server, &line, json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})).await;
}

fn group(name: &str) -> Value {
    json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name})
}

fn message(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["message"].as_str().unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn nobody_may_do_anything_that_no_role_allows() {
    let server = server();
    let answer = send(&server, jane(), "GET /api/v1/namespaces/default/pods", &[], Value::Null).await;
    assert_eq!(
        message(&answer),
        (
            403,
            "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\""
        )
    );
    assert_eq!(answer.1["reason"], "Forbidden");
    assert_eq!(answer.1["details"], json!({"kind": "pods"}));
    let answer = send(&server, jane(), "GET /apis/apps/v1/deployments", &[], Value::Null).await;
    assert_eq!(
        message(&answer),
        (
            403,
            "deployments.apps is forbidden: User \"jane\" cannot list resource \"deployments\" in API group \"apps\" at \
             the cluster scope"
        )
    );
    let answer = send(&server, jane(), "GET /api/v1/namespaces/default/pods/a/log", &[], Value::Null).await;
    assert_eq!(
        message(&answer),
        (
            403,
            "pods \"a\" is forbidden: User \"jane\" cannot get resource \"pods/log\" in API group \"\" in the namespace \
             \"default\""
        )
    );
    let answer = send(&server, jane(), "GET /nonsense", &[], Value::Null).await;
    assert_eq!(message(&answer), (403, "forbidden: User \"jane\" cannot get path \"/nonsense\""));
    // Discovery is for everybody who is known, health for everybody.
    assert_eq!(send(&server, jane(), "GET /api", &[], Value::Null).await.0, 200);
    let nobody = || Some(User::anonymous());
    assert_eq!(send(&server, nobody(), "GET /api", &[], Value::Null).await.0, 403);
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(send(&server, nobody(), &format!("GET {path}"), &[], Value::Null).await.0, 200, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn roles_and_bindings_allow_as_long_as_they_are_there() {
    let server = server();
    let list = "GET /api/v1/namespaces/default/pods";
    role(&server, "reader", json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]))
        .await;
    bind(&server, "readers", "Role/reader", group("developers")).await;
    assert_eq!(send(&server, jane(), list, &[], Value::Null).await.0, 200);
    assert_eq!(send(&server, jane(), "GET /api/v1/pods", &[], Value::Null).await.0, 403);
    assert_eq!(send(&server, jane(), &format!("{list}?watch=true"), &[], Value::Null).await.0, 403);
    let john = || Some(User::named("john", &[]));
    assert_eq!(send(&server, john(), list, &[], Value::Null).await.0, 403);
    // A changed role counts at once, and so does one that is gone, which is told.
    let path = format!("{RBAC}/namespaces/default/roles/reader");
    master(&server, &format!("PATCH {path}"), json!({"rules": []})).await;
    assert_eq!(send(&server, jane(), list, &[], Value::Null).await.0, 403);
    master(&server, &format!("DELETE {path}"), Value::Null).await;
    let answer = send(&server, jane(), list, &[], Value::Null).await;
    assert_eq!(
        message(&answer),
        (
            403,
            "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \
             \"default\": RBAC: role.rbac.authorization.k8s.io \"reader\" not found"
        )
    );
    bind(&server, "admins", "ClusterRole/view", json!({"kind": "User", "name": "jane"})).await;
    assert_eq!(send(&server, jane(), list, &[], Value::Null).await.0, 200);
    assert_eq!(
        send(&server, jane(), "GET /api/v1/namespaces/default/secrets", &[], Value::Null).await.0,
        403
    );
    master(&server, &format!("DELETE {RBAC}/namespaces/default/rolebindings/admins"), Value::Null).await;
    assert_eq!(send(&server, jane(), list, &[], Value::Null).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn an_update_that_creates_needs_the_right_to_create() {
    let server = server();
    role(
        &server,
        "w",
        json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]}]),
    )
    .await;
    bind(&server, "w", "Role/w", group("developers")).await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a";
    let lease = json!({"metadata": {"name": "a"}, "spec": {}});
    let answer = send(&server, jane(), &format!("PUT {path}"), &[], lease).await;
    assert_eq!(
        message(&answer),
        (
            403,
            "leases.coordination.k8s.io \"a\" is forbidden: User \"jane\" cannot create resource \"leases\" in API group \
             \"coordination.k8s.io\" in the namespace \"default\""
        )
    );
}

#[tokio::test(start_paused = true)]
async fn who_may_only_patch_cannot_create_by_applying() {
    let server = server();
    role(&server, "p", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}])).await;
    bind(&server, "p", "Role/p", group("developers")).await;
    let line = "PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m";
    let object = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    let answer = send(&server, jane(), line, &[], object(json!({"x": "1"}))).await;
    assert_eq!(
        message(&answer),
        (
            403,
            "configmaps \"a\" is forbidden: User \"jane\" cannot create resource \"configmaps\" in API group \"\" in the \
             namespace \"default\""
        )
    );
    master(&server, line, object(json!({"x": "1"}))).await;
    let answer = send(&server, jane(), line, &[], object(json!({"x": "1", "y": "2"}))).await;
    assert_eq!((answer.0, &answer.1["data"]["y"]), (200, &json!("2")));
}

#[tokio::test(start_paused = true)]
async fn nobody_gives_away_more_than_they_have() {
    let server = server();
    bind(&server, "admins", "ClusterRole/admin", group("developers")).await;
    let roles = format!("POST {RBAC}/namespaces/default/roles");
    let asks = |name: &str, resource: &str| {
        json!({
            "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get", "list"]}],
        })
    };
    assert_eq!(send(&server, jane(), &roles, &[], asks("fine", "pods")).await.0, 201);
    let answer = send(&server, jane(), &roles, &[], asks("more", "nodes")).await;
    assert_eq!(
        message(&answer),
        (
            403,
            "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"jane\" (groups=[\"developers\" \
             \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], \
             Resources:[\"nodes\"], Verbs:[\"get\" \"list\"]}"
        )
    );
    let path = format!("PATCH {RBAC}/namespaces/default/roles/fine");
    let more = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    assert_eq!(send(&server, jane(), &path, &[], more).await.0, 403);
    let labels = json!({"metadata": {"finalizers": ["example.com/a"]}});
    assert_eq!(send(&server, jane(), &path, &[], labels).await.0, 200);

    let bindings = format!("POST {RBAC}/namespaces/default/rolebindings");
    let binding = |role: &str| {
        json!({
            "metadata": {"name": role}, "subjects": [group("all")],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        })
    };
    assert_eq!(send(&server, jane(), &bindings, &[], binding("edit")).await.0, 201);
    let answer = send(&server, jane(), &bindings, &[], binding("cluster-admin")).await;
    assert!(
        message(&answer)
            .1
            .contains("{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs"),
        "{answer:?}"
    );
    // Who may bind it by name needs no more.
    let rule = json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["bind"],
        "resourceNames": ["cluster-admin"],
    }]);
    role(&server, "binder", rule).await;
    bind(&server, "binders", "Role/binder", group("developers")).await;
    assert_eq!(send(&server, jane(), &bindings, &[], binding("cluster-admin")).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_binding_keeps_its_role_and_faults_are_named() {
    let server = server();
    role(&server, "r", json!([])).await;
    bind(&server, "b", "Role/r", group("g")).await;
    let line = format!("PATCH {RBAC}/namespaces/default/rolebindings/b");
    let answer = send(&server, None, &line, &[], json!({"roleRef": {"name": "other"}})).await;
    assert_eq!(
        message(&answer),
        (
            422,
            "RoleBinding.rbac.authorization.k8s.io \"b\" is invalid: roleRef: Invalid value: \
             {\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\",\"name\":\"other\"}: cannot change roleRef"
        )
    );
    let line = format!("POST {RBAC}/clusterrolebindings");
    let wrong = json!({
        "metadata": {"name": "x"}, "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "s"}, {"kind": "Robot", "name": "r"}],
    });
    let answer = send(&server, None, &line, &[], wrong).await;
    assert_eq!(
        message(&answer),
        (
            422,
            "ClusterRoleBinding.rbac.authorization.k8s.io \"x\" is invalid: [roleRef.kind: Unsupported value: \"Role\": \
             supported values: \"ClusterRole\", subjects[0].namespace: Required value, subjects[1].kind: Unsupported \
             value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"]"
        )
    );
    let line = format!("POST {RBAC}/namespaces/default/roles");
    let wrong = json!({"metadata": {"name": "x"}, "rules": [
        {"verbs": ["get"]}, {"apiGroups": [""], "resources": ["pods"]}, {"nonResourceURLs": ["/a"], "verbs": ["get"]},
    ]});
    let answer = send(&server, None, &line, &[], wrong).await;
    assert_eq!(
        message(&answer),
        (
            422,
            "Role.rbac.authorization.k8s.io \"x\" is invalid: [rules[0].apiGroups: Required value: resource rules must \
             supply at least one api group, rules[0].resources: Required value: resource rules must supply at least one \
             resource, rules[1].verbs: Required value: verbs must contain at least one value, rules[2].nonResourceURLs: \
             Invalid value: [\"/a\"]: namespaced rules cannot apply to non-resource URLs]"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn who_may_impersonate_is_somebody_else() {
    let server = server();
    let whoami = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
    let headers = [
        "impersonate-user: bob",
        "impersonate-group: one",
        "impersonate-group: two",
        "impersonate-uid: u-1",
        "impersonate-extra-example.com%2fscope: a",
    ];
    let (code, answer) = send(&server, None, whoami, &headers, json!({})).await;
    assert_eq!(code, 201);
    assert_eq!(
        answer["status"]["userInfo"],
        json!({
            "username": "bob", "uid": "u-1", "groups": ["one", "two", "system:authenticated"],
            "extra": {"example.com/scope": ["a"]},
        })
    );
    let account = ["impersonate-user: system:serviceaccount:default:robot"];
    let (_, answer) = send(&server, None, whoami, &account, json!({})).await;
    assert_eq!(
        answer["status"]["userInfo"]["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    // The rights are those of the other one.
    let answer = send(&server, None, "GET /api/v1/nodes", &["impersonate-user: bob"], Value::Null).await;
    assert_eq!(
        message(&answer),
        (
            403,
            "nodes is forbidden: User \"bob\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
        )
    );
    let answer = send(&server, jane(), whoami, &["impersonate-user: bob"], json!({})).await;
    assert_eq!(
        message(&answer),
        (
            403,
            "users \"bob\" is forbidden: User \"jane\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
        )
    );
    let answer = send(&server, None, whoami, &["impersonate-group: g"], json!({})).await;
    assert_eq!(message(&answer), (400, "requested [{Group  g    }] without impersonating a user"));
}

/// Whom a connection is for is decided once: the impersonated user need not be one who may impersonate.
#[tokio::test(start_paused = true)]
async fn who_may_connect_may_be_impersonated() {
    let server = server();
    role(
        &server,
        "exec",
        json!([{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]}]),
    )
    .await;
    bind(&server, "exec", "Role/exec", group("developers")).await;
    let headers = ["impersonate-user: bob", "impersonate-group: developers"];
    let line = "POST /api/v1/namespaces/default/pods/web/exec?command=sh&stdout=1";
    let answer = send(&server, None, line, &headers, Value::Null).await;
    assert_eq!(message(&answer), (404, "pods \"web\" not found"));
}

/// Whoever gives up rights by asking as somebody else must not keep them because of a letter in a name.
#[tokio::test(start_paused = true)]
async fn names_of_other_users_need_not_be_ascii() {
    let server = server();
    let delete = "DELETE /api/v1/namespaces/default";
    let answer = send(&server, None, delete, &["impersonate-user: jürgen"], Value::Null).await;
    assert_eq!(
        message(&answer),
        (
            403,
            "namespaces \"default\" is forbidden: User \"jürgen\" cannot delete resource \"namespaces\" in API group \"\" \
             in the namespace \"default\""
        )
    );
    let whoami = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
    let headers = ["impersonate-user: system:serviceaccount:default:robot", "impersonate-group: größer"];
    let (_, answer) = send(&server, None, whoami, &headers, json!({})).await;
    assert_eq!(answer["status"]["userInfo"]["groups"], json!(["größer", "system:authenticated"]));
}

#[tokio::test(start_paused = true)]
async fn a_user_that_only_looks_like_a_service_account_is_a_user() {
    let server = server();
    role(
        &server,
        "i",
        json!([{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}]),
    )
    .await;
    bind(&server, "i", "Role/i", group("developers")).await;
    let whoami = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
    let ask = async |name: &str| {
        let header = format!("impersonate-user: system:serviceaccount:{name}");
        send(&server, jane(), whoami, &[&header], json!({})).await
    };
    assert_eq!(ask("default:robot").await.0, 201);
    for name in ["default:robot:x", "default:", "default:Robot"] {
        let answer = ask(name).await;
        let (code, message) = message(&answer);
        assert_eq!(code, 403);
        assert!(
            message.starts_with(&format!("users \"system:serviceaccount:{name}\" is forbidden")),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn reviews_say_who_may_what_and_why() {
    let server = server();
    bind(&server, "viewers", "ClusterRole/view", group("developers")).await;
    let review = |attributes: Value| json!({"spec": {"resourceAttributes": attributes}});
    let own = format!("POST {AUTHZ}/selfsubjectaccessreviews");
    let pods = json!({"namespace": "default", "verb": "list", "resource": "pods"});
    let (code, answer) = send(&server, jane(), &own, &[], review(pods.clone())).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(
        answer["status"],
        json!({
            "allowed": true,
            "reason": "RBAC: allowed by RoleBinding \"viewers/default\" of ClusterRole \"view\" to Group \"developers\"",
        })
    );
    let secrets = json!({"namespace": "default", "verb": "list", "resource": "secrets"});
    let (_, answer) = send(&server, jane(), &own, &[], review(secrets)).await;
    assert_eq!(answer["status"], json!({"allowed": false}));
    let (_, answer) = send(&server, None, &own, &[], review(pods.clone())).await;
    assert_eq!(answer["status"], json!({"allowed": true}), "an administrator needs no reason");

    let about = format!("POST {AUTHZ}/subjectaccessreviews");
    let mut asked = review(pods);
    asked["spec"]["user"] = "john".into();
    asked["spec"]["groups"] = json!(["developers"]);
    assert_eq!(master(&server, &about, asked.clone()).await["status"]["allowed"], true);
    assert_eq!(send(&server, jane(), &about, &[], asked.clone()).await.0, 403, "nobody asks about others");
    let local = format!("POST {AUTHZ}/namespaces/kube-system/localsubjectaccessreviews");
    let answer = send(&server, None, &local, &[], asked).await;
    assert_eq!(
        message(&answer),
        (
            422,
            "LocalSubjectAccessReview.authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: Invalid \
             value: \"default\": must match metadata.namespace"
        )
    );
    let rules = format!("POST {AUTHZ}/selfsubjectrulesreviews");
    let (_, answer) = send(&server, jane(), &rules, &[], json!({"spec": {"namespace": "default"}})).await;
    let status = &answer["status"];
    assert_eq!(status["incomplete"], false);
    let can = |resource: &str| {
        status["resourceRules"]
            .as_array()
            .unwrap()
            .iter()
            .any(|rule| rule["resources"].as_array().unwrap().contains(&resource.into()))
    };
    assert!(can("pods") && can("selfsubjectreviews") && !can("secrets"));
    let answer = send(&server, jane(), &rules, &[], json!({"spec": {}})).await;
    assert_eq!(message(&answer), (400, "no namespace on request"));
}

#[tokio::test(start_paused = true)]
async fn a_token_of_an_account_is_believed_until_it_ends() {
    let server = server();
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let line = format!("POST {path}");
    let request = master(&server, &line, json!({"spec": {"expirationSeconds": 600}})).await;
    assert_eq!(request["kind"], "TokenRequest");
    assert_eq!(request["spec"]["audiences"], json!(["https://kubernetes.default.svc.cluster.local"]));
    assert_eq!(request["status"]["expirationTimestamp"], "2026-01-01T00:10:00Z");
    let token = request["status"]["token"].as_str().unwrap().to_owned();
    assert_eq!(token.split('.').count(), 3);

    let review = async |token: &str, audiences: Value| {
        let asked = json!({"spec": {"token": token, "audiences": audiences}});
        master(&server, "POST /apis/authentication.k8s.io/v1/tokenreviews", asked).await["status"].clone()
    };
    let seen = review(&token, Value::Null).await;
    assert_eq!(seen["authenticated"], true);
    assert_eq!(seen["user"]["username"], "system:serviceaccount:default:default");
    assert_eq!(seen["audiences"], json!(["https://kubernetes.default.svc.cluster.local"]));
    assert_eq!(review(&token, json!(["vault"])).await["authenticated"], Value::Null);
    assert_eq!(review("a.b.c", Value::Null).await["error"], "invalid bearer token");

    tokio::time::advance(Duration::from_secs(599)).await;
    assert!(server.authenticate_token(&token, &[]).is_ok());
    tokio::time::advance(Duration::from_secs(1)).await;
    let error = server.authenticate_token(&token, &[]).unwrap_err();
    assert_eq!(error, "[invalid bearer token, service account token has expired]");

    let answer = send(&server, None, &line, &[], json!({"spec": {"expirationSeconds": 10}})).await;
    assert_eq!(
        message(&answer),
        (
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 10: may not \
             specify a duration less than 10 minutes"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_what_it_is_bound_to() {
    let server = server();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    master(&server, "POST /api/v1/namespaces/default/pods", pod).await;
    let line = "POST /api/v1/namespaces/default/serviceaccounts/default/token";
    let bound = json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}});
    let token = master(&server, line, bound).await["status"]["token"].as_str().unwrap().to_owned();
    let (user, _) = server.authenticate_token(&token, &[]).unwrap();
    assert_eq!(user.extra["authentication.kubernetes.io/pod-name"], ["p"]);
    master(&server, "DELETE /api/v1/namespaces/default/pods/p?gracePeriodSeconds=0", Value::Null).await;
    let error = server.authenticate_token(&token, &[]).unwrap_err();
    assert_eq!(error, "[invalid bearer token, service account token has been invalidated]");
    let missing = json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "q"}}});
    assert_eq!(message(&send(&server, None, line, &[], missing).await), (404, "pods \"q\" not found"));
    // The keys are there for everybody who has to believe tokens.
    let (code, keys) = send(&server, None, "GET /openid/v1/jwks", &[], Value::Null).await;
    assert_eq!(
        (code, &keys["keys"][0]["kty"], &keys["keys"][0]["alg"]),
        (200, &"EC".into(), &"ES256".into())
    );
    let (_, about) = send(&server, None, "GET /.well-known/openid-configuration", &[], Value::Null).await;
    assert_eq!(about["issuer"], "https://kubernetes.default.svc.cluster.local");
}

#[tokio::test(start_paused = true)]
async fn a_node_reads_what_its_pods_need_and_writes_its_own() {
    let server = server();
    for node in ["n1", "n2"] {
        master(&server, "POST /api/v1/nodes", json!({"metadata": {"name": node}})).await;
    }
    for secret in ["used", "other"] {
        master(&server, "POST /api/v1/namespaces/default/secrets", json!({"metadata": {"name": secret}}))
            .await;
    }
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "v", "secret": {"secretName": "used"}}],
    }});
    master(&server, "POST /api/v1/namespaces/default/pods", pod).await;
    server.local().bind("default", "p", "n1").await.unwrap();
    let node = |name: &str| Some(User::named(format!("system:node:{name}"), &["system:nodes"]));
    let secret = |name: &str| format!("GET /api/v1/namespaces/default/secrets/{name}");
    assert_eq!(send(&server, node("n1"), &secret("used"), &[], Value::Null).await.0, 200);
    let answer = send(&server, node("n1"), &secret("other"), &[], Value::Null).await;
    assert!(
        message(&answer).1.ends_with(": no relationship found between node 'n1' and this object"),
        "{answer:?}"
    );
    assert_eq!(send(&server, node("n2"), &secret("used"), &[], Value::Null).await.0, 403);
    let status = json!({"status": {"phase": "Running"}});
    let line = "PATCH /api/v1/namespaces/default/pods/p/status";
    assert_eq!(send(&server, node("n2"), line, &[], status.clone()).await.0, 403);
    assert_eq!(send(&server, node("n1"), line, &[], status).await.0, 200);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(send(&server, node("n1"), "PATCH /api/v1/nodes/n1", &[], labels.clone()).await.0, 200);
    assert_eq!(send(&server, node("n1"), "PATCH /api/v1/nodes/n2", &[], labels).await.0, 403);
}
