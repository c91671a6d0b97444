//! When images are pulled to nodes ahead of an update.

use kruise_api::{gates::Gate, int_or_percent::Rounding};

use super::{Purpose, view::View};
use crate::{
    availability,
    plan::{Part, Plan},
    pod::Metadata,
    pre_download::{Rollout, Step, Wishes, clean_up, next},
    revision::Revision,
};

pub(super) fn run(view: &View<'_>) -> Plan<Purpose> {
    let mut plan = Plan::default();
    if !view.gate(Gate::PreDownloadImageForDaemonSetUpdate) || !view.gate(Gate::KruiseDaemon) {
        return plan;
    }
    let mut jobs: Vec<&Metadata> = view.seen.jobs.iter().map(AsRef::as_ref).collect();
    jobs.sort_by(|left, right| left.name.cmp(&right.name));
    let stands_for = || {
        let wanted = view.places.values().filter(|place| place.fit.should_run);
        wanted.filter_map(|place| place.pods.first()).filter(|pod| view.is_updated(pod))
    };
    if stands_for().count() == view.limits.desired {
        jobs.retain(|job| job.controller().is_some_and(|owner| owner.uid == view.set.uid));
        for effect in clean_up(&jobs) {
            plan.add(effect, Purpose::Quiet(Part::Housekeeping), "the update is complete");
        }
        return plan;
    }
    let total = u32::try_from(view.limits.desired).unwrap_or(u32::MAX);
    let wishes = Wishes::of(view.seen.set.metadata.annotations.as_ref());
    let ready = stands_for().filter(|pod| availability::is_ready(pod)).count();
    let wanted = wishes.min_updated_ready.as_ref().and_then(|share| share.parse().ok());
    let wanted = wanted.map_or(0, |share| share.of(total, Rounding::Up));
    if wanted > i64::try_from(ready).unwrap_or(i64::MAX) {
        return plan;
    }
    let update = &view.revisions.shared.update;
    let before: Vec<&Revision> =
        view.revisions.shared.all.iter().copied().filter(|one| one.name() != update.name()).collect();
    let in_one_go = view.limits.partition == 0 && view.limits.max_unavailable >= view.limits.desired;
    let rollout = Rollout {
        owner: &view.set,
        selector: &view.desired.selector,
        is_worth_it: view.desired.rolling.is_some() && !in_one_go && !before.is_empty(),
        before: &before,
        update,
        parallelism: wishes.parallelism,
        timeout_seconds: wishes.timeout_seconds,
    };
    match next(&rollout, &jobs) {
        Step::Nothing => {}
        Step::Label(effect) => plan.add(effect, Purpose::Quiet(Part::Housekeeping), "remembered for later"),
        Step::Create(jobs) => {
            for job in jobs {
                let purpose = Purpose::PullImage { job: job.name, image: job.image };
                plan.add(job.effect, purpose, "images are pulled ahead of the update");
            }
        }
    }
    plan
}
