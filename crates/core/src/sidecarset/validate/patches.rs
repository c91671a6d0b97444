//! Rules of the annotations that a set puts on pods: which ones is for the owner of the cluster to say.

use std::collections::BTreeSet;

use kruise_api::{
    kubernetes::validation::{Violation, names::qualified_name},
    names::SIDECARSET_PATCH_WHITE_LIST,
    sidecarset::v1beta1::{PatchPolicy, SidecarSet},
};
use regex::Regex;

use super::{Known, Violations, containers::reason};
use crate::configuration;

const PATH: &str = "spec.patchPodMetadata";
/// The largest size of all annotations of an object.
const LARGEST: usize = 256 * 1024;

pub(super) fn check(found: &mut Violations, set: &SidecarSet, known: &Known<'_>) {
    if set.spec.patch_pod_metadata.is_empty() {
        return;
    }
    if let Err(refusal) = allowed(set, known) {
        found.push(Violation::required(PATH, refusal));
    }
    let mut keys = BTreeSet::new();
    for patch in &set.spec.patch_pod_metadata {
        if patch.annotations.is_empty() {
            found.push(Violation::required(PATH, "no annotations defined for SidecarSet"));
        }
        for key in patch.annotations.keys() {
            let broken = qualified_name(&key.to_lowercase()).into_iter();
            let path = "patchPodMetadata.annotations";
            found.extend(broken.map(|rule| Violation::invalid(path, key.as_str(), rule)));
        }
        let size: usize = patch.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        if size > LARGEST {
            let detail = format!("may not be more than {LARGEST} bytes");
            found.push(Violation::invalid("patchPodMetadata.annotations", "", detail));
        }
        match &patch.patch_policy {
            None => found.push(Violation::required(PATH, "no patchPolicy defined for patchPodMetadata")),
            Some(PatchPolicy::Other(policy)) => {
                let path = format!("{PATH}.patchPolicy");
                found.push(Violation::not_supported(path, policy.as_str(), PatchPolicy::KNOWN));
            }
            Some(_) => {}
        }
        for key in patch.annotations.keys() {
            if !keys.insert(key) {
                found.push(Violation::required(PATH, format!("patch annotation[{key}] already exist")));
            }
        }
    }
}

/// Whether the white list lets this set patch what it wants to patch.
fn allowed(set: &SidecarSet, known: &Known<'_>) -> Result<(), String> {
    let nothing_said =
        |refusal: &str| if known.allows_all_patches { Ok(()) } else { Err(refusal.to_owned()) };
    let is_said = |data: &&configuration::Data| {
        data.get(SIDECARSET_PATCH_WHITE_LIST).is_some_and(|text| !text.is_empty())
    };
    let Some(data) = known.configuration.filter(is_said) else {
        return nothing_said("SidecarSet patch metadata whitelist not found");
    };
    let list = configuration::sidecarset_patches(data).map_err(|error| error.to_string())?;
    let labels = set.metadata.labels.as_ref();
    let mut expressions = Vec::new();
    for rule in &list.rules {
        if let Some(selector) = &rule.selector {
            let matcher = selector.matcher().map_err(|error| error.to_string())?;
            if !matcher.accepts(|key| labels?.get(key).map(String::as_str)) {
                continue;
            }
        }
        for pattern in &rule.allowed_annotation_keys {
            let expression = Regex::new(pattern)
                .map_err(|error| format!("error parsing regexp: {}: `{pattern}`", reason(&error)))?;
            expressions.push(expression);
        }
    }
    if expressions.is_empty() {
        return nothing_said("sidecarSet patch metadata annotation is not allowed");
    }
    let mut keys = set.spec.patch_pod_metadata.iter().flat_map(|patch| patch.annotations.keys());
    match keys.find(|key| !expressions.iter().any(|expression| expression.is_match(key))) {
        Some(key) => Err(format!("sidecarSet patch metadata annotation({key}) is not allowed")),
        None => Ok(()),
    }
}
