//! Everything that listens: health, metrics, profiles, webhooks.

use std::{path::Path, sync::Arc};

use http::StatusCode;
use kruise_runtime::{
    endpoints::{self, Answer, Handler, health::Checks, numbers::Numbers},
    scope::{BoxError, Scope},
};
use kruise_webhook::listener::{self, Clients};

use super::Error;
use crate::manager::Manager;

/// Opens all sockets. When this returns, they answer; readiness follows when the webhooks are in order.
pub(super) async fn open(manager: &Manager, scope: &mut Scope) -> Result<(), Error> {
    let shared = manager.shared();
    let settings = &shared.settings;
    let options = &settings.options;
    let ready = manager.clone();
    let checks = Checks::new().ready("webhook-ready", move || {
        let manager = ready.clone();
        async move { manager.ready().await }
    });
    let kinds = shared.kinds.clone();
    let checks = checks.detail("kinds", move || kinds.report());
    let noting = manager.clone();
    let checks = checks.detail("webhooks", move || noting.notes());
    plain(scope, "--health-probe-addr", &options.health_probe_addr, checks.handler()).await?;
    let numbers = Numbers::new(shared.registry.clone());
    let metrics: Handler = Arc::new(move |path, _| {
        let answer = if path == "/metrics" { numbers.answer() } else { Answer::not_found() };
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
    let address = options.webhook_address(&settings.environment);
    let flag = if settings.environment.certificates.host.is_some() && options.webhook_bind_address.is_empty()
    {
        "WEBHOOK_HOST, WEBHOOK_PORT; where WEBHOOK_HOST is no address of this machine, set --webhook-bind-address"
    } else {
        "WEBHOOK_PORT, --webhook-bind-address"
    };
    let clients = options.webhook_client_ca.as_deref().map(clients).transpose()?;
    if let Some(listener) = bind(flag, &address).await? {
        let stop = scope.stop();
        let (certificate, webhooks) = (manager.certificate(), manager.webhooks());
        scope.spawn("webhooks", async move {
            let until = async move { stop.asked().await };
            listener::serve(listener, certificate, clients, webhooks, listener::Limits::default(), until)
                .await
                .map_err(BoxError::from)
        });
    }
    Ok(())
}

/// The authorities of a file.
fn clients(path: &Path) -> Result<Clients, Error> {
    let text = |error: &dyn std::fmt::Display| {
        Error::Setting(format!("--webhook-client-ca: {}: {error}", path.display()))
    };
    let pem = std::fs::read(path).map_err(|error| text(&error))?;
    Clients::of(&pem).map_err(|error| text(&error))
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
