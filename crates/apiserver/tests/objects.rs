//! Objects through a kube client: create, read, change, delete and watch, without a socket.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use kruise_apiserver::ApiServer;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

fn client() -> (ApiServer, kube::Client) {
    let server = ApiServer::builder().seed(1).build();
    let client = kube::Client::new(server.clone(), "default");
    (server, client)
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "1"}})).unwrap()
}

fn pod(name: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": "registry.example/web:1"}],
        },
    }))
    .unwrap()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: kube::Result<T>) -> kube::core::Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_starts_with_its_namespaces_and_the_kubernetes_service() {
    let (_, client) = client();
    let namespaces = Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = namespaces.items.iter().filter_map(|n| n.metadata.name.clone()).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let services = Api::<k8s_openapi::api::core::v1::Service>::default_namespaced(client);
    assert!(services.get("kubernetes").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_config_map_lives_through_all_verbs() {
    let (_, client) = client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let made = maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    assert_eq!(made.metadata.namespace.as_deref(), Some("default"));
    assert!(made.metadata.uid.is_some());
    assert!(made.metadata.creation_timestamp.is_some());

    let again = refused(maps.create(&PostParams::default(), &config_map("a")).await);
    assert_eq!((again.code, again.message.as_str()), (409, "configmaps \"a\" already exists"));

    let patch = Patch::Merge(json!({"data": {"b": "2"}}));
    let patched = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data.as_ref().unwrap().len(), 2);

    let stale = refused(maps.replace("a", &PostParams::default(), &made).await);
    assert_eq!(stale.reason, "Conflict");
    assert_eq!(
        stale.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; \
         please apply your changes to the latest version and try again"
    );

    let mut newest = patched.clone();
    newest.data.as_mut().unwrap().remove("a");
    let replaced = maps.replace("a", &PostParams::default(), &newest).await.unwrap();
    assert_eq!(replaced.data.unwrap().into_iter().collect::<Vec<_>>(), [("b".to_owned(), "2".to_owned())]);

    let deleted = maps.delete("a", &DeleteParams::default()).await.unwrap();
    let status = deleted.right().expect("a config map is gone at once");
    assert!(status.is_success());
    assert_eq!(refused(maps.get("a").await).message, "configmaps \"a\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_keeps_the_version() {
    let (server, client) = client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let made = maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let before = server.store().version();
    let patch = Patch::Merge(json!({"data": {"a": "1"}}));
    let same = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(same.metadata.resource_version, made.metadata.resource_version);
    assert_eq!(server.store().version(), before);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_happens_in_order() {
    let (_, client) = client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let list = maps.list(&ListParams::default()).await.unwrap();
    let version = list.metadata.resource_version.unwrap();
    let events = maps.watch(&WatchParams::default(), &version).await.unwrap();
    let mut events = events.boxed();
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"b": "2"}}));
    maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(map) => seen.push(format!("added {}", map.data.unwrap().len())),
            WatchEvent::Modified(map) => seen.push(format!("modified {}", map.data.unwrap().len())),
            WatchEvent::Deleted(map) => seen.push(format!("deleted {}", map.data.unwrap().len())),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, ["added 1", "modified 2", "deleted 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_sends_bookmarks_and_ends_at_its_timeout() {
    let (_, client) = client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let params = WatchParams::default().timeout(290);
    let events: Vec<_> = maps.watch(&params, "1").await.unwrap().try_collect().await.unwrap();
    assert_eq!(events.len(), 4, "{events:?}");
    assert!(events.iter().all(|event| matches!(event, WatchEvent::Bookmark(_))));
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_version_is_told_so() {
    let (server, client) = client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    server.store().compact();
    let mut events = maps.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    let Some(WatchEvent::Error(status)) = events.try_next().await.unwrap() else { panic!("no error") };
    let expected = format!("too old resource version: 1 ({})", server.store().version());
    assert_eq!((status.code, status.message.as_str()), (410, expected.as_str()));
    assert_eq!(status.reason, "Expired");
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_its_marks_and_goes_at_once_while_it_has_no_node() {
    let (_, client) = client();
    let pods: Api<Pod> = Api::default_namespaced(client);
    let made = pods.create(&PostParams::default(), &pod("a")).await.unwrap();
    let spec = made.spec.unwrap();
    assert_eq!(spec.service_account_name.as_deref(), Some("default"));
    assert_eq!(spec.priority, Some(0));
    assert_eq!(spec.tolerations.unwrap().len(), 2);
    assert_eq!(made.status.unwrap().phase.as_deref(), Some("Pending"));
    pods.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(pods.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_waits_for_its_grace_period() {
    let (server, client) = client();
    let pods: Api<Pod> = Api::default_namespaced(client);
    pods.create(&PostParams::default(), &pod("a")).await.unwrap();
    server.local().bind("default", "a", "node-1").await.unwrap();
    pods.delete("a", &DeleteParams::default()).await.unwrap();
    let leaving = pods.get("a").await.unwrap();
    assert_eq!(leaving.metadata.deletion_grace_period_seconds, Some(30));
    assert_eq!(leaving.metadata.deletion_timestamp.unwrap().0.to_string(), "2026-01-01T00:00:30Z");
    pods.delete("a", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(pods.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_object_with_a_finalizer_goes_when_the_finalizer_does() {
    let (_, client) = client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut map = config_map("a");
    map.metadata.finalizers = Some(vec!["example.com/keep".to_owned()]);
    maps.create(&PostParams::default(), &map).await.unwrap();
    let left = maps.delete("a", &DeleteParams::default()).await.unwrap().left().expect("it is still there");
    assert!(left.metadata.deletion_timestamp.is_some());
    let added = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/keep", "example.com/new"]}}));
    let status = refused(maps.patch("a", &PatchParams::default(), &added).await);
    assert_eq!(status.code, 422, "{status:?}");
    let removed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("a", &PatchParams::default(), &removed).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_node_keeps_its_status_at_birth_and_changes_it_only_by_the_subresource() {
    let (_, client) = client();
    let nodes: Api<Node> = Api::all(client);
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}},
    }))
    .unwrap();
    let made = nodes.create(&PostParams::default(), &node).await.unwrap();
    assert!(made.status.unwrap().capacity.is_some());
    let patch = Patch::Merge(json!({"spec": {"unschedulable": true}, "status": {"phase": "x"}}));
    let main = nodes.patch("n", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(main.spec.as_ref().unwrap().unschedulable, Some(true));
    assert_eq!(main.status.unwrap().phase, None);
    let patch = Patch::Merge(json!({"spec": {"unschedulable": false}, "status": {"phase": "Running"}}));
    let status = nodes.patch_status("n", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(status.spec.unwrap().unschedulable, Some(true));
    assert_eq!(status.status.unwrap().phase.as_deref(), Some("Running"));
}

#[tokio::test(start_paused = true)]
async fn a_quota_limits_how_many_objects_there_are() {
    let (_, client) = client();
    let quotas: Api<k8s_openapi::api::core::v1::ResourceQuota> = Api::default_namespaced(client.clone());
    let quota =
        json!({"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1", "count/configmaps": "1"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let options = PostParams::default();
    pods.create(&options, &pod("a")).await.unwrap();
    maps.create(&options, &config_map("a")).await.unwrap();
    let many = refused(pods.create(&options, &pod("b")).await);
    let words =
        "pods \"b\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1";
    assert_eq!((many.code, many.message.as_str()), (403, words));
    let many = refused(maps.create(&options, &config_map("b")).await);
    assert!(many.message.contains("exceeded quota: few, requested: count/configmaps=1"), "{}", many.message);
    pods.delete("a", &DeleteParams::default().grace_period(0)).await.unwrap();
    pods.create(&options, &pod("b")).await.unwrap();
    let ended = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    pods.patch_status("b", &PatchParams::default(), &ended).await.unwrap();
    pods.create(&options, &pod("c")).await.unwrap();
    let more = Patch::Merge(json!({"spec": {"hard": {"pods": "2"}}}));
    quotas.patch("few", &PatchParams::default(), &more).await.unwrap();
    pods.create(&options, &pod("d")).await.unwrap();
}

/// Both on threads of their own: a change that came between the mark and the end of a pod made its deletion stop
/// half-way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_deletion_ends_a_pod_whatever_else_happens_to_it() {
    let (server, client) = client();
    let pods: Api<Pod> = Api::default_namespaced(client);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..50 {
        let name = format!("web-{number}");
        let mut bound = pod(&name);
        bound.spec.as_mut().unwrap().node_name = Some("node-1".to_owned());
        pods.create(&PostParams::default(), &bound).await.unwrap();
        let (writer, writing) = (pods.clone(), name.clone());
        tasks.spawn(async move {
            for message in 0.. {
                let status = Patch::Merge(json!({"status": {"message": message.to_string()}}));
                if writer.patch_status(&writing, &PatchParams::default(), &status).await.is_err() {
                    break;
                }
            }
        });
        let force = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        pods.delete(&name, &force).await.unwrap();
        assert!(server.store().get("/pods", "default", &name).is_none(), "{name} is still there");
    }
    tasks.join_all().await;
}
