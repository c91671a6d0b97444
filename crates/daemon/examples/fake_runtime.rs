//! A container runtime that only pretends, with the containers and images of a file: a full node for benchmarks.
//!
//! `fake_runtime SOCKET FILE` serves until it is ended. The file is JSON:
//! `{"containers": [{"id", "sandbox", "labels", "annotations"}], "images": [{"id", "tags"}]}`.

#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "made for tests, which use more of it and end by panicking; here a failure at the start ends the program"
)]
#[path = "../src/cri/fake.rs"]
mod fake;
#[allow(dead_code, reason = "the daemon uses more of it")]
#[path = "../src/cri/wire.rs"]
mod wire;

use std::{collections::BTreeMap, error::Error, path::PathBuf};

use serde::Deserialize;

#[derive(Deserialize)]
struct World {
    containers: Vec<Container>,
    images: Vec<Image>,
}

#[derive(Deserialize)]
struct Container {
    id: String,
    sandbox: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Image {
    id: String,
    tags: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(socket), Some(file)) = (words.next(), words.next()) else {
        return Err("usage: fake_runtime SOCKET FILE".into());
    };
    let world: World = serde_json::from_slice(&std::fs::read(file)?)?;
    let container = |container: Container| wire::Container {
        id: container.id,
        pod_sandbox_id: container.sandbox,
        // Running.
        state: 1,
        created_at: 1,
        labels: container.labels,
        annotations: container.annotations,
    };
    let image = |image: Image| wire::Image { id: image.id, repo_tags: image.tags, repo_digests: Vec::new() };
    let world = fake::World {
        containers: world.containers.into_iter().map(container).collect(),
        images: world.images.into_iter().map(image).collect(),
        started_at: 1,
        ..fake::World::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let _fake = fake::Fake::start(&socket, world);
        std::future::pending::<()>().await;
    });
    Ok(())
}
