//! Which version a pod has: subsets are counted apart for each, because a rolling update makes new pods before it deletes
//! old ones.

use std::collections::BTreeSet;

use kruise_api::labels::{CONTROLLER_REVISION_HASH, POD_TEMPLATE_HASH};

use crate::pod::Pod;

/// The version of pods of kinds whose versions are not counted apart.
pub const IGNORED: &str = "versionIgnored";

/// The kinds of controllers of pods whose versions are counted apart, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned(BTreeSet<String>);

impl Default for Versioned {
    fn default() -> Self {
        Self::parse("deployment,replicaset")
    }
}

impl Versioned {
    /// Reads the flag `--ws-enabled-versioned-status`. Pods of Deployments are controlled by ReplicaSets.
    pub fn parse(flag: &str) -> Self {
        let words = flag.split(',').map(|word| word.trim().to_lowercase());
        let mut kinds: BTreeSet<String> = words.filter(|word| !word.is_empty()).collect();
        if kinds.contains("deployment") {
            kinds.insert("replicaset".to_owned());
        }
        Self(kinds)
    }

    /// Whether versions of pods that are controlled by this kind are counted apart.
    pub fn counts(&self, kind: &str) -> bool {
        self.0.contains(&kind.to_lowercase())
    }

    /// The version of a pod with these labels whose controller is of this kind.
    pub fn version<'l>(&self, kind: &str, label: impl Fn(&str) -> Option<&'l str>) -> String {
        if !self.counts(kind) {
            return IGNORED.to_owned();
        }
        let hash = label(POD_TEMPLATE_HASH)
            .or_else(|| label(CONTROLLER_REVISION_HASH).map(after_last_dash))
            .filter(|hash| !hash.is_empty());
        hash.unwrap_or(IGNORED).to_owned()
    }

    /// The version of a pod.
    pub fn of(&self, pod: &Pod) -> String {
        let kind = pod.metadata.controller().map_or("", |owner| owner.kind.as_str());
        self.version(kind, |key| pod.metadata.labels.text(key))
    }
}

/// The hash at the end of the name of a revision.
pub(super) fn after_last_dash(name: &str) -> &str {
    name.rsplit('-').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_kinds_have_versions() {
        let labels = |key: &str| match key {
            POD_TEMPLATE_HASH => Some("5c6978b6d7"),
            CONTROLLER_REVISION_HASH => Some("web-x1"),
            _ => None,
        };
        let revision = |key: &str| labels(key).filter(|_| key == CONTROLLER_REVISION_HASH);
        let default = Versioned::default();
        assert_eq!(default.version("ReplicaSet", labels), "5c6978b6d7");
        assert_eq!(default.version("CloneSet", labels), IGNORED);
        assert_eq!(default.version("ReplicaSet", |_| None), IGNORED);
        let all = Versioned::parse(" CloneSet, deployment ");
        assert_eq!(all.version("CloneSet", revision), "x1");
        assert_eq!(all.version("ReplicaSet", labels), "5c6978b6d7");
        assert_eq!(Versioned::parse("").version("ReplicaSet", labels), IGNORED);
    }
}
