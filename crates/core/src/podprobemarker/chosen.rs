//! Which pods a marker is about.

use std::sync::Arc;

use kruise_api::{
    podprobemarker::v1alpha1::{PodContainerProbe, PodProbeMarker},
    selector::Matcher,
};

use crate::{object::ObjectKey, pod::Pod};

/// A marker, ready to be compared with many pods.
#[derive(Clone, Debug)]
pub struct Marker {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Whether it counts.
    pub standing: Standing,
}

/// Whether a marker counts.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It does.
    Active {
        /// Its selector.
        matcher: Matcher,
        /// The whole of it.
        marker: Arc<PodProbeMarker>,
    },
    /// It is being deleted: its probes end.
    Leaving,
    /// What it wants cannot be told: what is there stays as it is.
    Unreadable,
}

impl Marker {
    /// The marker of this name. One that cannot be read is given as nothing.
    pub fn new(key: ObjectKey, is_deleting: bool, marker: Option<Arc<PodProbeMarker>>) -> Self {
        let matcher = |marker: &PodProbeMarker| marker.spec.selector.matcher().ok();
        let standing = match marker {
            _ if is_deleting => Standing::Leaving,
            // An empty selector chooses nothing: it would choose every pod of the namespace.
            Some(marker) if marker.spec.selector.is_empty() => Standing::Leaving,
            Some(marker) => match matcher(&marker) {
                Some(matcher) => Standing::Active { matcher, marker },
                None => Standing::Unreadable,
            },
            None => Standing::Unreadable,
        };
        Self { key, standing }
    }

    /// Whether a pod is one of its pods, going by namespace and labels.
    pub fn chooses(&self, pod: &Pod) -> bool {
        match &self.standing {
            Standing::Active { matcher, .. } => {
                self.key.namespace == pod.metadata.namespace
                    && matcher.accepts(|key| pod.metadata.labels.text(key))
            }
            Standing::Leaving | Standing::Unreadable => false,
        }
    }

    /// Its probes, while it counts.
    pub fn probes(&self) -> &[PodContainerProbe] {
        match &self.standing {
            Standing::Active { marker, .. } => &marker.spec.probes,
            Standing::Leaving | Standing::Unreadable => &[],
        }
    }
}

/// Whether a pod can be asked anything: it is not over, its init containers are done, and it has a node.
pub fn is_probed(pod: &Pod) -> bool {
    pod.is_active()
        && !pod.spec.node_name.is_empty()
        && pod.condition("Initialized").is_some_and(crate::pod::Condition::is_true)
}
