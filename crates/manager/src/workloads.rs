//! Which pods a budget is about, how many there should be, and who controls a pod: read from caches, and from the server for
//! kinds that have none.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use kruise_api::{json, selector::Matcher};
use kruise_core::{
    cloneset::CLONE_SET,
    configuration,
    object::{ObjectKey, Resource},
    pod::{Metadata, Owner, Pod},
    podunavailablebudget::{Budget, Covers, Target},
    statefulset::STATEFUL_SET,
    text::Text,
    workload::{self, DEPLOYMENT, REPLICA_SET, UNITED_DEPLOYMENT, Workload},
};
use kruise_runtime::cache::{Cache, Guarded, View};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    caches::{BY_LABEL, BY_OWNER, Caches, LABELS, labelled_with},
    definitions,
    shared::Shared,
};

/// How many controllers above a pod are looked at.
const DEPTH: usize = 10;
/// How long one answer of the server may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a cache says about a workload.
#[derive(Clone, Debug)]
pub enum Found {
    /// It is there.
    There(Arc<Workload>),
    /// It is not, or it is being deleted.
    Missing,
    /// The cache does not know yet.
    NotRead,
    /// It is there, but cannot be read.
    Unreadable,
}

/// Looks up a workload of one of the [known](workload::KNOWN) kinds. The first question about a kind makes its cache follow
/// it.
pub fn find(shared: &Shared, resource: Resource, key: &ObjectKey) -> Found {
    let caches = &shared.caches;
    // Of a kind that the cluster does not have there are no objects.
    if definitions::name(resource).is_some_and(|definition| shared.definitions.is_missing(&definition)) {
        return Found::Missing;
    }
    let workload = match resource {
        CLONE_SET => of_own(&caches.clonesets, key, Workload::of_clone_set),
        STATEFUL_SET => of_own(&caches.statefulsets, key, Workload::of_stateful_set),
        UNITED_DEPLOYMENT => of_own(&caches.united_deployments, key, Workload::of_united_deployment),
        _ => caches.workloads(resource).and_then(|cache| {
            cache.want();
            cache.is_synced().then(|| cache.get(key))
        }),
    };
    let Some(workload) = workload else { return Found::NotRead };
    match workload.filter(|workload| !workload.metadata.is_deleting()) {
        Some(workload) if workload.metadata.unreadable => Found::Unreadable,
        Some(workload) => Found::There(workload),
        None => Found::Missing,
    }
}

/// The same for a kind that has a controller of ours; nothing while it cannot be read.
fn of_own<T: Send + Sync>(
    cache: &Cache<Guarded<T>>,
    key: &ObjectKey,
    view: fn(&Metadata, &T) -> Workload,
) -> Option<Option<Arc<Workload>>>
where
    Guarded<T>: View,
{
    if !cache.is_synced() {
        return None;
    }
    match cache.get(key) {
        None => Some(None),
        Some(stored) => Some(Some(Arc::new(match &stored.object {
            Ok(set) => view(&stored.metadata, set),
            Err(_) => {
                let metadata = Metadata { unreadable: true, ..stored.metadata.clone() };
                Workload { metadata, ..Workload::default() }
            }
        }))),
    }
}

/// The pods of a budget, and how many there should be.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// The active pods.
    pub pods: Vec<Arc<Pod>>,
    /// How many pods the workloads of known kinds want, all together.
    pub wanted: i64,
    /// A workload of a known kind is among those that were counted.
    pub has_known: bool,
    /// Workloads of other kinds, which the server must be asked about.
    pub foreign: Vec<Target>,
    /// Kinds that are not read yet.
    pub not_read: BTreeSet<&'static str>,
    /// Workloads that cannot be read: kind and name.
    pub unreadable: BTreeSet<(&'static str, Text)>,
    /// The workload that the budget names is gone.
    pub is_gone: bool,
}

impl Members {
    /// How many pods there should be, if caches alone can say.
    pub fn expected(&self, total: Option<u32>) -> Option<u32> {
        if self.is_gone {
            return Some(0);
        }
        let is_known = self.foreign.is_empty() && self.not_read.is_empty() && self.unreadable.is_empty();
        total.or_else(|| is_known.then(|| u32::try_from(self.wanted.max(0)).unwrap_or(u32::MAX)))
    }

    fn nothing() -> Self {
        Self { is_gone: true, ..Self::default() }
    }
}

/// Finds them.
pub fn members(shared: &Shared, budget: &Budget) -> Members {
    match &budget.covers {
        Covers::Nothing => Members::nothing(),
        Covers::Labels(labels) => of_labels(shared, &budget.key.namespace, labels),
        Covers::Workload(target) => of_target(shared, &budget.key.namespace, target, budget.total.is_some()),
    }
}

fn of_target(shared: &Shared, namespace: &Text, target: &Target, has_total: bool) -> Members {
    let caches = &shared.caches;
    let own = || {
        let is_own = |pod: &Arc<Pod>| pod.metadata.controller().is_some_and(|owner| target.is(owner));
        active(caches.pods.in_namespace(namespace)).filter(is_own).collect()
    };
    let Some(resource) = workload::known(&target.group, &target.kind) else {
        return Members { pods: own(), foreign: vec![target.clone()], ..Members::default() };
    };
    let key = ObjectKey { namespace: namespace.clone(), name: target.name.as_str().into() };
    let found = match find(shared, resource, &key) {
        Found::There(found) => found,
        Found::Missing => return Members::nothing(),
        Found::NotRead => {
            return Members { pods: own(), not_read: [resource.kind].into(), ..Members::default() };
        }
        Found::Unreadable => {
            let unreadable = [(resource.kind, key.name)].into();
            return Members { pods: own(), unreadable, ..Members::default() };
        }
    };
    let wanted = found.replicas();
    if wanted == 0 && !has_total {
        return Members::default();
    }
    let mut members = Members { wanted, ..Members::default() };
    if resource == DEPLOYMENT {
        caches.replica_sets.want();
        if !caches.replica_sets.is_synced() {
            members.not_read.insert(REPLICA_SET.kind);
        }
        let sets = caches.replica_sets.by_index(BY_OWNER, &found.metadata.uid);
        let sets = sets.iter().filter(|set| {
            !set.metadata.is_deleting()
                && set.metadata.controller().is_some_and(|owner| owner.uid == found.metadata.uid)
        });
        members.pods = sets.flat_map(|set| owned(caches, &set.metadata)).collect();
    } else {
        members.pods = owned(caches, &found.metadata).collect();
    }
    // Its pods belong to the workloads of its subsets.
    if resource == UNITED_DEPLOYMENT
        && members.pods.is_empty()
        && let Some(labels) = found.spec.selector.as_ref().and_then(|selector| selector.matcher().ok())
    {
        members.pods = labelled(caches, namespace, &labels);
    }
    members
}

fn of_labels(shared: &Shared, namespace: &Text, labels: &Matcher) -> Members {
    let caches = &shared.caches;
    let pods = labelled(caches, namespace, labels);
    let mut members = Members::default();
    let mut counted: BTreeSet<Text> = BTreeSet::new();
    let mut foreign: BTreeSet<(Text, Text, Text)> = BTreeSet::new();
    for owner in pods.iter().filter_map(|pod| pod.metadata.controller()) {
        let Some(resource) = workload::known(owner.group(), &owner.kind) else {
            if foreign.insert((owner.api_version.clone(), owner.kind.clone(), owner.name.clone())) {
                members.foreign.push(target_of(owner));
            }
            continue;
        };
        let key = ObjectKey { namespace: namespace.clone(), name: owner.name.clone() };
        let mut found = find(shared, resource, &key);
        if let Found::There(set) = &found
            && resource == REPLICA_SET
            && let Some(above) = set.metadata.controller()
            && workload::known(above.group(), &above.kind) == Some(DEPLOYMENT)
        {
            let key = ObjectKey { namespace: namespace.clone(), name: above.name.clone() };
            found = find(shared, DEPLOYMENT, &key);
        }
        match found {
            Found::There(workload) if counted.insert(workload.metadata.uid.clone()) => {
                members.wanted = members.wanted.saturating_add(workload.replicas());
                members.has_known = true;
            }
            Found::There(_) | Found::Missing => {}
            Found::NotRead => {
                members.not_read.insert(resource.kind);
            }
            Found::Unreadable => {
                members.unreadable.insert((resource.kind, owner.name.clone()));
            }
        }
    }
    members.pods = pods;
    members
}

fn target_of(owner: &Owner) -> Target {
    let version = owner.api_version.as_str();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Target {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: owner.kind.to_string(),
        name: owner.name.to_string(),
    }
}

fn active(pods: Vec<Arc<Pod>>) -> impl Iterator<Item = Arc<Pod>> {
    pods.into_iter().filter(|pod| pod.is_active())
}

fn owned(caches: &Caches, owner: &Metadata) -> impl Iterator<Item = Arc<Pod>> + use<> {
    active(caches.pods.by_index(BY_OWNER, &owner.uid))
}

/// The active pods of a namespace that have labels.
pub fn labelled(caches: &Caches, namespace: &str, labels: &Matcher) -> Vec<Arc<Pod>> {
    let is_chosen = |pod: &Arc<Pod>| labels.accepts(|key| pod.metadata.labels.text(key));
    let indexed = labels.wanted().find(|(key, _)| LABELS.contains(key));
    let pods = match indexed {
        None => caches.pods.in_namespace(namespace),
        Some((key, values)) => {
            let unique: BTreeSet<&String> = values.iter().collect();
            let texts = unique.into_iter().map(|value| labelled_with(namespace, key, value));
            texts.flat_map(|text| caches.pods.by_index(BY_LABEL, &text)).collect()
        }
    };
    active(pods).filter(is_chosen).collect()
}

/// The controllers above an object: its own first, then the controller of that one, as far as caches know.
pub fn owners(shared: &Shared, namespace: &str, first: Option<&Owner>) -> Vec<Owner> {
    let mut found: Vec<Owner> = first.cloned().into_iter().collect();
    while let Some(last) = found.last().filter(|_| found.len() < DEPTH) {
        let Some(resource) = workload::known(last.group(), &last.kind) else { break };
        let key = ObjectKey::new(namespace, last.name.clone());
        let Found::There(workload) = find(shared, resource, &key) else { break };
        let Some(above) = workload.metadata.controller() else { break };
        found.push(above.clone());
    }
    found
}

/// A workload of a kind that we do not know, as its scale subresource says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scaled {
    /// How many pods it wants; nothing where nobody knows.
    pub replicas: Option<i64>,
    /// What chooses its pods.
    pub selector: Option<Matcher>,
    /// It is not there, or is being deleted.
    pub is_gone: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kinds {
    resources: Vec<Kind>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    name: String,
    kind: String,
    namespaced: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Group {
    preferred_version: Version,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    version: String,
}

/// The version of a group that the server prefers, if it has the group.
pub async fn preferred_version(shared: &Shared, group: &str) -> Result<Option<String>, String> {
    if group.is_empty() {
        return Ok(Some("v1".to_owned()));
    }
    let found: Option<Group> = get(shared, &format!("/apis/{group}")).await?;
    Ok(found.map(|group| group.preferred_version.version).filter(|version| !version.is_empty()))
}

/// The name in paths of a kind whose objects live in namespaces, if the server has it.
pub async fn plural(
    shared: &Shared,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<Option<String>, String> {
    let kinds: Kinds = get(shared, &root(group, version)).await?.unwrap_or_default();
    let mut kinds = kinds.resources.into_iter();
    let found = kinds.find(|one| one.kind == kind && one.namespaced && !one.name.contains('/'));
    Ok(found.map(|one| one.name))
}

fn root(group: &str, version: &str) -> String {
    match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    }
}

/// Asks the server about a workload. Kinds of the white list of PersistentPodState say it in their spec.
pub async fn scaled(shared: &Shared, namespace: &str, target: &Target) -> Result<Scaled, String> {
    let root = root(&target.group, &target.version);
    let kinds: Option<Kinds> = get(shared, &root).await?;
    let kinds = kinds.unwrap_or_default().resources;
    let Some(kind) = kinds.iter().find(|kind| kind.kind == target.kind && !kind.name.contains('/')) else {
        return Ok(Scaled { is_gone: true, ..Scaled::default() });
    };
    let path = format!("{root}/namespaces/{namespace}/{}/{}", kind.name, target.name);
    let has_scale = kinds.iter().any(|other| other.name == format!("{}/scale", kind.name));
    let is_listed =
        white_list(shared).iter().any(|(group, kind)| *group == target.group && *kind == target.kind);
    let path = match (is_listed, has_scale) {
        (true, _) => path,
        (false, true) => format!("{path}/scale"),
        (false, false) => return Ok(Scaled::default()),
    };
    let Some(object) = get::<Value>(shared, &path).await? else {
        return Ok(Scaled { is_gone: true, ..Scaled::default() });
    };
    let selector = json::text(&object, &["status", "selector"]).filter(|_| !is_listed);
    Ok(Scaled {
        replicas: Some(json::at(&object, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0)),
        selector: selector.and_then(written_selector),
        is_gone: json::at(&object, &["metadata", "deletionTimestamp"]).is_some(),
    })
}

/// An object of a kind that only the server knows; nothing where the object, or the kind, is not there.
pub async fn object(shared: &Shared, namespace: &str, target: &Target) -> Result<Option<Value>, String> {
    let root = match target.group.as_str() {
        "" => format!("/api/{}", target.version),
        group => format!("/apis/{group}/{}", target.version),
    };
    let kinds: Option<Kinds> = get(shared, &root).await?;
    let kinds = kinds.unwrap_or_default().resources;
    let Some(kind) = kinds.iter().find(|kind| kind.kind == target.kind && !kind.name.contains('/')) else {
        return Ok(None);
    };
    get(shared, &format!("{root}/namespaces/{namespace}/{}/{}", kind.name, target.name)).await
}

fn white_list(shared: &Shared) -> Vec<(String, String)> {
    shared.caches.configuration.want();
    let data = shared.configuration.data();
    let listed = configuration::persistent_pod_state_workloads(&data).unwrap_or_default().workloads;
    listed.into_iter().map(|workload| (workload.group, workload.kind)).collect()
}

async fn get<T: serde::de::DeserializeOwned>(shared: &Shared, path: &str) -> Result<Option<T>, String> {
    let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    match tokio::time::timeout(TIMEOUT, shared.client.request::<T>(request)).await {
        Err(_) => Err(format!("no answer to GET {path} within {TIMEOUT:?}")),
        Ok(Ok(found)) => Ok(Some(found)),
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() => Ok(None),
        Ok(Err(error)) => Err(error.to_string()),
    }
}

/// A selector as a scale subresource writes it: `app=web,tier in (front,back),!old`.
fn written_selector(text: &str) -> Option<Matcher> {
    use kruise_api::selector::{LabelSelector, Requirement};
    let mut selector = LabelSelector::default();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // A comma inside of parentheses does not end a requirement.
        let mut depth = 0_u32;
        let end = rest.find(|letter: char| {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            letter == ',' && depth == 0
        });
        let (one, after) = match end {
            Some(end) => (rest.get(..end)?, rest.get(end + 1..)?),
            None => (rest, ""),
        };
        rest = after.trim();
        let one = one.trim();
        let listed = |text: &str| -> Option<Vec<String>> {
            let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
            Some(inner.split(',').map(|value| value.trim().to_owned()).collect())
        };
        let want = |key: &str, operator: &str, values: Vec<String>| Requirement {
            key: key.trim().to_owned(),
            operator: operator.to_owned(),
            values,
        };
        let requirement = if let Some(key) = one.strip_prefix('!') {
            want(key, "DoesNotExist", Vec::new())
        } else if let Some((key, values)) = one.split_once(" notin ") {
            want(key, "NotIn", listed(values)?)
        } else if let Some((key, values)) = one.split_once(" in ") {
            want(key, "In", listed(values)?)
        } else if let Some((key, value)) = one.split_once("!=") {
            want(key, "NotIn", vec![value.trim().to_owned()])
        } else if let Some((key, value)) = one.split_once("==").or_else(|| one.split_once('=')) {
            want(key, "In", vec![value.trim().to_owned()])
        } else {
            want(one, "Exists", Vec::new())
        };
        selector.match_expressions.push(requirement);
    }
    (!selector.is_empty()).then(|| selector.matcher().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_of_scale_subresources_are_read() {
        let accepts = |text: &str, labels: &[(&str, &str)]| {
            let label = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
            written_selector(text).map(|matcher| matcher.accepts(label))
        };
        assert_eq!(accepts("app=web", &[("app", "web")]), Some(true));
        assert_eq!(accepts("app=web,tier in (front,back)", &[("app", "web"), ("tier", "back")]), Some(true));
        assert_eq!(accepts("app=web,tier in (front,back)", &[("app", "web"), ("tier", "x")]), Some(false));
        assert_eq!(accepts("app!=web,!old,new", &[("app", "db"), ("new", "")]), Some(true));
        assert_eq!(accepts("tier notin (a, b)", &[("tier", "b")]), Some(false));
        assert_eq!(accepts("", &[]), None);
    }
}
