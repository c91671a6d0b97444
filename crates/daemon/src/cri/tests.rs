//! Runtimes are found, spoken to and found again.

mod several;

use std::{collections::BTreeMap, path::Path, time::Duration};

use tempfile::TempDir;

use super::{
    Auth, Client, Detail, Kind, Pull, Runtime as _, State, discovery,
    fake::{Fake, World},
    keys, newest, split_id, wire,
};

async fn names(folder: &Path, file: Option<&str>) -> Result<Vec<String>, String> {
    match discovery::discover(folder, file).await {
        Ok(runtimes) => Ok(runtimes.iter().map(|runtime| runtime.name().to_owned()).collect()),
        Err(error) => Err(kruise_core::causes::told(&error)),
    }
}

fn named(name: &'static str) -> World {
    World { name, ..World::default() }
}

/// Node daemon 8.1-2.
#[tokio::test]
async fn the_socket_of_containerd_is_found_in_its_own_folder() {
    let folder = TempDir::new().unwrap();
    let _fake = Fake::start(&folder.path().join("containerd/containerd.sock"), World::default());
    assert_eq!(names(folder.path(), None).await.unwrap(), ["containerd"]);
}

#[tokio::test]
async fn all_runtimes_are_found_in_their_order() {
    let folder = TempDir::new().unwrap();
    let _docker = Fake::start(&folder.path().join("cri-dockerd.sock"), named("docker"));
    let _crio = Fake::start(&folder.path().join("crio/crio.sock"), named("cri-o"));
    let _containerd = Fake::start(&folder.path().join("containerd.sock"), named("containerd"));
    assert_eq!(names(folder.path(), None).await.unwrap(), ["containerd", "cri-o", "docker"]);
    let found = discovery::discover(folder.path(), None).await.unwrap();
    assert_eq!(found.first().name(), "containerd");
    assert_eq!(found.named("docker").unwrap().name(), "docker");
    assert!(found.named("pouch").is_none());
}

/// PLATFORM-40: also beside a containerd of somebody else, which has no containers of the kubelet.
#[tokio::test]
async fn the_containerd_of_k3s_comes_before_others() {
    let folder = TempDir::new().unwrap();
    let _docker = Fake::start(&folder.path().join("containerd/containerd.sock"), named("other"));
    let _k3s = Fake::start(&folder.path().join("k3s/containerd/containerd.sock"), World::default());
    assert_eq!(names(folder.path(), None).await.unwrap(), ["containerd", "other"]);
}

/// Node daemon 8.1-3.
#[tokio::test]
async fn a_socket_that_was_named_and_is_not_there_is_an_error_although_others_are() {
    let folder = TempDir::new().unwrap();
    let _fake = Fake::start(&folder.path().join("containerd.sock"), World::default());
    let error = names(folder.path(), Some("k.sock")).await.unwrap_err();
    assert!(error.contains("not found container runtime sock") && error.contains("k.sock"), "{error}");
}

/// Node daemon 8.1-4.
#[tokio::test]
async fn a_runtime_that_does_not_answer_is_left_out() {
    let folder = TempDir::new().unwrap();
    // A socket without a listener: what a runtime leaves behind that was killed.
    drop(std::os::unix::net::UnixListener::bind(folder.path().join("crio.sock")).unwrap());
    assert!(names(folder.path(), None).await.is_err());
    let _fake = Fake::start(&folder.path().join("cri-dockerd.sock"), named("docker"));
    assert_eq!(names(folder.path(), None).await.unwrap(), ["docker"]);
}

/// Node daemon 8.1-5.
#[tokio::test]
async fn a_runtime_that_is_too_old_is_told_by_the_version_of_the_api() {
    let folder = TempDir::new().unwrap();
    let world = World { api: "runtime.v1alpha2", ..World::default() };
    let _fake = Fake::start(&folder.path().join("containerd.sock"), world);
    let error = names(folder.path(), None).await.unwrap_err();
    assert!(error.contains("does not serve version runtime.v1 of CRI"), "{error}");
}

/// Node daemon 8.1-11.
#[tokio::test]
async fn a_restart_of_the_runtime_goes_by_unnoticed() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("containerd.sock");
    let mut fake = Fake::start(&socket, World::default());
    let client = Client::connect(&socket).await.unwrap();
    for _ in 0..3 {
        fake.restart().await;
        assert_eq!(client.version().await.unwrap().name, "containerd");
        assert_eq!(client.pull(&pull("app:1")).await.unwrap(), "sha256:app:1");
    }
}

#[tokio::test]
async fn a_runtime_that_has_gone_is_unreachable_and_can_come_back() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("containerd.sock");
    let fake = Fake::start(&socket, World::default());
    let client = Client::connect(&socket).await.unwrap();
    drop(fake);
    assert_eq!(client.images().await.unwrap_err().kind, Kind::Unreachable);
    assert_eq!(client.stop("a", Duration::from_secs(1)).await.unwrap_err().kind, Kind::Unreachable);
    let _fake = Fake::start(&socket, World::default());
    assert!(client.images().await.unwrap().is_empty());
}

fn pull(image: &str) -> Pull {
    Pull { image: image.to_owned(), ..Pull::default() }
}

fn container(id: &str, name: &str, created_at: i64) -> wire::Container {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    wire::Container {
        id: id.to_owned(),
        pod_sandbox_id: "box".to_owned(),
        state: 1,
        created_at,
        labels: [label(keys::POD_UID, "u1"), label(keys::CONTAINER_NAME, name)].into(),
        annotations: [label(keys::HASH, "8e45cfd0"), label(keys::RESTART_COUNT, "2")].into(),
    }
}

#[tokio::test]
async fn containers_are_told_with_what_the_kubelet_wrote_on_them() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("containerd.sock");
    let mut other = container("z", "app", 9);
    other.labels.insert(keys::POD_UID.to_owned(), "u2".to_owned());
    let world = World {
        containers: vec![container("a", "app", 1), container("b", "app", 2), other],
        info: r#"{"runtimeSpec":{"process":{"env":["A=1","B=x=y","C="]}}}"#.to_owned(),
        started_at: 1_800_000_000_000_000_000,
        ..World::default()
    };
    let _fake = Fake::start(&socket, world);
    let client = Client::connect(&socket).await.unwrap();
    let containers = client.containers(Some("u1")).await.unwrap();
    assert_eq!(containers.len(), 2);
    assert_eq!(client.containers(None).await.unwrap().len(), 3);
    let app = newest(&containers, "app").unwrap();
    assert_eq!((app.id.as_str(), app.restart_count(), app.hash()), ("b", 2, Some(2_386_939_856)));
    assert_eq!((app.state, app.sandbox.as_str()), (State::Running, "box"));
    let plain = client.inspect("b", Detail::State).await.unwrap().unwrap();
    assert_eq!(plain.started_at.unwrap().as_second(), 1_800_000_000);
    assert_eq!(plain.environment, None);
    let environment = client.inspect("b", Detail::Environment).await.unwrap().unwrap().environment.unwrap();
    let expected = [("A", "1"), ("B", "x=y"), ("C", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(environment, BTreeMap::from(expected));
    assert_eq!(client.inspect("gone", Detail::State).await.unwrap(), None);
    assert_eq!(client.sandbox_addresses("box").await.unwrap(), ["10.0.0.7", "fd00::7"]);
    assert!(client.sandbox_addresses("host").await.unwrap().is_empty());
}

#[tokio::test]
async fn containers_are_ended_and_commands_run() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("containerd.sock");
    let fake = Fake::start(&socket, World::default());
    let client = Client::connect(&socket).await.unwrap();
    client.stop("a", Duration::from_millis(1500)).await.unwrap();
    assert_eq!(fake.world().stops, [("a".to_owned(), 2)]);
    let error = client.stop("stubborn", Duration::from_secs(2)).await.unwrap_err();
    assert_eq!(error.to_string(), "rpc error: code = Unknown desc = failed to kill container");
    let command = ["false".to_owned(), "x".to_owned()];
    let output = client.exec("a", &command, Some(Duration::from_secs(3))).await.unwrap();
    assert_eq!((output.exit_code, output.stdout, output.stderr), (1, b"false x".into(), b"within 3".into()));
}

/// IMAGES-27: what the runtime gets along with a pull.
#[tokio::test]
async fn a_pull_carries_its_labels_and_who_asks() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("containerd.sock");
    let fake = Fake::start(&socket, World::default());
    let client = Client::connect(&socket).await.unwrap();
    let auth = Auth { username: "me".to_owned(), password: "secret".to_owned(), ..Auth::default() };
    assert!(!format!("{auth:?}").contains("secret"));
    let mut pull = pull("app:1");
    pull.auth = Some(auth);
    pull.annotations.insert("a".to_owned(), "b".to_owned());
    client.pull(&pull).await.unwrap();
    let asked = fake.world().pulls.pop().unwrap();
    assert_eq!(asked.auth.unwrap().password, "secret");
    assert_eq!(asked.sandbox_config.unwrap().annotations.get("a").unwrap(), "b");
    assert_eq!(client.image_file_systems().await.unwrap().first().unwrap().used, 42);
}

#[tokio::test]
async fn a_pull_that_nobody_waits_for_is_cancelled() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("containerd.sock");
    let fake = Fake::start(&socket, World { pulls_hang: true, ..World::default() });
    let client = Client::connect(&socket).await.unwrap();
    let request = pull("app:1");
    tokio::select! {
        _ = client.pull(&request) => panic!("it never ends"),
        () = fake.until(|world| world.pulling == 1) => {}
    }
    fake.until(|world| world.pulling == 0).await;
}

#[test]
fn ids_name_their_runtime() {
    assert_eq!(split_id("containerd://0a1b"), Some(("containerd", "0a1b")));
    for bad in ["", "0a1b", "://x", "containerd://"] {
        assert_eq!(split_id(bad), None, "{bad}");
    }
}
