//! What holds whatever happens.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::model::{World, counts};
use crate::resourcedistribution::{Deed, is_controlled, reference};

/// Something that happens around a ResourceDistribution.
#[derive(Clone, Debug)]
enum Happens {
    Comes(usize),
    Leaves(usize),
    Goes(usize),
    Labelled(usize, bool),
    Edited(usize),
    Deleted(usize),
    Foreign(usize, u8),
    Refused(usize, u16),
    Silent(usize),
    Heals(usize),
    Data(u8),
    Targets(u8),
    Restart,
    Later(u8),
    Pass,
}

fn happens() -> impl Strategy<Value = Happens> {
    let at = 0..6usize;
    prop_oneof![
        2 => at.clone().prop_map(Happens::Comes),
        1 => at.clone().prop_map(Happens::Leaves),
        1 => at.clone().prop_map(Happens::Goes),
        2 => (at.clone(), any::<bool>()).prop_map(|(at, on)| Happens::Labelled(at, on)),
        1 => at.clone().prop_map(Happens::Edited),
        1 => at.clone().prop_map(Happens::Deleted),
        1 => (at.clone(), 0..4u8).prop_map(|(at, how)| Happens::Foreign(at, how)),
        1 => (at.clone(), prop::sample::select(vec![403, 404, 409, 422, 500]))
            .prop_map(|(at, code)| Happens::Refused(at, code)),
        1 => at.clone().prop_map(Happens::Silent),
        1 => at.prop_map(Happens::Heals),
        1 => (0..3u8).prop_map(Happens::Data),
        2 => (0..5u8).prop_map(Happens::Targets),
        1 => Just(Happens::Restart),
        2 => (1..200u8).prop_map(Happens::Later),
        6 => Just(Happens::Pass),
    ]
}

fn targets(which: u8) -> Value {
    let none = json!({"allNamespaces": null, "includedNamespaces": null, "namespaceSelector": null, "excludedNamespaces": null});
    let mut targets = none;
    let list =
        |names: &[&str]| json!({"list": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()});
    match which {
        0 => {}
        1 => targets["allNamespaces"] = json!(true),
        2 => targets["includedNamespaces"] = list(&["n0", "n1", "n5", "kube-system"]),
        3 => targets["namespaceSelector"] = json!({"matchLabels": {"in": "yes"}}),
        _ => {
            targets["includedNamespaces"] = list(&["n0", "n2"]);
            targets["namespaceSelector"] = json!({"matchLabels": {"in": "yes"}});
            targets["excludedNamespaces"] = list(&["n1", "n3"]);
        }
    }
    targets
}

fn name(at: usize) -> String {
    ["n0", "n1", "n2", "n3", "kube-system", "n5"][at].to_owned()
}

/// An object of the distributed name that is somebody else's, in several disguises.
fn foreign(how: u8) -> Value {
    let owner = |uid: &str, controls: bool| json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "name": "rd", "uid": uid, "controller": controls}]);
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations":
        {"kruise.io/resourcedistribution.resource.from": "rd"}}, "data": {"foreign": "yes"}});
    match how {
        0 => {}
        1 => object["metadata"]["ownerReferences"] = owner("somebody", true),
        2 => object["metadata"]["ownerReferences"] = owner("rd-uid", false),
        _ => object["metadata"]["finalizers"] = json!(["example.com/never"]),
    }
    object
}

fn occur(world: &mut World, what: &Happens) {
    match what {
        Happens::Comes(at) => {
            world.namespaces.entry(name(*at)).or_insert((json!({}), false));
        }
        Happens::Leaves(at) => {
            if let Some(namespace) = world.namespaces.get_mut(&name(*at)) {
                namespace.1 = true;
                world.objects.remove(&name(*at));
            }
        }
        Happens::Goes(at) => {
            world.namespaces.remove(&name(*at));
            world.objects.remove(&name(*at));
        }
        Happens::Labelled(at, on) => {
            if let Some(namespace) = world.namespaces.get_mut(&name(*at)) {
                namespace.0 = if *on { json!({"in": "yes"}) } else { json!({}) };
            }
        }
        Happens::Edited(at) => {
            if let Some(mut object) = world.objects.get(&name(*at)).cloned()
                && object["data"]["foreign"].is_null()
            {
                object["data"]["edited"] = json!("yes");
                object["metadata"]["labels"]["theirs"] = json!("yes");
                world.put(&name(*at), object);
            }
        }
        Happens::Deleted(at) => drop(world.objects.remove(&name(*at))),
        Happens::Foreign(at, how) => {
            if world.namespaces.get(&name(*at)).is_some_and(|(_, leaves)| !leaves) {
                world.put(&name(*at), foreign(*how));
            }
        }
        Happens::Refused(at, code) => {
            world.refusals.insert(name(*at), (*code, format!("no, in {}", name(*at))));
        }
        Happens::Silent(at) => drop(world.silent.insert(name(*at))),
        Happens::Heals(at) => {
            world.refusals.remove(&name(*at));
            world.silent.remove(&name(*at));
        }
        Happens::Data(data) => world.change(json!({"resource": {"data": {"a": data.to_string()}}})),
        Happens::Targets(which) => world.change(json!({"targets": targets(*which)})),
        Happens::Restart => world.restart(),
        Happens::Later(seconds) => world.now += i64::from(*seconds),
        Happens::Pass => drop(world.pass()),
    }
}

fn foreigners(world: &World) -> BTreeMap<String, Value> {
    let own = reference(&world.typed());
    let all = world.objects.iter().filter(|(_, object)| {
        !is_controlled(&serde_json::from_value(object["metadata"].clone()).unwrap(), &own)
    });
    all.map(|(name, object)| (name.clone(), object.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Nothing foreign is ever written. Once everybody answers, copies are exactly where they should be and are equal, the
    /// status is true, and nothing more is written.
    #[test]
    fn copies_end_where_they_should_be(
        all in prop::collection::vec(happens(), 0..60), room in prop::sample::select(vec![1, 2, usize::MAX]),
    ) {
        let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"own": "yes"}},
            "data": {"a": "0"}});
        let mut world = World::new(resource, json!({"allNamespaces": true}));
        world.room = room;
        for at in 0..4 {
            world.namespace(&name(at), json!({}));
        }
        for what in &all {
            let before = foreigners(&world);
            occur(&mut world, what);
            if matches!(what, Happens::Pass) {
                let after = foreigners(&world);
                prop_assert_eq!(after, before, "foreign objects stay");
                let status = world.typed().status.unwrap();
                let (desired, succeeded, failed) = counts(&status);
                prop_assert_eq!(failed, desired - succeeded);
                prop_assert!(succeeded >= 0 && failed >= 0);
                for one in &status.conditions {
                    prop_assert!(one.failed_namespaces.is_sorted());
                    prop_assert_eq!(one.status == "True", !one.failed_namespaces.is_empty());
                }
                prop_assert!(status.conditions.len() <= 7);
            }
        }
        world.refusals.clear();
        world.silent.clear();
        for _ in 0..20 {
            world.now += 400;
            world.pass();
        }
        let (seen, writes, events) = (world.observe(), world.writes, world.events.len());
        let before = world.object.clone();
        world.now += 400;
        world.pass();
        prop_assert_eq!((world.writes, world.events.len()), (writes, events), "it rests");
        prop_assert_eq!(&world.object, &before);
        let own = seen.own.clone();
        let foreign = foreigners(&world);
        let mut expected = 0;
        for namespace in &seen.namespaces {
            use crate::resourcedistribution::Place;
            let object = world.objects.get(namespace.name.as_str());
            match namespace.place {
                Place::Target if !foreign.contains_key(namespace.name.as_str()) => {
                    expected += 1;
                    let object = object.unwrap();
                    prop_assert_eq!(&object["data"], &world.object["spec"]["resource"]["data"]);
                    prop_assert_eq!(&object["metadata"]["labels"]["own"], "yes");
                }
                Place::Outside => {
                    let is_ours = object.is_some() && !foreign.contains_key(namespace.name.as_str());
                    prop_assert!(!is_ours, "{:?} has a copy of {:?}", namespace, own);
                }
                _ => {}
            }
        }
        prop_assert_eq!(world.typed().status.unwrap().succeeded, Some(expected));
    }

    /// The order in which the cluster lists namespaces does not matter, and steps are one for each namespace.
    #[test]
    fn plans_do_not_depend_on_order(
        all in prop::collection::vec(happens(), 0..40), seed in any::<u64>(),
    ) {
        let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "0"}});
        let mut world = World::new(resource, targets(4));
        all.iter().for_each(|what| occur(&mut world, what));
        let seen = world.observe();
        let plan = super::super::plan(&seen);
        let mut shuffled = world.metadata();
        let by = usize::try_from(seed).unwrap() % shuffled.len().max(1);
        shuffled.rotate_left(by);
        shuffled.reverse();
        let targets = super::super::Targets::new(&world.typed().spec.targets).unwrap();
        let other = super::super::Observed { namespaces: targets.sort(&shuffled), ..seen };
        prop_assert_eq!(super::super::plan(&other), plan.clone());
        let mut places: Vec<_> = plan.steps.iter().map(|step| step.namespace.clone()).collect();
        let count = places.len();
        places.sort();
        places.dedup();
        prop_assert_eq!(places.len(), count);
        for step in &plan.steps {
            prop_assert_eq!(step.deed == Deed::Create, !world.objects.contains_key(step.namespace.as_str()));
        }
    }

    /// WAITING-30: sentences name three at most, and say nothing of Secrets.
    #[test]
    fn sentences_are_short(count in 1..30usize, kind in 0..3u8) {
        let resource = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "stringData": {"a": "hunter2"}});
        let names: Vec<String> = (0..count).map(|number| format!("n{number:02}")).collect();
        let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        let mut world = World::new(resource, json!({"includedNamespaces": {"list": list}}));
        let full = "secrets \"x\" is forbidden: exceeded quota: few, requested: secrets=1, used: secrets=5, limited: secrets=5";
        for name in &names {
            if kind > 0 {
                world.namespace(name, json!({}));
            }
            match kind {
                1 => world.put(name, json!({"metadata": {"name": "x"}})),
                2 => drop(world.refusals.insert(name.clone(), (403, full.to_owned()))),
                _ => {}
            }
        }
        let seen = world.observe();
        let plan = super::super::plan(&seen);
        let said: Vec<_> = plan.steps.iter().map(|_| super::super::Said::Refused { code: 403, message: full.to_owned() }).collect();
        let (ledger, _, _) = super::super::settle(&seen, &plan, &said);
        let (waits, affected) = super::super::waits(&seen.source, &ledger);
        let message = waits.message();
        prop_assert_eq!(affected.values().map(Vec::len).sum::<usize>(), count);
        prop_assert!(message.matches("n0").count() <= 3 && !message.contains("hunter2"), "{}", message);
        let expected = match (kind, count) {
            (0, 1) => "1 of 1 target namespace does not exist or is being deleted (n00)".to_owned(),
            (1, 2) => "2 of 2 namespaces have a foreign Secret x (n00, n01)".to_owned(),
            (2, count) => {
                let (noun, verb) = if count == 1 { ("secret", "is") } else { ("secrets", "are") };
                format!("{count} {noun} {verb} missing: quota few is used up (requested: secrets=1, used: secrets=5, limited: secrets=5)")
            }
            _ => return Ok(()),
        };
        prop_assert_eq!(message, expected);
        let shown = format!("{seen:?}");
        prop_assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg=="), "{}", shown);
    }
}
