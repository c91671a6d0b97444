//! Webhooks: admission, and the way to them that conversion uses too.
//!
//! The configurations are read live from the store. Mutating webhooks are called one after the other, by the name
//! of their configuration and then in its order, and some a second time when a later one changed the object;
//! validating ones are called at the same time, and the first refusal in order counts.
//!
//! A webhook is found by its address ([`Address`]). Services registered in this process answer without a socket
//! and in virtual time; a [`Caller`] set on the server reaches the rest, for example over HTTPS.

pub(crate) mod base64;
mod call;
mod hook;
#[cfg(feature = "https")]
pub mod https;
mod review;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use http::{Request, Response};
use http_body_util::Full;
use serde_json::Value;
use tower::Service;

pub(crate) use base64::decode as decode_base64;
pub use call::{Address, Caller, Dispatcher};
use hook::{Concerned, Hook, Hooks};

use crate::admission::expressions::Input;
use crate::admission::{Admission, Attributes, Operation, request, scope};
use crate::patch::json::Operations;
use crate::registry::Resource;
use crate::rest;
use crate::server::ApiServer;
use crate::status::Status;

const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

/// The admission webhooks of a server, as one hook.
pub struct Webhooks {
    mutating: Hooks,
    validating: Hooks,
    dispatcher: Arc<Dispatcher>,
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks").finish_non_exhaustive()
    }
}

/// How a call went wrong.
enum Fault {
    /// The webhook did not answer, or not properly; its failure policy decides.
    Call(String),
    /// The request ends here.
    Refused(Status),
}

impl Webhooks {
    pub(crate) fn new(dispatcher: Arc<Dispatcher>) -> Self {
        Self { mutating: Hooks::new(MUTATING), validating: Hooks::new(VALIDATING), dispatcher }
    }

    pub(crate) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// Whether the rules of any webhook name such a request; if none do, it needs no second look.
    pub(crate) fn concern(
        &self,
        server: &ApiServer,
        operation: Operation,
        resource: &Arc<Resource>,
        subresource: Option<&str>,
    ) -> bool {
        let any = |hooks: &Hooks| !hooks.concerned(server, operation, resource, subresource).is_empty();
        !scope::is_exempt(resource) && (any(&self.mutating) || any(&self.validating))
    }

    /// Calls the mutating webhooks. Deletions have no object, and no webhook may change that. Returns whether the
    /// object changed.
    async fn change(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
    ) -> Result<bool, Status> {
        let Attributes { server, operation, resource, subresource, .. } = *attributes;
        if scope::is_exempt(resource) {
            return Ok(false);
        }
        let hooks = self.mutating.concerned(server, operation, resource, subresource);
        // Those called so far that want to see later changes, and those to call again.
        let (mut seen, mut again) = (BTreeSet::new(), BTreeSet::new());
        let mut any_changed = false;
        for pass in 0..2 {
            if pass == 1
                && any_changed
                && let Some(object) = object.as_deref_mut()
            {
                // What webhooks changed, the admission that is built in sees again; and so do webhooks that want to.
                let before = object.clone();
                rest::built_in_admission(attributes, object)?;
                if *object != before {
                    again.append(&mut seen);
                }
            }
            if pass == 1 && again.is_empty() {
                break;
            }
            for (i, Concerned { hook, wanted }) in hooks.iter().enumerate() {
                let is_due = pass == 0 || again.contains(&i);
                if !is_due || !hook.scope.selects(attributes, object.as_deref())? {
                    continue;
                }
                let changed = match self.change_once(hook, wanted, attributes, object.as_deref_mut()).await {
                    Ok(changed) => changed,
                    Err(fault) => {
                        forgive(hook, fault)?;
                        false
                    }
                };
                if changed {
                    any_changed = true;
                    again.append(&mut seen);
                }
                if hook.reinvoked {
                    seen.insert(i);
                }
            }
        }
        Ok(any_changed)
    }

    /// Calls one mutating webhook. Returns whether it changed the object.
    async fn change_once(
        &self,
        hook: &Hook,
        wanted: &Arc<Resource>,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<bool, Fault> {
        let seen =
            request::in_version(wanted, attributes, object.as_deref()).await.map_err(Fault::Refused)?;
        let shown = seen.as_ref().or(object.as_deref());
        if !is_meant(hook, wanted, attributes, shown).await? {
            return Ok(false);
        }
        let answer = self.ask(hook, wanted, attributes, shown, true).await?;
        if !answer.allowed {
            return Err(Fault::Refused(review::denied(hook, answer.status)));
        }
        if answer.patch.is_empty() {
            return Ok(false);
        }
        let patch = Operations::parse(&answer.patch).map_err(|error| {
            Fault::Call(format!("received undecodable patch in webhook response: {error}"))
        })?;
        let Some(object) = object else {
            let why = format!(
                "admission webhook \"{}\" attempted to modify the object, which is not supported for this operation",
                hook.name
            );
            return Err(Fault::Refused(Status::internal(why)));
        };
        let internal = |why: String| Fault::Refused(Status::internal(why));
        let before = seen.unwrap_or_else(|| object.clone());
        let mut patched = patch.apply(before).map_err(|error| internal(error.to_string()))?;
        if request::is_own_kind(attributes) {
            let own = attributes.resource;
            if !Arc::ptr_eq(wanted, own) {
                patched = rest::convert(own, patched, &own.api_version()).await.map_err(Fault::Refused)?;
            }
            own.rules.canonical(own, &mut patched).map_err(internal)?;
            own.rules.default(own, &mut patched);
        }
        let changed = patched != *object;
        *object = patched;
        Ok(changed)
    }

    /// Calls the validating webhooks, all at once.
    async fn check(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<(), Status> {
        let Attributes { server, operation, resource, subresource, .. } = *attributes;
        if scope::is_exempt(resource) {
            return Ok(());
        }
        let hooks = self.validating.concerned(server, operation, resource, subresource);
        let mut calls = Vec::new();
        for Concerned { hook, wanted } in hooks.iter() {
            if hook.scope.selects(attributes, object)? {
                calls.push(async move {
                    let outcome = self.check_once(hook, wanted, attributes, object).await;
                    outcome.or_else(|fault| forgive(hook, fault))
                });
            }
        }
        join_all(calls).await.into_iter().collect()
    }

    async fn check_once(
        &self,
        hook: &Hook,
        wanted: &Arc<Resource>,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Fault> {
        let seen = request::in_version(wanted, attributes, object).await.map_err(Fault::Refused)?;
        let shown = seen.as_ref().or(object);
        if !is_meant(hook, wanted, attributes, shown).await? {
            return Ok(());
        }
        let answer = self.ask(hook, wanted, attributes, shown, false).await?;
        if answer.allowed { Ok(()) } else { Err(Fault::Refused(review::denied(hook, answer.status))) }
    }

    async fn ask(
        &self,
        hook: &Hook,
        wanted: &Arc<Resource>,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        mutating: bool,
    ) -> Result<review::Answer, Fault> {
        if attributes.dry_run && !matches!(hook.side_effects.as_str(), "None" | "NoneOnDryRun") {
            let why = format!("admission webhook \"{}\" does not support dry run", hook.name);
            return Err(Fault::Refused(Status::bad_request(why)));
        }
        let Some(version) = hook.review else {
            return Err(Fault::Call(
                "webhook does not accept known AdmissionReview versions (v1, v1beta1)".to_owned(),
            ));
        };
        let Some(address) = &hook.address else {
            return Err(Fault::Call("webhook configuration must have either service or URL".to_owned()));
        };
        let old = request::in_version(wanted, attributes, attributes.old).await.map_err(Fault::Refused)?;
        let uid = self.dispatcher.uid();
        let question = review::Question {
            uid: &uid,
            version,
            resource: wanted,
            object,
            old: old.as_ref().or(attributes.old),
        };
        let answered = self
            .dispatcher
            .post(address, hook.timeout, &question.to_json(attributes))
            .await
            .map_err(|why| Fault::Call(format!("failed to call webhook: {why}")))?;
        let answer = review::answer(&answered, &uid, version, mutating)
            .map_err(|why| Fault::Call(format!("received invalid webhook response: {why}")))?;
        for warning in &answer.warnings {
            attributes.warnings.add(warning.as_str());
        }
        Ok(answer)
    }
}

/// Whether the conditions of a webhook hold for a request. If they cannot be told, its failure policy decides, and
/// nobody is called.
async fn is_meant(
    hook: &Hook,
    wanted: &Arc<Resource>,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<bool, Fault> {
    if hook.conditions.is_empty() {
        return Ok(true);
    }
    let old = request::in_version(wanted, attributes, attributes.old).await.map_err(Fault::Refused)?;
    let input = Input::new(attributes, wanted, object, old.as_ref().or(attributes.old));
    match hook.conditions.hold(&input) {
        Ok(hold) => Ok(hold),
        Err(why) if hook.ignores_failure => {
            tracing::warn!(webhook = hook.name, "failed evaluating match conditions, failing open: {why}");
            Ok(false)
        }
        Err(why) => {
            let resource = attributes.resource.group_resource();
            Err(Fault::Refused(Status::forbidden(resource, attributes.name, why)))
        }
    }
}

/// A failed call is a refusal, unless the webhook's policy forgives it.
fn forgive(hook: &Hook, fault: Fault) -> Result<(), Status> {
    match fault {
        Fault::Refused(status) => Err(status),
        Fault::Call(why) if hook.ignores_failure => {
            tracing::warn!(webhook = hook.name, "failed calling webhook, failing open: {why}");
            Ok(())
        }
        Fault::Call(why) => Err(Status::internal(format!("failed calling webhook \"{}\": {why}", hook.name))),
    }
}

impl Admission for Webhooks {
    fn mutate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: &'a mut Value,
    ) -> BoxFuture<'a, Result<bool, Status>> {
        Box::pin(self.change(attributes, Some(object)))
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        object: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            // Mutating webhooks may refuse deletions too.
            if attributes.operation == Operation::Delete {
                self.change(attributes, None).await?;
            }
            self.check(attributes, object).await
        })
    }
}

impl ApiServer {
    /// Answers calls to webhooks of a Service with a service of this process.
    pub fn register_webhook_service<S, B>(&self, namespace: &str, name: &str, service: S)
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Display,
        S::Future: Send,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Display,
    {
        self.register_webhook_host(&format!("{name}.{namespace}.svc"), service);
    }

    /// Answers calls to webhooks at a host (`host:port`, or `host` for all ports) with a service of this process.
    pub fn register_webhook_host<S, B>(&self, host: &str, service: S)
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Display,
        S::Future: Send,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Display,
    {
        let endpoint = Arc::new(call::InProcess(Mutex::new(service)));
        self.webhooks().dispatcher.register(host.to_owned(), endpoint);
    }

    /// Nobody in this process answers for the Service any more, as when its pods are gone.
    pub fn unregister_webhook_service(&self, namespace: &str, name: &str) {
        self.webhooks().dispatcher.unregister(&format!("{name}.{namespace}.svc"));
    }

    /// Sets who calls webhooks that no service of this process answers for.
    pub fn set_webhook_caller(&self, caller: Arc<dyn Caller>) {
        self.webhooks().dispatcher.set_network(caller);
    }
}
