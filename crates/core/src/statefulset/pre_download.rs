//! When images are pulled ahead of an update of a StatefulSet.

use kruise_api::{
    gates::Gate,
    int_or_percent::{IntOrString, Rounding},
};

use super::{Plan, Purpose, view::View};
use crate::{
    in_place,
    plan::Part,
    pod::Metadata,
    pre_download::{Rollout, Step, Wishes, clean_up, next},
    revision::Revisions,
    strategy::Policy,
};

/// An update of so few pods is over before a pull would be.
const FEW: i64 = 3;

pub(super) fn run(view: &View<'_>, revisions: &Revisions<'_>, plan: &mut Plan) {
    if !view.gate(Gate::PreDownloadImageForInPlaceUpdate) || !view.gate(Gate::KruiseDaemon) {
        return;
    }
    let mut jobs: Vec<&Metadata> = view.seen.jobs.iter().map(AsRef::as_ref).collect();
    jobs.sort_by(|left, right| left.name.cmp(&right.name));
    if revisions.current.name() == revisions.update.name() {
        jobs.retain(|job| job.controller().is_some_and(|owner| owner.uid == view.set.uid));
        for effect in clean_up(&jobs) {
            plan.add(effect, Purpose::Quiet(Part::Housekeeping), "the update is complete");
        }
        return;
    }
    let settings = settings(view);
    if settings.min_updated_ready > updated_ready(view, revisions) {
        return;
    }
    let rollout = Rollout {
        owner: &view.set,
        selector: &view.desired.selector,
        before: &[&revisions.current],
        update: &revisions.update,
        is_worth_it: is_worth_it(view, revisions),
        parallelism: settings.parallelism,
        timeout_seconds: settings.timeout_seconds,
    };
    match next(&rollout, &jobs) {
        Step::Nothing => {}
        Step::Label(effect) => {
            plan.add(effect, Purpose::Quiet(Part::Housekeeping), "images are pulled ahead");
        }
        Step::Create(jobs) => {
            for job in jobs {
                let purpose = Purpose::PullImage { job: job.name, image: job.image };
                plan.add(job.effect, purpose, "images are pulled ahead");
            }
        }
    }
}

fn is_worth_it(view: &View<'_>, revisions: &Revisions<'_>) -> bool {
    let desired = view.desired;
    let in_one_go = desired.partition == 0 && desired.max_unavailable >= desired.replicas;
    !matches!(desired.policy, None | Some(Policy::ReCreate))
        && desired.replicas > FEW
        && !in_one_go
        && in_place::compare(&revisions.current, &revisions.update, &desired.in_place).is_some()
}

fn updated_ready(view: &View<'_>, revisions: &Revisions<'_>) -> i64 {
    let status = view.seen.set.status.as_ref();
    let status = status.filter(|status| status.update_revision.as_deref() == Some(revisions.update.name()));
    status.map_or(0, |status| i64::from(status.updated_ready_replicas.unwrap_or(0)))
}

struct Settings {
    parallelism: Option<IntOrString>,
    timeout_seconds: Option<i32>,
    min_updated_ready: i64,
}

/// Fields count before annotations, which are all that the original reads.
fn settings(view: &View<'_>) -> Settings {
    let set = &view.seen.set;
    let rolling = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    let fields = rolling.and_then(|rolling| rolling.in_place_update_strategy.clone()).unwrap_or_default();
    let wishes = Wishes::of(set.metadata.annotations.as_ref());
    let replicas = u32::try_from(view.desired.replicas).unwrap_or(0);
    let minimum = || Some(wishes.min_updated_ready?.parse().ok()?.of(replicas, Rounding::Up));
    Settings {
        parallelism: fields.image_pre_download_parallelism.or(wishes.parallelism),
        timeout_seconds: fields.image_pre_download_timeout_seconds.or(wishes.timeout_seconds),
        min_updated_ready: fields
            .image_pre_download_min_updated_ready_pods
            .map(i64::from)
            .or_else(minimum)
            .unwrap_or(0),
    }
}
