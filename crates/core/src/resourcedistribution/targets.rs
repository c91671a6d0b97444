//! Which namespaces get a copy.

use std::collections::BTreeSet;

use kruise_api::{
    names::{KUBE_PUBLIC, KUBE_SYSTEM},
    resourcedistribution::v1beta1::{self, Namespaces},
    selector::{self, Matcher},
};

use crate::{pod::Metadata, text::Text};

/// The namespaces that a spec chooses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Targets {
    all: bool,
    included: BTreeSet<Text>,
    excluded: BTreeSet<Text>,
    selector: Option<Matcher>,
}

/// Where a namespace stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It gets a copy.
    Target,
    /// It is named, but it is not there or about to go.
    Missing,
    /// It gets none.
    Outside,
    /// It is about to go: nothing is done there.
    Leaving,
}

/// A namespace with where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The name.
    pub name: Text,
    /// Where it stands.
    pub place: Place,
}

impl Targets {
    /// Reads a spec. An empty selector chooses nothing.
    pub fn new(spec: &v1beta1::Targets) -> Result<Self, selector::Error> {
        let names = |list: &Option<Namespaces>| {
            let names = list.iter().flat_map(|list| &list.list).filter_map(|one| one.name.as_deref());
            names.filter(|name| !name.is_empty()).map(Text::from).collect()
        };
        let selector = spec.namespace_selector.as_ref().filter(|selector| !selector.is_empty());
        Ok(Self {
            all: spec.all_namespaces.unwrap_or(false),
            included: names(&spec.included_namespaces),
            excluded: names(&spec.excluded_namespaces),
            selector: selector.map(selector::LabelSelector::matcher).transpose()?,
        })
    }

    fn is_left_out(&self, name: &str) -> bool {
        matches!(name, KUBE_SYSTEM | KUBE_PUBLIC) || self.excluded.contains(name)
    }

    /// Whether the namespace counts although it is not there.
    fn names(&self, name: &str) -> bool {
        !self.all && self.included.contains(name) && !self.is_left_out(name)
    }

    /// Where an existing namespace stands.
    pub fn place(&self, namespace: &Metadata) -> Place {
        let Metadata { name, labels, .. } = namespace;
        let is_selected =
            || self.selector.as_ref().is_some_and(|selector| selector.accepts(|key| labels.text(key)));
        let is_chosen =
            !self.is_left_out(name) && (self.all || self.included.contains(name) || is_selected());
        match (namespace.is_deleting(), is_chosen) {
            (true, _) if self.names(name) => Place::Missing,
            (true, _) => Place::Leaving,
            (false, true) => Place::Target,
            (false, false) => Place::Outside,
        }
    }

    /// The existing namespaces with where they stand, and those that are named and not there; sorted by name.
    pub fn sort<'n>(&self, existing: impl IntoIterator<Item = &'n Metadata>) -> Vec<Namespace> {
        let mut sorted: Vec<Namespace> = existing
            .into_iter()
            .map(|namespace| Namespace { name: namespace.name.clone(), place: self.place(namespace) })
            .collect();
        let known: BTreeSet<Text> = sorted.iter().map(|namespace| namespace.name.clone()).collect();
        let missing = self.included.iter().filter(|name| !known.contains(*name) && self.names(name));
        sorted.extend(missing.map(|name| Namespace { name: name.clone(), place: Place::Missing }));
        sorted.sort_by(|one, other| one.name.cmp(&other.name));
        sorted
    }

    /// Whether a change of a namespace matters here.
    pub fn is_concerned(&self, old: Option<&Metadata>, new: Option<&Metadata>) -> bool {
        let place = |namespace: Option<&Metadata>| namespace.map(|namespace| self.place(namespace));
        match (place(old), place(new)) {
            (None, Some(Place::Outside | Place::Leaving)) | (Some(Place::Outside | Place::Leaving), None) => {
                false
            }
            (before, after) => before != after,
        }
    }
}
