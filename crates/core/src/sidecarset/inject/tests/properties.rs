//! What holds for every pod and every set.

use kruise_api::sidecarset::v1beta1::SidecarSet;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::{World, container, names, pod};

fn any_container(letter: &'static str) -> impl Strategy<Value = Value> {
    let name = (0..4_u8).prop_map(move |number| format!("{letter}{number}"));
    (name, any::<[bool; 6]>()).prop_map(|(name, [before, shares, devices, hot, takes, mounts])| {
        let place = if before { "BeforeAppContainer" } else { "AfterAppContainer" };
        let share = |on: bool| json!({"type": if on { "enabled" } else { "disabled" }});
        let kind = if hot { "HotUpgrade" } else { "ColdUpgrade" };
        let mut more = json!({"podInjectPolicy": place, "shareVolumePolicy": share(shares),
            "shareVolumeDevicePolicy": share(devices),
            "upgradeStrategy": {"upgradeType": kind, "hotUpgradeEmptyImage": "empty"}});
        if takes {
            more["transferEnv"] = json!([{"sourceContainerName": "app0", "envNames": ["E0", "E1"]}]);
        }
        if mounts {
            more["volumeMounts"] = json!([{"name": format!("{name}-v"), "mountPath": "/m1"}]);
        }
        container(&name, more)
    })
}

/// Sets whose containers have different names, as validation demands.
fn any_sets() -> impl Strategy<Value = Vec<Value>> {
    let one = |letter: &'static str, init: &'static str| {
        (prop::collection::vec(any_container(letter), 0..3), prop::collection::vec(any_container(init), 0..2))
            .prop_map(|(containers, init)| {
                let unique = |list: Vec<Value>| {
                    let mut seen = std::collections::BTreeSet::new();
                    list.into_iter().filter(|one| seen.insert(one["name"].to_string())).collect::<Vec<_>>()
                };
                let (containers, init) = (unique(containers), unique(init));
                let all = containers.iter().chain(&init);
                let volumes: Vec<Value> = all
                    .filter(|one| one.get("volumeMounts").is_some())
                    .map(|one| json!({"name": one["volumeMounts"][0]["name"], "emptyDir": {}}))
                    .collect();
                json!({"containers": containers, "initContainers": init, "volumes": volumes,
                    "imagePullSecrets": [{"name": "p1"}]})
            })
    };
    (one("a", "i"), one("b", "j"), one("c", "k")).prop_map(|(a, b, c)| vec![a, b, c])
}

fn any_pod() -> impl Strategy<Value = Value> {
    let app = any::<[bool; 3]>().prop_map(|[env, mount, device]| {
        let mut app = json!({"image": "app"});
        if env {
            app["env"] = json!([{"name": "E0", "value": "0"}, {"name": "E1", "value": "1"}]);
        }
        if mount {
            app["volumeMounts"] = json!([{"name": "d", "mountPath": "/m0", "subPathExpr": "$(E0)"}, {"name": "d", "mountPath": "/m1"}]);
        }
        if device {
            app["volumeDevices"] = json!([{"name": "b", "devicePath": "/m2"}]);
        }
        app
    });
    prop::collection::vec(app, 1..4).prop_map(|mut apps| {
        for (index, app) in apps.iter_mut().enumerate() {
            app["name"] = format!("app{index}").into();
        }
        pod(json!({"containers": apps, "initContainers": [{"name": "first"}], "volumes": [{"name": "d", "emptyDir": {}}]}))
    })
}

/// A set as it is stored: everything that defaults would fill in is in the spec already.
fn quick_set(at: usize, spec: &Value) -> SidecarSet {
    let annotations =
        json!({"kruise.io/sidecarset-hash": "h", "kruise.io/sidecarset-hash-without-image": "w"});
    let mut set: SidecarSet = serde_json::from_value(
        json!({"metadata": {"name": format!("s{at}"), "annotations": annotations}, "spec": spec}),
    )
    .unwrap();
    set.spec.selector = Some(serde_json::from_value(json!({"matchLabels": {"app": "x"}})).unwrap());
    set
}

fn unique(list: &Value, key: &str) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    list.as_array().into_iter().flatten().all(|one| seen.insert(one[key].to_string()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn injection_is_orderly_repeatable_and_leaves_apps_alone(
        specs in any_sets(),
        given in any_pod(),
        order in Just([0_usize, 1, 2]).prop_shuffle(),
        sorts_by_name in any::<bool>(),
    ) {
        let world = World { sorts_by_name, ..World::new(specs.iter().enumerate().map(|(at, spec)| quick_set(at, spec))) };
        let sets = world.compiled();
        let inject = |order: [usize; 3], pod: &Value| {
            world.inject_by(&order.map(|at| &sets[at]), pod.clone()).unwrap()
        };
        let once = inject([0, 1, 2], &given);
        prop_assert_eq!(&inject(order, &given), &once, "the order of sets does not matter");
        prop_assert_eq!(&inject(order, &once), &once, "a second time changes nothing");
        // Everything that came with the pod is still there, in its order, as it was.
        for list in ["containers", "initContainers"] {
            let before = given["spec"][list].as_array().unwrap();
            let after: Vec<&Value> =
                once["spec"][list].as_array().unwrap().iter().filter(|one| before.contains(one)).collect();
            prop_assert_eq!(after, before.iter().collect::<Vec<_>>());
        }
        // No name and no path twice.
        for list in ["containers", "initContainers", "volumes", "imagePullSecrets"] {
            prop_assert!(unique(&once["spec"][list], "name"), "{} {}", list, names(&once["spec"][list]));
        }
        let lists = [&once["spec"]["containers"], &once["spec"]["initContainers"]];
        for container in lists.into_iter().filter_map(Value::as_array).flatten() {
            prop_assert!(unique(&container["env"], "name"), "{}", container);
            let paths = |list: &str, key: &str| {
                let items = container[list].as_array().cloned().unwrap_or_default();
                items.into_iter().map(|one| json!({"path": one[key]})).collect::<Vec<_>>()
            };
            let mut all = paths("volumeMounts", "mountPath");
            all.extend(paths("volumeDevices", "devicePath"));
            prop_assert!(unique(&all.into(), "path"), "{}", container);
        }
    }
}
