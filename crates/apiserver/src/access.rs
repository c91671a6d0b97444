//! Who asks, and whether they may.
//!
//! A listener says who is behind a request by a [`User`] among the request's extensions; who comes without one is of this
//! process and may do everything. Others go through the authorizers of a usual cluster, in their order: the group
//! `system:masters` may do everything, nodes may do what `node` says, and everybody may do what roles and bindings say
//! (`index`). Whoever is all-powerful costs nothing: roles are not even read for them.

mod bootstrap;
mod escalation;
mod gather;
mod impersonation;
mod index;
mod node;
mod question;
mod reviews;
mod rules;
pub mod tokens;

use std::sync::{Mutex, PoisonError};

use http::request::Parts;
use serde_json::Value;

pub(crate) use bootstrap::fill;
pub(crate) use gather::changed;
pub use gather::gathered;
pub(crate) use question::Asked;
pub use rules::Rule;

use crate::admission::User;
use crate::field::quote;
use crate::registry::Resource;
use crate::rest::Target;
use crate::server::ApiServer;
use crate::status::{GroupResource, Status};
use index::{Index, RoleRef};

/// The group that may do everything.
pub const MASTERS: &str = "system:masters";
/// The group of everybody who is somebody.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody else.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user without a name.
pub const ANONYMOUS: &str = "system:anonymous";

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Who asks.
    pub user: &'a User,
    /// The verb: `get`, `list`, `create` and so on.
    pub verb: &'a str,
    /// To what.
    pub what: What<'a>,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// An object or a collection.
    Resource {
        /// The API group.
        group: &'a str,
        /// The plural name.
        resource: &'a str,
        /// The subresource; empty for the object itself.
        subresource: &'a str,
        /// The namespace; empty for the whole cluster.
        namespace: &'a str,
        /// The name; empty where the request has none.
        name: &'a str,
    },
    /// A path that is no resource.
    Path(&'a str),
}

/// Whether somebody may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether they may.
    pub allowed: bool,
    /// Why, where there is more to say.
    pub reason: String,
}

/// What the server keeps to decide.
#[derive(Debug, Default)]
pub(crate) struct Access {
    index: Mutex<Option<Index>>,
    pub(crate) signer: tokens::Signer,
}

impl User {
    /// A user of some groups, besides those that everybody who is known is in.
    pub fn named(name: impl Into<String>, groups: &[&str]) -> Self {
        let groups = groups.iter().copied().chain([AUTHENTICATED]).map(str::to_owned).collect();
        Self { name: name.into(), groups, ..Self::nobody() }
    }

    /// The user of a service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let own = format!("system:serviceaccounts:{namespace}");
        Self::named(service_account_name(namespace, name), &["system:serviceaccounts", &own])
    }

    /// Whoever does not say who they are.
    pub fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { name: ANONYMOUS.to_owned(), groups, ..Self::nobody() }
    }

    fn nobody() -> Self {
        Self { name: String::new(), uid: String::new(), groups: Vec::new(), extra: Default::default() }
    }

    /// Whether this user may do everything.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// As reviews and webhooks see it.
    pub(crate) fn info(&self) -> Value {
        let mut info = serde_json::json!({"username": self.name, "groups": self.groups});
        if let Some(map) = info.as_object_mut() {
            if !self.uid.is_empty() {
                map.insert("uid".to_owned(), self.uid.clone().into());
            }
            if !self.extra.is_empty() {
                map.insert("extra".to_owned(), serde_json::json!(self.extra));
            }
        }
        info
    }
}

/// `system:serviceaccount:NAMESPACE:NAME`.
pub(crate) fn service_account_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

impl ApiServer {
    /// Settles who asks and refuses what they may not do. The user that counts, after impersonation, is then among the
    /// extensions of the request, and the headers that asked for it are gone: whoever decides about the request once more
    /// must not ask whether the impersonated user may impersonate.
    pub fn admit(&self, head: &mut Parts) -> Result<(), Status> {
        if let Some(user) = impersonation::user(self, head)? {
            head.extensions.insert(user);
            impersonation::forget(&mut head.headers);
        }
        let Some(user) = head.extensions.get::<User>().filter(|user| !user.is_master()) else {
            return Ok(());
        };
        let asked = Asked::of(&head.method, &head.uri);
        self.check(&asked.by(user))
    }

    /// Refuses what somebody may not do.
    pub fn check(&self, question: &Question<'_>) -> Result<(), Status> {
        let decision = self.may(question);
        if decision.allowed { Ok(()) } else { Err(forbidden(question, &decision.reason)) }
    }

    /// Whether somebody may do something.
    pub fn may(&self, question: &Question<'_>) -> Decision {
        if question.user.is_master() {
            return Decision { allowed: true, reason: String::new() };
        }
        let by_node = node::decide(self, question);
        if by_node.allowed {
            return by_node;
        }
        let by_roles = self.with_roles(|index| {
            let (mut found, mut missing) = (None, Vec::new());
            index.visit(question.user, question.namespace(), &mut |shown| {
                match shown {
                    Ok((source, rule)) if rule.allows(question) => found = Some(source()),
                    Ok(_) => {}
                    Err(error) => missing.push(error),
                }
                found.is_none()
            });
            match found {
                Some(source) => Decision { allowed: true, reason: format!("RBAC: allowed by {source}") },
                None => Decision {
                    allowed: false,
                    reason: together(&missing).map(|missing| format!("RBAC: {missing}")).unwrap_or_default(),
                },
            }
        });
        if by_roles.allowed {
            return by_roles;
        }
        let reasons = [by_node.reason, by_roles.reason];
        let reasons: Vec<String> = reasons.into_iter().filter(|reason| !reason.is_empty()).collect();
        Decision { allowed: false, reason: reasons.join("\n") }
    }

    /// Refuses to write a role or a binding that gives more than its author has.
    pub(crate) fn check_escalation(
        &self,
        user: &User,
        target: &Target,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if user.is_master() || target.resource.group != "rbac.authorization.k8s.io" {
            return Ok(());
        }
        escalation::check(self, user, target, object, old)
    }

    /// Refuses a write to an object that is not there and that its author may not create.
    pub(crate) fn check_create(&self, user: &User, target: &Target) -> Result<(), Status> {
        let resource: &Resource = &target.resource;
        let what = What::Resource {
            group: &resource.group,
            resource: &resource.plural,
            subresource: "",
            namespace: &target.namespace,
            name: &target.name,
        };
        self.check(&Question { user, verb: "create", what })
    }

    /// The rules for a user in a namespace, and which roles are missing.
    fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        self.with_roles(|index| {
            let (mut rules, mut missing) = (Vec::new(), Vec::new());
            index.visit(user, namespace, &mut |shown| {
                match shown {
                    Ok((_, rule)) => rules.push(rule.clone()),
                    Err(error) => missing.push(error),
                }
                true
            });
            (rules, missing)
        })
    }

    /// The rules of a role, as a binding of a namespace names it.
    fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<std::sync::Arc<[Rule]>, Status> {
        let found = self.with_roles(|index| index.rules(role, namespace));
        found.map_err(|_| {
            let resource = if role.kind == "Role" { "roles" } else { "clusterroles" };
            Status::not_found(GroupResource::new("rbac.authorization.k8s.io", resource), &role.name)
        })
    }

    fn with_roles<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        let mut kept = self.access().index.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_mut() {
            Some(index) => {
                index.refresh(self.store());
                read(index)
            }
            None => read(kept.insert(Index::read(self.store()))),
        }
    }
}

impl Question<'_> {
    fn namespace(&self) -> &str {
        match self.what {
            What::Resource { namespace, .. } => namespace,
            What::Path(_) => "",
        }
    }
}

/// Several problems as one, each told once.
fn together(problems: &[String]) -> Option<String> {
    let mut once: Vec<&str> = Vec::new();
    for problem in problems {
        if !once.contains(&problem.as_str()) {
            once.push(problem);
        }
    }
    match once.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

/// The refusal.
pub(crate) fn forbidden(question: &Question<'_>, reason: &str) -> Status {
    let user = quote(&question.user.name);
    let verb = question.verb;
    let (message, group, resource, name) = match question.what {
        What::Path(path) => (format!("User {user} cannot {verb} path {}", quote(path)), "", "", ""),
        What::Resource { group, resource, subresource, namespace, name } => {
            let full = match subresource {
                "" => quote(resource),
                sub => quote(&format!("{resource}/{sub}")),
            };
            let place = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", quote(namespace)),
            };
            let message =
                format!("User {user} cannot {verb} resource {full} in API group {} {place}", quote(group));
            (message, group, resource, name)
        }
    };
    // Nobody who shows this to a browser should be surprised.
    let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let why = if reason.is_empty() { message } else { format!("{message}: {reason}") };
    let mut status = Status::forbidden(GroupResource::new(group, resource), name, &why);
    if resource.is_empty() {
        status.message = format!("forbidden: {why}");
    }
    status
}
