//! Which changes of a pod template can be made in place, as far as templates alone show it.

use json_patch::PatchOperation;
use serde_json::Value;

use crate::revision;

/// The first change between two templates that needs a new pod: `add`, `remove` or `replace`, and where in the spec.
pub fn impossible(old: &Value, new: &Value, resize: bool) -> Option<(&'static str, String)> {
    let spec = |template: &Value| revision::comparable(template).get("spec").cloned().unwrap_or_default();
    let operations = json_patch::diff(&spec(old), &spec(new));
    operations.iter().find_map(|operation| {
        let (operation, pointer) = match operation {
            PatchOperation::Add(step) => ("add", &step.path),
            PatchOperation::Remove(step) => ("remove", &step.path),
            PatchOperation::Replace(step) => ("replace", &step.path),
            // A difference moves, copies and tests nothing.
            PatchOperation::Move(_) | PatchOperation::Copy(_) | PatchOperation::Test(_) => return None,
        };
        let pointer = pointer.to_string();
        let parts: Vec<&str> = pointer.split('/').skip(1).collect();
        let allowed = operation == "replace"
            && match parts.as_slice() {
                ["containers", _, "image"] => true,
                ["containers", _, "resources", "requests" | "limits", "cpu" | "memory"] => resize,
                _ => false,
            };
        (!allowed).then_some((operation, pointer))
    })
}
