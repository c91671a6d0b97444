//! Keeps the certificates of the webhooks in order, on every replica, and their configurations in step with the gates.
//!
//! The decisions are [`kruise_webhook::certificates`]'s; this reads what they need, writes what they say and shows the
//! certificate to the listener. A pass reads the configurations and CRDs first and the Secret last, which the rules
//! rely on. Every write carries the version that was read: when someone else was faster, the pass begins again.

mod cluster;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kruise_api::catalogue;
use kruise_core::causes;
use kruise_runtime::clock::Clock;
use kruise_runtime::metrics::Framework;
use kruise_runtime::scope::Stop;
use kruise_webhook::certificates::plan::{self, Found, Plan, Publish, Serve};
use kruise_webhook::certificates::registration::{Crd, Kind};
use kruise_webhook::certificates::store::Data;
use kruise_webhook::certificates::{Mode, Pair, external, files, validity};
use kruise_webhook::listener::Current;
use kruise_webhook::selfcheck::Check;
use kube::Client;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use cluster::{Cluster, Secret};
pub use settings::{Settings, wanted};

/// How long after a success everything is looked at again.
const RESYNC: Duration = Duration::from_secs(60);
/// The same where files are the only place, and nobody tells of their changes.
const RESYNC_FILES: Duration = Duration::from_secs(10);
/// Changes come in groups; one pass sees them all.
const GATHER: Duration = Duration::from_millis(200);
/// How long one pass may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The wait after a failure, which doubles.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The longest wait while the program has not started yet.
const LONGEST_FIRST_WAIT: Duration = Duration::from_secs(2);
/// How long entries of configurations are left alone after they were added or removed: another program that undoes it at
/// once, such as an older build beside this one, is not fought.
const REGROUP_EVERY: Duration = Duration::from_secs(10);
/// How often a pass begins again because someone else was faster.
const MOST_TRIES: usize = 10;

/// Why certificates are not in order.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cluster did not do what we asked.
    #[error("failed to {doing} {object}")]
    Cluster {
        /// What we were doing.
        doing: &'static str,
        /// To what.
        object: String,
        /// What the server says.
        source: Box<kube::Error>,
    },
    /// Something is missing or wrong, and someone else has to change it.
    #[error("{}", .0.join("; "))]
    Incomplete(Vec<String>),
    /// A certificate could not be made.
    #[error(transparent)]
    Make(#[from] kruise_webhook::certificates::authority::Error),
    /// A certificate cannot be shown.
    #[error("the certificate cannot be served")]
    Serve(#[from] validity::Problem),
    /// Files are the only place, and they cannot be written.
    #[error("certificates cannot be kept")]
    Files(#[from] files::Error),
    /// Others are always faster.
    #[error("certificates changed {MOST_TRIES} times while they were looked at")]
    Restless,
    /// The server does not answer.
    #[error("certificates were not looked through within {PATIENCE:?}")]
    Slow,
    /// The start took too long.
    #[error("webhook certificates were not ready within {limit:?}")]
    NotInitialized {
        /// The limit.
        limit: Duration,
        /// The last failure.
        source: Option<Box<Error>>,
    },
}

/// Keeps the certificates in order.
#[derive(Debug)]
pub struct Certificates {
    cluster: Cluster,
    settings: Settings,
    clock: Clock,
    current: Current,
    check: Check,
    served: Option<Pair>,
    found: Option<Found>,
    /// Our CRDs as they were read; they are large, so each version is read once.
    crds: BTreeMap<String, Crd>,
    metrics: Option<Framework>,
    /// Whether it was told that there is no place for files.
    told_of_files: bool,
    /// Whether this replica leads; without it, it does.
    leads: Option<watch::Receiver<bool>>,
    /// When entries of configurations were added or removed last.
    regrouped: Option<Instant>,
    notes: Notes,
}

/// What is missing although the work goes on: for the detail of readiness. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<RwLock<Vec<String>>>);

impl Notes {
    /// What is missing now.
    pub fn read(&self) -> Vec<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces what is missing. What is new is logged once.
    fn set(&self, notes: Vec<String>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for note in notes.iter().filter(|note| !known.contains(note)) {
            tracing::warn!(note, "a webhook that an open gate needs is not registered");
        }
        *known = notes;
    }
}

/// How a look at everything ended.
enum Looked {
    /// Something was stored or someone else was faster; look again.
    Again,
    /// All is written. Look again after this time, if not as usual.
    Done(Option<Duration>),
}

impl Certificates {
    /// Shows certificates through `current`, and tells `check` whom to trust once everything is complete.
    pub fn new(client: Client, settings: Settings, clock: Clock, current: Current, check: Check) -> Self {
        let cluster = Cluster::new(client, &settings.environment.namespace, &settings.secret);
        let (served, found, crds) = (None, None, BTreeMap::new());
        Self {
            cluster,
            settings,
            clock,
            current,
            check,
            served,
            found,
            crds,
            metrics: None,
            told_of_files: false,
            leads: None,
            regrouped: None,
            notes: Notes::default(),
        }
    }

    /// Adds and removes entries of the configurations only while this says that the replica leads.
    #[must_use]
    pub fn led_by(mut self, leads: watch::Receiver<bool>) -> Self {
        self.leads = Some(leads);
        self
    }

    /// Tells there what open gates need and could not be added.
    #[must_use]
    pub fn with_notes(mut self, notes: &Notes) -> Self {
        self.notes = notes.clone();
        self
    }

    /// Counts how often a certificate was taken into use, and how often one could not be.
    #[must_use]
    pub fn with_metrics(mut self, metrics: &Framework) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Tries until everything is complete for the first time.
    pub async fn initialize(&mut self, limit: Duration) -> Result<(), Error> {
        let end = Instant::now() + limit;
        let mut wait = FIRST_WAIT;
        let mut last = None;
        loop {
            match tokio::time::timeout_at(end, self.sync()).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => {
                    tracing::warn!(error = causes::told(&error), "webhook certificates are not ready yet");
                    last = Some(Box::new(error));
                }
                Err(_) => {}
            }
            if Instant::now() + wait >= end {
                tokio::time::sleep_until(end).await;
                return Err(Error::NotInitialized { limit, source: last });
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_FIRST_WAIT);
        }
    }

    /// Keeps everything in order until asked to stop.
    pub async fn run(mut self, stop: Stop) {
        let changed = Arc::new(Notify::new());
        let mut watches = JoinSet::new();
        for watch in self.cluster.watches(self.settings.mode) {
            watches.spawn(watch.run(changed.clone()));
        }
        let work = async {
            let mut failures = 0u32;
            let mut wait = Duration::ZERO;
            let mut leads = self.leads.clone();
            loop {
                let news = async {
                    tokio::select! {
                        () = changed.notified() => {}
                        () = began_or_ended(leads.as_mut()) => {}
                    }
                };
                if tokio::time::timeout(wait, news).await.is_ok() {
                    tokio::time::sleep(GATHER).await;
                }
                wait = match self.sync().await {
                    Ok(next) => {
                        failures = 0;
                        next
                    }
                    Err(error) => {
                        tracing::error!(
                            error = causes::told(&error),
                            "webhook certificates are not in order"
                        );
                        failures = failures.saturating_add(1);
                        FIRST_WAIT.saturating_mul(1 << failures.min(16)).min(LONGEST_WAIT)
                    }
                };
            }
        };
        tokio::select! {
            () = work => {}
            () = stop.asked() => {}
        }
        watches.shutdown().await;
    }

    /// Looks until there is nothing more to do. Returns when to look again.
    async fn sync(&mut self) -> Result<Duration, Error> {
        let passes = async {
            for _ in 0..MOST_TRIES {
                if let Looked::Done(next) = self.look().await? {
                    return Ok(next);
                }
            }
            Err(Error::Restless)
        };
        let next = tokio::time::timeout(PATIENCE, passes).await.map_err(|_| Error::Slow)??;
        if let Some(served) = &self.served {
            self.check.trust(&served.authority);
        }
        let resync = if self.settings.mode == Mode::Files { RESYNC_FILES } else { RESYNC };
        let next = next.unwrap_or(resync).min(resync);
        Ok(self.regroups_after().filter(|_| self.is_leading()).map_or(next, |after| next.min(after)))
    }

    fn is_leading(&self) -> bool {
        self.leads.as_ref().is_none_or(|leads| *leads.borrow())
    }

    /// How long until entries may be added and removed again; nothing when they may now.
    fn regroups_after(&self) -> Option<Duration> {
        let left = REGROUP_EVERY.saturating_sub(self.regrouped?.elapsed());
        (!left.is_zero()).then_some(left)
    }

    async fn look(&mut self) -> Result<Looked, Error> {
        let mutating = self.cluster.configuration(Kind::Mutating).await?;
        let validating = self.cluster.configuration(Kind::Validating).await?;
        let crds = self.read_crds().await?;
        if self.settings.mode == Mode::External {
            let secret = self.cluster.secret().await?;
            return self.look_external(mutating.as_ref(), validating.as_ref(), &crds, secret.as_ref());
        }
        // Last: see the documentation of the rules.
        let secret = match self.settings.mode {
            Mode::Files => None,
            Mode::Secret | Mode::External => self.cluster.secret().await?,
        };
        let stored = match self.settings.mode {
            Mode::Files => files::read(&self.settings.folder),
            Mode::Secret | Mode::External => secret.as_ref().map(|secret| secret.data.clone()),
        };
        let now = self.clock.now();
        let seen = plan::Observed {
            now,
            environment: &self.settings.environment,
            mode: self.settings.mode,
            stored: stored.as_ref(),
            served: self.served.as_ref(),
            found: self.found.as_ref(),
            mutating: mutating.as_ref(),
            validating: validating.as_ref(),
            crds: &crds,
            wanted: &self.settings.wanted,
            leads: self.is_leading() && self.regroups_after().is_none(),
        };
        match plan::plan(&seen) {
            Plan::Make(make) => {
                tracing::info!(why = make.why, name = make.name, "making a certificate for the webhooks");
                let data = make.make(now)?;
                self.store(secret.as_ref(), data).await?;
                Ok(Looked::Again)
            }
            Plan::Keep(data) => {
                tracing::info!("completing what is stored about the certificate of the webhooks");
                self.store(secret.as_ref(), data).await?;
                Ok(Looked::Again)
            }
            Plan::Publish(publish) => {
                let before = Before { mutating: mutating.as_ref(), validating: validating.as_ref() };
                self.publish(*publish, stored.as_ref(), &before).await
            }
        }
    }

    fn look_external(
        &mut self,
        mutating: Option<&Value>,
        validating: Option<&Value>,
        crds: &[Crd],
        secret: Option<&Secret>,
    ) -> Result<Looked, Error> {
        let name = format!("{}/{}", self.settings.environment.namespace, self.settings.secret);
        let plan = external::plan(&external::Observed {
            now: self.clock.now(),
            environment: &self.settings.environment,
            secret: &name,
            stored: secret.map(|secret| &secret.data),
            served: self.served.as_ref(),
            mutating,
            validating,
            crds,
            wanted: &self.settings.wanted,
        });
        self.notes.set(plan.lacking);
        if let Some(pair) = plan.serve {
            let data = Data::from([
                (external::CERTIFICATE.to_owned(), pair.certificate.clone().into_bytes()),
                (external::KEY.to_owned(), pair.key.clone().into_bytes()),
                (
                    kruise_webhook::certificates::store::CA_CERT.to_owned(),
                    pair.authority.clone().into_bytes(),
                ),
            ]);
            self.show(pair)?;
            self.write_files(&data);
        }
        if plan.problems.is_empty() { Ok(Looked::Done(None)) } else { Err(Error::Incomplete(plan.problems)) }
    }

    /// The CRDs of the cluster that we know.
    async fn read_crds(&mut self) -> Result<Vec<Crd>, Error> {
        let known: BTreeSet<String> = catalogue::CRDS.iter().map(|crd| crd.name()).collect();
        let mut found = BTreeMap::new();
        for (name, version) in self.cluster.crd_versions().await? {
            if !known.contains(&name) {
                continue;
            }
            let crd = match self.crds.remove(&name).filter(|crd| crd.resource_version == version) {
                Some(crd) => crd,
                // Gone between the list and the look: then it needs nothing.
                None => match self.cluster.crd(&name).await? {
                    Some(crd) => crd,
                    None => continue,
                },
            };
            found.insert(name, crd);
        }
        self.crds = found;
        Ok(self.crds.values().cloned().collect())
    }

    async fn store(&self, secret: Option<&Secret>, data: Data) -> Result<(), Error> {
        match self.settings.mode {
            Mode::Files => Ok(files::write(&self.settings.folder, &data)?),
            // Whether we or someone else was faster, the next look tells.
            Mode::Secret | Mode::External => self.cluster.write_secret(secret, &data).await.map(|_| ()),
        }
    }

    async fn publish(
        &mut self,
        publish: Publish,
        stored: Option<&Data>,
        before: &Before<'_>,
    ) -> Result<Looked, Error> {
        let Publish { configurations, conversions, serve, found, wake_after, problems, bundle: _ } = publish;
        self.found = found;
        let mut later = None;
        match serve {
            Serve::Same => {}
            Serve::Now(pair) => self.show(pair)?,
            Serve::AfterWrites(pair) => later = Some(pair),
        }
        // One object that cannot be written must not keep the others from being trusted.
        let mut failed = None;
        let mut conflict = false;
        let mut notes = Vec::new();
        for (kind, object) in configurations {
            let regroups = before.of(kind).is_some_and(|before| names(before) != names(&object));
            match self.cluster.replace_configuration(kind, &object).await {
                Ok(written) => {
                    conflict |= !written;
                    if written && regroups {
                        tracing::info!(kind = kind.kind(), "webhooks follow the feature gates");
                        self.regrouped = Some(Instant::now());
                    }
                }
                Err(error) => {
                    let missing = before.of(kind).map(|before| self.settings.wanted.missing(kind, before));
                    let missing = missing.unwrap_or_default();
                    if !missing.is_empty() {
                        notes.push(kind.lacks(&missing, &causes::told(&error)));
                    }
                    failed = failed.or(Some(error));
                }
            }
        }
        self.notes.set(notes);
        for conversion in conversions {
            match self.cluster.replace_conversion(&conversion).await {
                Ok(written) => conflict |= !written,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if conflict {
            return Ok(Looked::Again);
        }
        if let Some(pair) = later {
            self.show(pair)?;
        }
        if self.settings.mode == Mode::Secret
            && let Some(data) = stored
        {
            self.write_files(data);
        }
        if problems.is_empty() { Ok(Looked::Done(wake_after)) } else { Err(Error::Incomplete(problems)) }
    }

    fn show(&mut self, pair: Pair) -> Result<(), Error> {
        let certified = pair.certified();
        if let Some(metrics) = &self.metrics {
            metrics.certificate_reads.inc(&[]);
            if certified.is_err() {
                metrics.certificate_errors.inc(&[]);
            }
        }
        self.current.set(certified?);
        tracing::info!("serving a new certificate");
        // Once everything was complete, the check follows what is served.
        if self.check.is_initialized() {
            self.check.trust(&pair.authority);
        }
        self.served = Some(pair);
        Ok(())
    }

    /// Files beside a Secret are for others to look at: without them everything works.
    fn write_files(&mut self, data: &Data) {
        match files::write(&self.settings.folder, data) {
            Ok(()) => self.told_of_files = false,
            Err(error) if !self.told_of_files => {
                tracing::warn!(error = causes::told(&error), "certificates are served from memory only");
                self.told_of_files = true;
            }
            Err(_) => {}
        }
    }
}

/// The configurations as they were read.
struct Before<'a> {
    mutating: Option<&'a Value>,
    validating: Option<&'a Value>,
}

impl Before<'_> {
    fn of(&self, kind: Kind) -> Option<&Value> {
        match kind {
            Kind::Mutating => self.mutating,
            Kind::Validating => self.validating,
        }
    }
}

/// The names of the webhooks of a configuration.
fn names(object: &Value) -> BTreeSet<&str> {
    let webhooks = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    webhooks.filter_map(|webhook| webhook.get("name")?.as_str()).collect()
}

/// Ends when the replica begins or ends to lead.
async fn began_or_ended(leads: Option<&mut watch::Receiver<bool>>) {
    if let Some(leads) = leads
        && leads.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
