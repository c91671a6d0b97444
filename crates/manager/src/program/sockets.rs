//! Everything that listens: health, metrics, profiles, webhooks.

use std::sync::Arc;

use http::StatusCode;
use kruise_runtime::{
    endpoints::{self, Answer, Handler, health::Checks},
    scope::{BoxError, Scope},
};
use kruise_webhook::listener;

use super::Error;
use crate::manager::Manager;

/// Opens all sockets. When this returns, they answer; readiness follows when the webhooks are in order.
pub(super) async fn open(manager: &Manager, scope: &mut Scope) -> Result<(), Error> {
    let shared = manager.shared();
    let options = &shared.settings.options;
    let ready = manager.clone();
    let checks = Checks::new().ready("webhook-ready", move || {
        let manager = ready.clone();
        async move { manager.ready().await }
    });
    plain(scope, "--health-probe-addr", &options.health_probe_addr, checks.handler()).await?;
    let registry = shared.registry.clone();
    let metrics: Handler = Arc::new(move |path, _| {
        let answer = match path.as_str() {
            "/metrics" => Answer::metrics(format!("{}{}", registry.text(), endpoints::process::text())),
            _ => Answer::not_found(),
        };
        Box::pin(async move { answer })
    });
    plain(scope, "--metrics-addr", &options.metrics_addr, metrics).await?;
    if options.enable_pprof {
        let profiles: Handler = Arc::new(|_, _| {
            let text = "This program has no Go profiles. CPU, memory and latency are in /metrics; `perf` shows the rest.\n";
            Box::pin(async move { Answer::text(StatusCode::NOT_FOUND, text) })
        });
        // Nothing depends on it, so a taken port is only told.
        if let Err(error) = plain(scope, "--pprof-addr", &options.pprof_addr, profiles).await {
            tracing::warn!(%error, "profiles are not served");
        }
    }
    let address = options.webhook_address(&shared.settings.environment);
    let listener = bind("WEBHOOK_PORT, --webhook-bind-address", &address).await?;
    if let Some(listener) = listener {
        let stop = scope.stop();
        let (certificate, webhooks) = (manager.certificate(), manager.webhooks());
        scope.spawn("webhooks", async move {
            let until = async move { stop.asked().await };
            listener::serve(listener, certificate, webhooks, listener::Limits::default(), until)
                .await
                .map_err(BoxError::from)
        });
    }
    Ok(())
}

async fn plain(scope: &mut Scope, flag: &'static str, address: &str, handler: Handler) -> Result<(), Error> {
    if let Some(listener) = bind(flag, address).await? {
        let stop = scope.stop();
        scope.spawn(flag, async move {
            endpoints::serve(listener, handler, async move { stop.asked().await }).await;
            Ok::<(), BoxError>(())
        });
    }
    Ok(())
}

async fn bind(flag: &'static str, address: &str) -> Result<Option<tokio::net::TcpListener>, Error> {
    let bound = endpoints::bind(address).await;
    bound.map_err(|source| Error::Listen { address: address.to_owned(), flag, source })
}
