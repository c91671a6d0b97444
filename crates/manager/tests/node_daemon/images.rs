//! Images are pulled on nodes.

use std::collections::BTreeMap;

use kruise_sim::{Node, machine::Deed};
use serde_json::{Value, json};

use crate::world::{IMAGES, JOBS, NODES, PODS, PULLS, World, pod, seconds, text, time};

/// A job that pulls `x.io/app:v1` unless told otherwise.
pub(crate) async fn job(world: &World, name: &str, spec: Value) -> Value {
    let mut whole =
        json!({"image": "x.io/app:v1", "completionPolicy": {"type": "Always"}, "parallelism": 10});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": name},
        "spec": whole});
    world.post(JOBS, object).await
}

/// The numbers of a job, desired, active, succeeded and failed, and its message.
pub(crate) fn told(job: &Value) -> String {
    let number = |field: &str| job["status"][field].as_i64().unwrap_or_default();
    let numbers = ["desired", "active", "succeeded", "failed"].map(|field| number(field).to_string());
    format!("{} {}", numbers.join("/"), text(&job["status"]["message"]))
}

/// Waits until a job has completed.
pub(crate) async fn over(world: &World, name: &str) -> Value {
    let path = format!("{JOBS}/{name}");
    world.until(&path, |job| job["status"]["completionTime"].is_string()).await
}

/// The first tag that the status of a node tells of an image.
async fn tag(world: &World, node: &str, image: &str) -> Value {
    world.get(&format!("{IMAGES}/{node}")).await["status"]["imageStatuses"][image]["tags"][0].clone()
}

/// The tags that nodes are asked for.
pub(crate) async fn wanted(world: &World) -> usize {
    let images = world.list(IMAGES).await;
    let tags = images.iter().flat_map(|node| node["spec"]["images"].as_object().into_iter().flatten());
    tags.map(|(_, image)| image["tags"].as_array().map_or(0, Vec::len)).sum()
}

/// IMAGES-1 and IMAGES-4: every node pulls, the job tells, and nothing is left.
#[tokio::test(start_paused = true)]
async fn a_job_pulls_on_every_node_and_leaves_nothing() {
    let world = World::new(3, PULLS).await;
    let nodes = world.list(IMAGES).await;
    assert_eq!(
        nodes.iter().map(|node| text(&node["metadata"]["name"])).collect::<Vec<_>>(),
        ["node-1", "node-2", "node-3"]
    );
    let policy = json!({"type": "Always", "ttlSecondsAfterFinished": 20});
    job(&world, "all", json!({"image": "busybox:1.36", "completionPolicy": policy})).await;
    world.live(3).await;
    assert!(told(&world.get(&format!("{JOBS}/all")).await).starts_with("3/"));
    let done = over(&world, "all").await;
    assert_eq!(told(&done), "3/0/3/0 job has completed");
    for node in ["node-1", "node-2", "node-3"] {
        let told = tag(&world, node, "busybox").await;
        assert_eq!((&told["phase"], &told["progress"]), (&json!("Succeeded"), &json!(100)));
        assert!(text(&told["imageID"]).starts_with("busybox@sha256:"));
        assert_eq!(world.pulls(node), [("busybox:1.36".to_owned(), None)]);
    }
    world.live(25).await;
    assert!(world.get(&format!("{JOBS}/all")).await.is_null());
    assert_eq!(wanted(&world).await, 0);
    // Pods find the image there.
    let mut own = pod("own");
    own["spec"]["containers"] = json!([{"name": "app", "image": "docker.io/library/busybox:1.36"}]);
    world.ready(own).await;
    let pulled = world.events("Pulled").await;
    assert!(pulled.iter().any(|(_, text)| text.contains("already present on machine")), "{pulled:?}");
}

/// IMAGES-5: one node after the other.
#[tokio::test(start_paused = true)]
async fn no_more_nodes_pull_at_once_than_allowed() {
    let world = World::new(4, PULLS).await;
    job(&world, "slow", json!({"image": "x.io/app:v1-slow10", "parallelism": 1})).await;
    assert_eq!(told(&over(&world, "slow").await), "4/0/4/0 job has completed");
    let mut begun: Vec<jiff::Timestamp> = Vec::new();
    for node in 1..=4 {
        let deeds = world.sim.machine(&format!("node-{node}")).deeds();
        begun.extend(deeds.iter().filter(|(_, deed)| matches!(deed, Deed::Pull { .. })).map(|(at, _)| *at));
    }
    begun.sort();
    assert_eq!(begun.len(), 4);
    assert!(begun.windows(2).all(|two| seconds(two[0], two[1]) >= 10.0), "{begun:?}");
}

/// IMAGES-6: a paused job asks nobody.
#[tokio::test(start_paused = true)]
async fn a_paused_job_waits_until_it_is_let_go() {
    let world = World::new(3, PULLS).await;
    job(&world, "paused", json!({"parallelism": 0, "image": "x.io/app:v1-slow60"})).await;
    world.live(60).await;
    assert_eq!(wanted(&world).await, 0);
    world.patch(&format!("{JOBS}/paused"), json!({"spec": {"parallelism": 2}})).await;
    world.live(5).await;
    assert_eq!(wanted(&world).await, 2);
}

/// IMAGES-7 and IMAGES-11: by name, and nobody at all.
#[tokio::test(start_paused = true)]
async fn a_job_may_name_its_nodes() {
    let world = World::new(2, PULLS).await;
    job(&world, "named", json!({"selector": {"names": ["node-1", "missing"]}})).await;
    assert_eq!(told(&over(&world, "named").await), "1/0/1/0 job has completed");
    job(&world, "nobody", json!({"selector": {"matchLabels": {"no": "node"}}})).await;
    assert_eq!(told(&over(&world, "nobody").await), "0/0/0/0 job has completed");
    job(
        &world,
        "never",
        json!({"selector": {"matchLabels": {"no": "node"}}, "completionPolicy": {"type": "Never"}}),
    )
    .await;
    let never = world.until(&format!("{JOBS}/never"), |job| job["status"]["message"].is_string()).await;
    assert_eq!(told(&never), "0/0/0/0 job is running, no progress");
    assert_eq!(world.pulls("node-2"), []);
}

/// IMAGES-8 and IMAGES-9: by label, also one that comes later; and nodes that come later.
#[tokio::test(start_paused = true)]
async fn nodes_that_come_during_a_job_take_part() {
    let mut world = World::new(3, PULLS).await;
    let fast = json!({"metadata": {"labels": {"disk": "fast"}}});
    world.patch(&format!("{NODES}/node-1"), fast.clone()).await;
    world.live(5).await;
    let selector = json!({"matchLabels": {"disk": "fast"}});
    job(&world, "fast", json!({"selector": selector, "image": "x.io/app:v1-slow60"})).await;
    job(&world, "every", json!({"selector": {}, "image": "x.io/other:v1-slow60"})).await;
    world.live(10).await;
    assert!(told(&world.get(&format!("{JOBS}/fast")).await).starts_with("1/1/"));
    world.patch(&format!("{NODES}/node-2"), fast).await;
    world.sim.add_node(Node::named("late"));
    world.live(3).await;
    world.start_daemon("late");
    assert_eq!(told(&over(&world, "fast").await), "2/0/2/0 job has completed");
    assert_eq!(told(&over(&world, "every").await), "4/0/4/0 job has completed");
    assert_eq!(world.pulls("late").len(), 1);
}

/// IMAGES-10: the nodes of pods, also of one that comes later.
#[tokio::test(start_paused = true)]
async fn a_job_follows_pods_to_their_nodes() {
    let world = World::new(3, PULLS).await;
    let on = |name: &str, node: &str| {
        let mut one = pod(name);
        one["metadata"]["labels"]["app"] = json!("x");
        one["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        one
    };
    for (name, node) in [("a", "node-1"), ("b", "node-1"), ("c", "node-2")] {
        world.ready(on(name, node)).await;
    }
    let selector = json!({"matchLabels": {"app": "x"}});
    job(&world, "pods", json!({"podSelector": selector, "image": "x.io/app:v1-slow60"})).await;
    world.live(5).await;
    assert!(told(&world.get(&format!("{JOBS}/pods")).await).starts_with("2/2/"));
    world.post(PODS, on("d", "node-3")).await;
    assert_eq!(told(&over(&world, "pods").await), "3/0/3/0 job has completed");
}

/// IMAGES-12: as many attempts as allowed, then the reason, told to everybody.
#[tokio::test(start_paused = true)]
async fn an_image_that_does_not_exist_fails_with_the_reason() {
    let world = World::new(2, PULLS).await;
    let policy = json!({"backoffLimit": 2, "timeoutSeconds": 30});
    job(&world, "bad", json!({"image": "x.io/gone:v1-fail", "pullPolicy": policy})).await;
    let done = over(&world, "bad").await;
    assert_eq!(told(&done), "2/0/0/2 job has completed");
    assert_eq!(done["status"]["failedNodes"], json!(["node-1", "node-2"]));
    let message = tag(&world, "node-1", "x.io/gone").await["message"].clone();
    assert!(
        text(&message)
            .starts_with("Failed to pull image reference \"x.io/gone:v1-fail\": rpc error: code = NotFound")
    );
    assert_eq!([world.pulls("node-1").len(), world.pulls("node-2").len()], [3, 3]);
    let told = world.events("PullImageFailed").await;
    let about: Vec<&str> = told.iter().map(|(object, _)| object.as_str()).collect();
    for object in ["ImagePullJob/bad", "NodeImage/node-1", "NodeImage/node-2"] {
        assert!(about.contains(&object), "{about:?}");
    }
}

/// IMAGES-13: a registry that hangs.
#[tokio::test(start_paused = true)]
async fn a_pull_that_takes_too_long_is_cancelled() {
    let world = World::new(1, PULLS).await;
    let begun = world.now();
    let policy = json!({"backoffLimit": 0, "timeoutSeconds": 10});
    job(&world, "hangs", json!({"image": "x.io/app:v1-slow9999", "pullPolicy": policy})).await;
    let done = over(&world, "hangs").await;
    assert_eq!(told(&done), "1/0/0/1 job has completed");
    assert!((9.0..20.0).contains(&seconds(begun, time(&done["status"]["completionTime"]))));
    assert_eq!(
        tag(&world, "node-1", "x.io/app").await["message"],
        "pulling image x.io/app:v1-slow9999 is canceled"
    );
}

/// IMAGES-15: the deadline of the job.
#[tokio::test(start_paused = true)]
async fn a_job_ends_at_its_deadline() {
    let world = World::new(3, PULLS).await;
    let completion = json!({"type": "Always", "activeDeadlineSeconds": 8});
    let policy = json!({"backoffLimit": 10, "timeoutSeconds": 5});
    let made = job(
        &world,
        "late",
        json!({"image": "x.io/app:v1-slow9999", "pullPolicy": policy,
        "completionPolicy": completion, "parallelism": 1}),
    )
    .await;
    let done = over(&world, "late").await;
    assert_eq!(told(&done), "3/0/0/3 job exceeds activeDeadlineSeconds");
    assert_eq!(done["status"]["failedNodes"], json!(["node-1", "node-2", "node-3"]));
    let took = seconds(time(&made["metadata"]["creationTimestamp"]), time(&done["status"]["completionTime"]));
    assert!((8.0..11.0).contains(&took), "{took}");
}

/// IMAGES-23: a digest is pulled by its own sign, and found again.
#[tokio::test(start_paused = true)]
async fn a_digest_is_pulled_once() {
    let world = World::new(1, PULLS).await;
    let digest = format!("sha256:{}", "0a".repeat(32));
    for name in ["one", "two"] {
        job(&world, name, json!({"image": format!("busybox@{digest}")})).await;
        assert_eq!(told(&over(&world, name).await), "1/0/1/0 job has completed");
    }
    let node = world.get(&format!("{IMAGES}/node-1")).await;
    assert_eq!(node["spec"]["images"]["busybox"]["tags"][0]["tag"], digest.as_str());
    assert_eq!(world.pulls("node-1"), [(format!("busybox@{digest}"), None)]);
}

/// IMAGES-24 and IMAGES-25: an image that is there is not pulled unless asked; each job is a round of its own.
#[tokio::test(start_paused = true)]
async fn an_image_that_is_there_is_pulled_only_on_request() {
    let world = World::new(1, PULLS).await;
    for (name, policy, pulls) in
        [("one", "IfNotPresent", 1), ("two", "IfNotPresent", 1), ("three", "Always", 2)]
    {
        let begun = world.now();
        job(&world, name, json!({"imagePullPolicy": policy})).await;
        assert_eq!(told(&over(&world, name).await), "1/0/1/0 job has completed");
        assert!(seconds(begun, world.now()) < 10.0);
        assert_eq!(world.pulls("node-1").len(), pulls, "{name}");
    }
    let wanted =
        world.get(&format!("{IMAGES}/node-1")).await["spec"]["images"]["x.io/app"]["tags"][0].clone();
    assert_eq!(wanted["version"], 2);
    assert_eq!(wanted["ownerReferences"].as_array().unwrap().len(), 3);
}

/// IMAGES-26: two jobs share a tag; it goes with the last of them, whoever leads then.
#[tokio::test(start_paused = true)]
async fn a_tag_goes_with_the_last_job_that_wants_it() {
    let mut world = World::new(1, PULLS).await;
    for name in ["one", "two"] {
        job(&world, name, json!({"image": "x.io/app:v1-slow600"})).await;
        world.live(5).await;
    }
    world.delete(&format!("{JOBS}/one")).await;
    world.live(10).await;
    let node = world.get(&format!("{IMAGES}/node-1")).await;
    let owners = node["spec"]["images"]["x.io/app"]["tags"][0]["ownerReferences"].clone();
    assert_eq!(owners.as_array().unwrap().len(), 1);
    assert_eq!(owners[0]["name"], "two");
    world.kill_manager();
    world.delete(&format!("{JOBS}/two")).await;
    world.start_manager();
    world.live(10).await;
    assert_eq!(wanted(&world).await, 0);
    world.live(10).await;
    assert_eq!(world.get(&format!("{IMAGES}/node-1")).await["status"]["pulling"], 0, "the pull is given up");
}

/// IMAGES-27: what the runtime gets along with a pull.
#[tokio::test(start_paused = true)]
async fn a_pull_carries_the_annotations_of_its_job() {
    let world = World::new(1, PULLS).await;
    job(&world, "marked", json!({"sandboxConfig": {"annotations": {"a": "b"}, "labels": {"c": "d"}}})).await;
    over(&world, "marked").await;
    let (_, deed) = world.sim.machine("node-1").deeds().remove(0);
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let wanted = BTreeMap::from([pair("a", "b"), pair("apps.kruise.io/pulling-image-by", "kruise-daemon")]);
    assert!(matches!(&deed, Deed::Pull { annotations, .. } if *annotations == wanted), "{deed:?}");
}

/// IMAGES-28: a limit for each node.
#[tokio::test(start_paused = true)]
async fn a_node_pulls_no_more_images_at_once_than_allowed() {
    let mut world = World::bare(1, 1, PULLS).await;
    world.most_pulls = Some(2);
    world.start_daemons();
    for number in 0..10 {
        job(&world, &format!("job-{number}"), json!({"image": format!("x.io/app{number}:v1-slow10")})).await;
    }
    world
        .until(&format!("{IMAGES}/node-1"), |node| {
            node["status"]["waiting"] == 8 && node["status"]["pulling"] == 2
        })
        .await;
    for number in 0..10 {
        assert_eq!(told(&over(&world, &format!("job-{number}")).await), "1/0/1/0 job has completed");
    }
    assert_eq!(world.sim.machine("node-1").most_pulling(), 2);
}

/// IMAGES-29: the daemon dies during a pull.
#[tokio::test(start_paused = true)]
async fn a_pull_is_begun_again_by_the_next_daemon() {
    let mut world = World::new(1, PULLS).await;
    job(&world, "slow", json!({"image": "x.io/app:v1-slow30"})).await;
    world.until(&format!("{IMAGES}/node-1"), |node| node["status"]["pulling"] == 1).await;
    world.kill_daemon("node-1");
    world.live(5).await;
    world.start_daemon("node-1");
    assert_eq!(told(&over(&world, "slow").await), "1/0/1/0 job has completed");
    assert_eq!(world.pulls("node-1").len(), 2);
    assert_eq!(world.events("PullImageSucceed").await.len(), 1);
}

/// IMAGES-30: a node without a daemon.
#[tokio::test(start_paused = true)]
async fn a_node_that_never_answers_has_failed_after_ten_minutes() {
    let mut world = World::new(2, PULLS).await;
    world.kill_daemon("node-2");
    let made = job(&world, "half", json!({})).await;
    let done = over(&world, "half").await;
    assert_eq!(told(&done), "2/0/1/1 job has completed");
    assert_eq!(done["status"]["failedNodes"], json!(["node-2"]));
    assert_eq!(tag(&world, "node-2", "x.io/app").await["message"], "node has not responded for a long time");
    let took = seconds(time(&made["metadata"]["creationTimestamp"]), world.now());
    assert!((600.0..620.0).contains(&took), "{took}");
}

/// IMAGES-32 and IMAGES-33: tags that somebody writes by hand.
#[tokio::test(start_paused = true)]
async fn a_tag_written_by_hand_is_pulled_and_goes() {
    let world = World::new(1, PULLS).await;
    let path = format!("{IMAGES}/node-1");
    let tags = |policy: Value| json!({"spec": {"images": {"ubuntu": {"tags": [{"tag": "latest", "pullPolicy": policy}]}}}});
    let node = world.get(&path).await;
    let mut bad = node.clone();
    bad["spec"] = tags(json!({}))["spec"].clone();
    let refusal = world.put(&path, &bad).await.unwrap_err();
    assert!(refusal.contains("pullPolicy.ttlSecondsAfterFinished for ubuntu/latest must set"), "{refusal}");
    let policy = json!({"ttlSecondsAfterFinished": 30});
    let many: serde_json::Map<String, Value> = (0..257)
        .map(|number| (format!("app{number}"), json!({"tags": [{"tag": "v1", "pullPolicy": policy}]})))
        .collect();
    bad["spec"] = json!({ "images": many });
    let refusal = world.put(&path, &bad).await.unwrap_err();
    assert!(refusal.contains("spec images length 257 can not be more than 256"), "{refusal}");
    world.patch(&path, tags(policy)).await;
    world.until(&path, |node| node["status"]["succeeded"] == 1).await;
    world.live(25).await;
    assert_eq!(wanted(&world).await, 1);
    world.live(15).await;
    assert_eq!(wanted(&world).await, 0);
    assert_eq!(world.pulls("node-1").len(), 1);
}

/// IMAGES-41: without the gate there are no jobs, and nodes have their objects.
#[tokio::test(start_paused = true)]
async fn without_the_gate_no_job_is_taken() {
    let world = World::new(1, &["--nodeimage-creation-delay=0s"]).await;
    for (path, kind, spec) in [
        (JOBS, "ImagePullJob", json!({"image": "x", "completionPolicy": {}})),
        (crate::world::LISTS, "ImageListPullJob", json!({"images": ["x"], "completionPolicy": {}})),
    ] {
        let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "metadata": {"name": "no"}, "spec": spec});
        let refusal = world.refused(path, object).await;
        assert_eq!(refusal, "403 feature-gate ImagePullJobGate is not enabled");
    }
    assert_eq!(world.list(IMAGES).await.len(), 1);
}

/// IMAGES-42: a job without an end pulls again about once a day.
#[tokio::test(start_paused = true)]
async fn a_job_without_an_end_pulls_again_after_a_day() {
    let world = World::new(1, PULLS).await;
    let begun = world.now();
    job(&world, "daily", json!({"completionPolicy": {"type": "Never"}, "imagePullPolicy": "Always"})).await;
    while world.pulls("node-1").len() < 2 {
        world.live(60).await;
        assert!(seconds(begun, world.now()) < 90_000.0, "no second pull");
    }
    let hours = seconds(begun, world.now()) / 3600.0;
    assert!((23.8..24.25).contains(&hours), "{hours}");
}

/// IMAGES-43: how the first list ended is told once and kept.
#[tokio::test(start_paused = true)]
async fn the_end_of_the_first_list_is_told_once() {
    let world = World::new(1, PULLS).await;
    let policy = json!({"backoffLimit": 0});
    job(&world, "bad", json!({"image": "x.io/gone:v1-fail", "pullPolicy": policy})).await;
    job(&world, "good", json!({"image": "x.io/app:v1-slow10"})).await;
    over(&world, "bad").await;
    over(&world, "good").await;
    let path = format!("{IMAGES}/node-1");
    let first = world.get(&path).await["status"]["firstSyncStatus"].clone();
    assert_eq!(first["status"], "Failed");
    job(&world, "more", json!({"image": "x.io/more:v1"})).await;
    over(&world, "more").await;
    assert_eq!(world.get(&path).await["status"]["firstSyncStatus"], first);
}

/// IMAGES-15: a deadline counts time that has passed, whatever the clock of the node says meanwhile.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_right_uses_up_no_deadline() {
    let world = World::new(1, PULLS).await;
    let policy = json!({"type": "Always", "activeDeadlineSeconds": 1200});
    job(&world, "late", json!({"image": "x.io/app:v1-slow20", "completionPolicy": policy})).await;
    world.live(5).await;
    world.step_clocks(jiff::SignedDuration::from_hours(1));
    world.sim.machine("node-1").stop_runtime();
    world.live(2).await;
    world.sim.machine("node-1").start_runtime();
    assert_eq!(told(&over(&world, "late").await), "1/0/1/0 job has completed");
    assert!(world.pulls("node-1").len() > 1, "the first attempt was lost");
}
