//! The parts of a container that updates in place look at, in few bytes.

use kruise_api::env;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::or_default;
use crate::text::{Pool, Text};

/// What of a container's environment decides something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The place of the container in the order of starting, if the pod has one. Larger ones come first.
    pub priority: Option<i32>,
    /// Variables whose values are labels or annotations of the pod, in the order of the list.
    pub from_metadata: Box<[FromMetadata]>,
    /// How the container ends when the job of its pod is done, if it says so.
    pub termination: Option<Box<Termination>>,
}

/// How a container ends when the main containers of its job have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Termination {
    /// It is killed, where nodes have a daemon.
    pub kill: bool,
    /// The code that it ends with does not decide the result of the pod.
    pub ignore_exit_code: bool,
    /// It is ended by this image, where nodes have none; empty for not at all.
    pub image: Text,
}

impl Termination {
    /// Reads one variable. Of several images the first counts, of several switches one that is on.
    fn read(found: &mut Option<Box<Self>>, image_is_known: &mut bool, variable: &Variable) {
        let is_on = variable.value.eq_ignore_ascii_case("true");
        match variable.name.as_str() {
            env::TERMINATE_SIDECAR if is_on => found.get_or_insert_default().kill = true,
            env::TERMINATE_SIDECAR_IGNORE_EXIT_CODE if is_on => {
                found.get_or_insert_default().ignore_exit_code = true;
            }
            env::TERMINATE_SIDECAR_WITH_IMAGE
                if !std::mem::replace(image_is_known, true) && !variable.value.is_empty() =>
            {
                found.get_or_insert_default().image = variable.value.clone();
            }
            _ => {}
        }
    }
}

/// A variable whose value is a label or an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromMetadata {
    /// The variable.
    pub name: Text,
    /// Where its value stands.
    pub source: Source,
    /// The key there.
    pub key: Text,
}

/// Labels or annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A label.
    Label,
    /// An annotation.
    Annotation,
}

impl Environment {
    pub(super) fn share(&mut self, pool: &mut Pool) {
        for FromMetadata { name, source: _, key } in &mut self.from_metadata {
            pool.share(name);
            pool.share(key);
        }
        if let Some(termination) = &mut self.termination {
            pool.share(&mut termination.image);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Variable {
    name: Text,
    #[serde(deserialize_with = "or_default")]
    value: Text,
    value_from: Option<ValueFrom>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ValueFrom {
    field_ref: Option<FieldRef>,
    config_map_key_ref: Option<KeyRef>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FieldRef {
    field_path: Text,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KeyRef {
    name: Text,
    key: Text,
}

impl<'de> Deserialize<'de> for Environment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let variables = Option::<Vec<Variable>>::deserialize(deserializer)?.unwrap_or_default();
        let mut found = Self::default();
        let mut from_metadata = Vec::new();
        let mut image_is_known = false;
        for variable in variables {
            Termination::read(&mut found.termination, &mut image_is_known, &variable);
            let Some(from) = variable.value_from else { continue };
            if variable.name == env::CONTAINER_BARRIER {
                let KeyRef { name, key } = from.config_map_key_ref.unwrap_or_default();
                let number = key.strip_prefix(env::BARRIER_KEY_PREFIX);
                let number = number.filter(|_| name.ends_with(env::BARRIER_NAME_SUFFIX));
                found.priority = number.and_then(|number| number.parse().ok());
            }
            let path = from.field_ref.unwrap_or_default().field_path;
            let excluded = [env::SIDECARSET_VERSION, env::SIDECARSET_VERSION_ALT];
            if !variable.value.is_empty() || excluded.contains(&variable.name.as_str()) {
                continue;
            }
            let key = |prefix: &str| path.strip_prefix(prefix)?.strip_suffix("']").map(Text::from);
            let source = key("metadata.labels['")
                .map(|key| (Source::Label, key))
                .or_else(|| key("metadata.annotations['").map(|key| (Source::Annotation, key)));
            if let Some((source, key)) = source {
                from_metadata.push(FromMetadata { name: variable.name, source, key });
            }
        }
        found.from_metadata = from_metadata.into_boxed_slice();
        Ok(found)
    }
}

/// A port of a container that others refer to by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Port {
    /// The name.
    pub name: Text,
    /// The number at the address of the pod.
    pub container_port: i32,
}

/// Ports without a name decide nothing.
pub(super) fn named_ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[Port]>, D::Error> {
    let mut ports = Option::<Vec<Port>>::deserialize(deserializer)?.unwrap_or_default();
    ports.retain(|port| !port.name.is_empty());
    Ok(ports.into_boxed_slice())
}

/// A container that someone added to a living pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EphemeralContainer {
    /// The name.
    pub name: Text,
    /// The uid of the EphemeralJob that added it; empty where it was someone else.
    pub job: Text,
}

impl<'de> Deserialize<'de> for EphemeralContainer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Written {
            name: Text,
            #[serde(deserialize_with = "or_default")]
            env: Vec<Variable>,
        }
        let Written { name, env: variables } = Written::deserialize(deserializer)?;
        let job = variables.into_iter().find(|variable| variable.name == env::EPHEMERAL_JOB_ID);
        Ok(Self { name, job: job.map(|variable| variable.value).unwrap_or_default() })
    }
}

/// Cpu and memory. Other resources decide nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// What is asked for.
    #[serde(deserialize_with = "or_default")]
    pub requests: Amounts,
    /// What may be used at most.
    #[serde(deserialize_with = "or_default")]
    pub limits: Amounts,
}

/// An amount of cpu and of memory, as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Amounts {
    /// Of cpu.
    #[serde(deserialize_with = "quantity")]
    pub cpu: Option<Text>,
    /// Of memory.
    #[serde(deserialize_with = "quantity")]
    pub memory: Option<Text>,
}

impl Amounts {
    /// The amount of a resource.
    pub fn get(&self, resource: &str) -> Option<&Text> {
        match resource {
            "cpu" => self.cpu.as_ref(),
            "memory" => self.memory.as_ref(),
            _ => None,
        }
    }

    /// The amounts that are given, by the name of the resource.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Text)> {
        let Self { cpu, memory } = self;
        [("cpu", cpu), ("memory", memory)]
            .into_iter()
            .filter_map(|(name, amount)| Some((name, amount.as_ref()?)))
    }
}

impl Resources {
    pub(super) fn share(&mut self, pool: &mut Pool) {
        let Self { requests, limits } = self;
        for Amounts { cpu, memory } in [requests, limits] {
            [cpu, memory].into_iter().flatten().for_each(|amount| pool.share(amount));
        }
    }
}

/// A server writes texts; people may write numbers.
fn quantity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Text>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    })
}

/// Which resources cannot change without a restart of the container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResizePolicy {
    /// A change of cpu restarts it.
    pub cpu_restarts: bool,
    /// A change of memory restarts it.
    pub memory_restarts: bool,
}

impl<'de> Deserialize<'de> for ResizePolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Rule {
            resource_name: Text,
            restart_policy: Text,
        }
        let rules = Option::<Vec<Rule>>::deserialize(deserializer)?.unwrap_or_default();
        let restarts = |resource: &str| {
            rules
                .iter()
                .any(|rule| rule.resource_name == resource && rule.restart_policy == "RestartContainer")
        };
        Ok(Self { cpu_restarts: restarts("cpu"), memory_restarts: restarts("memory") })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Container;
    use super::*;

    #[test]
    fn only_what_decides_something_is_kept() {
        let field =
            |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let container: Container = serde_json::from_value(json!({
            "name": "main",
            "env": [
                {"name": "PLAIN", "value": "x"},
                field("A", "metadata.labels['a/b']"),
                field("B", "metadata.annotations['cfg']"),
                field("IP", "status.podIP"),
                field("SIDECARSET_VERSION", "metadata.annotations['v']"),
                {"name": "KRUISE_CONTAINER_BARRIER",
                    "valueFrom": {"configMapKeyRef": {"name": "x-barrier", "key": "p_-1"}}},
            ],
            "resources": {"requests": {"cpu": "100m", "memory": 1024, "gpu": "1"}, "limits": null},
            "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
        }))
        .unwrap();
        assert_eq!(container.env.priority, Some(-1));
        let kept: Vec<_> =
            container.env.from_metadata.iter().map(|one| (&*one.name, one.source, &*one.key)).collect();
        assert_eq!(kept, [("A", Source::Label, "a/b"), ("B", Source::Annotation, "cfg")]);
        assert_eq!(container.resources.requests.memory, Some("1024".into()));
        assert_eq!(container.resources.limits, Amounts::default());
        assert_eq!(container.resize_policy, ResizePolicy { cpu_restarts: false, memory_restarts: true });
    }

    /// A barrier without a ConfigMap crashed the original.
    #[test]
    fn a_barrier_that_names_no_key_is_no_priority() {
        let env: Environment =
            serde_json::from_value(json!([{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {}}])).unwrap();
        assert_eq!(env.priority, None);
    }
}
