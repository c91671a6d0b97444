//! Which pods get what, and where it stands.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kit::{World, container, find, names, plain_pod, pod, set, set_with};
use crate::{
    effect::Effect,
    pod::Pairs,
    revision::Revision,
    sidecarset::{record, revision::register},
};

fn simple(name: &str) -> Value {
    json!({"containers": [container(name, json!({}))]})
}

/// SIDECARSET-2
#[test]
fn other_pods_and_other_namespaces_stay_as_they_are() {
    let mut world = World::new([set("s", simple("sc"))]);
    let mut other = plain_pod();
    other["metadata"]["labels"] = json!({"app": "y"});
    assert_eq!(world.inject(other.clone()).unwrap(), other);
    let mut scoped = simple("sc");
    scoped["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
    world.sets = vec![set("s", scoped)];
    assert_eq!(world.inject(plain_pod()).unwrap(), plain_pod());
    world.namespace = Some([("team".into(), "a".into())].into_iter().collect::<Pairs>());
    assert_eq!(world.order(plain_pod()), "sc app");
    world.namespace = None;
    let refused = world.inject(plain_pod()).unwrap_err();
    assert_eq!(refused, "namespace \"shop\" is not known, and a sidecarset depends on its labels");
    assert_eq!(world.inject(other.clone()).unwrap(), other, "a pod that is not meant needs no namespace");
}

#[test]
fn pods_that_are_over_and_mirrors_stay_as_they_are() {
    let world = World::new([set("s", simple("sc"))]);
    for (path, value) in [
        ("/status/phase", json!("Failed")),
        ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        ("/metadata/annotations/kubernetes.io~1config.mirror", json!("x")),
    ] {
        let mut given = plain_pod();
        given["status"] = json!({"phase": "Pending"});
        given["metadata"]["annotations"] = json!({});
        let (parent, _) = path.rsplit_once('/').unwrap();
        let key = path.rsplit('/').next().unwrap().replace("~1", "/");
        given.pointer_mut(parent).unwrap()[key] = value;
        assert_eq!(world.inject(given.clone()).unwrap(), given, "{path}");
    }
}

/// SIDECARSET-6
#[test]
fn containers_go_before_or_behind_in_the_order_of_the_set() {
    let after = json!({"podInjectPolicy": "AfterAppContainer"});
    let spec = |order: &str| {
        let containers: Vec<Value> = order
            .split(' ')
            .map(|name| container(name, if name == "b" { after.clone() } else { json!({}) }))
            .collect();
        json!({"containers": containers})
    };
    let mut world = World::new([set("s", spec("b a c"))]);
    assert_eq!(world.order(plain_pod()), "a c app b");
    world.sets = vec![set("s", spec("c a b"))];
    assert_eq!(world.order(plain_pod()), "c a app b");
    world.sorts_by_name = true;
    assert_eq!(world.order(plain_pod()), "a c app b");
}

/// SIDECARSET-6
#[test]
fn init_containers_are_sorted_by_name() {
    let before = json!({"podInjectPolicy": "BeforeAppContainer"});
    let spec = json!({"initContainers": [container("a", json!({})), container("c", before.clone()), container("b", before)]});
    let given =
        pod(json!({"containers": [{"name": "app"}], "initContainers": [{"name": "app1"}, {"name": "app2"}]}));
    let pod = World::new([set("s", spec)]).inject(given).unwrap();
    assert_eq!(names(&pod["spec"]["initContainers"]), "b c app1 app2 a");
}

/// SIDECARSET-7
#[test]
fn several_sets_come_in_the_order_of_their_names() {
    let mut world = World::new([set("s2", simple("one")), set("s1", simple("two"))]);
    for seed in 0..10 {
        world.seed = seed;
        let pod = world.inject(plain_pod()).unwrap();
        assert_eq!(names(&pod["spec"]["containers"]), "two one app");
        assert_eq!(pod["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"], "s1,s2");
    }
}

#[test]
fn a_container_of_a_sidecars_name_is_replaced_where_it_stands() {
    let given = pod(json!({"containers": [{"name": "app"}, {"name": "sc", "image": "mine"}]}));
    let pod = World::new([set("s", simple("sc"))]).inject(given).unwrap();
    assert_eq!(names(&pod["spec"]["containers"]), "app sc");
    assert_eq!(find(&pod, "sc")["image"], "sc:1");
}

/// Two sets that were made at the same moment may clash: the pod starts with one of both containers.
#[test]
fn of_two_sidecars_of_one_name_the_first_stays() {
    let mut second = simple("sc");
    second["containers"][0]["image"] = "other:1".into();
    let world = World::new([set("s2", second), set("s1", simple("sc"))]);
    let pod = world.inject(plain_pod()).unwrap();
    assert_eq!(names(&pod["spec"]["containers"]), "sc app");
    assert_eq!(find(&pod, "sc")["image"], "sc:1");
}

/// SIDECARSET-12
#[test]
fn native_sidecars_are_recorded_and_plain_init_containers_are_not() {
    let spec = json!({"updateStrategy": {"type": "NotUpdate"}, "containers": [container("z", json!({}))],
        "initContainers": [container("native", json!({"restartPolicy": "Always"})), container("plain", json!({}))]});
    let pod = World::new([set("s", spec)]).inject(plain_pod()).unwrap();
    assert_eq!(names(&pod["spec"]["initContainers"]), "native plain");
    let text = pod["metadata"]["annotations"]["kruise.io/sidecarset-hash"].as_str().unwrap();
    assert_eq!(
        record::read(text).unwrap()["s"].sidecar_list,
        Some(vec!["native".to_owned(), "z".to_owned()])
    );
}

/// SIDECARSET-34
#[test]
fn a_sidecar_that_takes_turns_becomes_two_containers() {
    let hot = json!({"upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}});
    let mut native = hot.clone();
    native["restartPolicy"] = "Always".into();
    let spec = json!({"containers": [container("mesh", hot.clone())], "updateStrategy": {"type": "NotUpdate"},
        "initContainers": [container("early", native), container("plain", hot)]});
    let pod = World::new([set("s", spec)]).inject(plain_pod()).unwrap();
    assert_eq!(names(&pod["spec"]["containers"]), "mesh-1 mesh-2 app");
    assert_eq!(names(&pod["spec"]["initContainers"]), "early-1 early-2 plain");
    assert_eq!(
        (&find(&pod, "mesh-1")["image"], &find(&pod, "mesh-2")["image"]),
        (&json!("mesh:1"), &json!("empty:1"))
    );
    let annotations = &pod["metadata"]["annotations"];
    let versions = |twin: &str| {
        let value =
            |prefix: &str| annotations[format!("{prefix}.sidecarset.kruise.io/{twin}")].as_str().unwrap();
        (value("version"), value("versionalt"))
    };
    assert_eq!((versions("mesh-1"), versions("mesh-2")), (("1", "0"), ("0", "1")));
    assert_eq!(
        annotations["kruise.io/sidecarset-working-hotupgrade-container"],
        "{\"early\":\"early-1\",\"mesh\":\"mesh-1\"}"
    );
    let field = |name: &str, prefix: &str| {
        let path = format!("metadata.annotations['{prefix}.sidecarset.kruise.io/mesh-2']");
        json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
    };
    assert_eq!(
        find(&pod, "mesh-2")["env"],
        json!([{"name": "IS_INJECTED", "value": "true"}, field("SIDECARSET_VERSION", "version"),
            field("SIDECARSET_VERSION_ALT", "versionalt")])
    );
}

/// SIDECARSET-20
#[test]
fn a_paused_set_gives_new_pods_nothing() {
    let mut spec = simple("sc");
    spec["injectionStrategy"] = json!({"paused": true});
    assert_eq!(World::new([set("s", spec)]).inject(plain_pod()).unwrap(), plain_pod());
}

/// SIDECARSET-24
#[test]
fn a_canary_takes_the_place_of_its_base() {
    let canary = |base: &str| {
        let annotations =
            json!({"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": base});
        let mut spec = simple("sc");
        spec["containers"][0]["image"] = "canary:1".into();
        spec["selector"] = json!({"matchLabels": {"canary": "yes"}});
        set_with("z-canary", annotations, spec)
    };
    let world = World::new([set("base", simple("sc")), canary("base")]);
    let mut chosen = plain_pod();
    chosen["metadata"]["labels"]["canary"] = "yes".into();
    let pod = world.inject(chosen).unwrap();
    assert_eq!(names(&pod["spec"]["containers"]), "sc app");
    assert_eq!(find(&pod, "sc")["image"], "canary:1");
    assert_eq!(pod["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"], "z-canary");
    let pod = world.inject(plain_pod()).unwrap();
    assert_eq!(find(&pod, "sc")["image"], "sc:1", "a canary that is not about the pod hides nothing");
}

#[test]
fn records_that_a_pod_brings_along_are_merged() {
    let world = World::new([set("s", simple("sc"))]);
    let mut given = plain_pod();
    given["metadata"]["annotations"] = json!({"kruise.io/sidecarset-hash": "{\"old\":\"h\"}",
        "kruise.io/sidecarset-injected-list": "old", "kruise.io/sidecarset-working-hotupgrade-container": "junk"});
    let pod = world.inject(given.clone()).unwrap();
    let annotations = &pod["metadata"]["annotations"];
    let entries = record::read(annotations["kruise.io/sidecarset-hash"].as_str().unwrap()).unwrap();
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["old", "s"]);
    assert_eq!(entries["old"].sidecar_set_name, "old");
    assert_eq!(annotations["kruise.io/sidecarset-injected-list"], "old,s");
    given["metadata"]["annotations"]["kruise.io/sidecarset-hash"] = "junk".into();
    let refused = world.inject(given).unwrap_err();
    let expected =
        "pod(shop/web-1) invalid annotations[kruise.io/sidecarset-hash] value junk, unmarshal failed: ";
    assert!(refused.starts_with(expected), "{refused}");
}

/// The state of a set with image A as an old revision, chosen for new pods, while its spec says B.
fn chosen(policy: &str, update: Value) -> World {
    let mut old =
        set("s", json!({"containers": [container("sc", json!({"image": "A"}))], "customVersion": "3"}));
    old.metadata.uid = Some("u".to_owned());
    let registered = register(&old, &[], "kruise-system", &|_| false);
    let Some(Effect::Create { object, .. }) = registered.effects.first() else {
        panic!("a new set gets a revision")
    };
    let revision = Arc::new(Revision::read(object).unwrap());
    let spec = json!({"containers": [container("sc", json!({"image": "B"}))], "updateStrategy": update,
        "injectionStrategy": {"revision": {"customVersion": "3", "policy": policy}}});
    World { revisions: vec![revision], ..World::new([set("s", spec)]) }
}

fn image(world: &World, pod: Value) -> String {
    find(&world.inject(pod).unwrap(), "sc")["image"].as_str().unwrap().to_owned()
}

/// SIDECARSET-21
#[test]
fn a_fixed_revision_is_given_to_all_new_pods() {
    let world = chosen("Always", json!({"paused": true}));
    let pod = world.inject(plain_pod()).unwrap();
    assert_eq!(find(&pod, "sc")["image"], "A");
    let text = pod["metadata"]["annotations"]["kruise.io/sidecarset-hash"].as_str().unwrap();
    let entry = &record::read(text).unwrap()["s"];
    assert_eq!(entry.controller_revision, world.revisions[0].name());
    let of_revision = world.revisions[0].metadata.annotations.text("kruise.io/sidecarset-hash");
    assert_eq!(Some(entry.hash.as_str()), of_revision);
    assert_eq!(image(&chosen("Partial", json!({"paused": true})), plain_pod()), "A");
}

/// SIDECARSET-22
#[test]
fn pods_are_refused_while_the_fixed_revision_is_gone() {
    let mut world = chosen("Always", json!({}));
    assert!(world.compiled()[0].depends_on_revisions());
    world.revisions.clear();
    assert_eq!(world.inject(plain_pod()), Err("ControllerRevision.apps \"s\" not found".to_owned()));
}

/// SIDECARSET-23
#[test]
fn a_part_of_the_new_pods_gets_the_fixed_revision() {
    let world = chosen("Partial", json!({"selector": {"matchLabels": {"version": "canary"}}}));
    let mut labelled = plain_pod();
    labelled["metadata"]["labels"]["version"] = "canary".into();
    assert_eq!((image(&world, plain_pod()), image(&world, labelled)), ("A".to_owned(), "B".to_owned()));
    let olds = |partition: Value| {
        let mut world = chosen("Partial", json!({"partition": partition}));
        (0..200)
            .filter(|seed| {
                world.seed = *seed;
                image(&world, plain_pod()) == "A"
            })
            .count()
    };
    assert_eq!((olds(json!("100%")), olds(json!("0%")), olds(json!(5))), (200, 0, 0));
    let half = olds(json!("50%"));
    assert!((60..=140).contains(&half), "{half}");
}

/// Hashes that a revision does not carry are those of its content.
#[test]
fn a_revision_without_hashes_gets_them() {
    let mut world = chosen("Always", json!({}));
    let mut revision = (*world.revisions[0]).clone();
    let carried = revision.metadata.annotations.text("kruise.io/sidecarset-hash").unwrap().to_owned();
    revision.metadata.annotations = Pairs::default();
    world.revisions = vec![Arc::new(revision)];
    let pod = world.inject(plain_pod()).unwrap();
    let text = pod["metadata"]["annotations"]["kruise.io/sidecarset-hash"].as_str().unwrap();
    assert_eq!(record::read(text).unwrap()["s"].hash, carried);
}
