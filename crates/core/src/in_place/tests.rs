use std::time::Duration;

use jiff::Timestamp;
use kruise_api::annotations::IN_PLACE_UPDATE_STATE;
use serde_json::{Value, json};

use super::*;
use crate::{
    effect::{Effect, Patch},
    pod::Pod,
    revision::Revision,
};

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn options() -> Options {
    Options { env_from_metadata: true, resize: true, resize_subresource: true, ..Options::default() }
}

fn revision(name: &str, template: Value) -> Revision {
    Revision::read(
        &json!({"metadata": {"name": name}, "revision": 1, "data": {"spec": {"template": template}}}),
    )
    .unwrap()
}

/// A template with two containers, changed by a JSON pointer.
fn template(change: &[(&str, Value)]) -> Value {
    let mut template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "initContainers": [{"name": "init", "image": "init:v1"}],
            "containers": [
                {"name": "main", "image": "app:v1", "env": [],
                    "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}},
                {"name": "helper", "image": "helper:v1"},
            ],
        },
    });
    for (pointer, value) in change {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        match template.pointer_mut(parent).unwrap() {
            Value::Object(members) => drop(members.insert(member.to_owned(), value.clone())),
            Value::Array(items) => items.push(value.clone()),
            _ => panic!("{pointer}"),
        }
    }
    template
}

fn compared(from: &[(&str, Value)], to: &[(&str, Value)], options: &Options) -> Option<Update> {
    compare(&revision("web-1", template(from)), &revision("web-2", template(to)), options)
}

fn written(progress: &Progress) -> &Value {
    match &progress.effect {
        Some(Effect::Patch { patch: Patch::Strategic(patch), .. }) => patch,
        other => panic!("{other:?}"),
    }
}

fn written_state(progress: &Progress) -> Value {
    serde_json::from_str(
        written(progress)["metadata"]["annotations"][IN_PLACE_UPDATE_STATE].as_str().unwrap(),
    )
    .unwrap()
}

/// A pod of two containers that run images with ids of the same name. `priorities` are those of main and helper.
fn pod(priorities: [Option<i32>; 2], annotations: Value) -> Value {
    let env = |priority: Option<i32>| match priority {
        Some(priority) => json!([{"name": "KRUISE_CONTAINER_BARRIER",
            "valueFrom": {"configMapKeyRef": {"name": "x-barrier", "key": format!("p_{priority}")}}}]),
        None => json!([]),
    };
    let status = |name: &str, image: &str| json!({"name": name, "image": image, "imageID": format!("id-{image}"), "containerID": format!("c-{image}"), "ready": true});
    json!({
        "metadata": {"name": "web-x", "namespace": "default", "uid": "u1", "resourceVersion": "5",
            "labels": {"app": "web", "controller-revision-hash": "web-2"}, "annotations": annotations},
        "spec": {
            "nodeName": "n1",
            "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
            "containers": [
                {"name": "main", "image": "app:v1", "env": env(priorities[0]),
                    "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}},
                {"name": "helper", "image": "helper:v1", "env": env(priorities[1])},
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "InPlaceUpdateReady", "status": "True"},
                {"type": "ContainersReady", "status": "True"},
                {"type": "Ready", "status": "True"},
            ],
            "containerStatuses": [status("main", "app:v1"), status("helper", "helper:v1")],
        },
    })
}

fn read(pod: &Value) -> Pod {
    serde_json::from_value(pod.clone()).unwrap()
}

/// The smallest server: applies our patches of metadata, containers and conditions.
fn apply(pod: &mut Value, progress: &Progress) {
    let patch = written(progress);
    for member in ["labels", "annotations"] {
        for (key, value) in patch["metadata"][member].as_object().into_iter().flatten() {
            let target = pod["metadata"][member].as_object_mut().unwrap();
            if value.is_null() {
                target.remove(key)
            } else {
                target.insert(key.clone(), value.clone())
            };
        }
    }
    for container in patch["spec"]["containers"].as_array().into_iter().flatten() {
        let target = pod["spec"]["containers"].as_array_mut().unwrap();
        let target = target.iter_mut().find(|one| one["name"] == container["name"]).unwrap();
        if let Some(image) = container.get("image") {
            target["image"] = image.clone();
        }
        for member in ["requests", "limits"] {
            for (key, value) in container["resources"][member].as_object().into_iter().flatten() {
                target["resources"][member][key] = value.clone();
            }
        }
    }
    for condition in patch["status"]["conditions"].as_array().into_iter().flatten() {
        let target = pod["status"]["conditions"].as_array_mut().unwrap();
        target.retain(|one| one["type"] != condition["type"]);
        let mut condition = condition.clone();
        condition.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        target.push(condition);
    }
}

fn run(pod: &mut Value, name: &str) {
    let image = pod["spec"]["containers"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()
        ["image"]
        .clone();
    let statuses = pod["status"]["containerStatuses"].as_array_mut().unwrap();
    let status = statuses.iter_mut().find(|one| one["name"] == name).unwrap();
    status["imageID"] = format!("id-{}", image.as_str().unwrap()).into();
    status["containerID"] = format!("c-{}", image.as_str().unwrap()).into();
    status["image"] = image;
}

fn next(pod: &Value) -> Progress {
    refresh(&read(pod), &options(), &OtherImages::new(), now()).unwrap()
}

fn begin(pod: &mut Value, update: &Update) -> Progress {
    let marks = Labels { labels: json!({"controller-revision-hash": "web-2"}), annotations: json!({}) };
    let first = start(&read(pod), update, &marks, &options(), now());
    if !first.starts {
        apply(pod, &first);
        return start(&read(pod), update, &marks, &options(), now());
    }
    first
}

fn image_update(images: &[(&str, &str)]) -> Update {
    Update {
        revision: "web-2".into(),
        container_images: images.iter().map(|(name, image)| ((*name).into(), (*image).into())).collect(),
        ..Update::default()
    }
}

/// INPLACE-3, INPLACE-5, INPLACE-6, INPLACE-20, INPLACE-22: what can be done in place.
#[test]
fn only_images_metadata_and_amounts_change_in_place() {
    let c = "/spec/containers";
    let changes: &[(&str, Value, bool)] = &[
        ("/metadata/annotations", json!({"a": "b"}), true),
        ("/metadata/labels", json!({"app": "web", "v": "2"}), true),
        (&format!("{c}/0/image"), json!("app:v2"), true),
        (&format!("{c}/0/image"), json!(""), false),
        (&format!("{c}/0/resources/requests/cpu"), json!("150m"), true),
        (&format!("{c}/0/resources/requests/memory"), json!("1Gi"), false),
        (&format!("{c}/0/resources/requests"), json!({}), false),
        (&format!("{c}/0/resources/requests/cpu"), json!("200m"), true),
        (&format!("{c}/0/env"), json!([{"name": "A", "value": "b"}]), false),
        (&format!("{c}/0/name"), json!("other"), false),
        (&format!("{c}/-"), json!({"name": "third", "image": "x"}), false),
        ("/spec/initContainers", json!([{"name": "init", "image": "init:v2"}]), false),
        ("/spec/nodeSelector", json!({"a": "b"}), false),
        ("/spec/resources", json!({"requests": {"cpu": "1"}}), false),
    ];
    for (pointer, value, expected) in changes {
        let found = compared(&[], &[(pointer, value.clone())], &options());
        assert_eq!(found.is_some(), *expected, "{pointer} = {value}");
    }
    let off = Options { resize: false, ..options() };
    assert_eq!(compared(&[], &[(&format!("{c}/0/resources/requests/cpu"), json!("150m"))], &off), None);
    let same = compared(&[], &[(&format!("{c}/0/resources/requests/cpu"), json!("0.1"))], &off);
    assert!(same.is_some(), "the same amount in other words is no change");
    let whole = json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}});
    let (main, helper) = (format!("{c}/0/resources"), format!("{c}/1/resources"));
    let guaranteed: Vec<(&str, Value)> =
        vec![("/spec/initContainers", json!([])), (&main, whole.clone()), (&helper, whole)];
    let mut burstable = guaranteed.clone();
    let path = format!("{c}/0/resources/requests/cpu");
    burstable.push((&path, json!("500m")));
    assert_eq!(compared(&guaranteed, &burstable, &options()), None, "the class of the pod would change");
}

#[test]
fn other_claims_count_only_when_asked_and_known() {
    let with = |name: &str, hash: Option<&str>| {
        let mut one = revision(name, template(&[]));
        one.metadata.annotations = hash
            .map(|hash| (annotations::CLONESET_VOLUME_CLAIM_TEMPLATE_HASH.into(), hash.into()))
            .into_iter()
            .collect();
        one
    };
    let heed = Options {
        fixed_annotation: Some(kruise_api::annotations::CLONESET_VOLUME_CLAIM_TEMPLATE_HASH),
        ..options()
    };
    assert!(compare(&with("a", Some("1")), &with("b", Some("2")), &heed).is_none());
    assert!(compare(&with("a", Some("1")), &with("b", Some("2")), &options()).is_some());
    assert!(compare(&with("a", None), &with("b", Some("2")), &heed).is_some());
}

/// INPLACE-4: what was put on a pod by hand stays.
#[test]
fn the_patch_of_metadata_names_only_what_changed() {
    let from =
        [("/metadata/labels", json!({"app": "web", "x": "1"})), ("/metadata/finalizers", json!(["a/b"]))];
    let to =
        [("/metadata/labels", json!({"app": "web", "z": "3"})), ("/metadata/annotations", json!({"n": "1"}))];
    let update = compared(&from, &to, &options()).unwrap();
    assert_eq!(
        update.meta_data_patch,
        Some(json!({"metadata": {"labels": {"x": null, "z": "3"}, "annotations": {"n": "1"},
            "$deleteFromPrimitiveList/finalizers": ["a/b"]}}))
    );
}

fn reading(path: &str) -> Value {
    json!([{"name": "CFG", "valueFrom": {"fieldRef": {"fieldPath": path}}}])
}

/// INPLACE-8, INPLACE-9: also the first annotation of all.
#[test]
fn keys_that_a_container_reads_go_with_the_container() {
    let env = ("/spec/containers/0/env", reading("metadata.annotations['cfg']"));
    let first = ("/metadata/annotations", json!({"cfg": "v1", "other": "x"}));
    let update = compared(std::slice::from_ref(&env), &[env.clone(), first.clone()], &options()).unwrap();
    assert!(update.update_env_from_metadata);
    assert_eq!(update.container_ref_metadata["main"].annotations.get("cfg").unwrap(), "v1");
    assert_eq!(update.meta_data_patch, Some(json!({"metadata": {"annotations": {"other": "x"}}})));
    let off = Options { env_from_metadata: false, ..options() };
    assert!(
        !compared(std::slice::from_ref(&env), &[env.clone(), first.clone()], &off)
            .unwrap()
            .update_env_from_metadata
    );
    let removed = compared(&[env.clone(), first], &[env], &options()).unwrap();
    assert!(!removed.update_env_from_metadata, "a key that is gone restarts nothing");
}

/// INPLACE-1, INPLACE-2: not ready first, then one write with everything, then ready again.
#[test]
fn an_image_changes_after_the_pod_was_made_not_ready() {
    let mut pod = pod([None, None], json!({}));
    let update = image_update(&[("main", "app:v2")]);
    let marks = Labels { labels: json!({"controller-revision-hash": "web-2"}), annotations: json!({}) };
    let first = start(&read(&pod), &update, &marks, &options(), now());
    assert!(!first.starts);
    let conditions = &written(&first)["status"]["conditions"];
    assert_eq!(
        (&conditions[0]["status"], &conditions[0]["reason"]),
        (&json!("False"), &json!("StartInPlaceUpdate"))
    );
    assert_eq!(conditions[1]["reason"], "ReadinessGatesNotReady");
    apply(&mut pod, &first);
    let second = start(&read(&pod), &update, &marks, &options(), now());
    assert!(second.starts);
    assert_eq!(written(&second)["spec"]["containers"], json!([{"name": "main", "image": "app:v2"}]));
    assert_eq!(written(&second)["metadata"]["labels"]["controller-revision-hash"], "web-2");
    assert_eq!(
        written_state(&second).to_string(),
        json!({"revision": "web-2", "updateTimestamp": "2026-01-01T00:00:00Z",
            "lastContainerStatuses": {"main": {"imageID": "id-app:v1"}}, "updateImages": true,
            "containerBatchesRecord": [{"timestamp": "2026-01-01T00:00:00Z", "containers": ["main"]}]})
        .to_string()
    );
    apply(&mut pod, &second);
    assert_eq!(next(&pod), Progress::default(), "the container still runs the old image");
    run(&mut pod, "main");
    let done = next(&pod);
    assert_eq!(written(&done)["status"]["conditions"][0]["status"], "True");
    let Some(Effect::Patch { target, .. }) = &done.effect else { panic!("a patch") };
    assert_eq!(target.resource_version, Some("5".into()), "only what was looked at may become ready");
    apply(&mut pod, &done);
    assert_eq!(next(&pod), Progress::default());
}

/// INPLACE-10, INPLACE-11: the second batch waits until the first is ready.
#[test]
fn containers_change_in_the_order_of_their_priorities() {
    let mut pod = pod([Some(10), Some(0)], json!({}));
    let started = begin(&mut pod, &image_update(&[("main", "app:v2"), ("helper", "helper:v2")]));
    apply(&mut pod, &started);
    let state = written_state(&started);
    assert_eq!(state["nextContainerImages"], json!({"helper": "helper:v2"}));
    assert_eq!(state["preCheckBeforeNext"], json!({"containersRequiredReady": ["main"]}));
    pod["status"]["containerStatuses"][0]["ready"] = false.into();
    assert_eq!(next(&pod), Progress::default(), "the first batch has not run");
    run(&mut pod, "main");
    assert_eq!(next(&pod), Progress::default(), "the first batch is not ready");
    assert_eq!(pod["spec"]["containers"][1]["image"], "helper:v1");
    pod["status"]["containerStatuses"][0]["ready"] = true.into();
    let second = next(&pod);
    assert_eq!(written(&second)["spec"]["containers"], json!([{"name": "helper", "image": "helper:v2"}]));
    let state = written_state(&second);
    let batches: Vec<&Value> =
        state["containerBatchesRecord"].as_array().unwrap().iter().map(|one| &one["containers"]).collect();
    assert_eq!(batches, [&json!(["main"]), &json!(["helper"])]);
    assert_eq!(state.get("nextContainerImages"), None);
    assert_eq!(state["lastContainerStatuses"].as_object().unwrap().len(), 2);
}

#[test]
fn containers_without_a_priority_join_the_first_batch() {
    let mut pod = pod([Some(20), None], json!({}));
    let started = begin(&mut pod, &image_update(&[("main", "app:v2"), ("helper", "helper:v2")]));
    assert_eq!(written_state(&started)["containerBatchesRecord"][0]["containers"], json!(["helper", "main"]));
}

/// INPLACE-12: the original forgot the second container.
#[test]
fn a_new_update_does_what_the_last_one_left() {
    let mut pod = pod([Some(10), Some(0)], json!({}));
    let started = begin(&mut pod, &image_update(&[("main", "nosuch:v2"), ("helper", "helper:v2")]));
    apply(&mut pod, &started);
    let again = begin(&mut pod, &image_update(&[("main", "app:v3")]));
    apply(&mut pod, &again);
    assert_eq!(written_state(&again)["nextContainerImages"], json!({"helper": "helper:v2"}));
    run(&mut pod, "main");
    let last = next(&pod);
    apply(&mut pod, &last);
    assert_eq!(pod["spec"]["containers"][0]["image"], "app:v3");
    assert_eq!(pod["spec"]["containers"][1]["image"], "helper:v2");
}

/// INPLACE-13
#[test]
fn containers_that_read_one_key_change_together() {
    let mut pod = pod([Some(10), Some(0)], json!({}));
    let read = state::RefMetadata { annotations: [("cfg".into(), "v2".into())].into(), ..Default::default() };
    let update = Update {
        revision: "web-2".into(),
        container_ref_metadata: [("main".into(), read.clone()), ("helper".into(), read)].into(),
        update_env_from_metadata: true,
        ..Update::default()
    };
    let started = begin(&mut pod, &update);
    assert_eq!(written_state(&started)["containerBatchesRecord"][0]["containers"], json!(["helper", "main"]));
    assert_eq!(written(&started)["metadata"]["annotations"]["cfg"], "v2");
}

/// INPLACE-14, INPLACE-15, INPLACE-16: the clock of the grace period is on the pod.
#[test]
fn a_grace_period_holds_the_change_back() {
    let mut pod = pod([None, None], json!({}));
    let update = Update { grace_seconds: 20, ..image_update(&[("main", "app:v2")]) };
    let started = begin(&mut pod, &update);
    assert_eq!(written(&started).get("spec"), None);
    assert_eq!(
        written(&started)["metadata"]["annotations"]["apps.kruise.io/inplace-update-grace"],
        r#"{"revision":"web-2","containerImages":{"main":"app:v2"},"graceSeconds":20}"#
    );
    apply(&mut pod, &started);
    assert!(is_in_grace(&read(&pod)));
    let at = |pod: &Value, seconds: u64| {
        let now = now() + Duration::from_millis(seconds * 1000 + 500);
        refresh(&read(pod), &options(), &OtherImages::new(), now).unwrap()
    };
    assert_eq!(at(&pod, 5), Progress { wake_after: Some(Duration::from_secs(15)), ..Progress::default() });
    assert_eq!(
        completion(&read(&pod), &options(), &OtherImages::new()).to_string(),
        "still in grace period of in-place update"
    );
    let changed = at(&pod, 20);
    assert_eq!(written(&changed)["spec"]["containers"][0]["image"], "app:v2");
    assert_eq!(
        written(&changed)["metadata"]["annotations"]["apps.kruise.io/inplace-update-grace"],
        Value::Null
    );
    pod["metadata"]["labels"]["controller-revision-hash"] = "web-1".into();
    let dropped = at(&pod, 5);
    assert_eq!(
        written(&dropped),
        &json!({"metadata": {"annotations": {"apps.kruise.io/inplace-update-grace": null}}})
    );
}

/// INPLACE-15: the annotation knows whole seconds only, and a pause is never shorter than it was promised.
#[test]
fn a_grace_period_that_begins_within_a_second_is_no_shorter() {
    let mut pod = pod([None, None], json!({}));
    let update = Update { grace_seconds: 20, ..image_update(&[("main", "app:v2")]) };
    let at =
        |seconds: f64| now().checked_add(jiff::SignedDuration::try_from_secs_f64(seconds).unwrap()).unwrap();
    let marks = Labels { labels: json!({"controller-revision-hash": "web-2"}), annotations: json!({}) };
    let begin = |pod: &Value| start(&read(pod), &update, &marks, &options(), at(0.7));
    let unready = begin(&pod);
    apply(&mut pod, &unready);
    let begun = begin(&pod);
    apply(&mut pod, &begun);
    let look = |when: f64| refresh(&read(&pod), &options(), &OtherImages::default(), at(when)).unwrap();
    assert_eq!(look(20.6).effect, None);
    assert_eq!(look(20.6).wake_after, Some(Duration::from_secs(1)));
    assert!(look(21.0).effect.is_some());
}

#[test]
fn a_grace_period_of_the_original_is_understood() {
    let pod = pod(
        [None, None],
        json!({
            "apps.kruise.io/inplace-update-state": r#"{"revision":"web-2","updateTimestamp":"2025-12-31T23:59:50Z","lastContainerStatuses":null,"updateImages":true,"newer":1}"#,
            "apps.kruise.io/inplace-update-grace": r#"{"revision":"web-2","containerImages":{"main":"app:v2"},"metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsidmVyIjoiMiJ9fX0=","graceSeconds":5,"newer":1}"#,
        }),
    );
    assert_eq!(written(&next(&pod))["metadata"]["labels"], json!({"ver": "2"}));
}

/// INPLACE-17
#[test]
fn the_old_name_of_the_annotation_is_read_and_replaced() {
    let old = r#"{"revision":"web-1","updateTimestamp":"2025-12-31T00:00:00Z","lastContainerStatuses":null}"#;
    let mut pod = pod([None, None], json!({"inplace-update-state": old}));
    assert!(completion(&read(&pod), &options(), &OtherImages::new()).is_complete());
    let started = begin(&mut pod, &image_update(&[("main", "app:v2")]));
    assert_eq!(written(&started)["metadata"]["annotations"]["inplace-update-state"], Value::Null);
}

/// INPLACE-44: the error names the pod, and concerns only it.
#[test]
fn an_annotation_that_cannot_be_read_is_an_error_of_its_pod() {
    let pod = read(&pod([None, None], json!({"apps.kruise.io/inplace-update-state": "{"})));
    let error = refresh(&pod, &options(), &OtherImages::new(), now()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("pod default/web-x has an annotation apps.kruise.io/inplace-update-state")
    );
    assert!(!completion(&pod, &options(), &OtherImages::new()).is_complete());
}

fn resize_update(cpu: &str) -> Update {
    let amounts = state::Amounts { requests: [("cpu".into(), cpu.into())].into(), ..Default::default() };
    Update {
        revision: "web-2".into(),
        container_resources: [("main".into(), amounts)].into(),
        ..Update::default()
    }
}

/// INPLACE-18, INPLACE-21: no pause, first the marks and then the amounts, and a container without amounts does not matter.
#[test]
fn new_amounts_of_cpu_need_no_pause() {
    let mut pod = pod([None, None], json!({}));
    let marks = Labels { labels: json!({}), annotations: json!({}) };
    let first = start(&read(&pod), &resize_update("150m"), &marks, &options(), now());
    assert!(!first.starts, "the server may still refuse");
    assert_eq!(first.towards.as_deref(), Some("web-2"));
    assert!(written(&first).get("spec").is_none());
    let announced = written_state(&first);
    assert_eq!(announced["updateResources"], true);
    assert_eq!(announced["nextContainerResources"], json!({"main": {"requests": {"cpu": "150m"}}}));
    apply(&mut pod, &first);
    let resized = next(&pod);
    let Some(Effect::Patch { subresource, .. }) = &resized.effect else { panic!("a patch") };
    assert_eq!(*subresource, Some("resize"));
    assert!(!resized.starts);
    assert_eq!(
        written(&resized)["spec"]["containers"],
        json!([{"name": "main", "resources": {"requests": {"cpu": "150m"}}}])
    );
    apply(&mut pod, &resized);
    let last = next(&pod);
    assert!(last.starts, "now it happened");
    assert_eq!(written_state(&last).get("nextContainerResources"), None);
    assert_eq!(written_state(&last).get("previousRevision"), None);
    assert!(written(&last).get("spec").is_none());
    apply(&mut pod, &last);
    let state = |pod: &Value| completion(&read(pod), &options(), &OtherImages::new()).to_string();
    assert_eq!(state(&pod), "container main has cpu requests none, not 150m yet");
    pod["status"]["containerStatuses"][0]["resources"] =
        json!({"requests": {"cpu": "0.15"}, "limits": {"cpu": "200m"}});
    assert_eq!(state(&pod), "complete");
    let old_server = Options { resize_subresource: false, ..options() };
    let whole = start(&read(&pod), &resize_update("180m"), &marks, &old_server, now());
    assert_eq!(written(&whole)["spec"]["containers"][0]["resources"], json!({"requests": {"cpu": "180m"}}));
}

/// INPLACE-19
#[test]
fn a_container_that_restarts_for_new_amounts_is_made_not_ready_first() {
    let mut pod = pod([None, None], json!({}));
    let marks = Labels { labels: json!({}), annotations: json!({}) };
    let subresource =
        |pod: &Value| match start(&read(pod), &resize_update("150m"), &marks, &options(), now()).effect {
            Some(Effect::Patch { subresource, .. }) => subresource,
            _ => None,
        };
    pod["spec"]["containers"][0]["resizePolicy"] =
        json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
    assert_eq!(subresource(&pod), None, "memory does not change: the marks are written at once");
    pod["spec"]["containers"][0]["resizePolicy"] =
        json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
    assert_eq!(subresource(&pod), Some("status"));
}

/// The template goes back before the amounts are whole: the marks of the first write tell what has to be undone.
#[test]
fn new_amounts_that_are_taken_back_half_way_are_undone() {
    let mut pod = pod([None, None], json!({}));
    let marks = Labels { labels: json!({}), annotations: json!({}) };
    let first = start(&read(&pod), &resize_update("150m"), &marks, &options(), now());
    apply(&mut pod, &first);
    for is_resized in [false, true] {
        if is_resized {
            let resized = next(&pod);
            apply(&mut pod, &resized);
        }
        let mut pod = pod.clone();
        let back = start(&read(&pod), &resize_update("100m"), &marks, &options(), now());
        apply(&mut pod, &back);
        for _ in 0..2 {
            let step = next(&pod);
            if step.effect.is_some() {
                apply(&mut pod, &step);
            }
        }
        let requests = &pod["spec"]["containers"][0]["resources"]["requests"]["cpu"];
        assert_eq!(requests, "100m", "resized: {is_resized}");
    }
}

/// The original forgot updates of which only amounts were left for a later batch.
#[test]
fn amounts_that_are_left_for_a_later_batch_are_sent() {
    let state = r#"{"revision":"web-2","updateTimestamp":"2025-12-31T00:00:00Z","lastContainerStatuses":null,
        "nextContainerResources":{"main":{"requests":{"cpu":"150m"}}}}"#;
    let mut pod = pod([None, None], json!({"apps.kruise.io/inplace-update-state": state}));
    let resized = next(&pod);
    assert_eq!(written(&resized)["spec"]["containers"][0]["name"], "main");
    apply(&mut pod, &resized);
    assert_eq!(written_state(&next(&pod)).get("nextContainerResources"), None);
}

fn with_meta(pod: &mut Value, containers: Value) {
    pod["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"] =
        json!({"containers": containers}).to_string().into();
}

fn entry(name: &str, image: &str, id: &str) -> Value {
    let plain = crate::hash::of_json(&format!(r#"{{"image":"{image}","name":"{name}"}}"#));
    json!({"name": name, "containerID": id, "hashes": {"plainHash": plain}})
}

/// INPLACE-7: the id of the image says nothing, the fingerprint of the container does.
#[test]
fn two_tags_of_one_image_are_told_apart_by_the_fingerprint() {
    let mut pod = pod([None, None], json!({}));
    let started = begin(&mut pod, &image_update(&[("main", "app:v1b")]));
    apply(&mut pod, &started);
    let state = |pod: &Value| completion(&read(pod), &options(), &OtherImages::new()).to_string();
    assert_eq!(state(&pod), "container main imageID not changed");
    pod["status"]["containerStatuses"][0]["containerID"] = "c-new".into();
    assert_eq!(state(&pod), "container main imageID not changed");
    let helper = entry("helper", "helper:v1", "c-helper:v1");
    with_meta(&mut pod, json!([entry("main", "app:v1b", "c-old"), helper]));
    assert_eq!(state(&pod), "container main imageID not changed", "the daemon is behind");
    with_meta(&mut pod, json!([entry("main", "app:v1b", "c-new"), helper]));
    assert_eq!(state(&pod), "complete");
    pod["metadata"]["annotations"].as_object_mut().unwrap().remove("apps.kruise.io/runtime-containers-meta");
    pod["status"]["containerStatuses"][0]["image"] = "docker.io/library/app:v1b".into();
    assert_eq!(state(&pod), "complete", "the runtime names the wanted image");
}

/// The template changed twice in a row: the first restart brings an image of the revision between.
#[test]
fn an_image_of_another_revision_is_not_the_wanted_one() {
    let mut pod = pod([None, None], json!({}));
    let started = begin(&mut pod, &image_update(&[("main", "app:v3")]));
    apply(&mut pod, &started);
    pod["status"]["containerStatuses"][0]["image"] = "app:v2".into();
    pod["status"]["containerStatuses"][0]["imageID"] = "id-app:v2".into();
    let others = OtherImages::from([("main".into(), ["app:v1", "app:v2", "app:v3"].map(Into::into).into())]);
    let state = |pod: &Value| completion(&read(pod), &options(), &others).to_string();
    assert_eq!(state(&pod), "container main runs app:v2, not app:v3 yet");
    let helper = entry("helper", "helper:v1", "c-helper:v1");
    with_meta(&mut pod, json!([entry("main", "app:v2", "c-app:v1"), helper]));
    assert_eq!(state(&pod), "container main runs app:v2, not app:v3 yet", "the fingerprint says so too");
    run(&mut pod, "main");
    assert_eq!(state(&pod), "complete");
}

/// INPLACE-8: complete when the daemon reports the new values.
#[test]
fn an_update_of_the_environment_ends_when_the_container_has_it() {
    let mut pod = pod([None, None], json!({"cfg": "beta"}));
    pod["spec"]["containers"][0]["env"] = reading("metadata.annotations['cfg']");
    pod["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] =
        r#"{"revision":"web-2","updateTimestamp":"2025-12-31T00:00:00Z","lastContainerStatuses":null,"updateEnvFromMetadata":true}"#.into();
    let state = |pod: &Value| completion(&read(pod), &options(), &OtherImages::new()).is_complete();
    assert!(!state(&pod), "nobody has told yet");
    let mut main = entry("main", "app:v1", "c-app:v1");
    let helper = entry("helper", "helper:v1", "c-helper:v1");
    main["hashes"]["extractedEnvFromMetadataHash"] =
        crate::hash::of_json(r#"[{"name":"CFG","value":"alpha"}]"#).into();
    with_meta(&mut pod, json!([main, helper]));
    assert!(!state(&pod));
    main["hashes"]["extractedEnvFromMetadataHash"] =
        crate::hash::of_json(r#"[{"name":"CFG","value":"beta"}]"#).into();
    with_meta(&mut pod, json!([main, helper]));
    assert!(state(&pod));
}

#[test]
fn a_new_pod_gets_its_first_condition() {
    let mut pod = pod([None, None], json!({}));
    pod["status"]["conditions"] = json!([]);
    let first = next(&pod);
    assert_eq!(written(&first)["status"]["conditions"][0]["type"], "InPlaceUpdateReady");
    let Some(Effect::Patch { target, .. }) = first.effect else { panic!("a patch") };
    assert_eq!(target.resource_version, None, "a new pod changes often, and nothing was looked at");
    pod["spec"]["readinessGates"] = json!([]);
    assert_eq!(next(&pod), Progress::default());
}

#[test]
fn a_new_pod_gets_both_of_its_first_conditions_in_one_write() {
    let mut pod = pod([None, None], json!({}));
    pod["spec"]["readinessGates"] =
        json!([{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]);
    let told = |pod: &Value| -> Vec<(Value, Value)> {
        let progress = next(pod);
        let patch = written(&progress);
        let conditions = patch["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().map(|one| (one["type"].clone(), one["status"].clone())).collect()
    };
    pod["status"]["conditions"] = json!([]);
    let both = [("InPlaceUpdateReady", "True"), ("KruisePodReady", "True")];
    assert_eq!(told(&pod), both.map(|(kind, status)| (json!(kind), json!(status))));
    pod["status"]["conditions"] = json!([{"type": "KruisePodReady", "status": "False", "message": "[]"}]);
    assert_eq!(told(&pod), [(json!("InPlaceUpdateReady"), json!("True"))], "somebody holds it");
    pod["status"]["conditions"] = json!([{"type": "InPlaceUpdateReady", "status": "False"}]);
    assert_eq!(told(&pod), [(json!("InPlaceUpdateReady"), json!("True"))], "only the first write says both");
}

/// What was announced and refused is taken back with everything that went along.
#[test]
fn a_refused_update_leaves_a_pod_as_it_was() {
    let mut pod = pod([None, None], json!({}));
    let before = pod.clone();
    let marks = |revision: &str| Labels {
        labels: json!({"controller-revision-hash": revision}),
        annotations: json!({}),
    };
    let note = |value: Value| Some(json!({"metadata": {"annotations": {"note": value}}}));
    let there =
        Update { previous: "web-1".into(), meta_data_patch: note("new".into()), ..resize_update("150m") };
    let announced = start(&read(&pod), &there, &marks("web-2"), &options(), now());
    apply(&mut pod, &announced);
    assert_eq!(half_done(&read(&pod), "web-2").as_deref(), Some("web-1"));
    assert_eq!(half_done(&read(&pod), "web-3"), None);
    let back = Update {
        revision: "web-1".into(),
        previous: "web-2".into(),
        meta_data_patch: note(Value::Null),
        ..resize_update("100m")
    };
    let effect = take_back(&read(&pod), &back, &marks("web-1"), &options(), false, now());
    apply(&mut pod, &Progress { effect: Some(effect), ..Progress::default() });
    assert_eq!(pod["metadata"]["labels"]["controller-revision-hash"], "web-1");
    assert_eq!(pod["spec"], before["spec"]);
    let annotations = read(&pod).metadata.annotations;
    assert!(!annotations.contains(IN_PLACE_UPDATE_STATE) && !annotations.contains("note"));
    assert_eq!(half_done(&read(&pod), "web-2"), None);
}

/// The server is asked about the whole change, and about amounts where they are written.
#[test]
fn questions_are_about_everything_that_changes() {
    let pod = read(&pod([None, None], json!({})));
    let mut change = resize_update("150m");
    change.container_images = image_update(&[("main", "app:v2")]).container_images;
    let asked = |change: &Update| -> Vec<(Option<&'static str>, Value)> {
        let questions = questions(&pod, change, &options());
        let asked = questions.into_iter().map(|effect| match effect {
            Effect::Ask { subresource, patch: Patch::Strategic(patch), .. } => {
                (subresource, patch["spec"]["containers"][0].clone())
            }
            other => panic!("{other:?}"),
        });
        asked.collect()
    };
    assert_eq!(
        asked(&change),
        [
            (None, json!({"name": "main", "image": "app:v2"})),
            (Some("resize"), json!({"name": "main", "resources": {"requests": {"cpu": "150m"}}})),
        ]
    );
    assert_eq!(asked(&image_update(&[("main", "app:v2")])).len(), 1);
}
