use serde_json::json;

use super::kit::{EMPTY, World, container_of, hot, strategic};
use crate::{effect::Effect, plan::Purpose as _, sidecarset::control::plan};

/// How the twins of a pod stand: images, which works, versions and versions of the twin.
fn row(world: &World, pod: &str) -> String {
    let version = |kind: &str, twin: &str| {
        world.annotation(pod, &format!("{kind}.sidecarset.kruise.io/mesh-{twin}")).to_owned()
    };
    let working = world.annotation(pod, "kruise.io/sidecarset-working-hotupgrade-container");
    format!(
        "{} {} {working} {} {} {} {}",
        world.image_of(pod, "mesh-1"),
        world.image_of(pod, "mesh-2"),
        version("version", "1"),
        version("versionalt", "1"),
        version("version", "2"),
        version("versionalt", "2")
    )
}

/// Whether a container with a real image serves.
fn serves(world: &World, pod: &str) -> bool {
    ["mesh-1", "mesh-2"].iter().any(|twin| {
        let status = container_of(&world.pods[pod], twin);
        status["ready"] == true && status["image"] != format!("docker.io/library/{EMPTY}").as_str()
    })
}

/// Passes without time until a pod changes, and how it stands then. `R` stands for the version of the set that was seen.
fn step(world: &mut World, pod: &str) -> String {
    let before = row(world, pod);
    for _ in 0..20 {
        let version = world.set["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        world.pass();
        let after = row(world, pod);
        if after != before {
            return after.replace(&version, "R");
        }
        world.tick();
    }
    panic!("nothing happens: {before} {:?}", plan(&world.seen()));
}

fn versions(world: &World, pod: &str) -> String {
    let twin =
        |twin: &str| world.annotation(pod, &format!("version.sidecarset.kruise.io/mesh-{twin}")).to_owned();
    format!("{} {}", twin("1"), twin("2"))
}

/// SIDECARSET-34: the table of the specification, which was seen running.
#[test]
fn twins_take_turns_and_the_pod_serves_all_the_time() {
    let mut world = World::resting(hot("mesh", "mesh:v1"), json!({}), 1);
    assert_eq!(row(&world, "p-0"), r#"mesh:v1 empty:v1 {"mesh":"mesh-1"} 1 0 0 1"#);
    world.image("mesh:v2");
    assert_eq!(step(&mut world, "p-0"), r#"mesh:v1 mesh:v2 {"mesh":"mesh-2"} 1 R R 1"#);
    let first = versions(&world, "p-0").split_once(' ').unwrap().1.to_owned();
    assert!(plan(&world.seen()).effects().into_iter().all(|effect| !matches!(effect, Effect::Event(_))));
    assert_eq!(
        step(&mut world, "p-0"),
        format!(r#"empty:v1 mesh:v2 {{"mesh":"mesh-2"}} 0 {first} {first} 0"#)
    );
    world.rest();
    world.image("mesh:v3");
    assert_eq!(
        step(&mut world, "p-0"),
        format!(r#"mesh:v3 mesh:v2 {{"mesh":"mesh-1"}} R {first} {first} R"#)
    );
    let second = versions(&world, "p-0").split_once(' ').unwrap().0.to_owned();
    assert!(second.parse::<u64>().unwrap() > first.parse::<u64>().unwrap());
    assert_eq!(
        step(&mut world, "p-0"),
        format!(r#"mesh:v3 empty:v1 {{"mesh":"mesh-1"}} {second} 0 0 {second}"#)
    );
    world.rest();
    assert_eq!(world.counts(), [1, 1, 1, 1]);
    assert_eq!(
        world.events,
        vec!["ResetContainerSucceed reset sidecar container image empty successfully"; 2]
    );
}

/// SIDECARSET-34: a pod serves whatever happens to its twins.
#[test]
fn a_hot_upgrade_never_stops_serving() {
    let mut world =
        World::resting(hot("mesh", "mesh:v1"), json!({"updateStrategy": {"maxUnavailable": 2}}), 3);
    for (lag, image) in [(0, "mesh:v2"), (2, "mesh:v3"), (1, "mesh:v4")] {
        world.lag = lag;
        world.image(image);
        world.rest_while(&mut |world| assert!(world.pods.keys().all(|pod| serves(world, pod))));
        assert_eq!(world.counts(), [3, 3, 3, 3]);
    }
}

/// SIDECARSET-34: until the old twin is empty a pod is not ready in the eyes of the set.
#[test]
fn a_pod_with_two_images_takes_its_place_in_the_budget() {
    let mut world = World::resting(hot("mesh", "mesh:v1"), json!({}), 2);
    world.image("mesh:v2");
    world.rest_while(&mut |world| {
        let both = |pod: &String| {
            ["mesh-1", "mesh-2"].iter().all(|twin| {
                world.image_of(pod, twin) != EMPTY
                    || container_of(&world.pods[pod], twin)["image"] != "docker.io/library/empty:v1"
            })
        };
        assert!(world.pods.keys().filter(|pod| both(pod)).count() <= 1);
    });
    assert_eq!(world.counts(), [2, 2, 2, 2]);
}

/// A world in which one of two pods got an image that cannot run.
fn half_way() -> World {
    let mut world = World::resting(hot("mesh", "mesh:v1"), json!({}), 2);
    world.broken.push("nosuch:v9".to_owned());
    world.image("nosuch:v9");
    world.rest();
    assert_eq!(world.counts(), [2, 1, 1, 0]);
    assert_eq!(world.image_of("p-1", "mesh-2"), "nosuch:v9");
    assert!(serves(&world, "p-1"));
    assert_eq!(
        plan(&world.seen()).waits.message(),
        "1 pod is being updated in place (default/p-1): both images of a hot upgrade run until the new one is ready. 1 of at \
         most 1 pod is unavailable (maxUnavailable: 1); next to update: default/p-0"
    );
    world
}

/// SIDECARSET-35: forward.
#[test]
fn a_good_image_mends_a_hot_upgrade_that_failed() {
    let mut world = half_way();
    world.image("mesh:v3");
    world.rest_while(&mut |world| assert!(world.pods.keys().all(|pod| serves(world, pod))));
    assert_eq!(world.counts(), [2, 2, 2, 2]);
    assert_eq!(world.images("mesh-2"), ["mesh:v3", "mesh:v3"]);
    assert_eq!(world.images("mesh-1"), [EMPTY, EMPTY]);
}

/// SIDECARSET-35: back, where the original gets stuck (D14).
#[test]
fn going_back_half_way_gives_up_the_twin_that_failed() {
    let mut world = half_way();
    world.image("mesh:v1");
    assert_eq!(step(&mut world, "p-1"), r#"mesh:v1 empty:v1 {"mesh":"mesh-1"} 1 0 0 1"#);
    world.rest_while(&mut |world| assert!(world.pods.keys().all(|pod| serves(world, pod))));
    assert_eq!(world.counts(), [2, 2, 2, 2]);
    assert_eq!(row(&world, "p-0"), r#"mesh:v1 empty:v1 {"mesh":"mesh-1"} 1 0 0 1"#);
}

/// A pod that the original left half-way back counts as updated there, and is mended here.
#[test]
fn a_pod_that_is_stuck_half_way_back_is_mended() {
    let mut world = half_way();
    world.image("mesh:v1");
    let hash = world.annotation("p-0", "kruise.io/sidecarset-hash").to_owned();
    world.pods.get_mut("p-1").unwrap()["metadata"]["annotations"]["kruise.io/sidecarset-hash"] =
        hash.clone().into();
    world.rest();
    assert_eq!(row(&world, "p-1"), r#"mesh:v1 empty:v1 {"mesh":"mesh-1"} 1 0 0 1"#);
    assert_eq!(world.annotation("p-1", "kruise.io/sidecarset-hash"), hash);
    assert_eq!(world.counts(), [2, 2, 2, 2]);
}

/// A node that has begun with an image starts it although another one is wanted by now: such a twin does not serve yet.
#[test]
fn a_twin_that_starts_the_image_before_last_is_not_relied_on() {
    let mut world = World::resting(hot("mesh", "mesh:v1"), json!({}), 1);
    world.image("mesh:v2");
    world.passes(2);
    world.image("mesh:v3");
    world.pass();
    world.pass();
    world.tick();
    let twin = container_of(&world.pods["p-0"], "mesh-2");
    assert_eq!(
        (twin["image"].as_str().unwrap(), &twin["ready"]),
        ("docker.io/library/mesh:v2", &json!(true))
    );
    world.rest_while(&mut |world| assert!(serves(world, "p-0")));
    assert_eq!(world.images("mesh-2"), ["mesh:v3"]);
    assert_eq!(world.counts(), [1, 1, 1, 1]);
}

/// A pod that is in the middle of a hot upgrade when the image changes again keeps its place in the budget.
#[test]
fn another_image_begins_no_more_hot_upgrades_than_may_be() {
    let mut world = World::resting(hot("mesh", "mesh:v1"), json!({}), 2);
    world.broken.push("nosuch:v9".to_owned());
    world.image("mesh:v2");
    world.passes(2);
    assert_eq!(world.images("mesh-2"), [EMPTY, "mesh:v2"]);
    // As long as something else in the pod is broken, the upgrade cannot end.
    let app = |world: &mut World, image: &str| {
        strategic(
            world.pods.get_mut("p-1").unwrap(),
            &json!({"spec": {"containers": [{"name": "app", "image": image}]}}),
        );
    };
    app(&mut world, "nosuch:v9");
    world.rest();
    world.image("mesh:v3");
    world.rest();
    assert_eq!(world.images("mesh-2"), [EMPTY, "mesh:v2"]);
    assert_eq!(world.images("mesh-1"), ["mesh:v1", "mesh:v3"]);
    assert_eq!(world.counts(), [2, 1, 1, 0]);
    app(&mut world, "app:v1");
    world.rest();
    assert_eq!(world.counts(), [2, 2, 2, 2]);
}

/// SIDECARSET-36
#[test]
fn the_manager_may_die_between_upgrade_and_reset() {
    for crash in 0..3 {
        let mut world = World::resting(hot("mesh", "mesh:v1"), json!({}), 2);
        world.image("mesh:v2");
        world.crash = Some(crash);
        for _ in 0..30 {
            world.pass();
            world.tick();
            assert!(world.pods.keys().all(|pod| serves(&world, pod)));
        }
        world.crash = None;
        world.rest();
        assert_eq!(world.counts(), [2, 2, 2, 2]);
        assert_eq!(world.events.len(), 2, "one reset of each pod: {:?}", world.events);
    }
}

/// The paused update freezes the step that makes the old twin empty.
#[test]
fn a_pause_holds_both_images_where_they_are() {
    let mut world = World::resting(hot("mesh", "mesh:v1"), json!({}), 1);
    world.image("mesh:v2");
    world.pass();
    world.pass();
    world.strategy(json!({"paused": true}));
    world.rest();
    assert_eq!((world.image_of("p-0", "mesh-1"), world.image_of("p-0", "mesh-2")), ("mesh:v1", "mesh:v2"));
    assert_eq!(world.counts(), [1, 1, 0, 0]);
    // Back before the pause ends: the old twin is made empty first, and gets the image again.
    world.image("mesh:v1");
    world.strategy(json!({"paused": false}));
    world.rest_while(&mut |world| assert!(serves(world, "p-0")));
    assert_eq!(world.counts(), [1, 1, 1, 1]);
    assert_eq!((world.image_of("p-0", "mesh-1"), world.image_of("p-0", "mesh-2")), ("mesh:v1", EMPTY));
}

/// A reset that is refused is told with its reason.
#[test]
fn a_reset_that_fails_is_told() {
    let mut world = World::resting(hot("mesh", "mesh:v1"), json!({}), 1);
    world.image("mesh:v2");
    step(&mut world, "p-0");
    world.tick();
    world.tick();
    let plan = plan(&world.seen());
    let failed = plan
        .purposes()
        .iter()
        .find_map(|purpose| purpose.failed(&crate::sidecarset::reference(&world.seen().set), "no way"))
        .unwrap();
    assert_eq!(
        (failed.reason.as_str(), failed.message.as_str(), failed.regarding.key.to_string().as_str()),
        ("ResetContainerFailed", "reset sidecar container image empty failed: no way", "default/p-0")
    );
}
