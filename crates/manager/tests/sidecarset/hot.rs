//! Sidecars that are replaced while they serve: two containers, one of which works.

use k8s_openapi::api::core::v1::Pod;
use kruise_api::annotations;
use kruise_testkit::{Backend, Outcome, Skip};
use serde_json::{Value, json};

use crate::{
    film::Film,
    kit::{annotation, image_of, is_ready, merged, name},
    scene::{Scene, strategy},
    stage::{Stage, managed},
    words::{container, containers, is_container_ready, restarts, variable},
};

/// What the container that does not work runs.
pub(crate) const IDLE: &str = "app:v3";

/// A set whose sidecar `sc` is replaced while it serves, and its pods.
pub(crate) async fn start(stage: &Stage, purpose: &str, pods: usize, change: Value) -> Result<Scene, Skip> {
    let scene = Scene::with_real_containers(stage, purpose).await?;
    let hot =
        json!({"upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": scene.image(IDLE)}});
    let set = json!({"spec": {"containers": [scene.sidecar("sc", "app:v1", hot)]}});
    let set = merged(merged(set, &strategy(json!({"maxUnavailable": 1}))), &change);
    scene.create_set("s", set).await;
    scene.create_pods(pods).await;
    let pods = i64::try_from(pods).unwrap();
    scene.until_counts("s", [pods; 4]).await;
    Ok(scene)
}

/// Images, the working container, and the four versions: first and second container, each with that of the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Twins {
    pub(crate) images: [String; 2],
    pub(crate) working: String,
    pub(crate) versions: [String; 4],
}

/// The twins of the sidecar `sc`.
pub(crate) fn twins(pod: &Pod) -> Twins {
    let working: Value =
        serde_json::from_str(annotation(pod, annotations::SIDECARSET_WORKING_HOT_UPGRADE_CONTAINER))
            .unwrap_or_default();
    let version = |prefix: &str, twin: &str| annotation(pod, &format!("{prefix}{twin}")).to_owned();
    let (own, other) = (annotations::SIDECARSET_VERSION_PREFIX, annotations::SIDECARSET_VERSION_ALT_PREFIX);
    Twins {
        images: ["sc-1", "sc-2"].map(|twin| image_of(pod, twin)),
        working: working["sc"].as_str().unwrap_or_default().to_owned(),
        versions: [
            version(own, "sc-1"),
            version(other, "sc-1"),
            version(own, "sc-2"),
            version(other, "sc-2"),
        ],
    }
}

/// The states that the twins of a pod went through.
fn history(film: &Film, pod: &str) -> Vec<Twins> {
    let mut states: Vec<Twins> =
        film.frames().iter().filter_map(|frame| Some(twins(frame.pods.get(pod)?))).collect();
    states.dedup();
    states
}

/// In every frame somebody serves: one of the twins has a working image and is ready.
pub(crate) fn somebody_always_serves(scene: &Scene, film: &Film) {
    let idle = scene.image(IDLE);
    for frame in film.frames() {
        for pod in frame.active() {
            let serves = |twin: &str| image_of(pod, twin) != idle && is_container_ready(pod, twin);
            assert!(serves("sc-1") || serves("sc-2"), "{}: {:?}", name(pod), twins(pod));
            // A real kubelet starts a container again before it tells that the old one has ended.
            assert!(
                scene.cluster.backend() == Backend::Embedded || is_ready(pod),
                "{} is not ready",
                name(pod)
            );
        }
    }
}

/// SIDECARSET-34: the other container takes over and the first one falls idle; the next time they swap.
async fn the_other_container_takes_over(stage: &mut Stage) -> Outcome {
    let scene = start(stage, "hot", 1, json!({})).await?;
    let [first, second, idle] = ["app:v1", "app:v2", IDLE].map(|name| scene.image(name));
    let state = |images: [&String; 2], working: &str, versions: [&str; 4]| Twins {
        images: images.map(Clone::clone),
        working: working.to_owned(),
        versions: versions.map(str::to_owned),
    };
    let pod = scene.pod("pod-0").await;
    assert_eq!(containers(&pod), ["sc-1", "sc-2", "main"]);
    let injected = state([&first, &idle], "sc-1", ["1", "0", "0", "1"]);
    assert_eq!(twins(&pod), injected);
    for twin in ["sc-1", "sc-2"] {
        let written = container(&pod, twin);
        for (variable_name, prefix) in [
            ("SIDECARSET_VERSION", annotations::SIDECARSET_VERSION_PREFIX),
            ("SIDECARSET_VERSION_ALT", annotations::SIDECARSET_VERSION_ALT_PREFIX),
        ] {
            let path = &variable(&written, variable_name)["valueFrom"]["fieldRef"]["fieldPath"];
            assert_eq!(*path, format!("metadata.annotations['{prefix}{twin}']"));
        }
    }

    let film = scene.film().await;
    scene.set_image("s", "app:v2").await;
    scene.rests_at("s", [1; 4]).await;
    let states = history(&film, "pod-0");
    let [_, upgraded, reset] = states.as_slice() else { panic!("{states:#?}") };
    let r = upgraded.versions[2].as_str();
    assert!(r.parse::<u64>().is_ok_and(|version| version > 1), "{r}");
    assert_eq!(states[0], injected);
    assert_eq!(*upgraded, state([&first, &second], "sc-2", ["1", r, r, "1"]));
    assert_eq!(*reset, state([&idle, &second], "sc-2", ["0", r, r, "0"]));
    let events = scene.events("ResetContainerSucceed").await;
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((event.kind.as_str(), event.about.as_str()), ("Normal", "Pod/pod-0"));
    assert_eq!(event.message, "reset sidecar container image empty successfully");
    assert_eq!(event.component, "sidecarset-controller");

    let back = scene.film().await;
    scene.set_image("s", "app:v1").await;
    scene.rests_at("s", [1; 4]).await;
    let states = history(&back, "pod-0");
    let [_, upgraded, reset] = states.as_slice() else { panic!("{states:#?}") };
    let r2 = upgraded.versions[0].as_str();
    assert!(r2.parse::<u64>().unwrap() > r.parse::<u64>().unwrap(), "{r2} after {r}");
    assert_eq!(*upgraded, state([&first, &second], "sc-1", [r2, r, r, r2]));
    assert_eq!(*reset, state([&first, &idle], "sc-1", [r2, "0", "0", r2]));
    let now = scene.pod("pod-0").await;
    assert_eq!(now.metadata.uid, pod.metadata.uid);
    assert_eq!((restarts(&now, "sc-1"), restarts(&now, "sc-2"), restarts(&now, "main")), (2, 2, 0));
    for film in [&film, &back] {
        somebody_always_serves(&scene, film);
    }
    Ok(())
}
managed!(the_other_container_takes_over, []);
