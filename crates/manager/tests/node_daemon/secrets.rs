//! Pulls in the name of somebody.

use serde_json::{Value, json};

use crate::{
    images::{job, over, told},
    world::{COPIES, IMAGES, JOBS, PULLS, SECRETS, World, text},
};

/// A pull secret for a registry, with these words of an account.
fn secret(name: &str, registry: &str, user: &str, password: &str) -> Value {
    let config = json!({"auths": {registry: {"username": user, "password": password}}}).to_string();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": config}})
}

async fn begin() -> World {
    let world = World::new(2, PULLS).await;
    world.sim.protect_images("private.io/", "me", "secret");
    world
}

/// IMAGES-16 and IMAGES-17: the copy of a secret is there while jobs need it, one for all of them.
#[tokio::test(start_paused = true)]
async fn a_secret_is_copied_while_jobs_need_it() {
    let world = begin().await;
    world.post(SECRETS, secret("s1", "private.io", "me", "secret")).await;
    let spec = json!({"image": "private.io/app:v1-slow10", "pullSecrets": ["s1"]});
    job(&world, "one", spec).await;
    job(&world, "two", json!({"image": "private.io/more:v1-slow60", "pullSecrets": ["s1"]})).await;
    world.live(5).await;
    let copies = world.list(COPIES).await;
    assert_eq!(copies.len(), 1);
    let (name, notes) = (text(&copies[0]["metadata"]["name"]), &copies[0]["metadata"]["annotations"]);
    assert!(name.starts_with("s1-") && name.len() == "s1-".len() + 6, "{name}");
    assert_eq!(notes["imagepulljobs.kruise.io/source-key"], "default/s1");
    assert_eq!(notes["imagepulljobs.kruise.io/references"], "default/one,default/two");
    assert_eq!(notes["imagepulljobs.kruise.io/mode"], "batch");
    assert_eq!(told(&over(&world, "one").await), "2/0/2/0 job has completed");
    world.live(5).await;
    let copies = world.list(COPIES).await;
    assert_eq!(copies[0]["metadata"]["annotations"]["imagepulljobs.kruise.io/references"], "default/two");
    assert_eq!(told(&over(&world, "two").await), "2/0/2/0 job has completed");
    world.live(10).await;
    assert!(world.list(COPIES).await.is_empty(), "although both jobs are still there");
    assert_eq!(world.list(JOBS).await.len(), 2);
    assert_eq!(world.pulls("node-1")[0].1.as_deref(), Some("me"));
}

/// IMAGES-18 and IMAGES-19: a secret that comes late is used by the next attempt, and a new one is copied.
#[tokio::test(start_paused = true)]
async fn a_secret_that_comes_late_is_used_by_the_next_attempt() {
    let world = begin().await;
    let policy = json!({"backoffLimit": 20, "timeoutSeconds": 60});
    job(
        &world,
        "late",
        json!({"image": "private.io/app:v1", "pullSecrets": ["s1"], "pullPolicy": policy,
        "completionPolicy": {"type": "Never"}}),
    )
    .await;
    world.live(20).await;
    assert!(world.list(COPIES).await.is_empty());
    assert!(world.pulls("node-1").iter().all(|(_, user)| user.is_none()));
    world.post(SECRETS, secret("s1", "private.io", "me", "secret")).await;
    world.live(10).await;
    assert_eq!(world.list(COPIES).await.len(), 1);
    world.until(&format!("{JOBS}/late"), |job| told(job).starts_with("2/0/2/0")).await;
    assert_eq!(world.pulls("node-1").last().unwrap().1.as_deref(), Some("me"));
    let change = json!({"stringData": {".dockerconfigjson": "{}"}});
    world.patch(&format!("{SECRETS}/s1"), change).await;
    world.live(10).await;
    let (source, copy) = (world.get(&format!("{SECRETS}/s1")).await, world.list(COPIES).await.remove(0));
    assert_eq!(copy["data"], source["data"]);
}

/// IMAGES-20: a job beside the copies uses the secret itself.
#[tokio::test(start_paused = true)]
async fn a_job_in_the_namespace_of_the_daemons_needs_no_copy() {
    let world = begin().await;
    world.post(COPIES, secret("own", "private.io", "me", "secret")).await;
    let path = "/apis/apps.kruise.io/v1beta1/namespaces/kruise-daemon-config/imagepulljobs";
    let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": "own"},
        "spec": {"image": "private.io/app:v1", "pullSecrets": ["own"], "parallelism": 2, "completionPolicy": {}}});
    world.post(path, object).await;
    let done = world.until(&format!("{path}/own"), |job| job["status"]["completionTime"].is_string()).await;
    assert_eq!(told(&done), "2/0/2/0 job has completed");
    assert_eq!(world.list(COPIES).await.len(), 1);
    let node = world.get(&format!("{IMAGES}/node-1")).await;
    let wanted = json!([{"namespace": "kruise-daemon-config", "name": "own"}]);
    assert_eq!(node["spec"]["images"]["private.io/app"]["pullSecrets"], wanted);
}

/// IMAGES-21 and IMAGES-22: wrong credentials are not replaced by none; those of others are not used.
#[tokio::test(start_paused = true)]
async fn only_credentials_of_the_registry_are_used() {
    let world = begin().await;
    let pull = json!({"backoffLimit": 0});
    world.post(SECRETS, secret("wrong", "public.io", "me", "guess")).await;
    job(&world, "wrong", json!({"image": "public.io/app:v1", "pullSecrets": ["wrong"], "pullPolicy": pull}))
        .await;
    assert_eq!(told(&over(&world, "wrong").await), "2/0/0/2 job has completed");
    let node = world.get(&format!("{IMAGES}/node-1")).await;
    let message = text(&node["status"]["imageStatuses"]["public.io/app"]["tags"][0]["message"]).to_owned();
    assert!(
        message.starts_with("rpc error: code = Unknown") && message.ends_with("401 Unauthorized"),
        "{message}"
    );
    job(&world, "other", json!({"image": "x.io/app:v1", "pullSecrets": ["wrong"], "pullPolicy": pull})).await;
    assert_eq!(told(&over(&world, "other").await), "2/0/2/0 job has completed");
    world.sim.protect_images("docker.io/", "me", "secret");
    world.post(SECRETS, secret("hub", "https://index.docker.io/v1/", "me", "secret")).await;
    for (name, image, wanted) in [
        ("hub", "nginx:1", "2/0/2/0"),
        ("library", "library/nginx:2", "2/0/2/0"),
        ("quay", "quay.io/x:1", "2/0/2/0"),
    ] {
        job(&world, name, json!({"image": image, "pullSecrets": ["hub"], "pullPolicy": pull})).await;
        assert!(told(&over(&world, name).await).starts_with(wanted), "{name}");
    }
    let users: Vec<Option<String>> =
        world.pulls("node-1").into_iter().rev().take(3).map(|(_, user)| user).collect();
    assert_eq!(users, [None, Some("me".to_owned()), Some("me".to_owned())]);
}

/// IMAGES-44: what a client of the older version writes back keeps what it does not know.
#[tokio::test(start_paused = true)]
async fn the_older_version_keeps_the_mode_of_secrets() {
    let world = begin().await;
    world.post(SECRETS, secret("s1", "private.io", "me", "secret")).await;
    job(&world, "one", json!({"image": "private.io/app:v1-slow60", "pullSecrets": ["s1"]})).await;
    world.live(10).await;
    let old = "/apis/apps.kruise.io/v1alpha1/nodeimages/node-1";
    let mut object = world.get(old).await;
    object["metadata"]["labels"]["own"] = json!("label");
    world.put(old, &object).await.unwrap();
    let secrets =
        world.get(&format!("{IMAGES}/node-1")).await["spec"]["images"]["private.io/app"]["pullSecrets"]
            .clone();
    assert_eq!(secrets[0]["mode"], "batch");
}
