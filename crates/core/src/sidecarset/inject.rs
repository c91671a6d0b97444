//! Adding sidecars to a new pod.
//!
//! What containers share with the pod is taken from the pod as it arrived, so sidecars of several sets do not see each
//! other, whatever their order. Doing it twice is as good as once: a container that is there already is replaced.

mod build;
mod merge;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::{
    annotations::{
        SIDECARSET_HASH, SIDECARSET_HASH_WITHOUT_IMAGE, SIDECARSET_INJECTED_LIST,
        SIDECARSET_WORKING_HOT_UPGRADE_CONTAINER,
    },
    int_or_percent::Rounding,
    json,
};
use serde_json::Value;

use super::{
    Content, Set,
    compiled::Pods,
    metadata,
    record::{self, Entries, Entry},
    resources,
};
use crate::pod::Pairs;

/// The mark of a pod that a kubelet made from a file. The server has no say about such pods, only about their images in it.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// How finely a share of new pods is drawn.
const DRAWS: u32 = 1_000_000;

/// What injection may know.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// The sets that may be about the pod, as [the index](super::Sets::about) tells. Their order does not matter.
    pub sets: &'a [&'a Arc<Set>],
    /// The namespace of the pod.
    pub namespace: &'a str,
    /// The labels of that namespace, if it is known.
    pub namespace_labels: Option<&'a Pairs>,
    /// Gate `EnableSortSidecarContainerByName`.
    pub sorts_by_name: bool,
    /// The time.
    pub now: Timestamp,
    /// Draws pods that get an older revision. It must differ from pod to pod.
    pub seed: u64,
}

/// Why a pod is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Whether a set is about the pod depends on a namespace that is not known. Read it from the server and try again.
    #[error("namespace {0:?} is not known, and a sidecarset depends on its labels")]
    Namespace(String),
    /// The revision that pods should get is not there.
    #[error("{0}")]
    Revision(String),
    /// An annotation cannot be merged.
    #[error(transparent)]
    Metadata(#[from] metadata::NotJson),
    /// Resources cannot be computed.
    #[error(transparent)]
    Resources(#[from] resources::Error),
    /// An annotation of ours that cannot be read.
    #[error("pod({pod}) invalid annotations[{key}] value {value}, unmarshal failed: {message}")]
    Record {
        /// Namespace and name.
        pod: String,
        /// The annotation.
        key: &'static str,
        /// What it says.
        value: String,
        /// What is wrong with it.
        message: String,
    },
    /// The pod itself cannot be read; the server will say more.
    #[error("{0} of the pod is not what it should be")]
    Shape(&'static str),
}

/// What one set adds to one pod.
struct Share<'a> {
    set: &'a Set,
    content: &'a Content,
}

/// Adds the sidecars of all sets that are about a new pod. False when it was left as it is.
///
/// On an error the pod may be changed already, and must not be used.
pub fn inject(pod: &mut Value, seen: &Seen<'_>) -> Result<bool, Error> {
    if is_left_alone(pod) {
        return Ok(false);
    }
    let shares = shares(pod, seen)?;
    if shares.is_empty() {
        return Ok(false);
    }
    let mut changed = false;
    for share in &shares {
        changed |= patch_metadata(pod, share.content)?;
    }
    let built = build::sidecars(pod, &shares)?;
    if built.containers.is_empty() && built.init_containers.is_empty() {
        return Ok(changed);
    }
    let annotations = annotations(pod, seen, &shares, &built)?;
    merge::into_pod(pod, built, seen.sorts_by_name)?;
    let present = json::object_or_insert(pod, &["metadata", "annotations"]);
    let present = present.ok_or(Error::Shape("metadata.annotations"))?;
    present.extend(annotations.into_iter().map(|(key, value)| (key, value.into())));
    Ok(true)
}

/// Pods that are over, or that the server only mirrors.
fn is_left_alone(pod: &Value) -> bool {
    let phase = json::text(pod, &["status", "phase"]);
    matches!(phase, Some("Succeeded" | "Failed"))
        || json::at(pod, &["metadata", "deletionTimestamp"]).is_some()
        || annotation(pod, MIRROR).is_some()
}

fn annotation<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    json::text(pod, &["metadata", "annotations", key])
}

fn label<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    json::text(pod, &["metadata", "labels", key])
}

/// The sets that are about the pod, each with what it gives, without those that a canary stands in for.
fn shares<'a>(pod: &Value, seen: &Seen<'a>) -> Result<Vec<Share<'a>>, Error> {
    let mut shares = Vec::new();
    let labels = json::at(pod, &["metadata", "labels"]).and_then(Value::as_object);
    for set in seen.sets {
        let label = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
        if set.is_paused || !set.matching.selects(label) {
            continue;
        }
        if set.matching.chooses_namespaces() {
            let labels = seen.namespace_labels.ok_or_else(|| Error::Namespace(seen.namespace.to_owned()))?;
            if !set.matching.covers(|key| labels.text(key)) {
                continue;
            }
        }
        shares.push(Share { set, content: content(set, pod, seen.seed)? });
    }
    shares.sort_by(|left, right| left.set.name.cmp(&right.set.name));
    let bases: BTreeSet<&str> = shares.iter().filter_map(|share| share.set.base.as_deref()).collect();
    if !bases.is_empty() {
        shares.retain(|share| !bases.contains(share.set.name.as_str()));
    }
    Ok(shares)
}

/// What a pod gets from a set: its spec as it is, or a fixed revision.
fn content<'a>(set: &'a Set, pod: &Value, seed: u64) -> Result<&'a Content, Error> {
    let Some(chosen) = &set.chosen else { return Ok(&set.current) };
    let content = chosen.content.as_ref().map_err(|error| Error::Revision(error.clone()))?;
    let is_fixed = match &chosen.pods {
        Pods::All => true,
        Pods::Some { selector: Some(selector), .. } if !selector.accepts(|key| label(pod, key)) => true,
        Pods::Some { share: Some(share), .. } => draw(seed, &set.name) < share.of(DRAWS, Rounding::Down),
        Pods::Some { share: None, .. } => false,
    };
    Ok(if is_fixed { content } else { &set.current })
}

/// A number below [`DRAWS`] that differs with the seed and with the set.
fn draw(seed: u64, set: &str) -> u32 {
    let mixed =
        set.bytes().fold(seed, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // The last step of SplitMix64: neighbouring seeds give numbers far apart.
    let mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    u32::try_from((mixed ^ (mixed >> 31)) % u64::from(DRAWS)).unwrap_or(0)
}

fn patch_metadata(pod: &mut Value, content: &Content) -> Result<bool, Error> {
    let changes = metadata::changes(&content.patches, |key| annotation(pod, key))?;
    if changes.is_empty() {
        return Ok(false);
    }
    let present = json::object_or_insert(pod, &["metadata", "annotations"]);
    let present = present.ok_or(Error::Shape("metadata.annotations"))?;
    present.extend(changes.into_iter().map(|(key, value)| (key, value.into())));
    Ok(true)
}

/// What the pod records about its sidecars.
fn annotations(
    pod: &Value,
    seen: &Seen<'_>,
    shares: &[Share<'_>],
    built: &build::Built,
) -> Result<BTreeMap<String, String>, Error> {
    let mut full = entries(pod, seen, SIDECARSET_HASH)?;
    let mut without_image = entries(pod, seen, SIDECARSET_HASH_WITHOUT_IMAGE)?;
    let mut names: BTreeSet<&str> =
        record::injected(annotation(pod, SIDECARSET_INJECTED_LIST).unwrap_or_default()).collect();
    for Share { set, content } in shares {
        let entry =
            |hash: &str, revision: &str| Entry::new(&set.name, hash, &content.recorded, revision, seen.now);
        names.insert(&set.name);
        full.insert(set.name.to_string(), entry(&content.hashes.full, &content.revision));
        without_image.insert(set.name.to_string(), entry(&content.hashes.without_image, ""));
    }
    let mut written = built.annotations.clone();
    written.insert(SIDECARSET_HASH.to_owned(), record::write(&full));
    written.insert(SIDECARSET_HASH_WITHOUT_IMAGE.to_owned(), record::write(&without_image));
    written.insert(SIDECARSET_INJECTED_LIST.to_owned(), names.into_iter().collect::<Vec<_>>().join(","));
    if !built.working.is_empty() {
        let key = SIDECARSET_WORKING_HOT_UPGRADE_CONTAINER;
        let mut working = record::working(annotation(pod, key).unwrap_or_default());
        working.extend(built.working.iter().map(|(name, twin)| (name.clone(), twin.clone())));
        written.insert(key.to_owned(), record::write_working(&working));
    }
    Ok(written)
}

fn entries(pod: &Value, seen: &Seen<'_>, key: &'static str) -> Result<Entries, Error> {
    let Some(text) = annotation(pod, key).filter(|text| !text.is_empty()) else { return Ok(Entries::new()) };
    record::read(text).map_err(|error| Error::Record {
        pod: format!("{}/{}", seen.namespace, json::text(pod, &["metadata", "name"]).unwrap_or_default()),
        key,
        value: text.to_owned(),
        message: error.to_string(),
    })
}

#[cfg(test)]
mod tests;
