//! Resources of a sidecar that are computed from those of the pod's own containers.

use kruise_api::{
    json::Object,
    kubernetes::quantity::Quantity,
    sidecarset::container::{ResourcesPolicy, TargetContainersMode},
};
use regex::Regex;
use serde_json::{Map, Value};

use super::formula::{self, Formula, Resource};

/// A policy that was read once.
#[derive(Clone, Debug)]
pub struct Policy {
    mode: TargetContainersMode,
    names: Regex,
    formulas: Vec<Rule>,
}

/// One formula.
#[derive(Clone, Debug)]
struct Rule {
    kind: Kind,
    resource: Resource,
    text: String,
    formula: Formula,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Limits,
    Requests,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Limits => "limits",
            Self::Requests => "requests",
        }
    }
}

/// Why a sidecar gets no resources, and the pod is refused. The texts are the original's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No container of the pod counts.
    #[error("no containers match the regex pattern {0:?}")]
    NoTarget(String),
    /// A formula has no result for this pod.
    #[error("failed to evaluate {what} expression: failed to parse expression {text:?}: {source}")]
    Formula {
        /// `CPU limits`, `memory requests` and so on.
        what: String,
        /// The formula.
        text: String,
        /// What is wrong.
        source: formula::Error,
    },
    /// The regular expression cannot be read.
    #[error("invalid regex pattern {0:?}")]
    Pattern(String),
}

impl Policy {
    /// Reads a policy.
    pub fn of(policy: &ResourcesPolicy) -> Result<Self, Error> {
        let pattern = policy.target_containers_name_regex.as_deref().filter(|pattern| !pattern.is_empty());
        let pattern = pattern.unwrap_or(".*");
        let names = Regex::new(pattern).map_err(|_| Error::Pattern(pattern.to_owned()))?;
        let expressions = &policy.resources_expr;
        let kinds = [(Kind::Limits, &expressions.limits), (Kind::Requests, &expressions.requests)];
        let mut formulas = Vec::new();
        for (kind, expressions) in kinds.into_iter().filter_map(|(kind, one)| Some((kind, one.as_ref()?))) {
            for (resource, text) in
                [(Resource::Cpu, &expressions.cpu), (Resource::Memory, &expressions.memory)]
            {
                let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else { continue };
                let formula =
                    Formula::parse(text, resource).map_err(|source| failed(kind, resource, text, source))?;
                formulas.push(Rule { kind, resource, text: text.to_owned(), formula });
            }
        }
        Ok(Self { mode: policy.target_containers_mode.clone(), names, formulas })
    }

    /// What the sidecar gets. `containers` are those of the pod that may count, whatever their names.
    pub fn resources<'a>(&self, containers: impl Iterator<Item = &'a Value>) -> Result<Object, Error> {
        let is_target = |container: &&Value| {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            self.names.is_match(name)
        };
        let targets: Vec<&Value> = containers.filter(is_target).collect();
        if targets.is_empty() {
            return Err(Error::NoTarget(self.names.as_str().to_owned()));
        }
        let mut resources = Map::new();
        for Rule { kind, resource, text, formula } in &self.formulas {
            let Some(total) = self.total(*kind, *resource, &targets) else { continue };
            let amount = formula.evaluate(&total).map_err(|source| failed(*kind, *resource, text, source))?;
            let list = resources.entry(kind.name()).or_insert_with(|| Map::new().into());
            if let Some(list) = list.as_object_mut() {
                list.insert(resource.name().to_owned(), amount.into());
            }
        }
        Ok(resources)
    }

    /// The values of all targets as one. Nothing for a limit that a target does not have: together they have none.
    fn total(&self, kind: Kind, resource: Resource, targets: &[&Value]) -> Option<Quantity> {
        let amount = |container: &&Value| {
            let value = container.get("resources")?.get(kind.name())?.get(resource.name())?;
            Quantity::from_json(value).ok()
        };
        let mut total = Quantity::ZERO;
        for found in targets.iter().map(amount) {
            let found = match (found, kind) {
                (Some(found), _) => found,
                (None, Kind::Limits) => return None,
                (None, Kind::Requests) => continue,
            };
            total = match self.mode {
                TargetContainersMode::Max => total.max(found),
                _ => total.plus(&found),
            };
        }
        Some(total)
    }
}

fn failed(kind: Kind, resource: Resource, text: &str, source: formula::Error) -> Error {
    let resource = match resource {
        Resource::Cpu => "CPU",
        Resource::Memory => "memory",
    };
    Error::Formula { what: format!("{resource} {}", kind.name()), text: text.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(mode: &str, regex: &str, formulas: Value) -> Policy {
        let policy = json!({"targetContainersMode": mode, "targetContainersNameRegex": regex,
            "resourcesExpr": formulas});
        Policy::of(&serde_json::from_value(policy).unwrap()).unwrap()
    }

    fn container(name: &str, limits: Value, requests: Value) -> Value {
        json!({"name": name, "resources": {"limits": limits, "requests": requests}})
    }

    #[track_caller]
    fn check(policy: &Policy, containers: &[Value], expected: Value) {
        let resources = policy.resources(containers.iter());
        assert_eq!(resources.map(Value::from).unwrap_or_else(|error| error.to_string().into()), expected);
    }

    fn two() -> [Value; 3] {
        [
            container(
                "large1",
                json!({"cpu": "200m", "memory": "100Mi"}),
                json!({"cpu": "50m", "memory": "10Mi"}),
            ),
            container(
                "large2",
                json!({"cpu": "400m", "memory": "300Mi"}),
                json!({"cpu": "100m", "memory": "20Mi"}),
            ),
            json!({"name": "small"}),
        ]
    }

    /// SIDECARSET-17, recorded from the original but for `116m`, which it computes as `115m`.
    #[test]
    fn amounts_are_added_up_or_the_largest_is_taken() {
        let half = json!({"limits": {"cpu": "max(cpu*50%, 50m)", "memory": "200Mi"},
            "requests": {"cpu": "max(cpu*50%, 50m)", "memory": "memory/3"}});
        check(
            &policy("sum", "^large.*$", half.clone()),
            &two(),
            json!({"limits": {"cpu": "300m", "memory": "200Mi"}, "requests": {"cpu": "75m", "memory": "10Mi"}}),
        );
        check(
            &policy("max", "large", half),
            &two(),
            json!({"limits": {"cpu": "200m", "memory": "200Mi"}, "requests": {"cpu": "50m", "memory": "6990507"}}),
        );
        let shares = json!({"limits": {"cpu": "cpu*0.29"}, "requests": {"memory": "memory*10%"}});
        check(
            &policy("max", "large", shares),
            &two(),
            json!({"limits": {"cpu": "116m"}, "requests": {"memory": "2Mi"}}),
        );
    }

    #[test]
    fn a_limit_that_one_target_does_not_have_is_none_for_all() {
        let formulas = json!({"limits": {"cpu": "cpu", "memory": "200Mi"}, "requests": {"cpu": "cpu"}});
        let targets = [
            container("a", json!({"cpu": "1"}), json!({"cpu": "1"})),
            container("b", json!({"cpu": "1"}), json!({})),
        ];
        for mode in ["sum", "max"] {
            let expected = if mode == "sum" { "2" } else { "1" };
            check(
                &policy(mode, ".*", formulas.clone()),
                &targets,
                json!({"limits": {"cpu": expected}, "requests": {"cpu": "1"}}),
            );
        }
        check(&policy("sum", ".*", formulas), &[json!({"name": "a"})], json!({"requests": {"cpu": "0"}}));
    }

    /// SIDECARSET-18
    #[test]
    fn pods_without_targets_and_negative_results_are_refused() {
        let formulas = json!({"limits": {"cpu": "cpu-100m"}});
        check(
            &policy("sum", "^none$", formulas.clone()),
            &two(),
            "no containers match the regex pattern \"^none$\"".into(),
        );
        check(
            &policy("sum", "^a$", formulas),
            &[container("a", json!({"cpu": "50m"}), json!({}))],
            "failed to evaluate CPU limits expression: failed to parse expression \"cpu-100m\": calculation result is \
             negative: -50m"
                .into(),
        );
    }
}
