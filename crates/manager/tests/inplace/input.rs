//! Input that cannot be used: refused, or told, and nobody else suffers.

use std::{
    io,
    sync::{Arc, Mutex},
};

use kruise_api::{annotations::IN_PLACE_UPDATE_STATE, cloneset::v1beta1::CloneSet};
use kruise_testkit::{Backend, Outcome, wait::seen};
use serde_json::json;

use crate::{
    kit::{Demo, annotation, image_of, is_ready, name, updated},
    stage::{Stage, managed},
    words::{MOMENT, in_place_on_hollow_nodes, state},
};

/// INPLACE-43: orders that contradict themselves are refused, with the field and the rule.
async fn orders_that_contradict_themselves_are_refused(stage: &mut Stage) -> Outcome {
    let demo = Demo::prepare(stage, "orders").await;
    let weight = json!([{"weight": 1, "matchSelector": {"matchLabels": {"a": "b"}}}]);
    let both =
        json!({"priorityStrategy": {"weightPriority": weight, "orderPriority": [{"orderedKey": "k"}]}});
    let term = json!({"key": "a", "value": "b"});
    let cases = [
        (both, "priorityStrategy: Required value: only one of weightPriority and orderPriority can be used"),
        (
            json!({"scatterStrategy": [term, term]}),
            "scatterStrategy: Required value: duplicated key=a value=b",
        ),
    ];
    for (rolling, problem) in cases {
        let change = json!({"spec": {"updateStrategy": {"rollingUpdate": rolling}}});
        let refusal = demo.sandbox.refused::<CloneSet>(demo.object(&change)).await;
        let expected = format!(
            "admission webhook \"vcloneset.kb.io\" denied the request: spec.updateStrategy.rollingUpdate.{problem}"
        );
        assert_eq!(refusal, expected);
    }
    let stored: Vec<CloneSet> = demo.sandbox.list().await;
    assert!(stored.is_empty());
    Ok(())
}
managed!(orders_that_contradict_themselves_are_refused, []);

/// What a manager in this process logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// INPLACE-44: an annotation that cannot be read is told with the name of its pod, in the log and in a condition. Other
/// workloads go on, and so do the other pods of this one.
async fn an_annotation_that_cannot_be_read_stops_nobody_else(stage: &mut Stage) -> Outcome {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .without_time()
        .finish();
    let _listens = tracing::subscriber::set_default(subscriber);
    let demo = Demo::start(stage, "corrupt", in_place_on_hollow_nodes(2, &json!({}))).await;
    let mut other = demo.object(&in_place_on_hollow_nodes(1, &json!({})));
    other["metadata"]["name"] = "other".into();
    for path in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        *other.pointer_mut(path).unwrap() = json!({"app": "other"});
    }
    let mut containers = other["spec"]["template"]["spec"]["containers"].clone();
    let _: CloneSet = demo.sandbox.create(other).await;
    let broken = name(&demo.pods().await.into_iter().find(|pod| name(pod).starts_with("demo-")).unwrap());
    demo.change_pod(&broken, json!({"metadata": {"annotations": {IN_PLACE_UPDATE_STATE: "{"}}})).await;
    demo.until("the condition names the pod", |set, _| {
        let conditions = set.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
        conditions.iter().any(|one| {
            one.kind == "FailedUpdate"
                && one.status == "True"
                && one.message.as_deref().is_some_and(|message| {
                    message.starts_with(&format!(
                        "pod {}/{broken} has an annotation {IN_PLACE_UPDATE_STATE} that cannot be read: ",
                        demo.sandbox.namespace()
                    ))
                })
        })
    })
    .await;
    let logged = || match stage.cluster.backend() {
        Backend::Embedded => String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned(),
        Backend::Real => stage.process().log(),
    };
    let look = async || {
        seen(
            logged()
                .lines()
                .any(|line| line.contains("cannot go on with all pods") && line.contains(&broken)),
            logged(),
        )
    };
    demo.sandbox.eventually("the log names the pod", look).await;

    // The other workload is updated while this is so.
    let image = demo.image("app:v2");
    containers[0]["image"] = image.as_str().into();
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let _: CloneSet = demo.sandbox.merge("other", patch).await;
    let look = async || {
        let set: CloneSet = demo.sandbox.get("other").await;
        let status = set.status.unwrap_or_default();
        seen(status.updated_available_replicas == Some(1), format!("{status:?}"))
    };
    demo.sandbox.eventually("the other workload is updated", look).await;
    let still = demo.pods().await.into_iter().find(|pod| name(pod) == broken).unwrap();
    assert_eq!(annotation(&still, IN_PLACE_UPDATE_STATE), "{");

    // And so are the pods of this one.
    demo.set_image("app:v2").await;
    demo.until("the other pod is updated", |set, pods| {
        let own: Vec<_> = pods.iter().filter(|pod| name(pod).starts_with("demo-")).cloned().collect();
        let whole = own.iter().filter(|pod| name(pod) != broken);
        updated(&own, set) >= 1
            && whole.into_iter().all(|pod| image_of(pod, "main") == image && is_ready(pod))
    })
    .await;
    demo.always("nothing is deleted", MOMENT, |_, pods| pods.len() == 3).await;
    let after = demo.pods().await.into_iter().find(|pod| name(pod) == broken).unwrap();
    if image_of(&after, "main") == image {
        assert!(state(&after).is_object(), "an update begins with an annotation of its own");
    }
    Ok(())
}
managed!(an_annotation_that_cannot_be_read_stops_nobody_else, [], alone);
