//! The part of kubectl's JSONPath that printer columns and `kubectl wait` use.
//!
//! A path is a chain of steps: `.name`, `['name']`, `[3]`, `[-1]`, `[1:3]`, `[*]`, `..name` and the filter
//! `[?(@.type=="Ready")]`. A dot inside a name is escaped: `.metadata.labels.app\.kubernetes\.io/name`. Paths may
//! stand in braces, with or without `$`. A step that finds nothing yields nothing; only a malformed path is an error.

use std::cmp::Ordering;

use serde_json::Value;

mod parse;

/// A malformed path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// A path that was read once and is used often.
///
/// ```
/// use kruise_apiserver::jsonpath::JsonPath;
/// let ready = JsonPath::parse(r#".status.conditions[?(@.type=="Ready")].status"#).unwrap();
/// let object = serde_json::json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
/// assert_eq!(ready.first(&object), Some(&serde_json::json!("True")));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// Several names or indexes in one pair of brackets.
    Union(Vec<Step>),
    Wildcard,
    /// The value itself and everything below it.
    Descend,
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Index(i64),
    Filter(Filter),
}

#[derive(Clone, Debug, PartialEq)]
enum Filter {
    Exists(Operand),
    Compare(Operand, Comparison, Operand),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    /// A path from the list's item (`@`).
    Path(JsonPath),
    Literal(Value),
}

impl JsonPath {
    /// Reads a path.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse::path(text)
    }

    /// Everything that the path finds, in order.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![root];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.find(value, &mut next);
            }
            found = next;
        }
        found
    }

    /// The first thing that the path finds.
    pub fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.find(root).into_iter().next()
    }
}

impl Step {
    fn find<'a>(&self, value: &'a Value, out: &mut Vec<&'a Value>) {
        match self {
            Self::Field(name) => out.extend(value.as_object().and_then(|fields| fields.get(name))),
            Self::Union(steps) => steps.iter().for_each(|step| step.find(value, out)),
            Self::Wildcard => match value {
                Value::Array(items) => out.extend(items),
                Value::Object(fields) => out.extend(fields.values()),
                _ => {}
            },
            Self::Descend => {
                let mut open = vec![value];
                while let Some(value) = open.pop() {
                    out.push(value);
                    match value {
                        Value::Array(items) => open.extend(items.iter().rev()),
                        Value::Object(fields) => open.extend(fields.values().rev()),
                        _ => {}
                    }
                }
            }
            Self::Index(index) => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let index = if *index < 0 { index.saturating_add(items.len() as i64) } else { *index };
                out.extend(usize::try_from(index).ok().and_then(|index| items.get(index)));
            }
            Self::Slice { start, end, step } => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let length = items.len() as i64;
                let bound = |bound: i64| {
                    let bound = if bound < 0 { bound.saturating_add(length) } else { bound };
                    usize::try_from(bound.clamp(0, length)).unwrap_or_default()
                };
                let (start, end) = (bound(start.unwrap_or(0)), bound(end.unwrap_or(length)));
                let step = usize::try_from(*step).unwrap_or(1).max(1);
                out.extend(items.get(start..end).unwrap_or_default().iter().step_by(step));
            }
            Self::Filter(filter) => match value {
                Value::Array(items) => out.extend(items.iter().filter(|item| filter.holds(item))),
                Value::Object(fields) => out.extend(fields.values().filter(|item| filter.holds(item))),
                _ => {}
            },
        }
    }
}

impl Filter {
    fn holds(&self, item: &Value) -> bool {
        match self {
            Self::Exists(operand) => operand.value(item).is_some(),
            Self::Compare(left, comparison, right) => match (left.value(item), right.value(item)) {
                (Some(left), Some(right)) => comparison.holds(left, right),
                _ => false,
            },
        }
    }
}

impl Operand {
    fn value<'a>(&'a self, item: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Path(path) => path.first(item),
            Self::Literal(value) => Some(value),
        }
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right))
            }
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (left, right) if left == right => Some(Ordering::Equal),
            _ => None,
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Value) {
        let object = json!({
            "kind": "Pod",
            "metadata": {"labels": {"app.kubernetes.io/name": "x", "a": "1"}},
            "spec": {"replicas": 3, "l": [0, 1, 2, 3, 4], "modes": ["Static", "Adaptive"]},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1}, {"type": "Scheduled", "status": "False", "n": 2}]},
        });
        let found = JsonPath::parse(path).unwrap().find(&object).into_iter().cloned().collect();
        assert_eq!(Value::Array(found), expected, "{path}");
    }

    #[test]
    fn steps_find_what_kubectl_finds() {
        check(".spec.replicas", json!([3]));
        check("{.spec.replicas}", json!([3]));
        check("{$.spec.replicas}", json!([3]));
        check("spec.replicas", json!([3]));
        check(".spec.missing.deep", json!([]));
        check(".spec.l[*]", json!([0, 1, 2, 3, 4]));
        check(".spec.l[1]", json!([1]));
        check(".spec.l[-1]", json!([4]));
        check(".spec.l[9]", json!([]));
        check(".spec.l[1:3]", json!([1, 2]));
        check(".spec.l[-2:]", json!([3, 4]));
        check(".spec.l[:2]", json!([0, 1]));
        check(".spec.l[0:5:2]", json!([0, 2, 4]));
        check(".spec.l[0,2]", json!([0, 2]));
        check(".metadata.labels['a']", json!(["1"]));
        check(".metadata.labels[\"a\"]", json!(["1"]));
        check("['metadata']['labels']['app.kubernetes.io/name']", json!(["x"]));
        check(r".metadata.labels.app\.kubernetes\.io/name", json!(["x"]));
        check(r".metadata.labels['app\.kubernetes\.io/name']", json!(["x"]));
        check(r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"]));
        check(r#".status.conditions[?(@.type == 'Scheduled')].status"#, json!(["False"]));
        check(r#".status.conditions[?(@.type!="Ready")].type"#, json!(["Scheduled"]));
        check(".status.conditions[?(@.n>1)].type", json!(["Scheduled"]));
        check(".status.conditions[?(@.n<=1)].type", json!(["Ready"]));
        check(".status.conditions[?(@.n)].n", json!([1, 2]));
        check(r#".spec.modes[?(@ == "Adaptive")]"#, json!(["Adaptive"]));
        check(".status.conditions[*].type", json!(["Ready", "Scheduled"]));
        check(".metadata.labels.*", json!(["1", "x"]));
        check("..type", json!(["Ready", "Scheduled"]));
        check(".status..status", json!(["True", "False"]));
        check(
            "",
            json!([{
                "kind": "Pod",
                "metadata": {"labels": {"app.kubernetes.io/name": "x", "a": "1"}},
                "spec": {"replicas": 3, "l": [0, 1, 2, 3, 4], "modes": ["Static", "Adaptive"]},
                "status": {"conditions": [
                    {"type": "Ready", "status": "True", "n": 1}, {"type": "Scheduled", "status": "False", "n": 2}]},
            }]),
        );
    }

    #[test]
    fn malformed_paths_are_refused() {
        for path in
            [".a[", ".a[]", ".a[x]", ".a['b", "{.a", ".a[?(@.b==)]", ".a[?(@.b=='c']", ".a[1:2:0]", ".a."]
        {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(path in "[a-b.\\[\\]'\"*?@()=<>!:,$\\-0-9\\\\{}]{0,24}", any in any::<String>()) {
            let object = json!({"a": [{"b": 1}, "x", [1, 2]], "b": {"a": null}});
            for path in [path, any] {
                if let Ok(path) = JsonPath::parse(&path) {
                    path.find(&object);
                }
            }
        }
    }
}
