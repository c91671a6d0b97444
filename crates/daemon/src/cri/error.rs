//! What a runtime says when it does not do as asked.

use std::{fmt, time::Duration};

use tonic::{Code, Status};

/// What kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nobody is there: the runtime restarts, or has gone.
    Unreachable,
    /// No answer in time.
    TimedOut,
    /// What was asked for is not there.
    NotFound,
    /// The runtime does not serve this call.
    Unsupported,
    /// Anything else.
    Other,
}

/// A failure, in the words that users know from the kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What kind.
    pub kind: Kind,
    message: String,
}

impl Error {
    /// A failure of this kind with this text.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// No answer in time.
    pub(super) fn late(patience: Duration) -> Self {
        Self::new(
            Kind::TimedOut,
            format!("rpc error: code = DeadlineExceeded desc = no answer within {patience:?}"),
        )
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let kind = match status.code() {
            Code::Unavailable => Kind::Unreachable,
            Code::DeadlineExceeded => Kind::TimedOut,
            Code::NotFound => Kind::NotFound,
            Code::Unimplemented => Kind::Unsupported,
            // A connection that breaks in the middle of a call has no code of its own.
            Code::Unknown | Code::Internal | Code::Cancelled
                if std::error::Error::source(&status).is_some() =>
            {
                Kind::Unreachable
            }
            _ => Kind::Other,
        };
        // One word differs from how the kubelet writes it.
        let code = match status.code() {
            Code::Cancelled => "Canceled".to_owned(),
            code => format!("{code:?}"),
        };
        Self { kind, message: format!("rpc error: code = {code} desc = {}", status.message()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
