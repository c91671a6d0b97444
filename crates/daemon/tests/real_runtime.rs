//! The client against a real container runtime, named by `KRUISE_CRI_SOCKET`. One test looks only, the other one makes a
//! pod in the network of the node from the image `KRUISE_CRI_IMAGE` (with `sleep`, `sh` and `env`), and removes it again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "real_runtime/pod.rs"]
mod pod;

use std::{path::PathBuf, time::Duration};

use kruise_daemon::cri::{Client, Container, Detail, Runtime as _, State, keys, newest};
use pod::Pods;

fn socket() -> PathBuf {
    PathBuf::from(std::env::var("KRUISE_CRI_SOCKET").unwrap())
}

#[tokio::test]
#[ignore = "needs a container runtime, named by KRUISE_CRI_SOCKET"]
async fn a_real_runtime_tells_its_images_and_its_containers() {
    let client = Client::connect(&socket()).await.unwrap();
    let version = client.version().await.unwrap();
    println!("{version:?}");
    assert_eq!(version.name, client.name());
    let images = client.images().await.unwrap();
    println!("{} images, the first is {:?}", images.len(), images.first());
    assert!(images.iter().all(|image| !image.id.is_empty()));
    let places = client.image_file_systems().await.unwrap();
    println!("{places:?}");
    assert!(places.iter().all(|place| place.mountpoint.starts_with('/')));
    println!("{} containers", client.containers(None).await.unwrap().len());
    assert_eq!(client.inspect("no-such-container", Detail::State).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs a container runtime and an image, named by KRUISE_CRI_SOCKET and KRUISE_CRI_IMAGE"]
async fn a_real_container_is_found_asked_and_stopped() {
    let image = std::env::var("KRUISE_CRI_IMAGE").unwrap();
    let client = Client::connect(&socket()).await.unwrap();
    let pods = Pods::connect(&socket()).await;
    let pod = pods.run("u-real", &image).await;
    let containers = client.containers(Some("u-real")).await.unwrap();
    let container: &Container = newest(&containers, "app").unwrap();
    assert_eq!((container.id.as_str(), container.state), (pod.container.as_str(), State::Running));
    assert_eq!((container.hash(), container.restart_count()), (Some(0x1234_abcd), 3));
    assert_eq!(container.labels.get(keys::POD_UID).map(String::as_str), Some("u-real"));
    assert!(client.containers(Some("somebody-else")).await.unwrap().is_empty());
    let inspected = client.inspect(&container.id, Detail::Environment).await.unwrap().unwrap();
    assert!(inspected.started_at.is_some());
    assert_eq!(inspected.environment.unwrap().get("COLOUR").map(String::as_str), Some("blue"));
    assert!(
        client.sandbox_addresses(&container.sandbox).await.unwrap().is_empty(),
        "the network of the node"
    );
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let second = Some(Duration::from_secs(1));
    let said =
        client.exec(&container.id, &words(&["sh", "-c", "echo $COLOUR; echo no >&2; exit 3"]), second).await;
    let said = said.unwrap();
    assert_eq!((said.exit_code, said.stdout, said.stderr), (3, b"blue\n".to_vec(), b"no\n".to_vec()));
    let late = client.exec(&container.id, &words(&["sleep", "20"]), second).await.unwrap_err();
    println!("a command that takes too long: {late}");
    assert!(
        late.kind == kruise_daemon::cri::Kind::TimedOut || late.to_string().contains("timed out"),
        "{late}"
    );
    client.stop(&container.id, Duration::from_secs(2)).await.unwrap();
    let stopped = client.inspect(&container.id, Detail::State).await.unwrap().unwrap();
    assert_eq!(stopped.state, State::Exited);
    pods.remove(&pod).await;
    assert!(client.containers(Some("u-real")).await.unwrap().is_empty());
    assert_eq!(client.inspect(&pod.container, Detail::State).await.unwrap(), None);
}
