//! Which pulls begin and which end.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::nodeimage::v1beta1::{Image, Spec, Status, Tag, TagStatus};

/// An image and one of its tags.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The name of the image.
    pub image: String,
    /// The tag, or a digest.
    pub tag: String,
}

/// A tag with its round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// The image and the tag.
    pub place: Place,
    /// The round.
    pub version: i64,
}

/// Which pulls begin and which end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Workers that are not wanted any more; they end first.
    pub end: Vec<Place>,
    /// Workers that begin.
    pub begin: Vec<Round>,
}

/// Compares what is wanted with the workers that are there, given by the round each works on.
pub fn plan(spec: &Spec, status: Option<&Status>, workers: &BTreeMap<Place, i64>) -> Plan {
    let mut wanted = BTreeSet::new();
    let mut plan = Plan::default();
    for (name, image) in &spec.images {
        for tag in &image.tags {
            let place = Place { image: name.clone(), tag: tag.tag.clone() };
            let version = round_of(tag);
            if finished(status, &place, version).is_some() || !wanted.insert(place.clone()) {
                continue;
            }
            if workers.get(&place) != Some(&version) {
                plan.begin.push(Round { place, version });
            }
        }
    }
    let replaced = |place: &Place| plan.begin.iter().any(|round| round.place == *place);
    plan.end = workers.keys().filter(|place| !wanted.contains(*place) || replaced(place)).cloned().collect();
    plan
}

/// The round of a tag.
pub(super) fn round_of(tag: &Tag) -> i64 {
    tag.version.unwrap_or(0)
}

/// What the status says of a tag in this round.
pub(super) fn known<'a>(status: Option<&'a Status>, place: &Place, version: i64) -> Option<&'a TagStatus> {
    let tags = &status?.image_statuses.get(&place.image)?.tags;
    tags.iter().find(|known| known.tag == place.tag && known.version.unwrap_or(0) == version)
}

/// The same, if that round is over.
pub(super) fn finished<'a>(status: Option<&'a Status>, place: &Place, version: i64) -> Option<&'a TagStatus> {
    known(status, place, version).filter(|known| known.completion_time.is_some())
}

/// The tag of the spec that a worker works on.
pub(super) fn wanted<'a>(spec: &'a Spec, round: &Round) -> Option<(&'a Image, &'a Tag)> {
    let image = spec.images.get(&round.place.image)?;
    let tag = image.tags.iter().find(|tag| tag.tag == round.place.tag && round_of(tag) == round.version)?;
    Some((image, tag))
}
