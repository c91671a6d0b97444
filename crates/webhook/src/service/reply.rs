//! The body of an answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::memory::Share;

/// The body of an answer. Its memory counts until the client takes it; others who need the memory can take it away.
pub struct Reply {
    size: u64,
    state: State,
}

enum State {
    Own(Bytes),
    Counted(Share),
    Sent,
}

/// The client did not take its answer, and others needed the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer was not taken while others waited")]
pub struct Gone;

impl Reply {
    pub(super) fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        Self { size, state: if bytes.is_empty() { State::Sent } else { State::Own(bytes) } }
    }

    /// The same, counted as the memory of its request.
    pub(super) fn counted(self, share: Share) -> Self {
        match self.state {
            State::Own(bytes) => {
                share.answer(bytes);
                Self { state: State::Counted(share), ..self }
            }
            state => Self { state, ..self },
        }
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reply").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Gone;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Gone>>> {
        let bytes = match std::mem::replace(&mut self.state, State::Sent) {
            State::Sent => return Poll::Ready(None),
            State::Own(bytes) => Some(bytes),
            State::Counted(share) => share.take_answer(),
        };
        Poll::Ready(Some(bytes.map(Frame::data).ok_or(Gone)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Sent)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(if self.is_end_stream() { 0 } else { self.size })
    }
}
