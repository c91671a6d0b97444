//! The options of a delete, from a body or a query.

use serde_json::{Value, json};

use crate::field;
use crate::rest::Query;
use crate::rest::options::dry_run_errors;
use crate::status::{GroupKind, Status};

/// What happens to the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They lose their owner and stay.
    Orphan,
    /// The garbage collector deletes them afterwards.
    Background,
    /// They go first; the owner waits for them.
    Foreground,
}

/// What must hold for the delete to happen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// The uid the object must have.
    pub uid: Option<String>,
    /// The version the object must have.
    pub resource_version: Option<String>,
}

/// The options of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// How long the object may take to stop; `None` is the kind's default.
    pub grace_period_seconds: Option<i64>,
    /// What happens to dependents; `None` is the kind's default.
    pub propagation: Option<Propagation>,
    /// What must hold.
    pub preconditions: Preconditions,
    /// Whether nothing shall be stored.
    pub dry_run: bool,
    /// The old way to say orphan (true) or background (false); only one of the two ways may be used.
    pub orphan_dependents: Option<bool>,
}

impl DeleteOptions {
    /// From a request: the body if there is one, else the query.
    pub(crate) fn read(body: Option<&Value>, query: &Query) -> Result<Self, Status> {
        match body {
            Some(body) => Self::from_body(body),
            None => Self::from_query(query),
        }
    }

    fn from_body(body: &Value) -> Result<Self, Status> {
        check_types(body)?;
        let text = |path: &str| body.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let stages: Vec<&str> = body
            .get("dryRun")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        Self::check(
            body.get("gracePeriodSeconds").and_then(Value::as_i64),
            text("/propagationPolicy"),
            body.get("orphanDependents").and_then(Value::as_bool),
            &stages,
            Preconditions {
                uid: text("/preconditions/uid"),
                resource_version: text("/preconditions/resourceVersion"),
            },
        )
    }

    fn from_query(query: &Query) -> Result<Self, Status> {
        let policy = query.text("propagationPolicy");
        let orphan = query.has("orphanDependents").then(|| query.flag("orphanDependents"));
        let stages: Vec<&str> = query.all("dryRun").collect();
        Self::check(
            query.number("gracePeriodSeconds")?,
            (!policy.is_empty()).then(|| policy.to_owned()),
            orphan,
            &stages,
            Preconditions::default(),
        )
    }

    fn check(
        grace_period_seconds: Option<i64>,
        policy: Option<String>,
        orphan_dependents: Option<bool>,
        stages: &[&str],
        preconditions: Preconditions,
    ) -> Result<Self, Status> {
        let mut errors = Vec::new();
        if orphan_dependents.is_some() && policy.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(field::Error::invalid(
                "propagationPolicy",
                policy.clone().unwrap_or_default(),
                detail,
            ));
        }
        let propagation = match policy.as_deref() {
            None => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(field::Error::not_supported("propagationPolicy", other, &known));
                None
            }
        };
        errors.extend(dry_run_errors(stages));
        if !errors.is_empty() {
            return Err(Status::invalid(GroupKind::new("meta.k8s.io", "DeleteOptions"), "", errors));
        }
        let dry_run = !stages.is_empty();
        Ok(Self { grace_period_seconds, propagation, preconditions, dry_run, orphan_dependents })
    }

    /// As admission sees them.
    pub(super) fn to_value(&self) -> Value {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(map) = options.as_object_mut() {
            if let Some(seconds) = self.grace_period_seconds {
                map.insert("gracePeriodSeconds".to_owned(), json!(seconds));
            }
            if let Some(propagation) = self.propagation {
                map.insert("propagationPolicy".to_owned(), json!(format!("{propagation:?}")));
            }
            if self.dry_run {
                map.insert("dryRun".to_owned(), json!(["All"]));
            }
            let mut preconditions = serde_json::Map::new();
            if let Some(uid) = &self.preconditions.uid {
                preconditions.insert("uid".to_owned(), json!(uid));
            }
            if let Some(version) = &self.preconditions.resource_version {
                preconditions.insert("resourceVersion".to_owned(), json!(version));
            }
            if !preconditions.is_empty() {
                map.insert("preconditions".to_owned(), Value::Object(preconditions));
            }
        }
        options
    }
}

/// An option of the wrong type is refused: a delete that only looks like a dry run must not happen.
fn check_types(body: &Value) -> Result<(), Status> {
    let Value::Object(options) = body else {
        return Err(Status::bad_request("DeleteOptions must be an object"));
    };
    let text = |value: &Value| value.is_string();
    for (name, value) in options.iter().filter(|(_, value)| !value.is_null()) {
        let (fits, wanted) = match name.as_str() {
            "gracePeriodSeconds" => (value.is_i64(), "int64"),
            "orphanDependents" => (value.is_boolean(), "bool"),
            "propagationPolicy" => (text(value), "string"),
            "dryRun" => (value.as_array().is_some_and(|list| list.iter().all(text)), "[]string"),
            "preconditions" => {
                let fields = value.as_object();
                (
                    fields.is_some_and(|fields| fields.values().all(|v| v.is_null() || text(v))),
                    "Preconditions",
                )
            }
            _ => continue,
        };
        if !fits {
            return Err(Status::bad_request(format!(
                "DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: json: cannot unmarshal {value} \
                 into Go struct field DeleteOptions.{name} of type {wanted}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_of_the_wrong_type_are_refused() {
        for body in [
            json!([]),
            json!({"gracePeriodSeconds": "x"}),
            json!({"gracePeriodSeconds": 1.5}),
            json!({"dryRun": "All"}),
            json!({"propagationPolicy": 1}),
            json!({"orphanDependents": "true"}),
            json!({"preconditions": {"uid": 5}}),
        ] {
            assert_eq!(DeleteOptions::from_body(&body).unwrap_err().code, 400, "{body}");
        }
        let good = json!({"kind": "DeleteOptions", "gracePeriodSeconds": 0, "dryRun": ["All"], "preconditions": null});
        assert!(DeleteOptions::from_body(&good).unwrap().dry_run);
    }
}
