//! One object that cannot be read in full, and what becomes of it and of all others.

use serde_json::{Value, json};

use crate::{
    scene::{SPOILT, Scene, put, stored},
    world::{EVENTS, PODS, text},
};

/// Later than our calendar goes, and a time all the same.
const LATE: &str = "9999-12-31T23:59:59Z";

type Place = (&'static str, String, String);

fn first(scene: &Scene, table: &str) -> Place {
    scene.victims().into_iter().find(|(own, ..)| *own == table).unwrap()
}

/// Puts a value somewhere in an object, behind the back of the API.
fn spoil(scene: &Scene, place: &Place, pointer: &str, value: Value) {
    let mut object = stored(&scene.world.sim, place).unwrap();
    let keys: Vec<&str> = pointer.split('/').skip(1).collect();
    let mut at = &mut object;
    for key in keys {
        at = match at {
            Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
            other => {
                if !other.is_object() {
                    *other = json!({});
                }
                other.as_object_mut().unwrap().entry(key).or_insert(Value::Null)
            }
        };
    }
    *at = value;
    let (metadata, rest) = crate::mutate::written(&object);
    assert!(put(&scene.world.sim, place, &metadata, &rest));
}

/// The manager goes on, a new one starts, and its caches have what the server has.
#[track_caller]
fn all_is_well(scene: &mut Scene) -> impl Future<Output = ()> + '_ {
    let place = std::panic::Location::caller();
    async move {
        scene.world.live(5).await;
        for _ in 0..2 {
            if let Err(problem) = scene.caches_agree().await {
                panic!("{place}: {problem}");
            }
            if let Err(problem) = scene.converges().await {
                panic!("{place}: {problem}");
            }
            assert!(scene.world.ended().is_none(), "{place}");
            scene.world.start_manager();
            scene.world.live(10).await;
        }
    }
}

fn web(pods: &[Value]) -> Vec<&Value> {
    pods.iter().filter(|pod| pod["metadata"]["labels"]["app"] == "web").collect()
}

/// Issue 19: the LIST of all pods failed, the CloneSet reported pods that were gone and made no new ones.
#[tokio::test(start_paused = true)]
async fn a_pod_with_a_time_beyond_the_calendar_hides_no_other() {
    let mut scene = Scene::new(1).await;
    let pod = first(&scene, "/pods");
    spoil(&scene, &pod, "/status/startTime", json!(LATE));
    spoil(&scene, &pod, "/status/conditions/0/lastTransitionTime", json!(LATE));
    all_is_well(&mut scene).await;
    let pods = scene.world.list(PODS).await;
    let other = web(&pods).into_iter().find(|other| text(&other["metadata"]["name"]) != pod.2).unwrap();
    let other = text(&other["metadata"]["name"]).to_owned();
    scene.world.delete(&format!("{PODS}/{other}")).await;
    scene.world.live(60).await;
    let pods = scene.world.list(PODS).await;
    assert_eq!(web(&pods).len(), 3, "the one that was deleted is replaced");
    // The one with that time can be deleted too, and a new manager, which knows only the list, sees that.
    scene.world.delete(&format!("{PODS}/{}", pod.2)).await;
    scene.world.live(60).await;
    let pods = scene.world.list(PODS).await;
    assert_eq!(web(&pods).len(), 3);
    assert!(!pods.iter().any(|other| text(&other["metadata"]["name"]) == pod.2));
    all_is_well(&mut scene).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_with_a_time_beyond_the_calendar_hides_no_other() {
    let mut scene = Scene::new(2).await;
    let node = first(&scene, "/nodes");
    spoil(&scene, &node, "/status/conditions/0/lastTransitionTime", json!(LATE));
    spoil(&scene, &node, "/metadata/annotations", json!({"a": 5}));
    all_is_well(&mut scene).await;
}

/// Where a time or something else is wrong in each kind that is read.
#[tokio::test(start_paused = true)]
async fn no_kind_has_a_field_that_stops_its_list() {
    let mut scene = Scene::new(3).await;
    let fields = [
        (
            "/persistentvolumeclaims",
            "/status/conditions",
            json!([{"type": "Resizing", "lastProbeTime": LATE}]),
        ),
        ("/persistentvolumeclaims", "/metadata/creationTimestamp", json!(7)),
        ("/namespaces", "/metadata/managedFields", json!([{"manager": "x", "time": LATE}])),
        ("apps/controllerrevisions", "/metadata/creationTimestamp", json!(LATE)),
        ("apps/controllerrevisions", "/revision", json!("first")),
        ("/events", "/lastTimestamp", json!(LATE)),
        ("coordination.k8s.io/leases", "/spec/renewTime", json!(LATE)),
        (
            "apps.kruise.io/nodeimages",
            "/status",
            json!({"imageStatuses": {"a": {"tags": [{"startTime": LATE, "phase": 5}]}}}),
        ),
        (
            "apps.kruise.io/clonesets",
            "/status/conditions",
            json!([{"type": "Progressing", "lastUpdateTime": "soon"}]),
        ),
        ("apps.kruise.io/clonesets", "/spec/replicas", json!("many")),
        ("apps.kruise.io/imagepulljobs", "/status/startTime", json!(LATE)),
        ("apps.kruise.io/sidecarsets", "/spec", json!([])),
    ];
    for (table, pointer, value) in fields {
        let place = first(&scene, table);
        spoil(&scene, &place, pointer, value);
    }
    all_is_well(&mut scene).await;
}

/// A pod of which the spec cannot be read counts, is named once, and stays as it is.
#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_read_counts_and_is_not_touched() {
    let scene = Scene::new(4).await;
    let pod = first(&scene, "/pods");
    spoil(&scene, &pod, "/spec/containers/0/image", json!(5));
    scene.world.live(30).await;
    let before = stored(&scene.world.sim, &pod).unwrap();
    let set = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets/web";
    let status = scene.world.get(set).await["status"].clone();
    assert_eq!((&status["replicas"], &status["readyReplicas"]), (&json!(3), &json!(2)));
    // Others go when there are too many.
    scene.world.patch(set, json!({"spec": {"replicas": 1}})).await;
    scene.world.live(120).await;
    let pods = scene.world.list(PODS).await;
    let left: Vec<&str> = web(&pods).into_iter().map(|pod| text(&pod["metadata"]["name"])).collect();
    assert_eq!(left, [pod.2.as_str()]);
    let after = stored(&scene.world.sim, &pod).unwrap();
    assert_eq!((&after["spec"], &after["metadata"]), (&before["spec"], &before["metadata"]));
    let events = scene.world.list(EVENTS).await;
    let told: Vec<&Value> = events.iter().filter(|event| event["reason"] == "Unreadable").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["involvedObject"]["name"], &told[0]["type"]), (&json!(pod.2), &json!("Warning")));
    assert_eq!(told[0]["count"], 1);
    let message = text(&told[0]["message"]);
    assert!(message.contains("spec.containers[0].image"), "{message}");
    let metrics = scene.world.metrics();
    assert!(metrics.contains("kruise_unreadable_objects{kind=\"Pod\"} 1"), "{metrics}");
    // With its deletion it is forgotten.
    let (_, namespace, name) = &pod;
    let record = scene.world.sim.server().store().get("/pods", namespace, name).unwrap();
    scene.world.sim.server().store().remove("/pods", namespace, name, record.rv).unwrap();
    scene.world.live(60).await;
    let metrics = scene.world.metrics();
    assert!(metrics.contains("kruise_unreadable_objects{kind=\"Pod\"} 0"), "{metrics}");
    let pods = scene.world.list(PODS).await;
    assert_eq!(web(&pods).len(), 1, "its successor is there");
    assert_eq!(namespace, SPOILT);
}
