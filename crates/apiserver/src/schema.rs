//! Structural schemas of custom resources: what a CRD says about its objects.
//!
//! A schema is read once into a compact tree ([`Structural`]); the tree then prunes unknown fields, fills in
//! defaults and validates objects, with the real server's messages. [`crd`] holds the rules for the CRD object
//! itself.
//!
//! Rules in the expression language (`x-kubernetes-validations`) are a second tree beside it (`validations`).

pub mod crd;
mod defaults;
mod format;
mod node;
mod pattern;
mod prune;
mod unchanged;
mod validate;
mod validations;

use serde_json::Value;

use crate::field::{self, Path};
use crate::patch::depth;

pub(crate) use format::Format;
use node::Node;
pub(crate) use pattern::translate as go_pattern;
use validations::Checks;

/// Values nested deeper than this are neither changed nor accepted, so that no input can exhaust the stack.
pub const MAX_DEPTH: usize = 128;

/// A schema, ready for use.
#[derive(Clone, Debug)]
pub struct Structural {
    root: Node,
    rules: Option<Checks>,
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
            let rules = Checks::of(&root);
            return Ok(Self { root, rules });
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
    /// a stricter schema does not block every write to old objects. Rules that a value broke before warn (see
    /// [`field::Error::only_warns`]).
    pub fn validate_update(&self, object: &Value, old: &Value, path: &Path<'_>) -> Vec<field::Error> {
        self.check(object, Some(old), path)
    }

    fn check(&self, object: &Value, old: Option<&Value>, path: &Path<'_>) -> Vec<field::Error> {
        if depth(object) > MAX_DEPTH || old.is_some_and(|old| depth(old) > MAX_DEPTH) {
            let why = format!("must not be nested more than {MAX_DEPTH} levels deep");
            let path = if path.is_root() { "<nil>".to_owned() } else { path.to_string() };
            return vec![field::Error::invalid(path, "", why)];
        }
        let mut errors = validate::validate(&self.root, object, old, path);
        let Some(rules) = &self.rules else { return errors };
        // Expressions rely on types and limits.
        let blocks = errors.iter().any(|error| {
            use field::ErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
            matches!(error.kind, NotSupported | Required | TooLong | TooMany | TypeInvalid)
        });
        if blocks {
            let why = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";
            errors.push(field::Error::invalid("<nil>", Value::Null, why));
            return errors;
        }
        let mut budget = validations::BUDGET;
        errors.extend(validations::evaluate(rules, &self.root, object, old, path, &mut budget));
        errors
    }

    /// What is wrong with the rules of the schema: whether they compile, what they may cost, and whether defaults fulfil
    /// them.
    pub fn rule_errors(&self, path: &Path<'_>) -> Vec<field::Error> {
        match &self.rules {
            Some(rules) => validations::errors(rules, &self.root, path),
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
