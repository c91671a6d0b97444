//! Images come from a registry that the test has for itself, and that behaves as it is told.

use std::{os::unix::fs::PermissionsExt as _, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::Secret;
use kruise_api::{
    imagepulljob::v1beta1::ImagePullJob,
    names,
    nodeimage::v1beta1::{NodeImage, Phase, TagStatus},
};
use kruise_testkit::{
    Outcome, Sandbox,
    registry::{Mood, Registry},
    wait::{Look, seen},
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    node::{self, Daemon, on_a_node},
    stage::Stage,
    words::Room,
};

/// A namespace with a daemon behind it, and a registry.
struct Yard {
    room: Room,
    registry: Registry,
    node: String,
    lists: Api<NodeImage>,
}

impl Yard {
    async fn prepare(stage: &Stage, purpose: &str) -> Result<Self, kruise_testkit::Skip> {
        let room = Room::prepare(stage, purpose).await?;
        let lists = Api::all(stage.cluster.client());
        Ok(Self { room, registry: Registry::open().await, node: node::name(stage).await?, lists })
    }

    fn sandbox(&self) -> &Sandbox {
        &self.room.sandbox
    }

    /// Asks the real node to pull an image.
    async fn job(&self, name: &str, image: &str, more: &Value) {
        job(self.sandbox(), name, image, &self.node, more).await;
    }

    /// Waits until a job is over, and tells nodes that succeeded and failed.
    async fn ended(&self, name: &str) -> (i32, i32) {
        ended(self.sandbox(), name).await
    }

    /// What the node tells about a tag.
    async fn told(&self, name: &str, tag: &str) -> Option<TagStatus> {
        told(&self.lists, &self.node, &self.registry.repository(name), tag).await
    }
}

/// Asks a node to pull an image.
pub(crate) async fn job(sandbox: &Sandbox, name: &str, image: &str, node: &str, more: &Value) {
    let mut spec = json!({
        "image": image, "selector": {"names": [node]}, "completionPolicy": {"type": "Always"},
        "pullPolicy": {"timeoutSeconds": 60, "backoffLimit": 0},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let _: ImagePullJob = sandbox.create(json!({"metadata": {"name": name}, "spec": spec})).await;
}

/// Waits until a job is over, and tells nodes that succeeded and failed.
pub(crate) async fn ended(sandbox: &Sandbox, name: &str) -> (i32, i32) {
    let look = async || {
        let job: ImagePullJob = sandbox.get(name).await;
        match job.status.as_ref().filter(|status| status.completion_time.is_some()) {
            Some(status) => Look::Yes((status.succeeded.unwrap_or(0), status.failed.unwrap_or(0))),
            None => Look::No(format!("{:?}", job.status)),
        }
    };
    sandbox.eventually(&format!("the job {name} is over"), look).await
}

/// What a node tells about a tag.
pub(crate) async fn told(
    lists: &Api<NodeImage>,
    node: &str,
    repository: &str,
    tag: &str,
) -> Option<TagStatus> {
    let mut status = lists.get(node).await.unwrap().status?;
    status.image_statuses.remove(repository)?.tags.into_iter().find(|one| one.tag == tag)
}

/// A pull secret for a registry.
pub(crate) fn secret(name: &str, registry: &Registry, user: &str, password: &str) -> Value {
    let auth = STANDARD.encode(format!("{user}:{password}"));
    let config = json!({"auths": {registry.address(): {"auth": auth}}}).to_string();
    json!({
        "metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": STANDARD.encode(config)},
    })
}

/// IMAGES-4: an image is pulled. IMAGES-24: an image that is there is pulled again only if that is wanted. IMAGES-23: by its
/// digest it is the same image.
async fn an_image_is_pulled_once_unless_asked_again(stage: &mut Stage) -> Outcome {
    let yard = Yard::prepare(stage, "pulls").await?;
    let image = yard.registry.put("app", "v1");
    yard.job("first", &image, &json!({})).await;
    assert_eq!(yard.ended("first").await, (1, 0));
    let told = yard.told("app", "v1").await.unwrap();
    assert_eq!((told.phase, told.progress), (Phase::Succeeded, Some(100)));
    assert!(told.image_id.unwrap().starts_with(&format!("{}@sha256:", yard.registry.repository("app"))));
    assert_eq!(yard.registry.layers_asked(), 1);
    let before = yard.registry.asked();
    let digest = yard.registry.digest("app", "v1");
    yard.job("again", &image, &json!({})).await;
    assert_eq!(yard.ended("again").await, (1, 0));
    assert_eq!(yard.registry.asked(), before, "nobody asked the registry");
    yard.job("always", &image, &json!({"imagePullPolicy": "Always"})).await;
    assert_eq!(yard.ended("always").await, (1, 0));
    let after = yard.registry.asked();
    assert!(after.len() > before.len(), "the registry was asked");
    yard.job("digest", &digest, &json!({"imagePullPolicy": "Always"})).await;
    assert_eq!(yard.ended("digest").await, (1, 0));
    assert_eq!(yard.registry.layers_asked(), 1, "the layer was there");
    Ok(())
}
on_a_node!(an_image_is_pulled_once_unless_asked_again);

/// IMAGES-16: a registry that wants a password gets that of the pull secret, of which there is a copy meanwhile. IMAGES-21: a
/// wrong one fails, and nobody tries without.
async fn a_locked_registry_opens_to_the_right_secret_only(stage: &mut Stage) -> Outcome {
    let yard = Yard::prepare(stage, "secrets").await?;
    let metadata = json!({"name": names::DAEMON_CONFIG_NAMESPACE});
    stage.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await;
    yard.registry.lock("kruise", "open sesame");
    let (app, other) = (yard.registry.put("app", "v1"), yard.registry.put("other", "v1"));
    for (name, password) in [("right", "open sesame"), ("wrong", "abracadabra")] {
        let _: Secret = yard.sandbox().create(secret(name, &yard.registry, "kruise", password)).await;
    }
    yard.job("nobody", &other, &json!({})).await;
    assert_eq!(yard.ended("nobody").await, (0, 1));
    let message = yard.told("other", "v1").await.unwrap().message.unwrap();
    assert!(message.starts_with("Failed to pull image reference") && message.contains("401"), "{message}");

    yard.job("wrong", &other, &json!({"pullSecrets": ["wrong"]})).await;
    assert_eq!(yard.ended("wrong").await, (0, 1));
    let message = yard.told("other", "v1").await.unwrap().message.unwrap();
    assert!(message.starts_with("rpc error: code = ") && message.contains("401 Unauthorized"), "{message}");

    yard.registry.set(Mood::Slow(Duration::from_secs(5)));
    yard.job("right", &app, &json!({"pullSecrets": ["right"]})).await;
    let secrets: Api<Secret> = Api::namespaced(stage.cluster.client(), names::DAEMON_CONFIG_NAMESPACE);
    let own = format!("{}/right", yard.sandbox().namespace());
    let copies = async || {
        let found = secrets.list(&ListParams::default()).await.unwrap().items.into_iter();
        let is_own =
            |secret: &Secret| secret.metadata.annotations.iter().flatten().any(|(_, text)| *text == own);
        found.filter(is_own).count()
    };
    let copied = async || {
        let count = copies().await;
        seen(count == 1, format!("{count} copies"))
    };
    yard.sandbox().eventually("there is a copy of the secret", copied).await;
    assert_eq!(yard.ended("right").await, (1, 0));
    let gone = async || {
        let count = copies().await;
        seen(count == 0, format!("{count} copies"))
    };
    yard.sandbox().eventually("the copy is gone", gone).await;
    Ok(())
}
on_a_node!(a_locked_registry_opens_to_the_right_secret_only);

/// Node daemon 8.1-12: the account for a registry comes from a plugin, which is asked once for two of its images.
async fn a_plugin_opens_a_locked_registry(stage: &mut Stage) -> Outcome {
    let node = node::name(stage).await?;
    let registry = Registry::open().await;
    registry.lock("kruise", "open sesame");
    let folder = tempfile::tempdir().unwrap();
    let [program, config, calls] = ["helper", "config.yaml", "calls"].map(|name| folder.path().join(name));
    let answer = json!({
        "kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "cacheKeyType": "Registry", "cacheDuration": "10m",
        "auth": {registry.address(): {"username": "kruise", "password": "open sesame"}},
    });
    std::fs::write(&program, format!("#!/bin/sh\ncat >> {}\necho '{answer}'\n", calls.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let provider = json!({
        "name": "helper", "matchImages": [registry.address()], "defaultCacheDuration": "1m",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
    });
    let wanted = json!({
        "apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": [provider],
    });
    std::fs::write(&config, wanted.to_string()).unwrap();
    let flags = vec![
        format!("--plugin-config-file={}", config.display()),
        format!("--plugin-bin-dir={}", folder.path().display()),
    ];
    let _daemon = Daemon::start_with(&node, &stage.kubeconfig(), flags).await;
    let room = Room::new(stage, "plugin", None).await;
    for name in ["app", "other"] {
        job(&room.sandbox, name, &registry.put(name, "v1"), &node, &json!({})).await;
        assert_eq!(ended(&room.sandbox, name).await, (1, 0), "{name}");
    }
    let asked = std::fs::read_to_string(calls).unwrap();
    assert_eq!(asked.matches("CredentialProviderRequest").count(), 1, "{asked}");
    Ok(())
}
on_a_node!(a_plugin_opens_a_locked_registry, alone);

/// IMAGES-12: a tag that does not exist is tried as often as allowed, and the runtime's words are told.
async fn a_missing_tag_is_told_by_everybody(stage: &mut Stage) -> Outcome {
    let yard = Yard::prepare(stage, "missing").await?;
    yard.registry.put("app", "v1");
    let image = format!("{}:nope", yard.registry.repository("app"));
    yard.job("job", &image, &json!({"pullPolicy": {"timeoutSeconds": 30, "backoffLimit": 2}})).await;
    assert_eq!(yard.ended("job").await, (0, 1));
    let job: ImagePullJob = yard.sandbox().get("job").await;
    let status = job.status.unwrap();
    assert_eq!(
        (status.message.as_deref(), status.failed_nodes),
        (Some("job has completed"), vec![yard.node.clone()])
    );
    let told = yard.told("app", "nope").await.unwrap();
    let message = told.message.unwrap();
    assert!(
        message.starts_with(&format!("Failed to pull image reference \"{image}\": rpc error: ")),
        "{message}"
    );
    assert!(message.contains("not found"), "{message}");
    let asked = yard.registry.asked();
    let tries = asked.iter().filter(|line| line.starts_with("HEAD /v2/app/manifests/nope")).count();
    assert_eq!(tries, 3, "{asked:?}");
    let event = async || {
        let events = yard.sandbox().events().await;
        let found = events.iter().any(|event| {
            (event.reason.as_str(), event.about.as_str()) == ("PullImageFailed", "ImagePullJob/job")
                && event.component == "kruise-daemon-imagepuller"
        });
        seen(found, format!("{events:?}"))
    };
    yard.sandbox().eventually("the job has an event", event).await;
    Ok(())
}
on_a_node!(a_missing_tag_is_told_by_everybody);

/// A slow registry is waited for. IMAGES-13: one that says nothing is given up after the time of an attempt.
async fn slow_is_not_silent(stage: &mut Stage) -> Outcome {
    let yard = Yard::prepare(stage, "slow").await?;
    let image = yard.registry.put("slow", "v1");
    yard.registry.set(Mood::Slow(Duration::from_secs(6)));
    yard.job("slow", &image, &json!({})).await;
    let pulling = async || {
        let told = yard.told("slow", "v1").await;
        seen(told.as_ref().is_some_and(|tag| tag.phase == Phase::Pulling), format!("{told:?}"))
    };
    yard.sandbox().eventually("the node pulls", pulling).await;
    assert_eq!(yard.ended("slow").await, (1, 0));
    let image = yard.registry.put("silent", "v1");
    yard.registry.set(Mood::Silent);
    yard.job("silent", &image, &json!({"pullPolicy": {"timeoutSeconds": 3, "backoffLimit": 0}})).await;
    assert_eq!(yard.ended("silent").await, (0, 1));
    let told = yard.told("silent", "v1").await.unwrap();
    assert_eq!(told.message.unwrap(), format!("pulling image {image} is canceled"));
    let lasted = told.completion_time.unwrap().0.duration_since(told.start_time.unwrap().0).as_secs();
    assert!((2..=5).contains(&lasted), "{lasted} s");
    Ok(())
}
on_a_node!(slow_is_not_silent);

/// A registry that dies in the middle of a layer: the next attempt succeeds if it comes back; if not, the runtime's words are
/// told.
async fn a_registry_dies_half_way(stage: &mut Stage) -> Outcome {
    let (yard, other) = (Yard::prepare(stage, "dies").await?, Registry::open().await);
    let image = yard.registry.put("app", "v1");
    yard.registry.set(Mood::Dying);
    yard.job("comes-back", &image, &json!({"pullPolicy": {"timeoutSeconds": 60, "backoffLimit": 3}})).await;
    let dead = other.put("app", "v1");
    other.set(Mood::Dying);
    yard.job("stays-dead", &dead, &json!({"pullPolicy": {"timeoutSeconds": 10, "backoffLimit": 0}})).await;
    let died = async || seen(yard.registry.mood() == Mood::Dead, format!("{:?}", yard.registry.asked()));
    yard.sandbox().eventually("the registry dies", died).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    yard.registry.set(Mood::Well);
    assert_eq!(yard.ended("comes-back").await, (1, 0));
    assert!(yard.registry.layers_asked() >= 2, "{:?}", yard.registry.asked());
    assert_eq!(yard.ended("stays-dead").await, (0, 1));
    let told = told(&yard.lists, &yard.node, &other.repository("app"), "v1").await.unwrap();
    let message = told.message.unwrap();
    println!("a registry that died: {message}");
    assert_eq!(other.mood(), Mood::Dead);
    assert!(message.contains(&dead), "{message}");
    Ok(())
}
on_a_node!(a_registry_dies_half_way);

/// IMAGES-32: a tag that somebody wrote into the list of the node needs a time to go, is pulled, and goes.
async fn a_list_written_by_hand_is_served(stage: &mut Stage) -> Outcome {
    let yard = Yard::prepare(stage, "by-hand").await?;
    yard.registry.put("app", "v1");
    let change = |policy: Value| {
        let tags = json!({"tags": [{"tag": "v1", "pullPolicy": policy}]});
        Patch::Merge(json!({"spec": {"images": {yard.registry.repository("app"): tags}}}))
    };
    let exists = async || match yard.lists.get_opt(&yard.node).await.unwrap() {
        Some(_) => Look::Yes(()),
        None => Look::No("no list".to_owned()),
    };
    yard.sandbox().eventually("the node has a list", exists).await;
    let params = PatchParams::default();
    let refusal = yard.lists.patch(&yard.node, &params, &change(json!({}))).await.unwrap_err();
    assert!(refusal.to_string().contains("ttlSecondsAfterFinished"), "{refusal}");
    let policy = json!({"ttlSecondsAfterFinished": 5});
    yard.lists.patch(&yard.node, &params, &change(policy)).await.unwrap();
    let pulled = async || {
        let told = yard.told("app", "v1").await;
        seen(told.as_ref().is_some_and(|tag| tag.phase == Phase::Succeeded), format!("{told:?}"))
    };
    yard.sandbox().eventually("the node has pulled", pulled).await;
    let gone = async || {
        let list = yard.lists.get(&yard.node).await.unwrap();
        let found = list.spec.images.get(&yard.registry.repository("app"));
        seen(found.is_none(), format!("{found:?}"))
    };
    yard.sandbox().eventually("the tag is gone", gone).await;
    Ok(())
}
on_a_node!(a_list_written_by_hand_is_served);
