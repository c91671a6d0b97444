//! One of several managers leads: a Lease that client-go's leader election understands, so that ours and the original
//! never lead at the same time.
//!
//! Clocks of machines differ, so nobody trusts the times in the lease: a candidate remembers when it saw the lease
//! change, by its own clock, and takes it over when nothing changed for the whole duration. The leader stops acting
//! earlier, when it could not renew within the shorter deadline. Between the two lies the time in which a write that was
//! under way may still arrive.
//!
//! The [`Fence`] says whether that deadline has passed. Whoever writes asks it before each write, because a process
//! may be stopped for minutes between a decision and its write. A write that is still in flight at the deadline is
//! abandoned and its connection closed, so nothing of it is sent later.
//!
//! What this cannot do: recall a request that the API server has received already. A server that notices the closed
//! connection cancels such a request; one that has begun to store it does not. That is why a candidate takes a lease over
//! only after the whole duration, and why writes carry preconditions and fixed names: the new leader's write and the late
//! one then cannot both succeed, or mean the same.

mod record;
#[cfg(test)]
mod tests;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    Api, Client,
    api::{PostParams, WatchEvent, WatchParams},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout, timeout_at},
};

use crate::{clock::Clock, metrics::Framework, random::Random, scope::Stop};
use record::{Record, Stored};

/// The part of a lease that is left for clocks that run at different speeds: a tenth.
const SKEW: u32 = 10;

/// What a lease is called and how long things take.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: String,
    /// Who we are: unique to this process.
    pub identity: String,
    /// How long a leader that falls silent still counts.
    pub lease: Duration,
    /// How long a leader tries to renew before it gives up. Shorter than the lease.
    pub renew_deadline: Duration,
    /// How long to wait between two tries. Shorter than that.
    pub retry: Duration,
}

impl Settings {
    /// How long after a renewal this process may write: as long as it tries to renew, and never so long that a clock which
    /// runs a little faster lets somebody else lead meanwhile.
    fn writing_time(&self) -> Duration {
        self.renew_deadline.min(self.lease.saturating_sub(self.lease / SKEW))
    }

    /// The name of a process: host and something random.
    pub fn identity(hostname: &str, random: &Random) -> String {
        format!("{hostname}_{}", random.uuid())
    }
}

/// Whether this process may still write. Clones are the same fence.
#[derive(Clone, Debug, Default)]
pub struct Fence(Arc<Gate>);

#[derive(Debug, Default)]
struct Gate {
    until: Mutex<Until>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
enum Until {
    /// There is no election: everybody may.
    #[default]
    Always,
    At(Instant),
    Never,
}

impl Fence {
    /// Whether a write may be sent now.
    pub fn is_open(&self) -> bool {
        match self.until() {
            Until::Always => true,
            Until::At(end) => Instant::now() < end,
            Until::Never => false,
        }
    }

    /// Waits until no write may be sent any more. Renewals meanwhile put it off.
    pub async fn closed(&self) {
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            changed.as_mut().enable();
            match self.until() {
                Until::Never => return,
                Until::At(end) if Instant::now() >= end => return,
                Until::At(end) => drop(timeout_at(end, changed).await),
                Until::Always => changed.await,
            }
        }
    }

    fn until(&self) -> Until {
        *self.0.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, until: Until) {
        *self.0.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        self.0.changed.notify_waiters();
    }
}

/// One that wants to lead.
pub struct Candidate {
    api: Api<Stored>,
    settings: Settings,
    clock: Clock,
    random: Random,
    metrics: Framework,
    fence: Fence,
    seen: Option<Seen>,
}

/// The lease as it was seen last, and since when it is like that by our clock.
struct Seen {
    lease: Stored,
    record: Record,
    since: Instant,
}

/// Why somebody does not lead any more.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The server did not take a renewal in time.
    #[error("leader election lost: the lease could not be renewed within {deadline:?}")]
    Deadline {
        /// The time it had.
        deadline: Duration,
    },
    /// Somebody else leads.
    #[error("leader election lost: {holder} holds the lease")]
    Taken {
        /// Who.
        holder: String,
    },
}

/// How one try to get or keep the lease went.
enum Try {
    Held,
    HeldBy(String),
    Failed(kube::Error),
}

impl Candidate {
    /// A candidate. The client must not retry by itself: a renewal that hangs must be seen to hang.
    pub fn new(client: Client, settings: Settings, clock: Clock, random: Random, metrics: Framework) -> Self {
        let api = Api::namespaced_with(client, &settings.namespace, &());
        metrics.is_leader.set(&[], 0.0);
        metrics.master_status.set(&[&settings.name], 0.0);
        metrics.slow_path.touch(&[&settings.name]);
        let fence = Fence::default();
        fence.set(Until::Never);
        Self { api, settings, clock, random, metrics, fence, seen: None }
    }

    /// The fence for whoever writes.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Waits until this process leads. `None` when it was asked to stop before.
    pub async fn acquire(mut self, stop: &Stop) -> Option<Leader> {
        tracing::info!(lease = %self.name(), identity = %self.settings.identity, "waiting for the lease");
        let mut told = None;
        loop {
            if stop.is_asked() {
                return None;
            }
            match self.attempt(None).await {
                Try::Held => break,
                Try::HeldBy(holder) => {
                    if told.as_ref() != Some(&holder) {
                        tracing::info!(%holder, "another manager leads");
                        told = Some(holder);
                    }
                }
                Try::Failed(error) => tracing::warn!(%error, "failed to get the lease"),
            }
            tokio::select! {
                () = stop.asked() => return None,
                () = self.next_try() => {}
            }
        }
        tracing::info!(lease = %self.name(), "leading");
        self.metrics.is_leader.set(&[], 1.0);
        self.metrics.master_status.set(&[&self.settings.name], 1.0);
        Some(Leader(self))
    }

    fn name(&self) -> String {
        format!("{}/{}", self.settings.namespace, self.settings.name)
    }

    /// Waits for the next try, or until the lease is given up by its holder: that is when a standby must be quick.
    async fn next_try(&self) {
        let retry = self.settings.retry;
        // Candidates that start together must not stay together.
        let jitter = self.random.below(retry.as_millis().try_into().unwrap_or(u64::MAX) / 5 + 1);
        tokio::select! {
            () = sleep(retry + Duration::from_millis(jitter)) => {}
            () = self.released() => {}
        }
    }

    /// Ends when the lease is seen without a holder. Never ends when it cannot be watched.
    async fn released(&self) {
        let Some(Seen { lease, .. }) = &self.seen else { return std::future::pending().await };
        let version = lease.version().to_owned();
        let wanted =
            WatchParams::default().fields(&format!("metadata.name={}", self.settings.name)).timeout(290);
        if let Ok(events) = self.api.watch(&wanted, &version).await {
            let mut events = events.boxed();
            while let Ok(Some(event)) = events.try_next().await {
                match event {
                    WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                        if Record::read(&lease).holder.is_empty() {
                            return;
                        }
                    }
                    WatchEvent::Deleted(_) => return,
                    WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
                }
            }
        }
        std::future::pending::<()>().await;
    }

    /// One try. The time it took may not count for us: a lease is held from when the try began.
    async fn attempt(&mut self, known: Option<Stored>) -> Try {
        let began = Instant::now();
        // As long as client-go's: half of the deadline, so that there is time for a second try.
        let patience = self.settings.renew_deadline / 2;
        let outcome = match timeout(patience, self.write(known)).await {
            Ok(outcome) => outcome,
            Err(_) => Try::Failed(kube::Error::Service("the API server did not answer in time".into())),
        };
        if matches!(outcome, Try::Held) {
            self.fence.set(Until::At(began + self.settings.writing_time()));
        }
        outcome
    }

    async fn write(&mut self, known: Option<Stored>) -> Try {
        let options = PostParams::default();
        let lease = match known {
            Some(lease) => lease,
            None => match self.api.get_opt(&self.settings.name).await {
                Ok(Some(lease)) => lease,
                Ok(None) => {
                    let lease = Record::first(&self.settings, self.clock.now()).new_lease(&self.settings);
                    return match self.api.create(&options, &lease).await {
                        Ok(lease) => self.see(lease),
                        Err(error) => Try::Failed(error),
                    };
                }
                Err(error) => return Try::Failed(error),
            },
        };
        let record = Record::read(&lease);
        self.note(&lease, &record);
        let ours = record.holder == self.settings.identity;
        if !ours && !record.holder.is_empty() && !self.has_run_out(&record) {
            return Try::HeldBy(record.holder);
        }
        let next = record.taken_by(&self.settings, self.clock.now());
        match self.api.replace(&self.settings.name, &options, &next.onto(lease)).await {
            Ok(lease) => self.see(lease),
            Err(error) => Try::Failed(error),
        }
    }

    fn see(&mut self, lease: Stored) -> Try {
        let record = Record::read(&lease);
        self.note(&lease, &record);
        Try::Held
    }

    fn note(&mut self, lease: &Stored, record: &Record) {
        if self.seen.as_ref().is_none_or(|seen| seen.record != *record) {
            self.seen = Some(Seen { lease: lease.clone(), record: record.clone(), since: Instant::now() });
        } else if let Some(seen) = &mut self.seen {
            seen.lease = lease.clone();
        }
    }

    fn has_run_out(&self, record: &Record) -> bool {
        let Some(seen) = &self.seen else { return false };
        seen.record == *record && seen.since.elapsed() >= record.duration
    }
}

/// The one that leads.
pub struct Leader(Candidate);

impl Leader {
    /// Renews until `stop` is asked (then the lease is given back, so that the next one need not wait) or until the lease
    /// is lost.
    pub async fn hold(mut self, stop: &Stop) -> Result<(), Lost> {
        let mut renewed = Instant::now();
        let outcome = loop {
            tokio::select! {
                () = stop.asked() => break Ok(()),
                () = sleep(self.0.settings.retry) => {}
            }
            let deadline = self.0.settings.renew_deadline;
            let began = Instant::now();
            // A try that hangs must not outlast the deadline.
            match timeout_at(renewed + deadline, self.renew()).await {
                Ok(Try::Held) => renewed = began,
                Ok(Try::HeldBy(holder)) => break Err(Lost::Taken { holder }),
                Ok(Try::Failed(error)) => tracing::warn!(%error, "failed to renew the lease"),
                Err(_) => tracing::warn!("failed to renew the lease in time"),
            }
            if renewed.elapsed() >= deadline {
                break Err(Lost::Deadline { deadline });
            }
        };
        self.0.fence.set(Until::Never);
        self.0.metrics.is_leader.set(&[], 0.0);
        self.0.metrics.master_status.set(&[&self.0.settings.name], 0.0);
        if outcome.is_ok() {
            self.release().await;
        }
        outcome
    }

    /// Mostly nobody else wrote the lease, and one request is enough.
    async fn renew(&mut self) -> Try {
        let known = self.0.seen.as_ref().map(|seen| seen.lease.clone());
        match self.0.attempt(known).await {
            Try::Failed(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {
                self.0.metrics.slow_path.inc(&[&self.0.settings.name]);
                self.0.attempt(None).await
            }
            outcome => outcome,
        }
    }

    /// Gives the lease back. Who cannot, leaves it to run out.
    async fn release(self) {
        let Candidate { api, settings, clock, seen, .. } = self.0;
        let Some(Seen { lease, record, .. }) = seen else { return };
        let free = record.released(clock.now()).onto(lease);
        let options = PostParams::default();
        match timeout(settings.renew_deadline / 2, api.replace(&settings.name, &options, &free)).await {
            Ok(Ok(_)) => tracing::info!("gave the lease back"),
            Ok(Err(error)) => tracing::warn!(%error, "failed to give the lease back; it will run out"),
            Err(_) => tracing::warn!("failed to give the lease back in time; it will run out"),
        }
    }
}
