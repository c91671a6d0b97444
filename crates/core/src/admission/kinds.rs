//! Admission of our own kinds: one [table](TABLE), two functions.
//!
//! [`mutate`] fills in defaults in the version of the request and says what changed in that version: nothing that the
//! writer said is lost, and an object that needs nothing gets no patch. [`validate`] converts to the hub and runs the
//! rules of the kind.
//!
//! A kind adds a rule by one line in its entry of the table. Shared rules come first, in the order of the original.

mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod tests_support;

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::{
    convert,
    crd::{Crd, Version},
    gates::{Gate, Gates},
    json,
    kubernetes::{defaults, shape, validation::Violation},
    persistentpodstate::v1beta1::PersistentPodState,
    podunavailablebudget::v1beta1::PodUnavailableBudget,
    sidecarset::v1beta1::SidecarSet,
    workloadspread::v1beta1::WorkloadSpread,
};
use serde_json::Value;

use super::{Answer, Operation, Request, rules};
use crate::{
    configuration::Data,
    object::ObjectKey,
    pod::{Owner, Pairs, Pod},
    podprobemarker::Marker,
    resourcedistribution::validate::TrialRefused,
    revision::Revision,
    sidecarset::Sets,
    volume_claim::StorageClass,
    workloadspread::Placed,
};

pub use table::TABLE;

/// What rules may know besides the request.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The open gates.
    pub gates: &'a Gates,
    /// Whether containers of templates may be privileged.
    pub allow_privileged: bool,
    /// The time.
    pub now: Timestamp,
    /// A random number, another one for each request.
    pub seed: u64,
    /// What the caches know.
    pub cluster: &'a dyn Cluster,
}

/// What rules of admission look up in the caches. A rule that needs more adds it here. Whoever knows nothing of something
/// needs not say so.
pub trait Cluster {
    /// A pod.
    fn pod(&self, _key: &ObjectKey) -> Option<Arc<Pod>> {
        None
    }

    /// A storage class.
    fn storage_class(&self, _name: &str) -> Option<Arc<StorageClass>> {
        None
    }

    /// The storage class of claims that name none.
    fn default_storage_class(&self) -> Option<Arc<StorageClass>> {
        None
    }

    /// A pod with all that caches leave out, or why it cannot be read.
    fn whole_pod(&self, _key: &ObjectKey) -> Result<Option<Arc<Value>>, String> {
        Ok(None)
    }

    /// The labels of a node, or why they cannot be read.
    fn node(&self, name: &str) -> Result<Pairs, String> {
        Err(format!("nodes {name:?} not found"))
    }

    /// The labels of a namespace.
    fn namespace(&self, _name: &str) -> Option<Pairs> {
        None
    }

    /// The PodProbeMarkers of a namespace, sorted by name.
    fn pod_probe_markers(&self, _namespace: &str) -> Vec<Marker> {
        Vec::new()
    }

    /// The SidecarSets in the form in which pods get them.
    fn sidecar_sets(&self) -> Arc<Sets> {
        Arc::default()
    }

    /// All SidecarSets that can be read, sorted by name.
    fn stored_sidecar_sets(&self) -> Vec<Arc<SidecarSet>> {
        Vec::new()
    }

    /// The revisions of a SidecarSet.
    fn sidecar_set_revisions(&self, _set: &str) -> Vec<Arc<Revision>> {
        Vec::new()
    }

    /// The PodUnavailableBudgets of a namespace that can be read, sorted by name.
    fn budgets(&self, _namespace: &str) -> Vec<Arc<PodUnavailableBudget>> {
        Vec::new()
    }

    /// The PersistentPodStates of a namespace that can be read, sorted by name.
    fn persistent_pod_states(&self, _namespace: &str) -> Vec<Arc<PersistentPodState>> {
        Vec::new()
    }

    /// The controllers of the new pod of the request: its own first, then the controller of that one, and so on.
    fn owners(&self) -> Vec<Owner> {
        Vec::new()
    }

    /// Why the server would not take copies of a ResourceDistribution's resource, if it was asked and said so.
    fn refused_trial(&self) -> Option<TrialRefused> {
        None
    }

    /// The WorkloadSpreads of a namespace that can be read, sorted by name.
    fn spreads(&self, _namespace: &str) -> Vec<Arc<WorkloadSpread>> {
        Vec::new()
    }

    /// The workload of the WorkloadSpread of the request, where a patch of it is tried on the workload's template.
    fn spread_workload(&self) -> Option<Arc<Value>> {
        None
    }

    /// Where the new pod of the request goes, if a WorkloadSpread says so.
    fn placed(&self) -> Option<Arc<Placed>> {
        None
    }

    /// The settings that need no restart, if there are any.
    fn configuration(&self) -> Option<Arc<Data>> {
        None
    }
}

/// A cluster with nothing in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Empty;

impl Cluster for Empty {}

/// How objects of one kind are admitted.
pub struct Entry {
    /// The kind.
    pub crd: &'static Crd,
    /// All of these must be open, or objects are neither made nor changed. Asked in this order.
    pub gates: &'static [Gate],
    /// Says what of an object does not fit its type, where that is more than its templates.
    pub misfit: Option<Misfit>,
    /// Pod templates in objects of the kind.
    pub templates: &'static [Template],
    /// `spec.selector`, where it selects pods.
    pub selector: Option<rules::Selector>,
    /// Changes besides the defaults, in the version of the request. Run in this order.
    pub mutations: &'static [Mutation],
    /// Judges an object while it completes it, for a kind whose only webhook is the one that changes objects. Run last.
    pub completion: Option<Completion>,
    /// Reasons to refuse that are no mistakes in a field. Run before the rules; the first one ends.
    pub refusals: &'static [Refusal],
    /// What must hold for the fields. All of them run.
    pub rules: &'static [Rule],
    /// What the writer should know of an object that is accepted.
    pub advice: Option<Advice>,
}

impl Entry {
    fn version(&self, request: &Request) -> Option<&'static Version> {
        self.crd.versions.iter().find(|version| version.name == request.kind.version)
    }
}

/// A change of a new or changed object. An error ends the request with 500 and no change.
pub type Mutation = fn(&mut Value, &Request, &Context<'_>) -> Result<(), String>;
/// A change of a new or changed object, or the refusal of it.
pub type Completion = fn(&mut Value, &Request, &Context<'_>) -> Result<(), Answer>;
/// What of an object does not fit its type. The writer gets it with 400.
pub type Misfit = fn(&Value) -> Result<(), shape::Error>;
/// Why an object is refused as a whole.
pub type Refusal = fn(&Change<'_>, &Context<'_>) -> Option<Answer>;
/// What is wrong with fields of an object.
pub type Rule = fn(&Change<'_>, &Context<'_>, &mut Vec<Violation>);

/// What the writer of an object should know.
pub type Advice = fn(&Change<'_>) -> Vec<String>;

/// An object that someone wants to make or change.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The request.
    pub request: &'a Request,
    /// The new object in the hub version.
    pub new: &'a Value,
    /// The stored object in the hub version, when it is changed.
    pub old: Option<&'a Value>,
}

impl Change<'_> {
    /// Whether the writer uses this version: paths in errors are those of the writer's version.
    pub fn is_written_as(&self, version: &str) -> bool {
        self.request.kind.version == version
    }

    /// Whether the part at a path is new or differs from the stored one.
    pub fn touches(&self, path: &[&str]) -> bool {
        self.old.is_none_or(|old| json::at(old, path) != json::at(self.new, path))
    }

    /// Whether the object is on its way out: what is stored must stay removable whatever rules say.
    pub fn is_deleting(&self) -> bool {
        self.old.is_some_and(|old| json::at(old, &["metadata", "deletionTimestamp"]).is_some())
    }
}

/// A pod template in objects of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Where it stands, in both versions.
    pub path: &'static [&'static str],
    /// The claim templates that go with it; they are volumes of the pods.
    pub claims: Option<&'static [&'static str]>,
    /// The part that must differ for a changed object to get defaults again: an upgrade of the program never makes a
    /// new revision by itself.
    pub renewed_by: &'static [&'static str],
    /// Whether the template gets defaults.
    pub defaulted: bool,
    /// Whether it is judged when it is new.
    pub checked: bool,
    /// Whether its labels must be selected by `spec.selector`.
    pub selected: bool,
}

/// The entry of a kind.
pub fn entry(group: &str, kind: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.crd.group == group && entry.crd.kind == kind)
}

/// Fills in what the writer left out.
pub fn mutate(request: &Request, context: &Context<'_>) -> Answer {
    let entry = match readable(request) {
        Ok(entry) => entry,
        Err(answer) => return answer,
    };
    if !matches!(request.operation, Operation::Create | Operation::Update) || !request.subresource.is_empty()
    {
        return Answer::allowed();
    }
    if is_untouched(request) {
        return Answer::allowed();
    }
    if let Some(answer) = closed_gate(entry, request, context.gates) {
        return answer;
    }
    let mut object = request.object.clone();
    (entry.crd.defaults)(&mut object);
    if !context.gates.enabled(Gate::TemplateNoDefaults) {
        entry.templates.iter().for_each(|template| default_template(&mut object, template, request, context));
    }
    for mutation in entry.mutations {
        if let Err(error) = mutation(&mut object, request, context) {
            return Answer::internal(error);
        }
    }
    if let Some(completion) = entry.completion
        && let Err(refusal) = completion(&mut object, request, context)
    {
        return refusal;
    }
    Answer::changed(&request.object, object)
}

/// Refuses what breaks the rules of its kind. Deletions are not judged here.
pub fn validate(request: &Request, context: &Context<'_>) -> Answer {
    if !matches!(request.operation, Operation::Create | Operation::Update) || !request.subresource.is_empty()
    {
        return Answer::allowed();
    }
    let entry = match readable(request) {
        Ok(entry) => entry,
        Err(answer) => return answer,
    };
    if is_untouched(request) {
        return Answer::allowed();
    }
    if let Some(answer) = closed_gate(entry, request, context.gates) {
        return answer;
    }
    if let Some(error) =
        entry.version(request).and_then(|version| (version.read_and_write)(request.object.clone()).err())
    {
        return Answer::bad_object(error);
    }
    let new = match hub(entry, &request.object) {
        Ok(new) => new,
        Err(answer) => return answer,
    };
    // What is stored was accepted once. Where it cannot be read any more, the new object is judged alone.
    let old = (request.operation == Operation::Update && request.old_object.is_object())
        .then(|| hub(entry, &request.old_object).ok())
        .flatten();
    let change = Change { request, new: &new, old: old.as_ref() };
    if change.is_deleting() {
        return Answer::allowed();
    }
    if let Some(answer) = entry.refusals.iter().find_map(|refusal| refusal(&change, context)) {
        return answer;
    }
    let mut found = Vec::new();
    if let Some(selector) = &entry.selector {
        rules::selector(&mut found, &new, selector);
    }
    entry.templates.iter().for_each(|template| check_template(&mut found, template, &change, context));
    entry.rules.iter().for_each(|rule| rule(&change, context, &mut found));
    match (Answer::checked(&found), entry.advice) {
        (Answer::Allowed { patch, warnings: _ }, Some(advice)) => {
            Answer::Allowed { patch, warnings: advice(&change) }
        }
        (answer, _) => answer,
    }
}

/// What the rules say against an object that is stored, as if it were new. Admission may refuse what we write because of
/// such an object, and says so again until somebody changes it.
pub fn stored_problem(
    resource: crate::object::Resource,
    object: &Value,
    gates: &Gates,
    allow_privileged: bool,
    now: Timestamp,
) -> Option<String> {
    let mut object = object.clone();
    json::set(&mut object, &["apiVersion"], resource.api_version());
    json::set(&mut object, &["kind"], resource.kind);
    let kind = super::Kind {
        group: resource.group.to_owned(),
        version: resource.version.to_owned(),
        kind: resource.kind.to_owned(),
    };
    let request = Request { kind, object, ..Request::default() };
    match validate(&request, &Context { gates, allow_privileged, now, seed: 0, cluster: &Empty }) {
        Answer::Denied { message, .. } | Answer::Held { message, .. } => Some(message),
        Answer::Allowed { .. } => None,
    }
}

/// The entry of an object that is what the request says and whose templates fit their type.
///
/// Whether the rest fits is not asked here: the API server compares it with the schema after this, and names the field.
fn readable(request: &Request) -> Result<&'static Entry, Answer> {
    let wanted = &request.kind;
    let Some(entry) = entry(&wanted.group, &wanted.kind) else {
        let said = format!("{} of {}/{} is not known here", wanted.kind, wanted.group, wanted.version);
        return Err(Answer::bad_object(said));
    };
    if entry.version(request).is_none() {
        return Err(Answer::bad_object(format!("unsupported version: {}", wanted.version)));
    }
    let object = &request.object;
    if !object.is_object() {
        return Err(Answer::bad_object(format!("there is no {} in the request", wanted.kind)));
    }
    let api_version = format!("{}/{}", wanted.group, wanted.version);
    let said = ["apiVersion", "kind"].map(|field| json::text(object, &[field]).unwrap_or_default());
    if said != [&api_version, wanted.kind.as_str()] {
        let text = format!(
            "the request is about {api_version} {} but the object is {}",
            wanted.kind,
            said.join(" ").trim()
        );
        return Err(Answer::bad_object(text));
    }
    for template in entry.templates {
        if let Some(pods) = json::at(object, template.path) {
            shape::unknown_members("core.PodTemplateSpec", pods).map_err(Answer::bad_object)?;
        }
    }
    if let Some(misfit) = entry.misfit {
        misfit(object).map_err(Answer::bad_object)?;
    }
    Ok(entry)
}

/// Whether an update leaves all as it is that rules are about. Objects are stored in another version that way, and they
/// lose finalizers and owners: none of it depends on what they say, on gates or on rules that came after them.
fn is_untouched(request: &Request) -> bool {
    let same = |path: &[&str]| json::at(&request.object, path) == json::at(&request.old_object, path);
    request.operation == Operation::Update
        && [&["spec"][..], &["metadata", "labels"], &["metadata", "annotations"]].into_iter().all(same)
}

/// The answer when a gate of the kind is closed. Objects on their way out may still be changed: someone has to remove
/// their finalizers.
fn closed_gate(entry: &Entry, request: &Request, gates: &Gates) -> Option<Answer> {
    if json::at(&request.old_object, &["metadata", "deletionTimestamp"]).is_some() {
        return None;
    }
    entry.gates.iter().find(|gate| !gates.enabled(**gate)).map(|gate| Answer::gate_closed(gate.name()))
}

fn hub(entry: &Entry, object: &Value) -> Result<Value, Answer> {
    let version = entry.crd.storage().map(|version| version.name).unwrap_or_default();
    convert::convert(object.clone(), &format!("{}/{version}", entry.crd.group)).map_err(Answer::bad_object)
}

fn default_template(object: &mut Value, template: &Template, request: &Request, context: &Context<'_>) {
    let stored = json::at(&request.old_object, template.renewed_by);
    let is_new = request.operation == Operation::Create || stored != json::at(object, template.renewed_by);
    if !template.defaulted || !is_new {
        return;
    }
    let options = defaults::Options {
        host_network_host_ports: context.gates.enabled(Gate::DefaultHostNetworkHostPortsInPodTemplates),
        ..defaults::Options::KRUISE_TEMPLATE
    };
    if let Some(pods) = json::at_mut(object, template.path) {
        defaults::pod_template_spec(pods, &options);
    }
    if let Some(claims) = template.claims {
        json::items_mut(object, claims).for_each(|claim| defaults::persistent_volume_claim(claim, &options));
    }
}

fn check_template(
    found: &mut Vec<Violation>,
    template: &Template,
    change: &Change<'_>,
    context: &Context<'_>,
) {
    let pods = json::at(change.new, template.path);
    // Alternatives that are not used are no templates.
    if pods.is_none() && template.path.len() > 2 {
        return;
    }
    if template.selected {
        rules::selector_matches(found, change.new, &[template.path, &["metadata", "labels"]].concat());
    }
    let is_new =
        change.touches(template.path) || template.claims.is_some_and(|claims| change.touches(claims));
    if template.checked && is_new {
        let claims =
            template.claims.and_then(|claims| json::at(change.new, claims)).and_then(Value::as_array);
        let names = claims.into_iter().flatten().filter_map(|claim| json::text(claim, &["metadata", "name"]));
        let names = names.map(str::to_owned).collect();
        let pods = pods.unwrap_or(&Value::Null);
        found.extend(rules::pod_template(pods, &template.path.join("."), names, context.allow_privileged));
    }
}
