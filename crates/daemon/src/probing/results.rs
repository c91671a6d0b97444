//! What probes found, as it is written into the NodePodProbe.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    nodepodprobe::v1alpha1::{PodProbeStatus, ProbeState, Spec, Status},
    time::Time,
};

use super::{Id, Record};

/// After this time an unchanged result is written again, so that people see that the probe still runs.
const CONFIRM_AFTER: SignedDuration = SignedDuration::from_secs(600);

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// State or message are new: people hear of it.
    Changed,
    /// The same again after a long time.
    Confirmed,
    /// Nothing.
    Unchanged,
}

/// What all probes of the node found. Pods are known by uid, so that a namesake has its own results.
#[derive(Clone, Debug, Default)]
pub struct Results(BTreeMap<(String, String), ProbeState>);

impl Results {
    /// What stands in a status: results outlive the daemon.
    pub fn read(status: Option<&Status>) -> Self {
        let mut results = BTreeMap::new();
        for pod in status.into_iter().flat_map(|status| &status.pod_probe_statuses) {
            for state in &pod.probe_states {
                results.insert((pod.uid.clone(), state.name.clone()), state.clone());
            }
        }
        Self(results)
    }

    /// What a probe found last.
    pub fn of(&self, id: &Id) -> Option<&ProbeState> {
        self.0.get(&(id.uid.clone(), id.probe.clone()))
    }

    /// Takes a record.
    pub fn record(&mut self, id: &Id, record: &Record, now: Timestamp) -> Written {
        let key = (id.uid.clone(), id.probe.clone());
        let before = self.0.get(&key);
        let message = Some(record.message.clone()).filter(|message| !message.is_empty());
        let same_state = before.is_some_and(|before| before.state == record.state);
        let same = same_state && before.is_some_and(|before| before.message == message);
        let told = before.and_then(|before| before.last_probe_time);
        if same && told.is_some_and(|told| now.duration_since(told.0) < CONFIRM_AFTER) {
            return Written::Unchanged;
        }
        let since = before.filter(|_| same_state).and_then(|before| before.last_transition_time);
        let state = ProbeState {
            name: id.probe.clone(),
            state: record.state.clone(),
            last_probe_time: Some(Time(now)),
            last_transition_time: Some(since.unwrap_or(Time(now))),
            message,
        };
        self.0.insert(key, state);
        if same { Written::Confirmed } else { Written::Changed }
    }

    /// Forgets probes that nobody wants.
    pub fn keep(&mut self, spec: &Spec) {
        let wanted: BTreeSet<(String, String)> = spec
            .pod_probes
            .iter()
            .flat_map(|pod| pod.probes.iter().map(|probe| (pod.uid.clone(), probe.name.clone())))
            .collect();
        self.0.retain(|key, _| wanted.contains(key));
    }

    /// The status: results of wanted probes, in the order of the spec.
    pub fn status(&self, spec: &Spec) -> Status {
        let mut pods: Vec<PodProbeStatus> = Vec::new();
        for pod in &spec.pod_probes {
            let states = pod
                .probes
                .iter()
                .filter_map(|probe| self.0.get(&(pod.uid.clone(), probe.name.clone())).cloned());
            let probe_states: Vec<ProbeState> = states.collect();
            if !probe_states.is_empty() {
                pods.push(PodProbeStatus {
                    name: pod.name.clone(),
                    namespace: pod.namespace.clone(),
                    uid: pod.uid.clone(),
                    probe_states,
                });
            }
        }
        Status { pod_probe_statuses: pods }
    }
}
