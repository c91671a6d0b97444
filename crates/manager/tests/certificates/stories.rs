//! What happens to a cluster and its certificates.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kruise_manager::certificates::Settings;
use kruise_webhook::certificates::registration::{Kind, Needed};
use kruise_webhook::certificates::{Mode, bundle, store::Store};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::cluster::{Cluster, Replica, SECRET, configuration, settings};

const MINUTE: Duration = Duration::from_secs(60);

fn decoded(text: &str) -> Vec<u8> {
    base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).unwrap()
}

async fn stored(cluster: &Cluster) -> Store {
    let secret = cluster.get(SECRET).await.unwrap();
    let entries = secret["data"].as_object().unwrap().iter();
    Store::read(&entries.map(|(key, text)| (key.clone(), decoded(text.as_str().unwrap()))).collect())
}

async fn eventually<F: Future<Output = bool>>(limit: Duration, what: &str, mut holds: impl FnMut() -> F) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < limit, "not within {limit:?}: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Two replicas that started together.
async fn two(cluster: &Cluster) -> Vec<Replica> {
    let mut replicas =
        vec![Replica::new(cluster, Mode::Secret).await, Replica::new(cluster, Mode::Secret).await];
    let [first, second] = replicas.as_mut_slice() else { panic!() };
    let (one, other) = tokio::join!(first.initialize(MINUTE), second.initialize(MINUTE));
    one.unwrap();
    other.unwrap();
    for replica in &mut replicas {
        replica.run(cluster);
    }
    replicas
}

/// PLATFORM-1, PLATFORM-2
#[tokio::test]
async fn two_replicas_start_on_an_empty_cluster_and_serve_one_certificate() {
    let cluster = Cluster::start().await;
    let replicas = two(&cluster).await;
    let secret = cluster.get(SECRET).await.unwrap();
    let keys: Vec<&String> = secret["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ca-cert.pem", "ca-key.pem", "cert.pem", "key.pem", "tls.crt", "tls.key"]);
    let bundles = cluster.bundles().await;
    assert!(bundles.len() > 10 && bundles.iter().all(|bundle| !bundle.is_empty() && *bundle == bundles[0]));
    assert_eq!(decoded(&bundles[0]), stored(&cluster).await.pair.authority.into_bytes());
    let validating = cluster.configuration(Kind::Validating).await;
    assert_eq!(validating["webhooks"].as_array().unwrap().len(), 1, "the other path has no handler");
    let client = &validating["webhooks"][0]["clientConfig"]["service"];
    assert_eq!((&client["namespace"], &client["port"]), (&json!("kruise-system"), &json!(443)));
    let clonesets = cluster.crd("clonesets.apps.kruise.io").await;
    let path = &clonesets["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"];
    assert_eq!(path, "/convert");

    let shown: Vec<_> = replicas.iter().map(|replica| replica.current.get().unwrap().cert.clone()).collect();
    assert_eq!(shown[0], shown[1]);
    for replica in &replicas {
        replica.check.ready(replica.port).await.unwrap();
        let folder = replica.folder.path().join("certs");
        assert!(folder.join("tls.key").is_file() && !folder.join("ca-key.pem").exists());
        assert_eq!(
            fs::read_to_string(folder.join("tls.crt")).unwrap(),
            stored(&cluster).await.pair.certificate
        );
    }
    for i in 0..100 {
        cluster.create("default", &format!("c-{i}")).await.unwrap();
    }
    // An object of the older version goes through conversion, over the same sockets.
    let path = "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets";
    let cloneset = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": { "name": "web" },
        "spec": { "replicas": 0, "selector": { "matchLabels": { "a": "b" } }, "template": {}, "updateStrategy": { "partition": 3 } },
    });
    cluster.send("POST", path, Some(cloneset)).await.unwrap();
    let newer = cluster.get("/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets/web").await.unwrap();
    assert_eq!(newer["spec"]["updateStrategy"]["rollingUpdate"]["partition"], 3);

    let versions = async || {
        let mut versions: Vec<Value> =
            vec![cluster.get(SECRET).await.unwrap()["metadata"]["resourceVersion"].clone()];
        for kind in Kind::ALL {
            versions.push(cluster.configuration(kind).await["metadata"]["resourceVersion"].clone());
        }
        versions
    };
    let before = versions().await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(versions().await, before, "nothing changed, nothing is written");
    for replica in replicas {
        replica.end().await;
    }
}

/// PLATFORM-3
#[tokio::test]
async fn a_deleted_secret_comes_back_and_no_call_fails_meanwhile() {
    let cluster = Cluster::start().await;
    let replicas = two(&cluster).await;
    let old = stored(&cluster).await;
    cluster.send("DELETE", SECRET, None).await.unwrap();
    let mut made = 0;
    let began = Instant::now();
    loop {
        cluster.create("default", &format!("c-{made}")).await.unwrap();
        made += 1;
        let shown = |replica: &Replica| {
            bundle::parse(&fs::read(replica.folder.path().join("certs/tls.crt")).unwrap())
        };
        let served: Vec<_> =
            replicas.iter().map(|replica| replica.current.get().unwrap().cert.clone()).collect();
        if cluster.get(SECRET).await.is_some() {
            let new = stored(&cluster).await;
            let certificate = new.pair.certified().unwrap().cert.clone();
            if new.pair.authority != old.pair.authority && served.iter().all(|served| *served == certificate)
            {
                assert_eq!(shown(&replicas[0]), bundle::parse(new.pair.certificate.as_bytes()));
                break;
            }
        }
        assert!(began.elapsed() < MINUTE, "the new certificate is not served");
        sleep(Duration::from_millis(20)).await;
    }
    assert!(made > 50, "{made} calls while the certificate changed");
    for bundle in cluster.bundles().await {
        assert_eq!(bundle::parse(&decoded(&bundle)).len(), 2, "the old authority stays trusted");
    }
    for replica in &replicas {
        replica.check.ready(replica.port).await.unwrap();
    }
    for replica in replicas {
        replica.end().await;
    }
}

/// PLATFORM-43
#[tokio::test]
async fn an_upgrade_that_resets_the_bundles_is_repaired_within_five_seconds() {
    let cluster = Cluster::start().await;
    let replicas = two(&cluster).await;
    for kind in Kind::ALL {
        let mut object = configuration(kind);
        object["metadata"]["resourceVersion"] =
            cluster.configuration(kind).await["metadata"]["resourceVersion"].clone();
        cluster.replace(object).await;
    }
    eventually(Duration::from_secs(5), "webhooks work again", async || {
        cluster.create("default", "after-upgrade").await.is_ok()
    })
    .await;
    for replica in replicas {
        replica.end().await;
    }
}

/// PLATFORM-30
#[tokio::test]
async fn with_all_managers_down_exempt_namespaces_go_on() {
    let cluster = Cluster::start().await;
    for replica in two(&cluster).await {
        replica.end().await;
    }
    let error = cluster.create("default", "x").await.unwrap_err();
    assert!(error.contains("failed calling webhook \"m.kb.io\""), "{error}");
    cluster.create("kruise-system", "x").await.unwrap();
    cluster.create("kube-system", "x").await.unwrap();
}

/// PLATFORM-5
#[tokio::test]
async fn external_certificates_are_waited_for_and_nothing_is_written() {
    let cluster = Cluster::start().await;
    let now = kruise_runtime::clock::Clock::wall().now();
    let pair = Store::make(None, Vec::new(), "kruise-webhook-service.kruise-system.svc", now).unwrap().pair;
    let encoded = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "kruise-webhook-certs" },
        "data": { "ca.crt": encoded(&pair.authority), "tls.crt": encoded(&pair.certificate), "tls.key": encoded(&pair.key) },
    });
    cluster.send("POST", "/api/v1/namespaces/kruise-system/secrets", Some(secret)).await.unwrap();
    let everything = async || {
        let mut objects = vec![cluster.get(SECRET).await.unwrap()];
        for kind in Kind::ALL {
            objects.push(cluster.configuration(kind).await);
        }
        objects.push(cluster.crd("clonesets.apps.kruise.io").await);
        objects
    };
    let before = everything().await;
    let mut replica = Replica::new(&cluster, Mode::External).await;
    let began = Instant::now();
    let error = replica.initialize(Duration::from_secs(2)).await.unwrap_err();
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert_eq!(error.to_string(), "webhook certificates were not ready within 2s");
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        why.contains(
            "caBundle of MutatingWebhookConfiguration kruise-mutating-webhook-configuration does not match the external \
             caBundle"
        ) && why.contains("caBundle of CRD clonesets.apps.kruise.io does not match external caBundle"),
        "{why}"
    );
    let unready = replica.check.ready(replica.port).await.unwrap_err();
    assert_eq!(unready.to_string(), "webhook controller has not initialized");

    // The injector does its work.
    for kind in Kind::ALL {
        let mut object = cluster.configuration(kind).await;
        for webhook in object["webhooks"].as_array_mut().unwrap() {
            webhook["clientConfig"]["caBundle"] = json!(encoded(&pair.authority));
            webhook["clientConfig"]["service"]["namespace"] = json!("kruise-system");
            webhook["clientConfig"]["service"]["name"] = json!("kruise-webhook-service");
        }
        object["webhooks"].as_array_mut().unwrap().truncate(1);
        cluster.replace(object).await;
    }
    for crd in kruise_api::catalogue::CRDS {
        let mut object = cluster.crd(&crd.name()).await;
        if object["spec"]["conversion"]["strategy"] == "Webhook" {
            object["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] =
                json!(encoded(&pair.authority));
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", crd.name());
            cluster.send("PUT", &path, Some(object)).await.unwrap();
        }
    }
    let injected = everything().await;
    assert_ne!(before, injected);
    replica.initialize(MINUTE).await.unwrap();
    replica.run(&cluster);
    replica.check.ready(replica.port).await.unwrap();
    cluster.create("default", "x").await.unwrap();
    assert_eq!(everything().await, injected, "only the injector wrote");
    replica.end().await;
}

#[tokio::test]
async fn certificates_in_files_work_without_a_secret() {
    let cluster = Cluster::start().await;
    let mut replica = Replica::new(&cluster, Mode::Files).await;
    replica.initialize(MINUTE).await.unwrap();
    replica.run(&cluster);
    cluster.create("default", "x").await.unwrap();
    assert_eq!(cluster.get(SECRET).await, None);
    let folder = replica.folder.path().join("certs");
    assert!(folder.join("tls.crt").is_file() && !folder.join("ca-key.pem").exists());
    replica.end().await;
}

#[tokio::test]
async fn a_missing_configuration_is_named_when_the_start_takes_too_long() {
    let cluster = Cluster::start().await;
    let kind = Kind::Mutating;
    let path = format!("/apis/admissionregistration.k8s.io/v1/{}/{}", kind.plural(), kind.name());
    cluster.send("DELETE", &path, None).await.unwrap();
    let mut replica = Replica::new(&cluster, Mode::Secret).await;
    let error = replica.initialize(Duration::from_secs(1)).await.unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(why, "not found MutatingWebhookConfiguration kruise-mutating-webhook-configuration");
    assert!(cluster.get(SECRET).await.is_some(), "the rest is done");
    replica.end().await;
}

/// Settings with another webhook that an open gate needs.
fn with_gate(folder: &tempfile::TempDir) -> Settings {
    let entry = json!({
        "name": "opened.kb.io", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"service": {"namespace": "kruise-system", "name": "kruise-webhook-service", "path": "/validate-closed"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["services"]}],
    });
    let mut settings = settings(Mode::Secret, folder);
    settings.wanted.open.insert("/validate-closed".to_owned());
    settings.wanted.validating.push(Needed { entry, paths: vec!["/validate-closed".to_owned()] });
    settings
}

async fn validating(cluster: &Cluster) -> Vec<String> {
    let object = cluster.configuration(Kind::Validating).await;
    let webhooks = object["webhooks"].as_array().unwrap().iter();
    webhooks.map(|webhook| webhook["name"].as_str().unwrap().to_owned()).collect()
}

/// During an upgrade a manager with other gates runs beside: only the one that leads adds and removes.
#[tokio::test]
async fn two_managers_with_different_gates_do_not_undo_each_other() {
    let cluster = Cluster::start().await;
    // As an installation without the gate leaves it.
    let mut object = cluster.configuration(Kind::Validating).await;
    object["webhooks"].as_array_mut().unwrap().truncate(1);
    cluster.replace(object).await;
    let mut old = Replica::new(&cluster, Mode::Secret).await;
    let folder = tempfile::tempdir().unwrap();
    let gate = with_gate(&folder);
    let mut new = Replica::with(cluster.client.clone(), gate, folder).await;
    new.leads.send_replace(false);
    for replica in [&mut old, &mut new] {
        replica.initialize(MINUTE).await.unwrap();
        replica.run(&cluster);
    }
    assert_eq!(validating(&cluster).await, ["v.kb.io"]);
    old.leads.send_replace(false);
    new.leads.send_replace(true);
    let added = async || validating(&cluster).await.contains(&"opened.kb.io".to_owned());
    eventually(MINUTE, "the leader adds it", added).await;
    let version =
        async || cluster.configuration(Kind::Validating).await["metadata"]["resourceVersion"].clone();
    let before = version().await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(version().await, before, "the other one leaves it");
    for replica in [old, new] {
        replica.end().await;
    }
}

#[tokio::test]
async fn a_webhook_that_cannot_be_added_is_noted_and_takes_no_readiness() {
    let cluster = Cluster::start().await;
    let refused = Arc::new(AtomicBool::new(false));
    let client = cluster.without_permission(&refused);
    let mut first = Replica::new(&cluster, Mode::Secret).await;
    first.initialize(MINUTE).await.unwrap();
    refused.store(true, Ordering::Relaxed);
    let folder = tempfile::tempdir().unwrap();
    let gate = with_gate(&folder);
    let mut replica = Replica::with(client, gate, folder).await;
    replica.leads.send_replace(false);
    replica.initialize(MINUTE).await.unwrap();
    replica.run(&cluster);
    assert_eq!(replica.notes.read(), Vec::<String>::new());
    replica.leads.send_replace(true);
    eventually(MINUTE, "it is noted", async || {
        replica.notes.read().iter().any(|note| {
            note.starts_with(
                "ValidatingWebhookConfiguration kruise-validating-webhook-configuration lacks opened.kb.io: ",
            ) && note.contains("the manager cannot update this")
        })
    })
    .await;
    replica.check.ready(replica.port).await.unwrap();
    refused.store(false, Ordering::Relaxed);
    eventually(MINUTE, "it is added when it may be", async || {
        validating(&cluster).await.contains(&"opened.kb.io".to_owned()) && replica.notes.read().is_empty()
    })
    .await;
    replica.end().await;
    first.end().await;
}
