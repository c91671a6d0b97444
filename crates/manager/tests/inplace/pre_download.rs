//! Images that are pulled ahead of an update.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kruise_api::{imagepulljob::v1beta1::ImagePullJob, labels};
use kruise_testkit::Outcome;
use serde_json::json;

use crate::{
    kit::Demo,
    stage::{Stage, managed},
    words::in_place_on_hollow_nodes,
};

const PULL_AHEAD: [&str; 1] = ["--feature-gates=PreDownloadImageForInPlaceUpdate=true"];

/// INPLACE-41: a job for each new image, until the update is over.
async fn a_job_pulls_the_image_ahead_of_the_update(stage: &mut Stage) -> Outcome {
    let strategy = json!({"updateStrategy": {"rollingUpdate": {"partition": 4}}});
    let demo = Demo::start(stage, "ahead", in_place_on_hollow_nodes(5, &json!({"spec": strategy}))).await;
    demo.set_image("app:v2").await;
    demo.until("one pod is updated", |set, _| {
        set.status.as_ref().is_some_and(|status| status.updated_available_replicas == Some(1))
    })
    .await;
    let set = demo.set().await;
    let revision = set.status.unwrap().update_revision.unwrap();
    let hash = revision.rsplit('-').next().unwrap().to_owned();
    let jobs: Vec<ImagePullJob> = demo.sandbox.list().await;
    let [job] = jobs.as_slice() else { panic!("{} jobs", jobs.len()) };
    let job = serde_json::to_value(job).unwrap();
    assert_eq!(job["metadata"]["name"], format!("{revision}-main"));
    assert_eq!(job["metadata"]["labels"], json!({"app": "demo", "controller.kubernetes.io/hash": hash}));
    let owner = &job["metadata"]["ownerReferences"][0];
    assert_eq!([&owner["kind"], &owner["name"]], ["CloneSet", "demo"]);
    assert_eq!(owner["controller"], true);
    let spec = &job["spec"];
    assert_eq!(spec["image"], demo.image("app:v2"));
    assert_eq!(spec["parallelism"], 1);
    assert_eq!(spec["pullPolicy"]["timeoutSeconds"], 300);
    assert_eq!(spec["pullPolicy"]["backoffLimit"], 1);
    assert_eq!(spec["completionPolicy"], json!({"type": "Always", "ttlSecondsAfterFinished": 600}));
    assert_eq!(
        spec["podSelector"],
        json!({
            "matchLabels": {"app": "demo"},
            "matchExpressions": [{"key": labels::CONTROLLER_REVISION_HASH, "operator": "NotIn", "values": [revision, hash]}],
        })
    );
    let told: Vec<String> =
        demo.events("CreatedImagePullJob").await.into_iter().map(|event| event.message).collect();
    assert_eq!(told, [format!("created ImagePullJob {revision}-main for image: {}", demo.image("app:v2"))]);
    let kept: ControllerRevision = demo.sandbox.get(&revision).await;
    assert_eq!(
        kept.metadata.labels.unwrap().get(labels::PRE_PREDOWNLOAD_CREATED).map(String::as_str),
        Some("true")
    );

    demo.change(json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})).await;
    demo.rolled_out().await;
    let look = async || {
        let left: Vec<ImagePullJob> = demo.sandbox.list().await;
        kruise_testkit::wait::seen(left.is_empty(), format!("{left:?}"))
    };
    demo.sandbox.eventually("the job is gone", look).await;
    Ok(())
}
managed!(a_job_pulls_the_image_ahead_of_the_update, super::PULL_AHEAD);

/// INPLACE-41: three pods are updated before a pull ahead would be over.
async fn few_pods_need_no_job(stage: &mut Stage) -> Outcome {
    let strategy = json!({"updateStrategy": {"rollingUpdate": {"partition": 2}}});
    let demo = Demo::start(stage, "few", in_place_on_hollow_nodes(3, &json!({"spec": strategy}))).await;
    demo.set_image("app:v2").await;
    demo.until("one pod is updated", |set, _| {
        set.status.as_ref().is_some_and(|status| status.updated_available_replicas == Some(1))
    })
    .await;
    let revision = demo.set().await.status.unwrap().update_revision.unwrap();
    let look = async || {
        let kept: ControllerRevision = demo.sandbox.get(&revision).await;
        let marks = kept.metadata.labels.unwrap_or_default();
        let ignored = marks.get(labels::IMAGE_PREDOWNLOAD_IGNORED).map(String::as_str) == Some("true");
        kruise_testkit::wait::seen(ignored, format!("{marks:?}"))
    };
    demo.sandbox.eventually("the revision remembers that nothing is pulled", look).await;
    let jobs: Vec<ImagePullJob> = demo.sandbox.list().await;
    assert!(jobs.is_empty(), "{jobs:?}");
    Ok(())
}
managed!(few_pods_need_no_job, super::PULL_AHEAD);
