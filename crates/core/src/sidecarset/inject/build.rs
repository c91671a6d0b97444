//! Sidecars as they will stand in one pod.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::{
    annotations::{SIDECARSET_VERSION_ALT_PREFIX, SIDECARSET_VERSION_PREFIX},
    env::{IS_INJECTED, SIDECARSET_VERSION, SIDECARSET_VERSION_ALT},
    json::{self, Object},
};
use serde_json::{Value, json};

use super::{
    super::{
        compiled::{Place, Sidecar, Source, Transfer, name_of},
        containers::twins,
    },
    Error, Share, annotation, label,
};

/// Everything that is added to one pod.
#[derive(Default)]
pub(super) struct Built {
    pub(super) init_containers: Vec<Placed>,
    pub(super) containers: Vec<Placed>,
    pub(super) volumes: Vec<Value>,
    pub(super) pull_secrets: Vec<Value>,
    /// Annotations of containers that take turns.
    pub(super) annotations: BTreeMap<String, String>,
    /// Which of them works.
    pub(super) working: BTreeMap<String, String>,
}

/// A container with its place.
pub(super) struct Placed {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) container: Value,
}

/// Makes the sidecars of all sets for a pod.
pub(super) fn sidecars(pod: &Value, shares: &[Share<'_>]) -> Result<Built, Error> {
    let pod = Pod::read(pod, shares);
    let mut built = Built::default();
    for share in shares {
        let content = share.content;
        let lists = [(&content.init_containers, true), (&content.containers, false)];
        for (sidecars, is_init) in lists {
            for sidecar in sidecars {
                let container = container(sidecar, &pod)?;
                let list = if is_init { &mut built.init_containers } else { &mut built.containers };
                match &sidecar.empty_image {
                    None => list.push(Placed {
                        name: sidecar.name.clone(),
                        place: sidecar.place,
                        container: container.into(),
                    }),
                    Some(empty_image) => {
                        list.extend(both(sidecar, container, empty_image));
                        note(&mut built, &sidecar.name);
                    }
                }
                built
                    .volumes
                    .extend(sidecar.volumes.iter().filter_map(|at| content.volumes.get(*at)).cloned());
            }
        }
        built.pull_secrets.extend(content.pull_secrets.iter().cloned());
    }
    Ok(built)
}

/// What of a pod sidecars look at.
struct Pod<'a> {
    pod: &'a Value,
    /// Those that came with it.
    apps: Vec<&'a Value>,
    containers: &'a [Value],
    init_containers: &'a [Value],
    /// The names of all sidecars, which do not count when resources are added up.
    sidecars: BTreeSet<String>,
}

impl<'a> Pod<'a> {
    fn read(pod: &'a Value, shares: &[Share<'_>]) -> Self {
        let list = |name: &str| {
            json::at(pod, &["spec", name]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
        };
        let containers = list("containers");
        let all = || shares.iter().map(|share| share.content);
        // Names are needed only where resources are computed.
        let mut needs_names =
            all().flat_map(|content| content.init_containers.iter().chain(&content.containers));
        let sidecars = if needs_names.any(|sidecar| sidecar.policy.is_some()) {
            let both = all().flat_map(|content| content.init_containers.iter().chain(&content.containers));
            both.flat_map(|sidecar| {
                let twins = sidecar.empty_image.is_some().then(|| twins(&sidecar.name));
                twins.into_iter().flatten().chain([sidecar.name.clone()])
            })
            .collect()
        } else {
            BTreeSet::new()
        };
        Self {
            pod,
            apps: containers.iter().filter(|container| !is_injected(container)).collect(),
            containers,
            init_containers: list("initContainers"),
            sidecars,
        }
    }

    /// The containers whose resources may count.
    fn targets(&self) -> impl Iterator<Item = &'a Value> {
        let native = self
            .init_containers
            .iter()
            .filter(|one| one.get("restartPolicy").and_then(Value::as_str) == Some("Always"));
        native
            .chain(self.containers)
            .filter(|container| name_of(container).is_none_or(|name| !self.sidecars.contains(name)))
    }

    /// A variable of a container; of several of one name the last counts.
    fn variable(&self, container: &str, name: &str) -> Option<&'a Value> {
        let container = self.containers.iter().find(|one| name_of(one) == Some(container))?;
        items(container, "env").iter().rfind(|one| name_of(one) == Some(name))
    }
}

fn items<'a>(owner: &'a Value, list: &str) -> &'a [Value] {
    owner.get(list).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_injected(container: &Value) -> bool {
    let mark = items(container, "env").iter().find(|one| name_of(one) == Some(IS_INJECTED));
    mark.and_then(|mark| mark.get("value")).and_then(Value::as_str) == Some("true")
}

fn container(sidecar: &Sidecar, pod: &Pod<'_>) -> Result<Object, Error> {
    let mut container = sidecar.container.clone();
    if let Some(policy) = &sidecar.policy {
        container.insert("resources".to_owned(), policy.resources(pod.targets())?.into());
    }
    let mut taken: Vec<&Value> = Vec::new();
    for transfer in &sidecar.transfers {
        take_variables(&mut taken, transfer, pod);
    }
    if sidecar.shares_mounts {
        let mounts =
            pod.apps.iter().flat_map(|app| items(app, "volumeMounts").iter().map(move |mount| (*app, mount)));
        let mounts: Vec<(&Value, &Value)> = mounts.collect();
        for (app, mount) in &mounts {
            let expression = mount.get("subPathExpr").and_then(Value::as_str).unwrap_or_default();
            for name in references(expression) {
                let variable = items(app, "env").iter().find(|one| name_of(one) == Some(name));
                taken.extend(variable);
            }
        }
        let mounts = mounts.into_iter().map(|(_, mount)| mount);
        add(&mut container, "volumeMounts", mounts, "mountPath", &[("volumeDevices", "devicePath")]);
    }
    add(&mut container, "env", taken.into_iter(), "name", &[]);
    if sidecar.shares_devices {
        let devices = pod.apps.iter().flat_map(|app| items(app, "volumeDevices"));
        add(&mut container, "volumeDevices", devices, "devicePath", &[("volumeMounts", "mountPath")]);
    }
    Ok(container)
}

fn take_variables<'a>(taken: &mut Vec<&'a Value>, transfer: &Transfer, pod: &Pod<'a>) {
    let source = match &transfer.source {
        Source::Container(name) => Some(name.as_str()),
        Source::Label(key) => label(pod.pod, key),
        Source::Annotation(key) => annotation(pod.pod, key),
        Source::Nothing => None,
    };
    let Some(source) = source else { return };
    taken.extend(transfer.names.iter().filter_map(|name| pod.variable(source, name)));
}

/// Appends to a list of a container what is not there yet by a key, in the list itself or in others.
fn add<'a>(
    container: &mut Object,
    list: &str,
    more: impl Iterator<Item = &'a Value>,
    key: &str,
    others: &[(&str, &str)],
) {
    let mut more = more.peekable();
    if more.peek().is_none() {
        return;
    }
    let keys = |list: &str, key: &str| {
        let items = container.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        items.iter().filter_map(|item| item.get(key)?.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let mut known: BTreeSet<String> = keys(list, key).into_iter().collect();
    known.extend(others.iter().flat_map(|(list, key)| keys(list, key)));
    let new: Vec<Value> = more
        .filter(|item| {
            let value = item.get(key).and_then(Value::as_str).unwrap_or_default();
            known.insert(value.to_owned())
        })
        .cloned()
        .collect();
    if new.is_empty() {
        return;
    }
    let present = container.entry(list).or_insert(Value::Null);
    match present.as_array_mut() {
        Some(present) => present.extend(new),
        None => *present = new.into(),
    }
}

/// The names in `$(NAME)` of a path.
fn references(expression: &str) -> impl Iterator<Item = &str> {
    let is_name = |name: &str| {
        let part = |letter: char| letter.is_ascii_alphabetic() || "-._".contains(letter);
        name.starts_with(part) && name.chars().all(|letter| part(letter) || letter.is_ascii_digit())
    };
    expression
        .split("$(")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(name, _)| name))
        .filter(move |name| is_name(name))
}

/// The two containers that take turns: the first one works.
fn both(sidecar: &Sidecar, container: Object, empty_image: &str) -> [Placed; 2] {
    let [first, second] = twins(&sidecar.name);
    let mut idle = container.clone();
    idle.insert("image".to_owned(), empty_image.into());
    let placed = |name: String, mut container: Object| {
        container.insert("name".to_owned(), name.as_str().into());
        let versions = [
            (SIDECARSET_VERSION, SIDECARSET_VERSION_PREFIX),
            (SIDECARSET_VERSION_ALT, SIDECARSET_VERSION_ALT_PREFIX),
        ];
        let versions = versions.map(|(variable, prefix)| {
            let field = format!("metadata.annotations['{prefix}{name}']");
            json!({"name": variable, "valueFrom": {"fieldRef": {"fieldPath": field}}})
        });
        if let Some(env) = container.get_mut("env").and_then(Value::as_array_mut) {
            env.extend(versions);
        }
        Placed { name, place: sidecar.place, container: container.into() }
    };
    [placed(first, container), placed(second, idle)]
}

/// The annotations of two containers that take turns and just came into the pod.
fn note(built: &mut Built, name: &str) {
    let [first, second] = twins(name);
    for (prefix, twin, version) in [
        (SIDECARSET_VERSION_PREFIX, &first, "1"),
        (SIDECARSET_VERSION_ALT_PREFIX, &first, "0"),
        (SIDECARSET_VERSION_PREFIX, &second, "0"),
        (SIDECARSET_VERSION_ALT_PREFIX, &second, "1"),
    ] {
        built.annotations.insert(format!("{prefix}{twin}"), version.to_owned());
    }
    built.working.insert(name.to_owned(), first);
}
