//! Why a job does not go on.

use kruise_api::broadcastjob::v1beta1::Status;

use super::{
    Desired, Observed,
    pods::{Bucket, Misfits, Standing},
};
use crate::{
    in_place::{Options, OtherImages},
    pod::Pod,
    waiting::{self, Hooks, Reason, Waits},
};

/// Trouble of nodes and pods, limits of the user, and nodes that do not fit. A job that has ended waits for nothing.
pub(super) fn of(seen: &Observed, desired: &Desired, standing: &Standing<'_>, status: &Status) -> Waits {
    let mut waits = Waits::default();
    if status.completion_time.is_some() {
        return waits;
    }
    troubles(seen, standing, &mut waits);
    limits(desired, standing, &mut waits);
    waits
}

/// Trouble of the pods that the job waits for.
fn troubles(seen: &Observed, standing: &Standing<'_>, waits: &mut Waits) {
    let is_down = |pod: &Pod| {
        let place = standing.nodes.binary_search_by(|(node, _)| node.metadata.name.cmp(pod.node()));
        let found = place.ok().and_then(|place| standing.nodes.get(place));
        found.is_some_and(|(node, _)| node.status.ready_since.is_none())
    };
    let mut all = (Vec::new(), Vec::new(), Vec::new());
    for one in &standing.pods {
        match one.bucket {
            Bucket::Active | Bucket::Ignored if is_down(one.pod) => all.0.push(one.pod),
            Bucket::Active => all.1.push(one.pod),
            Bucket::Ignored => all.2.push(one.pod),
            Bucket::Succeeded | Bucket::Failed | Bucket::RestartedTooOften => {}
        }
    }
    let (down, active, ending) = all;
    waiting::unready_nodes(&down, seen.now, waits);
    let (options, others) = (Options::default(), OtherImages::new());
    let hooks = Hooks { lifecycle: None, options: &options, others: &others };
    waiting::pods(&active, &ending, &hooks, seen.now, waits);
}

/// What the user wants so, and nodes that do not fit.
fn limits(desired: &Desired, standing: &Standing<'_>, waits: &mut Waits) {
    let active = standing.counts().active;
    let missing = standing.without_pod().count();
    let limit = desired.parallelism.of(standing.nodes.len());
    if standing.nodes.is_empty() {
        let Misfits { labels, taints, size } = standing.misfits;
        let all = standing.all_nodes;
        let sentence = format!(
            "no node fits: of {all} nodes {labels} do not match nodeSelector or affinity, {taints} have taints that are \
             not tolerated, {size} are too small"
        );
        waits.add(Reason::NodeNotEligible, sentence);
    }
    if missing == 0 {
        return;
    }
    if desired.paused {
        let (nodes, verb) = if missing == 1 { ("node", "has") } else { ("nodes", "have") };
        let sentence = format!(
            "the job is paused (spec.paused: true) and {missing} {nodes} {verb} no pod yet; set it to false to continue"
        );
        waits.add(Reason::Paused, sentence);
    } else if active >= limit {
        let written = desired.parallelism.written();
        let sentence = format!(
            "{active} of at most {limit} run at once (parallelism: {written}); {missing} still to come"
        );
        waits.add(Reason::ParallelismReached, sentence);
    }
}
