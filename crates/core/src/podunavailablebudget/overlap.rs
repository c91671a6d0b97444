//! Whether two selectors may mean the same pods, as far as the contract asks: selectors about different labels never do.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::selector::LabelSelector;

/// What a selector wants of one label.
enum Want<'a> {
    In(BTreeSet<&'a str>),
    NotIn(BTreeSet<&'a str>),
    Exists,
    Absent,
}

/// Whether both selectors are about the same labels, and one pod can satisfy both for each of them.
pub(super) fn overlaps(left: &LabelSelector, right: &LabelSelector) -> bool {
    let (left, right) = (wants(left), wants(right));
    left.keys().eq(right.keys()) && left.values().zip(right.values()).all(|(left, right)| both(left, right))
}

fn wants(selector: &LabelSelector) -> BTreeMap<&str, Want<'_>> {
    let labels = selector.match_labels.iter();
    let labels = labels.map(|(key, value)| (key.as_str(), Want::In([value.as_str()].into())));
    let expressions = selector.match_expressions.iter().map(|requirement| {
        let values = requirement.values.iter().map(String::as_str).collect();
        let want = match requirement.operator.as_str() {
            "In" => Want::In(values),
            "NotIn" => Want::NotIn(values),
            "DoesNotExist" => Want::Absent,
            _ => Want::Exists,
        };
        (requirement.key.as_str(), want)
    });
    labels.chain(expressions).collect()
}

fn both(left: &Want<'_>, right: &Want<'_>) -> bool {
    match (left, right) {
        (Want::In(left), Want::In(right)) => !left.is_disjoint(right),
        (Want::In(wanted), Want::NotIn(refused)) | (Want::NotIn(refused), Want::In(wanted)) => {
            !wanted.is_subset(refused)
        }
        (Want::Absent, Want::In(_) | Want::Exists) | (Want::In(_) | Want::Exists, Want::Absent) => false,
        (Want::Absent, Want::Absent | Want::NotIn(_))
        | (Want::NotIn(_), Want::Absent | Want::NotIn(_) | Want::Exists)
        | (Want::Exists, Want::In(_) | Want::NotIn(_) | Want::Exists)
        | (Want::In(_), Want::Exists) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A requirement about the label `a`: `in:x,y`, `notin:x`, `exists`, `absent`.
    fn selector(text: &str) -> LabelSelector {
        let (operator, values) = text.split_once(':').unwrap_or((text, ""));
        let operator = match operator {
            "in" => "In",
            "notin" => "NotIn",
            "exists" => "Exists",
            _ => "DoesNotExist",
        };
        let values: Vec<&str> = values.split(',').filter(|value| !value.is_empty()).collect();
        serde_json::from_value(
            json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]}),
        )
        .unwrap()
    }

    /// The whole table of the contract.
    #[test]
    fn requirements_about_one_label_overlap_as_the_table_says() {
        let cases = [
            ("in:x", "in:x,y", true),
            ("in:x", "in:y", false),
            ("in:x,y", "notin:x", true),
            ("in:x", "notin:x,y", false),
            ("in:x", "exists", true),
            ("in:x", "absent", false),
            ("notin:x", "notin:y", true),
            ("notin:x", "exists", true),
            ("notin:x", "absent", true),
            ("exists", "exists", true),
            ("exists", "absent", false),
            ("absent", "absent", true),
        ];
        for (left, right, expected) in cases {
            assert_eq!(overlaps(&selector(left), &selector(right)), expected, "{left} {right}");
            assert_eq!(overlaps(&selector(right), &selector(left)), expected, "{right} {left}");
        }
    }

    #[test]
    fn selectors_about_different_labels_never_overlap() {
        let of = |labels: serde_json::Value| -> LabelSelector {
            serde_json::from_value(json!({"matchLabels": labels})).unwrap()
        };
        assert!(!overlaps(&of(json!({"app": "web"})), &of(json!({"tier": "front"}))));
        assert!(!overlaps(&of(json!({"app": "web"})), &of(json!({"app": "web", "tier": "front"}))));
        assert!(overlaps(&of(json!({"app": "web"})), &of(json!({"app": "web"}))));
    }
}
