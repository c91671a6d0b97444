//! One request, from its body to its answer.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use kruise_core::admission::Answer;
use serde_json::Value;

use super::{Admit, Convert, Inner, Route, bounds};
use crate::review::admission::{self, ReplyTo};
use crate::review::conversion::{self, Before};

/// After so many objects a conversion lets others go on.
const BREATH: usize = 16;

/// A plain answer.
pub(super) fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    respond(code, "text/plain; charset=utf-8", text)
}

fn json(body: Vec<u8>) -> Response<Full<Bytes>> {
    respond(StatusCode::OK, "application/json", body)
}

fn respond(code: StatusCode, content: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
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
) -> Response<Full<Bytes>>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: fmt::Display,
{
    let patience = bounds::patience(request.uri().query()).unwrap_or(Duration::MAX);
    let deadline = inner.limits.deadline.min(patience);
    let answer = async {
        let limit = match route {
            Route::Admission(_) => inner.limits.admission_body,
            Route::Conversion(_) => inner.limits.conversion_body,
        };
        let hint = request.body().size_hint();
        if hint.lower() > limit {
            return too_large(route, limit);
        }
        let Some(_turn) = inner.turns.next(hint.upper().unwrap_or(limit).min(limit), &inner.limits).await
        else {
            tracing::warn!(path, "refused a request: too many at once");
            return text(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once, try again later");
        };
        match route {
            Route::Admission(handler) => admit(inner, path, handler, request, limit).await,
            Route::Conversion(handler) => convert(inner, handler, request, limit).await,
        }
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
}

async fn read<B>(body: B, limit: u64) -> Result<Bytes, Unread>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: fmt::Display,
{
    let body = body.map_err(|error| error.to_string());
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    match Limited::new(body, limit).collect().await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Unread::TooLarge),
        Err(error) => Err(Unread::Broken(error.to_string())),
    }
}

fn too_large(route: &Route, limit: u64) -> Response<Full<Bytes>> {
    let message = format!("request entity is too large; limit is {limit} bytes");
    match route {
        Route::Admission(_) => refuse(&ReplyTo::default(), 413, message),
        Route::Conversion(_) => text(StatusCode::PAYLOAD_TOO_LARGE, message),
    }
}

fn refuse(reply_to: &ReplyTo, code: u16, message: String) -> Response<Full<Bytes>> {
    json(reply_to.answer(&Answer::Denied { code, message }))
}

async fn admit<B>(
    inner: &Inner,
    path: &str,
    handler: &Admit,
    request: Request<B>,
    limit: u64,
) -> Response<Full<Bytes>>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: fmt::Display,
{
    let nobody = ReplyTo::default();
    let (head, body) = request.into_parts();
    let body = match read(body, limit).await {
        Ok(body) if body.is_empty() => return refuse(&nobody, 400, "request body is empty".to_owned()),
        Ok(body) => body,
        Err(Unread::TooLarge) => return too_large(&Route::Admission(handler.clone()), limit),
        Err(Unread::Broken(why)) => {
            return refuse(&nobody, 400, format!("the body could not be read: {why}"));
        }
    };
    let content = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let media = content.split(|byte| *byte == b';').next().unwrap_or_default();
    if media.trim_ascii() != b"application/json" {
        let content = String::from_utf8_lossy(content);
        return refuse(&nobody, 400, format!("contentType={content}, expected application/json"));
    }
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
    handler: &Convert,
    request: Request<B>,
    limit: u64,
) -> Response<Full<Bytes>>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: fmt::Display,
{
    let body = match read(request.into_body(), limit).await {
        Ok(body) if body.is_empty() => return text(StatusCode::BAD_REQUEST, ""),
        Ok(body) => body,
        Err(Unread::TooLarge) => return too_large(&Route::Conversion(handler.clone()), limit),
        Err(Unread::Broken(why)) => {
            return text(StatusCode::BAD_REQUEST, format!("the body could not be read: {why}"));
        }
    };
    let mut question = match conversion::decode(&body) {
        Ok(question) => question,
        Err(why) => return text(StatusCode::BAD_REQUEST, why),
    };
    drop(body);
    let objects = std::mem::take(&mut question.objects);
    let mut converted = Ok(Vec::with_capacity(objects.len()));
    for (i, object) in objects.into_iter().enumerate() {
        if i % BREATH == BREATH - 1 {
            tokio::task::yield_now().await;
        }
        match convert_one(inner, handler, object, &question.wanted) {
            Ok(object) => _ = converted.as_mut().map(|converted: &mut Vec<Value>| converted.push(object)),
            Err(why) => {
                tracing::warn!(why, "refused a conversion");
                converted = Err(why);
                break;
            }
        }
    }
    json(question.answer(converted))
}

fn convert_one(inner: &Inner, handler: &Convert, object: Value, wanted: &str) -> Result<Value, String> {
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
