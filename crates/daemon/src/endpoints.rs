//! What the daemon answers to machines that watch over it: health and metrics.

use std::sync::Arc;

use http::StatusCode;
use kruise_runtime::endpoints::{Answer, Handler, numbers::Numbers};

/// A question whose answer must be yes for the daemon to be healthy.
pub type Check = (&'static str, Arc<dyn Fn() -> bool + Send + Sync>);

/// What is served on an address.
#[derive(Clone)]
pub enum Pages {
    /// `/healthz` and `/metrics`.
    Daemon {
        /// What must hold.
        checks: Vec<Check>,
        /// The numbers.
        numbers: Numbers,
    },
    /// Where people look for profiles.
    Profiles,
}

impl Pages {
    /// The page at a path.
    pub fn at(&self, path: &str) -> Answer {
        match (self, path) {
            (Self::Daemon { checks, .. }, "/healthz") => match checks.iter().find(|(_, holds)| !holds()) {
                None => Answer::text(StatusCode::OK, "ok"),
                Some((name, _)) => {
                    let problem = format!("check {name} failed, err: not synced");
                    Answer::text(StatusCode::INTERNAL_SERVER_ERROR, problem)
                }
            },
            (Self::Daemon { numbers, .. }, "/metrics") => numbers.answer(),
            (Self::Daemon { .. }, _) => Answer::not_found(),
            (Self::Profiles, _) => {
                let text = "This program has no Go profiles. CPU and memory are in /metrics; `perf` shows the rest.\n";
                Answer::text(StatusCode::NOT_FOUND, text)
            }
        }
    }

    /// The pages, for whoever serves them.
    pub fn handler(self) -> Handler {
        Arc::new(move |path, _query| {
            let answer = self.at(&path);
            Box::pin(async move { answer })
        })
    }
}
