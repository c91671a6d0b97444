//! What a pod says about its containers and the sets that are injected into it.

use kruise_api::annotations;
use kruise_sim::image::normalized;
use serde_json::Value;

/// The image of a twin that does nothing.
pub(crate) const EMPTY: &str = "mesh-empty:v1";

/// A set of this story, by what it does to pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Set {
    /// Changes its container where it is.
    Log,
    /// Changes the idle one of two containers first.
    Mesh,
}

pub(crate) const SETS: [Set; 2] = [Set::Log, Set::Mesh];

impl Set {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Mesh => "mesh",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        SETS.into_iter().find(|set| set.name() == name)
    }

    /// Its containers in pods.
    pub(crate) fn containers(self) -> &'static [&'static str] {
        match self {
            Self::Log => &["log"],
            Self::Mesh => &["mesh-1", "mesh-2"],
        }
    }
}

pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["annotations"][key].as_str().unwrap_or_default()
}

fn json(pod: &Value, key: &str) -> Value {
    serde_json::from_str(annotation(pod, key)).unwrap_or_default()
}

fn one<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list.as_array().into_iter().flatten().find(|one| one["name"] == name);
    found.unwrap_or(&Value::Null)
}

/// The image that a container shall run; none if there is no such container.
pub(crate) fn image<'a>(pod: &'a Value, container: &str) -> &'a str {
    text(one(&pod["spec"]["containers"], container), "/image")
}

/// Whether a container is ready with the image that it shall run.
pub(crate) fn runs(pod: &Value, container: &str) -> bool {
    let status = one(&pod["status"]["containerStatuses"], container);
    status["ready"] == true && text(status, "/image") == normalized(image(pod, container))
}

/// Whether a twin does the work of its sidecar.
pub(crate) fn serves(pod: &Value, twin: &str) -> bool {
    image(pod, twin) != EMPTY && runs(pod, twin)
}

/// The twin that works, or is about to.
pub(crate) fn working(pod: &Value) -> String {
    let all = json(pod, annotations::SIDECARSET_WORKING_HOT_UPGRADE_CONTAINER);
    text(&all, "/mesh").to_owned()
}

pub(crate) fn idle(pod: &Value) -> &'static str {
    if working(pod) == "mesh-1" { "mesh-2" } else { "mesh-1" }
}

/// The hash of the set that a pod was made or updated with.
pub(crate) fn hash(pod: &Value, set: Set) -> String {
    text(&json(pod, annotations::SIDECARSET_HASH)[set.name()], "/hash").to_owned()
}

pub(crate) fn is_injected(pod: &Value, set: Set) -> bool {
    let mut names = annotation(pod, annotations::SIDECARSET_INJECTED_LIST).split(',');
    names.any(|name| name == set.name()) && set.containers().iter().all(|name| !image(pod, name).is_empty())
}

pub(crate) fn is_active(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null()
        && !["Failed", "Succeeded"].contains(&text(pod, "/status/phase"))
}

/// Whether a pod serves its users.
pub(crate) fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    is_active(pod)
        && pod["status"]["phase"] == "Running"
        && conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// Whether a pod is ready as a set counts it: no hot upgrade is under way.
pub(crate) fn is_ready_for(pod: &Value, set: Set) -> bool {
    is_ready(pod) && (set == Set::Log || image(pod, idle(pod)) == EMPTY)
}

/// Whether a pod is back from an update of a set: everything of the set runs. Whether the pod serves may be up to others.
pub(crate) fn is_back(pod: &Value, set: Set) -> bool {
    let is_over = set == Set::Log || image(pod, idle(pod)) == EMPTY;
    is_over && set.containers().iter().all(|name| runs(pod, name))
}

/// A pod in a few words, for the message of a failure.
pub(crate) fn described(pod: &Value) -> String {
    let mut words = vec![text(pod, "/metadata/name").to_owned()];
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        let (name, wanted) = (text(container, "/name"), text(container, "/image"));
        let status = one(&pod["status"]["containerStatuses"], name);
        let is_ready = if status["ready"] == true { "ready" } else { "not ready" };
        let runs = text(status, "/image").rsplit('/').next().unwrap_or_default();
        words.push(format!("{name} wants {wanted}, has {runs} and is {is_ready}"));
    }
    words.push(format!("{} works", working(pod)));
    words.push(if is_ready(pod) { "Ready".to_owned() } else { "not Ready".to_owned() });
    words.join("; ")
}
