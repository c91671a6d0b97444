//! When images are pulled ahead of an update of a CloneSet.

use kruise_api::{
    gates::Gate,
    int_or_percent::{IntOrString, Rounding},
    rollout::InPlaceUpdateStrategy,
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

pub(super) fn run(view: &View<'_>, revisions: &Revisions<'_>) -> Plan {
    let mut plan = Plan::default();
    if !view.gate(Gate::PreDownloadImageForInPlaceUpdate) || !view.gate(Gate::KruiseDaemon) {
        return plan;
    }
    let mut jobs: Vec<&Metadata> = view.seen.jobs.iter().map(AsRef::as_ref).collect();
    jobs.sort_by(|left, right| left.name.cmp(&right.name));
    if revisions.current.name() == revisions.update.name() {
        jobs.retain(|job| job.controller().is_some_and(|owner| owner.uid == view.set.uid));
        for effect in clean_up(&jobs) {
            plan.add(effect, Purpose::Quiet(Part::Housekeeping), "the update is complete");
        }
        return plan;
    }
    let settings = Settings::of(view);
    if settings.min_updated_ready > updated_ready(view, revisions) {
        return plan;
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
            plan.add(effect, Purpose::Quiet(Part::Housekeeping), "nothing is left to pull ahead");
        }
        Step::Create(jobs) => {
            for job in jobs {
                let purpose = Purpose::PullImage { job: job.name, image: job.image };
                plan.add(job.effect, purpose, "nodes pull the image ahead of the update");
            }
        }
    }
    plan
}

fn is_worth_it(view: &View<'_>, revisions: &Revisions<'_>) -> bool {
    let desired = view.desired;
    let in_one_go = desired.partition == 0 && max_unavailable(view) >= desired.replicas;
    !matches!(desired.policy, None | Some(Policy::ReCreate))
        && desired.replicas > FEW
        && !in_one_go
        && in_place::compare(&revisions.current, &revisions.update, &desired.in_place).is_some()
}

/// Rounded down, whatever the surge is.
fn max_unavailable(view: &View<'_>) -> i64 {
    let rolling =
        view.seen.set.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    let share = rolling.and_then(|rolling| rolling.max_unavailable.clone()).unwrap_or_else(|| "20%".into());
    share.parse().map_or(0, |share| share.of(replicas(view), Rounding::Down))
}

fn replicas(view: &View<'_>) -> u32 {
    u32::try_from(view.desired.replicas).unwrap_or(0)
}

fn updated_ready(view: &View<'_>, revisions: &Revisions<'_>) -> i64 {
    let status = view.seen.set.status.as_ref();
    let status = status.filter(|status| status.update_revision.as_deref() == Some(revisions.update.name()));
    status.map_or(0, |status| i64::from(status.updated_ready_replicas))
}

struct Settings {
    parallelism: Option<IntOrString>,
    timeout_seconds: Option<i32>,
    min_updated_ready: i64,
}

impl Settings {
    /// Fields count before annotations, which v1alpha1 has.
    fn of(view: &View<'_>) -> Self {
        let set = &view.seen.set;
        let rolling = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        let strategy = rolling.and_then(|rolling| rolling.in_place_update_strategy.clone());
        let InPlaceUpdateStrategy {
            image_pre_download_parallelism,
            image_pre_download_timeout_seconds,
            image_pre_download_min_updated_ready_pods,
            ..
        } = strategy.unwrap_or_default();
        let wishes = Wishes::of(set.metadata.annotations.as_ref());
        let minimum = || Some(wishes.min_updated_ready?.parse().ok()?.of(replicas(view), Rounding::Up));
        Self {
            parallelism: image_pre_download_parallelism.or(wishes.parallelism),
            timeout_seconds: image_pre_download_timeout_seconds.or(wishes.timeout_seconds),
            min_updated_ready: image_pre_download_min_updated_ready_pods
                .map(i64::from)
                .or_else(minimum)
                .unwrap_or(0),
        }
    }
}
