//! How much memory a cached pod takes, everything counted: `cargo run --release --example cached_pods -- 10000`.
//!
//! A cache lists made-up pods from a server in this process, page by page, as it would from a real one. Each pod is as
//! large as pods are: two containers, an init container, volumes, four conditions, managed fields.

use std::{convert::Infallible, time::Duration};

use http::{Request, Response};
use kruise_core::{object::POD, pod::Pod};
use kruise_runtime::cache::{Cache, Options};
use kube::client::Body;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(10_000), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(measure(count))
}

async fn measure(count: usize) -> Result<(), Box<dyn std::error::Error>> {
    let server = tower::service_fn(move |request: Request<Body>| async move {
        let query = request.uri().query().unwrap_or_default().to_owned();
        if query.contains("watch=") {
            std::future::pending::<()>().await;
        }
        Ok::<_, Infallible>(Response::new(Body::from(page(&query, count).into_bytes())))
    });
    let pods = Cache::<Pod>::new(POD)
        .with_index("owner", |pod, texts| {
            texts.extend(pod.metadata.owner_references.iter().map(|owner| owner.uid.clone()));
        })
        .with_index("node", |pod, texts| texts.push(pod.spec.node_name.clone()));
    let client = kube::Client::new(server, "default");
    let before = resident()?;
    let began = tokio::time::Instant::now();
    let run = pods.run(client, Options::default());
    tokio::select! {
        () = run => {}
        synced = pods.synced(Duration::from_secs(600)) => assert!(synced, "the list takes too long"),
    }
    let seconds = began.elapsed().as_secs_f64();
    let bytes = resident()?.saturating_sub(before);
    let on_wire = pod(0).to_string().len();
    println!(
        "{}",
        json!({
            "pods": pods.len(),
            "pod_wire_bytes": on_wire,
            "resident_bytes_per_pod": bytes / count.max(1),
            "resident_mib": bytes / (1 << 20),
            "list_seconds": seconds,
        })
    );
    Ok(())
}

/// Resident memory of this process.
fn resident() -> Result<usize, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text.split_whitespace().nth(1).unwrap_or("0").parse()?;
    Ok(pages * 4096)
}

/// One page of the list.
fn page(query: &str, count: usize) -> String {
    let number = |name: &str| {
        let value = query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse::<usize>().ok())
    };
    let (from, limit) = (number("continue").unwrap_or(0), number("limit").unwrap_or(500));
    let to = (from + limit).min(count);
    let next = if to < count { to.to_string() } else { String::new() };
    let items: Vec<Value> = (from..to).map(pod).collect();
    json!({
        "apiVersion": "v1", "kind": "PodList",
        "metadata": {"resourceVersion": "900000000", "continue": next},
        "items": items,
    })
    .to_string()
}

fn pod(n: usize) -> Value {
    let (app, node) = (n / 20, n % 5000);
    let uid =
        |salt: usize| format!("{:08x}-{:04x}-4{:03x}-9abc-{:012x}", n, salt, app % 4096, n * 7919 + salt);
    let status = |name: &str, salt: usize| {
        json!({
            "name": name, "image": format!("registry.example.com/team/app-{app}:v1.2.{salt}"),
            "imageID": format!("registry.example.com/team/app@sha256:{:064x}", app * 31 + salt),
            "containerID": format!("containerd://{:064x}", n * 31 + salt),
            "ready": true, "started": true, "restartCount": 0, "lastState": {},
            "state": {"running": {"startedAt": "2026-01-01T00:00:05Z"}},
        })
    };
    let condition = |name: &str| json!({"type": name, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:05Z"});
    let environment: Vec<Value> = (0..25)
        .map(|i| json!({"name": format!("SETTING_{i}"), "value": format!("a value of some length {i}")}))
        .collect();
    let container = |name: &str, salt: usize| {
        json!({
            "name": name, "image": format!("registry.example.com/team/app-{app}:v1.2.{salt}"), "env": environment,
            "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
            "volumeMounts": [{"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}],
            "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "IfNotPresent",
        })
    };
    let managed: Vec<Value> = ["kruise-manager", "kubelet"]
        .iter()
        .map(|manager| json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}, "f:version": {}}}, "f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {"f:image": {}, "f:env": {}, "f:resources": {}}}}}}))
        .collect();
    json!({
        "metadata": {
            "name": format!("app-{app}-{:05}", n), "generateName": format!("app-{app}-"), "namespace": format!("team-{}", app % 50),
            "uid": uid(1), "resourceVersion": (100_000_000 + n).to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "app": format!("app-{app}"), "version": "v1", "app.kubernetes.io/managed-by": "helm",
                "controller-revision-hash": format!("app-{app}-6d4cf56db6"), "pod-template-hash": "6d4cf56db6",
                "apps.kruise.io/cloneset-instance-id": format!("{:05}", n), "lifecycle.apps.kruise.io/state": "Normal",
            },
            "annotations": {
                "lifecycle.apps.kruise.io/timestamp": "2026-01-01T00:00:03Z", "prometheus.io/scrape": "true",
                "cni.projectcalico.org/podIP": format!("10.{}.{}.{}/32", n / 65536, n / 256 % 256, n % 256),
                "apps.kruise.io/inplace-update-state": format!("{{\"revision\":\"app-{app}-6d4cf56db6\",\"updateTimestamp\":\"2026-01-01T00:00:00Z\",\"lastContainerStatuses\":{{\"app\":{{\"imageID\":\"sha256:{:064x}\"}}}}}}", n),
            },
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": format!("app-{app}"),
                "uid": format!("{app:08x}-1111-4222-8333-444455556666"), "controller": true, "blockOwnerDeletion": true}],
            "managedFields": managed,
        },
        "spec": {
            "nodeName": format!("node-{node:05}"), "restartPolicy": "Always", "serviceAccountName": "default", "schedulerName": "default-scheduler",
            "containers": [container("app", 1), container("sidecar", 2)], "initContainers": [container("init", 3)],
            "readinessGates": [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}],
        },
        "status": {
            "phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "qosClass": "Burstable", "startTime": "2026-01-01T00:00:01Z",
            "conditions": [condition("PodScheduled"), condition("Initialized"), condition("ContainersReady"), condition("Ready"), condition("InPlaceUpdateReady"), condition("KruisePodReady")],
            "containerStatuses": [status("app", 1), status("sidecar", 2)], "initContainerStatuses": [status("init", 3)],
        },
    })
}
