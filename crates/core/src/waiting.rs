//! Why an object makes no progress: the one list of reasons for all kinds, and the sentences of those that several share.
//!
//! A kind adds what it sees to [`Waits`]. The condition, the events, the metric and the command line all come from there. A
//! message does not change by itself: times are absolute, lists are sorted and cut.

mod condition;
mod pods;
mod refusal;
mod rules;
pub mod text;

pub use condition::{CONDITION, is_only_text, is_taken_over, set_condition};
pub use pods::{Hooks, pods, unready_nodes};
pub use refusal::{invalid_template, refused, unavailable};
pub use rules::{max_unavailable, min_ready, on_delete, partition, paused};

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::effect::Level;

/// How old a fact must be before it is reported, where a wait of seconds is normal.
const REPORT_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// How many sentences a message has.
const SENTENCES: usize = 3;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $level:ident;)*) => {
        /// Why an object waits, the more important reason first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word in conditions, events and metrics.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Whether somebody has to act.
            pub fn level(self) -> Level {
                match self {
                    $(Self::$name => Level::$level,)*
                }
            }
        }
    };
}

reasons! {
    /// The API server does not carry out an operation.
    ServerUnavailable Warning;
    /// The manager lacks a permission.
    PermissionMissing Warning;
    /// The namespace is being deleted.
    NamespaceTerminating Normal;
    /// The spec cannot be carried out.
    SpecInvalid Warning;
    /// The API server calls what a revision says invalid.
    RevisionBroken Warning;
    /// A foreign webhook does not answer.
    WebhookUnavailable Warning;
    /// A foreign webhook refuses a write.
    WebhookRefuses Warning;
    /// A quota is used up.
    QuotaExceeded Warning;
    /// A PodUnavailableBudget allows no more unavailable pods.
    BudgetRefuses Normal;
    /// Another object has the name.
    NameTaken Warning;
    /// A claim of the next pod is being deleted.
    ClaimTerminating Normal;
    /// Pods are on nodes that are not ready.
    NodeNotReady Warning;
    /// A claim is not bound.
    ClaimPending Warning;
    /// Claims are being expanded.
    ClaimResizing Normal;
    /// Pods cannot be scheduled.
    PodUnschedulable Warning;
    /// Images cannot be pulled.
    ImagePullFailing Warning;
    /// Containers keep exiting.
    ContainerCrashing Warning;
    /// Containers start in order.
    LaunchOrder Normal;
    /// Pods are deleted for longer than they were given.
    PodTerminating Warning;
    /// Pods wait for their `preNormal` hook.
    PreNormalHook Normal;
    /// Pods wait for their `preDelete` hook.
    PreDeleteHook Normal;
    /// Pods wait for their `inPlaceUpdate` hook.
    InPlaceHook Normal;
    /// Pods are out of service before their containers change.
    GracePeriod Normal;
    /// Updates in place are not complete.
    InPlaceUpdateRunning Normal;
    /// Images are being pulled.
    ImagePullRunning Normal;
    /// Pods are not ready.
    PodNotReady Warning;
    /// Pods have not been ready for long enough.
    MinReadySeconds Normal;
    /// A pod has to be available first.
    PredecessorNotReady Normal;
    /// As many pods are unavailable as may be.
    MaxUnavailableReached Normal;
    /// As much runs at once as may.
    ParallelismReached Normal;
    /// No node fits.
    NodeNotEligible Normal;
    /// A subset cannot take pods.
    SubsetUnschedulable Warning;
    /// All subsets are full.
    SubsetFull Warning;
    /// Sidecars cannot be updated in place.
    SidecarNotUpdatable Normal;
    /// An update has not progressed for too long.
    DeadlineExceeded Warning;
    /// The run before has not ended.
    ConcurrencyForbids Normal;
    /// The schedule is suspended.
    ScheduleSuspended Normal;
    /// The update or job is paused.
    Paused Normal;
    /// The partition keeps the other pods.
    PartitionReached Normal;
    /// Only deletions bring new pods.
    OnDelete Normal;
    /// Pods lack the volume of a claim template.
    ClaimTemplateNotApplied Normal;
    /// A field has no effect without a feature gate.
    FeatureGateOff Normal;
}

/// Whether a fact is old enough to be reported where a wait of seconds is normal.
pub fn is_old(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) >= REPORT_AFTER
}

impl Reason {
    /// Whether it follows from the user's own rules: then nothing is written just because of it when the manager first sees
    /// an object.
    pub fn is_wanted(self) -> bool {
        self >= Self::MinReadySeconds && self.level() == Level::Normal
    }
}

/// All reasons for which an object waits now, each once, the main one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    reasons: Vec<(Reason, String)>,
    wake_after: Option<Duration>,
}

impl Waits {
    /// Adds a reason that is reported at once. The first sentence of a reason stays.
    pub fn add(&mut self, reason: Reason, sentence: impl Into<String>) {
        if let Err(place) = self.reasons.binary_search_by_key(&reason, |(known, _)| *known) {
            self.reasons.insert(place, (reason, sentence.into()));
        }
    }

    /// Adds a reason once its fact is 10 s old, and asks to look again then. A fact without a time is old.
    pub fn add_later(
        &mut self,
        reason: Reason,
        since: Option<Timestamp>,
        now: Timestamp,
        sentence: impl Into<String>,
    ) {
        let left = since.map_or(SignedDuration::ZERO, |since| {
            REPORT_AFTER.saturating_sub(now.duration_since(since)).min(REPORT_AFTER)
        });
        match Duration::try_from(left) {
            Ok(left) if !left.is_zero() => {
                self.wake_after = Some(self.wake_after.map_or(left, |known| known.min(left)));
            }
            _ => self.add(reason, sentence),
        }
    }

    /// Adds the reasons of another part.
    pub fn join(&mut self, other: Self) {
        for (reason, sentence) in other.reasons {
            self.add(reason, sentence);
        }
        self.wake_after = self.wake_after.into_iter().chain(other.wake_after).min();
    }

    /// Looks again after this time, or earlier.
    pub fn wake(&mut self, after: Option<Duration>) {
        self.wake_after = self.wake_after.into_iter().chain(after).min();
    }

    /// The main reason.
    pub fn main(&self) -> Option<Reason> {
        self.reasons.first().map(|(reason, _)| *reason)
    }

    /// Each reason with its sentence, the main one first.
    pub fn all(&self) -> &[(Reason, String)] {
        &self.reasons
    }

    /// The sentence of a reason.
    pub fn sentence(&self, reason: Reason) -> Option<&str> {
        self.reasons.iter().find(|(known, _)| *known == reason).map(|(_, sentence)| sentence.as_str())
    }

    /// When to look again so that a fact is reported in time.
    pub fn wake_after(&self) -> Option<Duration> {
        self.wake_after
    }

    /// At most three sentences, then the other reasons.
    pub fn message(&self) -> String {
        let sentences: Vec<&str> =
            self.reasons.iter().take(SENTENCES).map(|(_, sentence)| sentence.as_str()).collect();
        let more: Vec<&str> =
            self.reasons.iter().skip(SENTENCES).map(|(reason, _)| reason.as_str()).collect();
        let mut message = sentences.join(". ");
        if !more.is_empty() {
            let noun = if more.len() == 1 { "reason" } else { "reasons" };
            message.push_str(&format!(". And {} more {noun}: {}", more.len(), more.join(", ")));
        }
        message
    }
}

#[cfg(test)]
mod tests;
