//! Which changes a job has to answer.

use std::collections::BTreeSet;

use kruise_api::imagepulljob::v1beta1::ImagePullJob;

use crate::{
    nodeimage::{Answer, NodeImage, TagOwner},
    object::ObjectKey,
};

/// Whether a change of a job is more than counts that the job wrote itself.
pub fn is_news(old: &ImagePullJob, new: &ImagePullJob) -> bool {
    let facts = |job: &ImagePullJob| {
        let completed = job.status.as_ref().and_then(|status| status.completion_time);
        (job.metadata.uid.clone(), job.metadata.generation, completed, job.metadata.finalizers.clone())
    };
    facts(old) != facts(new)
        || old.metadata.deletion_timestamp.is_some() != new.metadata.deletion_timestamp.is_some()
}

/// The jobs for which a change of a NodeImage is news: a node is done with their tag, or lost it, or lost a secret.
pub fn jobs_with_news(old: &NodeImage, new: &NodeImage) -> BTreeSet<ObjectKey> {
    let mut keys = BTreeSet::new();
    for (name, image) in old.images() {
        let now = new.image(name);
        let lost_secret =
            now.is_some_and(|now| image.pull_secrets.iter().any(|secret| !now.pull_secrets.contains(secret)));
        for tag in &image.tags {
            let now = now.and_then(|now| now.tag(&tag.tag)).map(|(_, tag)| tag);
            let before = end(old.answer(name, tag));
            for owner in tag.owner_references.iter().filter(|owner| owner.is_job()) {
                let is_same = now.is_some_and(|now| {
                    now.is_wanted_by(&owner.uid) && !lost_secret && end(new.answer(name, now)) == before
                });
                if !is_same {
                    keys.insert(owner.key());
                }
            }
        }
    }
    // A tag that came in and was done before anybody looked.
    for (name, tag) in new.tags().filter(|(name, tag)| new.answer(name, tag).is_final()) {
        let before = old.image(name).and_then(|image| image.tag(&tag.tag));
        let is_new = |uid: &str| before.is_none_or(|(_, before)| !before.is_wanted_by(uid));
        let owners = tag.owner_references.iter().filter(|owner| owner.is_job() && is_new(&owner.uid));
        keys.extend(owners.map(TagOwner::key));
    }
    keys
}

fn end(answer: Answer) -> Option<Answer> {
    Some(answer).filter(|answer| answer.is_final())
}
