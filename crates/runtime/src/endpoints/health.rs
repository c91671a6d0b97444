//! `/healthz` and `/readyz`: named checks, each also on a path of its own, with the reason when one fails.

use std::{future::Future, sync::Arc};

use futures::future::BoxFuture;
use http::StatusCode;

use super::{Answer, Handler};

/// What is shown beside the checks.
type Detail = Arc<dyn Fn() -> Vec<String> + Send + Sync>;
type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// What must hold for the process to be alive, and what for it to get requests.
#[derive(Clone, Default)]
pub struct Checks {
    alive: Vec<(&'static str, Check)>,
    ready: Vec<(&'static str, Check)>,
    details: Vec<(&'static str, Detail)>,
}

impl Checks {
    /// The check `ping`, which holds as long as someone answers at all.
    pub fn new() -> Self {
        let ping: Check = Arc::new(|| Box::pin(async { Ok(()) }));
        Self { alive: vec![("ping", ping)], ..Self::default() }
    }

    /// Adds a check of readiness. The error is what a person reads.
    #[must_use]
    pub fn ready<F, Fut>(mut self, name: &'static str, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.ready.push((name, Arc::new(move || Box::pin(check()))));
        self
    }

    /// Adds lines that `/readyz?verbose` shows. They never fail it: a part that waits must not take the rest out of service.
    #[must_use]
    pub fn detail(
        mut self,
        name: &'static str,
        lines: impl Fn() -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.details.push((name, Arc::new(lines)));
        self
    }

    /// Answers on `/healthz`, `/readyz` and the path of each check below them.
    pub fn handler(self) -> Handler {
        Arc::new(move |path, query| {
            let checks = self.clone();
            Box::pin(async move { checks.answer(&path, &query).await })
        })
    }

    async fn answer(&self, path: &str, query: &str) -> Answer {
        let verbose = query.split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose="));
        let none = Vec::new();
        let (checks, details, rest) = match (path.strip_prefix("/healthz"), path.strip_prefix("/readyz")) {
            (Some(rest), _) => (&self.alive, &none, rest),
            (_, Some(rest)) => (&self.ready, &self.details, rest),
            _ => return Answer::not_found(),
        };
        match rest.strip_prefix('/') {
            None if rest.is_empty() => all(checks, details, verbose).await,
            Some("") => all(checks, details, verbose).await,
            Some(name) => match checks.iter().find(|(known, _)| *known == name) {
                Some((_, check)) => one(check).await,
                None => Answer::not_found(),
            },
            None => Answer::not_found(),
        }
    }
}

async fn one(check: &Check) -> Answer {
    match check().await {
        Ok(()) => Answer::text(StatusCode::OK, "ok"),
        Err(reason) => {
            Answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n"))
        }
    }
}

async fn all(checks: &[(&'static str, Check)], details: &[(&'static str, Detail)], verbose: bool) -> Answer {
    let mut lines = String::new();
    let mut failed = false;
    for (name, check) in checks {
        match check().await {
            Ok(()) => lines.push_str(&format!("[+]{name} ok\n")),
            Err(reason) => {
                failed = true;
                lines.push_str(&format!("[-]{name} failed: {reason}\n"));
            }
        }
    }
    for (name, detail) in details.iter().filter(|_| verbose || failed) {
        detail().into_iter().for_each(|line| lines.push_str(&format!("[!]{name}: {line}\n")));
    }
    if failed {
        return Answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}healthz check failed\n"));
    }
    if verbose {
        return Answer::text(StatusCode::OK, format!("{lines}healthz check passed\n"));
    }
    Answer::text(StatusCode::OK, "ok")
}
