use proptest::prelude::*;

use super::*;
use crate::pod::{Terminated, Waiting};

/// A pod, its barrier, and what happens to them.
struct World {
    pod: Pod,
    barrier: Option<Barrier>,
}

impl World {
    /// Containers are written as `name=priority`, or `name` without a place in the order.
    fn new(containers: &str) -> Self {
        let containers: Vec<Value> = containers
            .split_whitespace()
            .map(|text| match text.split_once('=') {
                Some((name, priority)) => {
                    json!({"name": name, "env": [{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {
                    "configMapKeyRef": {"name": "web-barrier", "key": format!("p_{priority}")}}}]})
                }
                None => json!({"name": text}),
            })
            .collect();
        let pod = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
            "spec": {"containers": containers, "restartPolicy": "Always"}, "status": {"phase": "Pending"}});
        Self { pod: serde_json::from_value(pod).unwrap(), barrier: None }
    }

    /// These containers are ready, the others are not.
    fn ready(&mut self, names: &str) -> &mut Self {
        let is_ready = |container: &Container| names.split(' ').any(|name| *container.name == *name);
        let statuses = self.pod.spec.containers.iter().map(|container| ContainerStatus {
            name: container.name.clone(),
            ready: is_ready(container),
            ..ContainerStatus::default()
        });
        self.pod.status.container_statuses = statuses.collect();
        self
    }

    fn act(&mut self, effect: &Effect) {
        match effect {
            Effect::Create { object, .. } => {
                assert!(self.barrier.is_none());
                let mut barrier: Barrier = serde_json::from_value(object.clone()).unwrap();
                barrier.metadata.uid = "b1".into();
                self.barrier = Some(barrier);
            }
            Effect::Patch { target, patch: Patch::Merge(patch), .. } if target.resource == POD => {
                let annotations = patch["metadata"]["annotations"].as_object().unwrap().iter();
                let annotations =
                    annotations.map(|(key, value)| (key.as_str().into(), value.as_str().unwrap().into()));
                self.pod.metadata.annotations = annotations.collect();
            }
            Effect::Patch { patch: Patch::Merge(patch), .. } => {
                let keys = patch["data"].as_object().unwrap().keys().map(|key| key.as_str().into());
                self.barrier.as_mut().unwrap().keys.extend(keys);
            }
            Effect::Delete { .. } => self.barrier = None,
            other => panic!("{other:?}"),
        }
    }

    fn plan(&self) -> Plan {
        decide(&self.pod, self.barrier.as_ref())
    }

    /// Passes until nothing more is to be done; their number is bounded.
    fn settle(&mut self) -> &mut Self {
        for _ in 0..5 {
            let plan = self.plan();
            plan.effects.iter().for_each(|effect| self.act(effect));
            if plan.effects.is_empty() {
                return self;
            }
        }
        panic!("never at rest")
    }

    fn keys(&self) -> String {
        let keys = self.barrier.iter().flat_map(|barrier| &barrier.keys);
        let mut keys: Vec<i32> = keys.map(|key| key.strip_prefix("p_").unwrap().parse().unwrap()).collect();
        keys.sort_by_key(|key| -key);
        keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    fn has(&self, priority: i32) -> bool {
        has_key(&self.pod, self.barrier.as_ref(), priority)
    }

    fn is_completed(&self) -> bool {
        self.pod.metadata.annotations.text(CONTAINER_LAUNCH_PRIORITY_COMPLETED) == Some("true")
    }

    #[track_caller]
    fn check(&mut self, keys: &str, is_completed: bool) -> &mut Self {
        self.settle();
        assert_eq!((self.keys().as_str(), self.is_completed()), (keys, is_completed));
        self
    }
}

/// LAUNCH-9: the worked example.
#[test]
fn keys_appear_in_the_order_of_priority_as_containers_become_ready() {
    let mut world = World::new("a=3 b=5 c=0 d e=-1 f=3");
    world.check("5", false);
    world.ready("b").check("5 3", false);
    world.ready("b f").check("5 3", false);
    world.ready("a b f").check("5 3 0", false);
    world.ready("a b c f").check("5 3 0 -1", true);
}

/// LAUNCH-7
#[test]
fn containers_of_one_priority_start_together() {
    let mut world = World::new("a=5 b=5 c=1");
    world.check("5", false).ready("a").check("5", false).ready("a b").check("5 1", true);
}

/// LAUNCH-10, LAUNCH-11
#[test]
fn the_rest_waits_while_one_is_not_ready() {
    let mut world = World::new("a=2 b=1 c=0");
    world.check("2", false).ready("").check("2", false);
    world.ready("a").check("2 1", false);
    world.ready("").check("2 1", false);
    world.ready("a b").check("2 1 0", true);
}

/// LAUNCH-14: an owner that goes takes it along.
#[test]
fn the_barrier_belongs_to_the_pod_and_holds_the_first_key_at_once() {
    let World { pod, .. } = World::new("a=1 b=0");
    let plan = plan(&Observed { pod: Arc::new(pod), barrier: None });
    let [Effect::Create { resource: CONFIG_MAP, namespace, object }] = plan.effects.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!(*namespace, "shop");
    assert_eq!(object["metadata"]["name"], "web-barrier");
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u1"}]);
    assert_eq!(object["metadata"]["ownerReferences"], owner);
    assert_eq!(object["data"], json!({"p_1": "true"}));
}

/// LAUNCH-12
#[test]
fn the_barrier_of_an_earlier_pod_of_the_name_goes() {
    let mut world = World::new("a=1 b=0");
    world.check("1", false).ready("a").check("1 0", true);
    world.pod.metadata.uid = "u2".into();
    world.pod.metadata.annotations = [].into_iter().collect();
    let first = world.ready("").plan();
    assert!(
        matches!(first.effects.as_slice(), [Effect::Delete { target, .. }] if target.uid.as_deref() == Some("b1"))
    );
    assert!(first.again);
    world.check("1", false);
    assert_eq!(world.barrier.unwrap().metadata.owner_references[0].uid, "u2");
}

/// LAUNCH-13
#[test]
fn a_barrier_that_was_deleted_comes_back_when_a_container_needs_it() {
    let mut world = World::new("a=1 b=0");
    world.ready("").settle().ready("a").settle();
    world.ready("a b").check("1 0", true);
    world.barrier = None;
    world.ready("b").check("", true);
    let waiting = Waiting { reason: "CreateContainerConfigError".into(), ..Waiting::default() };
    world.pod.status.container_statuses[0].state.waiting = Some(waiting);
    world.check("1 0", true);
    world.barrier.as_mut().unwrap().keys.remove("p_1");
    world.check("1 0", true);
}

/// LAUNCH-17
#[test]
fn a_container_that_did_its_work_is_as_good_as_ready() {
    let mut world = World::new("prep=1 main=0");
    world.ready("").check("1", false);
    let ended = |world: &mut World, exit_code: i32| {
        world.pod.status.container_statuses[0].state.terminated =
            Some(Terminated { exit_code, ..Terminated::default() });
    };
    ended(&mut world, 0);
    world.check("1", false);
    world.pod.spec.restart_policy = "OnFailure".into();
    ended(&mut world, 1);
    world.check("1", false);
    ended(&mut world, 0);
    world.check("1 0", true);
}

/// LAUNCH-5, LAUNCH-16
#[test]
fn pods_without_an_order_and_pods_that_end_are_left_alone() {
    let nothing = |world: &World| world.plan() == Plan::default() && !concerns(&world.pod, None);
    assert!(nothing(&World::new("a b")));
    for phase in ["Failed", "Succeeded"] {
        let mut world = World::new("a=1 b=0");
        world.pod.status.phase = phase.into();
        assert!(nothing(&world), "{phase}");
    }
    let mut world = World::new("a=1 b=0");
    assert!(concerns(&world.pod, None));
    world.pod.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".parse().unwrap());
    assert!(nothing(&world));
    for copied in [
        json!({"name": "KRUISE_CONTAINER_BARRIER", "value": "x"}),
        json!({"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": {"name": "other", "key": "p_1"}}}),
    ] {
        let mut world = World::new("a b");
        world.pod.spec.containers[0].env = serde_json::from_value(json!([copied])).unwrap();
        assert!(nothing(&world), "{copied}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Whatever the order in which containers become ready: one that waits has no key while a more important one is not
    /// ready, and in the end all of them have theirs.
    #[test]
    fn nobody_starts_before_those_that_are_more_important(
        priorities in prop::collection::vec(-2..3_i32, 2..6),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let names = |ready: &[bool]| -> String {
            let names = ready.iter().enumerate().filter(|(_, ready)| **ready);
            names.map(|(index, _)| format!("c{index}")).collect::<Vec<_>>().join(" ")
        };
        let text: Vec<String> = priorities.iter().enumerate().map(|(index, one)| format!("c{index}={one}")).collect();
        let mut world = World::new(&text.join(" "));
        let mut ready = vec![false; priorities.len()];
        world.ready("").settle();
        let mut steps: Vec<usize> = order.iter().map(|one| one.index(priorities.len())).collect();
        steps.extend((0..priorities.len()).flat_map(|_| 0..priorities.len()));
        for step in steps {
            // A kubelet starts only containers whose key is there.
            if world.has(priorities[step]) {
                ready[step] = true;
            }
            let before = ready.clone();
            world.ready(&names(&ready)).settle();
            for (index, priority) in priorities.iter().enumerate() {
                let waits = before.iter().zip(&priorities).any(|(ready, other)| !ready && other > priority);
                prop_assert!(!waits || !world.has(*priority), "c{} of {:?}", index, priorities);
            }
        }
        prop_assert!(ready.iter().all(|ready| *ready));
        prop_assert!(world.is_completed());
        prop_assert_eq!(world.plan(), Plan::default());
    }
}
