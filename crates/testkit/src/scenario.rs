//! Running a scenario: on which cluster, with what clean-up, and when it may be skipped.

use std::{fmt, io::Write as _, panic::AssertUnwindSafe};

use futures::FutureExt as _;

use crate::Cluster;

/// How a scenario ended, unless it panicked.
pub type Outcome = Result<(), Skip>;

/// A scenario that this cluster cannot run, and the API it misses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// What the scenario needs.
    pub needs: String,
    /// Which server lacks it.
    pub server: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}, which Kubernetes {} does not have", self.needs, self.server)
    }
}

/// Runs a scenario on the cluster of `KUBECONFIG` and cleans up after it, also when it failed.
pub fn on_real_cluster(name: &str, scenario: impl AsyncFnOnce(Cluster) -> Outcome) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a tokio runtime can be built");
    runtime.block_on(async {
        let cluster = match Cluster::real().await {
            Ok(cluster) => cluster,
            Err(error) => fail(&error.to_string()),
        };
        run(name, cluster, scenario).await;
    });
}

/// Runs a scenario on a cluster in this process, in virtual time.
pub fn on_embedded_cluster(name: &str, scenario: impl AsyncFnOnce(Cluster) -> Outcome) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a tokio runtime can be built");
    runtime.block_on(async {
        let (sim, cluster) = crate::embedded::start(0).await;
        run(name, cluster, scenario).await;
        drop(sim);
    });
}

async fn run(name: &str, cluster: Cluster, scenario: impl AsyncFnOnce(Cluster) -> Outcome) {
    let outcome = AssertUnwindSafe(scenario(cluster.clone())).catch_unwind().await;
    if outcome.is_err() {
        cluster.describe_sandboxes().await;
    }
    cluster.clean_up().await;
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(skip)) => report_skip(name, &skip.to_string()),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Reports that a scenario was not played. `cargo xtask test` collects these lines by the file it names.
#[allow(clippy::panic, reason = "a test ends by panicking")]
pub fn report_skip(name: &str, reason: &str) {
    println!("SKIPPED {name}: {reason}");
    let Some(file) = std::env::var_os("KRUISE_TEST_SKIPS") else { return };
    // One small write at the end of the file, so that tests beside each other do not mix their lines.
    let written = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .and_then(|mut file| file.write_all(format!("{name}: {reason}\n").as_bytes()));
    if let Err(error) = written {
        panic!("the skip of {name} cannot be reported: {error}");
    }
}

/// Ends the test with a message.
#[allow(clippy::panic, reason = "a test ends by panicking")]
#[track_caller]
pub(crate) fn fail(message: &str) -> ! {
    panic!("{message}")
}

/// Makes tests of a scenario: one for each cluster it runs on.
///
/// The test on the real cluster is ignored unless asked for: `cargo xtask test` brings a cluster up and asks.
#[macro_export]
macro_rules! scenario {
    ($name:ident) => {
        mod $name {
            #[test]
            fn embedded() {
                $crate::scenario::on_embedded_cluster(stringify!($name), super::$name);
            }

            #[test]
            #[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
            fn real() {
                $crate::scenario::on_real_cluster(stringify!($name), super::$name);
            }
        }
    };
}
