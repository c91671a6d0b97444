//! The layer between a client and the server.

use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use kruise_apiserver::ApiServer;
use kruise_apiserver::body::ApiBody;
use kruise_apiserver::status::Status;
use kube::client::Body;
use tower::{Layer, Service, ServiceExt as _};

use super::{Answer, Broken, Effect, Faults, stale, stream};

/// The API server behind faults.
#[derive(Clone, Debug)]
pub struct Faulty {
    server: ApiServer,
    faults: Faults,
}

impl Layer<ApiServer> for Faults {
    type Service = Faulty;

    fn layer(&self, server: ApiServer) -> Faulty {
        Faulty { server, faults: self.clone() }
    }
}

impl Service<Request<Body>> for Faulty {
    type Response = Response<ApiBody>;
    type Error = Broken;
    type Future = BoxFuture<'static, Result<Self::Response, Broken>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { server, faults } = self.clone();
        Box::pin(async move { handle(&server, &faults, request).await })
    }
}

async fn handle(
    server: &ApiServer,
    faults: &Faults,
    request: Request<Body>,
) -> Result<Response<ApiBody>, Broken> {
    if faults.is_crashed() {
        return Err(Broken::Crashed);
    }
    let (latency, lag_revisions, lag_time) = {
        let state = faults.state();
        (state.latency, state.lag_revisions, state.lag_time)
    };
    pause(server, latency).await;
    let write = request.method() != Method::GET;
    let watch = request.uri().query().is_some_and(stale::is_watch);
    let struck = faults.strike(request.method(), request.uri().path());
    if let Some((Effect::Before, answer)) = struck {
        return instead(server, answer).await;
    }
    let request = if write || watch {
        request
    } else {
        // A late answer tells what was true when it was asked for.
        let seen = server.store().version().saturating_sub(lag_revisions);
        pause(server, lag_time).await;
        if lag_revisions > 0 || !lag_time.is_zero() {
            return stale::read(server, request, seen).await;
        }
        request
    };
    let response = call(server, request).await;
    if write && response.status().is_success() && faults.wrote() {
        return Err(Broken::Crashed);
    }
    if let Some((Effect::After, answer)) = struck {
        return instead(server, answer).await;
    }
    if watch && response.status().is_success() {
        return Ok(response.map(|body| stream::through(server, faults, body)));
    }
    Ok(response)
}

pub(super) async fn call(server: &ApiServer, request: Request<Body>) -> Response<ApiBody> {
    match server.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

async fn pause(server: &ApiServer, time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(server.clock().real(time)).await;
    }
}

async fn instead(server: &ApiServer, answer: Answer) -> Result<Response<ApiBody>, Broken> {
    let status = match answer {
        Answer::Conflict => Status::failure(
            409,
            "Conflict",
            "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest \
             version and try again",
        ),
        Answer::TooManyRequests => Status::too_many_requests("Too many requests, please try again later.", 1),
        Answer::Internal => Status::internal("an injected fault"),
        Answer::Unavailable => Status::service_unavailable("an injected fault"),
        Answer::Timeout(time) => {
            pause(server, time).await;
            return Err(Broken::TimedOut);
        }
    };
    Ok(refusal(&status))
}

pub(super) fn refusal(status: &Status) -> Response<ApiBody> {
    let mut response = Response::new(ApiBody::full(status.to_json()));
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if status.code == 429 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
