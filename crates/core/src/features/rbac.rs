//! Roles of the programs and of their users, made from the list of features and from the catalogue of kinds.

mod migration;

use kruise_api::{
    catalogue::CRDS,
    crd::{Conversion, Crd},
    gates::Gates,
    json, names,
};
use serde_json::{Value, json};

use super::{ALL, Feature, Names, Permission};
pub use migration::migration;

/// A role of one of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// What the controllers and webhooks of the manager do everywhere.
    Manager,
    /// What the manager does to configurations and definitions to have its certificate trusted.
    Certificates,
    /// The lease by which one manager leads.
    LeaderElection,
    /// What the manager reads and writes in its own namespace.
    Webhook,
    /// The copies of pull secrets that the manager writes.
    PullSecrets,
    /// The Secrets and ConfigMaps that the manager keeps in namespaces for ResourceDistributions.
    Distribution,
    /// What the node daemon does everywhere.
    Daemon,
    /// The pull secrets that the node daemon reads.
    DaemonSecret,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 8] = [
        Self::Manager,
        Self::Certificates,
        Self::LeaderElection,
        Self::Webhook,
        Self::PullSecrets,
        Self::Distribution,
        Self::Daemon,
        Self::DaemonSecret,
    ];

    /// The name of the object.
    pub fn name(self) -> &'static str {
        match self {
            Self::Manager => "kruise-manager-role",
            Self::Certificates => "kruise-certs-role",
            Self::LeaderElection => "kruise-leader-election-role",
            Self::Webhook => "kruise-webhook-role",
            Self::PullSecrets => "kruise-pull-secret-role",
            Self::Distribution => "kruise-resourcedistribution-role",
            Self::Daemon => "kruise-daemon-role",
            Self::DaemonSecret => "kruise-daemon-secret-role",
        }
    }

    /// Where it holds; everywhere when there is none.
    fn namespace(self) -> Option<&'static str> {
        match self {
            Self::Manager | Self::Certificates | Self::Distribution | Self::Daemon => None,
            Self::LeaderElection | Self::Webhook => Some(names::NAMESPACE),
            Self::PullSecrets | Self::DaemonSecret => Some(names::DAEMON_CONFIG_NAMESPACE),
        }
    }

    /// Who has it.
    fn account(self) -> &'static str {
        match self {
            Self::Manager
            | Self::Certificates
            | Self::LeaderElection
            | Self::Webhook
            | Self::PullSecrets
            | Self::Distribution => MANAGER_ACCOUNT,
            Self::Daemon | Self::DaemonSecret => names::DAEMON,
        }
    }
}

/// The service account of the manager.
pub const MANAGER_ACCOUNT: &str = "kruise-manager";

const GROUP: &str = "rbac.authorization.k8s.io";

/// Service accounts, roles and bindings that the programs need with these gates. Roles without rules are left out.
pub fn objects(gates: &Gates) -> Vec<Value> {
    let built: Vec<&Feature> = ALL.iter().filter(|feature| feature.built).collect();
    objects_of(&built, gates)
}

pub(super) fn objects_of(features: &[&Feature], gates: &Gates) -> Vec<Value> {
    let roles: Vec<(Role, Vec<Value>)> = Role::ALL
        .into_iter()
        .map(|role| (role, rules(features, role, gates)))
        .filter(|(_, rules)| !rules.is_empty())
        .collect();
    let mut accounts: Vec<&str> = roles.iter().map(|(role, _)| role.account()).collect();
    accounts.dedup();
    let accounts = accounts.into_iter().map(|name| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": names::NAMESPACE}})
    });
    let roles = roles.into_iter().flat_map(|(role, rules)| [object(role, rules), binding(role)]);
    accounts.chain(roles).collect()
}

/// The rules of a role: what is allowed for the same resources stands together, and nothing stands twice.
fn rules(features: &[&Feature], role: Role, gates: &Gates) -> Vec<Value> {
    let mut rules: Vec<Rule> = Vec::new();
    let permissions = features
        .iter()
        .filter(|feature| feature.when.holds(gates))
        .flat_map(|feature| feature.permissions)
        .filter(|permission| permission.role == role && permission.when.holds(gates));
    for permission in permissions {
        for resource in permission.resources {
            let names = object_names(permission.names);
            let known = rules.iter_mut().find(|rule| {
                rule.group == permission.group && rule.resource == *resource && rule.names == names
            });
            match known {
                Some(rule) => rule.verbs.extend(permission.verbs),
                None => {
                    rules.push(Rule {
                        group: permission.group,
                        resource,
                        names,
                        verbs: permission.verbs.to_vec(),
                    });
                }
            }
        }
    }
    for rule in &mut rules {
        rule.verbs.sort_unstable();
        rule.verbs.dedup();
    }
    rules.sort();
    together(rules)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    group: &'static str,
    names: Vec<String>,
    verbs: Vec<&'static str>,
    resource: &'static str,
}

/// Rules that differ only in their resource become one.
fn together(rules: Vec<Rule>) -> Vec<Value> {
    let mut merged: Vec<(Rule, Vec<&'static str>)> = Vec::new();
    for rule in rules {
        match merged.last_mut() {
            Some((last, resources))
                if (last.group, &last.names, &last.verbs) == (rule.group, &rule.names, &rule.verbs) =>
            {
                resources.push(rule.resource);
            }
            _ => {
                let resources = vec![rule.resource];
                merged.push((rule, resources));
            }
        }
    }
    merged
        .into_iter()
        .map(|(rule, resources)| {
            let mut value = json!({"apiGroups": [rule.group], "resources": resources, "verbs": rule.verbs});
            if !rule.names.is_empty() {
                json::set(&mut value, &["resourceNames"], rule.names);
            }
            value
        })
        .collect()
}

fn object_names(names: Names) -> Vec<String> {
    match names {
        Names::Any => Vec::new(),
        Names::These(names) => names.iter().map(|name| (*name).to_owned()).collect(),
        Names::ConvertedDefinitions => CRDS
            .iter()
            .filter(|crd| matches!(crd.conversion, Conversion::Webhook(_)))
            .map(|crd| crd.name())
            .collect(),
    }
}

fn object(role: Role, rules: Vec<Value>) -> Value {
    let (kind, metadata) = match role.namespace() {
        None => ("ClusterRole", json!({"name": role.name()})),
        Some(namespace) => ("Role", json!({"name": role.name(), "namespace": namespace})),
    };
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata, "rules": rules})
}

fn binding(role: Role) -> Value {
    let name = format!("{}binding", role.name());
    let (kind, bound, metadata) = match role.namespace() {
        None => ("ClusterRoleBinding", "ClusterRole", json!({"name": name})),
        Some(namespace) => ("RoleBinding", "Role", json!({"name": name, "namespace": namespace})),
    };
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": bound, "name": role.name()},
        "subjects": [{"kind": "ServiceAccount", "name": role.account(), "namespace": names::NAMESPACE}],
    })
}

/// Kinds that only administrators of a cluster may write: who writes them places objects in every namespace.
const FOR_ADMINISTRATORS: &[&str] = &["ResourceDistribution"];

/// Roles for users of our kinds, which Kubernetes adds to its own roles `view`, `edit` and `admin`.
pub fn user_roles() -> Vec<Value> {
    let everyone: Vec<&Crd> =
        CRDS.iter().copied().filter(|crd| !FOR_ADMINISTRATORS.contains(&crd.kind)).collect();
    let role = |to: &str, kinds: &[&Crd], writes: bool| {
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": "ClusterRole",
            "metadata": {
                "name": format!("aggregate-kruise-{to}"),
                "labels": {format!("{GROUP}/aggregate-to-{to}"): "true"},
            },
            "rules": user_rules(kinds, writes),
        })
    };
    vec![role("view", &everyone, false), role("edit", &everyone, true), role("admin", CRDS, true)]
}

fn user_rules(kinds: &[&Crd], writes: bool) -> Vec<Value> {
    let verbs: &[&str] = match writes {
        false => &["get", "list", "watch"],
        true => &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    };
    let mut groups: Vec<&str> = kinds.iter().map(|crd| crd.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut rules = Vec::new();
    for group in groups {
        let of = |suffix: &str, wanted: &dyn Fn(&Crd) -> bool| -> Vec<String> {
            let kinds = kinds.iter().filter(|crd| crd.group == group && wanted(crd));
            kinds.map(|crd| format!("{}{suffix}", crd.plural)).collect()
        };
        rules.push(json!({"apiGroups": [group], "resources": of("", &|_| true), "verbs": verbs}));
        rules.push(json!({"apiGroups": [group], "resources": of("/status", &|_| true), "verbs": ["get"]}));
        let scaled = of("/scale", &|crd| crd.versions.iter().any(|version| version.scale));
        if !scaled.is_empty() {
            let verbs: &[&str] = if writes { &["get", "patch", "update"] } else { &["get"] };
            rules.push(json!({"apiGroups": [group], "resources": scaled, "verbs": verbs}));
        }
    }
    rules
}

/// What a permission allows, in one line for people: `patch pods/status`.
pub(super) fn line(permission: &Permission) -> String {
    let group = if permission.group.is_empty() { String::new() } else { format!(".{}", permission.group) };
    let resources: Vec<String> =
        permission.resources.iter().map(|resource| format!("{resource}{group}")).collect();
    format!("{} {}", permission.verbs.join("/"), resources.join(", "))
}
