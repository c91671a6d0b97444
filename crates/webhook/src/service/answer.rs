//! One request, from its body to its answer.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes};
use futures::FutureExt as _;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use kruise_core::admission::Answer;
use kruise_sockets::places::Visitor;
use serde_json::Value;
use serde_json::value::RawValue;

use super::memory::{Refused, Share};
use super::{Admit, Class, Convert, Inner, Reply, Route, Verified, bounds};
use crate::review::admission::{self, ReplyTo};
use crate::review::conversion::{self, Before};

/// After so many bytes a conversion lets others go on.
const BREATH: usize = 256 << 10;
/// How much of a body that is too large is read away, so that the client gets to read the answer.
const DISCARDED: usize = 256 << 20;

/// A plain answer.
pub(super) fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<Reply> {
    respond(code, "text/plain; charset=utf-8", text)
}

fn json(body: Vec<u8>) -> Response<Reply> {
    respond(StatusCode::OK, "application/json", body)
}

fn respond(code: StatusCode, content: &'static str, body: impl Into<Bytes>) -> Response<Reply> {
    let mut response = Response::new(Reply::new(body));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    response
}

/// Answers within the bounds.
pub(super) async fn within<B>(
    inner: &Inner,
    path: &str,
    route: &Route,
    request: Request<B>,
) -> Response<Reply>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: fmt::Display,
{
    let timeout = bounds::timeout(request.uri().query()).unwrap_or(Duration::MAX);
    let deadline = inner.limits.deadline.min(timeout);
    let answer = async {
        let class = match route {
            Route::Admission(_) => &inner.admissions,
            Route::Conversion(_) => &inner.conversions,
        };
        let share = class.memory.share();
        let answered = match route {
            Route::Admission(handler) => admit(inner, path, handler, request, &share).await,
            Route::Conversion(handler) => convert(inner, path, handler, request, &share).await,
        };
        answered.map(|reply| reply.counted(share))
    };
    tokio::time::timeout(deadline, answer).await.unwrap_or_else(|_| {
        tracing::warn!(path, deadline = ?deadline, "gave up on a request");
        text(StatusCode::GATEWAY_TIMEOUT, format!("no answer within {deadline:?}"))
    })
}

/// Why there is no body.
enum Unread {
    TooLarge,
    Broken(String),
    /// Others needed the memory, or had it all.
    NoMemory(&'static str),
}

/// Reads a body. Its memory is taken as its bytes arrive, whatever the client announced.
async fn read<B>(
    request: Request<B>,
    limit: u64,
    limits: &bounds::Limits,
    share: &Share,
) -> Result<Vec<u8>, Unread>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: fmt::Display,
{
    // Who waits for our consent to send gets the answer instead.
    let waits = request.headers().contains_key(header::EXPECT);
    let mut body = pin!(request.into_body().map_err(|error| error.to_string()));
    let is_announced = body.size_hint().lower() > limit;
    if is_announced && waits {
        return Err(Unread::TooLarge);
    }
    let limit = if is_announced { 0 } else { usize::try_from(limit).unwrap_or(usize::MAX) };
    let mut read = Segments::default();
    let slow = || Unread::NoMemory("the body was sent too slowly while others waited");
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = share.is_lost() => return Err(slow()),
        };
        let data = match frame {
            None => break,
            Some(Ok(frame)) => frame.into_data(),
            Some(Err(why)) => return Err(Unread::Broken(why)),
        };
        let Ok(data) = data else { continue };
        let size = read.len() + data.remaining();
        if size > limit {
            drop(read);
            tokio::select! {
                _ = tokio::time::timeout(limits.discard, discard(body)) => {}
                () = share.is_lost() => {}
            }
            return Err(Unread::TooLarge);
        }
        let size = size as u64;
        share.received(size);
        tokio::select! {
            held = share.hold(size, limits.turn) => held.map_err(|_| Unread::NoMemory(BUSY))?,
            () = share.is_lost() => return Err(slow()),
        }
        read.add(data);
    }
    share.complete();
    Ok(read.joined())
}

/// What is here of a body, in pieces: a text that grows by moving takes twice its memory each time.
#[derive(Default)]
struct Segments {
    size: usize,
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
}

impl Segments {
    /// How large a piece is; most bodies are smaller.
    const SIZE: usize = 64 << 10;

    fn len(&self) -> usize {
        self.size
    }

    fn add(&mut self, mut data: impl bytes::Buf) {
        self.size += data.remaining();
        while data.has_remaining() {
            let space = Self::SIZE - self.last.len();
            self.last.put((&mut data).take(space));
            if self.last.len() >= Self::SIZE {
                self.full.push(std::mem::take(&mut self.last));
            }
        }
    }

    fn joined(self) -> Vec<u8> {
        if self.full.is_empty() {
            return self.last;
        }
        let mut whole = Vec::with_capacity(self.size);
        // Each piece is given back as soon as it is copied.
        self.full.into_iter().chain([self.last]).for_each(|piece| whole.extend_from_slice(&piece));
        whole
    }
}

/// Reads what is left of a body without keeping it: a client that still sends when its connection is closed never sees
/// the answer.
async fn discard<B: http_body::Body>(mut body: Pin<&mut B>) {
    let mut left = DISCARDED;
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.into_data().map_or(0, |data| data.remaining());
        left = left.saturating_sub(size);
        if left == 0 {
            return;
        }
    }
}

fn too_large(route: &Route, limit: u64) -> Response<Reply> {
    let message = format!("request entity is too large; limit is {limit} bytes");
    match route {
        Route::Admission(_) => refuse(&ReplyTo::default(), 413, message),
        Route::Conversion(_) => text(StatusCode::PAYLOAD_TOO_LARGE, message),
    }
}

fn busy(path: &str, why: &str) -> Response<Reply> {
    tracing::warn!(path, why, "refused a request");
    text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}, try again later"))
}

fn refuse(reply_to: &ReplyTo, code: u16, message: String) -> Response<Reply> {
    json(reply_to.answer(&Answer::Denied { code, message }))
}

/// Waits for a turn of its class.
async fn turn<'a>(class: &'a Class, inner: &Inner) -> Option<tokio::sync::SemaphorePermit<'a>> {
    tokio::time::timeout(inner.limits.turn, class.turns.acquire()).await.ok()?.ok()
}

const BUSY: &str = "too many requests at once";

async fn admit<B>(
    inner: &Inner,
    path: &str,
    handler: &Admit,
    request: Request<B>,
    share: &Share,
) -> Response<Reply>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: fmt::Display,
{
    if inner.only_verified && request.extensions().get::<Verified>().is_none() {
        let why = "a client certificate is required that the authorities of --webhook-client-ca have signed";
        tracing::debug!(path, "refused a request without a client certificate");
        return text(StatusCode::FORBIDDEN, why);
    }
    let nobody = ReplyTo::default();
    let limit = inner.limits.admission_body;
    let content = request.headers().get(header::CONTENT_TYPE).cloned();
    let visitor = request.extensions().get::<Visitor>().cloned();
    let body = match read(request, limit, &inner.limits, share).await {
        Ok(body) if body.is_empty() => return refuse(&nobody, 400, "request body is empty".to_owned()),
        Ok(body) => body,
        Err(Unread::TooLarge) => return too_large(&Route::Admission(handler.clone()), limit),
        Err(Unread::Broken(why)) => {
            return refuse(&nobody, 400, format!("the body could not be read: {why}"));
        }
        Err(Unread::NoMemory(why)) => return busy(path, why),
    };
    let _work = visitor.as_ref().map(Visitor::work);
    let content = content.as_ref().map(HeaderValue::as_bytes).unwrap_or_default();
    let media = content.split(|byte| *byte == b';').next().unwrap_or_default();
    if media.trim_ascii() != b"application/json" {
        let content = String::from_utf8_lossy(content);
        return refuse(&nobody, 400, format!("contentType={content}, expected application/json"));
    }
    let size = body.len() as u64;
    let weight = size + bounds::weight(&body);
    match share.hold(weight, inner.limits.turn).await {
        Ok(()) => {}
        Err(Refused::Busy) => return busy(path, BUSY),
        Err(Refused::TooMuch) => {
            let most = inner.limits.admission_memory;
            let message = format!(
                "request entity is too dense; its {size} bytes would take {weight} bytes of memory, limit is {most}"
            );
            return refuse(&nobody, 413, message);
        }
    }
    let Some(_turn) = turn(&inner.admissions, inner).await else { return busy(path, BUSY) };
    let (reply_to, question) = match admission::decode(&body) {
        Ok(asked) => asked,
        Err(refused) => {
            tracing::debug!(path, message = refused.message, "refused a review");
            return refuse(&refused.reply_to, 400, refused.message);
        }
    };
    drop(body);
    let asked = async move { handler(question).await };
    match AssertUnwindSafe(asked).catch_unwind().await {
        Ok(answer) => json(reply_to.answer(&answer)),
        Err(panic) => {
            let why = reason(panic.as_ref());
            tracing::error!(path, why, "a handler of admission panicked");
            inner.metrics.admission_panicked();
            refuse(&reply_to, 500, format!("panic: {why} [recovered]"))
        }
    }
}

async fn convert<B>(
    inner: &Inner,
    path: &str,
    handler: &Convert,
    request: Request<B>,
    share: &Share,
) -> Response<Reply>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: fmt::Display,
{
    let limit = inner.limits.conversion_body;
    let visitor = request.extensions().get::<Visitor>().cloned();
    let body = match read(request, limit, &inner.limits, share).await {
        Ok(body) if body.is_empty() => return text(StatusCode::BAD_REQUEST, ""),
        Ok(body) => body,
        Err(Unread::TooLarge) => return too_large(&Route::Conversion(handler.clone()), limit),
        Err(Unread::Broken(why)) => {
            return text(StatusCode::BAD_REQUEST, format!("the body could not be read: {why}"));
        }
        Err(Unread::NoMemory(why)) => return busy(path, why),
    };
    let _work = visitor.as_ref().map(Visitor::work);
    let Some(_turn) = turn(&inner.conversions, inner).await else { return busy(path, BUSY) };
    let question = match conversion::decode(&body) {
        Ok(question) => question,
        Err(why) => return text(StatusCode::BAD_REQUEST, why),
    };
    // The answer is about as large as the question.
    let both = 2 * body.len() as u64;
    let mut converted = question.answer(body.len() / 8 * 9);
    let mut done = 0;
    for object in &question.objects {
        if done >= BREATH {
            done = 0;
            tokio::task::yield_now().await;
        }
        done += object.get().len();
        let taken = share.hold(both + bounds::weight(object.get().as_bytes()), inner.limits.turn).await;
        let one = match taken {
            Ok(()) => convert_one(inner, handler, object, &question.wanted),
            Err(Refused::Busy) => return busy(path, BUSY),
            Err(Refused::TooMuch) => Err(format!(
                "an object of {} bytes is too dense to be converted within {} bytes of memory",
                object.get().len(),
                inner.limits.conversion_memory
            )),
        };
        match one {
            Ok(object) => converted.add(&object),
            Err(why) => {
                tracing::warn!(why, "refused a conversion");
                return json(question.failed(&why));
            }
        }
    }
    json(converted.end())
}

fn convert_one(inner: &Inner, handler: &Convert, object: &RawValue, wanted: &str) -> Result<Value, String> {
    let object: Value = serde_json::from_str(object.get())
        .map_err(|error| format!("an object cannot be converted to {wanted}: {error}"))?;
    let before = Before::of(&object);
    let converted = catch_unwind(AssertUnwindSafe(|| handler(object, wanted))).unwrap_or_else(|panic| {
        inner.metrics.conversion_panicked();
        Err(format!("panic: {} [recovered]", reason(panic.as_ref())))
    });
    let converted = converted.map_err(|why| before.failed(wanted, &why))?;
    before.check(&converted, wanted)?;
    Ok(converted)
}

/// What a panic said.
fn reason(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
