//! A cluster of a Secret, two configurations and one CRD, with versions and conflicts, and replicas that act on it one
//! step at a time.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use kruise_webhook::certificates::bundle::{self, Authority};
use kruise_webhook::certificates::plan::{Conversion, Found, Observed, Plan, Publish, Serve, plan};
use kruise_webhook::certificates::registration::{Crd, Kind, Wanted};
use kruise_webhook::certificates::store::{Data, Store};
use kruise_webhook::certificates::{Environment, Mode, Pair};
use serde_json::{Value, json};

pub(crate) const START: &str = "2026-11-16T12:00:00Z";
pub(crate) const NAME: &str = "kruise-webhook-service.kruise-system.svc";
pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn environment() -> Environment {
    Environment {
        namespace: "kruise-system".to_owned(),
        service: "kruise-webhook-service".to_owned(),
        host: None,
        port: 9876,
        renew_before: 180 * DAY,
    }
}

pub(crate) fn wanted() -> Wanted {
    wanted_of(&["/mutate-pod", "/validate-pod", "/validate-apps-kruise-io-cloneset"])
}

/// Gates that need webhooks at these paths. The one of Services is known and closed.
pub(crate) fn wanted_of(paths: &[&str]) -> Wanted {
    let open: BTreeSet<String> = paths.iter().map(|&path| path.to_owned()).collect();
    let others = ["/mutate-pod", "/validate-pod", "/validate-service"].map(str::to_owned);
    Wanted { known: open.iter().cloned().chain(others).collect(), open, ..Wanted::default() }
}

/// A webhook as a server stores it.
pub(crate) fn webhook(name: &str, path: &str) -> Value {
    json!({
        "name": name,
        "admissionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": { "service": {
            "namespace": "kruise-system", "name": "kruise-webhook-service", "path": path, "port": 443,
        } },
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*",
        }],
        "sideEffects": "None", "timeoutSeconds": 10,
    })
}

pub(crate) fn configuration(kind: Kind, webhooks: Vec<Value>) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind.kind(),
        "metadata": { "name": kind.name(), "resourceVersion": "1", "annotations": { "template": "" } },
        "webhooks": webhooks,
    })
}

pub(crate) fn mutating() -> Value {
    let mut pod = webhook("mpod.kb.io", "/mutate-pod");
    pod["reinvocationPolicy"] = json!("Never");
    configuration(Kind::Mutating, vec![pod])
}

pub(crate) fn validating() -> Value {
    configuration(
        Kind::Validating,
        vec![
            webhook("vpod.kb.io", "/validate-pod"),
            webhook("vcloneset.kb.io", "/validate-apps-kruise-io-cloneset"),
            webhook("vservice.kb.io", "/validate-service"),
        ],
    )
}

pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) environment: Environment,
    pub(crate) wanted: Wanted,
    pub(crate) secret: Option<(Data, u64)>,
    pub(crate) configurations: [Value; 2],
    pub(crate) crds: Vec<Crd>,
    version: u64,
    pub(crate) writes: usize,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::at(START.parse().unwrap())
    }

    /// A hundred days ago by the clock on the wall: certificates of these days hold for real clients.
    #[expect(clippy::disallowed_methods, reason = "real TLS clients check certificates against real time")]
    pub(crate) fn lately() -> Self {
        Self::at(Timestamp::now().checked_sub(SignedDuration::from_hours(24 * 100)).unwrap())
    }

    fn at(now: Timestamp) -> Self {
        Self {
            now,
            environment: environment(),
            wanted: wanted(),
            secret: None,
            configurations: [mutating(), validating()],
            crds: vec![
                Crd {
                    name: "clonesets.apps.kruise.io".to_owned(),
                    resource_version: "1".to_owned(),
                    conversion: json!({ "strategy": "Webhook", "webhook": { "conversionReviewVersions": ["v1"] } }),
                },
                Crd {
                    name: "nodeimages.apps.kruise.io".to_owned(),
                    resource_version: "1".to_owned(),
                    conversion: json!({ "strategy": "None" }),
                },
            ],
            version: 1,
            writes: 0,
        }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now = self.now.checked_add(SignedDuration::try_from(time).unwrap()).unwrap();
    }

    pub(crate) fn set_secret(&mut self, data: Option<Data>) {
        self.version += 1;
        self.secret = data.map(|data| (data, self.version));
    }

    pub(crate) fn stored(&self) -> Store {
        Store::read(&self.secret.as_ref().unwrap().0)
    }

    /// The bundles of all webhooks and CRDs that are ours, as base64.
    pub(crate) fn bundles(&self) -> Vec<String> {
        let webhooks = self.configurations.iter().flat_map(|object| object["webhooks"].as_array().unwrap());
        let ours = webhooks.filter(|webhook| {
            let path = webhook["clientConfig"]["service"]["path"].as_str();
            path.is_some_and(|path| self.wanted.open.contains(path))
        });
        let configured = ours.map(|webhook| &webhook["clientConfig"]["caBundle"]);
        let crds = self.crds.iter().filter(|crd| crd.is_converted());
        let converted = crds.map(|crd| &crd.conversion["webhook"]["clientConfig"]["caBundle"]);
        configured.chain(converted).map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    }

    fn write(&mut self, write: Write) -> Result<(), ()> {
        self.version += 1;
        let version = self.version.to_string();
        match write {
            Write::Secret { data, read } => {
                if self.secret.as_ref().map(|(_, version)| *version) != read {
                    return Err(());
                }
                self.secret = Some((data, self.version));
            }
            Write::Configuration(kind, mut object) => {
                let slot = &mut self.configurations[kind as usize];
                if slot["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                    return Err(());
                }
                object["metadata"]["resourceVersion"] = json!(version);
                *slot = object;
            }
            Write::Crd(change) => {
                let crd = self.crds.iter_mut().find(|crd| crd.name == change.name).unwrap();
                if crd.resource_version != change.resource_version {
                    return Err(());
                }
                *crd = Crd { name: change.name, resource_version: version, conversion: change.conversion };
            }
        }
        self.writes += 1;
        Ok(())
    }

    /// Someone resets the configurations, as `helm upgrade` does.
    pub(crate) fn reset_configurations(&mut self) {
        for (object, shipped) in self.configurations.iter_mut().zip([mutating(), validating()]) {
            self.version += 1;
            *object = shipped;
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        }
    }
}

enum Write {
    Secret { data: Data, read: Option<u64> },
    Configuration(Kind, Value),
    Crd(Conversion),
}

/// Where a replica is in its pass.
enum Stage {
    Rest,
    LookedAtObjects { configurations: [Value; 2], crds: Vec<Crd> },
    Writing { writes: VecDeque<Write>, then: Option<Pair>, ends: bool },
}

pub(crate) struct Replica {
    pub(crate) served: Option<Pair>,
    found: Option<Found>,
    stage: Stage,
    /// Whether the certificate was swapped while another one held, so that even slow servers must trust it.
    pub(crate) swapped: bool,
    pub(crate) last: Option<Publish>,
}

impl Replica {
    pub(crate) fn new() -> Self {
        Self { served: None, found: None, stage: Stage::Rest, swapped: false, last: None }
    }

    /// One step: a read, or one write. Returns whether the step ended a whole pass.
    pub(crate) fn step(&mut self, world: &mut World) -> bool {
        match std::mem::replace(&mut self.stage, Stage::Rest) {
            Stage::Rest => {
                let (configurations, crds) = (world.configurations.clone(), world.crds.clone());
                self.stage = Stage::LookedAtObjects { configurations, crds };
                false
            }
            Stage::LookedAtObjects { configurations, crds } => {
                self.decide(world, &configurations, &crds);
                false
            }
            Stage::Writing { mut writes, then, ends } => {
                if let Some(write) = writes.pop_front() {
                    // A conflict: look again from the start.
                    if world.write(write).is_ok() {
                        self.stage = Stage::Writing { writes, then, ends };
                    }
                    return false;
                }
                if let Some(pair) = then {
                    self.swapped = false;
                    self.served = Some(pair);
                }
                ends
            }
        }
    }

    fn decide(&mut self, world: &World, configurations: &[Value; 2], crds: &[Crd]) {
        let seen = Observed {
            now: world.now,
            environment: &world.environment,
            mode: Mode::Secret,
            stored: world.secret.as_ref().map(|(data, _)| data),
            served: self.served.as_ref(),
            found: self.found.as_ref(),
            mutating: Some(&configurations[0]),
            validating: Some(&configurations[1]),
            crds,
            wanted: &world.wanted,
            leads: true,
        };
        let read = world.secret.as_ref().map(|(_, version)| *version);
        let store =
            |data| Stage::Writing { writes: [Write::Secret { data, read }].into(), then: None, ends: false };
        self.stage = match plan(&seen) {
            Plan::Make(make) => store(make.make(world.now).unwrap()),
            Plan::Keep(data) => store(data),
            Plan::Publish(publish) => {
                self.found = publish.found.clone();
                self.last = Some((*publish).clone());
                let configurations = publish
                    .configurations
                    .into_iter()
                    .map(|(kind, object)| Write::Configuration(kind, object));
                let crds = publish.conversions.into_iter().map(Write::Crd);
                let then = match publish.serve {
                    Serve::Same => None,
                    Serve::AfterWrites(pair) => Some(pair),
                    Serve::Now(pair) => {
                        self.swapped = true;
                        self.served = Some(pair);
                        None
                    }
                };
                Stage::Writing { writes: configurations.chain(crds).collect(), then, ends: true }
            }
        };
    }

    /// Whole passes until one ends with everything written.
    pub(crate) fn sync(&mut self, world: &mut World) {
        for _ in 0..100 {
            if self.step(world) {
                return;
            }
        }
        panic!("a pass never ends");
    }

    /// The authority of what is served.
    pub(crate) fn authority(&self) -> Option<Authority> {
        bundle::parse(self.served.as_ref()?.authority.as_bytes()).into_iter().next()
    }
}

/// The authorities in a bundle.
pub(crate) fn authorities(text: &str) -> Vec<Authority> {
    bundle::parse(&STANDARD.decode(text).unwrap())
}
