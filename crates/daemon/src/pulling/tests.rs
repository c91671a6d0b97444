//! The rules of pulls, and whole pulls on a node in memory in virtual time.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kruise_api::nodeimage::v1beta1::{Phase, PullPolicy, Spec, Status, TagStatus};
use serde_json::{Value, json};

use super::{keyring::Keyring, *};
use crate::cri::{Auth, Image};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn spec(images: Value) -> Spec {
    serde_json::from_value(json!({ "images": images })).unwrap()
}

fn place(text: &str) -> Place {
    let (image, tag) = text.split_once(' ').unwrap();
    Place { image: image.to_owned(), tag: tag.to_owned() }
}

/// Workers are written as `image tag` with the round.
#[track_caller]
fn check_plan(images: Value, status: Value, workers: &[(&str, i64)], begin: &[(&str, i64)], end: &[&str]) {
    let status: Option<Status> = serde_json::from_value(status).unwrap();
    let workers: BTreeMap<Place, i64> = workers.iter().map(|(text, round)| (place(text), *round)).collect();
    let found = plan(&spec(images), status.as_ref(), &workers);
    let begun: Vec<(Place, i64)> =
        found.begin.into_iter().map(|round| (round.place, round.version)).collect();
    let expected: Vec<(Place, i64)> = begin.iter().map(|(text, round)| (place(text), *round)).collect();
    assert_eq!(begun, expected);
    assert_eq!(found.end, end.iter().map(|text| place(text)).collect::<Vec<_>>());
}

#[test]
fn each_tag_that_is_not_finished_has_one_worker_for_its_round() {
    let images = json!({"a": {"tags": [{"tag": "1"}, {"tag": "2", "version": 3}]}});
    check_plan(images.clone(), Value::Null, &[], &[("a 1", 0), ("a 2", 3)], &[]);
    check_plan(images.clone(), Value::Null, &[("a 1", 0), ("a 2", 3)], &[], &[]);
    // Another round, a tag and an image that left.
    check_plan(
        images.clone(),
        Value::Null,
        &[("a 1", 0), ("a 2", 2), ("a 9", 0), ("b 1", 0)],
        &[("a 2", 3)],
        &["a 2", "a 9", "b 1"],
    );
    let done = json!({"desired": 2, "imageStatuses": {"a": {"tags": [
        {"tag": "1", "phase": "Failed", "completionTime": "2026-01-01T00:00:00Z"},
        {"tag": "2", "phase": "Succeeded", "version": 2, "completionTime": "2026-01-01T00:00:00Z"},
    ]}}});
    check_plan(images, done, &[], &[("a 2", 3)], &[]);
}

/// IMAGES-43: how the first list ended is told once and kept.
#[test]
fn the_end_of_the_first_list_is_written_once() {
    let wanted = spec(json!({"a": {"tags": [{"tag": "2"}, {"tag": "1"}]}}));
    let told = |tag: &str, phase| TagStatus {
        tag: tag.to_owned(),
        phase,
        completion_time: Some(kruise_api::time::Time(at(1))),
        ..TagStatus::default()
    };
    let mut workers = BTreeMap::from([(place("a 1"), told("1", Phase::Succeeded))]);
    let first = status(&wanted, None, &workers, at(2));
    assert_eq!((first.desired, first.succeeded, first.failed), (2, Some(1), Some(0)));
    assert_eq!(first.first_sync_status, None);
    workers.insert(place("a 2"), told("2", Phase::Failed));
    let second = status(&wanted, Some(&first), &workers, at(3));
    let tags: Vec<&str> = second.image_statuses["a"].tags.iter().map(|tag| tag.tag.as_str()).collect();
    assert_eq!(tags, ["1", "2"]);
    let sync = second.first_sync_status.clone().unwrap();
    assert_eq!(
        serde_json::to_value(&sync).unwrap(),
        json!({
            "syncAt": "2027-01-15T08:00:03Z", "status": "Failed", "message": "failed to pull a:2",
        })
    );
    let later = status(&spec(json!({})), Some(&second), &BTreeMap::new(), at(9));
    assert_eq!(later.first_sync_status, Some(sync));
    assert!(later.image_statuses.is_empty());
}

/// IMAGES-12, IMAGES-13 and IMAGES-15: how often, how long, until when.
#[test]
fn attempts_follow_the_policy() {
    let policy = |value: Value| {
        let policy: PullPolicy = serde_json::from_value(value).unwrap();
        Policy::from(Some(&policy))
    };
    let secs = Duration::from_secs;
    let plain = Policy::from(None);
    assert_eq!(plain, Policy { timeout: secs(600), retries: 3, deadline: None });
    assert_eq!(policy(json!({"backoffLimit": -1})).retries, 3);
    let two = policy(json!({"backoffLimit": 2, "timeoutSeconds": 30}));
    assert_eq!(two.attempt(2, secs(500)), Attempt::Try(secs(30)));
    assert_eq!(two.attempt(3, secs(500)), Attempt::Enough);
    let short = policy(json!({"backoffLimit": 10, "timeoutSeconds": 5, "activeDeadlineSeconds": 8}));
    assert_eq!(short.attempt(0, secs(0)), Attempt::Try(secs(5)));
    assert_eq!(short.attempt(1, secs(6)), Attempt::Try(secs(2)));
    assert_eq!(short.attempt(2, secs(8)), Attempt::TooLate);
    assert_eq!([0, 1, 2, 4, 5, 99].map(|number| pause(number).as_secs()), [1, 2, 4, 16, 30, 30]);
}

/// IMAGES-23: a digest is asked for and found by its own sign.
#[test]
fn digests_are_named_and_found_as_digests() {
    let digest = format!("sha256:{}", "a".repeat(64));
    assert_eq!(full_reference("busybox", &digest), format!("busybox@{digest}"));
    assert_eq!(full_reference("reg:5000/app", "v1"), "reg:5000/app:v1");
    assert_eq!(repository("nginx"), "docker.io/library/nginx");
    assert_eq!(repository("reg:5000/team/app"), "reg:5000/team/app");
    let images = [Image {
        id: "sha256:id".to_owned(),
        tags: vec!["docker.io/library/busybox:1.36".to_owned()],
        digests: vec![format!("docker.io/library/busybox@{digest}")],
    }];
    let found = |name: &str, tag: &str| present(&images, name, tag).is_some();
    assert!(found("busybox", "1.36") && found("busybox", &digest));
    assert!(!found("busybox", "1.37") && !found("other", &digest) && !found("team/busybox", "1.36"));
}

fn keyring(entries: &[(&str, &str)]) -> Keyring {
    let mut keyring = Keyring::default();
    for (key, user) in entries {
        keyring.add(key, Auth { username: (*user).to_owned(), ..Auth::default() });
    }
    keyring
}

#[track_caller]
fn check_keys(entries: &[(&str, &str)], repository: &str, expected: &[&str]) {
    let found = keyring(entries).find(repository);
    let users: Vec<&str> = found.iter().map(|auth| auth.username.as_str()).collect();
    assert_eq!(users, expected, "{repository}");
}

/// IMAGES-21 and IMAGES-22: which credentials belong to which registry.
#[test]
fn credentials_are_found_as_the_kubelet_finds_them() {
    let hub = [("https://index.docker.io/v1/", "hub")];
    check_keys(&hub, "docker.io/library/nginx", &["hub"]);
    check_keys(&hub, "quay.io/x", &[]);
    let paths = [("reg.io", "all"), ("reg.io/team", "team"), ("https://reg.io/team/app", "app")];
    check_keys(&paths, "reg.io/team/app", &["app", "team", "all"]);
    check_keys(&paths, "reg.io/other", &["all"]);
    check_keys(&[("*.azurecr.io", "cloud")], "my.azurecr.io/app", &["cloud"]);
    check_keys(&[("*.azurecr.io", "cloud")], "a.b.azurecr.io/app", &[]);
    check_keys(&[("reg.io:5000", "port")], "reg.io/app", &[]);
    check_keys(&[("reg.io:5000", "port")], "reg.io:5000/app", &["port"]);
    check_keys(&[("reg.io", "one"), ("reg.io", "two"), ("reg.io", "one")], "reg.io/app", &["one", "two"]);
}

#[test]
fn secrets_of_both_kinds_are_read_and_malformed_ones_are_named() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let data =
        |key: &str, value: Value| BTreeMap::from([(key.to_owned(), STANDARD.encode(value.to_string()))]);
    let mut keyring = Keyring::default();
    let auth = STANDARD.encode("me:se:cret");
    let config = json!({"auths": {"reg.io": {"auth": auth}, "bad": 7, "t.io": {"identitytoken": "tok"}}});
    keyring.add_secret("kubernetes.io/dockerconfigjson", &data(".dockerconfigjson", config)).unwrap();
    let old = json!({"old.io": {"username": "u", "password": "p"}});
    keyring.add_secret("kubernetes.io/dockercfg", &data(".dockercfg", old)).unwrap();
    let found = keyring.find("reg.io/app");
    assert_eq!((found[0].username.as_str(), found[0].password.as_str()), ("me", "se:cret"));
    assert_eq!(keyring.find("old.io/app")[0].password, "p");
    assert_eq!(keyring.find("t.io/app")[0].identity_token, "tok");
    let problem = keyring.add_secret("Opaque", &BTreeMap::new()).unwrap_err();
    assert_eq!(problem.to_string(), "type Opaque holds no registry credentials");
    let broken = BTreeMap::from([(".dockercfg".to_owned(), "%".to_owned())]);
    assert!(keyring.add_secret("kubernetes.io/dockercfg", &broken).is_err());
}

#[test]
fn too_little_space_is_told_with_its_numbers() {
    let wanted = Wanted { percent: 5 };
    assert_eq!(wanted.problem(Space { total: 1000, free: 50 }), None);
    let problem = wanted.problem(Space { total: 1 << 30, free: 1 << 24 }).unwrap();
    assert!(
        problem.starts_with("not enough disk space for images on the node: 1% (16 MiB) is free"),
        "{problem}"
    );
    assert_eq!(Wanted { percent: 0 }.problem(Space { total: 1000, free: 0 }), None);
    assert!(space::look(&["/nowhere/at/all".to_owned()]).unwrap().total > 0);
}

/// A plugin that hangs concerns its own registries alone.
#[tokio::test]
async fn a_slow_plugin_does_not_keep_the_others_waiting() {
    let folder = tempfile::TempDir::new().unwrap();
    let answer = r#"echo '{"kind":"CredentialProviderResponse","cacheKeyType":"Registry","auth":{"*.fast.io":{"username":"me"}}}'"#;
    // The slow one begins, says so, and never ends.
    let begun = folder.path().join("begun");
    script(&folder.path().join("slow"), &format!("touch {}; exec sleep 600", begun.display()));
    script(&folder.path().join("fast"), answer);
    let config = folder.path().join("config.yaml");
    let provider = |name: &str| {
        format!(
            "- name: {name}\n  matchImages: ['*.{name}.io']\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n"
        )
    };
    let text =
        format!("kind: CredentialProviderConfig\nproviders:\n{}{}", provider("slow"), provider("fast"));
    std::fs::write(&config, text).unwrap();
    let plugins = plugins::Plugins::read(&config, folder.path()).unwrap().unwrap();
    let slow = plugins.keyring("a.slow.io/x:1", "a.slow.io/x");
    let fast = async {
        while !begun.exists() {
            tokio::task::yield_now().await;
        }
        plugins.keyring("a.fast.io/x:1", "a.fast.io/x").await
    };
    tokio::select! {
        _ = slow => panic!("the slow one does not answer"),
        keyring = fast => assert_eq!(keyring.find("a.fast.io/x")[0].username, "me"),
    }
}

fn script(program: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(program, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Node daemon 8.1-12: a plugin is asked once for two images of one registry.
#[tokio::test]
async fn a_plugin_is_asked_once_for_a_registry() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::TempDir::new().unwrap();
    let program = folder.path().join("helper");
    let calls = folder.path().join("calls");
    let script = format!(
        "#!/bin/sh\ncat >> {}\necho '{{\"kind\":\"CredentialProviderResponse\",\
         \"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\"cacheKeyType\":\"Registry\",\
         \"cacheDuration\":\"10m\",\"auth\":{{\"*.cloud.io\":{{\"username\":\"'$WHO'\",\"password\":\"p\"}}}}}}'\n",
        calls.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = folder.path().join("config.yaml");
    let text = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n\
        - name: helper\n  matchImages: ['*.cloud.io']\n  defaultCacheDuration: 1m\n\
        \x20 apiVersion: credentialprovider.kubelet.k8s.io/v1\n  env: [{name: WHO, value: me}]\n";
    std::fs::write(&config, text).unwrap();
    let plugins = plugins::Plugins::read(&config, folder.path()).unwrap().unwrap();
    for image in ["a.cloud.io/x:1", "a.cloud.io/y:1"] {
        let keyring = plugins.keyring(image, image.trim_end_matches(":1")).await;
        assert_eq!(keyring.find("a.cloud.io/x")[0].username, "me");
    }
    assert!(plugins.keyring("b.io/x:1", "b.io/x").await.find("b.io/x").is_empty());
    let asked = std::fs::read_to_string(calls).unwrap();
    assert_eq!(asked.matches("CredentialProviderRequest").count(), 1, "{asked}");
    assert!(asked.contains("a.cloud.io/x:1"));
    let missing = plugins::Plugins::read(&folder.path().join("none.yaml"), folder.path()).unwrap();
    assert!(missing.is_none());
    std::fs::write(&config, "kind: Other").unwrap();
    assert!(plugins::Plugins::read(&config, folder.path()).is_err());
}
