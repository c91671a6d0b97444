//! Admission webhooks.

use std::time::Duration;

use kruise_apiserver::store::Draft;
use serde_json::{Value, json};

use crate::kit::{Cluster, DEFINITION, Seen, WIDGETS, version, widget, widgets};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// A webhook for config maps at a path of the Service `hooks`, changed by `more`.
fn hook(name: &str, more: Value) -> Value {
    let mut hook = json!({
        "name": format!("{name}.example.com"),
        "clientConfig": {"service": {"namespace": "default", "name": "hooks", "path": format!("/{name}")}},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    });
    for (key, value) in more.as_object().unwrap() {
        hook[key] = value.clone();
    }
    hook
}

async fn configure(cluster: &Cluster, kind: &str, name: &str, hooks: &[Value]) {
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": name}, "webhooks": hooks,
    });
    let path = format!("{CONFIGURATIONS}/{}webhookconfigurations", kind.to_lowercase());
    cluster.post(&path, &object).await.ok();
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"trace": ""}})
}

/// The response of a webhook that appends its path to `data.trace`.
fn appended(path: &str, request: &Value) -> Value {
    let trace = format!("{}{path}", request["object"]["data"]["trace"].as_str().unwrap_or_default());
    patched(&json!([{"op": "replace", "path": "/data/trace", "value": trace}]))
}

fn patched(patch: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": base64(patch.to_string().as_bytes())})
}

fn base64(bytes: &[u8]) -> String {
    let letters: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0_u8; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for i in 0..4_usize {
            let letter = letters[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() { letter } else { '=' });
        }
    }
    out
}

fn says_no(message: &str) -> Value {
    json!({"allowed": false, "status": {"code": 403, "reason": "Forbidden", "message": message}})
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_asked_about_connections() {
    let cluster = Cluster::new();
    let seen = Seen::default();
    let asked = seen.clone();
    cluster.serve(move |path, request| {
        asked.add(json!([
            path,
            request["operation"],
            request["kind"],
            request["subResource"],
            request["object"]
        ]));
        async move {
            match path.as_str() {
                "/changes" => patched(&json!([{"op": "replace", "path": "/command", "value": ["id"]}])),
                _ => says_no("not today"),
            }
        }
    });
    let rules = json!({"rules": [
        {"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/*"]},
    ]});
    configure(&cluster, "Mutating", "a", &[hook("changes", rules.clone())]).await;
    configure(&cluster, "Validating", "b", &[hook("refuses", rules)]).await;
    let path = "/api/v1/namespaces/default/pods/web/exec?command=sh&stdin=1&tty=1&container=c";
    let refused = cluster.get(path).await;
    let message = "admission webhook \"refuses.example.com\" denied the request: not today";
    assert_eq!(refused.refused(), (403, message));
    let told = |path: &str, command: &str| {
        let object = json!({
            "kind": "PodExecOptions", "apiVersion": "v1", "command": [command], "stdin": true, "tty": true, "container": "c",
        });
        json!([path, "CONNECT", {"group": "", "version": "v1", "kind": "PodExecOptions"}, "exec", object])
    };
    assert_eq!(seen.take(), [told("/changes", "sh"), told("/refuses", "id")]);
}

/// Options of a connection have no labels, and do not even lack one.
#[tokio::test(start_paused = true)]
async fn a_webhook_for_some_objects_is_not_asked_about_connections() {
    let cluster = Cluster::new();
    cluster.serve(|_, _| async { says_no("not today") });
    let rules = json!([{"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/*"]}]);
    let lacks = json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
    let refuses = hook("refuses", json!({"rules": rules, "objectSelector": lacks}));
    configure(&cluster, "Validating", "a", &[refuses]).await;
    let answer = cluster.get("/api/v1/namespaces/default/pods/web/exec?command=sh&stdout=1").await;
    assert_eq!(answer.refused(), (404, "pods \"web\" not found"));
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_a_webhook_made_unreadable_is_refused() {
    let cluster = Cluster::new();
    cluster.serve(|path, _| async move {
        let value = match path.as_str() {
            "/float" => json!(3.0),
            "/text" => json!("3"),
            "/large" => json!(3_000_000_000_u64),
            _ => json!(3),
        };
        patched(&json!([{"op": "add", "path": "/spec/replicas", "value": value}]))
    });
    cluster
        .define(&widgets(&json!({"type": "object", "properties": {"replicas": {"type": "integer"}}})))
        .await
        .ok();
    tokio::time::sleep(Duration::from_secs(10)).await;
    cluster.post(WIDGETS, &widget("a", &json!({"replicas": 1}))).await.ok();
    let rules =
        json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/scale"]}]);
    let scale = format!("{WIDGETS}/a/scale");
    for (name, found) in
        [("float", "number 3.0"), ("text", "string"), ("large", "number 3000000000"), ("good", "")]
    {
        configure(&cluster, "Mutating", name, &[hook(name, json!({"rules": rules}))]).await;
        let answer = cluster.patch(&scale, &json!({"spec": {"replicas": 2}})).await;
        if found.is_empty() {
            assert_eq!(answer.ok()["spec"]["replicas"], 3);
            continue;
        }
        let message = format!(
            "Internal error occurred: json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas of \
             type int32"
        );
        assert_eq!(answer.refused(), (500, message.as_str()));
        assert_eq!(cluster.get(&scale).await.ok()["spec"]["replicas"], 1);
        cluster.delete(&format!("{CONFIGURATIONS}/mutatingwebhookconfigurations/{name}")).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_port_that_is_taken_while_a_webhook_thinks_is_not_given_twice() {
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str, port: u32| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
            "type": "NodePort", "ports": [{"port": 80, "nodePort": port}],
        }})
    };
    let cluster = Cluster::new();
    cluster.post(services, &service("changed", 30001)).await.ok();
    let local = cluster.server.local();
    cluster.serve(move |_, request| {
        let local = local.clone();
        async move {
            let spec = &request["object"]["spec"];
            if spec["ports"][0]["nodePort"] == 30002 && !request["name"].as_str().unwrap().starts_with("fast")
            {
                let fast = format!("fast-{}", request["name"].as_str().unwrap());
                let resource = local.resource("", "services").unwrap();
                let object = json!({"metadata": {"name": fast}, "spec": spec.clone()});
                let mut object = object;
                object["spec"]["clusterIP"].take();
                object["spec"]["clusterIPs"].take();
                // Only the first one gets it.
                let _ = local.create(&resource, "default", object).await;
            }
            json!({"allowed": true})
        }
    });
    let rules =
        json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}]);
    configure(&cluster, "Validating", "a", &[hook("thinks", json!({"rules": rules}))]).await;
    let taken = "spec.ports[0].nodePort: Invalid value: 30002: provided port is already allocated";
    let refused = cluster.post(services, &service("slow", 30002)).await;
    assert_eq!(refused.refused(), (422, format!("Service \"slow\" is invalid: {taken}").as_str()));
    cluster.delete(&format!("{services}/fast-slow")).await.ok();
    let change = json!({"spec": {"ports": [{"port": 80, "nodePort": 30002}]}});
    let refused = cluster.patch(&format!("{services}/changed"), &change).await;
    assert_eq!(refused.refused(), (422, format!("Service \"changed\" is invalid: {taken}").as_str()));
}

#[tokio::test(start_paused = true)]
async fn mutating_webhooks_run_in_order_and_see_each_others_changes() {
    let cluster = Cluster::new();
    cluster.serve(|path, request| async move { appended(&path, &request) });
    configure(&cluster, "Mutating", "b", &[hook("third", json!({}))]).await;
    configure(&cluster, "Mutating", "a", &[hook("first", json!({})), hook("second", json!({}))]).await;
    let made = cluster.post(MAPS, &map("m")).await.ok();
    assert_eq!(made["data"]["trace"], "/first/second/third");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_called_again_if_it_wants_and_a_later_one_changed_the_object() {
    let cluster = Cluster::new();
    cluster.serve(|path, request| async move {
        match path.as_str() {
            "/idle" => json!({"allowed": true}),
            path => appended(path, &request),
        }
    });
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let hooks =
        [hook("a", again.clone()), hook("b", json!({})), hook("idle", again.clone()), hook("c", again)];
    configure(&cluster, "Mutating", "m", &hooks).await;
    let made = cluster.post(MAPS, &map("m")).await.ok();
    assert_eq!(made["data"]["trace"], "/a/b/c/a/c", "b never asks again, and nobody is asked a third time");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_webhook_and_warnings_reach_the_client() {
    let cluster = Cluster::new();
    cluster.serve(|path, request| async move {
        if request["operation"] == "CREATE" && request["object"]["metadata"]["name"] == "quiet" {
            return json!({"allowed": false});
        }
        match path.as_str() {
            "/no" if request["object"]["metadata"]["name"] == "bad" => says_no("not today"),
            _ => json!({"allowed": true, "warnings": ["think twice"]}),
        }
    });
    configure(&cluster, "Validating", "v", &[hook("yes", json!({})), hook("no", json!({}))]).await;
    let refused = cluster.post(MAPS, &map("bad")).await;
    assert_eq!(
        refused.refused(),
        (403, "admission webhook \"no.example.com\" denied the request: not today")
    );
    assert_eq!(refused.body["reason"], "Forbidden");
    assert_eq!(refused.warnings, ["299 - \"think twice\""], "a refusal brings the warnings of others along");
    let quiet = cluster.post(MAPS, &map("quiet")).await;
    assert_eq!(
        quiet.refused(),
        (400, "admission webhook \"yes.example.com\" denied the request without explanation")
    );
    let good = cluster.post(MAPS, &map("good")).await;
    assert_eq!((good.code, good.warnings.as_slice()), (201, &["299 - \"think twice\"".to_owned()][..]));
    assert_eq!(cluster.get(&format!("{MAPS}/bad")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_review_says_who_wants_to_do_what() {
    let cluster = Cluster::new();
    let seen = Seen::default();
    let reviews = seen.clone();
    cluster.serve(move |_, request| {
        reviews.add(request);
        std::future::ready(json!({"allowed": true}))
    });
    configure(&cluster, "Validating", "v", &[hook("see", json!({}))]).await;
    cluster.post(MAPS, &map("m")).await.ok();
    cluster.patch(&format!("{MAPS}/m"), &json!({"data": {"x": "y"}})).await.ok();
    cluster.delete(&format!("{MAPS}/m")).await.ok();
    let reviews = seen.take();
    let operations: Vec<&Value> = reviews.iter().map(|review| &review["operation"]).collect();
    assert_eq!(operations, ["CREATE", "UPDATE", "DELETE"]);
    let [create, update, delete] = reviews.as_slice() else { panic!("{reviews:?}") };
    assert_eq!(create["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(create["requestResource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!((&create["namespace"], &create["name"]), (&json!("default"), &json!("m")));
    assert_eq!((&create["oldObject"], &create["dryRun"]), (&Value::Null, &json!(false)));
    assert_eq!(create["options"]["kind"], "CreateOptions");
    assert_eq!(create["userInfo"]["username"], "kubernetes-admin");
    assert_eq!(
        (&update["object"]["data"]["x"], &update["oldObject"]["data"]["x"]),
        (&json!("y"), &Value::Null)
    );
    assert_eq!((&delete["object"], &delete["oldObject"]["data"]["x"]), (&Value::Null, &json!("y")));
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_does_not_answer_fails_the_request_or_is_forgiven() {
    let cluster = Cluster::new();
    cluster.serve(|_, _| async {
        tokio::time::sleep(Duration::from_secs(100)).await;
        json!({"allowed": true})
    });
    configure(&cluster, "Mutating", "m", &[hook("slow", json!({"timeoutSeconds": 5}))]).await;
    let start = tokio::time::Instant::now();
    let refused = cluster.post(MAPS, &map("m")).await;
    assert_eq!(
        refused.refused(),
        (
            500,
            "Internal error occurred: failed calling webhook \"slow.example.com\": failed to call webhook: Post \
             \"https://hooks.default.svc:443/slow?timeout=5s\": context deadline exceeded"
        )
    );
    assert_eq!(start.elapsed(), Duration::from_secs(5));

    let path = format!("{CONFIGURATIONS}/mutatingwebhookconfigurations/m");
    cluster.patch(&path, &json!({"webhooks": [hook("slow", json!({"failurePolicy": "Ignore"}))]})).await.ok();
    cluster.post(MAPS, &map("m")).await.ok();
    assert_eq!(start.elapsed(), Duration::from_secs(15), "the default timeout is ten seconds");

    cluster.delete(&path).await.ok();
    configure(
        &cluster,
        "Validating",
        "v",
        &[hook("gone", json!({"clientConfig": {"url": "https://127.0.0.1:1/x"}}))],
    )
    .await;
    assert_eq!(
        cluster.post(MAPS, &map("n")).await.refused().1,
        "Internal error occurred: failed calling webhook \"gone.example.com\": failed to call webhook: Post \
         \"https://127.0.0.1:1/x?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_another_question_does_not_count() {
    let cluster = Cluster::new();
    cluster.serve(|_, _| async { json!({"allowed": true, "uid": "other"}) });
    configure(&cluster, "Validating", "v", &[hook("odd", json!({}))]).await;
    let refused = cluster.post(MAPS, &map("m")).await;
    let (code, message) = refused.refused();
    assert_eq!(code, 500);
    assert!(message.contains("received invalid webhook response: expected response.uid="), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_asks_webhooks_unless_they_have_side_effects() {
    let cluster = Cluster::new();
    let seen = Seen::default();
    let reviews = seen.clone();
    cluster.serve(move |_, request| {
        reviews.add(request["dryRun"].clone());
        std::future::ready(json!({"allowed": true}))
    });
    configure(&cluster, "Mutating", "m", &[hook("clean", json!({"sideEffects": "NoneOnDryRun"}))]).await;
    cluster.post(&format!("{MAPS}?dryRun=All"), &map("m")).await.ok();
    assert_eq!(seen.take(), [json!(true)]);
    assert_eq!(cluster.get(&format!("{MAPS}/m")).await.code, 404);

    // Today's rules let nobody configure side effects; a configuration from before them may still be there.
    let value = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "old"}, "webhooks": [hook("dirty", json!({"sideEffects": "Some"}))],
    });
    let table = "admissionregistration.k8s.io/validatingwebhookconfigurations";
    cluster.server.store().create(table, Draft::new(value)).unwrap();
    assert_eq!(
        cluster.post(&format!("{MAPS}?dryRun=All"), &map("m")).await.refused(),
        (400, "admission webhook \"dirty.example.com\" does not support dry run")
    );
    cluster.post(MAPS, &map("m")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_namespaces_and_objects() {
    let cluster = Cluster::new();
    cluster.serve(|path, _| async move { says_no(&path) });
    let in_team = json!({"namespaceSelector": {"matchLabels": {"team": "a"}}});
    let labelled = json!({"objectSelector": {"matchLabels": {"check": "yes"}}});
    configure(&cluster, "Validating", "v", &[hook("team", in_team), hook("label", labelled)]).await;
    let namespace = json!({"metadata": {"name": "team", "labels": {"team": "a"}}});
    cluster.post("/api/v1/namespaces", &namespace).await.ok();
    cluster.post(MAPS, &map("free")).await.ok();
    let there = cluster.post("/api/v1/namespaces/team/configmaps", &map("m")).await;
    assert!(there.refused().1.ends_with("denied the request: /team"), "{there:?}");
    let mut checked = map("checked");
    checked["metadata"]["labels"] = json!({"check": "yes"});
    assert!(cluster.post(MAPS, &checked).await.refused().1.ends_with("/label"));
    // The label may be on the old or on the new object.
    let add = json!({"metadata": {"labels": {"check": "yes"}}});
    assert_eq!(cluster.patch(&format!("{MAPS}/free"), &add).await.code, 403);
}

#[tokio::test(start_paused = true)]
async fn a_rule_on_evictions_sees_evictions_only() {
    let cluster = Cluster::new();
    let seen = Seen::default();
    let reviews = seen.clone();
    cluster.serve(move |_, request| {
        reviews.add(request.clone());
        std::future::ready(says_no("stay"))
    });
    let rules = json!({"rules": [{
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/eviction"],
    }]});
    configure(&cluster, "Validating", "v", &[hook("evict", rules)]).await;
    let pod = json!({
        "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]},
    });
    cluster.post("/api/v1/namespaces/default/pods", &pod).await.ok();
    assert!(seen.take().is_empty());
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let refused = cluster.post("/api/v1/namespaces/default/pods/p/eviction", &eviction).await;
    assert_eq!(refused.refused(), (403, "admission webhook \"evict.example.com\" denied the request: stay"));
    let reviews = seen.take();
    assert_eq!(reviews[0]["kind"], json!({"group": "policy", "version": "v1", "kind": "Eviction"}));
    assert_eq!(reviews[0]["resource"], json!({"group": "", "version": "v1", "resource": "pods"}));
    assert_eq!(reviews[0]["subResource"], "eviction");
    assert_eq!(cluster.get("/api/v1/namespaces/default/pods/p").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_adds_is_defaulted_and_validated() {
    let cluster = Cluster::new();
    cluster.serve(|path, _| async move {
        match path.as_str() {
            "/good" => {
                patched(&json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "registry.example/s:1"}}]))
            }
            _ => patched(&json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": "side"}}])),
        }
    });
    let on_pods = |labels: Value| {
        json!({
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            "objectSelector": {"matchLabels": labels},
        })
    };
    let hooks = [hook("good", on_pods(json!({"a": "good"}))), hook("bad", on_pods(json!({"a": "bad"})))];
    configure(&cluster, "Mutating", "m", &hooks).await;
    let pod = |name: &str| {
        json!({
            "metadata": {"name": name, "labels": {"a": name}},
            "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]},
        })
    };
    let good = cluster.post("/api/v1/namespaces/default/pods", &pod("good")).await.ok();
    assert_eq!(good["spec"]["containers"][1]["terminationMessagePath"], "/dev/termination-log");
    let bad = cluster.post("/api/v1/namespaces/default/pods", &pod("bad")).await;
    assert_eq!(bad.refused(), (422, "Pod \"bad\" is invalid: spec.containers[1].image: Required value"));
}

#[tokio::test(start_paused = true)]
async fn an_equivalent_version_is_converted_for_the_webhook_and_back() {
    let cluster = Cluster::new();
    let size = json!({"type": "object", "properties": {"size": {"type": "string"}}});
    let mut definition = widgets(&size);
    definition["spec"]["versions"].as_array_mut().unwrap().push(version("v2", false, &size));
    cluster.define(&definition).await.ok();
    let seen = Seen::default();
    let reviews = seen.clone();
    cluster.serve(move |path, request| {
        reviews.add(request.clone());
        let value = format!("{}{path}", request["object"]["spec"]["size"].as_str().unwrap());
        std::future::ready(patched(&json!([{"op": "replace", "path": "/spec/size", "value": value}])))
    });
    let rules = |policy: &str| {
        json!({"matchPolicy": policy, "rules": [{
            "operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["widgets"],
        }]})
    };
    let hooks = [hook("exact", rules("Exact")), hook("like", rules("Equivalent"))];
    configure(&cluster, "Mutating", "m", &hooks).await;
    let made = cluster.post(WIDGETS, &widget("a", &json!({"size": "S"}))).await.ok();
    assert_eq!((&made["apiVersion"], &made["spec"]["size"]), (&json!("example.com/v1"), &json!("S/like")));
    let reviews = seen.take();
    assert_eq!(reviews.len(), 1);
    assert_eq!(reviews[0]["object"]["apiVersion"], "example.com/v2");
    assert_eq!(reviews[0]["kind"]["version"], "v2");
    assert_eq!(reviews[0]["requestKind"]["version"], "v1");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_concerned_nobody_is_called_once_a_version_of_its_rules_is_served() {
    let cluster = Cluster::new();
    let size = json!({"type": "object", "properties": {"size": {"type": "string"}}});
    let definition = cluster.define(&widgets(&size)).await.ok();
    cluster.serve(|_, _| async { says_no("seen") });
    let rules = json!({"rules": [{
        "operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v2"], "resources": ["widgets"],
    }]});
    configure(&cluster, "Validating", "v", &[hook("v", rules)]).await;
    cluster.post(WIDGETS, &widget("a", &json!({"size": "S"}))).await.ok();

    let versions = json!([definition["spec"]["versions"][0], version("v2", false, &size)]);
    cluster.patch(DEFINITION, &json!({"spec": {"versions": versions}})).await.ok();
    assert_eq!(cluster.post(WIDGETS, &widget("b", &json!({"size": "S"}))).await.code, 403);

    let configuration = format!("{CONFIGURATIONS}/validatingwebhookconfigurations/v");
    cluster.delete(&configuration).await.ok();
    cluster.post(WIDGETS, &widget("c", &json!({"size": "S"}))).await.ok();
}

#[tokio::test(start_paused = true)]
async fn configurations_themselves_are_never_reviewed() {
    let cluster = Cluster::new();
    cluster.serve(|_, _| async { says_no("never") });
    let all = json!({"rules": [{
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
    }]});
    configure(&cluster, "Validating", "all", &[hook("all", all)]).await;
    assert_eq!(cluster.post(MAPS, &map("m")).await.code, 403);
    let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations/all");
    cluster.delete(&path).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_called_only_if_all_its_conditions_hold() {
    let cluster = Cluster::new();
    cluster.serve(|path, request| async move {
        match path.as_str() {
            "/no" => says_no("never"),
            path => appended(path, &request),
        }
    });
    let conditions = json!({"matchConditions": [
        {"name": "not-the-plain-one", "expression": "object.metadata.name != 'plain'"},
        {"name": "creations", "expression": "request.operation == 'CREATE'"},
    ]});
    configure(&cluster, "Validating", "v", &[hook("no", conditions.clone())]).await;
    configure(&cluster, "Mutating", "m", &[hook("change", conditions)]).await;
    assert_eq!(cluster.post(MAPS, &map("plain")).await.ok()["data"]["trace"], "");
    assert_eq!(cluster.post(MAPS, &map("other")).await.code, 403);
    cluster.delete(&format!("{CONFIGURATIONS}/validatingwebhookconfigurations/v")).await.ok();
    assert_eq!(cluster.post(MAPS, &map("other")).await.ok()["data"]["trace"], "/change");
    cluster.delete(&format!("{CONFIGURATIONS}/mutatingwebhookconfigurations/m")).await.ok();

    // What cannot be told: the failure policy decides, and nobody is called.
    for (policy, code) in [("Fail", 403), ("Ignore", 201)] {
        let odd = json!({"failurePolicy": policy, "matchConditions": [{"name": "odd", "expression": "object.odd > 1"}]});
        configure(&cluster, "Validating", "odd", &[hook("no", odd)]).await;
        let reply = cluster.post(MAPS, &map("odd")).await;
        assert_eq!(reply.code, code, "{}", reply.body);
        if policy == "Fail" {
            let why = "configmaps \"odd\" is forbidden: expression 'object.odd > 1' resulted in error: no such key: odd";
            assert_eq!(reply.body["message"], why);
        }
        cluster.delete(&format!("{CONFIGURATIONS}/validatingwebhookconfigurations/odd")).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn conditions_with_mistakes_are_refused() {
    let cluster = Cluster::new();
    let conditions = json!({"matchConditions": [
        {"name": "same", "expression": "object.x"},
        {"name": "same", "expression": "request.nam == ''"},
        {"name": "", "expression": " "},
    ]});
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "v"}, "webhooks": [hook("v", conditions)],
    });
    let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations");
    let refused = cluster.post(&path, &object).await;
    let at = "webhooks[0].matchConditions";
    assert_eq!(
        refused.refused(),
        (
            422,
            format!(
                "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"v\" is invalid: [{at}[0].expression: Invalid \
                 value: \"object.x\": must evaluate to bool but got dyn, {at}[1].expression: Invalid value: \"request.nam \
                 == ''\": compilation failed: ERROR: <input>:1:8: undefined field 'nam'\n | request.nam == ''\n | \
                 .......^, {at}[1].name: Duplicate value: \"same\", {at}[2].expression: Required value, {at}[2].name: \
                 Required value]"
            )
            .as_str()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_mutating_webhook_may_refuse_a_deletion_but_not_change_it() {
    let cluster = Cluster::new();
    cluster.serve(|path, _| async move {
        match path.as_str() {
            "/no" => says_no("keep it"),
            _ => patched(&json!([{"op": "add", "path": "/x", "value": 1}])),
        }
    });
    cluster.post(MAPS, &map("m")).await.ok();
    let rule = json!({"rules": [{
        "operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
    }]});
    configure(&cluster, "Mutating", "m", &[hook("no", rule.clone())]).await;
    let refused = cluster.delete(&format!("{MAPS}/m")).await;
    assert_eq!(refused.refused(), (403, "admission webhook \"no.example.com\" denied the request: keep it"));
    cluster.delete(&format!("{CONFIGURATIONS}/mutatingwebhookconfigurations/m")).await.ok();
    configure(&cluster, "Mutating", "m", &[hook("change", rule)]).await;
    assert_eq!(
        cluster.delete(&format!("{MAPS}/m")).await.refused().1,
        "Internal error occurred: admission webhook \"change.example.com\" attempted to modify the object, which is \
         not supported for this operation"
    );
}

#[tokio::test(start_paused = true)]
async fn a_webhook_of_the_older_review_version_is_spoken_to_in_it() {
    let cluster = Cluster::new();
    cluster.serve(|path, request| async move { appended(&path, &request) });
    let old = json!({"admissionReviewVersions": ["v1beta1"]});
    configure(&cluster, "Mutating", "m", &[hook("old", old)]).await;
    assert_eq!(cluster.post(MAPS, &map("m")).await.ok()["data"]["trace"], "/old");
}

#[tokio::test(start_paused = true)]
async fn built_in_admission_sees_again_what_webhooks_changed() {
    let cluster = Cluster::new();
    cluster.serve(|path, request| async move {
        let tolerations = &request["object"]["spec"]["tolerations"];
        match path.as_str() {
            // The first time, the tolerations that the server gives to every pod are there already.
            "/strip" => patched(&json!([{"op": "remove", "path": "/spec/tolerations"}])),
            "/count" => {
                let count = tolerations.as_array().map_or(0, Vec::len);
                let seen = request["object"]["metadata"]["annotations"]["seen"].as_str().unwrap_or_default();
                let seen = format!("{seen}{count}");
                patched(&json!([{"op": "add", "path": "/metadata/annotations", "value": {"seen": seen}}]))
            }
            _ => patched(&json!([{"op": "replace", "path": "/spec/serviceAccountName", "value": "nobody"}])),
        }
    });
    let pods =
        json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
    let hooks = [
        hook("count", json!({"rules": pods, "reinvocationPolicy": "IfNeeded"})),
        hook("strip", json!({"rules": pods})),
    ];
    configure(&cluster, "Mutating", "m", &hooks).await;
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let path = "/api/v1/namespaces/default/pods";
    let made = cluster.post(path, &pod("a")).await.ok();
    assert_eq!(made["spec"]["tolerations"].as_array().map(Vec::len), Some(2), "they are given again: {made}");
    assert_eq!(
        made["metadata"]["annotations"]["seen"], "22",
        "who asks again sees the pod that is admitted again"
    );

    configure(&cluster, "Mutating", "n", &[hook("account", json!({"rules": pods}))]).await;
    let refused = cluster.post(path, &pod("b")).await;
    assert_eq!(
        refused.refused(),
        (
            403,
            "pods \"b\" is forbidden: error looking up service account default/nobody: serviceaccount \"nobody\" \
             not found"
        )
    );
}
