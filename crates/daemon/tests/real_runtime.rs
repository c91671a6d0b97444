//! Looks at a real container runtime, without changing anything: `KRUISE_CRI_SOCKET=/run/containerd/containerd.sock`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::PathBuf;

use kruise_daemon::cri::{Client, Detail, Runtime as _, State, keys};

#[tokio::test]
#[ignore = "needs a container runtime with pods, named by KRUISE_CRI_SOCKET"]
async fn a_real_runtime_tells_what_the_daemon_needs() {
    let socket = PathBuf::from(std::env::var("KRUISE_CRI_SOCKET").unwrap());
    let client = Client::connect(&socket).await.unwrap();
    let version = client.version().await.unwrap();
    println!("{version:?}");
    assert_eq!(version.name, client.name());
    let images = client.images().await.unwrap();
    println!("{} images, the first is {:?}", images.len(), images.first());
    assert!(images.iter().all(|image| !image.id.is_empty()));
    let places = client.image_file_systems().await.unwrap();
    println!("{places:?}");
    assert!(places.iter().all(|place| place.mountpoint.starts_with('/')));
    let containers = client.containers(None).await.unwrap();
    println!("{} containers", containers.len());
    let container = containers
        .iter()
        .find(|one| one.state == State::Running && one.labels.contains_key(keys::POD_UID))
        .expect("a pod runs here");
    println!("{container:?}");
    assert!(container.hash().is_some() && !container.name().is_empty() && container.created_at > 0);
    let uid = container.labels.get(keys::POD_UID).unwrap();
    let own = client.containers(Some(uid)).await.unwrap();
    assert!(own.iter().all(|one| one.labels.get(keys::POD_UID) == Some(uid)) && !own.is_empty());
    let inspected = client.inspect(&container.id, Detail::Environment).await.unwrap().unwrap();
    assert_eq!(inspected.state, State::Running);
    println!("started {:?}", inspected.started_at);
    assert!(inspected.started_at.is_some());
    let environment = inspected.environment.expect("containerd and cri-o tell the environment");
    println!("variables: {:?}", environment.keys());
    println!("addresses: {:?}", client.sandbox_addresses(&container.sandbox).await.unwrap());
    assert_eq!(client.inspect("no-such-container", Detail::State).await.unwrap(), None);
}
