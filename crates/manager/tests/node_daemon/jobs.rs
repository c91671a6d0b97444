//! EphemeralJobs beside other work on the same pods.

use serde_json::{Value, json};

use crate::world::{CLONESETS, PODS, REQUESTS, World, container, is_ready, pod, seconds, states, text};

const EPHEMERAL_JOBS: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/ephemeraljobs";

fn ephemeral(pod: &Value) -> &Value {
    &pod["status"]["ephemeralContainerStatuses"][0]
}

/// EJ-11: an injected container disturbs no other, and neither an update in place nor a request to recreate disturbs it.
#[tokio::test(start_paused = true)]
async fn an_injected_container_and_the_others_leave_each_other_alone() {
    let world = World::new(1, &[]).await;
    let containers = json!([{"name": "app", "image": "app:v1"}, {"name": "sidecar", "image": "sidecar:v1"}]);
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
            "updateStrategy": {"type": "InPlaceOnly"}}});
    world.post(CLONESETS, set).await;
    let pods = world
        .until(PODS, |pods| pods["items"].as_array().is_some_and(|all| all.len() == 1 && is_ready(&all[0])))
        .await;
    let before = &pods["items"][0];
    let name = text(&before["metadata"]["name"]);
    let path = format!("{PODS}/{name}");

    let debug = json!({"name": "debug", "image": "debug:v1", "command": ["sleep", "1000"], "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File"});
    let job = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob", "metadata": {"name": "look"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"ephemeralContainers": [debug]}}});
    world.post(EPHEMERAL_JOBS, job).await;
    let injected = world.until(&path, |pod| ephemeral(pod)["state"]["running"].is_object()).await;
    world.live(30).await;
    for one in ["app", "sidecar"] {
        assert_eq!(container(&injected, one), container(before, one), "untouched by the injection");
    }

    let containers = json!([{"name": "app", "image": "app:v2"}, {"name": "sidecar", "image": "sidecar:v1"}]);
    world
        .patch(
            &format!("{CLONESETS}/web"),
            json!({"spec": {"template": {"spec": {"containers": containers}}}}),
        )
        .await;
    let updated = world.until(&path, |pod| container(pod, "app")["restartCount"] == 1 && is_ready(pod)).await;
    assert_eq!(updated["metadata"]["uid"], before["metadata"]["uid"]);
    let app = container(&updated, "app");
    assert!(text(&app["image"]).ends_with("app:v2") && app["restartCount"] == 1, "{app}");
    assert_eq!(container(&updated, "sidecar"), container(before, "sidecar"));
    assert_eq!(ephemeral(&updated), ephemeral(&injected));

    let request = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest", "metadata": {"name": "again"},
        "spec": {"podName": name, "containers": [{"name": "sidecar"}]}});
    world.post(REQUESTS, request).await;
    assert_eq!(states(&world.over("again").await), "sidecar:Succeeded");
    world.live(10).await;
    let recreated = world.get(&path).await;
    assert_eq!(container(&recreated, "sidecar")["restartCount"], 1);
    assert_eq!(container(&recreated, "app")["containerID"], container(&updated, "app")["containerID"]);
    assert_eq!(ephemeral(&recreated), ephemeral(&injected));
    assert_eq!(recreated["spec"]["ephemeralContainers"], injected["spec"]["ephemeralContainers"]);
}

/// A job that injects the container `debug` with this command into pods with the label `app=web`.
fn job(name: &str, command: &[&str], more: Value) -> Value {
    let debug = json!({"name": "debug", "image": "debug:v1", "command": ["sleep", "1000"], "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File", "command": command});
    let mut job = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"ephemeralContainers": [debug]}}});
    for (field, value) in more.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    job
}

async fn world_with(pods: &[&str]) -> World {
    let world = World::new(1, &[]).await;
    for name in pods {
        world.ready(pod(name)).await;
    }
    world
}

/// The pods in which a container of a job was injected and has not ended.
async fn at_work(world: &World) -> usize {
    let pods = world.list(PODS).await;
    let is_at_work = |pod: &&Value| {
        pod["spec"]["ephemeralContainers"].is_array() && ephemeral(pod)["state"]["terminated"].is_null()
    };
    pods.iter().filter(is_at_work).count()
}

/// How a job ended, as `Succeeded 2/2/0 JobSucceeded`: matched, succeeded and failed, and the last reason.
async fn end(world: &World, name: &str) -> String {
    let path = format!("{EPHEMERAL_JOBS}/{name}");
    let job = world.until(&path, |job| job["status"]["completionTime"].is_string()).await;
    told(&job)
}

fn told(job: &Value) -> String {
    let status = &job["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    let reasons = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let reason = reasons.last().map(|one| text(&one["reason"])).unwrap_or_default();
    let numbers = [number("match"), number("succeeded"), number("failed")].map(|number| number.to_string());
    format!("{} {} {reason}", text(&status["phase"]), numbers.join("/"))
}

/// EJ-2: as many pods at a time as allowed.
#[tokio::test(start_paused = true)]
async fn no_more_pods_are_at_work_than_a_job_allows() {
    for (parallelism, expected) in [(1, 1), (10, 4)] {
        let world = world_with(&["a", "b", "c", "d"]).await;
        world.post(EPHEMERAL_JOBS, job("look", &["sleep", "5"], json!({"parallelism": parallelism}))).await;
        let mut most = 0;
        for _ in 0..60 {
            world.live_millis(500).await;
            most = most.max(at_work(&world).await);
        }
        assert_eq!((most, end(&world, "look").await), (expected, "Succeeded 4/4/0 JobSucceeded".to_owned()));
    }
}

/// EJ-5: a job that wants more pods than there are.
#[tokio::test(start_paused = true)]
async fn a_job_ends_with_the_pods_there_are() {
    let world = world_with(&["a", "b"]).await;
    world.post(EPHEMERAL_JOBS, job("look", &["sleep", "2"], json!({"replicas": 5}))).await;
    assert_eq!(end(&world, "look").await, "Succeeded 2/2/0 JobSucceeded");
}

/// EJ-6: the deadline.
#[tokio::test(start_paused = true)]
async fn a_job_fails_at_its_deadline() {
    let world = world_with(&["a"]).await;
    let began = world.now();
    world.post(EPHEMERAL_JOBS, job("look", &["sleep", "9999"], json!({"activeDeadlineSeconds": 20}))).await;
    assert!(end(&world, "look").await.starts_with("Failed 1/0/0 DeadlineExceeded"));
    let took = seconds(began, world.now());
    assert!((19.0..30.0).contains(&took), "{took}");
}

/// The largest number means "for ever", also for a manager whose clock is behind. Such a job can be deleted.
#[tokio::test(start_paused = true)]
async fn a_job_whose_deadline_never_comes_can_be_deleted() {
    let world = world_with(&["a"]).await;
    world
        .post(EPHEMERAL_JOBS, job("ever", &["sleep", "9999"], json!({"activeDeadlineSeconds": i64::MAX})))
        .await;
    let path = format!("{EPHEMERAL_JOBS}/ever");
    world.until(&path, |job| job["status"]["phase"] == "Running").await;
    world.live(20).await;
    world.delete(&path).await;
    world.live(20).await;
    assert!(world.get(&path).await.is_null());
}

/// EJ-8 and EJ-14: a job without pods says so once, writes nothing more, and serves the pod that comes.
#[tokio::test(start_paused = true)]
async fn a_job_without_pods_waits_in_silence() {
    let world = world_with(&[]).await;
    world.post(EPHEMERAL_JOBS, job("look", &["sleep", "2"], json!({}))).await;
    world.live(5).await;
    let before = world.get(&format!("{EPHEMERAL_JOBS}/look")).await;
    assert_eq!(told(&before), "Waiting 0/0/0 MatchEmpty");
    world.live(60).await;
    assert_eq!(world.get(&format!("{EPHEMERAL_JOBS}/look")).await, before);
    world.ready(pod("late")).await;
    assert_eq!(end(&world, "look").await, "Succeeded 1/1/0 JobSucceeded");
}

/// EJ-9: a paused job touches nobody and goes on when it is let go.
#[tokio::test(start_paused = true)]
async fn a_paused_job_waits_until_it_is_let_go() {
    let world = world_with(&["a", "b"]).await;
    world.post(EPHEMERAL_JOBS, job("look", &["sleep", "2"], json!({"paused": true}))).await;
    world.live(30).await;
    assert_eq!(
        (
            at_work(&world).await,
            world.get(&format!("{EPHEMERAL_JOBS}/look")).await["status"]["phase"].clone()
        ),
        (0, json!("Paused"))
    );
    world.patch(&format!("{EPHEMERAL_JOBS}/look"), json!({"spec": {"paused": false}})).await;
    assert_eq!(end(&world, "look").await, "Succeeded 2/2/0 JobSucceeded");
}

/// EJ-10: two jobs beside each other, and a third whose container is there already.
#[tokio::test(start_paused = true)]
async fn a_pod_takes_the_containers_of_several_jobs_but_no_name_twice() {
    let world = world_with(&["a"]).await;
    let mut other = job("other", &["sleep", "2"], json!({}));
    other["spec"]["template"]["ephemeralContainers"][0]["name"] = json!("trace");
    world.post(EPHEMERAL_JOBS, job("look", &["sleep", "2"], json!({}))).await;
    world.post(EPHEMERAL_JOBS, other).await;
    for name in ["look", "other"] {
        assert_eq!(end(&world, name).await, "Succeeded 1/1/0 JobSucceeded");
    }
    world.post(EPHEMERAL_JOBS, job("again", &["sleep", "2"], json!({}))).await;
    world.live(20).await;
    assert_eq!(told(&world.get(&format!("{EPHEMERAL_JOBS}/again")).await), "Waiting 0/0/0 MatchEmpty");
    let pod = world.get(&format!("{PODS}/a")).await;
    assert_eq!(pod["spec"]["ephemeralContainers"].as_array().unwrap().len(), 2);
}

/// EJ-13: the manager is killed in the middle of ten pods, wherever that is. Each has the container once, and the job ends.
#[tokio::test(start_paused = true)]
async fn a_job_outlives_its_manager() {
    const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for seed in 0..12 {
        let mut world = World::bare(seed, 1, &[]).await;
        for name in NAMES {
            world.post(PODS, pod(name)).await;
        }
        world.until(PODS, |pods| pods["items"].as_array().unwrap().iter().all(is_ready)).await;
        world.post(EPHEMERAL_JOBS, job("look", &["sleep", "3"], json!({"parallelism": 4}))).await;
        for _ in 0..3 {
            let millis = world.sim.pick(1..4000);
            world.live_millis(millis).await;
            world.kill_manager();
            let millis = world.sim.pick(1..2000);
            world.live_millis(millis).await;
            world.start_manager();
        }
        assert_eq!(end(&world, "look").await, "Succeeded 10/10/0 JobSucceeded", "seed {seed}");
        for pod in world.list(PODS).await {
            assert_eq!(pod["spec"]["ephemeralContainers"].as_array().unwrap().len(), 1, "seed {seed}");
        }
    }
}

/// EJ-4: some succeed and one fails, and the job is over.
#[tokio::test(start_paused = true)]
async fn a_job_that_failed_in_one_pod_is_over_and_says_so() {
    let world = world_with(&["a", "b", "c"]).await;
    world.post(EPHEMERAL_JOBS, job("look", &["sleep", "20"], json!({"parallelism": 3}))).await;
    let pod = world.until(&format!("{PODS}/b"), |pod| ephemeral(pod)["state"]["running"].is_object()).await;
    let (_, id) = text(&ephemeral(&pod)["containerID"]).split_once("://").unwrap();
    world.sim.machine("node-1").stop(id, std::time::Duration::ZERO).await.unwrap();
    assert_eq!(end(&world, "look").await, "Failed 3/2/1 JobFailed");
}
