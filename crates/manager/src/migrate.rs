//! `kruise-manager migrate-storage`: which version of our kinds a cluster stores.
//!
//! After taking over from OpenKruise v1.9.0, seven kinds are still stored in their old version. This writes every object
//! once in the version that we store and then says so in the definitions. `--to openkruise-1.9` goes the other way, so
//! that the definitions of the original can be installed again. Nothing of an object changes but how it is stored. It can
//! be stopped and started again at any time.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum};
use kruise_core::{
    effect::Effect,
    migration::{self, DEFINITION, Goal, Step},
    object::{ObjectKey, Resource},
};
use kruise_runtime::{
    clock::Clock,
    effects::{self, Executor},
    events::Events,
    freshness::Freshness,
    lease::Fence,
    live,
    metrics::{Framework, Registry},
    queue::{self, Queue},
    random::Random,
    scope::BoxError,
};
use kube::Client;
use serde_json::Value;

const NAME: &str = "storage-migration";
/// How many objects are written before the next look.
const PAGE: usize = 500;
/// How often a definition is read again when somebody else wrote it meanwhile.
const TRIES: usize = 10;

/// Moves the objects of our kinds to another stored version.
#[derive(Debug, Parser)]
#[command(name = "kruise-manager migrate-storage")]
pub struct Command {
    /// The version to store.
    #[arg(long, value_enum, default_value_t = To::KruiseRs)]
    to: To,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// How long the API servers get to notice a changed definition before objects are written.
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    settle_seconds: u64,
    /// A kubeconfig, for running outside of the cluster.
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// The newest version of every kind.
    KruiseRs,
    /// What OpenKruise v1.9.0 can read.
    #[value(name = "openkruise-1.9")]
    OpenKruise19,
}

impl Command {
    /// The command, if the command line asks for it. What is wrong with it is printed.
    pub fn of(words: &[OsString]) -> Option<Result<Self, BoxError>> {
        let words = words.iter().skip(1);
        if words.clone().next()? != "migrate-storage" {
            return None;
        }
        Some(Self::try_parse_from(words).map_err(BoxError::from))
    }
}

/// Why objects could not be moved. What was moved stays moved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A definition does not fit.
    #[error(transparent)]
    Plan(#[from] migration::Error),
    /// Something could not be read.
    #[error("failed to read {what}")]
    Read {
        /// What it was.
        what: String,
        /// Why not.
        source: kube::Error,
    },
    /// Something could not be written.
    #[error("failed to rewrite {what}")]
    Write {
        /// What it was.
        what: String,
        /// Why not.
        source: effects::Error,
    },
    /// Somebody else keeps writing the definition.
    #[error("the definition {0} changes all the time; who else writes it?")]
    Busy(String),
}

/// Runs the command and prints what happens.
pub async fn main(command: Command) -> Result<(), BoxError> {
    let client = crate::program::client(command.kubeconfig.as_deref()).await?;
    let goal = match command.to {
        To::KruiseRs => Goal::Ours,
        To::OpenKruise19 => Goal::OpenKruise19,
    };
    let settle = Duration::from_secs(command.settle_seconds);
    let migration = Migration::new(client, Clock::wall(), Random::from_entropy());
    migration.run(goal, settle, command.dry_run, |line| println!("{line}")).await.map_err(BoxError::from)
}

/// Moves objects to another stored version.
pub struct Migration {
    client: Client,
    executor: Executor,
}

impl Migration {
    /// With a client that may read and write definitions and objects of all our kinds.
    pub fn new(client: Client, clock: Clock, random: Random) -> Self {
        let metrics = Framework::new(&Registry::default());
        let queue = Queue::new(NAME, queue::Options::default(), None);
        let freshness = Freshness::new(NAME, queue, Duration::ZERO, None);
        let recorder = Events::new(clock, random, metrics.clone()).recorder(NAME);
        let options = effects::Options { qps: 100.0, burst: 200, ..effects::Options::default() };
        let fence = Fence::default();
        let executor = Executor::new(NAME, client.clone(), freshness, recorder, fence, options, metrics);
        Self { client, executor }
    }

    /// Brings every installed kind to the goal, and tells in lines what it does.
    pub async fn run(
        &self,
        goal: Goal,
        settle: Duration,
        dry_run: bool,
        mut say: impl FnMut(&str),
    ) -> Result<(), Error> {
        let mut left = Vec::new();
        for (crd, version) in goal.kinds() {
            let Some(definition) = self.definition(&crd.name()).await? else {
                say(&format!("{}: not installed", crd.name()));
                continue;
            };
            match migration::step(&definition, version)? {
                Step::Done => say(&format!("{}: stored as {version}", crd.name())),
                Step::Rewrite | Step::SetStorage(_) if dry_run => {
                    let objects = self.objects(migration::resource(crd, version)).await?;
                    say(&format!("{}: would rewrite {} objects as {version}", crd.name(), objects.len()));
                }
                Step::Rewrite | Step::SetStorage(_) => {
                    self.set_storage(&crd.name(), version).await?;
                    left.push((crd, version));
                }
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        // A server that has not heard of the change yet would write the old version.
        tokio::time::sleep(settle).await;
        for (crd, version) in left {
            let objects = self.objects(migration::resource(crd, version)).await?;
            let rewrites: Vec<Effect> =
                objects.iter().map(|key| migration::rewrite(crd, version, key.clone())).collect();
            for page in rewrites.chunks(PAGE) {
                self.act(&crd.name(), page).await?;
            }
            self.prune(&crd.name(), version).await?;
            say(&format!("{}: rewrote {} objects as {version}", crd.name(), objects.len()));
        }
        Ok(())
    }

    async fn set_storage(&self, name: &str, version: &'static str) -> Result<(), Error> {
        for _ in 0..TRIES {
            let Some(definition) = self.definition(name).await? else { return Ok(()) };
            let Step::SetStorage(effect) = migration::step(&definition, version)? else { return Ok(()) };
            self.try_act(name, &[effect]).await?;
        }
        Err(Error::Busy(name.to_owned()))
    }

    async fn prune(&self, name: &str, version: &'static str) -> Result<(), Error> {
        for _ in 0..TRIES {
            let Some(definition) = self.definition(name).await? else { return Ok(()) };
            match migration::step(&definition, version)? {
                Step::Done => return Ok(()),
                // Somebody changed what is stored while we wrote: what we wrote does not count.
                Step::SetStorage(_) => break,
                Step::Rewrite => self.try_act(name, &[migration::prune(&definition, version)]).await?,
            }
        }
        Err(Error::Busy(name.to_owned()))
    }

    async fn act(&self, what: &str, effects: &[Effect]) -> Result<(), Error> {
        let outcome = self.executor.act(&ObjectKey::cluster(what), effects).await;
        outcome.ok().map_err(|source| Error::Write { what: what.to_owned(), source })
    }

    /// The same, but a definition that has changed meanwhile is no failure: it is read again.
    async fn try_act(&self, what: &str, effects: &[Effect]) -> Result<(), Error> {
        match self.act(what, effects).await {
            Err(Error::Write { source, .. }) if source.is_conflict() => Ok(()),
            outcome => outcome,
        }
    }

    async fn definition(&self, name: &str) -> Result<Option<Value>, Error> {
        let found = live::get(&self.client, DEFINITION, &ObjectKey::cluster(name)).await;
        found.map_err(|source| Error::Read { what: format!("the definition {name}"), source })
    }

    async fn objects(&self, resource: Resource) -> Result<Vec<ObjectKey>, Error> {
        let mut keys = Vec::new();
        let listed =
            live::each_metadata(&self.client, resource, |found| keys.push(found.metadata.key())).await;
        listed.map_err(|source| Error::Read { what: resource.plural.to_owned(), source })?;
        Ok(keys)
    }
}
