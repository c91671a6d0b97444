use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::*;
use crate::effect::{Effect, Patch};

const START: &str = "2026-01-01T00:00:00Z";

fn job(spec: Value) -> Value {
    let mut job = json!({
        "metadata": {"name": "job", "namespace": "ns", "uid": "j1", "resourceVersion": "3",
            "finalizers": ["apps.kruise.io/ephemeralcontainers-cleanup"]},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"ephemeralContainers": [
            {"name": "debug", "image": "busybox", "env": [{"name": "A", "value": "1"}]}]}},
    });
    json_patch::merge(&mut job["spec"], &spec);
    job
}

/// Pods are written `name` or `name:state`, where a state is `run`, `new` (no status yet), `wait`, `broken` or the code of an
/// end. They are as old as their place in the list.
fn pods(text: &str) -> Vec<Arc<Pod>> {
    let pod = |(index, text): (usize, &str)| {
        let (name, state) = text.split_once(':').unwrap_or((text, ""));
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "labels": {"app": "web"},
                "creationTimestamp": format!("2026-01-01T00:00:{index:02}Z")},
            "status": {"phase": "Running"},
        });
        if !state.is_empty() {
            pod["spec"] = json!({"ephemeralContainers":
                [{"name": "debug", "env": [{"name": "KRUISE_EJOB_ID", "value": "j1"}]}]});
        }
        let state = match state {
            "" | "new" => Value::Null,
            "run" => json!({"running": {"startedAt": START}}),
            "wait" => json!({"waiting": {"reason": "ErrImagePull"}}),
            "broken" => json!({"waiting": {"reason": "RunContainerError"}}),
            code => json!({"terminated": {"exitCode": code.parse::<i32>().unwrap()}}),
        };
        if !state.is_null() {
            pod["status"]["ephemeralContainerStatuses"] = json!([{"name": "debug", "state": state}]);
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    };
    text.split_whitespace().enumerate().map(pod).collect()
}

fn seen(job: Value, pods: Vec<Arc<Pod>>, second: i64) -> Observed {
    let start: jiff::Timestamp = START.parse().unwrap();
    let job = Arc::new(serde_json::from_value(job).unwrap());
    Observed { job, pods, now: start + jiff::SignedDuration::from_secs(second) }
}

/// The job with the status that a plan writes to it.
fn after(mut job: Value, plan: &Plan) -> Value {
    for effect in &plan.effects {
        let Effect::Patch { subresource: Some("status"), patch: Patch::Merge(patch), .. } = effect else {
            panic!("{effect:?}");
        };
        json_patch::merge(&mut job, patch);
    }
    job
}

fn injected(plan: &Plan) -> String {
    let name = |effect: &Effect| match effect {
        Effect::Patch { target, subresource: Some("ephemeralcontainers"), .. } => target.key.name.to_string(),
        other => panic!("{other:?}"),
    };
    plan.injections.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// The numbers and the phase of a status, in words.
fn counted(job: &Value) -> String {
    let status = &job["status"];
    let numbers = ["match", "running", "waiting", "succeeded", "failed"].map(|name| status[name].to_string());
    format!("{} {}", status["phase"].as_str().unwrap(), numbers.join("/"))
}

fn reasons(job: &Value) -> Vec<&str> {
    let conditions = job["status"]["conditions"].as_array();
    conditions.into_iter().flatten().map(|condition| condition["reason"].as_str().unwrap()).collect()
}

/// Checks who gets containers, and what the job says.
#[track_caller]
fn check(spec: Value, list: &str, expected: &str, says: &str) {
    let plan = plan(&seen(job(spec.clone()), pods(list), 60));
    assert_eq!(injected(&plan), expected);
    assert_eq!(counted(&after(job(spec), &plan)), says);
}

/// EJ-1: the oldest pods up to the number, and what they get.
#[test]
fn the_oldest_pods_get_the_containers_with_the_mark_of_the_job() {
    check(json!({"replicas": 4, "parallelism": 9}), "a b c d e", "a b c d", "Waiting 4/0/0/0/0");
    check(json!({"replicas": 4, "parallelism": 9}), "a:0 b:0 c:0 d:0 e", "", "Succeeded 4/0/0/4/0");
    let plan = plan(&seen(job(json!({})), pods("a"), 0));
    let [Effect::Patch { target, patch: Patch::Strategic(patch), .. }] = &plan.injections[..] else {
        panic!("{plan:?}");
    };
    assert_eq!(target.uid.as_deref(), Some("uid-a"));
    assert_eq!(
        *patch,
        json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox",
            "env": [{"name": "A", "value": "1"}, {"name": "KRUISE_EJOB_ID", "value": "j1"}]}]}})
    );
}

/// EJ-2: pods at work, whether they run or wait (EJ-D1).
#[test]
fn no_more_pods_are_at_work_than_allowed() {
    check(json!({}), "a b c", "a", "Waiting 3/0/0/0/0");
    check(json!({}), "a:run b c", "", "Running 3/1/0/0/0");
    check(json!({}), "a:new b c", "", "Waiting 3/0/1/0/0");
    check(json!({}), "a:wait b c", "", "Waiting 3/0/1/0/0");
    check(json!({}), "a:0 b c", "b", "Waiting 3/0/0/1/0");
    check(json!({"parallelism": 2}), "a:0 b:run c", "c", "Running 3/1/0/1/0");
    check(json!({"parallelism": 10}), "a b c d e f g h i j", "a b c d e f g h i j", "Waiting 10/0/0/0/0");
    check(json!({"parallelism": 0}), "a", "", "Waiting 1/0/0/0/0");
}

/// EJ-3 and EJ-4: failures (EJ-D2).
#[test]
fn a_job_with_a_failed_pod_fails_when_all_have_ended() {
    check(json!({}), "a:127 b:127", "", "Failed 2/0/0/0/2");
    check(json!({}), "a:0 b:1 c:0", "", "Failed 3/0/0/2/1");
    check(json!({"parallelism": 3}), "a:broken b:run", "", "Running 2/1/0/0/1");
    let failed = job(json!({}));
    let plan = plan(&seen(failed.clone(), pods("a:0 b:1"), 60));
    let failed = after(failed, &plan);
    assert_eq!(reasons(&failed), ["JobFailed"]);
    assert_eq!(failed["status"]["completionTime"], "2026-01-01T00:01:00Z");
    let half = job(json!({}));
    let half = after(half.clone(), &super::plan(&seen(half, pods("a:1 b:run"), 60)));
    assert_eq!(reasons(&half), ["CreateFailed"]);
    assert_eq!(
        half["status"]["conditions"][0]["message"],
        "EphemeralJob ns/job failed to create ephemeral container"
    );
}

/// EJ-5: more replicas than pods (EJ-D3).
#[test]
fn a_job_that_wants_more_pods_than_there_are_ends_with_those_there_are() {
    check(json!({"replicas": 5}), "a:0 b:0", "", "Succeeded 2/0/0/2/0");
}

#[test]
fn pods_that_have_the_containers_stay_when_fewer_are_wanted() {
    check(json!({"replicas": 1}), "a:run b:run c", "", "Running 2/2/0/0/0");
    check(json!({"replicas": 0}), "a b", "", "Waiting 0/0/0/0/0");
}

/// EJ-6: the deadline.
#[test]
fn a_job_fails_at_its_deadline() {
    let mut late = job(json!({"activeDeadlineSeconds": 20}));
    late["status"] = json!({"startTime": START});
    let early = plan(&seen(late.clone(), pods("a:run"), 5));
    assert_eq!(early.wake_after, Some(Duration::from_secs(15)));
    let plan = plan(&seen(late.clone(), pods("a:run b"), 20));
    assert_eq!(injected(&plan), "");
    let late = after(late, &plan);
    assert_eq!(counted(&late), "Failed 2/1/0/0/0");
    assert_eq!(reasons(&late), ["DeadlineExceeded"]);
    assert_eq!(
        late["status"]["conditions"][0]["message"],
        "EphemeralJob ns/job was active longer than specified deadline"
    );
    let mut empty = job(json!({"activeDeadlineSeconds": 20}));
    empty["status"] = json!({"startTime": START});
    let plan = super::plan(&seen(empty.clone(), Vec::new(), 20));
    assert_eq!(counted(&after(empty, &plan)), "Failed 0/0/0/0/0", "also while there is no pod");
}

/// EJ-7: the time after the end.
#[test]
fn a_job_that_has_ended_goes_after_its_time() {
    let ended = |ttl: Value| {
        let mut job = job(json!({"ttlSecondsAfterFinished": ttl}));
        job["status"] = json!({"phase": "Succeeded", "completionTime": START});
        job
    };
    let early = plan(&seen(ended(json!(5)), pods("a"), 4));
    assert_eq!((early.wake_after, early.waits), (Some(Duration::from_secs(1)), Some(Waits::ForItsTime)));
    assert_eq!(injected(&early), "");
    for (ttl, second) in [(json!(5), 5), (json!(0), 0), (Value::Null, 1800)] {
        let plan = plan(&seen(ended(ttl), Vec::new(), second));
        assert!(matches!(&plan.effects[..], [Effect::Delete { .. }]), "{plan:?}");
    }
    assert!(plan(&seen(ended(Value::Null), Vec::new(), 1799)).effects.is_empty());
}

/// EJ-8 and EJ-14: nothing to do is said once (EJ-D4).
#[test]
fn a_job_without_pods_waits_and_writes_nothing_more() {
    let first = job(json!({}));
    let told = after(first.clone(), &plan(&seen(first, Vec::new(), 0)));
    assert_eq!(counted(&told), "Waiting 0/0/0/0/0");
    assert_eq!(reasons(&told), ["MatchEmpty"]);
    let again = plan(&seen(told.clone(), Vec::new(), 60));
    assert_eq!((again.effects, again.waits), (Vec::new(), Some(Waits::ForPods)));
    let served = plan(&seen(told.clone(), pods("late"), 90));
    assert_eq!(injected(&served), "late");
    assert!(reasons(&after(told, &served)).is_empty(), "it matches something now");
}

/// EJ-9: paused.
#[test]
fn a_paused_job_touches_no_further_pod() {
    check(json!({"paused": true}), "a b", "", "Paused 2/0/0/0/0");
    check(json!({"paused": true}), "a:run b", "", "Paused 2/1/0/0/0");
    check(json!({"paused": true}), "a:0 b:0", "", "Succeeded 2/0/0/2/0");
    check(json!({"paused": false}), "a b", "a", "Waiting 2/0/0/0/0");
}

/// EJ-10: two jobs and one pod.
#[test]
fn a_pod_with_a_container_of_that_name_belongs_to_whoever_added_it() {
    let with = |name: &str| -> Vec<Arc<Pod>> {
        let pod = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u", "labels": {"app": "web"}},
            "spec": {"ephemeralContainers": [{"name": name, "env": [{"name": "KRUISE_EJOB_ID", "value": "other"}]}]}});
        vec![Arc::new(serde_json::from_value(pod).unwrap())]
    };
    let same = plan(&seen(job(json!({})), with("debug"), 0));
    assert_eq!((injected(&same), same.waits), (String::new(), Some(Waits::ForPods)));
    assert_eq!(injected(&plan(&seen(job(json!({})), with("other"), 0))), "a");
}

/// EJ-13: a pod that has the containers does not get them again, whatever is known of them.
#[test]
fn no_pod_gets_the_containers_twice() {
    for state in ["new", "run", "wait", "broken", "0", "1"] {
        let plan = plan(&seen(job(json!({"parallelism": 9})), pods(&format!("a:{state} b")), 0));
        assert_eq!(injected(&plan), "b", "{state}");
    }
}

#[test]
fn pods_that_end_or_do_not_match_are_left_alone() {
    let mut list = pods("a b c d");
    let change = |pod: &mut Arc<Pod>, change: &dyn Fn(&mut Pod)| change(Arc::make_mut(pod));
    change(&mut list[0], &|pod| pod.status.phase = "Succeeded".into());
    change(&mut list[1], &|pod| pod.metadata.deletion_timestamp = Some(START.parse().unwrap()));
    change(&mut list[2], &|pod| pod.metadata.namespace = "elsewhere".into());
    let plan = plan(&seen(job(json!({"parallelism": 9})), list, 0));
    assert_eq!(injected(&plan), "d");
    let mut everything = job(json!({"parallelism": 9}));
    everything["spec"]["selector"] = json!({});
    assert_eq!(
        injected(&super::plan(&seen(everything, pods("a"), 0))),
        "",
        "an empty selector chooses nothing"
    );
}

#[test]
fn the_finalizer_comes_first_and_goes_at_once() {
    let mut fresh = job(json!({}));
    fresh["metadata"]["finalizers"] = json!([]);
    let first = plan(&seen(fresh, pods("a"), 0));
    let [Effect::Patch { target, subresource: None, patch: Patch::Merge(patch) }] = &first.effects[..] else {
        panic!("{first:?}");
    };
    assert_eq!(target.resource_version.as_deref(), Some("3"));
    assert_eq!(patch["metadata"]["finalizers"], json!(["apps.kruise.io/ephemeralcontainers-cleanup"]));
    assert!(first.injections.is_empty());
    let mut going = job(json!({}));
    going["metadata"]["deletionTimestamp"] = json!(START);
    let last = plan(&seen(going, pods("a"), 0));
    let [Effect::Patch { patch: Patch::Merge(patch), .. }] = &last.effects[..] else { panic!("{last:?}") };
    assert_eq!(patch["metadata"]["finalizers"], json!([]));
    assert!(last.injections.is_empty());
}

/// A finished status of any kind of pods is reached without a pod getting the containers twice.
#[test]
fn a_job_reaches_its_end_in_steps() {
    let mut world: Vec<(String, String)> = (0..7).map(|index| (format!("p{index}"), String::new())).collect();
    let mut stored = job(json!({"parallelism": 2}));
    for second in 0..40 {
        let text: Vec<String> = world
            .iter()
            .map(|(name, state)| if state.is_empty() { name.clone() } else { format!("{name}:{state}") })
            .collect();
        let plan = plan(&seen(stored.clone(), pods(&text.join(" ")), second));
        let at_work = world.iter().filter(|(_, state)| matches!(state.as_str(), "new" | "run")).count();
        assert!(at_work + plan.injections.len() <= 2);
        stored = after(stored, &plan);
        for (_, state) in &mut world {
            *state = match state.as_str() {
                "new" => "run".to_owned(),
                "run" => "0".to_owned(),
                other => other.to_owned(),
            };
        }
        for name in injected(&plan).split_whitespace() {
            let pod = world.iter_mut().find(|(known, _)| known == name).unwrap();
            assert!(pod.1.is_empty());
            pod.1 = "new".to_owned();
        }
        if stored["status"]["completionTime"].is_string() {
            break;
        }
    }
    assert_eq!(counted(&stored), "Succeeded 7/0/0/7/0");
}
