//! A set in the form in which pods get it: everything read and made ready once.

use std::sync::Arc;

use kruise_api::{
    annotations::{SIDECARSET_HASH, SIDECARSET_HASH_WITHOUT_IMAGE},
    env::IS_INJECTED,
    int_or_percent::{IntOrPercent, IntOrString, Percent},
    json::Object,
    selector::{self, LabelSelector, Matcher},
    sidecarset::{
        container::{PodInjectPolicy, ShareVolumePolicy, ShareVolumeType, SidecarContainer, TransferEnv},
        v1beta1::{InjectionPolicy, PatchPodMetadata, SidecarSet, Spec},
    },
};
use serde_json::{Value, json};

use super::{
    containers::{self, Upgrade},
    hash::{self, Hashes},
    matching::{self, Matching},
    resources::{self, Policy},
    revision,
};
use crate::{revision::Revision, text::Text};

/// A set that is ready for pods.
#[derive(Clone, Debug)]
pub struct Set {
    pub(super) name: Text,
    pub(super) matching: Matching,
    /// New pods get nothing.
    pub(super) is_paused: bool,
    /// The set that this one stands in for.
    pub(super) base: Option<Text>,
    pub(super) current: Arc<Content>,
    pub(super) chosen: Option<Chosen>,
}

/// A fixed revision for new pods.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// Its content, or why there is none: then pods are refused.
    pub(super) content: Result<Arc<Content>, String>,
    pub(super) pods: Pods,
}

/// Which pods get the fixed revision.
#[derive(Clone, Debug)]
pub(super) enum Pods {
    All,
    /// Those that the selector does not choose, and of the others this share.
    Some {
        selector: Option<Matcher>,
        share: Option<Percent>,
    },
}

/// What pods get from one state of a set.
#[derive(Clone, Debug, Default)]
pub struct Content {
    pub(super) hashes: Hashes,
    /// The name of the revision; empty while there is none.
    pub(super) revision: String,
    /// The names that pods record.
    pub(super) recorded: Vec<String>,
    pub(super) init_containers: Vec<Sidecar>,
    pub(super) containers: Vec<Sidecar>,
    pub(super) volumes: Vec<Value>,
    pub(super) pull_secrets: Vec<Value>,
    pub(super) patches: Vec<PatchPodMetadata>,
}

/// One container, ready to be copied into pods.
#[derive(Clone, Debug)]
pub(super) struct Sidecar {
    pub(super) name: String,
    /// The container without what only sets have, with the mark of injected containers.
    pub(super) container: Object,
    pub(super) place: Place,
    pub(super) shares_mounts: bool,
    pub(super) shares_devices: bool,
    pub(super) transfers: Vec<Transfer>,
    pub(super) policy: Option<Policy>,
    /// The image of the idle twin, if two containers take turns.
    pub(super) empty_image: Option<String>,
    /// Places of the volumes that it uses among those of the set.
    pub(super) volumes: Vec<usize>,
}

/// Where a container stands in pods. Behind, unless the set says something else; its defaults do, for containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Before,
    After,
}

/// Variables that come from a container of the pod.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) source: Source,
    /// Sorted.
    pub(super) names: Vec<String>,
}

/// The container that variables come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Container(String),
    Label(String),
    Annotation(String),
    /// A field that names no container: validation refuses it.
    Nothing,
}

/// Why a set cannot be used. Validation refuses such sets, so they are rare: written around it, or by a newer version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A selector that means nothing.
    #[error("sidecarset {set} has an invalid selector")]
    Selector {
        /// The set.
        set: String,
        /// What is wrong.
        source: selector::Error,
    },
    /// Resources that cannot be computed.
    #[error("container {container} of sidecarset {set} has an invalid resourcesPolicy")]
    Policy {
        /// The set.
        set: String,
        /// The container.
        container: String,
        /// What is wrong.
        source: Box<resources::Error>,
    },
    /// A revision that holds something else than a set.
    #[error("revision {revision} of sidecarset {set} cannot be read: {message}")]
    Revision {
        /// The set.
        set: String,
        /// The revision.
        revision: String,
        /// What is wrong.
        message: String,
    },
}

impl Set {
    /// Makes a set ready. `revisions` are those of the manager's namespace that carry its name; only a set that gives new
    /// pods a fixed one [depends on them](Self::depends_on_revisions).
    pub fn compile(set: &SidecarSet, revisions: &[Arc<Revision>]) -> Result<Self, Error> {
        let name = super::name(set);
        let invalid = |source| Error::Selector { set: name.to_owned(), source };
        let injection = set.spec.injection_strategy.as_ref();
        let choice = injection.and_then(|strategy| strategy.revision.as_ref());
        let chosen = match choice.map(|choice| revision::chosen(name, choice, revisions)) {
            None | Some(Ok(None)) => None,
            Some(Ok(Some(revision))) => {
                Some(Content::of_revision(name, revision).map_err(|error| error.to_string()))
            }
            Some(Err(missing)) => Some(Err(missing.to_string())),
        };
        let chosen = match chosen {
            Some(content) => {
                Some(Chosen { content: content.map(Arc::new), pods: pods(&set.spec).map_err(invalid)? })
            }
            None => None,
        };
        Ok(Self {
            name: name.into(),
            matching: Matching::of(&set.spec).map_err(invalid)?,
            is_paused: injection.and_then(|strategy| strategy.paused).unwrap_or(false),
            base: matching::base_of(set).map(Text::from),
            current: Arc::new(Content::of_set(set)?),
            chosen,
        })
    }

    /// The name.
    pub fn name(&self) -> &Text {
        &self.name
    }

    /// Whether new pods get a fixed revision, so that the set must be made ready again when its revisions change.
    pub fn depends_on_revisions(&self) -> bool {
        self.chosen.is_some()
    }

    /// Which pods it is about.
    pub fn matching(&self) -> &Matching {
        &self.matching
    }
}

/// Which pods get the fixed revision of a set.
fn pods(spec: &Spec) -> Result<Pods, selector::Error> {
    let update = spec.update_strategy.as_ref();
    let choice = spec.injection_strategy.as_ref().and_then(|strategy| strategy.revision.as_ref());
    let is_partial = choice.and_then(|choice| choice.policy.as_ref()) == Some(&InjectionPolicy::Partial);
    if !is_partial || update.and_then(|update| update.paused).unwrap_or(false) {
        return Ok(Pods::All);
    }
    let selector = update.and_then(|update| update.selector.as_ref());
    let partition = update.and_then(|update| update.partition.as_ref());
    let share = match partition.map(IntOrString::parse) {
        Some(Ok(IntOrPercent::Percent(share))) => Some(share),
        _ => None,
    };
    Ok(Pods::Some { selector: selector.map(LabelSelector::matcher).transpose()?, share })
}

impl Content {
    /// What pods get from a set as it is.
    pub fn of_set(set: &SidecarSet) -> Result<Self, Error> {
        let revision = set.status.as_ref().and_then(|status| status.latest_revision.clone());
        Self::new(super::name(set), &set.spec, hash::of_set(set), revision.unwrap_or_default())
    }

    /// What pods get from a revision of a set.
    pub fn of_revision(set: &str, revision: &Revision) -> Result<Self, Error> {
        let unreadable = |message: String| Error::Revision {
            set: set.to_owned(),
            revision: revision.name().to_owned(),
            message,
        };
        if revision.template.is_null() {
            return Err(unreadable("it holds no sidecars".to_owned()));
        }
        let spec: Spec = serde_json::from_value(revision.template.clone())
            .map_err(|error| unreadable(error.to_string()))?;
        let carried = |key: &str| revision.metadata.annotations.text(key).filter(|hash| !hash.is_empty());
        let known = (carried(SIDECARSET_HASH), carried(SIDECARSET_HASH_WITHOUT_IMAGE));
        let hashes = match known {
            (Some(full), Some(rest)) => Hashes { full: full.to_owned(), without_image: rest.to_owned() },
            (full, rest) => {
                let computed = hash::of_spec(&revision.template);
                Hashes {
                    full: full.map_or(computed.full, str::to_owned),
                    without_image: rest.map_or(computed.without_image, str::to_owned),
                }
            }
        };
        Self::new(set, &spec, hashes, revision.name().to_owned())
    }

    fn new(set: &str, spec: &Spec, hashes: Hashes, revision: String) -> Result<Self, Error> {
        let volumes =
            spec.volumes.as_ref().and_then(|volumes| volumes.0.as_array().cloned()).unwrap_or_default();
        let ready = |containers: &[SidecarContainer], is_init: bool| {
            let ready = containers.iter().map(|one| sidecar(set, one, is_init, &volumes));
            ready.collect::<Result<Vec<_>, _>>()
        };
        let init_containers = ready(&spec.init_containers, true)?;
        let containers = ready(&spec.containers, false)?;
        let pull_secrets = spec.image_pull_secrets.iter().filter_map(|secret| secret.name.as_deref());
        Ok(Self {
            hashes,
            revision,
            recorded: containers::recorded_of(spec),
            init_containers,
            containers,
            pull_secrets: pull_secrets.map(|name| json!({"name": name})).collect(),
            patches: spec.patch_pod_metadata.clone(),
            volumes,
        })
    }
}

fn sidecar(set: &str, given: &SidecarContainer, is_init: bool, volumes: &[Value]) -> Result<Sidecar, Error> {
    // Named one by one, so that a new field cannot be forgotten.
    let SidecarContainer {
        pod_inject_policy,
        upgrade_strategy: _,
        share_volume_policy,
        share_volume_device_policy,
        transfer_env,
        resources_policy,
        container,
    } = given;
    let read = containers::Sidecar::of(given);
    let is_twofold = read.is_hot() && (!is_init || read.is_native);
    let policy = resources_policy.as_ref().map(Policy::of).transpose();
    let policy = policy.map_err(|source| Error::Policy {
        set: set.to_owned(),
        container: read.name.to_owned(),
        source: Box::new(source),
    })?;
    let shares = |policy: &Option<ShareVolumePolicy>| {
        policy.as_ref().and_then(|policy| policy.kind.as_ref()) == Some(&ShareVolumeType::Enabled)
    };
    let mut used = Vec::new();
    for list in ["volumeMounts", "volumeDevices"] {
        for name in container.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(name_of) {
            let place = volumes.iter().position(|volume| name_of(volume) == Some(name));
            used.extend(place.filter(|place| !used.contains(place)));
        }
    }
    Ok(Sidecar {
        name: read.name.to_owned(),
        container: marked(container),
        place: match pod_inject_policy {
            Some(PodInjectPolicy::BeforeAppContainer) => Place::Before,
            _ => Place::After,
        },
        shares_mounts: shares(share_volume_policy),
        shares_devices: shares(share_volume_device_policy),
        transfers: transfer_env.iter().map(transfer).collect(),
        policy,
        empty_image: match read.upgrade {
            Upgrade::Hot { empty_image } if is_twofold => Some(empty_image.to_owned()),
            _ => None,
        },
        volumes: used,
    })
}

/// The `name` of a container, a volume, a variable and so on.
pub(super) fn name_of(value: &Value) -> Option<&str> {
    value.get("name").and_then(Value::as_str)
}

/// A container with the variable that tells injected ones from others.
fn marked(container: &Object) -> Object {
    let mut container = container.clone();
    let own = container.get("env").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut env: Vec<Value> = own.into_iter().filter(|one| name_of(one) != Some(IS_INJECTED)).collect();
    env.push(json!({"name": IS_INJECTED, "value": "true"}));
    container.insert("env".to_owned(), env.into());
    container
}

fn transfer(given: &TransferEnv) -> Transfer {
    let field = given.source_container_name_from.as_ref().and_then(|from| from.field_ref.as_ref());
    let source = match field {
        Some(field) => {
            let key =
                |prefix: &str| field.field_path.strip_prefix(prefix)?.strip_suffix("']").map(str::to_owned);
            key("metadata.labels['")
                .map(Source::Label)
                .or_else(|| key("metadata.annotations['").map(Source::Annotation))
                .unwrap_or(Source::Nothing)
        }
        None => Source::Container(given.source_container_name.clone().unwrap_or_default()),
    };
    let one = given.env_name.iter().filter(|name| !name.is_empty());
    let mut names: Vec<String> = one.chain(&given.env_names).cloned().collect();
    names.sort();
    names.dedup();
    Transfer { source, names }
}
