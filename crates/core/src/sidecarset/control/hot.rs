//! Hot upgrades: of two containers one works and the other one has an empty image. An upgrade gives the new image to the
//! idle one; once that is ready, the old one becomes the idle one.
//!
//! Each step is one write of a pod and is found again from what the pod says: its images, which twin works, and what became
//! of the containers.

use super::{Desired, pods::Member};
use crate::{
    availability::is_running_and_ready,
    sidecarset::containers::{Sidecar, Upgrade, twins},
};

/// The two containers of a sidecar in a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Twins {
    /// The one that works, or is about to.
    pub(super) working: String,
    /// The other one.
    pub(super) idle: String,
}

/// What an update does to the containers of a sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Its image is there already.
    Stay,
    /// One twin gets the new image and works from now on.
    Forward {
        /// The twin that gets the image.
        new: String,
        /// The twin that served so far.
        old: String,
    },
    /// The twin that still serves has the wanted image: the other one, which never became ready, is given up.
    Back {
        /// The twin that works from now on.
        serving: String,
        /// The twin that is given up.
        failed: String,
    },
}

/// The containers of a hot sidecar in a pod.
pub(super) fn of(member: &Member<'_>, sidecar: &Sidecar<'_>) -> Twins {
    let [first, second] = twins(sidecar.name);
    if member.working.get(sidecar.name) == Some(&first) {
        Twins { working: first, idle: second }
    } else {
        Twins { working: second, idle: first }
    }
}

/// Hot sidecars with their empty images.
pub(super) fn sidecars<'d, 'a>(desired: &'d Desired<'a>) -> impl Iterator<Item = (&'d Sidecar<'a>, &'a str)> {
    desired.sidecars.iter().filter_map(|sidecar| match sidecar.upgrade {
        Upgrade::Hot { empty_image } => Some((sidecar, empty_image)),
        Upgrade::Cold => None,
    })
}

/// Whether an idle twin of a pod has not its empty image yet.
pub(super) fn is_under_way(member: &Member<'_>, desired: &Desired<'_>) -> bool {
    sidecars(desired).any(|(sidecar, empty)| member.image(&of(member, sidecar).idle) != empty)
}

/// Whether the idle twins of a pod can be made empty: those that work are ready with their images.
pub(super) fn is_reset_due(member: &Member<'_>, desired: &Desired<'_>) -> bool {
    let idle: Vec<String> = sidecars(desired).map(|(sidecar, _)| of(member, sidecar).idle).collect();
    let is_idle = |name: &str| idle.iter().any(|idle| idle == name);
    let others: Vec<&str> = desired.names.iter().map(String::as_str).filter(|name| !is_idle(name)).collect();
    let statuses = &member.pod.status.container_statuses;
    is_under_way(member, desired)
        && member.runs(&others)
        && (is_running_and_ready(member.pod)
            || statuses.iter().all(|status| status.ready || is_idle(&status.name)))
}

/// Whether a pod counts as updated although a twin works that cannot, while the other one serves with the wanted image.
/// Pods come to this when others take an upgrade back half-way.
pub(super) fn is_stuck(member: &Member<'_>, desired: &Desired<'_>) -> bool {
    let is_stuck = |sidecar: &Sidecar<'_>| {
        let Twins { working, idle } = of(member, sidecar);
        member.image(&working) != sidecar.image
            && matches!(turn(member, sidecar), Turn::Back { serving, .. } if serving == idle)
    };
    member.is_updated && sidecars(desired).any(|(sidecar, _)| is_stuck(sidecar))
}

/// What an update does to the containers of a sidecar.
pub(super) fn turn(member: &Member<'_>, sidecar: &Sidecar<'_>) -> Turn {
    let Upgrade::Hot { empty_image } = sidecar.upgrade else { return Turn::Stay };
    let [first, second] = twins(sidecar.name);
    let forward = |new: String, old: String| {
        if member.image(&old) == sidecar.image { Turn::Stay } else { Turn::Forward { new, old } }
    };
    if member.image(&first) == empty_image {
        return forward(first, second);
    }
    if member.image(&second) == empty_image {
        return forward(second, first);
    }
    let (failed, serving) = match (member.is_healthy(&first), member.is_healthy(&second)) {
        (true, false) => (second, first),
        (false, true) => (first, second),
        _ => {
            let Twins { working, idle } = of(member, sidecar);
            return forward(idle, working);
        }
    };
    if member.image(&serving) == sidecar.image {
        Turn::Back { serving, failed }
    } else {
        Turn::Forward { new: failed, old: serving }
    }
}
