//! Why a kind cannot be read.

use std::{sync::PoisonError, time::Duration};

use kruise_core::object::Resource;
use kube::runtime::watcher;
use tokio::time::Instant;

use super::{Cache, View};

/// A failure of a watch that is older than this is over, although nothing was heard since: nothing changes in quiet
/// clusters. Longer than the longest pause between two tries.
const CURRENT: Duration = Duration::from_secs(90);

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// We lack the permission.
    Forbidden,
    /// The server does not know who we are.
    Unauthorized,
    /// The server does not serve the kind.
    NotServed,
    /// The conversion webhook of the kind fails.
    Conversion,
    /// The server asks to be left alone.
    Throttled,
    /// Nobody answered in time.
    Timeout,
    /// There is no connection.
    Unreachable,
    /// The answer makes no sense to us.
    Unreadable,
    /// Any other answer.
    ServerError,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::Forbidden,
        Self::Unauthorized,
        Self::NotServed,
        Self::Conversion,
        Self::Throttled,
        Self::Timeout,
        Self::Unreachable,
        Self::Unreadable,
        Self::ServerError,
    ];

    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "Forbidden",
            Self::Unauthorized => "Unauthorized",
            Self::NotServed => "NotServed",
            Self::Conversion => "Conversion",
            Self::Throttled => "Throttled",
            Self::Timeout => "Timeout",
            Self::Unreachable => "Unreachable",
            Self::Unreadable => "Unreadable",
            Self::ServerError => "ServerError",
        }
    }
}

/// Why a kind cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What kind of failure the last one was.
    pub reason: Reason,
    /// `list` or `watch`.
    pub verb: &'static str,
    /// What the server or the connection said.
    pub message: String,
    /// Since when there is no success.
    pub since: Instant,
    /// When it failed last.
    pub last: Instant,
}

/// How well a kind is read, whatever is in its cache.
pub trait Followed: Send + Sync {
    /// The kind.
    fn resource(&self) -> Resource;
    /// Whether the first list is complete.
    fn is_synced(&self) -> bool;
    /// Whether somebody asked for a kind that is only followed then.
    fn is_wanted(&self) -> bool;
    /// Why the kind cannot be read now, if it cannot.
    fn trouble(&self) -> Option<Trouble>;
}

impl<V: View> Followed for Cache<V> {
    fn resource(&self) -> Resource {
        self.inner.resource
    }

    fn is_synced(&self) -> bool {
        Cache::is_synced(self)
    }

    fn is_wanted(&self) -> bool {
        self.inner.wanted.is_asked()
    }

    fn trouble(&self) -> Option<Trouble> {
        let trouble = self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        (!Cache::is_synced(self) || trouble.last.elapsed() < CURRENT).then_some(trouble)
    }
}

impl<V: View> Cache<V> {
    /// A list or a watch has failed.
    pub(super) fn note_trouble(&self, error: &watcher::Error) {
        let mut known = self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let current = known.as_ref().filter(|known| !self.is_synced() || known.last.elapsed() < CURRENT);
        let since = current.map_or(now, |known| known.since);
        let (reason, verb, message) = explain(error);
        *known = Some(Trouble { reason, verb, message, since, last: now });
    }

    /// Something was read.
    pub(super) fn end_trouble(&self) {
        *self.inner.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn explain(error: &watcher::Error) -> (Reason, &'static str, String) {
    use watcher::Error::{InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed};
    let (verb, source) = match error {
        InitialListFailed(source) => ("list", source),
        WatchStartFailed(source) | WatchFailed(source) => ("watch", source),
        WatchError(status) => {
            return (of_status(status.code, &status.message), "watch", status.message.clone());
        }
        NoResourceVersion => return (Reason::Unreadable, "list", error.to_string()),
    };
    let reason = match source {
        kube::Error::Api(status) => of_status(status.code, &status.message),
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Reason::Unreadable,
        _ => Reason::Unreachable,
    };
    let message = match source {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    };
    (reason, verb, message)
}

fn of_status(code: u16, message: &str) -> Reason {
    match code {
        401 => Reason::Unauthorized,
        403 => Reason::Forbidden,
        404 => Reason::NotServed,
        408 | 504 => Reason::Timeout,
        429 => Reason::Throttled,
        500.. if message.contains("conversion webhook") => Reason::Conversion,
        _ => Reason::ServerError,
    }
}
