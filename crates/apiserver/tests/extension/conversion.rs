//! Several versions of one kind.

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, WatchEvent, WatchParams};
use serde_json::{Value, json};

use crate::kit::{Cluster, DEFINITION, Seen, WIDGETS, version, widget, widgets};

const V2: &str = "/apis/example.com/v2/namespaces/default/widgets";

fn any_size() -> Value {
    json!({"type": "object", "properties": {"size": {"type": "string"}}})
}

/// Version 2 calls the size a width. Version 1 is stored.
fn two_versions(webhook: bool) -> Value {
    let mut definition = widgets(&any_size());
    let width = json!({"type": "object", "properties": {"width": {"type": "string"}, "deep": {"type": "string", "default": "no"}}});
    definition["spec"]["versions"].as_array_mut().unwrap().push(version("v2", false, &width));
    if webhook {
        definition["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "default", "name": "hooks", "path": "/convert"}},
            },
        });
    }
    definition
}

/// Renames size to width and back.
fn rename(mut object: Value, to: &Value) -> Value {
    let (from, into) = if to == "example.com/v2" { ("size", "width") } else { ("width", "size") };
    if let Some(value) = object["spec"].as_object_mut().unwrap().remove(from) {
        object["spec"][into] = value;
    }
    object["apiVersion"] = to.clone();
    object
}

fn serve_conversion(cluster: &Cluster) -> Seen<usize> {
    let seen = Seen::default();
    let sizes = seen.clone();
    cluster.serve(move |path, request| {
        assert_eq!(path, "/convert");
        let objects = request["objects"].as_array().unwrap().clone();
        sizes.add(objects.len());
        let to = &request["desiredAPIVersion"];
        let converted: Vec<Value> = objects.into_iter().map(|object| rename(object, to)).collect();
        std::future::ready(json!({"result": {"status": "Success"}, "convertedObjects": converted}))
    });
    seen
}

#[tokio::test(start_paused = true)]
async fn without_a_strategy_only_the_version_is_rewritten_and_the_other_schema_prunes() {
    let cluster = Cluster::new();
    cluster.define(&two_versions(false)).await.ok();
    cluster.post(WIDGETS, &widget("a", &json!({"size": "S"}))).await.ok();
    let read = cluster.get(&format!("{V2}/a")).await.ok();
    assert_eq!(read["apiVersion"], "example.com/v2");
    assert_eq!(read["spec"], json!({}));
    assert_eq!(cluster.get(&format!("{WIDGETS}/a")).await.ok()["spec"], json!({"size": "S"}));
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_gets_the_defaults_of_the_version_in_which_it_is_stored() {
    let cluster = Cluster::new();
    let seen = serve_conversion(&cluster);
    cluster.define(&two_versions(true)).await.ok();
    cluster.post(WIDGETS, &widget("a", &json!({}))).await.ok();
    let sized = json!({"type": "object", "properties": {"size": {"type": "string", "default": "M"}}});
    let versions = json!([version("v1", true, &sized), two_versions(true)["spec"]["versions"][1]]);
    cluster.patch(DEFINITION, &json!({"spec": {"versions": versions}})).await.ok();
    assert_eq!(cluster.get(&format!("{V2}/a")).await.ok()["spec"], json!({"width": "M"}));
    assert_eq!(cluster.get(V2).await.ok()["items"][0]["spec"], json!({"width": "M"}));
    assert_eq!(seen.take(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_converts_what_is_read_and_written_in_the_other_version() {
    let cluster = Cluster::new();
    let seen = serve_conversion(&cluster);
    cluster.define(&two_versions(true)).await.ok();
    for name in ["a", "b", "c"] {
        cluster.post(WIDGETS, &widget(name, &json!({"size": "S"}))).await.ok();
    }
    assert!(seen.take().is_empty(), "the stored version needs no conversion");
    let list = cluster.get(V2).await.ok();
    assert_eq!(seen.take(), [3], "a list is converted in one call");
    assert_eq!((&list["apiVersion"], &list["kind"]), (&json!("example.com/v2"), &json!("WidgetList")));
    for item in list["items"].as_array().unwrap() {
        assert_eq!(item["spec"], json!({"width": "S"}));
    }
    let mut wide = widget("d", &json!({"width": "L"}));
    wide["apiVersion"] = json!("example.com/v2");
    let made = cluster.post(V2, &wide).await.ok();
    assert_eq!(made["spec"], json!({"width": "L"}));
    assert_eq!(cluster.get(&format!("{WIDGETS}/d")).await.ok()["spec"], json!({"size": "L"}));
    let patched = cluster.patch(&format!("{V2}/a"), &json!({"spec": {"width": "M"}})).await.ok();
    assert_eq!((&patched["spec"]["width"], &patched["metadata"]["generation"]), (&json!("M"), &json!(2)));
    assert_eq!(cluster.get(&format!("{WIDGETS}/a")).await.ok()["spec"], json!({"size": "M"}));

    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table =
        cluster.send_accepting("GET", &format!("{V2}?includeObject=Object"), &Value::Null, accept).await.ok();
    assert_eq!(table["rows"][1]["object"]["spec"]["width"], "S");
}

#[tokio::test(start_paused = true)]
async fn a_watch_in_the_other_version_sees_converted_objects() {
    let cluster = Cluster::new();
    serve_conversion(&cluster);
    cluster.define(&two_versions(true)).await.ok();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v2", "Widget"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(cluster.client.clone(), &kind);
    let stream = api.watch(&WatchParams::default(), "0").await.unwrap();
    let mut stream = stream.boxed();
    cluster.post(WIDGETS, &widget("a", &json!({"size": "S"}))).await.ok();
    let Some(WatchEvent::Added(object)) = stream.try_next().await.unwrap() else { panic!("no object") };
    assert_eq!(object.types.unwrap().api_version, "example.com/v2");
    assert_eq!(object.data["spec"]["width"], "S");
}

#[tokio::test(start_paused = true)]
async fn a_conversion_that_fails_says_why() {
    let cluster = Cluster::new();
    cluster.define(&two_versions(true)).await.ok();
    cluster.post(WIDGETS, &widget("a", &json!({"size": "S"}))).await.ok();
    let path = format!("{V2}/a");
    let about = "conversion webhook for example.com/v1, Kind=Widget";
    let post = "Post \"https://hooks.default.svc:443/convert?timeout=30s\"";
    assert_eq!(
        cluster.get(&path).await.refused(),
        (500, format!("{about} failed: {post}: service \"hooks\" not found").as_str())
    );
    cluster.serve(|_, _| async { json!({"result": {"status": "Failure", "message": "too wide"}}) });
    assert_eq!(cluster.get(&path).await.refused().1, format!("{about} failed: too wide"));
    assert_eq!(cluster.get(V2).await.refused().1, format!("{about} failed: too wide"));
    cluster.serve(|_, _| async { json!({"result": {"status": "Success"}, "convertedObjects": []}) });
    assert_eq!(cluster.get(&path).await.refused().1, format!("{about} returned 0 objects, expected 1"));
    cluster.serve(|_, request| async move {
        let mut object = rename(request["objects"][0].clone(), &request["desiredAPIVersion"]);
        object["metadata"]["name"] = json!("b");
        json!({"result": {"status": "Success"}, "convertedObjects": [object]})
    });
    assert_eq!(
        cluster.get(&path).await.refused().1,
        format!("{about} returned invalid object: must have the same name: a != b")
    );
    cluster.serve(|_, _| async {
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        json!({})
    });
    assert_eq!(
        cluster.get(&path).await.refused().1,
        format!("{about} failed: {post}: context deadline exceeded")
    );
    let mut wide = widget("d", &json!({"width": "L"}));
    wide["apiVersion"] = json!("example.com/v2");
    assert_eq!(cluster.post(V2, &wide).await.code, 500);
}

#[tokio::test(start_paused = true)]
async fn the_stored_version_may_change_under_stored_objects() {
    let cluster = Cluster::new();
    let seen = serve_conversion(&cluster);
    cluster.define(&two_versions(true)).await.ok();
    cluster.post(WIDGETS, &widget("old", &json!({"size": "S"}))).await.ok();
    let mut definition = cluster.get(DEFINITION).await.ok();
    definition["spec"]["versions"][0]["storage"] = json!(false);
    definition["spec"]["versions"][1]["storage"] = json!(true);
    cluster.put(DEFINITION, &definition).await.ok();
    assert_eq!(cluster.get(DEFINITION).await.ok()["status"]["storedVersions"], json!(["v1", "v2"]));

    cluster.post(WIDGETS, &widget("new", &json!({"size": "M"}))).await.ok();
    seen.take();
    let list = cluster.get(WIDGETS).await.ok();
    assert_eq!(seen.take(), [1], "only the new object is stored in version 2");
    assert_eq!(list["items"][0]["spec"]["size"], "M");
    assert_eq!(list["items"][1]["spec"]["size"], "S");
    assert_eq!(cluster.get(&format!("{V2}/old")).await.ok()["spec"]["width"], "S");

    let mut definition = cluster.get(DEFINITION).await.ok();
    definition["spec"]["versions"].as_array_mut().unwrap().remove(0);
    let refused = cluster.put(DEFINITION, &definition).await;
    assert!(refused.refused().1.contains("status.storedVersions[0]"), "{refused:?}");
}
