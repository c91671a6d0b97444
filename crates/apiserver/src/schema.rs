//! Structural schemas of custom resources: what a CRD says about its objects.
//!
//! A schema is read once into a compact tree ([`Structural`]); the tree then prunes unknown fields, fills in
//! defaults and validates objects, with the real server's messages. [`crd`] holds the rules for the CRD object
//! itself.
//!
//! CEL rules (`x-kubernetes-validations`) are kept in the tree but **not evaluated**; see [`Structural::rules`].

pub mod crd;
mod defaults;
mod format;
mod node;
mod pattern;
mod prune;
mod validate;

use serde_json::Value;

use crate::field::{self, Path};
use crate::patch::depth;

use node::Node;

/// Values nested deeper than this are neither changed nor accepted, so that no input can exhaust the stack.
pub const MAX_DEPTH: usize = 128;

/// A schema, ready for use.
#[derive(Clone, Debug)]
pub struct Structural {
    root: Node,
}

impl Structural {
    /// Reads `openAPIV3Schema`. The errors are those that make a schema non-structural.
    pub fn parse(schema: &Value) -> Result<Self, Vec<field::Error>> {
        Self::parse_at(schema, &Path::new("spec.validation.openAPIV3Schema"))
    }

    /// The same, with errors that name another place.
    pub fn parse_at(schema: &Value, path: &Path<'_>) -> Result<Self, Vec<field::Error>> {
        if depth(schema) > MAX_DEPTH {
            let why = format!("must not be nested more than {MAX_DEPTH} levels deep");
            return Err(vec![field::Error::invalid(path, "", why)]);
        }
        let mut errors = Vec::new();
        let root = Node::parse_root(schema, path, &mut errors);
        if errors.is_empty() {
            return Ok(Self { root });
        }
        errors.sort_by_cached_key(ToString::to_string);
        Err(errors)
    }

    /// Removes the fields that the schema does not know and returns their paths, for example `spec.foo`. The
    /// object's own `apiVersion`, `kind` and `metadata` always stay.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        if depth(object) > MAX_DEPTH {
            return Vec::new();
        }
        prune::prune(&self.root, object)
    }

    /// The unknown fields as `fieldValidation` reports them: `unknown field "spec.foo"`.
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        let paths = self.prune(&mut object.clone());
        paths.iter().map(|path| format!("unknown field {}", field::quote(path))).collect()
    }

    /// Drops nulls that the schema does not allow and fills in defaults.
    pub fn apply_defaults(&self, object: &mut Value) {
        if depth(object) <= MAX_DEPTH {
            defaults::apply(&self.root, object);
        }
    }

    /// What is wrong with a new object. `path` is [`Path::root`] for a whole object.
    pub fn validate(&self, object: &Value, path: &Path<'_>) -> Vec<field::Error> {
        self.check(object, None, path)
    }

    /// What is wrong with a changed object. Values that were wrong before and did not change are let pass, so that
    /// a stricter schema does not block every write to old objects.
    pub fn validate_update(&self, object: &Value, old: &Value, path: &Path<'_>) -> Vec<field::Error> {
        self.check(object, Some(old), path)
    }

    fn check(&self, object: &Value, old: Option<&Value>, path: &Path<'_>) -> Vec<field::Error> {
        if depth(object) > MAX_DEPTH || old.is_some_and(|old| depth(old) > MAX_DEPTH) {
            let why = format!("must not be nested more than {MAX_DEPTH} levels deep");
            let path = if path.is_root() { "<nil>".to_owned() } else { path.to_string() };
            return vec![field::Error::invalid(path, "", why)];
        }
        validate::validate(&self.root, object, old, path)
    }

    /// How many CEL rules the schema has. They are accepted and not evaluated: an evaluator would walk the tree
    /// beside [`Structural::validate`].
    pub fn rules(&self) -> usize {
        self.root.rule_count()
    }
}

#[cfg(test)]
mod tests;
