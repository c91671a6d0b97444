//! What is refused, and both versions of the kinds.

use kruise_api::{advancedcronjob::v1beta1::AdvancedCronJob, broadcastjob::v1beta1::BroadcastJob};
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::merged,
    room::Room,
    stage::{Stage, managed},
};

/// JOBS-5, JOBS-29: bad BroadcastJobs are refused with the field and the rule.
async fn bad_broadcast_jobs_are_refused(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-bad").await;
    let pods = |change: Value| json!({"spec": {"template": change}});
    let completion = |change: Value| json!({"spec": {"completionPolicy": change}});
    for (change, expected) in [
        (json!({"spec": {"parallelism": "abc"}}), "spec.parallelism"),
        (pods(json!({"spec": {"restartPolicy": null}})), "pod restartPolicy can only be Never or OnFailure"),
        (
            pods(json!({"spec": {"restartPolicy": "Always"}})),
            "pod restartPolicy can only be Never or OnFailure",
        ),
        (
            pods(json!({"metadata": {"labels": {"broadcastjob-name": "x"}}})),
            "\"broadcastjob-name\" and \"broadcastjob-controller-uid\" are not allowed to preset in pod labels",
        ),
        (
            completion(json!({"type": "Never", "ttlSecondsAfterFinished": 5})),
            "ttlSecondsAfterFinished can just work with Always CompletionPolicyType",
        ),
        (
            completion(json!({"type": "Never", "activeDeadlineSeconds": 5})),
            "activeDeadlineSeconds can just work with Always CompletionPolicyType",
        ),
        (json!({"metadata": {"name": "a".repeat(64)}}), "must be no more than 63 characters"),
        (
            json!({"metadata": {"name": "a.b"}}),
            "BroadcastJob name must consist of alphanumeric characters or '-'",
        ),
        (
            pods(json!({"spec": {"containers": [{"name": "main"}]}})),
            "spec.template.spec.containers[0].image: Required value",
        ),
    ] {
        let job = json!({"metadata": {"name": "job"}, "spec": {"template": room.template("exit 0")}});
        let said = room.sandbox.refused::<BroadcastJob>(merged(job, &change)).await;
        assert!(said.contains(expected), "{said}");
    }
    Ok(())
}
managed!(bad_broadcast_jobs_are_refused, []);

/// JOBS-49, JOBS-50, JOBS-51, JOBS-52, JOBS-53, JOBS-54, JOBS-63: bad AdvancedCronJobs are refused, and what may change changes.
async fn bad_schedules_are_refused(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "acj-bad").await;
    let jobs = room.jobs("exit 0");
    let template = |change: Value| json!({"spec": {"template": change}});
    let spec = |change: Value| json!({"spec": change});
    for (change, expected) in [
        (spec(json!({"schedule": ""})), "schedule cannot be empty, please provide valid cron schedule."),
        (spec(json!({"schedule": "* * * *"})), "expected exactly 5 fields, found 4: [* * * *]"),
        (spec(json!({"schedule": "TZ=UTC"})), "spec.schedule: Invalid value: \"TZ=UTC\""),
        (spec(json!({"timeZone": "Local"})), "timeZone must be an explicit time zone"),
        (spec(json!({"timeZone": ""})), "timeZone must be nil or non-empty string"),
        (spec(json!({"timeZone": "Mars/Base"})), "unknown time zone Mars/Base"),
        (
            spec(json!({"timeZone": "UTC", "schedule": "CRON_TZ=UTC 0 0 * * *"})),
            "cannot use both timeZone field and TZ or CRON_TZ in schedule",
        ),
        (template(json!({"jobTemplate": null})), "spec must have one template"),
        (
            template(json!({"broadcastJobTemplate": {"spec": {"template": room.template("exit 0")}}})),
            "spec can have only one template",
        ),
        (
            template(json!({"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": null}}}}})),
            "spec.template.jobTemplate.spec.template.spec.restartPolicy",
        ),
        (
            spec(json!({"concurrencyPolicy": "Allow",
                "template": {"jobTemplate": null, "imageListPullJobTemplate": {"spec": {"images": ["a:1"], "completionPolicy": {}}}}})),
            "concurrencyPolicy should be Replace or Forbid, but current value is: Allow",
        ),
    ] {
        let cron = json!({"metadata": {"name": "tick"}, "spec": {"schedule": "0 0 1 1 *"}});
        let said = room.sandbox.refused::<AdvancedCronJob>(merged(merged(cron, &jobs), &change)).await;
        assert!(said.contains(expected), "{said}");
    }
    room.schedule("0 0 1 1 *", jobs).await;
    let change = json!({"schedule": "0 0 2 1 *", "timeZone": "Asia/Shanghai", "paused": true, "concurrencyPolicy": "Forbid",
        "successfulJobsHistoryLimit": 7, "failedJobsHistoryLimit": 7, "startingDeadlineSeconds": 77});
    room.change_tick(json!({"spec": change})).await;
    let mut object = room.tick().await;
    object["apiVersion"] = json!("apps.kruise.io/v1beta1");
    object["kind"] = json!("AdvancedCronJob");
    let image = json!({"spec": {"template": {"jobTemplate": {"spec": {"backoffLimit": 4}}}}});
    let said = stage.patch(&object, &image).await.unwrap_err();
    assert!(
        said.contains("updates to advancedcronjob spec for fields other than 'imageListPullJobTemplate'"),
        "{said}"
    );
    Ok(())
}
managed!(bad_schedules_are_refused, []);

/// JOBS-30, JOBS-62: both versions show the same, and an older writer loses nothing.
async fn versions_show_the_same(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "jobs-versions").await;
    let object = |version: &str, kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": kind,
            "metadata": {"name": name, "namespace": room.sandbox.namespace()}, "spec": spec})
    };
    let spec = json!({"paused": true, "template": room.template("exit 0")});
    for (written, read) in [("v1alpha1", "v1beta1"), ("v1beta1", "v1alpha1")] {
        let name = format!("job-{written}");
        let made = stage.create(object(written, "BroadcastJob", &name, spec.clone())).await.unwrap();
        let other = stage.api(&object(read, "BroadcastJob", &name, json!({}))).get(&name).await.unwrap();
        assert_eq!(serde_json::to_value(other).unwrap()["spec"], made["spec"]);
    }
    let images = json!({"spec": {"images": ["127.0.0.1:9/a:1"], "completionPolicy": {}}});
    let spec = json!({"schedule": "0 0 1 1 *", "template": {"imageListPullJobTemplate": images}});
    let made = stage.create(object("v1beta1", "AdvancedCronJob", "img", spec.clone())).await.unwrap();
    assert_eq!(made["spec"]["concurrencyPolicy"], "Replace");
    let older = object("v1alpha1", "AdvancedCronJob", "img", json!({}));
    let api = stage.api(&older);
    assert_eq!(api.list(&kube::api::ListParams::default()).await.unwrap().items.len(), 1);
    let mut seen = api.get("img").await.unwrap();
    assert!(seen.data["spec"]["template"].get("imageListPullJobTemplate").is_none());
    seen.data["spec"]["paused"] = json!(true);
    api.replace("img", &kube::api::PostParams::default(), &seen).await.unwrap();
    let newer = stage.api(&made).get("img").await.unwrap();
    assert_eq!(newer.data["spec"]["paused"], true);
    assert_eq!(newer.data["spec"]["template"], made["spec"]["template"]);
    let said = stage.create(object("v1alpha1", "AdvancedCronJob", "none", spec)).await.unwrap_err();
    assert!(said.contains("spec must have one template"), "{said}");
    Ok(())
}
managed!(versions_show_the_same, []);
