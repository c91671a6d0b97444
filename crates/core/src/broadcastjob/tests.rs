mod model;
mod properties;
mod recorded;

use serde_json::{Value, json};

use model::{World, bound_to};

fn names(world: &World) -> Vec<String> {
    world.pods.values().map(bound_to).collect()
}

/// JOBS-1: what a pod looks like, and how a job ends.
#[test]
fn every_node_gets_a_pod_that_is_bound_to_it() {
    let template = json!({"template": {
    "metadata": {"name": "x", "labels": {"own": "x"}, "annotations": {"note": "y"}, "finalizers": ["f.io/x"]},
    "spec": {"affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "DoesNotExist"}]}]},
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]},
    }}}});
    let mut world = World::new(3, template);
    world.pass();
    assert_eq!(names(&world).len(), 3);
    let (name, pod) = world.pods.iter().find(|(_, pod)| bound_to(pod) == "n1").unwrap();
    assert_eq!((name.starts_with("job-"), name.len()), (true, 9));
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"own": "x", "broadcastjob-name": "job", "broadcastjob-controller-uid": "job-uid"})
    );
    assert_eq!(pod["metadata"]["annotations"], json!({"note": "y"}));
    assert_eq!(pod["metadata"]["finalizers"], json!(["f.io/x"]));
    assert_eq!(pod["metadata"]["generateName"], "job-");
    let owner = &pod["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["apiVersion"], &owner["controller"]),
        (&json!("apps.kruise.io/v1beta1"), &json!(true))
    );
    let affinity = &pod["spec"]["affinity"];
    assert_eq!(
        affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"],
        json!({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]})
    );
    assert_eq!(affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["weight"], 5);
    assert!(affinity["podAntiAffinity"].is_object() && pod["spec"].get("nodeName").is_none());
    assert_eq!(world.told(), "running 3/3/0/0");
    assert!(world.is_calm());
    world.end_all("Succeeded");
    world.pass();
    assert_eq!(world.told(), "completed 3/0/3/0");
    let condition = &world.status()["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"], &condition["message"]),
        (
            &json!("Complete"),
            &json!("True"),
            &json!("Complete"),
            &json!("Job completed, 3 pods succeeded, 0 pods failed")
        )
    );
    assert_eq!(world.count("SuccessfulCreate"), 3);
    assert_eq!(world.last_event(), "JobComplete: Job ns/job is completed, 3 pods succeeded, 0 pods failed");
    assert!(world.is_calm());
}

/// JOBS-2, JOBS-3, JOBS-4, JOBS-32
#[test]
fn no_more_pods_are_active_than_may_be() {
    for (nodes, parallelism, expected) in [
        (3, json!(1), 1),
        (5, json!("30%"), 2),
        (5, json!(0), 0),
        (5, json!("0%"), 0),
        (5, json!(-1), 0),
        (2, json!("150%"), 2),
        (2, json!(9), 2),
    ] {
        let mut world = World::new(nodes, json!({"parallelism": parallelism}));
        world.pass();
        assert_eq!((world.pods.len(), world.status()["phase"].as_str()), (expected, Some("running")));
        world.pass();
        assert_eq!(world.pods.len(), expected, "{parallelism}");
    }
    let mut world = World::new(4, json!({"parallelism": 0}));
    world.pass();
    assert_eq!(
        world.waiting(),
        "ParallelismReached: 0 of at most 0 run at once (parallelism: 0); 4 still to come"
    );
    world.change(json!({"spec": {"parallelism": 2}}));
    world.pass();
    assert_eq!(names(&world).len(), 2);
    world.change(json!({"spec": {"parallelism": 1}}));
    world.pass();
    world.pass();
    assert_eq!((names(&world).len(), world.count("TooManyActivePods")), (2, 1));
    world.end("n0", "Succeeded");
    world.pass();
    assert_eq!(world.active(), 1);
    world.end("n1", "Succeeded");
    world.pass();
    assert_eq!(world.active(), 1);
    world.finish();
    assert_eq!(world.told(), "completed 4/0/4/0");
    assert_eq!(world.waiting(), "NotWaiting: ");
}

/// JOBS-7, JOBS-11
#[test]
fn a_job_without_a_node_waits_for_one_and_says_why() {
    let mut world = World::new(
        2,
        json!({"template": {"spec": {"nodeSelector": {"disk": "ssd"}, "containers": [{"resources": {"requests": {"cpu": "9"}}}]}}}),
    );
    world.taint("n1", "x", "NoSchedule");
    world.label("n1", "disk", "ssd");
    world.pass();
    assert_eq!(world.told(), "running 0/0/0/0");
    assert_eq!(
        world.waiting(),
        "NodeNotEligible: no node fits: of 2 nodes 1 do not match nodeSelector or affinity, 1 have taints that are not \
         tolerated, 0 are too small"
    );
    assert!(world.is_calm());
    world.label("n0", "disk", "ssd");
    world.pass();
    assert!(world.waiting().ends_with("1 are too small"), "{}", world.waiting());
    world.change(json!({"spec": {"template": {"spec": {"containers": [{}]}}}}));
    world.pass();
    assert_eq!(names(&world), ["n0"]);
    world.end_all("Succeeded");
    world.pass();
    assert_eq!(world.told(), "completed 1/0/1/0");
}

/// JOBS-12, JOBS-13: what has ended stays, also where its node does not fit any more (BJ-D4).
#[test]
fn a_job_that_never_ends_runs_once_on_each_node() {
    let mut world = World::new(2, json!({"completionPolicy": {"type": "Never"}}));
    world.pass();
    world.end_all("Succeeded");
    world.pass();
    assert_eq!(world.told(), "running 2/0/2/0");
    assert_eq!(world.status().get("completionTime"), None);
    world.cordon("n0", true);
    world.pass();
    assert_eq!(world.told(), "running 1/0/2/0");
    world.cordon("n0", false);
    world.pass();
    assert_eq!((world.told().as_str(), world.made), ("running 2/0/2/0", 2));
    world.add_node("n7");
    world.pass();
    world.end_all("Succeeded");
    world.pass();
    assert_eq!(world.told(), "running 3/0/3/0");
}

#[test]
fn a_pod_that_runs_where_it_may_not_run_any_more_is_deleted() {
    let mut world = World::new(3, json!({"completionPolicy": {"type": "Never"}}));
    world.pass();
    world.cordon("n0", true);
    // A pod of a node that is gone would wait for it for ever.
    world.remove_node("n1");
    world.pass();
    assert_eq!(world.told(), "running 1/1/0/2", "both count as failed at once");
    assert_eq!(world.count("SuccessfulDelete"), 2);
    world.gone();
    world.cordon("n0", false);
    world.pass();
    assert_eq!(names(&world).len(), 2, "it starts again where it may");
}

/// JOBS-14
#[test]
fn a_job_is_deleted_after_its_time() {
    for ttl in [0, 5] {
        let mut world = World::new(1, json!({"completionPolicy": {"ttlSecondsAfterFinished": ttl}}));
        world.pass();
        world.end_all("Succeeded");
        world.pass();
        assert!(world.job.is_some());
        if ttl > 0 {
            assert_eq!(world.plan().wake_after, Some(std::time::Duration::from_secs(5)));
            world.now += 4;
            world.pass();
            assert!(world.job.is_some());
            world.now += 1;
        }
        world.pass();
        assert!(world.job.is_none());
    }
}

/// JOBS-15, JOBS-16: the deadline counts from the start, whatever happens between (BJ-D5).
#[test]
fn a_job_fails_at_its_deadline() {
    let mut world = World::new(3, json!({"completionPolicy": {"activeDeadlineSeconds": 10}}));
    world.pass();
    world.now += 7;
    assert_eq!(world.plan().wake_after, Some(std::time::Duration::from_secs(3)));
    world.now += 3;
    world.pass();
    assert_eq!(world.told(), "failed 3/0/0/3");
    assert_eq!(world.active(), 0);
    assert_eq!(world.condition("Failed"), "Job ns/job was active longer than specified deadline");
    assert_eq!(
        world.last_event(),
        "DeadlineExceeded: Job ns/job was active longer than specified deadline: 0 pods succeeded, 3 pods failed"
    );
    world.gone();
    assert!(world.is_calm());
    assert_eq!(world.told(), "failed 3/0/0/3");
}

/// JOBS-15: pods of which some were deleted by a pass that was cut short are counted as well.
#[test]
fn a_job_that_fails_in_two_passes_counts_all_pods() {
    let mut world = World::new(3, json!({"completionPolicy": {"activeDeadlineSeconds": 10}}));
    world.pass();
    world.now += 10;
    world.refuse_deletes = 2;
    world.pass();
    assert_eq!((world.told().as_str(), world.active()), ("running 3/3/0/0", 2), "it is not over yet");
    world.pass();
    assert_eq!((world.told().as_str(), world.active()), ("failed 3/0/0/3", 0));
}

/// JOBS-17
#[test]
fn the_first_failed_pod_fails_the_job() {
    let mut world = World::new(3, json!({}));
    world.pass();
    world.end("n1", "Failed");
    world.pass();
    assert_eq!((world.told().as_str(), world.active()), ("failed 3/0/0/3", 0));
    assert_eq!(world.count("failed pod is found"), 1);
    assert_eq!(
        world.condition("Failed"),
        "failure policy is FailurePolicyTypeFailFast and failed pod is found"
    );
    assert!(world.is_calm());
    // One that never ends stays failed, and counts.
    let mut world = World::new(2, json!({"completionPolicy": {"type": "Never"}}));
    world.pass();
    world.end("n1", "Failed");
    world.pass();
    world.gone();
    world.pass();
    assert_eq!(world.told(), "failed 2/0/0/1");
    world.add_node("n9");
    world.pass();
    assert_eq!((world.told().as_str(), world.made), ("failed 3/0/0/1", 2));
}

/// JOBS-18
#[test]
fn a_job_may_go_on_after_failures() {
    let mut world = World::new(3, json!({"failurePolicy": {"type": "Continue"}}));
    world.pass();
    world.end("n1", "Failed");
    world.finish();
    assert_eq!(world.told(), "completed 3/0/2/1");
    assert_eq!(world.condition("Complete"), "Job completed, 2 pods succeeded, 1 pods failed");
}

/// JOBS-19 (BJ-D1)
#[test]
fn a_job_pauses_itself_once_for_each_failure() {
    let mut world = World::new(3, json!({"parallelism": 1, "failurePolicy": {"type": "Pause"}}));
    world.pass();
    world.end("n0", "Failed");
    for _ in 0..4 {
        world.pass();
    }
    assert_eq!((world.told().as_str(), world.made), ("paused 3/0/0/1", 1));
    assert_eq!((world.spec("paused"), world.count("Paused")), (json!(true), 1));
    assert_eq!(
        world.waiting(),
        "Paused: the job is paused (spec.paused: true) and 2 nodes have no pod yet; set it to false to continue"
    );
    assert!(world.is_calm());
    world.change(json!({"spec": {"paused": false}}));
    world.pass();
    world.pass();
    assert_eq!((world.told().as_str(), world.made), ("running 3/1/0/1", 2));
    assert_eq!((world.count("Continue"), world.count("Paused")), (1, 1));
    world.finish();
    assert_eq!(world.told(), "completed 3/0/2/1");
    // The next failure pauses again.
    let mut world = World::new(3, json!({"parallelism": 1, "failurePolicy": {"type": "Pause"}}));
    for node in ["n0", "n1"] {
        world.pass();
        world.pass();
        world.end(node, "Failed");
        (0..3).for_each(|_| world.pass());
        assert_eq!(world.status()["phase"], "paused");
        world.change(json!({"spec": {"paused": false}}));
        world.pass();
    }
    assert_eq!(world.count("Paused"), 2);
}

/// JOBS-20, JOBS-21 (BJ-D3)
#[test]
fn a_pod_that_restarts_too_often_has_failed() {
    let spec = |limit: i32, kind: &str| {
        json!({"failurePolicy": {"type": kind, "restartLimit": limit},
            "template": {"spec": {"restartPolicy": "OnFailure"}}})
    };
    let mut world = World::new(2, spec(2, "Continue"));
    world.pass();
    for count in 1..=2 {
        world.restarts("n0", count);
        world.pass();
        assert_eq!(world.told(), "running 2/2/0/0");
    }
    world.restarts("n0", 3);
    world.pass();
    assert_eq!(world.told(), "running 2/1/0/1");
    world.end("n1", "Succeeded");
    world.pass();
    assert_eq!(world.told(), "completed 2/0/1/1");
    let mut world = World::new(2, spec(0, "FailFast"));
    world.pass();
    world.restarts("n0", 1);
    world.pass();
    assert_eq!((world.told().as_str(), world.active()), ("failed 2/0/0/2", 1), "it proves the failure");
    world.pass();
    assert_eq!((world.told().as_str(), world.active()), ("failed 2/0/0/2", 0), "it is deleted too");
    // Without that restart policy, restarts are no failures.
    let mut world = World::new(1, json!({}));
    world.pass();
    world.restarts("n0", 7);
    world.pass();
    assert_eq!(world.told(), "running 1/1/0/0");
}

/// JOBS-21: the pod that proves the failure is deleted last, so that no reconcile that is cut short takes the job for complete,
/// or does the work again.
#[test]
fn a_job_whose_end_could_not_be_written_still_fails() {
    let spec = json!({"template": {"spec": {"restartPolicy": "OnFailure"}}});
    for (refused, are_gone) in [(0, false), (0, true), (1, false), (1, true), (2, true)] {
        let mut world = World::new(3, spec.clone());
        world.pass();
        world.restarts("n0", 1);
        world.dies = true;
        world.refuse_deletes = refused;
        world.pass();
        world.dies = false;
        if are_gone {
            world.gone();
        }
        (0..3).for_each(|_| world.pass());
        let case = format!("{refused} deletions refused, pods gone: {are_gone}");
        assert_eq!((world.status()["phase"].as_str(), world.made), (Some("failed"), 3), "{case}");
        assert_eq!((world.active(), world.count("failed pod is found")), (0, 1), "{case}");
        if !are_gone {
            assert_eq!(world.told(), "failed 3/0/0/3", "{case}");
        }
        world.gone();
        assert!(world.is_calm() && world.pods.is_empty(), "{case}");
    }
}

/// A pod that was created while the job failed, by another process or after an answer that was lost, does not run on.
#[test]
fn a_pod_that_comes_after_the_failure_is_deleted() {
    for kind in ["Always", "Never"] {
        let mut world = World::new(2, json!({"completionPolicy": {"type": kind}}));
        world.pass();
        let name = world.pods.iter().find(|(_, pod)| bound_to(pod) == "n1").unwrap().0.clone();
        let late = world.pods.remove_entry(&name).unwrap();
        world.end("n0", "Failed");
        world.pass();
        world.pods.insert(late.0, late.1);
        world.pass();
        assert_eq!((world.active(), world.status()["phase"].as_str()), (0, Some("failed")), "{kind}");
        world.gone();
        world.pass();
        assert_eq!((world.pods.len(), world.made), (1, 2), "{kind}: what has ended stays");
        assert!(world.is_calm(), "{kind}");
    }
}

/// A job that the original paused for a failed pod has `spec.paused: false` all the same, so it looks as if somebody let it go on.
#[test]
fn a_job_that_the_original_paused_stays_paused_until_somebody_lets_it_go_on() {
    let mut world = World::new(3, json!({"parallelism": 1, "failurePolicy": {"type": "Pause"}}));
    world.pass();
    world.end("n0", "Failed");
    world.change(json!({"status": {"phase": "paused", "active": 0, "failed": 1}}));
    (0..4).for_each(|_| world.pass());
    assert_eq!((world.told().as_str(), world.spec("paused"), world.made), ("paused 3/0/0/1", json!(true), 1));
    assert_eq!((world.count("Continue"), world.count("Paused")), (0, 0));
    assert!(world.is_calm());
    world.change(json!({"spec": {"paused": false}}));
    (0..2).for_each(|_| world.pass());
    assert_eq!((world.told().as_str(), world.made), ("running 3/1/0/1", 2));
    world.finish();
    assert_eq!(world.told(), "completed 3/0/2/1");
    // A failure while the user has paused the job is no news once the user lets it go on.
    let mut world = World::new(3, json!({"parallelism": 1, "failurePolicy": {"type": "Pause"}}));
    world.pass();
    world.change(json!({"spec": {"paused": true}}));
    world.pass();
    world.end("n0", "Failed");
    (0..2).for_each(|_| world.pass());
    world.change(json!({"spec": {"paused": false}}));
    (0..2).for_each(|_| world.pass());
    assert_eq!((world.told().as_str(), world.made), ("running 3/1/0/1", 2));
}

/// The clock may be set while nobody looks.
#[test]
fn a_deadline_is_looked_at_every_few_minutes() {
    let mut world = World::new(1, json!({"completionPolicy": {"activeDeadlineSeconds": 7200}}));
    world.pass();
    assert_eq!(world.plan().wake_after, Some(std::time::Duration::from_secs(600)));
}

/// JOBS-22
#[test]
fn a_paused_job_makes_no_pods_and_counts_those_that_end() {
    let mut world =
        World::new(3, json!({"parallelism": 1, "completionPolicy": {"activeDeadlineSeconds": 60}}));
    world.pass();
    world.change(json!({"spec": {"paused": true}}));
    world.end("n0", "Succeeded");
    world.now += 100;
    world.pass();
    world.pass();
    assert_eq!((world.told().as_str(), world.made), ("paused 3/0/1/0", 1), "not even a deadline ends it");
    world.change(json!({"spec": {"paused": false, "completionPolicy": {"activeDeadlineSeconds": null}}}));
    world.pass();
    assert_eq!((world.told().as_str(), world.count("Continue")), ("running 3/1/1/0", 1));
    world.finish();
    assert_eq!(world.told(), "completed 3/0/3/0");
}

/// A kubelet reports a pod as failed when it ends it for a deletion: that is no failure of the work.
#[test]
fn a_pod_that_fails_because_it_is_deleted_does_not_fail_the_job() {
    let mut world = World::new(2, json!({}));
    world.pass();
    world.delete("n0");
    world.end("n0", "Failed");
    world.pass();
    assert_eq!(world.told(), "running 2/1/0/1");
    world.gone();
    world.pass();
    assert_eq!((world.told().as_str(), world.made), ("running 2/2/0/0", 3));
}

#[test]
fn a_failed_pod_that_is_deleted_is_not_taken_for_the_next_one() {
    let mut world = World::new(3, json!({"parallelism": 1, "failurePolicy": {"type": "Pause"}}));
    world.pass();
    world.end("n0", "Failed");
    (0..3).for_each(|_| world.pass());
    world.change(json!({"spec": {"paused": false}}));
    (0..2).for_each(|_| world.pass());
    world.delete("n0");
    world.gone();
    (0..2).for_each(|_| world.pass());
    world.end("n1", "Failed");
    (0..3).for_each(|_| world.pass());
    assert_eq!((world.status()["phase"].as_str(), world.count("Paused")), (Some("paused"), 2));
}

/// JOBS-23, JOBS-24
#[test]
fn a_pod_that_someone_deletes_is_replaced_from_the_template_of_the_day() {
    let mut world = World::new(2, json!({"completionPolicy": {"type": "Never"}}));
    world.pass();
    world.change(json!({"spec": {"template": {"spec": {"containers": [{"image": "new"}]}}}}));
    world.delete("n0");
    world.pass();
    assert_eq!((world.told().as_str(), world.made), ("running 2/1/0/0", 2), "not before it is gone");
    world.gone();
    world.pass();
    let images = |node: &str| {
        let pod = world.pods.values().find(|pod| bound_to(pod) == node).unwrap();
        pod["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!((images("n0"), images("n1")), (json!("new"), json!("job:v1")));
}

/// JOBS-25: only pods that were made are counted (BJ-D2), and what the server says is reported.
#[test]
fn pods_that_the_server_refuses_are_not_counted() {
    let mut world = World::new(5, json!({}));
    world.room = 2;
    world.pass();
    assert_eq!(world.told(), "running 5/2/0/0");
}

/// Trouble of nodes and pods is reported once it has lasted for 10 s, as for other kinds.
#[test]
fn a_job_whose_pods_do_not_start_says_why() {
    let mut world = World::new(3, json!({"parallelism": 2}));
    world.pass();
    let since = jiff::Timestamp::from_second(world.now).unwrap().to_string();
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off: ErrImagePull: manifest unknown"}});
    world.trouble("n0", json!({"phase": "Pending", "containerStatuses": [{"name": "main", "image": "job:v1", "state": waiting}]}));
    let unschedulable = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available.", "lastTransitionTime": since});
    world.trouble("n1", json!({"phase": "Pending", "conditions": [unschedulable]}));
    assert_eq!(world.plan().waits.wake_after(), Some(std::time::Duration::from_secs(10)));
    world.now += 10;
    world.pass();
    let name = |world: &World, node: &str| {
        let found = world.pods.iter().find(|(_, pod)| bound_to(pod) == node);
        found.unwrap().0.clone()
    };
    let (first, second) = (name(&world, "n0"), name(&world, "n1"));
    assert_eq!(
        world.waiting(),
        format!(
            "PodUnschedulable: 1 pod cannot be scheduled ({second}): 0/3 nodes are available. 1 pod cannot pull job:v1 ({first}): \
             manifest unknown. 2 of at most 2 run at once (parallelism: 2); 1 still to come"
        )
    );
    // A node that is not ready says all about its pods.
    world.unready("n0");
    world.pass();
    let begin = "NodeNotReady: 1 pod is on nodes that are not ready (n0). 1 pod cannot be scheduled";
    assert!(world.waiting().starts_with(begin), "{}", world.waiting());
    world.pods.values_mut().for_each(|pod| pod["status"] = json!({"phase": "Succeeded"}));
    world.finish();
    assert_eq!(world.waiting(), "NotWaiting: ");
}

/// A pod is the only record of the work on its node: the page of the kind says so.
#[test]
fn a_node_whose_finished_pod_is_gone_works_again() {
    for (kind, made) in [("Never", 3), ("Always", 2)] {
        let mut world = World::new(2, json!({"completionPolicy": {"type": kind}}));
        world.pass();
        world.end_all("Succeeded");
        world.pass();
        world.delete("n0");
        world.gone();
        world.pass();
        assert_eq!(world.made, made, "{kind}: a job that has ended does nothing any more");
    }
}

/// JOBS-27
#[test]
fn pods_may_be_put_on_their_nodes_without_the_scheduler() {
    let mut world = World::new(2, json!({}));
    world.assign_by_scheduler = false;
    world.pass();
    let specs: Vec<&Value> = world.pods.values().map(|pod| &pod["spec"]).collect();
    assert!(specs.iter().all(|spec| spec.get("affinity").is_none() && spec["nodeName"].is_string()));
    world.finish();
    assert_eq!(world.told(), "completed 2/0/2/0");
}

/// JOBS-26, JOBS-31: pods that another process made are known, whatever the version of their reference.
#[test]
fn pods_of_an_older_release_are_taken_over() {
    let mut world = World::new(3, json!({}));
    world.pass();
    for pod in world.pods.values_mut() {
        pod["metadata"]["ownerReferences"][0]["apiVersion"] = json!("apps.kruise.io/v1alpha1");
    }
    world.end("n0", "Succeeded");
    world.job.as_mut().unwrap()["status"] = json!({});
    world.seed = 77;
    world.pass();
    assert_eq!((world.told().as_str(), world.made), ("running 3/2/1/0", 3));
    world.end_all("Succeeded");
    world.pass();
    assert_eq!((world.told().as_str(), world.made), ("completed 3/0/3/0", 3));
}

#[test]
fn pods_that_look_like_those_of_the_job_are_left_alone() {
    let mut world = World::new(1, json!({}));
    world.pass();
    let (name, pod) = world.pods.pop_first().unwrap();
    for (part, value) in [
        ("ownerReferences", json!([])),
        ("labels", json!({"broadcastjob-name": "job"})),
        ("namespace", json!("other")),
    ] {
        let mut stranger = pod.clone();
        stranger["metadata"][part] = value;
        world.pods.clear();
        world.pods.insert(name.clone(), stranger);
        assert_eq!(world.plan().effects.len(), 1, "{part}: the node has no pod of the job");
    }
}

#[test]
fn of_several_pods_on_a_node_the_best_one_counts_and_the_others_are_reported_once() {
    let mut world = World::new(1, json!({"failurePolicy": {"type": "Continue"}}));
    world.pass();
    let twin = |world: &mut World, name: &str, phase: &str| {
        let mut twin = world.pods.values().next().unwrap().clone();
        twin["metadata"]["name"] = json!(name);
        twin["metadata"]["uid"] = json!(name);
        twin["status"]["phase"] = json!(phase);
        world.pods.insert(name.to_owned(), twin);
    };
    twin(&mut world, "a", "Failed");
    world.pass();
    world.pass();
    assert_eq!(world.told(), "running 1/1/0/1");
    assert_eq!(world.count("DuplicatePodCreatedOnSameNode"), 1);
    assert!(
        world
            .events
            .contains(&"DuplicatePodCreatedOnSameNode: Duplicated pod a found on same node n0".to_owned())
    );
    twin(&mut world, "b", "Succeeded");
    world.pass();
    assert_eq!(world.told(), "completed 1/1/1/1");
    assert_eq!(world.pods.len(), 3);
}

/// What cannot be read may be anywhere: nothing is made beside it, and it is never deleted.
#[test]
fn a_pod_that_cannot_be_read_is_left_alone_and_holds_its_node() {
    let mut world = World::new(2, json!({"completionPolicy": {"activeDeadlineSeconds": 10}}));
    world.room = 1;
    world.pass();
    world.unreadable = true;
    world.room = 9;
    world.pods.values_mut().for_each(|pod| pod["spec"] = json!({}));
    assert_eq!(world.plan().effects, [], "its node is not known");
    world.now += 20;
    world.pass();
    assert_eq!(world.active(), 1);
}

#[test]
fn a_spec_that_was_stored_before_its_rules_is_reported() {
    let mut world = World::new(1, json!({"parallelism": "abc"}));
    world.pass();
    world.pass();
    let begin = "SpecInvalid: the spec cannot be carried out: spec.parallelism: ";
    assert!(world.pods.is_empty() && world.waiting().starts_with(begin), "{}", world.waiting());
    assert!(world.is_calm());
    world.change(json!({"spec": {"parallelism": 1}}));
    world.finish();
    assert_eq!((world.told().as_str(), world.waiting().as_str()), ("completed 1/0/1/0", "NotWaiting: "));
}

#[test]
fn a_job_that_is_being_deleted_makes_nothing() {
    let mut world = World::new(1, json!({}));
    world.change(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(world.plan(), super::Plan::default());
}
