//! How a controller runs.

use std::{convert::Infallible, time::Duration};

use kruise_core::object::ObjectKey;
use tokio::{task::JoinSet, time::Instant};
use tracing::{Instrument as _, debug, error, info_span, warn};

use super::{Context, Controller, Error, Next, Reconcile};
use crate::{
    freshness::{Freshness, Gate},
    metrics::Framework,
    queue::Queue,
    scope::{Stop, caught, kept},
};

/// Reconciles that take longer are told.
const SLOW: Duration = Duration::from_secs(1);

/// What the work on one key needs.
#[derive(Clone)]
struct Worker {
    name: &'static str,
    queue: Queue,
    freshness: Freshness,
    context: Context,
    metrics: Framework,
    reconcile: Reconcile,
}

enum End {
    Well(Next),
    TooEarly,
    Badly(Error),
    Panicked(String),
}

impl Controller {
    /// Works until asked to stop. Reconciles that run then get `grace` to end; after that they are cut off. A panic of the
    /// controller itself is counted, and it begins again with the keys that it had: other controllers do not notice.
    pub async fn run(self, stop: Stop, grace: Duration) {
        let Self { name, workers, queue, freshness, context, metrics, reconcile } = self;
        metrics.max_concurrent.set(&[name], workers as f64);
        metrics.active_workers.set(&[name], 0.0);
        metrics.reconcile_errors.touch(&[name]);
        metrics.reconcile_panics.touch(&[name]);
        metrics.terminal_errors.touch(&[name]);
        metrics.controller_restarts.touch(&[name]);
        for result in ["success", "error", "requeue", "requeue_after"] {
            metrics.reconcile_total.touch(&[name, result]);
        }
        let measured = queue.clone();
        metrics.registry.before_reading(move || measured.measure());
        let restarts = metrics.controller_restarts.clone();
        let worker = Worker { name, queue, freshness, context, metrics, reconcile };
        let work = || {
            worker.queue.reclaim();
            worker.metrics.active_workers.set(&[name], 0.0);
            let work = worker.run(workers, &stop, grace);
            async move {
                work.await;
                Ok::<(), Infallible>(())
            }
        };
        kept(work, |problem, pause| {
            restarts.inc(&[name]);
            error!(controller = name, problem, ?pause, "a controller ended and begins again");
        })
        .await;
    }
}

impl Worker {
    async fn run(&self, workers: usize, stop: &Stop, grace: Duration) {
        let Self { name, queue, freshness, .. } = self;
        let mut running: JoinSet<()> = JoinSet::new();
        loop {
            let deadline = freshness.next_deadline();
            let patience = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.asked() => break,
                Some(_) = running.join_next() => {}
                key = queue.next(), if running.len() < workers => {
                    let Some(key) = key else { break };
                    let worker = self.clone();
                    running.spawn(async move { worker.work(key).await });
                }
                () = patience => freshness.wake_overdue(Instant::now()),
            }
        }
        queue.close();
        let ending = async { while running.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, ending).await.is_err() {
            warn!(
                controller = name,
                count = running.len(),
                "reconciles did not end in time and were cut off"
            );
            running.shutdown().await;
        }
    }

    async fn work(self, key: ObjectKey) {
        let Self { name, metrics, .. } = &self;
        // The root span: reconciles have no parent.
        let span = info_span!(parent: None, "reconcile", controller = name, namespace = %key.namespace, name = %key.name);
        metrics.active_workers.add(&[name], 1.0);
        let began = Instant::now();
        let end = self.pass(&key).instrument(span.clone()).await;
        let took = began.elapsed();
        metrics.active_workers.add(&[name], -1.0);
        if !matches!(end, End::TooEarly) {
            metrics.reconcile_time.observe(&[name], took.as_secs_f64());
        }
        let concluding = async { span.in_scope(|| self.conclude(&key, end, took)) };
        if let Err(message) = caught(concluding).await {
            // A key that is never given back would never be worked on again.
            error!(controller = name, %key, panic = message, "panicked at the end of a reconcile");
            self.queue.failed(&key, Duration::ZERO);
        }
    }

    async fn pass(&self, key: &ObjectKey) -> End {
        let work = async {
            if let Err(error) = self.context.executor.clear_doubts(key).await.ok() {
                return End::Badly(error.into());
            }
            if self.freshness.gate(key) == Gate::Shut {
                return End::TooEarly;
            }
            match (self.reconcile)(self.context.clone(), key.clone()).await {
                Ok(next) => End::Well(next),
                Err(error) => End::Badly(error),
            }
        };
        caught(work).await.unwrap_or_else(End::Panicked)
    }

    fn conclude(&self, key: &ObjectKey, end: End, took: Duration) {
        let Self { name, queue, freshness, metrics, .. } = self;
        let count = |result: &str| metrics.reconcile_total.inc(&[name, result]);
        match end {
            End::TooEarly => {
                debug!("own writes cannot be read yet");
                return queue.set_aside(key);
            }
            End::Well(Next::Done) => {
                count("success");
                queue.succeeded(key);
            }
            End::Well(Next::After(time)) => {
                count("requeue_after");
                queue.add_after(key.clone(), time);
                queue.succeeded(key);
            }
            End::Well(Next::Forget) => {
                count("success");
                freshness.forget(key);
                self.context.executor.forget(key);
                queue.rest(key, Duration::ZERO);
                queue.succeeded(key);
            }
            End::Badly(Error::Effects(failure)) if failure.is_conflict() => {
                count("requeue");
                let delay = queue.conflicted(key);
                debug!(?delay, error = %failure, "objects have changed meanwhile");
            }
            End::Badly(Error::Terminal(error)) => {
                count("error");
                metrics.reconcile_errors.inc(&[name]);
                metrics.terminal_errors.inc(&[name]);
                queue.succeeded(key);
                warn!(%error, "reconcile failed until the object changes");
            }
            End::Badly(error) => {
                count("error");
                metrics.reconcile_errors.inc(&[name]);
                let wait = match &error {
                    Error::Effects(failure) => failure.retry_after(),
                    Error::Terminal(_) | Error::Other(_) => Duration::ZERO,
                };
                let delay = queue.failed(key, wait);
                warn!(%error, ?delay, "reconcile failed");
            }
            End::Panicked(message) => {
                count("error");
                metrics.reconcile_errors.inc(&[name]);
                metrics.reconcile_panics.inc(&[name]);
                let delay = queue.failed(key, Duration::ZERO);
                error!(panic = message, ?delay, "reconcile panicked");
            }
        }
        if took > SLOW {
            tracing::info!(?took, "finished a slow reconcile");
        } else {
            debug!(?took, "finished a reconcile");
        }
    }
}
