//! What is tried, and what must hold.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kruise_api::cron::Schedule;
use kruise_apiserver::field::Path;
use kruise_apiserver::schema::Structural;
use kruise_apiserver::selector::{Fields, Labels};
use kruise_apiserver::{ApiServer, patch, protobuf};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::make::Maker;
use crate::{expressions, schedules};

/// Whether the input was taken, or what should not have happened.
type Outcome = Result<bool, String>;
type Target = fn(&mut Maker, &Cluster) -> Outcome;

/// The targets by name.
pub(crate) const TARGETS: [(&str, Target); 11] = [
    ("json-patch", |maker, cluster| patched(maker, cluster, "application/json-patch+json")),
    ("merge-patch", |maker, cluster| patched(maker, cluster, "application/merge-patch+json")),
    ("strategic-patch", |maker, cluster| patched(maker, cluster, "application/strategic-merge-patch+json")),
    ("apply-patch", |maker, cluster| patched(maker, cluster, "application/apply-patch+yaml")),
    ("label-selector", label_selector),
    ("field-selector", field_selector),
    ("schema", schema),
    ("expression", expression),
    ("protobuf", wire),
    ("body", body),
    ("schedule", schedule),
];

/// A server with a few objects.
pub(crate) struct Cluster {
    server: ApiServer,
    runtime: tokio::runtime::Runtime,
}

const POD: &str = "/api/v1/namespaces/default/pods/p";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/d";
const CAR: &str = "/apis/example.com/v1/namespaces/default/cars/c";

fn pod() -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": "p", "namespace": "default", "labels": {"a": "b"}, "finalizers": ["example.com/x"]},
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}],
                 "resources": {"requests": {"cpu": "100m"}}},
                {"name": "d", "image": "j"},
            ],
            "tolerations": [{"key": "k", "operator": "Exists"}], "volumes": [{"name": "v", "emptyDir": {}}],
        },
    })
}

fn deployment() -> Value {
    let mut template = pod();
    if let Some(template) = template.as_object_mut() {
        template.retain(|key, _| key == "spec");
        template.insert("metadata".to_owned(), json!({"labels": {"a": "b"}}));
    }
    json!({
        "kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}},
    })
}

fn car_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "wheels": {"type": "integer", "minimum": 0, "default": 4},
            "name": {"type": "string", "maxLength": 10, "pattern": "^[a-z]+$"},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "n": {"type": "number"}}}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "size": {"x-kubernetes-int-or-string": true},
        }}},
    })
}

fn definition(schema: &Value) -> Value {
    json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "cars.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Car", "plural": "cars", "singular": "car", "listKind": "CarList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn car() -> Value {
    json!({"kind": "Car", "apiVersion": "example.com/v1", "metadata": {"name": "c"}, "spec": {"parts": [{"name": "a", "n": 1.5}]}})
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts");
        let server = runtime.block_on(async { ApiServer::builder().seed(1).build() });
        let cluster = Self { server, runtime };
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for (path, object) in [
            ("/api/v1/namespaces/default/pods", pod()),
            ("/apis/apps/v1/namespaces/default/deployments", deployment()),
            (crds, definition(&car_schema())),
            ("/apis/example.com/v1/namespaces/default/cars", car()),
        ] {
            let made = cluster.send("POST", path, "application/json", object.to_string().into_bytes());
            assert!(made.is_ok_and(|(code, _)| code == 201), "{path}");
        }
        cluster
    }

    /// The code and the body, which must be an object or a status that says what is wrong.
    fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<(u16, Value), String> {
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
        let (code, bytes) = self.runtime.block_on(async {
            let Ok(response) = self.server.clone().oneshot(request).await;
            let code = response.status().as_u16();
            let Ok(body) = response.into_body().collect().await;
            (code, body.to_bytes())
        });
        let answer: Value = serde_json::from_slice(&bytes)
            .map_err(|error| format!("{code} {method} {path} is not answered in JSON: {error}"))?;
        let is_status = answer.get("kind") == Some(&json!("Status"));
        let message = answer.get("message").and_then(Value::as_str).unwrap_or_default();
        match code {
            200..300 => Ok((code, answer)),
            // What is not there says so.
            501 => Ok((code, answer)),
            500 if FAULTS.iter().any(|words| message.starts_with(words)) => Ok((code, answer)),
            400..500 if is_status && !message.is_empty() => Ok((code, answer)),
            _ => Err(format!("{method} {path}: {code} {answer}")),
        }
    }
}

/// What a real server calls its own fault as well, with the same words.
const FAULTS: [&str; 7] = [
    "resourceVersion should not be set",
    "list element types are not identical",
    "unknown patch type: ",
    "expected a ",
    "map: map[",
    "The order in patch list:",
    "failed to create typed patch object ",
];

fn target_of(maker: &mut Maker) -> (&'static str, Value) {
    match maker.below(3) {
        0 => (POD, pod()),
        1 => (DEPLOYMENT, deployment()),
        _ => (CAR, car()),
    }
}

fn operation(maker: &mut Maker) -> Value {
    let mut operation = json!({
        "op": maker.pick(&["add", "remove", "replace", "move", "copy", "test"], "add"),
        "path": pointer(maker), "from": pointer(maker), "value": maker.json(3),
    });
    if maker.one_in(6) {
        maker.mutate(&mut operation);
    }
    operation
}

fn pointer(maker: &mut Maker) -> String {
    let known = [
        "/metadata/labels/a",
        "/spec/containers/0/env/0",
        "/spec/replicas",
        "/spec",
        "/metadata/finalizers/-",
        "",
    ];
    let mut path = maker.pick(&known, "").to_owned();
    for _ in 0..maker.below(3) {
        path.push('/');
        path.push_str(&maker.key());
    }
    path
}

/// A patch as text: nearly right, or broken.
fn patch_body(maker: &mut Maker, content_type: &str, object: &Value) -> Vec<u8> {
    let mut value = match content_type {
        "application/json-patch+json" => {
            (0..maker.below(6)).map(|_| operation(maker)).collect::<Vec<_>>().into()
        }
        _ if maker.one_in(3) => maker.json(5),
        _ => {
            let mut object = object.clone();
            maker.mutate(&mut object);
            object
        }
    };
    if maker.one_in(50) {
        value = maker.deep();
    }
    let mut body = value.to_string().into_bytes();
    if maker.one_in(10) {
        maker.damage(&mut body);
    }
    body
}

fn patched(maker: &mut Maker, cluster: &Cluster, content_type: &str) -> Outcome {
    let (path, object) = target_of(maker);
    let body = patch_body(maker, content_type, &object);
    let query = maker.pick(
        &[
            "?dryRun=All",
            "?dryRun=All&fieldManager=me&force=true",
            "?dryRun=All&fieldValidation=Strict&fieldManager=me",
        ],
        "",
    );
    let sub = maker.pick(&["", "", "", "/status", "/scale"], "");
    let sub = if path == DEPLOYMENT || sub != "/scale" { sub } else { "" };
    let sub = if path == CAR { "" } else { sub };
    let (code, _) = cluster.send("PATCH", &format!("{path}{sub}{query}"), content_type, body.clone())?;
    // The same as a function: what a merge patch made twice does not change any more. Made once it may: a list in the place of
    // a map keeps its nulls, as with a real server.
    if content_type == "application/merge-patch+json"
        && let Ok(patch) = patch::Patch::parse(content_type, &body, patch::Accepts::All)
    {
        let kind = kruise_apiserver::status::GroupKind::new("", "Pod");
        let once = patch.apply(object, kind).map_err(|status| status.message)?;
        let twice = patch.apply(once, kind).map_err(|status| status.message)?;
        let thrice = patch.apply(twice.clone(), kind).map_err(|status| status.message)?;
        if twice != thrice {
            return Err(format!("the patch changes its own result: {twice} {thrice}"));
        }
    }
    Ok(code < 300)
}

fn selector_text(maker: &mut Maker) -> String {
    const PIECES: [&str; 26] = [
        "a",
        "b",
        "app",
        "=",
        "==",
        "!=",
        "!",
        " in ",
        " notin ",
        "(",
        ")",
        ",",
        " ",
        ">",
        "<",
        "1",
        "-1",
        "x/y",
        "metadata.name",
        "spec.nodeName",
        "\\",
        "\\,",
        "\u{0}",
        "ä",
        "exists",
        "kubernetes.io/name",
    ];
    let mut text = String::new();
    let many = if maker.one_in(200) { 20_000 } else { 12 };
    for _ in 0..maker.below(many) {
        text.push_str(maker.pick(&PIECES, ""));
    }
    text
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn label_selector(maker: &mut Maker, cluster: &Cluster) -> Outcome {
    let text = selector_text(maker);
    let labels = [("a", "b"), ("app", "1"), ("x/y", "")];
    let of = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    let parsed = Labels::parse(&text);
    if let Ok(parsed) = &parsed {
        let shown = parsed.to_string();
        let again =
            Labels::parse(&shown).map_err(|error| format!("{text:?} is shown as {shown:?}: {}", error.0))?;
        if again.to_string() != shown || again.matches_by(of) != parsed.matches_by(of) {
            return Err(format!("{text:?} and {shown:?} differ"));
        }
    }
    let path = format!("/api/v1/pods?labelSelector={}", percent(&text));
    if path.len() < 60_000 {
        let (code, _) = cluster.send("GET", &path, "", Vec::new())?;
        if (code == 200) != parsed.is_ok() {
            return Err(format!("{text:?}: the server answers {code}"));
        }
    }
    Ok(parsed.is_ok())
}

fn field_selector(maker: &mut Maker, cluster: &Cluster) -> Outcome {
    let text = selector_text(maker);
    let parsed = Fields::parse(&text);
    if let Ok(parsed) = &parsed {
        let shown = parsed.to_string();
        let again =
            Fields::parse(&shown).map_err(|error| format!("{text:?} is shown as {shown:?}: {}", error.0))?;
        let of = |field: &str| if field == "metadata.name" { "a" } else { "" };
        if again.to_string() != shown || again.matches_by(of) != parsed.matches_by(of) {
            return Err(format!("{text:?} and {shown:?} differ"));
        }
    }
    let path = format!("/api/v1/pods?fieldSelector={}", percent(&text));
    if path.len() < 60_000 {
        let (code, _) = cluster.send("GET", &path, "", Vec::new())?;
        if code == 200 && parsed.is_err() {
            return Err(format!("{text:?}: the server answers {code}"));
        }
    }
    Ok(parsed.is_ok())
}

/// A schema that is often structural.
fn random_schema(maker: &mut Maker, depth: usize) -> Value {
    let kind = maker.pick(&["object", "object", "array", "string", "integer", "number", "boolean"], "string");
    let mut schema = json!({"type": kind});
    let Some(members) = schema.as_object_mut() else { return schema };
    if depth > 0 && kind == "object" {
        if maker.one_in(4) {
            members.insert("additionalProperties".to_owned(), random_schema(maker, depth - 1));
        } else {
            let properties = (0..maker.below(4)).map(|_| (maker.key(), random_schema(maker, depth - 1)));
            members.insert("properties".to_owned(), Value::Object(properties.collect()));
        }
        if maker.one_in(4) {
            members.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
        }
    }
    if kind == "array" {
        members.insert("items".to_owned(), random_schema(maker, depth.saturating_sub(1)));
    }
    let extras = [
        ("nullable", json!(true)),
        ("pattern", json!("^(a+)+$")),
        ("pattern", json!("([a-z]{1,1000}){1,1000}")),
        ("maxLength", json!(3)),
        ("minimum", json!(-1)),
        ("maximum", json!(1e300)),
        ("multipleOf", json!(0)),
        ("enum", json!(["a", 1, null])),
        ("default", maker.json(2)),
        ("x-kubernetes-int-or-string", json!(true)),
        ("x-kubernetes-list-type", json!("map")),
        ("x-kubernetes-list-map-keys", json!(["name"])),
        ("required", json!(["name", "name"])),
        ("format", json!("date-time")),
        ("oneOf", json!([{"required": ["a"]}, {"minimum": 1}])),
        ("not", json!({})),
        ("x-kubernetes-validations", json!([{"rule": "self.a > 1"}])),
    ];
    for _ in 0..maker.below(3) {
        let at = maker.below(extras.len());
        if let Some((name, value)) = extras.get(at) {
            members.insert((*name).to_owned(), value.clone());
        }
    }
    schema
}

fn schema(maker: &mut Maker, cluster: &Cluster) -> Outcome {
    let mut schema = random_schema(maker, 4);
    if maker.one_in(3) {
        maker.mutate(&mut schema);
    }
    let mut definition = definition(&schema);
    if maker.one_in(3) {
        maker.mutate(&mut definition);
    }
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let content = definition.to_string().replace("cars", "vans").into_bytes();
    let (code, _) = cluster.send("POST", &format!("{crds}?dryRun=All"), "application/json", content)?;
    let Ok(structural) = Structural::parse(&schema) else { return Ok(code == 201) };
    let mut object = maker.json(6);
    structural.prune(&mut object);
    let once = object.clone();
    if !structural.prune(&mut object).is_empty() || once != object {
        return Err(format!("pruning goes on: {schema} {once}"));
    }
    structural.apply_defaults(&mut object);
    let once = object.clone();
    structural.apply_defaults(&mut object);
    if once != object {
        return Err(format!("defaults go on: {schema} {once} {object}"));
    }
    let _ = structural.validate(&object, &Path::root());
    let _ = structural.validate_update(&object, &maker.json(4), &Path::root());
    Ok(code == 201)
}

/// Rules, conditions and variables: whatever they say, they are read, and evaluated within bounds.
fn expression(maker: &mut Maker, cluster: &Cluster) -> Outcome {
    let text = |maker: &mut Maker, around: &str| {
        let mut text = around.replace('$', &expressions::any(maker, 5));
        if maker.one_in(4) {
            let mut bytes = text.into_bytes();
            maker.damage(&mut bytes);
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
        text
    };
    // The names that expressions use are there in all places.
    let rule = "[dyn(self)].all(object, [{'name': 'n'}].all(request, [{'a': dyn(1)}].all(variables, [self.size].all(x, \
                [dyn('y')].all(y, dyn($) == 1)))))";
    let message = "[dyn(self)].map(object, [{'name': 'n'}].map(request, [{'a': dyn(1)}].map(variables, [self.size].map(x, \
                   [dyn('y')].map(y, '%s'.format([$]))[0])[0])[0])[0])[0]";
    let condition =
        "[object].all(self, [oldObject].all(oldSelf, [dyn(1)].all(x, [dyn('y')].all(y, dyn($) == 1))))";
    let mut schema = car_schema();
    let rules = json!([
        {"rule": text(maker, rule), "message": "m"},
        {"rule": "false", "messageExpression": text(maker, message), "message": "m"},
        {"rule": text(maker, rule), "optionalOldSelf": true, "message": "m"},
    ]);
    if let Some(spec) = schema.pointer_mut("/properties/spec").and_then(Value::as_object_mut) {
        spec.insert("x-kubernetes-validations".to_owned(), rules);
    }
    let Ok(structural) = Structural::parse(&schema) else { return Ok(false) };
    let taken = structural.rule_errors(&Path::root()).len() < 3;
    let car = |maker: &mut Maker| {
        let mut car =
            json!({"spec": {"wheels": 4, "name": "abc", "parts": [{"name": "x", "n": 1.5}], "size": "50%"}});
        if maker.one_in(2) {
            maker.mutate(&mut car);
        }
        car
    };
    let (new, old) = (car(maker), car(maker));
    let _ = structural.validate(&new, &Path::root());
    let _ = structural.validate_update(&new, &old, &Path::root());
    let meant =
        json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]});
    let policy = json!({
        "kind": "ValidatingAdmissionPolicy", "apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [meant]},
            "matchConditions": [{"name": "c", "expression": text(maker, condition)}],
            "variables": [{"name": "a", "expression": text(maker, condition)}, {"name": "b", "expression": "[variables.a]"}],
            "validations": [{"expression": text(maker, condition), "messageExpression": text(maker, "$")}],
        },
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All";
    cluster.send("POST", path, "application/json", policy.to_string().into_bytes())?;
    Ok(taken)
}

fn wire(maker: &mut Maker, cluster: &Cluster) -> Outcome {
    let (path, mut object) = match maker.below(4) {
        0 => ("/api/v1/namespaces/default/pods?dryRun=All", pod()),
        1 => ("/apis/apps/v1/namespaces/default/deployments?dryRun=All", deployment()),
        2 => (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All",
            definition(&random_schema(maker, 3)),
        ),
        _ => (
            "/api/v1/namespaces/default/secrets?dryRun=All",
            json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"a": "YWJj"}}),
        ),
    };
    if maker.one_in(2) {
        maker.mutate(&mut object);
    }
    let Ok(mut bytes) = protobuf::encode(&object) else { return Ok(false) };
    if !maker.one_in(4) {
        maker.damage(&mut bytes);
    }
    if let Ok(read) = protobuf::decode(&bytes, "v1", "Pod") {
        let text = |key: &str| read.get(key).and_then(Value::as_str).unwrap_or_default();
        if protobuf::knows(text("apiVersion"), text("kind")) {
            let written = protobuf::encode(&read).map_err(|error| format!("{error}: {read}"))?;
            let again = protobuf::decode(&written, "", "").map_err(|error| format!("{error}: {read}"))?;
            if again != read {
                return Err(format!("{read}\n{again}"));
            }
        }
    }
    let (code, _) = cluster.send("POST", path, protobuf::CONTENT_TYPE, bytes)?;
    Ok(code == 201)
}

fn body(maker: &mut Maker, cluster: &Cluster) -> Outcome {
    let (path, mut object) = target_of(maker);
    let collection = path.rsplit_once('/').map_or(path, |(collection, _)| collection);
    if maker.one_in(2) {
        maker.mutate(&mut object);
    }
    if maker.one_in(30) {
        object = maker.deep();
    }
    let content_type = maker.pick(&["application/json", "application/yaml", ""], "");
    let mut bytes = object.to_string().into_bytes();
    if maker.one_in(3) {
        maker.damage(&mut bytes);
    }
    if content_type == "application/yaml" && maker.one_in(5) {
        bytes = b"a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c]\n".to_vec();
    }
    let query = maker.pick(&["?dryRun=All", "?dryRun=All&fieldValidation=Strict"], "");
    let (code, _) = match maker.below(3) {
        0 => cluster.send("PUT", &format!("{path}{query}"), content_type, bytes)?,
        // A body that is no dry run would delete.
        1 => cluster.send("DELETE", &format!("{path}-other{query}"), content_type, bytes)?,
        _ => cluster.send("POST", &format!("{collection}{query}"), content_type, bytes)?,
    };
    Ok(code < 300)
}

/// A schedule that took longer than this searched without an end.
const LONGEST_SEARCH: Duration = Duration::from_secs(1);

/// Schedules of AdvancedCronJobs: any text is one or a mistake, and its times lie where they should.
fn schedule(maker: &mut Maker, _: &Cluster) -> Outcome {
    let text = schedules::text(maker);
    let (one, other) = (schedules::time(maker), schedules::time(maker));
    let (start, now) = (one.min(other), one.max(other));
    let began = Instant::now();
    let Ok(schedule) = Schedule::parse(&text) else { return Ok(false) };
    let mut time = now;
    for _ in 0..3 {
        let Some(next) = schedule.next(time) else { break };
        if next <= time {
            return Err(format!("{text:?}: {next} comes after {time}"));
        }
        time = next;
    }
    let upcoming = schedule.upcoming(start, now);
    if upcoming.is_some_and(|upcoming| upcoming <= now) {
        return Err(format!("{text:?} from {start}: {upcoming:?} comes after {now}"));
    }
    let latest = schedule.latest(start, now);
    if latest.is_some_and(|latest| latest <= start || latest > now) {
        return Err(format!("{text:?}: {latest:?} is not between {start} and {now}"));
    }
    let took = began.elapsed();
    if took > LONGEST_SEARCH {
        Err(format!("{text:?} from {start} to {now} took {took:?}"))
    } else {
        Ok(true)
    }
}
