//! Tasks that have an owner: a panic reaches it, and it can ask all of them to stop.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, task::JoinSet, time::Instant};

/// What a task may fail with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A wish to stop that everybody can hear. Clones are the same wish.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    asked: AtomicBool,
    waiting: Notify,
}

impl Stop {
    /// Asks everybody to stop. A second call changes nothing.
    pub fn ask(&self) {
        self.0.asked.store(true, Ordering::SeqCst);
        self.0.waiting.notify_waiters();
    }

    /// Whether somebody asked.
    pub fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// Waits until somebody asks.
    pub async fn asked(&self) {
        loop {
            let mut told = std::pin::pin!(self.0.waiting.notified());
            // Waiting begins before the look, so that a wish between the two is heard.
            told.as_mut().enable();
            if self.is_asked() {
                return;
            }
            told.await;
        }
    }
}

/// How a task ended that should not have.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It returned an error.
    #[error("task {task} failed")]
    Failed {
        /// Its name.
        task: String,
        /// What it said.
        source: BoxError,
    },
    /// It panicked.
    #[error("task {task} panicked: {message}")]
    Panicked {
        /// Its name.
        task: String,
        /// What it said.
        message: String,
    },
    /// It did not stop in time.
    #[error("{count} tasks did not stop within {grace:?}")]
    Late {
        /// How many of them.
        count: usize,
        /// The time they had.
        grace: Duration,
    },
}

/// Tasks with an owner. Dropping it ends them all.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use kruise_runtime::scope::{BoxError, Scope};
/// use std::time::Duration;
///
/// let mut scope = Scope::default();
/// let stop = scope.stop();
/// scope.spawn("idle", async move {
///     stop.asked().await;
///     Ok::<(), BoxError>(())
/// });
/// assert!(scope.shutdown(Duration::from_secs(1)).await.is_ok());
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Scope {
    tasks: JoinSet<(String, Result<(), Ended>)>,
    stop: Stop,
}

#[derive(Debug)]
enum Ended {
    Failed(BoxError),
    Panicked(String),
}

impl Scope {
    /// The wish to stop that [`Self::shutdown`] uses; give it to the tasks.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Starts a task.
    pub fn spawn<E: Into<BoxError>>(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let name = name.into();
        self.tasks.spawn(async move {
            let ended = match caught(task).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(Ended::Failed(error.into())),
                Err(message) => Err(Ended::Panicked(message)),
            };
            (name, ended)
        });
    }

    /// Waits until a task ends. `None` when there is no task left.
    pub async fn next_end(&mut self) -> Option<Result<String, Error>> {
        loop {
            return match self.tasks.join_next().await? {
                Ok((task, Ok(()))) => Some(Ok(task)),
                Ok((task, Err(Ended::Failed(source)))) => Some(Err(Error::Failed { task, source })),
                Ok((task, Err(Ended::Panicked(message)))) => Some(Err(Error::Panicked { task, message })),
                // Only an abort is left here, and only `shutdown` aborts.
                Err(_) => continue,
            };
        }
    }

    /// Asks the tasks to stop and waits for them; those that take longer than `grace` are cut off. Tells the first
    /// thing that went wrong.
    pub async fn shutdown(mut self, grace: Duration) -> Result<(), Error> {
        self.stop.ask();
        let mut first = Ok(());
        let ended = tokio::time::timeout(grace, async {
            while let Some(end) = self.next_end().await {
                if let (Err(error), Ok(())) = (end, &first) {
                    first = Err(error);
                }
            }
        })
        .await;
        if ended.is_err() {
            let count = self.tasks.len();
            self.tasks.shutdown().await;
            return first.and(Err(Error::Late { count, grace }));
        }
        first
    }
}

/// Runs a future to its end; a panic in it becomes its message.
pub async fn caught<F: Future>(future: F) -> Result<F::Output, String> {
    use futures::FutureExt as _;
    std::panic::AssertUnwindSafe(future).catch_unwind().await.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
    })
}

/// The pause before work begins again that has failed for the first time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Work that lasted this long begins again after the first pause.
const LASTING: Duration = Duration::from_secs(600);

/// Runs work until it ends by itself. Where it panics or fails, `failed` hears why and after which pause it begins again:
/// one part of a program must not end the others.
pub async fn kept<F, E>(mut begin: impl FnMut() -> F, mut failed: impl FnMut(&str, Duration))
where
    F: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    let mut pause = FIRST_PAUSE;
    loop {
        let began = Instant::now();
        let problem = match caught(async { begin().await }).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("panicked: {panic}"),
        };
        if began.elapsed() >= LASTING {
            pause = FIRST_PAUSE;
        }
        failed(&problem, pause);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_that_panics_or_fails_begins_again_later_each_time() {
        let mut tries = 0;
        let mut heard = Vec::new();
        let began = Instant::now();
        kept(
            || {
                tries += 1;
                let this = tries;
                async move {
                    assert_ne!(this, 1, "boom");
                    if this < 4 { Err("no luck") } else { Ok(()) }
                }
            },
            |problem, pause| {
                heard.push((problem.split(':').next().unwrap_or_default().to_owned(), pause.as_secs()));
            },
        )
        .await;
        let expected = [("panicked", 1), ("no luck", 2), ("no luck", 4)];
        assert_eq!(heard, expected.map(|(problem, pause)| (problem.to_owned(), pause)));
        assert_eq!(began.elapsed().as_secs(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_in_a_task_is_an_error_that_its_owner_sees() {
        let mut scope = Scope::default();
        scope.spawn("bad", async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(1, 2, "boom");
            Ok::<(), BoxError>(())
        });
        let Some(Err(Error::Panicked { task, message })) = scope.next_end().await else {
            panic!("expected a panic");
        };
        assert_eq!(task, "bad");
        assert!(message.contains("boom"), "{message}");
        assert!(scope.next_end().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_does_not_stop_is_cut_off_and_told() {
        let mut scope = Scope::default();
        scope.spawn("deaf", std::future::pending::<Result<(), BoxError>>());
        let end = scope.shutdown(Duration::from_secs(5)).await;
        assert!(matches!(end, Err(Error::Late { count: 1, .. })), "{end:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wish_to_stop_is_heard_before_and_after_it_was_made() {
        let stop = Stop::default();
        let asking = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            stop.ask();
        };
        futures::join!(stop.asked(), asking);
        stop.asked().await;
        assert!(stop.is_asked());
    }
}
