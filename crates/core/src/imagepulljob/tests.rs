use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{imagepulljob::v1beta1::ImagePullJob, rollout::PriorityStrategy};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    effect::{Effect, Patch},
    image_secrets,
    nodeimage::NodeImage,
    pod::Pod,
    text::Text,
    update_order::Strategy as UpdateStrategy,
};

fn at(seconds: i64) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn text(seconds: i64) -> String {
    at(seconds).to_string()
}

/// A job and its nodes, as a server has them.
#[derive(Clone, Debug)]
struct World {
    job: Value,
    nodes: BTreeMap<String, Value>,
    room: usize,
    secrets: image_secrets::Observed,
    gone: bool,
}

impl World {
    fn new(spec: Value, nodes: &[&str]) -> Self {
        let mut job = json!({
            "metadata": {"name": "job", "namespace": "ns", "uid": "job-1", "generation": 1, "resourceVersion": "1"},
            "spec": {"image": "x.io/app:v1", "completionPolicy": {}},
        });
        crate::patch_model::merge(&mut job["spec"], &spec);
        let node = |name: &&str| {
            let metadata = json!({"name": name, "uid": format!("uid-{name}"), "generation": 1, "labels": {"name": name}});
            ((*name).to_owned(), json!({"metadata": metadata, "spec": {}}))
        };
        Self {
            job,
            nodes: nodes.iter().map(node).collect(),
            room: usize::MAX,
            secrets: image_secrets::Observed { config_namespace: "config".into(), ..Default::default() },
            gone: false,
        }
    }

    fn read(&self) -> Arc<ImagePullJob> {
        Arc::new(serde_json::from_value(self.job.clone()).unwrap())
    }

    fn node(&self, name: &str) -> Option<Arc<NodeImage>> {
        self.nodes.get(name).map(|node| Arc::new(serde_json::from_value(node.clone()).unwrap()))
    }

    fn chosen(&self) -> Vec<Arc<NodeImage>> {
        match Selection::of(&self.read()).unwrap() {
            Selection::Names(names) => {
                Selection::named(names.iter().map(String::as_str), |name| self.node(name))
            }
            other => other.choose("job-1", self.nodes.keys().filter_map(|name| self.node(name)).collect()),
        }
    }

    fn plan(&self, seconds: i64) -> Plan {
        plan(&Observed {
            job: self.read(),
            nodes: self.chosen(),
            secrets: self.secrets.clone(),
            ttl_of_tags: 300,
            room: self.room,
            seed: 64,
            now: at(seconds),
        })
        .unwrap()
    }

    /// One pass with its status.
    fn pass(&mut self, seconds: i64) -> Plan {
        let plan = self.plan(seconds);
        let job = self.read();
        for effect in plan.effects.clone() {
            self.apply(effect);
        }
        let asked = plan.asks.iter().filter(|asks| **asks).count();
        if let Some(write) = plan.status_after(asked).and_then(|status| status_write(&job, &status)) {
            self.apply(write);
        }
        plan
    }

    /// Passes until nothing is to be done at this moment.
    fn settle(&mut self, seconds: i64) {
        for _ in 0..10 {
            let before = format!("{self:?}");
            self.pass(seconds);
            if before == format!("{self:?}") {
                return;
            }
        }
        panic!("does not come to rest: {self:?}");
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Patch { target, patch: Patch::Json(steps), .. } => {
                let node = self.nodes.get_mut(target.key.name.as_str()).unwrap();
                let steps: json_patch::Patch = serde_json::from_value(steps).unwrap();
                json_patch::patch(node, &steps).unwrap();
                node["metadata"]["generation"] = json!(node["metadata"]["generation"].as_i64().unwrap() + 1);
            }
            Effect::Patch { patch: Patch::Merge(change), .. } => {
                crate::patch_model::merge(&mut self.job, &change);
            }
            Effect::Delete { .. } => self.gone = true,
            other => panic!("unexpected {other:?}"),
        }
    }

    /// A node tells about the tag of the job.
    fn tell(&mut self, node: &str, phase: &str, seconds: i64) {
        let node = self.nodes.get_mut(node).unwrap();
        let tag = node["spec"]["images"]["x.io/app"]["tags"][0].clone();
        let mut status = json!({"tag": tag["tag"], "phase": phase});
        if tag["version"].is_number() {
            status["version"] = tag["version"].clone();
        }
        if matches!(phase, "Succeeded" | "Failed") {
            status["completionTime"] = json!(text(seconds));
        }
        node["status"] = json!({"desired": 1, "imageStatuses": {"x.io/app": {"tags": [status]}}});
    }

    fn asked(&self) -> Vec<&str> {
        let asked = self.nodes.iter().filter(|(_, node)| !node["spec"]["images"]["x.io/app"].is_null());
        asked.map(|(name, _)| name.as_str()).collect()
    }

    fn tag(&self, node: &str) -> &Value {
        &self.nodes[node]["spec"]["images"]["x.io/app"]["tags"][0]
    }

    #[track_caller]
    fn check(&self, expected: &str) {
        let status = &self.job["status"];
        let number = |field: &str| status[field].as_i64().unwrap_or_default();
        assert_eq!(
            format!(
                "{}/{}/{}/{} {}",
                number("desired"),
                number("active"),
                number("succeeded"),
                number("failed"),
                status["message"].as_str().unwrap_or_default()
            ),
            expected
        );
    }
}

/// IMAGES-4 with the objects of the fixture `pull-one-node`.
#[test]
fn a_job_asks_its_node_and_ends_when_the_node_is_done() {
    let mut world = World::new(
        json!({"selector": {"names": ["a"]}, "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 300}}),
        &["a", "b"],
    );
    world.pass(0);
    world.check("1/1/0/0 job is running, progress 0.0%");
    assert_eq!(world.job["metadata"]["finalizers"], json!(["apps.kruise.io/deletion-protection"]));
    let mut tag = world.tag("a").clone();
    let ttl = tag["pullPolicy"].as_object_mut().unwrap().remove("ttlSecondsAfterFinished").unwrap();
    assert!((600..900).contains(&ttl.as_i64().unwrap()), "{ttl}");
    assert_eq!(
        tag,
        json!({"tag": "v1", "createdAt": text(0), "imagePullPolicy": "IfNotPresent",
            "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3},
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "name": "job",
                "namespace": "ns", "uid": "job-1"}]})
    );
    let before = world.clone();
    world.tell("a", "Pulling", 1);
    assert_eq!(world.plan(1).effects, []);
    world.tell("a", "Succeeded", 2);
    let old = before.node("a").unwrap();
    assert_eq!(
        jobs_with_news(&old, &world.node("a").unwrap()),
        BTreeSet::from([ObjectKey::new("ns", "job")])
    );
    world.settle(3);
    world.check("1/0/1/0 job has completed");
    assert_eq!(world.job["status"]["completionTime"], text(3));
    assert_eq!(world.job["status"]["startTime"], text(0));
    assert_eq!(world.job["metadata"]["finalizers"], json!([]));
    assert_eq!(world.plan(103).wake_after, Some(Duration::from_secs(200)));
    world.pass(302);
    assert!(!world.gone);
    world.pass(303);
    assert!(world.gone);
}

/// IMAGES-5, IMAGES-6
#[test]
fn no_more_nodes_pull_at_once_than_wanted() {
    let mut world =
        World::new(json!({"selector": {"names": ["c", "b", "a"]}, "parallelism": 0}), &["a", "b", "c"]);
    world.settle(0);
    assert!(world.asked().is_empty());
    world.check("3/0/0/0 job is running, progress 0.0%");
    assert_eq!(world.plan(0).reasons, ["paused: parallelism is 0, and 3 nodes are not asked yet"]);
    world.job["spec"]["parallelism"] = json!("2");
    world.settle(1);
    assert_eq!(world.asked(), ["b", "c"], "in the order of the names given (IMG-D3)");
    world.check("3/2/0/0 job is running, progress 0.0%");
    assert_eq!(world.plan(1).reasons, ["parallelism is 2: 1 nodes wait for their turn"]);
    world.tell("c", "Failed", 2);
    world.settle(2);
    assert_eq!(world.asked(), ["a", "b", "c"]);
    world.check("3/2/0/1 job is running, progress 33.3%");
}

#[test]
fn one_node_at_a_time_is_the_default() {
    let mut world = World::new(json!({}), &["a", "b", "c"]);
    world.settle(0);
    assert_eq!(world.asked().len(), 1);
}

/// IMAGES-7
#[test]
fn names_that_do_not_exist_are_left_out() {
    let mut world = World::new(json!({"selector": {"names": ["a", "missing", "a"]}}), &["a", "b"]);
    world.pass(0);
    world.check("1/1/0/0 job is running, progress 0.0%");
}

/// IMAGES-8, IMAGES-9: what a selector chooses, and which nodes change it.
#[test]
fn labels_choose_nodes_and_an_empty_selector_chooses_all() {
    let mut world =
        World::new(json!({"selector": {"matchLabels": {"name": "a"}}, "parallelism": 5}), &["a", "b"]);
    world.pass(0);
    assert_eq!(world.asked(), ["a"]);
    let selection = Selection::of(&world.read()).unwrap();
    let before = world.node("b").unwrap();
    world.nodes.get_mut("b").unwrap()["metadata"]["labels"]["name"] = json!("a");
    let after = world.node("b").unwrap();
    assert!(selection.is_concerned(Some(&before), Some(&after)));
    assert!(!selection.is_concerned(Some(&after), Some(&after)));
    world.pass(1);
    world.check("2/2/0/0 job is running, progress 0.0%");

    let mut all = World::new(json!({"selector": {}, "parallelism": 5}), &["a", "b"]);
    all.pass(0);
    all.check("2/2/0/0 job is running, progress 0.0%");
    let selection = Selection::of(&all.read()).unwrap();
    assert!(selection.is_concerned(None, Some(&before)), "IMG-D2: a new node wakes the job");
    all.nodes.insert("c".into(), json!({"metadata": {"name": "c", "uid": "c", "generation": 1}}));
    all.pass(1);
    all.check("3/3/0/0 job is running, progress 0.0%");
    assert!(all.tag("c").is_object(), "a NodeImage without a spec gets one");
    all.nodes.get_mut("c").unwrap()["metadata"]["deletionTimestamp"] = json!(text(2));
    all.pass(2);
    all.check("2/2/0/0 job is running, progress 0.0%");
}

fn pod(name: &str, node: &str, more: Value) -> Arc<Pod> {
    let mut pod = json!({"metadata": {"name": name, "namespace": "ns", "labels": {"app": "x"}}, "spec": {"nodeName": node},
        "status": {"phase": "Running"}});
    crate::patch_model::merge(&mut pod, &more);
    Arc::new(serde_json::from_value(pod).unwrap())
}

/// IMAGES-10
#[test]
fn pods_choose_the_nodes_that_they_are_on() {
    let world = World::new(json!({"podSelector": {"matchLabels": {"app": "x"}}}), &[]);
    let selection = Selection::of(&world.read()).unwrap();
    let mut pods = vec![
        pod("c", "n2", json!({})),
        pod("a", "n1", json!({})),
        pod("b", "n1", json!({})),
        pod("d", "n4", json!({"metadata": {"labels": {"app": "y"}}})),
        pod("e", "n5", json!({"status": {"phase": "Succeeded"}})),
        pod("f", "n6", json!({"metadata": {"deletionTimestamp": text(0)}})),
        pod("g", "", json!({})),
    ];
    assert_eq!(nodes_of_pods(&selection, &pods, &PodOrder::Name), ["n1", "n2"]);
    let (waiting, landed) = (pods.last().cloned(), pod("g", "n3", json!({})));
    assert!(selection.is_moved(waiting.as_deref(), Some(&landed)));
    assert!(!selection.is_moved(None, waiting.as_deref()));
    assert!(!selection.is_moved(Some(&landed), Some(&landed)));
    pods.push(landed);
    assert_eq!(nodes_of_pods(&selection, &pods, &PodOrder::Name), ["n1", "n2", "n3"]);
}

/// IMG-D3: the pods that are updated first have their image first.
#[test]
fn nodes_pull_in_the_order_in_which_pods_are_updated() {
    let world = World::new(json!({"podSelector": {"matchLabels": {"app": "x"}}}), &[]);
    let selection = Selection::of(&world.read()).unwrap();
    let pods = [
        pod("web-0", "n1", json!({"metadata": {"labels": {"first": "no"}}})),
        pod("web-2", "n2", json!({"metadata": {"labels": {"first": "no"}}})),
        pod("web-10", "n3", json!({"metadata": {"labels": {"first": "yes"}}})),
        pod("web-1", "n3", json!({"metadata": {"labels": {"first": "no"}}})),
    ];
    assert_eq!(nodes_of_pods(&selection, &pods, &PodOrder::Ordinal), ["n3", "n2", "n1"]);
    let priority: PriorityStrategy = serde_json::from_value(json!({"weightPriority": [
        {"weight": 50, "matchSelector": {"matchLabels": {"first": "yes"}}}]}))
    .unwrap();
    let strategy = UpdateStrategy::new(Some(&priority), &[]).unwrap();
    assert_eq!(nodes_of_pods(&selection, &pods, &PodOrder::Strategy(strategy)), ["n3", "n1", "n2"]);
}

/// IMAGES-11
#[test]
fn a_job_without_nodes_is_complete_unless_it_never_is() {
    let mut world = World::new(json!({"selector": {"names": ["missing"]}}), &["a"]);
    world.settle(0);
    world.check("0/0/0/0 job has completed");
    let mut never =
        World::new(json!({"selector": {"names": ["x"]}, "completionPolicy": {"type": "Never"}}), &["a"]);
    never.settle(0);
    never.check("0/0/0/0 job is running, no progress");
}

/// IMAGES-12: what the job shows of it.
#[test]
fn nodes_that_failed_are_named_in_order() {
    let mut world =
        World::new(json!({"selector": {"names": ["c", "a", "b"]}, "parallelism": 3}), &["a", "b", "c"]);
    world.pass(0);
    for (node, phase) in [("c", "Failed"), ("a", "Failed"), ("b", "Succeeded")] {
        world.tell(node, phase, 1);
    }
    world.settle(2);
    world.check("3/0/1/2 job has completed");
    assert_eq!(world.job["status"]["failedNodes"], json!(["a", "c"]));
}

/// IMAGES-15: the deadline of the job, each node once.
#[test]
fn a_job_ends_at_its_deadline_whatever_nodes_do() {
    let spec = json!({"completionPolicy": {"activeDeadlineSeconds": 8}, "parallelism": 2,
        "selector": {"names": ["d", "a", "b", "c"]}});
    let mut world = World::new(spec, &["a", "b", "c", "d"]);
    world.pass(0);
    world.tell("d", "Failed", 3);
    let plan = world.pass(3);
    assert_eq!(plan.wake_after, Some(Duration::from_secs(5)));
    world.tell("a", "Succeeded", 4);
    world.pass(4);
    world.pass(7);
    world.check("4/2/1/1 job is running, progress 50.0%");
    let written = world.asked().len();
    world.settle(8);
    world.check("4/0/1/3 job exceeds activeDeadlineSeconds");
    assert_eq!(world.job["status"]["failedNodes"], json!(["b", "c", "d"]));
    assert_eq!(world.asked().len(), written, "nobody is asked any more");
}

#[test]
fn a_job_whose_nodes_are_done_at_its_deadline_is_not_late() {
    let mut world = World::new(json!({"completionPolicy": {"activeDeadlineSeconds": 8}}), &["a"]);
    world.pass(0);
    world.tell("a", "Succeeded", 8);
    world.pass(9);
    world.check("1/0/1/0 job has completed");
}

/// IMAGES-16 and IMAGES-19: nodes are asked when the copies are there, and hear of those that come later.
#[test]
fn secrets_come_first_and_nodes_learn_of_those_that_come_later() {
    let mut world = World::new(json!({"pullSecrets": ["s1", "s2"], "selector": {"names": ["a"]}}), &["a"]);
    let first = world.plan(0);
    assert_eq!(first.effects.len(), 1, "only the finalizer: a copy must not outlive its job");
    world.job["metadata"]["finalizers"] = json!(["apps.kruise.io/deletion-protection"]);
    let secret = json!({"metadata": {"name": "s1"}, "type": "Opaque", "data": {}});
    world.secrets.sources =
        [("s1".into(), image_secrets::Source::Read { source: Arc::new(secret), copy: None })].into();
    let plan = world.plan(0);
    assert_eq!(
        plan.notice.unwrap().message,
        "secret s2 does not exist in namespace ns: images are pulled without"
    );
    assert_eq!(plan.reasons, ["copies of pull secrets are made first"]);
    assert!(matches!(plan.effects.as_slice(), [Effect::Create { .. }]), "{:?}", plan.effects);
    assert!(plan.status.is_some(), "a deadline counts from now");

    let copy = |name: &str, source: &str| {
        Arc::new(
            serde_json::from_value(json!({"name": name, "namespace": "config", "annotations": {
                "imagepulljobs.kruise.io/source-key": source, "imagepulljobs.kruise.io/references": "ns/job",
                "imagepulljobs.kruise.io/mode": "batch"}}))
            .unwrap(),
        )
    };
    world.secrets.sources = [("s1".into(), image_secrets::Source::Same)].into();
    world.secrets.copies = vec![copy("s1-111111", "ns/s1")];
    world.pass(1);
    let one = json!({"namespace": "config", "name": "s1-111111", "mode": "batch"});
    assert_eq!(world.nodes["a"]["spec"]["images"]["x.io/app"]["pullSecrets"], json!([one]));
    world.secrets.sources.insert("s2".into(), image_secrets::Source::Same);
    world.secrets.copies.push(copy("s2-222222", "ns/s2"));
    world.pass(2);
    let two = json!({"namespace": "config", "name": "s2-222222", "mode": "batch"});
    assert_eq!(world.nodes["a"]["spec"]["images"]["x.io/app"]["pullSecrets"], json!([one, two]));
    assert_eq!(world.tag("a")["version"], Value::Null, "no new round for it");
    world.check("1/1/0/0 job is running, progress 0.0%");

    world.job["metadata"]["deletionTimestamp"] = json!(text(3));
    let plan = world.plan(3);
    assert_eq!(plan.effects.len(), 2, "the copies first: {:?}", plan.effects);
    assert!(plan.effects.iter().all(|effect| matches!(effect, Effect::Delete { .. })));
    world.secrets.copies.clear();
    world.pass(4);
    assert_eq!(world.job["metadata"]["finalizers"], json!([]));
}

/// IMAGES-25 with the objects of the fixture `second-job-same-image`; limits as IMG-D12 wants them.
#[test]
fn a_second_job_begins_a_new_round() {
    let mut world = World::new(
        json!({"selector": {"names": ["a"]}, "completionPolicy": {"ttlSecondsAfterFinished": 300},
            "imagePullPolicy": "Always", "pullPolicy": {"timeoutSeconds": 20, "backoffLimit": 1},
            "sandboxConfig": {"annotations": {"a": "b"}, "labels": {"c": "d"}}}),
        &["a"],
    );
    let owner = json!({"kind": "ImagePullJob", "namespace": "ns", "name": "one", "uid": "job-0"});
    world.nodes.get_mut("a").unwrap()["spec"] = json!({"images": {"x.io/app": {"tags": [
        {"tag": "v1", "createdAt": text(0), "imagePullPolicy": "IfNotPresent", "ownerReferences": [owner], "pullPolicy":
            {"backoffLimit": 3, "timeoutSeconds": 600, "ttlSecondsAfterFinished": 5000}}]}}});
    world.tell("a", "Succeeded", 1);
    world.pass(6);
    world.check("1/1/0/0 job is running, progress 0.0%");
    let tag = world.tag("a");
    assert_eq!(
        (&tag["version"], &tag["createdAt"], &tag["imagePullPolicy"]),
        (&json!(1), &json!(text(6)), &json!("Always"))
    );
    assert_eq!(tag["ownerReferences"].as_array().unwrap().len(), 2);
    assert_eq!(
        tag["pullPolicy"],
        json!({"backoffLimit": 1, "timeoutSeconds": 20, "ttlSecondsAfterFinished": 5000}),
        "limits of the new job, the longer time of both"
    );
    let sandbox = json!({"annotations": {"a": "b"}, "labels": {"c": "d"}});
    assert_eq!(world.nodes["a"]["spec"]["images"]["x.io/app"]["sandboxConfig"], sandbox);
    world.tell("a", "Succeeded", 7);
    world.pass(8);
    world.check("1/0/1/0 job has completed");
}

/// What is left in the status from a tag that went must not be taken for the new one.
#[test]
fn a_tag_that_comes_again_has_a_higher_version() {
    let mut world = World::new(json!({}), &["a"]);
    world.nodes.get_mut("a").unwrap()["status"] =
        json!({"imageStatuses": {"x.io/app": {"tags": [{"tag": "v1", "phase": "Succeeded", "version": 4}]}}});
    world.pass(0);
    assert_eq!(world.tag("a")["version"], 5);
    world.check("1/1/0/0 job is running, progress 0.0%");
}

#[test]
fn tags_stay_sorted() {
    let mut world = World::new(json!({"image": "x.io/app:v2"}), &["a"]);
    let tag = |tag: &str| json!({"tag": tag, "createdAt": text(0)});
    world.nodes.get_mut("a").unwrap()["spec"] =
        json!({"images": {"x.io/app": {"tags": [tag("v1"), tag("v3")]}}});
    world.pass(0);
    let tags = world.nodes["a"]["spec"]["images"]["x.io/app"]["tags"].as_array().unwrap();
    assert_eq!(tags.iter().map(|tag| tag["tag"].as_str().unwrap()).collect::<Vec<_>>(), ["v1", "v2", "v3"]);
}

/// IMAGES-23: the key of a digest.
#[test]
fn a_digest_takes_the_place_of_a_tag() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let mut world = World::new(json!({"image": format!("docker.io/library/busybox:1@{digest}")}), &["a"]);
    world.pass(0);
    assert_eq!(world.nodes["a"]["spec"]["images"]["busybox"]["tags"][0]["tag"], json!(digest));
}

/// IMAGES-42: the time of a tag of a job without end, and its deadline.
#[test]
fn a_job_without_end_pulls_again_after_about_a_day() {
    let mut world = World::new(json!({"completionPolicy": {"type": "Never"}}), &["a"]);
    world.pass(0);
    let policy = &world.tag("a")["pullPolicy"];
    assert!((85_800..87_000).contains(&policy["ttlSecondsAfterFinished"].as_i64().unwrap()), "{policy}");
    assert_eq!(policy["activeDeadlineSeconds"], 1800);
    world.tell("a", "Succeeded", 5);
    world.settle(6);
    world.check("1/0/1/0 job is running, progress 100.0%");
    let before = world.node("a").unwrap();
    world.nodes.get_mut("a").unwrap()["spec"] = json!({});
    let after = world.node("a").unwrap();
    assert!(jobs_with_news(&before, &after).contains(&ObjectKey::new("ns", "job")), "that it went is news");
    world.settle(90_000);
    world.check("1/1/0/0 job is running, progress 0.0%");
    assert_eq!(world.tag("a")["version"], 1);
}

/// The times of tags by what the job says: the sum of all attempts, its deadline, or its own time.
#[test]
fn a_tag_outlives_its_job_by_a_while() {
    for (policy, least) in [
        (json!({}), 1800),
        (json!({"activeDeadlineSeconds": 700}), 700),
        (json!({"activeDeadlineSeconds": 700, "ttlSecondsAfterFinished": 20}), 20),
    ] {
        let mut world = World::new(json!({"completionPolicy": policy}), &["a"]);
        world.pass(0);
        let ttl = world.tag("a")["pullPolicy"]["ttlSecondsAfterFinished"].as_i64().unwrap();
        assert!((least + 300..least + 600).contains(&ttl), "{ttl} for {least}");
    }
}

/// Live edits: nodes that were not asked yet hear of them, tags that were written stay.
#[test]
fn an_edit_reaches_the_nodes_that_were_not_asked_yet() {
    let mut world = World::new(json!({"selector": {"names": ["a", "b"]}}), &["a", "b"]);
    world.pass(0);
    world.job["spec"]["pullPolicy"] = json!({"timeoutSeconds": 7});
    world.job["spec"]["parallelism"] = json!(2);
    world.settle(1);
    assert_eq!(world.tag("a")["pullPolicy"]["timeoutSeconds"], 600);
    assert_eq!(world.tag("b")["pullPolicy"]["timeoutSeconds"], 7);
}

#[test]
fn a_node_with_all_images_it_may_have_is_left_out_and_named() {
    let mut world = World::new(json!({"parallelism": 2}), &["a", "b"]);
    let many: serde_json::Map<String, Value> =
        (0..256).map(|number| (format!("app-{number}"), json!({"tags": [{"tag": "1"}]}))).collect();
    world.nodes.get_mut("a").unwrap()["spec"] = json!({"images": many});
    world.settle(0);
    assert_eq!(world.asked(), ["b"]);
    assert_eq!(world.plan(1).reasons, ["1 nodes have 256 images to pull already, such as a"]);
}

#[test]
fn many_nodes_are_asked_as_fast_as_writes_go() {
    let mut world = World::new(json!({"parallelism": 10}), &["a", "b", "c", "d"]);
    world.room = 3;
    let plan = world.pass(0);
    assert_eq!((world.asked().len(), plan.wake_after), (3, Some(Duration::from_secs(1))));
    world.check("4/3/0/0 job is running, progress 0.0%");
    world.settle(1);
    assert_eq!(world.asked().len(), 4);
}

#[test]
fn what_admission_refuses_is_told() {
    for (spec, expected) in [
        (json!({"image": "UPPER/x"}), "invalid image UPPER/x"),
        (json!({"parallelism": "10%"}), "parallelism must be a valid integer, not \"10%\""),
    ] {
        let world = World::new(spec, &["a"]);
        let seen = Observed {
            job: world.read(),
            nodes: Vec::new(),
            secrets: image_secrets::Observed::default(),
            ttl_of_tags: 300,
            room: 1,
            seed: 0,
            now: at(0),
        };
        let error = plan(&seen).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn counts_are_no_news_for_a_job() {
    let mut world = World::new(json!({}), &["a"]);
    world.pass(0);
    let before = world.read();
    world.job["status"]["active"] = json!(7);
    assert!(!is_news(&before, &world.read()));
    for change in [
        json!({"metadata": {"generation": 2}}),
        json!({"metadata": {"deletionTimestamp": text(0)}}),
        json!({"status": {"completionTime": text(0)}}),
        json!({"metadata": {"finalizers": []}}),
    ] {
        let mut other = world.clone();
        crate::patch_model::merge(&mut other.job, &change);
        assert!(is_news(&before, &other.read()), "{change}");
    }
}

/// Of the three changes of a NodeImage that a pull brings, one wakes the job.
#[test]
fn a_pull_wakes_its_job_once() {
    let mut world = World::new(json!({}), &["a"]);
    let mut versions = vec![world.node("a").unwrap()];
    world.pass(0);
    versions.push(world.node("a").unwrap());
    for phase in ["Waiting", "Pulling", "Succeeded"] {
        world.tell("a", phase, 1);
        versions.push(world.node("a").unwrap());
    }
    let wakes = versions.windows(2).map(|pair| jobs_with_news(&pair[0], &pair[1]).len());
    assert_eq!(wakes.collect::<Vec<_>>(), [0, 0, 0, 1]);
    let merged = jobs_with_news(&versions[0], &versions[4]);
    assert_eq!(merged.len(), 1, "also when a watch shows only the first and the last");
}

#[test]
fn jobs_without_names_begin_at_different_nodes() {
    let nodes: Vec<Arc<NodeImage>> = (0..50)
        .map(|number| {
            Arc::new(serde_json::from_value(json!({"metadata": {"name": format!("n{number:02}")}})).unwrap())
        })
        .collect();
    let firsts: BTreeSet<Text> = (0..50)
        .map(|job| Selection::All.choose(&format!("uid-{job}"), nodes.clone())[0].metadata.name.clone())
        .collect();
    assert!(firsts.len() > 20, "{}", firsts.len());
    assert_eq!(Selection::All.choose("uid", nodes.clone()).len(), 50);
}

proptest! {
    /// Nodes answer in any order, some badly: never more of them pull at once than wanted, the job ends, and then it is
    /// silent.
    #[test]
    fn a_job_reaches_its_end_within_its_limit(
        parallelism in 1..4_usize, answers in prop::collection::vec((0..6_usize, 0..3_usize), 60),
    ) {
        let names = ["a", "b", "c", "d", "e", "f"];
        let mut world = World::new(json!({"parallelism": parallelism}), &names);
        let mut time = 0;
        let all = (0..6).map(|number| (number, 2));
        for (node, phase) in answers.into_iter().chain(all.clone()).chain(all.clone()).chain(all.clone()).chain(all.clone()).chain(all.clone()).chain(all) {
            time += 1;
            let name = names[node];
            if world.asked().contains(&name) && !matches!(world.nodes[name]["status"]["imageStatuses"]["x.io/app"]["tags"][0]["phase"].as_str(), Some("Succeeded" | "Failed")) {
                world.tell(name, ["Pulling", "Failed", "Succeeded"][phase], time);
            }
            world.pass(time);
            let pulling = world.asked().len() - world.nodes.values().filter(|node| {
                let phase = &node["status"]["imageStatuses"]["x.io/app"]["tags"][0]["phase"];
                phase == "Succeeded" || phase == "Failed"
            }).count();
            prop_assert!(pulling <= parallelism);
            if world.job["status"]["completionTime"].is_null() {
                prop_assert_eq!(world.job["status"]["active"].as_u64().unwrap(), pulling as u64);
            }
        }
        world.settle(time);
        prop_assert_eq!(&world.job["status"]["message"], "job has completed");
        prop_assert_eq!(world.plan(time + 1).effects, []);
    }
}
