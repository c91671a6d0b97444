//! Whether the update of a pod is over.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kruise_api::annotations;
use serde::Deserialize;

use super::{
    Options, batch, env_hash, image,
    state::{self, State},
};
use crate::{
    canonical_json, hash,
    pod::{Container, ContainerStatus, Pod, or_default},
    text::Text,
};

/// The images that each container has in the other revisions of its workload.
///
/// A container that runs one of these has not come to its new image yet, even if it was started again: the template may
/// have changed twice in a row.
pub type OtherImages = BTreeMap<Text, BTreeSet<Text>>;

/// Whether the update of a pod is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It is, or there was none.
    Complete,
    /// It is not, and why.
    Waiting(String),
}

impl Completion {
    /// Whether it is over.
    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Waiting(why) => f.write_str(why),
        }
    }
}

/// Whether the update of a pod is over. The readiness of containers is another question.
pub fn completion(pod: &Pod, options: &Options, others: &OtherImages) -> Completion {
    if super::is_in_grace(pod) {
        return Completion::Waiting("still in grace period of in-place update".to_owned());
    }
    match state::read(pod) {
        Err(error) => Completion::Waiting(error.to_string()),
        Ok(None) => Completion::Complete,
        Ok(Some(state)) if state.has_next() => {
            Completion::Waiting("existing containers to in-place update in next batches".to_owned())
        }
        Ok(Some(state)) => {
            batch_problem(pod, &state, options, others).map_or(Completion::Complete, Completion::Waiting)
        }
    }
}

/// Why the present batch is not done, if it is not.
pub(super) fn batch_problem(
    pod: &Pod,
    state: &State,
    options: &Options,
    others: &OtherImages,
) -> Option<String> {
    let meta = RuntimeMeta::read(pod);
    if state.update_env_from_metadata
        && !meta.as_ref().is_some_and(|meta| {
            meta.is_consistent(pod, &|entry, container| {
                container.env.from_metadata.is_empty()
                    || entry.hashes.env == env_hash::expected(pod, container)
            })
        })
    {
        return Some("containers do not run with the new labels and annotations yet".to_owned());
    }
    if state.update_resources
        && options.resize
        && let Some(problem) = resize_problem(pod, state)
    {
        return Some(problem);
    }
    if meta.as_ref().is_some_and(|meta| {
        meta.is_consistent(pod, &|entry, container| entry.hashes.plain == plain_hash(container))
    }) {
        return None;
    }
    let last = state.last_container_statuses.as_ref()?;
    let missing: Vec<&str> =
        last.keys().filter(|name| status(pod, name).is_none()).map(Text::as_str).collect();
    if !missing.is_empty() {
        return Some(format!("not found statuses of containers {}", missing.join(", ")));
    }
    last.iter().find_map(|(name, last)| {
        let status = status(pod, name)?;
        let wanted = pod.spec.containers.iter().find(|container| container.name == *name)?;
        if status.image_id == last.image_id && !image::is_same(&status.image, &wanted.image) {
            return Some(format!("container {name} imageID not changed"));
        }
        runs_another(status, wanted, meta.as_ref(), others)
            .then(|| format!("container {name} runs {}, not {} yet", status.image, wanted.image))
    })
}

/// Whether it can be told that a container runs another image than the pod wants.
fn runs_another(
    status: &ContainerStatus,
    wanted: &Container,
    meta: Option<&RuntimeMeta>,
    others: &OtherImages,
) -> bool {
    let entry =
        meta.and_then(|meta| meta.of(&status.name)).filter(|entry| entry.container_id == status.container_id);
    if let Some(entry) = entry {
        return entry.hashes.plain != plain_hash(wanted);
    }
    let is_other =
        |other: &Text| image::is_same(other, &status.image) && !image::is_same(other, &wanted.image);
    others.get(&status.name).is_some_and(|others| others.iter().any(is_other))
}

fn status<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    pod.status.container_statuses.iter().find(|status| status.name == *name)
}

/// Why new amounts of cpu and memory are not in force yet. Only containers that were changed are asked.
fn resize_problem(pod: &Pod, state: &State) -> Option<String> {
    let changed: BTreeSet<&Text> =
        state.container_batches_record.iter().flat_map(|batch| &batch.containers).collect();
    pod.spec.containers.iter().filter(|container| changed.contains(&container.name)).find_map(|container| {
        let has = status(pod, &container.name).and_then(|status| status.resources.as_ref());
        let wanted = [
            (&container.resources.requests, has.map(|has| &has.requests), "requests"),
            (&container.resources.limits, has.map(|has| &has.limits), "limits"),
        ];
        wanted.into_iter().find_map(|(wanted, has, member)| {
            wanted.iter().find_map(|(name, amount)| {
                let present = has.and_then(|has| has.get(name));
                let in_force = present.is_some_and(|present| batch::is_same_amount(present, amount));
                (!in_force).then(|| {
                    let present = present.map_or("none", Text::as_str);
                    format!("container {} has {name} {member} {present}, not {amount} yet", container.name)
                })
            })
        })
    })
}

/// What the node daemon tells about the containers of a pod.
#[derive(Deserialize)]
struct RuntimeMeta {
    #[serde(default, deserialize_with = "or_default")]
    containers: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    name: Text,
    #[serde(default, rename = "containerID")]
    container_id: Text,
    #[serde(default)]
    hashes: Hashes,
}

#[derive(Deserialize, Default)]
struct Hashes {
    #[serde(default, rename = "plainHash")]
    plain: u64,
    #[serde(default, rename = "extractedEnvFromMetadataHash")]
    env: u64,
}

impl RuntimeMeta {
    /// One that cannot be read is none: the daemon may be newer or broken.
    fn read(pod: &Pod) -> Option<Self> {
        serde_json::from_str(pod.metadata.annotations.text(annotations::RUNTIME_CONTAINERS_META)?).ok()
    }

    fn of(&self, name: &str) -> Option<&Entry> {
        self.containers.iter().find(|entry| entry.name == *name)
    }

    fn is_consistent(&self, pod: &Pod, matches: &dyn Fn(&Entry, &Container) -> bool) -> bool {
        pod.spec.containers.iter().all(|container| {
            let (Some(status), Some(entry)) = (status(pod, &container.name), self.of(&container.name)) else {
                return false;
            };
            status.container_id == entry.container_id && matches(entry, container)
        })
    }
}

/// The fingerprint that a kubelet gives to a container since Kubernetes 1.31.
fn plain_hash(container: &Container) -> u64 {
    let text = canonical_json::text(&serde_json::json!({"image": container.image, "name": container.name}));
    hash::of_json(&text).into()
}
