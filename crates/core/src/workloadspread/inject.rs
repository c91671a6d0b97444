//! What a new pod of a subset gets.

use kruise_api::{annotations::MATCHED_WORKLOADSPREAD, json, workloadspread::v1beta1::Subset};
use serde_json::{Value, json};

use super::Mark;
use crate::{admission::pod::PodContext, strategic_merge};

const REQUIRED: [&str; 5] = [
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
];
const PREFERRED: [&str; 4] =
    ["spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"];

/// Where a new pod goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The subset.
    pub subset: Subset,
    /// The mark of the pod.
    pub mark: Mark,
}

/// The step of pod admission: the place was chosen, and booked, before.
pub fn step(pod: &mut Value, cx: &PodContext<'_>) -> Result<(), String> {
    match cx.context.cluster.placed() {
        Some(placed) => inject(pod, &placed),
        None => Ok(()),
    }
}

/// Changes a pod so that it runs in its subset.
pub fn inject(pod: &mut Value, placed: &Placed) -> Result<(), String> {
    let Placed { subset, mark } = placed;
    append(pod, &["spec", "tolerations"], &subset.tolerations)?;
    append(pod, &PREFERRED, &subset.preferred_node_selector)?;
    if let Some(term) = &subset.required_node_selector {
        require(pod, &json!(term))?;
    }
    if let Some(patch) = subset.patch.as_ref().filter(|patch| !patch.0.is_null()) {
        let class = |pod: &Value| json::text(pod, &["spec", "priorityClassName"]).map(str::to_owned);
        let before = class(pod);
        let patched = strategic_merge::pod(pod, &patch.0).map_err(|error| {
            format!(
                "failed to apply the patch of subset {} of WorkloadSpread {}: {error}",
                mark.subset, mark.name
            )
        })?;
        *pod = patched;
        if class(pod) != before {
            // The server derives the number from the class, if nobody says one.
            json::take(pod, &["spec", "priority"]);
        }
    }
    json::set(pod, &["metadata", "annotations", MATCHED_WORKLOADSPREAD], mark.text());
    Ok(())
}

/// Appends to a list. Where there is nothing to append, nothing is made.
fn append<T: serde::Serialize>(pod: &mut Value, path: &[&str], items: &[T]) -> Result<(), String> {
    if items.is_empty() {
        return Ok(());
    }
    json::default_at(pod, path, json!([]));
    let list = json::at_mut(pod, path).and_then(Value::as_array_mut);
    let list = list.ok_or_else(|| format!("{} of the pod is not a list", path.join(".")))?;
    list.extend(items.iter().map(|item| json!(item)));
    Ok(())
}

/// Adds demands to each term of a pod, or makes them the only one.
fn require(pod: &mut Value, term: &Value) -> Result<(), String> {
    let is_empty = json::at(pod, &REQUIRED).and_then(Value::as_array).is_none_or(Vec::is_empty);
    if is_empty {
        json::set(pod, &REQUIRED, json!([term]));
        return match json::at(pod, &REQUIRED) {
            Some(_) => Ok(()),
            None => Err("the node affinity of the pod cannot be read".to_owned()),
        };
    }
    for own in json::items_mut(pod, &REQUIRED) {
        for member in ["matchExpressions", "matchFields"] {
            let more = json::at(term, &[member]).and_then(Value::as_array).cloned().unwrap_or_default();
            append(own, &[member], &more)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(subset: Value) -> Placed {
        let mark = Mark { name: "w".into(), subset: "a".into(), uid: String::new() };
        Placed { subset: serde_json::from_value(subset).unwrap(), mark }
    }

    fn zone(value: &str) -> Value {
        json!({"key": "zone", "operator": "In", "values": [value]})
    }

    #[track_caller]
    fn check(spec: Value, subset: Value, expected: Value) {
        let mut pod = json!({"metadata": {}, "spec": spec});
        inject(&mut pod, &placed(subset)).unwrap();
        assert_eq!(pod["spec"], expected);
        assert_eq!(pod["metadata"]["annotations"][MATCHED_WORKLOADSPREAD], r#"{"name":"w","subset":"a"}"#);
    }

    /// SPREAD-1, SPREAD-18: a required term is added to each of the pod's own terms.
    #[test]
    fn a_required_term_is_added_to_each_own_term() {
        let subset = json!({"name": "a", "requiredNodeSelector": {"matchExpressions": [zone("a")]}});
        let affinity = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
        let os = json!({"key": "os", "operator": "Exists"});
        check(json!({}), subset.clone(), affinity(json!([{"matchExpressions": [zone("a")]}])));
        check(
            affinity(json!([{"matchExpressions": [os]}, {"matchFields": [os]}])),
            subset,
            affinity(json!([
                {"matchExpressions": [os, zone("a")]},
                {"matchFields": [os], "matchExpressions": [zone("a")]},
            ])),
        );
    }

    #[test]
    fn wishes_and_tolerations_are_appended_and_nothing_empty_is_made() {
        check(json!({"x": 1}), json!({"name": "a"}), json!({"x": 1}));
        let wish = json!({"weight": 7, "preference": {"matchExpressions": [zone("a")]}});
        check(
            json!({"tolerations": [{"key": "own"}]}),
            json!({"name": "a", "tolerations": [{"key": "x", "operator": "Exists"}], "preferredNodeSelector": [wish]}),
            json!({"tolerations": [{"key": "own"}, {"key": "x", "operator": "Exists"}],
                "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}}),
        );
    }

    /// SPREAD-16, SPREAD-17: a patch is merged, and a changed priority class brings its own number.
    #[test]
    fn a_patch_is_merged_and_a_new_priority_class_clears_the_number() {
        let main = json!({"name": "main", "image": "app:v1"});
        let env = json!([{"name": "SUBSET", "value": "a"}]);
        let patch = |spec: Value| json!({"name": "a", "patch": {"spec": spec}});
        check(
            json!({"containers": [main], "priority": 5, "priorityClassName": "low"}),
            patch(json!({"containers": [{"name": "main", "env": env}], "priorityClassName": "high"})),
            json!({"containers": [{"name": "main", "image": "app:v1", "env": env}], "priorityClassName": "high"}),
        );
        check(
            json!({"priority": 5, "priorityClassName": "low"}),
            patch(json!({"priorityClassName": "low"})),
            json!({"priority": 5, "priorityClassName": "low"}),
        );
        let broken = placed(json!({"name": "a", "patch": {"spec": {"containers": [{"image": "x"}]}}}));
        let mut pod = json!({"spec": {"containers": [main]}});
        let told = inject(&mut pod, &broken).unwrap_err();
        assert!(told.starts_with("failed to apply the patch of subset a of WorkloadSpread w: "), "{told}");
    }
}
