//! ValidatingAdmissionPolicies: expressions that requests must fulfil, where a binding says so.
//!
//! Policies and bindings are read live from the store and compiled once for each of their versions. A policy counts
//! where one of its bindings does; of all that refuse a request, the first by name is told.

pub(crate) mod decide;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::Value;

use self::decide::Policy;
use super::expressions::Input;
use super::scope::{self, Rule, Scope};
use super::{Admission, Attributes, Operation, request};
use crate::registry::{Resource, split_api_version};
use crate::selector::Labels;
use crate::server::ApiServer;
use crate::status::{Cause, Status};
use crate::store::Record;

const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";

/// The policies of a server, as one hook.
#[derive(Default)]
pub(crate) struct Policies {
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    policies: Vec<Arc<Record>>,
    bindings: Vec<Arc<Record>>,
    bound: Arc<[Bound]>,
}

/// A policy with its bindings.
pub(super) struct Bound {
    name: String,
    policy: Policy,
    constraints: Constraints,
    /// The kind of parameters, if it takes any.
    params: Option<(String, String)>,
    bindings: Vec<Binding>,
}

struct Binding {
    name: String,
    constraints: Option<Constraints>,
    params: Option<ParamRef>,
    actions: Vec<String>,
}

struct ParamRef {
    name: String,
    namespace: String,
    selector: Option<Labels>,
    needed: bool,
}

/// What `matchConstraints` and `matchResources` say.
struct Constraints {
    scope: Scope,
    excluded: Vec<Rule>,
}

/// A reason to refuse.
struct Denial {
    policy: String,
    binding: Option<String>,
    reason: String,
    message: String,
}

impl Policies {
    /// Whether the rules of any policy name such a request; if none do, it needs no second look.
    pub(crate) fn concern(
        &self,
        server: &ApiServer,
        operation: Operation,
        resource: &Arc<Resource>,
        subresource: Option<&str>,
    ) -> bool {
        let names = |bound: &Bound| {
            let Scope { rules, exact, .. } = &bound.constraints.scope;
            let registry = server.registry();
            scope::by_rules(rules, *exact, registry, operation, resource, subresource, None).is_some()
        };
        !scope::is_exempt(resource) && self.bound(server).iter().any(names)
    }

    fn bound(&self, server: &ApiServer) -> Arc<[Bound]> {
        let (_, policies) = server.store().list(POLICIES, None);
        let (_, bindings) = server.store().list(BINDINGS, None);
        let same = |one: &[Arc<Record>], other: &[Arc<Record>]| {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if !same(&read.policies, &policies) || !same(&read.bindings, &bindings) {
            let bound = bound(&policies, &bindings).into();
            *read = Read { policies, bindings, bound };
        }
        read.bound.clone()
    }

    async fn check(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<(), Status> {
        if scope::is_exempt(attributes.resource) {
            return Ok(());
        }
        let mut denials = Vec::new();
        for bound in self.bound(attributes.server).iter() {
            if let Err(why) = bound.check(attributes, object, &mut denials).await {
                denials.extend(bound.misconfigured(None, &why));
            }
        }
        denials.into_iter().next().map_or(Ok(()), |denial| Err(denial.refusal(attributes)))
    }
}

impl Bound {
    async fn check(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        denials: &mut Vec<Denial>,
    ) -> Result<(), String> {
        let Some(wanted) = self.constraints.matched(attributes, object)? else { return Ok(()) };
        let param_resource = match &self.params {
            None => None,
            Some((api_version, kind)) => Some(param_resource(attributes.server, api_version, kind)?),
        };
        let in_version = |object| request::in_version(&wanted, attributes, object);
        let message = |status: Status| format!("failed to convert object version: {}", status.message);
        let new = in_version(object).await.map_err(message)?;
        let old = in_version(attributes.old).await.map_err(message)?;
        let (new, old) = (new.as_ref().or(object), old.as_ref().or(attributes.old));
        for binding in &self.bindings {
            let found = match binding.matches(attributes, object) {
                Ok(false) => continue,
                Ok(true) => params(attributes, param_resource.as_ref(), binding.params.as_ref()).await,
                Err(why) => Err(why),
            };
            let found = match found {
                Ok(found) => found,
                Err(why) => {
                    denials.extend(self.misconfigured(Some(&binding.name), &why));
                    continue;
                }
            };
            let namespace = namespace_object(attributes);
            for params in found {
                let input = Input::new(attributes, &wanted, new, old)
                    .in_namespace(namespace.as_ref())
                    .with_params(params.as_ref());
                for refused in self.policy.decide(&input) {
                    self.act(binding, refused, attributes, denials);
                }
            }
        }
        Ok(())
    }

    /// Does what the binding says about a request that breaks the policy. There is no log of audits here.
    fn act(
        &self,
        binding: &Binding,
        refused: decide::Refused,
        attributes: &Attributes<'_>,
        denials: &mut Vec<Denial>,
    ) {
        let decide::Refused { reason, message, always } = refused;
        let does = |action: &str| binding.actions.iter().any(|known| known == action);
        if does("Warn") && !always {
            attributes.warnings.add(format!(
                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                self.name, binding.name
            ));
        }
        if does("Deny") || always {
            let (policy, binding) = (self.name.clone(), Some(binding.name.clone()));
            denials.push(Denial { policy, binding, reason, message });
        }
    }

    /// A policy that cannot be asked refuses, unless it is to be ignored then.
    fn misconfigured(&self, binding: Option<&str>, why: &str) -> Option<Denial> {
        let what = if binding.is_some() { "binding" } else { "policy" };
        (!self.policy.ignores_failure).then(|| Denial {
            policy: self.name.clone(),
            binding: binding.map(ToOwned::to_owned),
            reason: "Invalid".to_owned(),
            message: format!("failed to configure {what}: {why}"),
        })
    }
}

impl Binding {
    fn matches(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<bool, String> {
        match &self.constraints {
            None => Ok(true),
            Some(constraints) => Ok(constraints.matched(attributes, object)?.is_some()),
        }
    }
}

impl Constraints {
    fn parse(resources: &Value) -> Self {
        let excluded = resources.get("excludeResourceRules").and_then(Value::as_array);
        Self {
            scope: Scope::parse(resources, "resourceRules"),
            excluded: excluded.into_iter().flatten().map(Rule::parse).collect(),
        }
    }

    /// The version in which a request is to be seen; `None` if it is not meant.
    fn matched(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Arc<Resource>>, String> {
        let Attributes { server, operation, resource, subresource, name, .. } = *attributes;
        let by_rules = |rules: &[Rule]| {
            let registry = server.registry();
            scope::by_rules(rules, self.scope.exact, registry, operation, resource, subresource, Some(name))
        };
        if by_rules(&self.excluded).is_some() {
            return Ok(None);
        }
        let wanted =
            if self.scope.rules.is_empty() { Some(resource.clone()) } else { by_rules(&self.scope.rules) };
        // Selectors are asked last: a namespace that is not there matters only to those who are meant.
        match wanted {
            Some(wanted) => {
                let selected = self.scope.selects(attributes, object).map_err(|status| status.message)?;
                Ok(selected.then_some(wanted))
            }
            None => Ok(None),
        }
    }
}

impl Denial {
    fn refusal(self, attributes: &Attributes<'_>) -> Status {
        let Self { policy, binding, reason, message } = self;
        let by = match binding {
            Some(binding) => format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}'"),
            None => format!("ValidatingAdmissionPolicy '{policy}'"),
        };
        let message = format!("{by} denied request: {message}");
        let mut status = Status::forbidden(attributes.resource.group_resource(), attributes.name, &message);
        status.code = match reason.as_str() {
            "Forbidden" => 403,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        status.reason = reason.into();
        if let Some(details) = &mut status.details {
            details.causes.push(Cause { message, ..Cause::default() });
        }
        status
    }
}

/// Policies with at least one binding, by name.
fn bound(policies: &[Arc<Record>], bindings: &[Arc<Record>]) -> Vec<Bound> {
    let mut by_policy: BTreeMap<String, Vec<Binding>> = BTreeMap::new();
    for record in bindings {
        let value = record.value();
        let policy = text(&value, "/spec/policyName").to_owned();
        by_policy.entry(policy).or_default().push(binding(&value));
    }
    let bind = |record: &Arc<Record>| {
        let value = record.value();
        let name = text(&value, "/metadata/name").to_owned();
        let bindings = by_policy.remove(&name)?;
        let spec = value.get("spec")?;
        let params = spec.get("paramKind").filter(|kind| !kind.is_null());
        Some(Bound {
            policy: Policy::compile(spec),
            constraints: Constraints::parse(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            params: params.map(|kind| (text(kind, "/apiVersion").to_owned(), text(kind, "/kind").to_owned())),
            name,
            bindings,
        })
    };
    policies.iter().filter_map(bind).collect()
}

fn binding(value: &Value) -> Binding {
    let params = value.pointer("/spec/paramRef").filter(|params| !params.is_null());
    let resources = value.pointer("/spec/matchResources").filter(|resources| !resources.is_null());
    let actions = value.pointer("/spec/validationActions").and_then(Value::as_array);
    Binding {
        name: text(value, "/metadata/name").to_owned(),
        constraints: resources.map(Constraints::parse),
        params: params.map(|params| ParamRef {
            name: text(params, "/name").to_owned(),
            namespace: text(params, "/namespace").to_owned(),
            selector: params
                .get("selector")
                .filter(|selector| !selector.is_null())
                .map(|selector| Labels::from_object(Some(selector)).unwrap_or_else(|_| Labels::nothing())),
            needed: text(params, "/parameterNotFoundAction") == "Deny",
        }),
        actions: actions
            .into_iter()
            .flatten()
            .filter_map(|action| action.as_str().map(ToOwned::to_owned))
            .collect(),
    }
}

fn param_resource(server: &ApiServer, api_version: &str, kind: &str) -> Result<Arc<Resource>, String> {
    let (group, version) = split_api_version(api_version);
    let is = |resource: &&Arc<Resource>| {
        resource.group == group && resource.version == version && resource.kind == kind
    };
    let all = server.registry().all();
    let unknown =
        || format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'");
    all.iter().find(is).cloned().ok_or_else(unknown)
}

/// The parameters that a policy is to be evaluated with, one after the other.
async fn params(
    attributes: &Attributes<'_>,
    resource: Option<&Arc<Resource>>,
    wanted: Option<&ParamRef>,
) -> Result<Vec<Option<Value>>, String> {
    let (Some(resource), Some(wanted)) = (resource, wanted) else { return Ok(vec![None]) };
    let namespace = match (resource.namespaced, wanted.namespace.as_str()) {
        (false, "") => "",
        (false, _) => {
            let why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
            return Err(why.to_owned());
        }
        (true, "") if attributes.namespace.is_empty() => {
            let why =
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(why.to_owned());
        }
        (true, "") => attributes.namespace,
        (true, namespace) => namespace,
    };
    let store = attributes.server.store();
    let records = match (&wanted.selector, wanted.name.as_str()) {
        (Some(selector), "") => {
            let (_, records) = store.list(&resource.table, Some(namespace));
            records.into_iter().filter(|record| selector.matches_by(|key| record.label(key))).collect()
        }
        (_, name) => store.get(&resource.table, namespace, name).into_iter().collect::<Vec<_>>(),
    };
    if records.is_empty() && wanted.needed {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    let mut found = Vec::new();
    for record in records {
        let value = attributes.server.read(resource, &record).await.map_err(|status| status.message)?;
        found.push(Some(value));
    }
    Ok(found)
}

/// The namespace of a request about something in one.
fn namespace_object(attributes: &Attributes<'_>) -> Option<Value> {
    let name = Some(attributes.namespace).filter(|name| !name.is_empty())?;
    let record = attributes.server.store().get("/namespaces", "", name)?;
    Some(record.value())
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Admission for Policies {
    fn mutate<'a>(
        &'a self,
        _attributes: &'a Attributes<'a>,
        _object: &'a mut Value,
    ) -> BoxFuture<'a, Result<bool, Status>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(attributes, object))
    }
}
