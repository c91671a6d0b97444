//! Sidecars of jobs end with the work, because the daemon stops them.

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kruise_api::{
    containerrecreaterequest::v1beta1::ContainerRecreateRequest,
    env::{TERMINATE_SIDECAR, TERMINATE_SIDECAR_IGNORE_EXIT_CODE},
};
use kruise_testkit::{Outcome, cluster::REAL_NODES, pod, wait::seen};
use serde_json::{Value, json};

use crate::{node::on_a_node, stage::Stage, words::Room};

/// A job whose work takes some seconds and ends with a code, with a sidecar.
async fn job(room: &Room, name: &str, code: u8, sidecar: &Value) {
    let script = format!("sleep 3; exit {code}");
    let work = json!({"name": "main", "image": room.image, "command": ["sh", "-c", script]});
    let spec = json!({
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 2,
        "nodeSelector": {REAL_NODES.0: REAL_NODES.1}, "containers": [work, sidecar],
    });
    let metadata = json!({"labels": {"job": name}});
    let object = json!({
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"metadata": metadata, "spec": spec}},
    });
    let _: Job = room.sandbox.create(object).await;
}

/// Waits until a job has a condition, and gives its pod.
async fn ends(room: &Room, name: &str, condition: &str) -> Pod {
    let pod = async || {
        let pods: Vec<Pod> = room.sandbox.list().await;
        pods.into_iter().find(|pod| pod.metadata.labels.as_ref().is_some_and(|all| all["job"] == name))
    };
    let look = async || {
        let job: Job = room.sandbox.get(name).await;
        let conditions = job.status.and_then(|status| status.conditions).unwrap_or_default();
        let is_so = conditions.iter().any(|one| one.type_ == condition && one.status == "True");
        seen(is_so, format!("{conditions:?} {:?}", pod().await.as_ref().map(pod::summary)))
    };
    room.sandbox.eventually(&format!("the job {name} is {condition}"), look).await;
    pod().await.unwrap()
}

/// TERMINATOR-1, TERMINATOR-3, TERMINATOR-7: a sidecar is stopped when the work is done, well or not; one that has to be killed
/// does not spoil the job if its code is not to count.
async fn sidecars_end_with_the_work(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "sidecars").await?;
    let kind = json!({"name": TERMINATE_SIDECAR, "value": "true"});
    let ignored = json!({"name": TERMINATE_SIDECAR_IGNORE_EXIT_CODE, "value": "true"});
    let plain = json!({"name": "sc", "image": room.image, "env": [kind]});
    let stubborn = json!({"name": "sc", "image": stage.cluster.image("stubborn:v1"), "env": [kind, ignored]});
    job(&room, "works", 0, &plain).await;
    job(&room, "fails", 1, &plain).await;
    job(&room, "stubborn", 0, &stubborn).await;
    let works = ends(&room, "works", "Complete").await;
    let code = |pod: &Pod, name: &str| {
        pod::container(pod, name)?.state.as_ref()?.terminated.as_ref().map(|end| end.exit_code)
    };
    assert_eq!((code(&works, "main"), code(&works, "sc")), (Some(0), Some(0)));
    let fails = ends(&room, "fails", "Failed").await;
    assert_eq!((code(&fails, "main"), code(&fails, "sc")), (Some(1), Some(0)));
    let killed = ends(&room, "stubborn", "Complete").await;
    assert_eq!(pod::condition(&killed, "SidecarTerminated"), Some("True"));
    let requests: Vec<ContainerRecreateRequest> = room.sandbox.list().await;
    let of = |pod: &Pod| format!("sidecar-termination-{}", pod.metadata.uid.as_ref().unwrap());
    for pod in [&works, &fails] {
        let own = requests.iter().filter(|request| request.metadata.name == Some(of(pod))).count();
        assert_eq!(own, 1, "{requests:?}");
    }
    Ok(())
}
on_a_node!(sidecars_end_with_the_work);
