//! The body of an answer: whole, or a stream of watch events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _};
use http_body::{Body, Frame, SizeHint};

/// What the server answers with. It never fails half-way: a watch that goes wrong says so in an `ERROR` event.
pub struct ApiBody(Inner);

enum Inner {
    Full(Option<Bytes>),
    Stream(BoxStream<'static, Bytes>),
}

impl ApiBody {
    /// A body that is known as a whole.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Full(Some(bytes.into())))
    }

    /// A body without content.
    pub fn empty() -> Self {
        Self(Inner::Full(None))
    }

    /// A body that comes in pieces.
    pub fn stream(stream: BoxStream<'static, Bytes>) -> Self {
        Self(Inner::Stream(stream))
    }
}

impl std::fmt::Debug for ApiBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Inner::Full(bytes) => f.debug_tuple("Full").field(bytes).finish(),
            Inner::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Inner::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Stream(stream) => stream.poll_next_unpin(cx).map(|next| next.map(|b| Ok(Frame::data(b)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Inner::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Inner::Stream(_) => SizeHint::default(),
        }
    }
}
