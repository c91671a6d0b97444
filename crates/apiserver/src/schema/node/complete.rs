//! Checks that need the whole tree: nested schemas may limit only what exists, and defaults must be valid.

use super::{Additional, Node};
use crate::field::{Error, Path};
use crate::schema::{prune, validate};

/// What `allOf` and the like at the root say about fields must be about fields that the schema has.
pub(super) fn nested(root: &Node, path: &Path<'_>, errors: &mut Vec<Error>) {
    parts(root, root, path, path, errors);
}

/// Walks the schemas nested in `limits`, which limit the value that `node` describes.
fn parts(limits: &Node, node: &Node, node_path: &Path<'_>, path: &Path<'_>, errors: &mut Vec<Error>) {
    let Some(limits) = limits.limits.as_deref() else { return };
    if let Some(not) = &limits.not {
        part(not, node, node_path, &path.child("not"), errors);
    }
    for (name, list) in [("allOf", &limits.all_of), ("anyOf", &limits.any_of), ("oneOf", &limits.one_of)] {
        let own = path.child(name);
        for (i, inner) in list.iter().enumerate() {
            part(inner, node, node_path, &own.index(i), errors);
        }
    }
}

fn part(nested: &Node, node: &Node, node_path: &Path<'_>, path: &Path<'_>, errors: &mut Vec<Error>) {
    parts(nested, node, node_path, path, errors);
    if let Some(inner) = &nested.items {
        let (own, at) = (path.child("items"), node_path.child("items"));
        match &node.items {
            Some(items) => part(inner, items, &at, &own, errors),
            None => errors.push(Error::required(at, format!("because it is defined in {own}"))),
        }
    }
    let (own, at) = (path.child("properties"), node_path.child("properties"));
    for (name, inner) in &nested.properties {
        let (own, at) = (own.key(name), at.key(name));
        match node.properties.get(name) {
            Some(property) => part(inner, property, &at, &own, errors),
            None => errors.push(Error::required(at, format!("because it is defined in {own}"))),
        }
    }
}

/// Defaults must hold against their own schema and have no unknown fields.
pub(super) fn defaults(node: &Node, is_metadata: bool, path: &Path<'_>, errors: &mut Vec<Error>) {
    if let Some(default) = &node.default
        && !is_metadata
    {
        let own = path.child("default");
        let mut pruned = default.clone();
        if !prune::prune(node, &mut pruned).is_empty() {
            errors.push(Error::invalid(own, default.clone(), "must not have unknown fields"));
        }
        errors.extend(validate::values(node, default, None, &own));
    }
    let properties = path.child("properties");
    for (name, property) in &node.properties {
        let is_metadata = is_metadata || (node.embedded && name == "metadata");
        defaults(property, is_metadata, &properties.key(name), errors);
    }
    if let Additional::Schema(inner) = &node.additional {
        defaults(inner, is_metadata, &path.child("additionalProperties"), errors);
    }
    if let Some(inner) = &node.items {
        defaults(inner, is_metadata, &path.child("items"), errors);
    }
}
