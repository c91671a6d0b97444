//! What a set must look like, alone and beside the others.
//!
//! Paths, texts and order are the original's; odd ones as well (`spec[0].transferEnv`), since people search for them. The
//! other sets are looked at only when everything else is well, and two sets that are made at the same moment may both pass.

mod canary;
mod conflicts;
mod containers;
mod patches;
mod strategy;

use std::sync::Arc;

use kruise_api::{
    gates::Gate,
    json,
    kubernetes::validation::{self, Violation},
    sidecarset::v1beta1::SidecarSet,
};
use serde_json::Value;

use crate::{
    admission::{
        kinds::{Change, Context},
        rules,
    },
    configuration::Data,
    revision::Revision,
};

type Violations = Vec<Violation>;

/// What rules may know besides the object.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// All sets, sorted by name. The one that is judged may be among them.
    pub sets: &'a [Arc<SidecarSet>],
    /// The revisions of the manager's namespace that carry the name of the set. Needed only if it gives new pods a fixed
    /// one.
    pub revisions: &'a [Arc<Revision>],
    /// The data of ConfigMap `kruise-configuration`, if it is there.
    pub configuration: Option<&'a Data>,
    /// Gate `SidecarSetPatchPodMetadataDefaultsAllowed`.
    pub allows_all_patches: bool,
}

/// What is wrong with a set that has its defaults. Both objects are in the hub version.
pub fn validate(new: &Value, old: Option<&Value>, known: &Known<'_>) -> Violations {
    let mut found = Violations::new();
    let set: SidecarSet = match serde_json::from_value(new.clone()) {
        Ok(set) => set,
        Err(error) => return vec![Violation::invalid("spec", Value::Null, error.to_string())],
    };
    // What is stored was accepted once. Where it cannot be read any more, the new object is judged alone.
    let stored: Option<SidecarSet> = old.and_then(|old| serde_json::from_value(old.clone()).ok());
    rules::simple_name(&mut found, new, "sidecarset");
    canary::check(&mut found, &set, stored.as_ref(), known);
    strategy::native(&mut found, &set);
    match json::at(new, &["spec", "selector"]) {
        None => found.push(Violation::required("spec.selector", "no selector defined for SidecarSet")),
        Some(given) => selector(&mut found, given, "spec.selector"),
    }
    if let Some(given) = json::at(new, &["spec", "namespaceSelector"]) {
        selector(&mut found, given, "spec.namespaceSelector");
    }
    strategy::injection(&mut found, new, &set, known);
    strategy::update(&mut found, new, &set);
    containers::check(&mut found, new, &set);
    patches::check(&mut found, &set, known);
    if let Some(stored) = &stored {
        containers::changed(&mut found, &set, stored);
    }
    if found.is_empty() {
        conflicts::check(&mut found, &set, stored.as_ref(), known.sets);
    }
    found
}

/// The same in the form in which [kinds](crate::admission::kinds::Entry::rules) list it.
pub fn rule(change: &Change<'_>, context: &Context<'_>, found: &mut Violations) {
    let cluster = context.cluster;
    let chooses = json::at(change.new, &["spec", "injectionStrategy", "revision"]).is_some();
    let name = json::text(change.new, &["metadata", "name"]).unwrap_or_default();
    let configuration = cluster.configuration();
    let known = Known {
        sets: &cluster.stored_sidecar_sets(),
        revisions: &if chooses { cluster.sidecar_set_revisions(name) } else { Vec::new() },
        configuration: configuration.as_deref(),
        allows_all_patches: context.gates.enabled(Gate::SidecarSetPatchPodMetadataDefaultsAllowed),
    };
    found.extend(validate(change.new, change.old, &known));
}

/// A selector that is well formed and chooses something.
fn selector(found: &mut Violations, selector: &Value, path: &str) {
    let broken = validation::label_selector(selector, path);
    let is_broken = !broken.is_empty();
    found.extend(broken);
    if rules::is_empty_selector(selector) {
        found.push(Violation::invalid(path, selector.clone(), "empty selector is not valid for sidecarset."));
    } else if is_broken {
        found.push(Violation::invalid(format!("{path}.selector"), selector.clone(), ""));
    }
}

#[cfg(test)]
mod tests;
