//! The life of a definition and of its instances.

use serde_json::{Value, json};

use crate::kit::{Cluster, DEFINITION, WIDGETS, conditions, version, widget, widgets};

fn sized() -> Value {
    json!({
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "string", "enum": ["S", "M"]},
            "replicas": {"type": "integer", "default": 1},
            "color": {"type": "string", "default": "red"},
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_established_and_served_at_once() {
    let cluster = Cluster::new();
    let made = cluster.define(&widgets(&sized())).await.ok();
    assert_eq!(made["status"]["conditions"], Value::Null, "the create itself knows nothing yet");
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    let settled = cluster.get(DEFINITION).await.ok();
    assert_eq!(
        conditions(&settled),
        [
            "NamesAccepted=True NoConflicts: no conflicts found",
            "Established=True InitialNamesAccepted: the initial names have been accepted",
        ]
    );
    assert_eq!(
        settled["status"]["acceptedNames"],
        json!({
            "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
            "shortNames": ["wg"], "categories": ["all"],
        })
    );
    assert_eq!(settled["metadata"]["generation"], 1);
    let resources = cluster.get("/apis/example.com/v1").await.ok();
    let names: Vec<&str> =
        resources["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
    let document = cluster.get("/openapi/v3/apis/example.com/v1").await.ok();
    assert!(document["components"]["schemas"]["com.example.v1.Widget"].is_object());
    let list = cluster.get(WIDGETS).await.ok();
    assert_eq!((list["kind"].as_str(), list["items"].as_array().unwrap().len()), (Some("WidgetList"), 0));
}

#[tokio::test(start_paused = true)]
async fn instances_are_pruned_defaulted_and_validated() {
    let cluster = Cluster::new();
    cluster.define(&widgets(&sized())).await.ok();
    let mut object = widget("a", &json!({"size": "S", "weight": 3}));
    object["status"] = json!({"replicas": 5});
    let reply = cluster.post(WIDGETS, &object).await;
    assert_eq!(reply.warnings, ["299 - \"unknown field \\\"spec.weight\\\"\""]);
    let made = reply.ok();
    assert_eq!(made["spec"], json!({"size": "S", "replicas": 1, "color": "red"}));
    assert_eq!((&made["status"], &made["metadata"]["generation"]), (&Value::Null, &json!(1)));

    let strict = cluster.post(&format!("{WIDGETS}?fieldValidation=Strict"), &object).await;
    let why = "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.weight\"";
    assert_eq!(strict.refused(), (400, why));

    let bad = cluster.post(WIDGETS, &widget("b", &json!({"size": "XL", "replicas": -1}))).await;
    assert_eq!(
        bad.refused(),
        (
            422,
            "Widget.example.com \"b\" is invalid: [spec.size: Unsupported value: \"XL\": supported values: \"S\", \
             \"M\", .spec.replicas: Invalid value: -1: should be a non-negative integer]"
        )
    );
    let none = cluster.post(WIDGETS, &widget("b", &json!({}))).await;
    assert_eq!(none.refused().1, "Widget.example.com \"b\" is invalid: spec.size: Required value");

    let unversioned = cluster.put(&format!("{WIDGETS}/a"), &widget("a", &json!({"size": "M"}))).await;
    assert_eq!(
        unversioned.refused(),
        (
            422,
            "widgets.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified \
             for an update"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn the_generation_counts_the_spec_and_status_has_its_own_door() {
    let cluster = Cluster::new();
    cluster.define(&widgets(&sized())).await.ok();
    cluster.post(WIDGETS, &widget("a", &json!({"size": "S"}))).await.ok();
    let path = format!("{WIDGETS}/a");
    let patch = json!({"spec": {"size": "M"}, "status": {"x": 1}});
    let changed = cluster.patch(&path, &patch).await.ok();
    assert_eq!((&changed["metadata"]["generation"], &changed["status"]), (&json!(2), &Value::Null));
    let labelled = cluster.patch(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert_eq!(labelled["metadata"]["generation"], 2);
    let status = cluster.patch(&format!("{path}/status"), &patch).await.ok();
    assert_eq!((&status["metadata"]["generation"], &status["status"]), (&json!(2), &json!({"x": 1})));
}

/// A storage migration writes nothing else.
#[tokio::test(start_paused = true)]
async fn the_stored_versions_of_a_definition_can_be_patched_alone() {
    let cluster = Cluster::new();
    cluster.define(&widgets(&sized())).await.ok();
    let patch = json!({"status": {"storedVersions": ["v1"]}});
    let patched = cluster.patch(&format!("{DEFINITION}/status"), &patch).await.ok();
    assert_eq!(patched["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(patched["spec"]["names"]["kind"], "Widget");
}

#[tokio::test(start_paused = true)]
async fn the_scale_of_an_instance_follows_the_three_paths() {
    let cluster = Cluster::new();
    let spec = json!({
        "type": "object",
        "properties": {"replicas": {"type": "integer", "maximum": 5}, "size": {"type": "string"}},
    });
    cluster.define(&widgets(&spec)).await.ok();
    cluster.post(WIDGETS, &widget("a", &json!({"replicas": 2}))).await.ok();
    cluster.post(WIDGETS, &widget("none", &json!({}))).await.ok();
    let (path, scale) = (format!("{WIDGETS}/a"), format!("{WIDGETS}/a/scale"));
    let status = json!({"status": {"replicas": 1, "selector": "app=a"}});
    cluster.patch(&format!("{path}/status"), &status).await.ok();
    let read = cluster.get(&scale).await.ok();
    assert_eq!((&read["kind"], &read["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!(read["spec"], json!({"replicas": 2}));
    assert_eq!(read["status"], json!({"replicas": 1, "selector": "app=a"}));

    let mut put = read;
    put["spec"]["replicas"] = json!(3);
    assert_eq!(cluster.put(&scale, &put).await.ok()["spec"]["replicas"], 3);
    assert_eq!(cluster.patch(&scale, &json!({"spec": {"replicas": 4}})).await.ok()["spec"]["replicas"], 4);
    let object = cluster.get(&path).await.ok();
    assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(4), &json!(3)));

    let below = cluster.patch(&scale, &json!({"spec": {"replicas": -1}})).await;
    assert_eq!(
        below.refused().1,
        "Scale.autoscaling \"a\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
    let above = cluster.patch(&scale, &json!({"spec": {"replicas": 6}})).await;
    assert_eq!(
        above.refused().1,
        "Widget.example.com \"a\" is invalid: spec.replicas: Invalid value: 6: spec.replicas in body should be less \
         than or equal to 5"
    );
    let none = cluster.get(&format!("{WIDGETS}/none/scale")).await;
    assert_eq!(
        none.refused(),
        (500, "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist")
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_schema_holds_for_later_requests_and_for_reading_old_objects() {
    let cluster = Cluster::new();
    cluster
        .define(&widgets(&json!({"type": "object", "properties": {"size": {"type": "string"}}})))
        .await
        .ok();
    cluster.post(WIDGETS, &widget("old", &json!({"size": "XL"}))).await.ok();
    let mut definition = cluster.get(DEFINITION).await.ok();
    definition["spec"]["versions"] = json!([version("v1", true, &sized())]);
    assert_eq!(cluster.put(DEFINITION, &definition).await.ok()["metadata"]["generation"], 2);

    let old = cluster.get(&format!("{WIDGETS}/old")).await.ok();
    assert_eq!(old["spec"], json!({"size": "XL", "replicas": 1, "color": "red"}));
    let list = cluster.get(WIDGETS).await.ok();
    assert_eq!(list["items"][0]["spec"]["color"], "red");
    assert_eq!(cluster.post(WIDGETS, &widget("new", &json!({"size": "XL"}))).await.code, 422);
    // What was wrong before may stay wrong while other fields change.
    let patched = cluster.patch(&format!("{WIDGETS}/old"), &json!({"spec": {"color": "blue"}})).await.ok();
    assert_eq!(patched["spec"]["color"], "blue");
}

#[tokio::test(start_paused = true)]
async fn a_name_in_use_keeps_a_definition_from_being_served_until_it_is_free() {
    let cluster = Cluster::new();
    cluster.define(&widgets(&sized())).await.ok();
    let mut second = widgets(&sized());
    second["metadata"]["name"] = json!("gadgets.example.com");
    second["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget", "shortNames": ["wg"]});
    cluster.define(&second).await.ok();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com";
    assert_eq!(
        conditions(&cluster.get(path).await.ok()),
        [
            "NamesAccepted=False ShortNamesConflict: \"wg\" is already in use",
            "Established=False NotAccepted: not all names are accepted",
        ]
    );
    assert_eq!(cluster.get("/apis/example.com/v1/gadgets").await.code, 404);
    cluster.delete(DEFINITION).await.ok();
    assert_eq!(cluster.get("/apis/example.com/v1/gadgets").await.code, 200);
    assert_eq!(cluster.get("/apis/example.com/v1/widgets").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_breaks_the_rules_is_refused() {
    let cluster = Cluster::new();
    let mut definition = widgets(&sized());
    definition["metadata"]["name"] = json!("wrong.example.com");
    let refused = cluster.define(&definition).await;
    assert_eq!(
        refused.refused(),
        (
            422,
            "CustomResourceDefinition.apiextensions.k8s.io \"wrong.example.com\" is invalid: metadata.name: Invalid \
             value: \"wrong.example.com\": must be spec.names.plural+\".\"+spec.group"
        )
    );
    assert_eq!(cluster.get(WIDGETS).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_definition_takes_its_instances_along_and_waits_for_their_finalizers() {
    let cluster = Cluster::new();
    cluster.define(&widgets(&sized())).await.ok();
    cluster.post(WIDGETS, &widget("a", &json!({"size": "S"}))).await.ok();
    let mut held = widget("held", &json!({"size": "S"}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.post(WIDGETS, &held).await.ok();

    let marked = cluster.delete(DEFINITION).await.ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(
        conditions(&marked).last().unwrap(),
        "Terminating=True InstanceDeletionPending: CustomResourceDefinition marked for deletion; CustomResource \
         deletion will begin soon"
    );
    assert_eq!(
        conditions(&cluster.get(DEFINITION).await.ok()).last().unwrap(),
        "Terminating=True InstanceDeletionInProgress: CustomResource deletion is in progress"
    );
    assert_eq!(cluster.get(&format!("{WIDGETS}/a")).await.code, 404);
    let held = cluster.get(&format!("{WIDGETS}/held")).await.ok();
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    let late = cluster.post(WIDGETS, &widget("late", &json!({"size": "S"}))).await;
    let why = "widgets.example.com \"late\" is forbidden: create not allowed while custom resource definition is \
               terminating";
    assert_eq!(late.refused(), (403, why));
    let told = cluster.get("/apis/example.com/v1").await.ok();
    assert_eq!(
        told["resources"][0]["verbs"],
        json!(["delete", "deletecollection", "get", "list", "watch"]),
        "who looks for what can be done is not told of what would keep it alive"
    );

    cluster.patch(&format!("{WIDGETS}/held"), &json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(cluster.get(DEFINITION).await.code, 404);
    assert_eq!(cluster.get(WIDGETS).await.code, 404);
    assert_eq!(cluster.get("/apis/example.com").await.code, 404);
    assert_eq!(cluster.get("/openapi/v3/apis/example.com/v1").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn watches_end_with_their_definition_and_not_with_that_of_others() {
    let cluster = Cluster::new();
    cluster.define(&widgets(&sized())).await.ok();
    cluster.post(WIDGETS, &widget("a", &json!({"size": "S"}))).await.ok();
    let begun = tokio::time::Instant::now();
    let path = format!("{WIDGETS}?watch=true&timeoutSeconds=600");
    let maps = "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=600";
    let lasted = |path: String| {
        let cluster = &cluster;
        async move {
            let events = cluster.events(&path).await;
            (events, begun.elapsed().as_secs())
        }
    };
    let deleting = async {
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        cluster.delete(DEFINITION).await.ok();
    };
    let (widgets, maps, ()) = tokio::join!(lasted(path), lasted(maps.to_owned()), deleting);
    assert_eq!(
        widgets.0.last().map(String::as_str),
        Some("DELETED"),
        "the last thing told is the last thing done"
    );
    assert_eq!((widgets.1, maps.1), (60, 600));
}

#[tokio::test(start_paused = true)]
async fn selectable_fields_select_also_what_is_older_than_they_are() {
    let cluster = Cluster::new();
    let mut definition = widgets(&sized());
    cluster.define(&definition).await.ok();
    for (name, color) in [("a", "red"), ("b", "blue")] {
        cluster.post(WIDGETS, &widget(name, &json!({"size": "S", "color": color}))).await.ok();
    }
    let by_color = format!("{WIDGETS}?fieldSelector=spec.color%3Dblue");
    let unknown = cluster.get(&by_color).await;
    assert_eq!(unknown.refused(), (400, "field label not supported: spec.color"));

    definition = cluster.get(DEFINITION).await.ok();
    definition["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    cluster.put(DEFINITION, &definition).await.ok();
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&cluster.get(&by_color).await.ok()), ["b"]);
    let watched = cluster.events(&format!("{by_color}&watch=1&timeoutSeconds=1")).await;
    assert_eq!(watched, ["ADDED"]);
    let change = json!({"spec": {"color": "blue"}});
    cluster.patch(&format!("{WIDGETS}/a"), &change).await.ok();
    assert_eq!(names(&cluster.get(&by_color).await.ok()), ["a", "b"]);
    cluster.patch(&format!("{WIDGETS}/b"), &json!({"spec": {"color": "red"}})).await.ok();
    cluster.delete(&by_color).await.ok();
    assert_eq!(names(&cluster.get(WIDGETS).await.ok()), ["b"]);

    definition["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.other"}]);
    let refused = cluster.put(DEFINITION, &json!({"spec": definition["spec"], "metadata": {
        "name": definition["metadata"]["name"], "resourceVersion": cluster.get(DEFINITION).await.ok()["metadata"]["resourceVersion"],
    }, "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1"})).await;
    let (code, message) = refused.refused();
    assert_eq!(code, 422);
    assert!(
        message.contains("spec.selectableFields[0].jsonPath: Invalid value: \".spec.other\": is an invalid path: does not refer to a valid field"),
        "{message}"
    );
}
