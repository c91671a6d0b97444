//! Rules of sets that stand in for others.

use kruise_api::{
    annotations::SIDECARSET_BASE,
    kubernetes::validation::Violation,
    sidecarset::v1beta1::{SidecarSet, UpdateType},
};
use serde_json::Value;

use super::{
    super::{annotation, matching::base_of, name},
    Known, Violations,
};

pub(super) fn check(
    found: &mut Violations,
    set: &SidecarSet,
    stored: Option<&SidecarSet>,
    known: &Known<'_>,
) {
    let Some(base) = base_of(set) else { return };
    let mut refuse = |detail: String| {
        let annotations = set.metadata.annotations.clone().unwrap_or_default();
        let annotations = serde_json::to_value(annotations).unwrap_or(Value::Null);
        found.push(Violation::invalid("metadata", annotations, detail));
    };
    if base == name(set) {
        refuse("base sidecarSet cannot be itself".to_owned());
    }
    if stored.is_some_and(|stored| annotation(stored, SIDECARSET_BASE) != Some(base)) {
        refuse(format!("annotations[{SIDECARSET_BASE}] is immutable"));
    }
    match known.sets.iter().find(|other| name(other) == base) {
        None => refuse(format!(
            "fetch base sidecarSet[{base}] failed: SidecarSet.apps.kruise.io {base:?} not found"
        )),
        Some(other) if base_of(other).is_some() => refuse("base sidecarSet cannot be canary".to_owned()),
        Some(_) => {}
    }
    let kind = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.kind.as_ref());
    if kind != Some(&UpdateType::NotUpdate) {
        refuse("RollingUpdate is not supported for canary sidecarSet".to_owned());
    }
}
