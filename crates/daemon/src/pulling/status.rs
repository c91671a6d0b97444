//! How far the node is.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::{
    nodeimage::v1beta1::{FirstSyncState, FirstSyncStatus, ImageStatus, Phase, Spec, Status, TagStatus},
    time::Time,
};

use super::plan::{Place, finished, known, round_of};

/// The status, from what workers tell, and from what stands there for tags without one. What others write is kept.
pub fn status(
    spec: &Spec,
    before: Option<&Status>,
    workers: &BTreeMap<Place, TagStatus>,
    now: Timestamp,
) -> Status {
    let mut images: BTreeMap<String, ImageStatus> = BTreeMap::new();
    let mut status = Status::default();
    for (name, image) in &spec.images {
        let mut tags: Vec<TagStatus> = Vec::new();
        for tag in &image.tags {
            status.desired += 1;
            let place = Place { image: name.clone(), tag: tag.tag.clone() };
            let version = round_of(tag);
            let told = finished(before, &place, version)
                .or_else(|| workers.get(&place).filter(|told| told.version.unwrap_or(0) == version))
                .or_else(|| known(before, &place, version));
            tags.extend(told.cloned());
        }
        tags.sort_by(|a, b| a.tag.cmp(&b.tag));
        if !tags.is_empty() {
            images.insert(name.clone(), ImageStatus { tags });
        }
    }
    let count = |phase: Phase| {
        let all = images.values().flat_map(|image| &image.tags);
        i32::try_from(all.filter(|tag| tag.phase == phase).count()).ok()
    };
    status.succeeded = count(Phase::Succeeded);
    status.failed = count(Phase::Failed);
    status.pulling = count(Phase::Pulling);
    status.waiting = count(Phase::Waiting);
    status.image_statuses = images;
    status.first_sync_status =
        before.and_then(|before| before.first_sync_status.clone()).or_else(|| first_sync(&status, now));
    status
}

/// How the first list ended, once all of it is over.
fn first_sync(status: &Status, now: Timestamp) -> Option<FirstSyncStatus> {
    let (succeeded, failed) = (status.succeeded.unwrap_or(0), status.failed.unwrap_or(0));
    if status.desired == 0 || succeeded + failed != status.desired {
        return None;
    }
    let names = status.image_statuses.iter().flat_map(|(name, image)| {
        let failed = image.tags.iter().filter(|tag| tag.phase == Phase::Failed);
        failed.map(move |tag| super::full_reference(name, &tag.tag))
    });
    let names: Vec<String> = names.collect();
    Some(FirstSyncStatus {
        sync_at: Some(Time(now)),
        status: Some(if failed > 0 { FirstSyncState::Failed } else { FirstSyncState::Succeeded }),
        message: (!names.is_empty()).then(|| format!("failed to pull {}", names.join(", "))),
    })
}
