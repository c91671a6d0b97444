//! What people see when nothing goes wrong.

use std::time::Duration;

use kruise_runtime::random::Random;
use kruise_sim::{Node, Sim};
use serde_json::{Value, json};

use crate::{
    process::Process,
    world::{CONFIG, Nodes, all, create, get, install, job, jobs, lists, node_images, remove, secrets, tags},
};

/// A cluster whose nodes are ready for long enough.
async fn begin(nodes: usize) -> (Sim, Process) {
    let sim = Sim::builder().seed(7).nodes(nodes).start();
    install(&sim).await;
    let process = Process::start(&sim, &Random::seeded(7), None);
    sim.advance(Duration::from_secs(60)).await;
    (sim, process)
}

fn told(job: &Value) -> String {
    let status = &job["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    format!(
        "{}/{}/{}/{} {}",
        number("desired"),
        number("active"),
        number("succeeded"),
        number("failed"),
        status["message"].as_str().unwrap_or_default()
    )
}

/// IMAGES-1, IMAGES-2: one for each node, with its labels, as long as the node is there; then nothing is written any more.
#[tokio::test(start_paused = true)]
async fn every_node_has_a_node_image() {
    let (sim, process) = begin(3).await;
    let found = all(&node_images(&sim)).await;
    assert_eq!(found.len(), 3);
    for node in &found {
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], node["metadata"]["name"]);
        assert_eq!(node["spec"], json!({}));
    }
    let passes = process.passes();
    sim.advance(Duration::from_secs(3600)).await;
    assert_eq!(process.passes(), passes, "an idle cluster costs nothing");
    let nodes = crate::world::api(&sim, "", "", "Node", "nodes");
    let labelled = json!({"metadata": {"labels": {"disk": "fast"}}});
    nodes
        .patch("node-1", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(labelled))
        .await
        .unwrap();
    sim.advance(Duration::from_secs(5)).await;
    assert_eq!(get(&node_images(&sim), "node-1").await["metadata"]["labels"]["disk"], "fast");
    sim.add_node(Node::named("late"));
    sim.advance(Duration::from_secs(20)).await;
    assert!(get(&node_images(&sim), "late").await.is_null(), "not before it was ready for half a minute");
    sim.advance(Duration::from_secs(40)).await;
    assert!(get(&node_images(&sim), "late").await.is_object());
    sim.stop_node("late");
    remove(&nodes, "late").await;
    sim.advance(Duration::from_secs(5)).await;
    assert!(get(&node_images(&sim), "late").await.is_null());
}

/// IMAGES-4: done, deleted after its time, and no tag is left a little later.
#[tokio::test(start_paused = true)]
async fn a_job_pulls_on_all_nodes_and_goes() {
    let (sim, _process) = begin(3).await;
    let mut nodes = Nodes::new(2);
    job(
        &sim,
        "all",
        json!({"parallelism": 3, "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 20}}),
    )
    .await;
    nodes.live(&sim, 3).await;
    assert!(told(&get(&jobs(&sim), "all").await).starts_with("3/"));
    nodes.live(&sim, 7).await;
    assert_eq!(told(&get(&jobs(&sim), "all").await), "3/0/3/0 job has completed");
    assert_eq!(tags(&sim).await.len(), 3);
    nodes.live(&sim, 25).await;
    assert!(get(&jobs(&sim), "all").await.is_null());
    assert_eq!(tags(&sim).await, Vec::<String>::new());
    assert!(nodes.pulls.values().all(|rounds| rounds.len() == 1), "{:?}", nodes.pulls);
}

/// IMAGES-5, IMAGES-6: one node after the other, and a pause.
#[tokio::test(start_paused = true)]
async fn nodes_take_turns_and_a_paused_job_waits() {
    let (sim, _process) = begin(4).await;
    let mut nodes = Nodes::new(3);
    job(&sim, "slow", json!({"parallelism": 1})).await;
    job(&sim, "paused", json!({"parallelism": 0, "image": "x.io/other:v1"})).await;
    nodes.live(&sim, 60).await;
    assert_eq!(told(&get(&jobs(&sim), "slow").await), "4/0/4/0 job has completed");
    assert_eq!(nodes.most_at_once.get("x.io/app:v1"), Some(&1));
    assert_eq!(told(&get(&jobs(&sim), "paused").await), "4/0/0/0 job is running, progress 0.0%");
    let go = json!({"spec": {"parallelism": 2}});
    jobs(&sim)
        .patch("paused", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(go))
        .await
        .unwrap();
    sim.advance(Duration::from_secs(2)).await;
    assert_eq!(tags(&sim).await.iter().filter(|tag| tag.contains("other")).count(), 2);
    nodes.live(&sim, 40).await;
    assert_eq!(nodes.most_at_once.get("x.io/other:v1"), Some(&2));
}

/// IMAGES-16 to IMAGES-19: copies of secrets come, follow, are shared, and go.
#[tokio::test(start_paused = true)]
async fn secrets_are_copied_while_jobs_need_them() {
    let (sim, _process) = begin(2).await;
    let mut nodes = Nodes::new(4);
    let secret = |data: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1"}, "type": "Opaque", "data": {"k": data}});
    let spec = json!({"pullSecrets": ["s1", "s2"], "parallelism": 2});
    job(&sim, "one", spec.clone()).await;
    nodes.live(&sim, 2).await;
    assert!(all(&secrets(&sim, CONFIG)).await.is_empty());
    create(&secrets(&sim, "default"), secret("YQ==")).await;
    nodes.live(&sim, 2).await;
    let copies = all(&secrets(&sim, CONFIG)).await;
    assert_eq!(copies.len(), 1);
    assert_eq!(copies[0]["metadata"]["annotations"]["imagepulljobs.kruise.io/references"], "default/one");
    let reference = json!([{"namespace": CONFIG, "name": copies[0]["metadata"]["name"], "mode": "batch"}]);
    nodes.live(&sim, 1).await;
    for node in all(&node_images(&sim)).await {
        assert_eq!(node["spec"]["images"]["x.io/app"]["pullSecrets"], reference);
    }
    job(&sim, "two", json!({"pullSecrets": ["s1"], "completionPolicy": {"type": "Never"}, "parallelism": 2}))
        .await;
    nodes.live(&sim, 30).await;
    assert_eq!(told(&get(&jobs(&sim), "one").await), "2/0/2/0 job has completed");
    let copies = all(&secrets(&sim, CONFIG)).await;
    assert_eq!(copies.len(), 1);
    assert_eq!(copies[0]["metadata"]["annotations"]["imagepulljobs.kruise.io/references"], "default/two");
    let change = json!({"data": {"k": "Yg=="}});
    secrets(&sim, "default")
        .patch("s1", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(change))
        .await
        .unwrap();
    nodes.live(&sim, 5).await;
    assert_eq!(all(&secrets(&sim, CONFIG)).await[0]["data"], json!({"k": "Yg=="}));
    remove(&jobs(&sim), "two").await;
    nodes.live(&sim, 10).await;
    assert!(all(&secrets(&sim, CONFIG)).await.is_empty());
    assert!(get(&jobs(&sim), "two").await.is_null());
}

/// IMAGES-25, IMAGES-26, with a manager that dies in between.
#[tokio::test(start_paused = true)]
async fn jobs_share_a_tag_and_the_last_one_takes_it_along() {
    let (sim, process) = begin(1).await;
    let mut nodes = Nodes::new(2);
    job(&sim, "one", json!({})).await;
    nodes.live(&sim, 10).await;
    job(&sim, "two", json!({})).await;
    nodes.live(&sim, 10).await;
    let tag = get(&node_images(&sim), "node-1").await["spec"]["images"]["x.io/app"]["tags"][0].clone();
    assert_eq!((tag["version"].as_i64(), tag["ownerReferences"].as_array().unwrap().len()), (Some(1), 2));
    assert_eq!(told(&get(&jobs(&sim), "two").await), "1/0/1/0 job has completed");
    remove(&jobs(&sim), "one").await;
    nodes.live(&sim, 5).await;
    assert_eq!(tags(&sim).await.len(), 1);
    drop(process);
    remove(&jobs(&sim), "two").await;
    nodes.live(&sim, 5).await;
    let _process = Process::start(&sim, &Random::seeded(8), None);
    nodes.live(&sim, 10).await;
    assert_eq!(tags(&sim).await, Vec::<String>::new());
}

/// IMAGES-30: nodes without a daemon.
#[tokio::test(start_paused = true)]
async fn a_node_that_never_answers_has_failed_after_ten_minutes() {
    let (sim, _process) = begin(1).await;
    job(&sim, "unheard", json!({})).await;
    sim.advance(Duration::from_secs(590)).await;
    assert_eq!(told(&get(&jobs(&sim), "unheard").await), "1/1/0/0 job is running, progress 0.0%");
    sim.advance(Duration::from_secs(15)).await;
    assert_eq!(told(&get(&jobs(&sim), "unheard").await), "1/0/0/1 job has completed");
    let status = get(&node_images(&sim), "node-1").await["status"].clone();
    let tag = &status["imageStatuses"]["x.io/app"]["tags"][0];
    assert_eq!(tag["message"], "node has not responded for a long time");
    assert_eq!(status["firstSyncStatus"]["status"], "Failed");
}

/// IMAGES-34, IMAGES-35: a list with a bad image, and what it leaves.
#[tokio::test(start_paused = true)]
async fn a_list_has_a_job_for_each_image_and_names_those_that_failed() {
    let (sim, _process) = begin(2).await;
    let mut nodes = Nodes::new(2);
    nodes.broken = vec!["x.io/bad:v1"];
    let list = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "metadata": {"name": "lst"},
        "spec": {"images": ["x.io/app:v1", "x.io/bad:v1"], "parallelism": 2,
            "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 20}}});
    create(&lists(&sim), list).await;
    nodes.live(&sim, 12).await;
    let status = get(&lists(&sim), "lst").await["status"].clone();
    assert_eq!(
        (&status["desired"], &status["completed"], &status["succeeded"]),
        (&json!(2), &json!(2), &json!(1))
    );
    assert_eq!(status["failedImageStatuses"][0]["name"], "x.io/bad:v1");
    assert_eq!(all(&jobs(&sim)).await.len(), 2);
    nodes.live(&sim, 40).await;
    assert!(get(&lists(&sim), "lst").await.is_null());
    assert!(all(&jobs(&sim)).await.is_empty(), "children go with their list");
    assert_eq!(tags(&sim).await, Vec::<String>::new());
    assert!(nodes.pulls.values().all(|rounds| rounds.len() == 1), "{:?}", nodes.pulls);
}

/// A job that takes longer than the time of its tags asks every node once.
#[tokio::test(start_paused = true)]
async fn a_slow_job_asks_no_node_twice() {
    let (sim, _process) = begin(12).await;
    let mut nodes = Nodes::new(120);
    let policy = json!({"timeoutSeconds": 150, "backoffLimit": 1});
    job(&sim, "slow", json!({"pullPolicy": policy, "parallelism": 1})).await;
    nodes.live(&sim, 1800).await;
    assert_eq!(told(&get(&jobs(&sim), "slow").await), "12/0/12/0 job has completed");
    assert!(nodes.pulls.values().all(|rounds| rounds.len() == 1), "{:?}", nodes.pulls);
    nodes.live(&sim, 3000).await;
    assert_eq!(tags(&sim).await, Vec::<String>::new(), "its tags go when it is over and their time has come");
}

/// Stored before admission refused it.
#[tokio::test(start_paused = true)]
async fn a_stored_list_with_an_impossible_image_pulls_the_others_and_is_quiet() {
    let (sim, process) = begin(2).await;
    create(
        &lists(&sim),
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "metadata": {"name": "odd"},
            "spec": {"images": ["UPPER/x", "x.io/app:v1"], "completionPolicy": {"type": "Always"}}}),
    )
    .await;
    Nodes::new(3).live(&sim, 60).await;
    let made = all(&jobs(&sim)).await;
    let images: Vec<&str> = made.iter().map(|job| job["spec"]["image"].as_str().unwrap()).collect();
    assert_eq!(images, ["x.io/app:v1"]);
    let status = get(&lists(&sim), "odd").await["status"].clone();
    assert_eq!(status["failedImageStatuses"][0]["name"], "UPPER/x", "{status}");
    let passes = process.passes_of("imagelistpulljob-controller");
    sim.advance(Duration::from_secs(4 * 3600)).await;
    assert_eq!(process.passes_of("imagelistpulljob-controller"), passes);
}
