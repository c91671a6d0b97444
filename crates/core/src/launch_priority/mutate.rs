//! What a new pod gets so that its containers start in order.

use kruise_api::{
    annotations::CONTAINER_LAUNCH_PRIORITY,
    env::{CONTAINER_BARRIER, CONTAINER_PRIORITY},
    json,
};
use serde_json::{Value, json};

use super::{barrier_key, barrier_name};
use crate::hash::safe_letters;

/// The value of the annotation that orders containers as they stand.
const ORDERED: &str = "Ordered";
/// The longest part of a `generateName` that goes into a name, as the server cuts it.
const LONGEST_PREFIX: usize = 58;
/// How many letters follow.
const SUFFIX: u32 = 5;

/// A priority that is no number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("container {container}: invalid {CONTAINER_PRIORITY} {value:?}: must be an integer")]
pub struct Error {
    /// The container.
    pub container: String,
    /// What was written.
    pub value: String,
}

/// Puts the containers of a new pod behind its barrier, if it asks for an order. True when the pod changed.
///
/// The barrier is named after the pod, so a pod without a name gets one here; `seed` makes it random.
pub fn mutate(pod: &mut Value, seed: u64) -> Result<bool, Error> {
    let containers = json::at(pod, &["spec", "containers"]).and_then(Value::as_array);
    let containers = containers.map_or(&[][..], Vec::as_slice);
    if containers.len() < 2 {
        return Ok(false);
    }
    let is_ordered =
        json::text(pod, &["metadata", "annotations", CONTAINER_LAUNCH_PRIORITY]) == Some(ORDERED);
    let priorities: Vec<i32> = if is_ordered {
        (0..containers.len()).map(|place| i32::try_from(place).map_or(i32::MIN, |place| -place)).collect()
    } else {
        containers.iter().map(priority).collect::<Result<_, _>>()?
    };
    let are_equal = priorities.iter().all(|priority| Some(priority) == priorities.first());
    if are_equal && !is_ordered {
        return Ok(false);
    }
    let Some(name) = named(pod, seed) else { return Ok(false) };
    let barrier = barrier_name(&name);
    for (container, priority) in json::items_mut(pod, &["spec", "containers"]).zip(priorities) {
        let variable = json!({"name": CONTAINER_BARRIER, "valueFrom": {
            "configMapKeyRef": {"name": barrier, "key": barrier_key(priority)}}});
        stand_behind(container, variable);
    }
    Ok(true)
}

/// The priority that a container asks for. All entries must be numbers; the last one counts.
fn priority(container: &Value) -> Result<i32, Error> {
    let env = container.get("env").and_then(Value::as_array);
    let asked =
        env.into_iter().flatten().filter(|one| json::text(one, &["name"]) == Some(CONTAINER_PRIORITY));
    asked.map(|one| json::text(one, &["value"]).unwrap_or_default()).try_fold(0, |_, value| {
        value.parse().map_err(|_| Error {
            container: json::text(container, &["name"]).unwrap_or_default().to_owned(),
            value: value.to_owned(),
        })
    })
}

/// The name of the pod; made now if the server would make it later. A pod that can have none is left to the server.
fn named(pod: &mut Value, seed: u64) -> Option<String> {
    let text = |member: &str| json::text(pod, &["metadata", member]).filter(|text| !text.is_empty());
    if let Some(name) = text("name") {
        return Some(name.to_owned());
    }
    let prefix = text("generateName")?;
    let mut end = prefix.len().min(LONGEST_PREFIX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = prefix.get(..end).unwrap_or_default().to_owned();
    let letters = safe_letters();
    let count = letters.len() as u64;
    for place in 0..SUFFIX {
        let index = usize::try_from(seed / count.pow(place) % count).unwrap_or(0);
        name.push(letters.get(index).map_or('b', |letter| char::from(*letter)));
    }
    json::set(pod, &["metadata", "name"], name.as_str());
    Some(name)
}

/// Adds the variable, or replaces those that came with a copied manifest.
fn stand_behind(container: &mut Value, variable: Value) {
    let Some(members) = container.as_object_mut() else { return };
    let env = members.entry("env").or_insert(Value::Null);
    if env.is_null() {
        *env = json!([]);
    }
    let Some(env) = env.as_array_mut() else { return };
    let is_barrier = |one: &Value| json::text(one, &["name"]) == Some(CONTAINER_BARRIER);
    match env.iter().position(is_barrier) {
        None => env.push(variable),
        Some(first) => {
            env.retain(|one| !is_barrier(one));
            env.insert(first.min(env.len()), variable);
        }
    }
}

#[cfg(test)]
mod tests;
