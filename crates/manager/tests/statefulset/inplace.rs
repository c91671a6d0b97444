//! Updates in place: the pause before, and images that are pulled ahead.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::ControllerRevision, core::v1::Pod};
use kruise_api::{annotations::IN_PLACE_UPDATE_GRACE, imagepulljob::v1beta1::ImagePullJob, labels};
use kruise_testkit::{Outcome, wait::seen};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    kit::{annotation, image_of, merged},
    stage::{Stage, managed},
    web::Web,
};

const PULL_AHEAD: [&str; 1] = ["--feature-gates=PreDownloadImageForInPlaceUpdate=true"];

fn in_place(more: Value) -> Value {
    let spec = json!({
        "template": {"spec": {"readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}},
        "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}},
    });
    merged(spec, &more)
}

/// STATEFULSET-34: the pause outlives the manager, and is neither cut short nor lost.
async fn a_pod_is_not_ready_for_a_while_before_its_image_changes(stage: &mut Stage) -> Outcome {
    let strategy = json!({"rollingUpdate": {"inPlaceUpdateStrategy": {"gracePeriodSeconds": 15}}});
    let web = Web::start(stage, "grace", in_place(json!({"replicas": 1, "updateStrategy": strategy}))).await;
    let film = web.film().await;
    let is_in_grace = |pod: &Pod| !annotation(pod, IN_PLACE_UPDATE_GRACE).is_empty();
    web.set_image("app:v2").await;
    web.until("the pause has begun", |_, pods| pods.iter().all(is_in_grace)).await;
    stage.kill_manager();
    sleep(Duration::from_secs(3)).await;
    stage.start_manager().await;
    web.rests_at("0:v2").await;
    let when = |shows: &dyn Fn(&Pod) -> bool| -> Instant {
        film.frames().iter().find(|frame| frame.pods.values().any(shows)).unwrap().at
    };
    let new = web.image("app:v2");
    let pause = when(&|pod| image_of(pod, "main") == new) - when(&is_in_grace);
    assert!((Duration::from_secs(14)..Duration::from_secs(25)).contains(&pause), "{pause:?}");
    for frame in film.frames() {
        assert!(!frame.pods.values().any(|pod| is_in_grace(pod) && image_of(pod, "main") == new));
    }
    Ok(())
}
managed!(a_pod_is_not_ready_for_a_while_before_its_image_changes, [], alone);

/// STATEFULSET-35
async fn images_are_pulled_ahead_of_the_update(stage: &mut Stage) -> Outcome {
    for (replicas, pulls) in [(4, true), (3, false)] {
        let strategy = json!({"rollingUpdate": {"partition": replicas - 1}});
        let spec = in_place(json!({"replicas": replicas, "updateStrategy": strategy}));
        let web = Web::start(stage, "ahead", spec).await;
        web.set_image("app:v2").await;
        web.until("one pod is updated", |_, pods| web.shown(pods).matches("v2").count() == 1).await;
        let revision = web.set().await.status.unwrap().update_revision.unwrap();
        let mark = if pulls { labels::PRE_PREDOWNLOAD_CREATED } else { labels::IMAGE_PREDOWNLOAD_IGNORED };
        let look = async || {
            let kept: ControllerRevision = web.sandbox.get(&revision).await;
            let marks = kept.metadata.labels.unwrap_or_default();
            seen(marks.get(mark).map(String::as_str) == Some("true"), format!("{marks:?}"))
        };
        web.sandbox.eventually("the revision says so", look).await;
        let jobs: Vec<ImagePullJob> = web.sandbox.list().await;
        let names: Vec<_> = jobs.iter().filter_map(|job| job.metadata.name.clone()).collect();
        let expected: Vec<String> = pulls.then(|| format!("{revision}-main")).into_iter().collect();
        assert_eq!(names, expected);
        web.rolling(json!({"partition": 0})).await;
        web.until("all are updated", |_, pods| web.shown(pods).matches("v2").count() == replicas).await;
        let look = async || {
            let left: Vec<ImagePullJob> = web.sandbox.list().await;
            seen(left.is_empty(), format!("{} jobs", left.len()))
        };
        web.sandbox.eventually("no job is left", look).await;
    }
    Ok(())
}
managed!(images_are_pulled_ahead_of_the_update, super::PULL_AHEAD);
