//! Lists of images.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    images::wanted,
    world::{JOBS, LISTS, PULLS, World, text},
};

async fn list(world: &World, images: &[&str], policy: Value) -> Value {
    let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "metadata": {"name": "lst"},
        "spec": {"images": images, "parallelism": 2, "pullPolicy": {"backoffLimit": 0}, "completionPolicy": policy}});
    world.post(LISTS, object).await
}

const LIST: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/imagelistpulljobs/lst";

fn numbers(list: &Value) -> [i64; 3] {
    ["desired", "completed", "succeeded"].map(|field| list["status"][field].as_i64().unwrap_or_default())
}

/// The jobs of a list: image and uid.
async fn children(world: &World) -> BTreeMap<String, String> {
    let jobs = world.list(JOBS).await;
    let alive = jobs.iter().filter(|job| job["metadata"]["deletionTimestamp"].is_null());
    alive
        .map(|job| (text(&job["spec"]["image"]).to_owned(), text(&job["metadata"]["uid"]).to_owned()))
        .collect()
}

/// IMAGES-34: a job for each image, and nothing is pulled twice or left.
#[tokio::test(start_paused = true)]
async fn a_list_pulls_each_image_once_and_goes() {
    let world = World::new(2, PULLS).await;
    list(&world, &["x.io/a:v1", "x.io/b:v1"], json!({"type": "Always", "ttlSecondsAfterFinished": 20})).await;
    let done = world.until(LIST, |list| list["status"]["completionTime"].is_string()).await;
    assert_eq!(numbers(&done), [2, 2, 2]);
    let jobs = world.list(JOBS).await;
    assert_eq!(jobs.len(), 2);
    assert!(jobs.iter().all(|job| job["metadata"]["labels"]["controller-revision-hash"].is_string()));
    world.live(40).await;
    assert!(world.get(LIST).await.is_null() && world.list(JOBS).await.is_empty());
    assert_eq!(wanted(&world).await, 0);
    for node in ["node-1", "node-2"] {
        let mut pulled: Vec<String> = world.pulls(node).into_iter().map(|(image, _)| image).collect();
        pulled.sort();
        assert_eq!(pulled, ["x.io/a:v1", "x.io/b:v1"]);
    }
}

/// IMAGES-35 and IMAGES-38: a bad image is named; what is finished stays as it is.
#[tokio::test(start_paused = true)]
async fn a_list_names_the_image_that_failed() {
    let world = World::new(2, PULLS).await;
    list(&world, &["x.io/a:v1", "x.io/gone:v1-fail"], json!({"type": "Always"})).await;
    let done = world.until(LIST, |list| list["status"]["completionTime"].is_string()).await;
    assert_eq!(numbers(&done), [2, 2, 1]);
    let failed = &done["status"]["failedImageStatuses"];
    assert_eq!((failed.as_array().unwrap().len(), &failed[0]["name"]), (1, &json!("x.io/gone:v1-fail")));
    let before = children(&world).await;
    world.patch(LIST, json!({"spec": {"images": ["x.io/c:v1"]}})).await;
    world.live(60).await;
    assert_eq!(children(&world).await, before);
}

/// IMAGES-36 and IMAGES-37: a list without an end follows its edits.
#[tokio::test(start_paused = true)]
async fn a_list_without_an_end_follows_its_edits() {
    let world = World::new(2, PULLS).await;
    list(&world, &["x.io/a:v1", "x.io/b:v1"], json!({"type": "Never"})).await;
    let done = world.until(LIST, |list| numbers(list) == [2, 2, 2]).await;
    assert!(done["status"]["completionTime"].is_null());
    let before = children(&world).await;
    world.patch(LIST, json!({"spec": {"images": ["x.io/a:v1", "x.io/c:v1"]}})).await;
    world.until(LIST, |list| numbers(list) == [2, 2, 2]).await;
    world.live(30).await;
    let after = children(&world).await;
    assert_eq!(after.keys().collect::<Vec<_>>(), ["x.io/a:v1", "x.io/c:v1"]);
    assert_eq!(after["x.io/a:v1"], before["x.io/a:v1"], "the one that stays is not touched");
    world.patch(LIST, json!({"spec": {"parallelism": 1}})).await;
    world.live(30).await;
    let last = children(&world).await;
    assert_eq!(last.len(), 2);
    assert!(last.iter().all(|(image, uid)| after[image] != *uid), "all are replaced");
}
