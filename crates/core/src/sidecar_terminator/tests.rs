use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    effect::{Effect, Level, Patch},
    text::Text,
};

const KILL: (&str, &str) = ("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "true");
const IGNORE: (&str, &str) = ("KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE", "true");
const IMAGE: (&str, &str) = ("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", "quick-exit:v1");

fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

/// Containers are written `name:state`, where a state is `run`, `wait` or the code of an end.
fn pod(policy: &str, containers: &[(&str, &[(&str, &str)])]) -> Value {
    let named = |(container, env): &(&str, &[(&str, &str)])| {
        let (name, state) = container.split_once(':').unwrap();
        let env: Vec<Value> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let state = match state {
            "run" => json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}),
            "wait" => json!({"waiting": {"reason": "ContainerCreating"}}),
            code => json!({"terminated": {"exitCode": code.parse::<i32>().unwrap()}}),
        };
        (json!({"name": name, "image": "busybox:1", "env": env}), json!({"name": name, "state": state}))
    };
    let (spec, statuses): (Vec<Value>, Vec<Value>) = containers.iter().map(named).unzip();
    json!({
        "metadata": {"name": "job-1", "namespace": "default", "uid": "u1"},
        "spec": {"nodeName": "n1", "restartPolicy": policy, "containers": spec},
        "status": {"phase": "Running", "containerStatuses": statuses},
    })
}

fn seen(pod: &Value) -> Observed {
    Observed {
        pod: Arc::new(serde_json::from_value(pod.clone()).unwrap()),
        node: Some([("kubernetes.io/os".into(), "linux".into())].into_iter().collect()),
        request: None,
        now: now(),
    }
}

fn on_virtual_node(pod: &Value) -> Observed {
    Observed { node: Some([("type".into(), "virtual-kubelet".into())].into_iter().collect()), ..seen(pod) }
}

fn request(containers: &[&str], made: &str, done: Option<&str>) -> Arc<ContainerRecreateRequest> {
    let named: Vec<Value> = containers.iter().map(|name| json!({"name": name})).collect();
    let mut request = json!({
        "metadata": {"name": "sidecar-termination-u1", "namespace": "default", "uid": "r1", "creationTimestamp": made},
        "spec": {"podName": "job-1", "containers": named},
    });
    if let Some(done) = done {
        request["status"] = json!({"phase": "Completed", "completionTime": done});
    }
    Arc::new(serde_json::from_value(request).unwrap())
}

/// What a plan does, in words.
fn told(plan: &Plan) -> String {
    assert_eq!(plan.effects.len(), plan.purposes.len());
    let effect = |effect: &Effect| match effect {
        Effect::Create { object, .. } => format!("kill {}", names(&object["spec"]["containers"])),
        Effect::Patch { patch: Patch::Strategic(patch), subresource: None, .. } => {
            format!("replace {}", patch["spec"]["containers"])
        }
        Effect::Patch { patch: Patch::Strategic(patch), subresource: Some("status"), .. } => {
            format!("finish {}", patch["status"]["phase"])
        }
        Effect::Delete { target, .. } => format!("delete {}", target.key.name),
        other => panic!("{other:?}"),
    };
    plan.effects.iter().map(effect).collect::<Vec<_>>().join("; ")
}

fn names(containers: &Value) -> String {
    let names: Vec<&str> =
        containers.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    names.join(" ")
}

#[track_caller]
fn check(policy: &str, containers: &[(&str, &[(&str, &str)])], expected: &str) {
    assert_eq!(told(&plan(&seen(&pod(policy, containers)))), expected);
}

/// TERMINATOR-1
#[test]
fn a_sidecar_is_killed_when_the_main_container_has_ended() {
    let plan = plan(&seen(&pod("Never", &[("main:0", &[]), ("sc:run", &[KILL])])));
    let [Effect::Create { resource, namespace, object }] = plan.effects.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!((*resource, namespace.as_str()), (REQUEST, "default"));
    assert_eq!(
        *object,
        json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": {"name": "sidecar-termination-u1", "namespace": "default", "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": "job-1", "uid": "u1", "controller": true,
                "blockOwnerDeletion": true}]},
            "spec": {"podName": "job-1", "containers": [{"name": "sc"}],
                "strategy": {"forceRecreate": true, "failurePolicy": "Ignore"}},
        })
    );
    let event = plan.purposes[0].done().unwrap();
    assert_eq!(
        (event.level, event.reason.as_str(), event.message.as_str()),
        (
            Level::Normal,
            "SidecarTerminator",
            "Kruise SidecarTerminator is trying to terminate sidecar [sc] using crr"
        )
    );
    assert_eq!((plan.notice, plan.problem, plan.wake_after), (None, None, None));
}

/// TERMINATOR-3, TERMINATOR-4, TERMINATOR-5, TERMINATOR-15
#[test]
fn the_policy_of_the_pod_decides_when_main_containers_are_done() {
    check("Never", &[("main:1", &[]), ("sc:run", &[KILL])], "kill sc");
    check("OnFailure", &[("main:1", &[]), ("sc:run", &[KILL])], "");
    check("OnFailure", &[("main:0", &[]), ("sc:run", &[KILL])], "kill sc");
    check("Always", &[("main:0", &[]), ("sc:run", &[KILL])], "");
    check("Never", &[("main:run", &[]), ("sc:run", &[KILL])], "");
    check("Never", &[("main:wait", &[]), ("sc:run", &[KILL])], "");
    check("Never", &[("main:0", &[]), ("sc:0", &[KILL])], "");
    let mut deleted = pod("Never", &[("main:0", &[]), ("sc:run", &[KILL])]);
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(told(&plan(&seen(&deleted))), "");
    let mut pending = pod("Never", &[("main:0", &[]), ("sc:run", &[KILL])]);
    pending["status"]["phase"] = "Pending".into();
    assert_eq!(told(&plan(&seen(&pending))), "");
}

/// TERMINATOR-6
#[test]
fn all_main_containers_must_have_ended_and_one_request_names_all_sidecars_that_run() {
    let env: &[(&str, &str)] = &[KILL];
    check("Never", &[("a:0", &[]), ("b:run", &[]), ("z:run", env), ("s:run", env)], "");
    check("Never", &[("a:0", &[]), ("b:0", &[]), ("z:run", env), ("s:run", env), ("t:0", env)], "kill s z");
    let mut untold = pod("Never", &[("a:0", &[]), ("s:run", env)]);
    untold["status"]["containerStatuses"].as_array_mut().unwrap().pop();
    assert_eq!(
        told(&plan(&seen(&untold))),
        "",
        "a pod that does not tell of all its containers tells of none"
    );
}

#[test]
fn a_pod_without_a_main_container_is_left_alone() {
    check("Never", &[("s:run", &[KILL]), ("t:0", &[KILL])], "");
    check("Never", &[("main:0", &[]), ("other:run", &[])], "");
    check("Never", &[("main:0", &[]), ("other:run", &[IGNORE])], "");
}

/// TERMINATOR-7, TERMINATOR-8
#[test]
fn a_sidecar_whose_code_does_not_count_is_killed_after_the_pod_was_finished() {
    let ignored: &[(&str, &str)] = &[KILL, IGNORE];
    check("Never", &[("main:0", &[]), ("sc:run", ignored)], r#"finish "Succeeded""#);
    check("Never", &[("main:2", &[]), ("sc:run", ignored)], r#"finish "Failed""#);
    check("OnFailure", &[("main:0", &[]), ("sc:run", ignored)], r#"finish "Succeeded""#);
    check("Never", &[("main:0", &[]), ("n:run", &[KILL]), ("sc:run", ignored)], "kill n");
    check("Never", &[("main:0", &[]), ("n:143", &[KILL]), ("sc:run", ignored)], r#"finish "Succeeded""#);
    let mut finished = pod("Never", &[("main:0", &[]), ("sc:run", ignored)]);
    let Effect::Patch { patch: Patch::Strategic(patch), target, .. } = &plan(&seen(&finished)).effects[0]
    else {
        panic!("a patch")
    };
    assert_eq!(target.uid, Some(Text::from("u1")));
    let condition = json!({"type": "SidecarTerminated", "status": "True", "lastTransitionTime": "2026-01-01T00:10:00Z",
        "message": "Terminated by Sidecar Terminator"});
    assert_eq!(patch["status"]["conditions"], json!([condition]));
    finished["status"]["phase"] = "Succeeded".into();
    finished["status"]["conditions"] = json!([condition]);
    assert_eq!(told(&plan(&seen(&finished))), "kill sc");
    let taken = Observed { request: Some(request(&["n"], "2026-01-01T00:00:00Z", None)), ..seen(&finished) };
    assert_eq!(told(&plan(&taken)), "", "the kubelet stops what is left of a finished pod");
}

/// TERMINATOR-9, TERMINATOR-10
#[test]
fn only_true_is_true_in_any_letters() {
    for (value, expected) in [("TRUE", "kill sc"), ("True", "kill sc"), ("1", ""), ("yes", ""), ("", "")] {
        check("Never", &[("main:0", &[]), ("sc:run", &[(KILL.0, value)])], expected);
    }
    check("Never", &[("main:0", &[]), ("sc:run", &[KILL, (IGNORE.0, "false")])], "kill sc");
    check("Never", &[("main:0", &[]), ("sc:run", &[(KILL.0, "no"), KILL])], "kill sc");
    let mut referred = pod("Never", &[("main:0", &[]), ("sc:run", &[KILL])]);
    referred["spec"]["containers"][1]["env"] =
        json!([{"name": KILL.0, "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}}]);
    assert_eq!(told(&plan(&seen(&referred))), "", "only what is written down counts");
}

/// TERMINATOR-11
#[test]
fn on_a_virtual_node_the_image_ends_a_sidecar() {
    let mut job = pod("Never", &[("main:0", &[]), ("sc:run", &[IMAGE]), ("sd:run", &[KILL, IGNORE, IMAGE])]);
    let both = plan(&on_virtual_node(&job));
    assert_eq!(
        told(&both),
        r#"replace [{"image":"quick-exit:v1","name":"sc"},{"image":"quick-exit:v1","name":"sd"}]"#
    );
    assert_eq!(
        both.purposes[0].done().unwrap().message,
        "Kruise SidecarTerminator is trying to terminate sidecar [sc sd] using in-place update"
    );
    for container in 1..3 {
        job["spec"]["containers"][container]["image"] = IMAGE.1.into();
    }
    assert_eq!(plan(&on_virtual_node(&job)), Plan::default(), "nothing is written or told twice");
    // Of several images the first counts, also when it is empty.
    let twice = pod("Never", &[("main:0", &[]), ("sc:run", &[(IMAGE.0, ""), IMAGE])]);
    assert_eq!(told(&plan(&on_virtual_node(&twice))), "");
}

/// TERMINATOR-12
#[test]
fn a_sidecar_that_cannot_be_ended_on_its_node_is_told() {
    let job = pod("Never", &[("main:0", &[]), ("sc:run", &[IMAGE]), ("ended:0", &[IMAGE])]);
    let ordinary = plan(&seen(&job));
    assert_eq!(told(&ordinary), "");
    let notice = ordinary.notice.unwrap();
    assert_eq!((notice.level, notice.reason.as_str()), (Level::Warning, "SidecarTerminator"));
    assert_eq!(
        notice.message,
        "Kruise SidecarTerminator cannot terminate sidecar [sc] on a node with a daemon: the environment variable \
         KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT is missing"
    );
    let kill = pod("Never", &[("main:0", &[]), ("sc:run", &[KILL])]);
    let missing = plan(&on_virtual_node(&kill)).notice.unwrap().message;
    assert!(missing.ends_with("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE is missing"), "{missing}");
}

/// TERMINATOR-13
#[test]
fn a_request_is_made_once() {
    let job = pod("Never", &[("main:0", &[]), ("sc:run", &[KILL])]);
    let again = Observed { request: Some(request(&["sc"], "2026-01-01T00:09:59Z", None)), ..seen(&job) };
    assert_eq!(plan(&again), Plan::default());
}

/// TERMINATOR-16
#[test]
fn a_sidecar_that_came_back_is_killed_again_once_a_minute() {
    let mut job = pod("OnFailure", &[("main:0", &[]), ("sc:run", &[KILL])]);
    job["status"]["containerStatuses"][1]["state"]["running"]["startedAt"] = "2026-01-01T00:09:30Z".into();
    let with = |made: &str, done| Observed { request: Some(request(&["sc"], made, done)), ..seen(&job) };
    let due = plan(&with("2026-01-01T00:09:00Z", Some("2026-01-01T00:09:31Z")));
    assert_eq!(told(&due), "delete sidecar-termination-u1");
    assert!(due.wake_after.is_some(), "nobody else says that the request is gone");
    let early = plan(&with("2026-01-01T00:09:20Z", Some("2026-01-01T00:09:31Z")));
    assert_eq!((told(&early).as_str(), early.wake_after), ("", Some(std::time::Duration::from_secs(20))));
    assert_eq!(plan(&with("2026-01-01T00:09:00Z", None)), Plan::default(), "it is still being killed");
    let before = plan(&with("2026-01-01T00:09:40Z", Some("2026-01-01T00:09:41Z")));
    assert_eq!(before, Plan::default(), "it has not been started since");
}

#[test]
fn an_unknown_node_is_asked_for_again() {
    let job = pod("Never", &[("main:0", &[]), ("sc:run", &[KILL])]);
    let plan = plan(&Observed { node: None, ..seen(&job) });
    assert_eq!(
        (told(&plan).as_str(), plan.problem.as_deref()),
        ("", Some("node n1 of pod default/job-1 is not known"))
    );
}

#[test]
fn a_pod_that_others_ended_is_left_to_its_kubelet() {
    for phase in ["Succeeded", "Failed"] {
        let mut evicted = pod("Never", &[("main:137", &[]), ("sc:run", &[KILL])]);
        evicted["status"]["phase"] = phase.into();
        assert_eq!(plan(&seen(&evicted)), Plan::default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// A main container is never touched, nothing is done before all of them have ended, and steps lead to an end.
    #[test]
    fn only_sidecars_of_a_job_that_is_done_are_ended(
        policy in prop::sample::select(vec!["Never", "OnFailure", "Always"]),
        kinds in prop::collection::vec((0..8_u8, prop::sample::select(vec!["run", "wait", "0", "1"])), 1..6),
        is_virtual in any::<bool>(),
    ) {
        let env = |kind: u8| {
            let switches = [KILL, IGNORE, IMAGE];
            (0..3).filter(|bit| kind & (1 << bit) != 0).map(|bit| switches[bit]).collect::<Vec<_>>()
        };
        let named: Vec<(String, Vec<(&str, &str)>)> = kinds.iter().enumerate()
            .map(|(index, (kind, state))| (format!("c{index}:{state}"), env(*kind))).collect();
        let containers: Vec<(&str, &[(&str, &str)])> =
            named.iter().map(|(name, env)| (name.as_str(), env.as_slice())).collect();
        let mut job = pod(policy, &containers);
        let is_main = |kind: u8| kind & 0b101 == 0;
        let done = policy != "Always" && kinds.iter().any(|(kind, _)| is_main(*kind)) && kinds.iter().all(|(kind, state)| {
            !is_main(*kind) || *state == "0" || (*state == "1" && policy == "Never")
        });
        let mut made: Option<Arc<ContainerRecreateRequest>> = None;
        for step in 0..6 {
            let base = if is_virtual { on_virtual_node(&job) } else { seen(&job) };
            let plan = plan(&Observed { request: made.clone(), ..base });
            prop_assert!(done || plan == Plan::default());
            prop_assert!(step < 5 || plan.effects.is_empty(), "no end: {:?}", plan.effects);
            for effect in &plan.effects {
                let (list, ends) = match effect {
                    Effect::Create { object, .. } => {
                        prop_assert!(!is_virtual);
                        let named = names(&object["spec"]["containers"]);
                        let named: Vec<&str> = named.split(' ').collect();
                        made = Some(request(&named, "2026-01-01T00:09:00Z", None));
                        (object["spec"]["containers"].clone(), true)
                    }
                    Effect::Patch { patch: Patch::Strategic(patch), subresource: None, .. } => {
                        prop_assert!(is_virtual);
                        for changed in patch["spec"]["containers"].as_array().unwrap() {
                            let index: usize = changed["name"].as_str().unwrap()[1..].parse().unwrap();
                            job["spec"]["containers"][index]["image"] = changed["image"].clone();
                        }
                        (patch["spec"]["containers"].clone(), true)
                    }
                    Effect::Patch { patch: Patch::Strategic(patch), .. } => {
                        job["status"]["phase"] = patch["status"]["phase"].clone();
                        job["status"]["conditions"] = patch["status"]["conditions"].clone();
                        (json!([]), false)
                    }
                    other => panic!("{other:?}"),
                };
                for container in list.as_array().unwrap() {
                    let index: usize = container["name"].as_str().unwrap()[1..].parse().unwrap();
                    prop_assert!(!is_main(kinds[index].0));
                    if ends {
                        job["status"]["containerStatuses"][index]["state"] = json!({"terminated": {"exitCode": 143}});
                    }
                }
            }
        }
    }
}
