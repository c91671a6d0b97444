//! The server as a tower service: HTTP in, HTTP out, no sockets.

mod accept;
mod dispatch;
mod path;
mod response;

use std::convert::Infallible;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::BodyExt as _;

use crate::body::ApiBody;
use crate::server::ApiServer;
use crate::status::Status;

/// The biggest body the server reads, as the real one.
const MAX_BODY: usize = 3 << 20;
/// How much of a bigger body is read and dropped: a client that is still sending when the connection closes would
/// not see the answer.
const MAX_DROPPED: usize = 256 << 20;

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display + Send,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            let answer = match collect(body).await.and_then(|body| server.admit(&mut head).map(|()| body)) {
                Ok(body) => server.dispatch(&head, body).await,
                Err(status) => Err(status),
            };
            // What is kept is answered when it is safe: what was written, and also what was only read.
            let safe = server.store().safe().await;
            let reads = matches!(head.method, Method::GET | Method::HEAD);
            let answer = match safe {
                Err(why) if !reads => Err(Status::internal(why)),
                _ => answer,
            };
            Ok(answer.unwrap_or_else(|status| response::status(&head.headers, &status)))
        })
    }
}

async fn collect<B>(body: B) -> Result<Bytes, Status>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let mut body = std::pin::pin!(body);
    let mut whole = BytesMut::new();
    let mut first: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("unable to read the body: {error}")))?;
        let Ok(mut data) = frame.into_data() else { continue };
        if whole.len() + first.as_ref().map_or(0, Bytes::len) + data.remaining() > MAX_BODY {
            let mut dropped = data.remaining();
            while dropped < MAX_DROPPED
                && let Some(Ok(frame)) = body.frame().await
            {
                dropped += frame.data_ref().map_or(0, Buf::remaining);
            }
            return Err(Status::too_large(format_args!("limit is {MAX_BODY}")));
        }
        let piece = data.copy_to_bytes(data.remaining());
        match first.take() {
            // Most bodies come in one piece, which needs no copy.
            None if whole.is_empty() => first = Some(piece),
            None => whole.extend_from_slice(&piece),
            Some(before) => {
                whole.extend_from_slice(&before);
                whole.extend_from_slice(&piece);
            }
        }
    }
    Ok(first.unwrap_or_else(|| whole.freeze()))
}
