//! Which steps of our own workloads take a pod out of service. A pod is made not ready by a write of its status, which
//! admission does not see, and a pod that is not ready passes: so the budget is asked before the first of these writes.

use kruise_api::{
    gates::{Gate, Gates},
    podunavailablebudget::v1beta1::Operation,
};

use super::Kind;
use crate::{
    effect::Effect,
    lifecycle::{self, Prepared},
    object::ObjectKey,
    plan::{Purpose, Step},
};

/// What a step does to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disruption<'s> {
    /// The pod.
    pub pod: &'s ObjectKey,
    /// What is done to it.
    pub operation: Operation,
    /// Where it is recorded.
    pub record: Kind,
}

/// What a step does to a pod, if budgets are asked about it: updates, and hooks that make pods not ready. Plain deletions are
/// left to admission.
pub fn disruption<'s, P: Purpose>(step: &'s Step<P>, gates: &Gates) -> Option<Disruption<'s>> {
    let (Effect::Patch { target, .. } | Effect::Delete { target, .. }) = &step.effect else { return None };
    let operation = match lifecycle::prepares(&step.effect) {
        Some(Prepared::Deletion) => Operation::Delete,
        Some(Prepared::Update) => Operation::Update,
        None => step.purpose.takes_down().map(|_| Operation::Update)?,
    };
    let gate = match operation {
        Operation::Delete => Gate::PodUnavailableBudgetDeleteGate,
        _ => Gate::PodUnavailableBudgetUpdateGate,
    };
    // A pod that waits for its hook is not deleted yet: its record must not end with a warning that it is still there.
    gates.enabled(gate).then_some(Disruption { pod: &target.key, operation, record: Kind::Unavailable })
}

#[cfg(test)]
mod tests {
    use kruise_api::lifecycle::Hook;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        cloneset::Purpose,
        plan::Part,
        pod::Pod,
        pod_deletion,
        readiness::{self, Reason},
    };

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "web-0", "namespace": "shop", "uid": "u", "labels": {"h": "true"}},
            "spec": {"readinessGates": [{"conditionType": "KruisePodReady"}]},
            "status": {"conditions": [{"type": "KruisePodReady", "status": "True"}]},
        }))
        .unwrap()
    }

    fn hook(marks: bool) -> Hook {
        let hook: Value = json!({"labelsHandler": {"h": "true"}, "markPodNotReady": marks});
        serde_json::from_value(hook).unwrap()
    }

    /// What a budget is asked, with its gates for deletions and for updates open.
    #[track_caller]
    fn check(effect: Option<Effect>, purpose: Purpose, expected: Option<Operation>) {
        let step = Step { effect: effect.unwrap(), purpose, why: "a test".into() };
        let closed = Gates::default();
        let open = closed.clone().with(Gate::PodUnavailableBudgetUpdateGate);
        let asked = |gates: &Gates| disruption(&step, gates).map(|found| (found.operation, found.record));
        assert_eq!(asked(&open), expected.clone().map(|operation| (operation, Kind::Unavailable)));
        let always = expected.filter(|operation| *operation == Operation::Delete);
        assert_eq!(asked(&closed), always.map(|operation| (operation, Kind::Unavailable)));
    }

    #[test]
    fn budgets_are_asked_before_the_first_write_that_takes_a_pod_out_of_service() {
        let (pod, now) = (pod(), jiff::Timestamp::UNIX_EPOCH);
        let quiet = || Purpose::Quiet(Part::Update);
        let update = || Purpose::UpdateInPlace { pod: "web-0".into(), revision: "web-2".into() };
        check(lifecycle::prepare_delete(&pod, Some(&hook(true)), now), quiet(), Some(Operation::Delete));
        check(lifecycle::prepare_delete(&pod, Some(&hook(false)), now), quiet(), None);
        check(lifecycle::prepare_update(&pod, Some(&hook(true)), now), quiet(), Some(Operation::Update));
        check(lifecycle::prepare_update(&pod, Some(&hook(false)), now), quiet(), Some(Operation::Update));
        check(Some(lifecycle::patch(&pod, json!({"spec": {}}))), update(), Some(Operation::Update));
        // The webhook is asked about these.
        check(Some(pod_deletion::delete(&pod)), Purpose::DeletePod("web-0".into()), None);
        let request = Reason::new("ContainerRecreateRequest", "shop/crr");
        check(readiness::add(&pod, &request, now), quiet(), None);
    }
}
