//! What the daemon may do, on a server that asks: everything it needs, for its own node, and nothing else.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::api::core::v1::{Pod, Secret};
use kruise_api::{
    containerrecreaterequest::v1beta1::ContainerRecreateRequest, gates::Gates, labels, names,
    nodeimage::v1beta1::NodeImage, nodepodprobe::v1alpha1::NodePodProbe,
    podprobemarker::v1alpha1::PodProbeMarker,
};
use kruise_core::features::{policy, rbac};
use kruise_testkit::{
    Outcome,
    cluster::{HOLLOW_NODES, REAL_NODES},
    pod,
    registry::Registry,
    scenario::report_skip,
    wait::{Look, seen},
};
use kube::{
    Api, Client, Config, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    image_pulls::{ended, job, secret},
    node::{self, Daemon, on_a_node},
    stage::Stage,
    words::{Room, states},
};

/// An identity of the daemon: with the node of a pod in it, or without.
async fn kubeconfig(stage: &Stage, pod: Option<&Pod>, folder: &tempfile::TempDir) -> PathBuf {
    let mut spec = json!({"expirationSeconds": 3600});
    if let Some(pod) = pod {
        let (name, uid) = (&pod.metadata.name, &pod.metadata.uid);
        spec["boundObjectRef"] = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
    }
    let wanted = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/{}/token", names::NAMESPACE, names::DAEMON);
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(wanted.to_string().into_bytes()).unwrap();
    let answer: Value = stage.cluster.client().request(request).await.unwrap();
    let mut config = serde_json::to_value(Kubeconfig::read_from(stage.kubeconfig()).unwrap()).unwrap();
    config["users"][0]["user"] = json!({"token": answer["status"]["token"]});
    let file = folder.path().join(if pod.is_some() { "of-pod" } else { "of-nobody" });
    std::fs::write(&file, config.to_string()).unwrap();
    file
}

async fn client(kubeconfig: &Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// A pod of the daemon on a node, of which the daemon has its identity. It is gone with the test.
async fn pod_of_daemon(stage: &Stage, node: &str) -> Pod {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "kruise-daemon-", "namespace": names::NAMESPACE},
        "spec": {
            "serviceAccountName": names::DAEMON, "nodeName": node, "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": stage.cluster.image("app:v1")}],
        },
    });
    serde_json::from_value(stage.create(object).await.unwrap()).unwrap()
}

/// What the server says to a change of a status.
async fn report<K>(api: Api<K>, name: &str, status: Value) -> String
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let patch = Patch::Merge(json!({ "status": status }));
    match api.patch_status(name, &PatchParams::default(), &patch).await {
        Ok(_) => String::new(),
        Err(kube::Error::Api(status)) => format!("{} {}", status.code, status.message),
        Err(error) => error.to_string(),
    }
}

/// The code of a refusal.
fn code<T>(answer: Result<T, kube::Error>) -> u16 {
    match answer {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("no answer: {error}"),
    }
}

/// Node daemon 8.1-9: with the generated roles and its own identity the daemon recreates, pulls with a secret, probes and tells;
/// it reads no other secrets, changes no pods, and reports on no other node.
async fn the_generated_rights_are_enough_and_no_more(stage: &mut Stage) -> Outcome {
    let node = node::name(stage).await?;
    let config = json!({"name": names::DAEMON_CONFIG_NAMESPACE});
    stage.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": config})).await;
    let (gates, _) = Gates::parse("ImagePullJobGate=true", &Default::default()).unwrap();
    for object in rbac::objects(&gates) {
        stage.put(object).await;
    }
    let bound = stage.cluster.require("admissionregistration.k8s.io/v1", "validatingadmissionpolicies").await;
    if bound.is_ok() {
        for object in policy::objects(&gates) {
            stage.put(object).await;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let pod = pod_of_daemon(stage, &node).await;
    let account = kubeconfig(stage, Some(&pod), &folder).await;
    let daemon = Daemon::start(&node, &account).await;
    let room = Room::new(stage, "rights", None).await;
    works(stage, &room, &node).await;
    let log = daemon.log();
    assert!(!log.to_lowercase().contains("forbidden"), "{log}");

    let own = client(&account).await;
    reads_and_changes_nothing_else(&own, &room, &node).await;
    let theirs = strangers(stage, &room).await;
    match bound {
        Ok(()) => {
            reports_on_its_own_node_only(&own, &room, &theirs).await;
            let nobody = client(&kubeconfig(stage, None, &folder).await).await;
            let said = report(Api::<NodeImage>::all(nobody), &node, json!({"desired": 1})).await;
            assert!(said.contains("names no node"), "{said}");
            for object in policy::objects(&gates) {
                stage.api(&object).delete(policy::NAME, &DeleteParams::default()).await.unwrap();
            }
        }
        Err(skip) => report_skip(
            "the_generated_rights_are_enough_and_no_more (reports on other nodes)",
            &skip.to_string(),
        ),
    }
    room.clear().await;
    let pods: Api<Pod> = Api::namespaced(stage.cluster.client(), names::NAMESPACE);
    pods.delete(pod.metadata.name.as_deref().unwrap(), &DeleteParams::default()).await.unwrap();
    Ok(())
}
on_a_node!(the_generated_rights_are_enough_and_no_more, alone);

/// One of everything that a daemon does.
async fn works(stage: &Stage, room: &Room, node: &str) {
    let registry = Registry::open().await;
    registry.lock("kruise", "secret");
    let image = registry.put("app", "v1");
    let _: Secret = room.sandbox.create(secret("pull", &registry, "kruise", "secret")).await;
    job(&room.sandbox, "job", &image, node, &json!({"pullSecrets": ["pull"]})).await;
    let probe = json!({
        "name": "ok", "containerName": "app", "podConditionType": "game.io/ok",
        "probe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    });
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "probes": [probe]});
    let _: PodProbeMarker = room.sandbox.create(json!({"metadata": {"name": "m"}, "spec": spec})).await;
    let template = json!({
        "metadata": {"labels": {"app": "set"}},
        "spec": {"nodeSelector": {REAL_NODES.0: REAL_NODES.1}, "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": room.image}]},
    });
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": "set", "namespace": room.sandbox.namespace()},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "set"}}, "template": template},
    });
    stage.create(set).await.unwrap();
    room.pod("web", room.two(&json!({}), &json!({})), json!({})).await;
    room.ask("again", "web", &["app"], &json!({})).await;
    assert_eq!(states(&room.ended("again").await), ["app Succeeded killed"]);
    room.until("web", "the probe is told", |pod| pod::condition(pod, "game.io/ok") == Some("True")).await;
    assert_eq!(ended(&room.sandbox, "job").await, (1, 0));
    let told = async || {
        let pods: Vec<Pod> = room.sandbox.list().await;
        let has = |pod: &Pod| {
            let annotations = pod.metadata.annotations.as_ref();
            annotations.is_some_and(|all| all.contains_key("apps.kruise.io/runtime-containers-meta"))
        };
        seen(pods.iter().any(has), format!("{} pods", pods.len()))
    };
    room.sandbox.eventually("containers are told", told).await;
    let killing = |event: &kruise_testkit::events::Seen| event.component == "kruise-daemon-crr";
    assert!(room.sandbox.events().await.iter().any(killing), "events are told");
}

async fn reads_and_changes_nothing_else(own: &Client, room: &Room, node: &str) {
    let namespace = room.sandbox.namespace();
    let secrets = |namespace: &str| Api::<Secret>::namespaced(own.clone(), namespace);
    assert_eq!(code(secrets(namespace).get("pull").await), 403);
    assert_eq!(code(secrets(names::NAMESPACE).list(&ListParams::default()).await), 403);
    assert_eq!(code(Api::<Secret>::all(own.clone()).list(&ListParams::default()).await), 403);
    assert_eq!(code(secrets(names::DAEMON_CONFIG_NAMESPACE).list(&ListParams::default()).await), 200);
    let pods: Api<Pod> = Api::namespaced(own.clone(), namespace);
    let label = Patch::Merge(json!({"metadata": {"labels": {"mine": "yes"}}}));
    assert_eq!(code(pods.patch("web", &PatchParams::default(), &label).await), 403);
    assert_eq!(code(pods.delete("web", &DeleteParams::default()).await), 403);
    let requests: Api<ContainerRecreateRequest> = Api::namespaced(own.clone(), namespace);
    assert_eq!(code(requests.delete("again", &DeleteParams::default()).await), 403);
    let lists: Api<NodeImage> = Api::all(own.clone());
    let spec = Patch::Merge(json!({"spec": {"images": {"evil.io/app": {"tags": []}}}}));
    assert_eq!(code(lists.patch(node, &PatchParams::default(), &spec).await), 403);
}

/// A node of somebody else, with a pod on it and a request for the pod.
async fn strangers(stage: &Stage, room: &Room) -> String {
    if stage.cluster.require_nodes(HOLLOW_NODES).await.is_err() {
        return String::new();
    }
    let spec = json!({
        "nodeSelector": {HOLLOW_NODES.0: HOLLOW_NODES.1}, "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "app", "image": room.image}],
    });
    let _: Pod = room.sandbox.create(json!({"metadata": {"name": "theirs"}, "spec": spec})).await;
    let pod = room.until("theirs", "the other pod is ready", pod::is_ready).await;
    let node = pod.spec.unwrap().node_name.unwrap();
    // Containers of hollow nodes have no ids, so that admission would refuse the request.
    stage.remove_webhooks().await;
    let request = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
        "metadata": {"name": "of-theirs", "namespace": room.sandbox.namespace(),
            "labels": {labels::CRR_NODE_NAME: node, labels::CRR_POD_UID: pod.metadata.uid}},
        "spec": {"podName": "theirs", "containers": [{"name": "app"}]},
    });
    let made = async || match stage.create(request.clone()).await {
        Ok(_) => Look::Yes(()),
        Err(problem) => Look::No(problem),
    };
    room.sandbox.eventually("the server has forgotten the webhooks", made).await;
    node
}

async fn reports_on_its_own_node_only(own: &Client, room: &Room, theirs: &str) {
    assert!(!theirs.is_empty(), "the cluster has another node");
    let namespace = room.sandbox.namespace();
    let is_refused = |said: &str| {
        said.starts_with("403 ")
            && said.contains(policy::NAME)
            && said.contains(&format!("of node \"{theirs}\""))
    };
    // Servers take a moment to learn a policy.
    let known = async || {
        let said = report(Api::<NodeImage>::all(own.clone()), theirs, json!({"desired": 7})).await;
        seen(is_refused(&said), said)
    };
    room.sandbox.eventually("the policy holds", known).await;
    let said = report(Api::<NodePodProbe>::all(own.clone()), theirs, json!({"podProbeStatuses": []})).await;
    assert!(is_refused(&said), "{said}");
    let pods: Api<Pod> = Api::namespaced(own.clone(), namespace);
    let said = report(pods.clone(), "theirs", json!({"message": "mine"})).await;
    assert!(is_refused(&said), "{said}");
    let requests: Api<ContainerRecreateRequest> = Api::namespaced(own.clone(), namespace);
    let said = report(requests.clone(), "of-theirs", json!({"phase": "Completed"})).await;
    assert!(is_refused(&said), "{said}");
    assert_eq!(report(pods, "web", json!({"message": "mine"})).await, "");
    assert_eq!(report(requests, "again", json!({"message": "mine"})).await, "");
}

/// A probe that leads away from its pod is refused by admission; where admission was away, the daemon asks nobody.
async fn probes_never_leave_their_pod(stage: &mut Stage) -> Outcome {
    let node = node::name(stage).await?;
    let _daemon = Daemon::start(&node, &stage.kubeconfig()).await;
    let room = Room::new(stage, "hosts", None).await;
    let web = room.pod("web", room.two(&json!({}), &json!({})), json!({})).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let away = json!({"host": "127.0.0.1", "port": port, "path": "/"});
    let probe = json!({"name": "p", "containerName": "app", "podConditionType": "game.io/p", "probe": {"httpGet": away}});
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "probes": [probe]});
    let refusal =
        room.sandbox.refused::<PodProbeMarker>(json!({"metadata": {"name": "m"}, "spec": spec})).await;
    assert!(refusal.contains("host field in probes is not allowed"), "{refusal}");

    let lists: Api<NodePodProbe> = Api::all(stage.cluster.client());
    let exists = async || match lists.get_opt(&node).await.unwrap() {
        Some(_) => Look::Yes(()),
        None => Look::No("no list".to_owned()),
    };
    room.sandbox.eventually("the node has a list", exists).await;
    let ip = web.status.as_ref().unwrap().pod_ip.clone().unwrap();
    let entry = |ip: &str, probes: Value| {
        let (name, uid) = (&web.metadata.name, &web.metadata.uid);
        let entry = json!({"name": name, "namespace": room.sandbox.namespace(), "uid": uid, "IP": ip, "probes": probes});
        Patch::Merge(json!({"spec": {"podProbes": [entry]}}))
    };
    let get = |host: Option<&str>| {
        let mut get = json!({"port": port, "path": "/"});
        if let Some(host) = host {
            get["host"] = json!(host);
        }
        json!([{"name": "by-hand", "containerName": "app", "probe": {"httpGet": get, "periodSeconds": 1}}])
    };
    let params = PatchParams::default();
    let changes = [
        (entry(&ip, get(Some("127.0.0.1"))), "host field in probes is not allowed"),
        (entry("127.0.0.1", get(None)), "must be the address of the pod"),
        (entry("10.221.0.1", get(None)), "must be the address of the pod"),
    ];
    for (change, text) in &changes {
        let refusal = lists.patch(&node, &params, change).await.unwrap_err().to_string();
        assert!(refusal.contains(text), "{refusal}");
    }
    stage.remove_webhooks().await;
    for ((change, _), text) in changes.iter().zip([
        "host field in probes is not allowed",
        "127.0.0.1 is not an address of the pod",
        "10.221.0.1 is not an address of the pod",
    ]) {
        let accepted = async || match lists.patch(&node, &params, change).await {
            Ok(_) => Look::Yes(()),
            // The server still knows the webhooks.
            Err(error) => Look::No(error.to_string()),
        };
        room.sandbox.eventually("nobody refuses", accepted).await;
        let told = async || {
            let status = lists.get(&node).await.unwrap().status;
            let status = serde_json::to_value(status).unwrap().to_string();
            seen(status.contains(text), status)
        };
        room.sandbox.eventually("the daemon refuses", told).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(listener.accept().is_err(), "somebody was asked");
    lists.patch(&node, &params, &Patch::Merge(json!({"spec": {"podProbes": []}}))).await.unwrap();
    Ok(())
}
on_a_node!(probes_never_leave_their_pod, alone);
