//! The fields of custom resources that selectors may ask about.
//!
//! The real server moves what all versions share to the top of the spec before it validates, the schema and these fields
//! each by itself. Fields therefore need their schema in the same place: versions that share one and not the other are
//! refused.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{list, text};
use crate::field::{Error, Path};

const MOST: usize = 8;

/// What is wrong with the selectable fields of all versions.
pub(super) fn validate(versions: &[Value], path: &Path<'_>, errors: &mut Vec<Error>) {
    let shared = |part: &str| {
        let mut parts = versions.iter().map(|version| version.get(part));
        parts.next().is_some_and(|first| parts.all(|part| part == first))
    };
    let (fields_shared, schema_shared) = (shared("selectableFields"), shared("schema"));
    if fields_shared {
        let Some(version) =
            versions.first().filter(|version| !list(Some(version), "selectableFields").is_empty())
        else {
            return;
        };
        let own = path.child("selectableFields");
        match schema_shared {
            true => check(version, &own, errors),
            false => {
                errors.push(Error::invalid(own, "", "may only be set when validations.schema is included"));
            }
        }
        return;
    }
    let versions_path = path.child("versions");
    for (i, version) in versions.iter().enumerate() {
        if list(Some(version), "selectableFields").is_empty() {
            continue;
        }
        let at = versions_path.index(i);
        let own = at.child("selectableFields");
        match schema_shared {
            true => {
                let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
                errors.push(Error::invalid(own, "", why));
            }
            false => check(version, &own, errors),
        }
    }
}

fn check(version: &Value, path: &Path<'_>, errors: &mut Vec<Error>) {
    let schema = version.pointer("/schema/openAPIV3Schema");
    let mut seen = BTreeSet::new();
    for (i, field) in list(Some(version), "selectableFields").iter().enumerate() {
        let at = path.index(i);
        let own = at.child("jsonPath");
        let way = text(field, "/jsonPath");
        if way.is_empty() {
            errors.push(Error::required(own, ""));
            continue;
        }
        let (steps, found) = match resolve(way, schema) {
            Ok(found) => found,
            Err(why) => {
                errors.push(Error::invalid(own, way, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if steps.first().is_some_and(|first| first == "metadata") {
            errors.push(Error::invalid(own, way, "must not point to fields in metadata"));
        }
        if !matches!(text(found, "/type"), "string" | "boolean" | "integer") {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                       formats are allowed.";
            errors.push(Error::invalid(own, way, why));
        }
        if !seen.insert(steps) {
            errors.push(Error::duplicate(own, way));
        }
    }
    if seen.len() > MOST {
        errors.push(Error::too_many(path, seen.len() as u64, MOST as u64));
    }
}

/// The steps of a path like `.spec.color`, and the schema that it leads to.
fn resolve<'s>(way: &str, schema: Option<&'s Value>) -> Result<(Vec<String>, &'s Value), String> {
    let invalid = || "does not refer to a valid field".to_owned();
    let mut here = schema.ok_or_else(invalid)?;
    let mut steps = Vec::new();
    let mut rest = way;
    while !rest.is_empty() {
        let end = rest.find(['.', '[', ']']);
        let Some(after) = rest.strip_prefix('.') else {
            return Err(match rest.starts_with('[') {
                true => "array notation is not allowed".to_owned(),
                false => {
                    let token = rest.get(..end.filter(|end| *end > 0).unwrap_or(1)).unwrap_or(rest);
                    let token = if end.is_none() { rest } else { token };
                    format!("expected [ or . but got: {token}")
                }
            });
        };
        let end = after.find(['.', '[', ']']).unwrap_or(after.len());
        let name = match (after.is_empty(), end) {
            (true, _) => return Err("unexpected end of JSON path".to_owned()),
            // A delimiter is taken for a name, which no field has.
            (_, 0) => after.get(..1).unwrap_or_default(),
            (_, end) => after.get(..end).unwrap_or_default(),
        };
        here = match (here.get("properties"), here.get("additionalProperties")) {
            (Some(properties), _) => properties.get(name).ok_or_else(invalid)?,
            (None, Some(inner)) => inner,
            (None, None) => return Err(invalid()),
        };
        steps.push(name.to_owned());
        rest = after.get(name.len()..).unwrap_or_default();
    }
    Ok((steps, here))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(name: &str, fields: &[&str]) -> Value {
        let fields: Vec<Value> = fields.iter().map(|path| json!({"jsonPath": path})).collect();
        json!({"name": name, "selectableFields": fields, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {"type": "object", "properties": {
                "color": {"type": "string"}, "size": {"type": "integer"}, "list": {"type": "array"},
            }},
        }}}})
    }

    #[track_caller]
    fn check(versions: &[Value], expected: &[&str]) {
        let mut errors = Vec::new();
        validate(versions, &Path::new("spec"), &mut errors);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn fields_must_lead_to_single_values_below_spec_or_status() {
        check(&[version("v1", &[".spec.color", ".spec.size"])], &[]);
        check(&[version("v1", &[])], &[]);
        let is = "is an invalid path:";
        check(
            &[version(
                "v1",
                &[
                    "",
                    "spec",
                    ".spec[0]",
                    ".spec.",
                    ".spec.other",
                    ".spec.list",
                    ".metadata.name",
                    ".spec.color",
                    ".spec.color",
                ],
            )],
            &[
                "spec.selectableFields[0].jsonPath: Required value",
                &format!(
                    "spec.selectableFields[1].jsonPath: Invalid value: \"spec\": {is} expected [ or . but got: spec"
                ),
                &format!(
                    "spec.selectableFields[2].jsonPath: Invalid value: \".spec[0]\": {is} array notation is not allowed"
                ),
                &format!(
                    "spec.selectableFields[3].jsonPath: Invalid value: \".spec.\": {is} unexpected end of JSON path"
                ),
                &format!(
                    "spec.selectableFields[4].jsonPath: Invalid value: \".spec.other\": {is} does not refer to a valid field"
                ),
                "spec.selectableFields[5].jsonPath: Invalid value: \".spec.list\": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
                "spec.selectableFields[6].jsonPath: Invalid value: \".metadata.name\": must not point to fields in metadata",
                "spec.selectableFields[8].jsonPath: Duplicate value: \".spec.color\"",
            ],
        );
    }

    #[test]
    fn versions_share_fields_and_schema_or_neither() {
        let (first, mut second) = (version("v1", &[".spec.color"]), version("v2", &[".spec.color"]));
        check(&[first.clone(), second.clone()], &[]);
        second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["more"] =
            json!({"type": "string"});
        check(
            &[first.clone(), second.clone()],
            &[
                "spec.selectableFields: Invalid value: \"\": may only be set when validations.schema is included",
            ],
        );
        second["selectableFields"] = json!([{"jsonPath": ".spec.more"}]);
        check(&[first.clone(), second.clone()], &[]);
        check(
            &[first, version("v2", &[".spec.size"])],
            &[
                "spec.versions[0].selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included",
                "spec.versions[1].selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included",
            ],
        );
    }
}
