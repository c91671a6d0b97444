//! A pod made from a pod template.

use jiff::Timestamp;
use kruise_api::{annotations, conditions::IN_PLACE_UPDATE_READY, json as paths, lifecycle::State};
use serde_json::{Map, Value, json};

use crate::{
    effect::Effect,
    lifecycle,
    object::{ObjectRef, POD},
};

/// A pod that does not exist yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPod(Value);

impl NewPod {
    /// A pod as the template says: its labels, annotations, finalizers and spec, under this name, controlled by `owner`.
    pub fn new(owner: &ObjectRef, template: &Value, name: &str) -> Self {
        let mut metadata = Map::new();
        for member in ["labels", "annotations", "finalizers"] {
            if let Some(value) = template.pointer("/metadata").and_then(|metadata| metadata.get(member)) {
                metadata.insert(member.to_owned(), value.clone());
            }
        }
        metadata.insert("name".to_owned(), name.into());
        metadata.insert("namespace".to_owned(), json!(owner.key.namespace));
        metadata.insert("ownerReferences".to_owned(), json!([owner.controller_reference()]));
        Self(json!({
            "apiVersion": POD.api_version(),
            "kind": POD.kind,
            "metadata": metadata,
            "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
        }))
    }

    /// Sets `metadata.generateName` to `<owner>-`, as for pods with random names.
    #[must_use]
    pub fn with_generate_name(mut self, owner: &ObjectRef) -> Self {
        paths::set(&mut self.0, &["metadata", "generateName"], format!("{}-", owner.key.name));
        self
    }

    /// Adds labels.
    #[must_use]
    pub fn with_labels(mut self, labels: Map<String, Value>) -> Self {
        for (key, value) in labels {
            paths::set(&mut self.0, &["metadata", "labels", &key], value);
        }
        self
    }

    /// Adds an annotation.
    #[must_use]
    pub fn with_annotation(mut self, key: &str, value: Value) -> Self {
        paths::set(&mut self.0, &["metadata", "annotations", key], value);
        self
    }

    /// Marks the pod as one that the `preNormal` hook has still to see.
    #[must_use]
    pub fn preparing(self, now: Timestamp) -> Self {
        let (labels, annotations) = lifecycle::marks(&State::PreparingNormal, now);
        let timestamp = annotations.get(annotations::LIFECYCLE_TIMESTAMP).cloned().unwrap_or_default();
        self.with_labels(labels.as_object().cloned().unwrap_or_default())
            .with_annotation(annotations::LIFECYCLE_TIMESTAMP, timestamp)
    }

    /// Adds the readiness gate that updates in place need.
    #[must_use]
    pub fn with_in_place_gate(mut self) -> Self {
        let Some(spec) = self.0.get_mut("spec").and_then(Value::as_object_mut) else { return self };
        let gates = spec.entry("readinessGates").or_insert_with(|| json!([]));
        let Some(gates) = gates.as_array_mut() else { return self };
        let is_ours =
            |gate: &Value| gate.get("conditionType").and_then(Value::as_str) == Some(IN_PLACE_UPDATE_READY);
        if !gates.iter().any(is_ours) {
            gates.push(json!({"conditionType": IN_PLACE_UPDATE_READY}));
        }
        self
    }

    /// Adds a volume for each claim, given as the name of the volume and the name of the claim. A volume of the template
    /// with the same name is replaced.
    #[must_use]
    pub fn with_claims(mut self, claims: &[(String, String)]) -> Self {
        let Some(spec) = self.0.get_mut("spec").and_then(Value::as_object_mut) else { return self };
        if claims.is_empty() {
            return self;
        }
        let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
        let Some(volumes) = volumes.as_array_mut() else { return self };
        volumes.retain(|volume| {
            let name = volume.get("name").and_then(Value::as_str);
            !claims.iter().any(|(claimed, _)| name == Some(claimed))
        });
        for (volume, claim) in claims {
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
        }
        self
    }

    /// Sets a member of the spec, such as `hostname`.
    #[must_use]
    pub fn with_spec(mut self, path: &[&str], value: Value) -> Self {
        let path: Vec<&str> = std::iter::once("spec").chain(path.iter().copied()).collect();
        paths::set(&mut self.0, &path, value);
        self
    }

    /// The whole object.
    pub fn object(self) -> Value {
        self.0
    }

    /// The write that creates it.
    pub fn create(self, namespace: &str) -> Effect {
        Effect::Create { resource: POD, namespace: namespace.into(), object: self.0 }
    }
}
