//! Certificates of the program: made, renewed under load, or made by someone else.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kruise_api::{catalogue, gates::Gates, names};
use kruise_core::features::webhooks;
use kruise_runtime::{clock::Clock, scope::Stop};
use kruise_testkit::{
    Backend, Outcome,
    wait::{Look, eventually},
};
use kruise_webhook::{
    certificates::{Pair, authority::Authority, bundle, store::Store},
    selfcheck::Check,
};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    pods,
    stage::{
        Stage, launched,
        network::Door,
        process::{Process, get},
    },
};

/// Webhooks are registered by this address; a certificate must hold for it.
const HOST: &str = "127.0.0.1";
const EXTERNAL: &str = "--feature-gates=EnableExternalCerts=true";
/// The test of another scenario may still hold the usual lease.
const ALONE: &str = "--enable-leader-election=false";

fn secrets(stage: &Stage) -> Api<Secret> {
    Api::namespaced(stage.cluster.client(), names::NAMESPACE)
}

async fn stored(stage: &Stage) -> Option<Store> {
    let secret = secrets(stage).get_opt(names::WEBHOOK_SECRET).await.unwrap()?;
    Some(Store::read(&secret.data?.into_iter().map(|(key, bytes)| (key, bytes.0)).collect()))
}

async fn delete_secret(stage: &Stage) {
    let _ = secrets(stage).delete(names::WEBHOOK_SECRET, &DeleteParams::default()).await;
}

/// Both configurations and all definitions whose versions are converted.
async fn registrations(stage: &Stage) -> Vec<Value> {
    let mut objects = Vec::new();
    for configuration in webhooks::configurations(&Gates::default(), &webhooks::Options::default()) {
        let name = configuration["metadata"]["name"].as_str().unwrap();
        objects.push(serde_json::to_value(stage.api(&configuration).get(name).await.unwrap()).unwrap());
    }
    for crd in catalogue::CRDS {
        let definition = serde_json::to_value(stage.definitions().get(&crd.name()).await.unwrap()).unwrap();
        if definition["spec"]["conversion"]["strategy"] == "Webhook" {
            objects.push(definition);
        }
    }
    objects
}

/// Every `clientConfig` of an object, to be changed.
fn clients(object: &mut Value) -> Vec<&mut Value> {
    match object.get("webhooks").is_some() {
        true => {
            let webhooks = object["webhooks"].as_array_mut().unwrap();
            webhooks.iter_mut().map(|webhook| &mut webhook["clientConfig"]).collect()
        }
        false => vec![&mut object["spec"]["conversion"]["webhook"]["clientConfig"]],
    }
}

/// The authorities that each webhook and each definition trusts.
async fn trusted(stage: &Stage) -> Vec<Vec<bundle::Authority>> {
    let mut objects = registrations(stage).await;
    let clients = objects.iter_mut().flat_map(clients);
    clients.map(|client| client["caBundle"].as_str().map(bundle::parse_base64).unwrap_or_default()).collect()
}

/// Creates a pod without keeping it, which asks our webhook like any other.
async fn admit(client: Client, namespace: &str) -> Result<(), String> {
    let api: Api<Pod> = Api::namespaced(client, namespace);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry, &pods::waiting("admitted")).await.map(|_| ()).map_err(|error| error.to_string())
}

/// PLATFORM-1, PLATFORM-2: two replicas start at once with nothing there, and serve one certificate.
async fn two_replicas_start_together_with_one_certificate(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("certificates").await;
    delete_secret(stage).await;
    let door = Door::open().await;
    let launch = stage.launch().behind(&door);
    let replicas = [launch.spawn(), launch.spawn()];
    for replica in &replicas {
        replica.until_ready().await;
    }
    let secret = secrets(stage).get(names::WEBHOOK_SECRET).await.unwrap();
    let keys: Vec<String> = secret.data.unwrap().into_keys().collect();
    assert_eq!(keys, ["ca-cert.pem", "ca-key.pem", "cert.pem", "key.pem", "tls.crt", "tls.key"]);
    let authority = bundle::parse(stored(stage).await.unwrap().pair.authority.as_bytes());
    let trusted = trusted(stage).await;
    assert!(trusted.len() > 20 && trusted.iter().all(|trusted| *trusted == authority), "one equal bundle");
    for definition in registrations(stage).await.into_iter().skip(2) {
        let client = &definition["spec"]["conversion"]["webhook"]["clientConfig"];
        assert_eq!(client["url"], format!("https://{HOST}:{}/convert", door.port()));
    }
    for _ in 0..100 {
        admit(stage.cluster.client(), sandbox.namespace()).await.unwrap();
    }
    for replica in &replicas {
        let file = std::fs::read(replica.folder.path().join("certificates/tls.crt")).unwrap();
        assert_eq!(file, stored(stage).await.unwrap().pair.certificate.into_bytes());
    }
    Ok(())
}
launched!(two_replicas_start_together_with_one_certificate);

/// How many admissions may be under way. A server that is slower than the load must not drown in it.
const MOST_AT_ONCE: usize = 50;

/// Asks our webhook so often per second, if the server keeps up, until it is asked to stop. How often, and every refusal.
async fn admissions(client: Client, namespace: &str, per_second: u32, stop: &Stop) -> (usize, Vec<String>) {
    let mut calls = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / per_second);
    let (mut made, mut refused) = (0, Vec::new());
    while !stop.is_asked() {
        ticks.tick().await;
        let (client, namespace) = (client.clone(), namespace.to_owned());
        calls.spawn(async move { admit(client, &namespace).await });
        made += 1;
        while calls.len() >= MOST_AT_ONCE {
            refused.extend(calls.join_next().await.and_then(|ended| ended.unwrap().err()));
        }
    }
    while let Some(ended) = calls.join_next().await {
        refused.extend(ended.unwrap().err());
    }
    (made, refused)
}

/// PLATFORM-3, PLATFORM-4: the certificate changes several times, from an old one that is due and because the Secret is
/// deleted, while 200 pods per second are admitted: none is refused.
async fn certificates_rotate_under_load_and_nobody_is_refused(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("rotation").await;
    let now = Clock::wall().now();
    let two_years = jiff::SignedDuration::from_hours(2 * 365 * 24);
    let old = Store::make(None, Vec::new(), HOST, now - two_years).unwrap();
    stage.put(secret(&old.write())).await;
    let door = Door::open().await;
    // It has eight years left. First it is good enough.
    let launch = stage.launch().flags(&[ALONE]).behind(&door);
    let mut first = launch.ready().await;
    let done = Stop::default();
    let renewals = async {
        let mut served = vec![old.pair.authority.clone()];
        // Then it is not, for replicas that begin to replace the others.
        let stricter = launch.clone().variable("CERTS_RENEW_BEFORE", "9y");
        let replicas = [stricter.ready().await, stricter.ready().await];
        served.push(changed(stage, &replicas, &served).await);
        first.withdraw();
        sleep(Duration::from_secs(1)).await;
        first.signal("-TERM");
        assert!(first.until_ended(Duration::from_secs(30)).await.success());
        for _ in 0..2 {
            delete_secret(stage).await;
            served.push(changed(stage, &replicas, &served).await);
        }
        done.ask();
        (served.len() - 1, replicas)
    };
    // The embedded server opens a connection for each call, which a test build feels.
    let per_second = match stage.cluster.backend() {
        Backend::Real => 200,
        Backend::Embedded => 20,
    };
    let load = admissions(stage.cluster.client(), sandbox.namespace(), per_second, &done);
    let began = Instant::now();
    let ((rotations, _replicas), (made, refused)) = futures::join!(renewals, load);
    let seconds = began.elapsed().as_secs_f64();
    println!("{rotations} rotations, {made} admissions in {seconds:.1} s, {} refused", refused.len());
    assert_eq!(refused, [""; 0]);
    assert_eq!(rotations, 3);
    Ok(())
}
launched!(certificates_rotate_under_load_and_nobody_is_refused);

/// Waits until all replicas serve a certificate of a new authority. Meanwhile the one before stays trusted.
async fn changed(stage: &Stage, replicas: &[Process], before: &[String]) -> String {
    let old = bundle::parse(before.last().unwrap().as_bytes());
    let changed = eventually("a new certificate is served", Duration::from_secs(60), async || {
        let new = stored(stage).await.map(|store| store.pair.authority);
        let Some(new) = new.filter(|authority| !before.contains(authority)) else {
            return Look::No("the old one is stored".to_owned());
        };
        for trusted in trusted(stage).await {
            assert!(old.iter().all(|old| trusted.contains(old)), "the old authority is not trusted any more");
        }
        let check = Check::default();
        check.trust(&new);
        for replica in replicas {
            if let Err(error) = check.ready(replica.webhooks).await {
                return Look::No(error.to_string());
            }
        }
        Look::Yes(new)
    });
    changed.await.unwrap()
}

fn secret(data: &BTreeMap<String, Vec<u8>>) -> Value {
    let data: BTreeMap<&String, String> =
        data.iter().map(|(key, bytes)| (key, STANDARD.encode(bytes))).collect();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": names::WEBHOOK_SECRET, "namespace": names::NAMESPACE}, "data": data,
    })
}

/// PLATFORM-43
async fn an_upgrade_that_resets_bundles_is_repaired(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("upgrade").await;
    let _manager = stage.launch().flags(&[ALONE]).ready().await;
    admit(stage.cluster.client(), sandbox.namespace()).await.unwrap();
    stage.configure(&webhooks::Options::default()).await;
    let since = Instant::now();
    let repaired = eventually("webhooks work again", Duration::from_secs(5), async || {
        // Configurations without a bundle, seen late, must not count.
        let bundles = trusted(stage).await.iter().all(|trusted| !trusted.is_empty());
        match admit(stage.cluster.client(), sandbox.namespace()).await {
            Ok(()) if bundles => Look::Yes(()),
            Ok(()) => Look::No("no bundle".to_owned()),
            Err(error) => Look::No(error),
        }
    });
    repaired.await.unwrap();
    println!("repaired after {:?}", since.elapsed());
    Ok(())
}
launched!(an_upgrade_that_resets_bundles_is_repaired);

/// What someone like cert-manager leaves: the Secret, and registrations that lead to us, with or without a bundle.
async fn issue(stage: &Stage, pair: &Pair, port: u16, with_bundle: bool) {
    let data: BTreeMap<String, Vec<u8>> =
        [("ca.crt", &pair.authority), ("tls.crt", &pair.certificate), ("tls.key", &pair.key)]
            .map(|(key, text)| (key.to_owned(), text.clone().into_bytes()))
            .into();
    stage.put(secret(&data)).await;
    for mut object in registrations(stage).await {
        for client in clients(&mut object) {
            let path = client["service"]["path"].as_str().or(client["url"].as_str()).unwrap();
            let path = path.rsplit('/').next().unwrap();
            let mut changed = json!({"url": format!("https://{HOST}:{port}/{path}")});
            if with_bundle {
                changed["caBundle"] = STANDARD.encode(&pair.authority).into();
            }
            *client = changed;
        }
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.retain(|member, _| ["name", "labels", "annotations"].contains(&member.as_str()));
        stage.put(object).await;
    }
}

/// The versions of everything that belongs to certificates: any write changes one of them.
async fn versions(stage: &Stage) -> Vec<Value> {
    let mut objects = registrations(stage).await;
    objects.push(serde_json::to_value(secrets(stage).get(names::WEBHOOK_SECRET).await.unwrap()).unwrap());
    let name = |object: &Value| json!([object["metadata"]["name"], object["metadata"]["resourceVersion"]]);
    objects.iter().map(name).collect()
}

/// PLATFORM-5
async fn external_certificates_are_awaited_and_never_written(stage: &mut Stage) -> Outcome {
    let sandbox = stage.cluster.sandbox("external").await;
    let door = Door::open().await;
    let pair = Store::make(None, Vec::new(), HOST, Clock::wall().now()).unwrap().pair;
    issue(stage, &pair, door.port(), false).await;
    let before = versions(stage).await;
    let launch = stage.launch().flags(&[EXTERNAL, ALONE]).behind(&door);
    let mut impatient = launch.clone().flags(&["--webhook-initialize-timeout=2s"]).spawn();
    let status = impatient.until_ended(Duration::from_secs(30)).await;
    assert!(!status.success(), "{status}");
    let log = impatient.log();
    for words in [
        "caBundle of MutatingWebhookConfiguration kruise-mutating-webhook-configuration does not match the external caBundle",
        "caBundle of CRD clonesets.apps.kruise.io does not match external caBundle",
        "webhook certificates were not ready within 2s",
    ] {
        assert!(log.contains(words), "{words}\n{log}");
    }
    drop(impatient);
    let patient = launch.spawn();
    let unready = eventually("it says why it is not ready", Duration::from_secs(20), async || {
        match get(patient.health, "/readyz").await {
            Some((500, body)) if body.contains("has not initialized") => Look::Yes(()),
            answer => Look::No(format!("{answer:?}")),
        }
    });
    unready.await.unwrap();
    assert_eq!(versions(stage).await, before, "nothing was written");
    issue(stage, &pair, door.port(), true).await;
    let injected = versions(stage).await;
    patient.until_ready().await;
    admit(stage.cluster.client(), sandbox.namespace()).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(versions(stage).await, injected, "only the issuer wrote");
    // What every node has is made as well, as soon as the webhooks of those kinds can be called.
    let is_of_nodes = |path: &str| path.ends_with("/nodeimages") || path.ends_with("/nodepodprobes");
    let mut written: Vec<(http::Method, String)> = stage.requests();
    written.retain(|(method, path)| *method != http::Method::GET && !is_of_nodes(path));
    assert_eq!(written, [], "the embedded cluster knows of every request");
    drop(patient);
    delete_secret(stage).await;
    Ok(())
}
launched!(external_certificates_are_awaited_and_never_written);

/// A pair that holds for our address and not for `localhost`.
fn without_localhost() -> Pair {
    let authority = Authority::make(Clock::wall().now()).unwrap();
    let issuer_key = rcgen::KeyPair::from_pem(&authority.key).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_pem(&authority.certificate, issuer_key).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new([HOST.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    Pair { authority: authority.certificate, certificate, key: key.serialize_pem() }
}

/// PLATFORM-6
async fn a_certificate_without_localhost_never_becomes_ready_and_says_so(stage: &mut Stage) -> Outcome {
    let door = Door::open().await;
    issue(stage, &without_localhost(), door.port(), true).await;
    let manager = stage.launch().flags(&[EXTERNAL, ALONE]).behind(&door).spawn();
    let told = eventually("it names what is missing", Duration::from_secs(20), async || {
        match get(manager.health, "/readyz").await {
            Some((500, body)) if body.contains("not valid for name \"localhost\"") => Look::Yes(body),
            answer => Look::No(format!("{answer:?}")),
        }
    });
    let told = told.await.unwrap();
    assert!(told.contains("[-]webhook-ready failed"), "{told}");
    for _ in 0..30 {
        assert_eq!(get(manager.health, "/readyz").await.unwrap().0, 500);
        sleep(Duration::from_millis(100)).await;
    }
    drop(manager);
    delete_secret(stage).await;
    Ok(())
}
launched!(a_certificate_without_localhost_never_becomes_ready_and_says_so);
