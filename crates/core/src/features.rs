//! The list of features: what each consists of, and when it runs.
//!
//! One [list](ALL) of plain data says for every feature which gates it runs with, its controllers, what it watches, its
//! webhooks and its permissions. Everything else is made from it: the paths that are [served](paths), the
//! [webhook configurations](webhooks::configurations), the [roles](rbac::objects), what
//! [binds daemons to their nodes](policy::objects) and the page about features. A feature
//! that is switched off therefore costs nothing: no watch, no permission, and no webhook but the one that says that it is
//! off.

mod list;
pub mod page;
pub mod policy;
pub mod rbac;
#[cfg(test)]
mod tests;
pub mod webhooks;

use kruise_api::gates::{Gate, Gates};

use crate::{
    admission::{Operation, handler::Handler},
    object::Resource,
};

pub use list::ALL;

/// One feature.
pub struct Feature {
    /// The name people use.
    pub name: &'static str,
    /// When its controllers run.
    pub when: When,
    /// Whether its controllers are in this program. What is not there needs no permission.
    pub built: bool,
    /// Its controllers.
    pub controllers: &'static [Controller],
    /// What its controllers and webhooks keep in caches.
    pub watches: &'static [Resource],
    /// Its webhooks.
    pub webhooks: &'static [Webhook],
    /// What it must be allowed to do.
    pub permissions: &'static [Permission],
}

/// Which gates something needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// None.
    Always,
    /// All of these.
    All(&'static [Gate]),
    /// One of these at least.
    Any(&'static [Gate]),
    /// That this one is closed.
    Not(Gate),
}

impl When {
    /// Whether it holds.
    pub fn holds(self, gates: &Gates) -> bool {
        match self {
            Self::Always => true,
            Self::All(all) => all.iter().all(|gate| gates.enabled(*gate)),
            Self::Any(any) => any.iter().any(|gate| gates.enabled(*gate)),
            Self::Not(gate) => !gates.enabled(gate),
        }
    }
}

/// A loop that keeps objects of a kind as they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The name in metrics, logs and the user agent.
    pub name: &'static str,
    /// The flag for the number of workers, without hyphens in front. None where there is always one.
    pub workers_flag: Option<&'static str>,
    /// The number of workers unless the flag says otherwise.
    pub workers: usize,
    /// Whether `--rate-limiter-*` are for its queue too.
    pub tunable_queue: bool,
    /// The kind whose definition must be installed, if any: without it the controller is left out.
    pub needs_kind: Option<&'static str>,
}

/// A webhook that the API server calls.
#[derive(Clone, Copy, Debug)]
pub struct Webhook {
    /// The name in the configuration.
    pub name: &'static str,
    /// In which of the two configurations it stands.
    pub side: Side,
    /// Where it is called.
    pub path: &'static str,
    /// Other paths of the same handler, which older configurations may call.
    pub aliases: &'static [&'static str],
    /// Who answers.
    pub handler: Handler,
    /// When it is registered. One of our kinds always is: somebody has to say that its gate is closed.
    pub when: When,
    /// For which requests it is called.
    pub rules: &'static [HookRule],
    /// What happens when nobody answers.
    pub policy: Policy,
    /// Where it is called.
    pub reach: Reach,
    /// What else an answer changes.
    pub side_effects: SideEffects,
}

/// The two halves of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Changes objects.
    Mutating,
    /// Refuses objects.
    Validating,
}

/// Requests for which a webhook is called.
#[derive(Clone, Copy, Debug)]
pub struct HookRule {
    /// The group.
    pub group: &'static str,
    /// The versions.
    pub versions: &'static [&'static str],
    /// The resource, or `resource/subresource`.
    pub resource: &'static str,
    /// The operations.
    pub operations: &'static [Operation],
}

/// What happens to a request when the webhook does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It is refused.
    Fail,
    /// It goes on.
    Ignore,
}

impl Policy {
    /// The word in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

/// Which objects a webhook is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All.
    Everything,
    /// Pods outside of the namespaces of the system and of ourselves: they must be able to start without us.
    OtherNamespaces,
    /// Objects with the label of deletion protection, outside of the system's namespace.
    Protected,
}

/// Whether answering changes anything besides the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffects {
    /// Nothing.
    None,
    /// Something, but not on a dry run.
    NoneOnDryRun,
}

impl SideEffects {
    /// The word in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::NoneOnDryRun => "NoneOnDryRun",
        }
    }
}

/// Something that a program must be allowed to do.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    /// In which role it stands.
    pub role: rbac::Role,
    /// The group of the resources.
    pub group: &'static str,
    /// The resources.
    pub resources: &'static [&'static str],
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// To which objects.
    pub names: Names,
    /// With which gates, besides those of the feature.
    pub when: When,
}

/// Which objects a permission is about.
#[derive(Clone, Copy, Debug)]
pub enum Names {
    /// All of the kind.
    Any,
    /// These.
    These(&'static [&'static str]),
    /// The definitions of our kinds that our manager converts.
    ConvertedDefinitions,
}

/// A path that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The path.
    pub path: &'static str,
    /// Who answers.
    pub handler: Handler,
}

/// Every path that is served, aliases included, and who answers with these gates.
///
/// Paths of closed gates are served too and let everything pass: while managers with different gates run side by side, and
/// where nobody takes webhooks of closed gates out of the configurations, API servers still call them.
pub fn paths(gates: &Gates) -> Vec<Path> {
    let mut found: Vec<Path> = Vec::new();
    for webhook in ALL.iter().flat_map(|feature| feature.webhooks) {
        let handler = if webhook.when.holds(gates) { webhook.handler } else { Handler::Allow };
        for path in std::iter::once(&webhook.path).chain(webhook.aliases) {
            if !found.iter().any(|known| known.path == *path) {
                found.push(Path { path, handler });
            }
        }
    }
    found
}

/// The controllers that run with these gates, with the feature they belong to.
pub fn controllers(gates: &Gates) -> impl Iterator<Item = (&'static Feature, &'static Controller)> {
    let running = ALL.iter().filter(|feature| feature.built && feature.when.holds(gates));
    running.flat_map(|feature| feature.controllers.iter().map(move |controller| (feature, controller)))
}

/// What is watched with these gates, each kind once, in the order of the list.
pub fn watches(gates: &Gates) -> Vec<Resource> {
    let mut found = Vec::new();
    for feature in ALL.iter().filter(|feature| feature.built && feature.when.holds(gates)) {
        for resource in feature.watches {
            if !found.contains(resource) {
                found.push(*resource);
            }
        }
    }
    found
}
