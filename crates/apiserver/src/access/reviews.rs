//! Questions that clients ask about rights and names: reviews. Nothing of them is stored.

use serde_json::{Map, Value, json};

use super::{Question, What};
use crate::admission::User;
use crate::field::Error;
use crate::rest::{Target, WriteOptions};
use crate::server::ApiServer;
use crate::status::{GroupKind, Status};

impl ApiServer {
    /// Answers a review, which is an object of its own kind.
    pub(crate) fn review(
        &self,
        target: &Target,
        mut review: Value,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let kind = target.resource.kind.as_ref();
        let spec = review.get("spec").cloned().unwrap_or_default();
        let status = match kind {
            "SelfSubjectReview" => json!({"userInfo": options.user.info()}),
            "TokenReview" => self.token_review(&spec)?,
            "SelfSubjectRulesReview" => {
                // The real server answers without what was asked.
                put(&mut review, "spec", json!({}));
                self.rules_review(&spec, &options.user)?
            }
            _ => {
                let errors = faults(kind, &review, &spec, &target.namespace);
                if !errors.is_empty() {
                    let group = target.resource.group.as_ref();
                    return Err(Status::invalid(GroupKind::new(group, kind), "", errors));
                }
                let user =
                    if kind == "SelfSubjectAccessReview" { options.user.clone() } else { user_of(&spec) };
                self.access_review(&spec, &user)
            }
        };
        put(&mut review, "status", status);
        if kind == "SelfSubjectReview" {
            put(&mut review, "metadata", json!({"creationTimestamp": self.clock().now_text()}));
        }
        Ok(review)
    }

    fn access_review(&self, spec: &Value, user: &User) -> Value {
        let text = |path: &str| spec.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (verb, what) = if spec.get("nonResourceAttributes").is_some_and(Value::is_object) {
            (text("/nonResourceAttributes/verb"), What::Path(text("/nonResourceAttributes/path")))
        } else {
            let what = What::Resource {
                group: text("/resourceAttributes/group"),
                resource: text("/resourceAttributes/resource"),
                subresource: text("/resourceAttributes/subresource"),
                namespace: text("/resourceAttributes/namespace"),
                name: text("/resourceAttributes/name"),
            };
            (text("/resourceAttributes/verb"), what)
        };
        let decision = self.may(&Question { user, verb, what });
        let mut status = Map::new();
        status.insert("allowed".to_owned(), decision.allowed.into());
        if !decision.reason.is_empty() {
            status.insert("reason".to_owned(), decision.reason.into());
        }
        status.into()
    }

    fn rules_review(&self, spec: &Value, user: &User) -> Result<Value, Status> {
        let namespace = spec.get("namespace").and_then(Value::as_str).unwrap_or_default();
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let (rules, mut problems) = self.rules_for(user, namespace);
        let is_node = user.name.starts_with("system:node:");
        if is_node {
            problems.insert(0, "node authorizer does not support user rule resolution".to_owned());
        }
        let (mut resources, mut paths) = (Vec::new(), Vec::new());
        for rule in rules {
            if !rule.resources.is_empty() {
                let mut shown =
                    json!({"verbs": rule.verbs, "apiGroups": rule.groups, "resources": rule.resources});
                if !rule.names.is_empty() {
                    put(&mut shown, "resourceNames", json!(rule.names));
                }
                resources.push(shown);
            }
            if !rule.urls.is_empty() {
                paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls}));
            }
        }
        let mut status =
            json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": is_node});
        if let Some(problem) = super::together(&problems) {
            put(&mut status, "evaluationError", problem.into());
        }
        Ok(status)
    }

    fn token_review(&self, spec: &Value) -> Result<Value, Status> {
        let token = spec.get("token").and_then(Value::as_str).unwrap_or_default();
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let audiences = strings(spec.get("audiences"));
        Ok(match self.authenticate_token(token, &audiences) {
            Ok((user, audiences)) => {
                json!({"authenticated": true, "user": user.info(), "audiences": audiences})
            }
            Err(error) => json!({"user": {}, "error": error}),
        })
    }
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The user that a review is about.
fn user_of(spec: &Value) -> User {
    let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let extra = spec.get("extra").and_then(Value::as_object);
    let extra = extra.into_iter().flatten().map(|(key, values)| (key.clone(), strings(Some(values))));
    User { name: text("user"), uid: text("uid"), groups: strings(spec.get("groups")), extra: extra.collect() }
}

/// What is wrong with a question about rights.
fn faults(kind: &str, review: &Value, spec: &Value, namespace: &str) -> Vec<Error> {
    let has = |key: &str| spec.get(key).is_some_and(|value| !value.is_null());
    let shown = |key: &str| spec.get(key).cloned().unwrap_or_default();
    let mut errors = Vec::new();
    if has("resourceAttributes") && has("nonResourceAttributes") {
        errors.push(Error::invalid(
            "spec.nonResourceAttributes",
            shown("nonResourceAttributes"),
            "cannot be specified in combination with resourceAttributes",
        ));
    }
    if !has("resourceAttributes") && !has("nonResourceAttributes") {
        errors.push(Error::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ));
    }
    let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default();
    if kind != "SelfSubjectAccessReview" && text("user").is_empty() && strings(spec.get("groups")).is_empty()
    {
        errors.push(Error::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    let local = kind == "LocalSubjectAccessReview";
    let meta = review.get("metadata").and_then(Value::as_object);
    let is_said = |(key, value): &(&String, &Value)| {
        let empty = value.is_null() || value.as_str().is_some_and(str::is_empty);
        !empty && key.as_str() != "managedFields" && !(local && key.as_str() == "namespace")
    };
    if meta.into_iter().flatten().any(|entry| is_said(&entry)) {
        let rule = if local { "must be empty except for namespace" } else { "must be empty" };
        errors.push(Error::invalid("metadata", review.get("metadata").cloned().unwrap_or_default(), rule));
    }
    if local {
        let asked = spec.pointer("/resourceAttributes/namespace").and_then(Value::as_str).unwrap_or_default();
        if has("resourceAttributes") && asked != namespace {
            let rule = "must match metadata.namespace";
            errors.push(Error::invalid("spec.resourceAttributes.namespace", asked, rule));
        }
        if has("nonResourceAttributes") {
            let rule = "disallowed on this kind of request";
            errors.push(Error::invalid("spec.nonResourceAttributes", shown("nonResourceAttributes"), rule));
        }
    }
    errors
}
