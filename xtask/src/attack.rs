//! `cargo xtask attack`: hostile clients against the ports of a running manager, on loopback and for a bounded time.
//!
//! Each script plays one attack; at last all play together. Meanwhile pods are sent for admission, health is asked for and
//! the memory of the manager is read. Bars: an admission and a health check are answered within a second throughout, and
//! the manager stays below 150 MiB (280 MiB where its build is not optimised, as in CI).

mod probes;
mod scripts;
mod sockets;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{env, thread};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::bench::local::{Clock, Cluster};
use crate::bench::manager::{Manager, configurations};
use crate::test::cargo;
use probes::Seen;
use sockets::Targets;

const NODES: usize = 3;
/// How long a pod may wait for its admission, and a kubelet for an answer about health.
const LONGEST: Duration = Duration::from_secs(1);
/// How much memory the manager may take.
const MOST_MIB: u64 = 150;
/// The same for a build that is not optimised, which takes more at rest already.
const MOST_UNOPTIMISED_MIB: u64 = 280;
/// The name of the last part.
const TOGETHER: &str = "all together";

/// For how long, and against what.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How long all attacks take together.
    #[arg(long, default_value_t = 60)]
    pub(crate) seconds: u64,
    /// Attack an optimised build.
    #[arg(long)]
    pub(crate) release: bool,
}

/// For how long something goes on.
pub(crate) struct Until {
    clock: Clock,
    limit: Duration,
    /// How many times longer the pauses are: attacks that run together share the processors of one machine with what they
    /// attack.
    slower: u32,
}

impl Until {
    fn new(limit: Duration, slower: u32) -> Self {
        Self { clock: Clock::new(), limit, slower }
    }

    fn is_over(&self) -> bool {
        self.clock.elapsed() >= self.limit
    }
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let mut build = vec!["build", "--quiet", "--package", "kruise-local", "--package", "kruise-manager"];
    build.extend(options.release.then_some("--release"));
    cargo(root, &build, None, None)?;
    let profile = if options.release { "release" } else { "debug" };
    let folder = env::current_exe()?.with_file_name("..").join(profile);
    let (cluster, mut connection, _) =
        Cluster::start_with(&folder.join("kruise-local"), NODES, &["--no-manager"])?;
    configurations(root, &mut connection, "POST")?;
    let kubeconfig = cluster.folder.join("kubeconfig");
    let manager = Manager::start(&folder.join("kruise-manager"), &kubeconfig, &cluster.folder)?;
    Clock::new().until(|| Ok(manager.is_ready() && manager.knows(0.0)))?;
    let targets = Targets::of(&manager)?;
    let before = manager.memory("VmRSS")?;
    let parts = u32::try_from(scripts::ALL.len())? + 1;
    let each = Duration::from_secs(options.seconds) / parts;
    let seen = Mutex::new(Seen::default());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (is_over, seen, targets, manager) = (&is_over, &seen, &targets, &manager);
        let _end = End(is_over);
        scope.spawn(move || probes::admissions(targets, seen, is_over));
        scope.spawn(move || probes::health(targets, seen, is_over));
        scope.spawn(move || probes::memory(manager, seen, is_over));
        for (name, script) in scripts::ALL {
            locked(seen).begin(name);
            script(targets, seen, &Until::new(each, 1));
        }
        locked(seen).begin(TOGETHER);
        thread::scope(|scope| {
            for (_, script) in scripts::ALL {
                scope.spawn(move || script(targets, seen, &Until::new(each, parts)));
            }
        });
    });
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    let peak = manager.memory("VmHWM")? >> 20;
    print!("{seen}");
    println!(
        "{}",
        json!({
            "seconds": options.seconds,
            "admissions": seen.admissions(),
            "worst_admission_milliseconds": seen.worst_admission().as_millis() as u64,
            "worst_health_milliseconds": seen.worst_health().as_millis() as u64,
            "rss_before_mib": before >> 20,
            "rss_peak_mib": peak,
            "answers_413": seen.too_large,
        })
    );
    ensure!(
        seen.failures.is_empty(),
        "{} requests failed: {}",
        seen.failures.len(),
        seen.failures.join("; ")
    );
    ensure!(seen.worst_admission() <= LONGEST, "an admission took {:?}", seen.worst_admission());
    ensure!(seen.worst_health() <= LONGEST, "health took {:?}", seen.worst_health());
    let most = if options.release { MOST_MIB } else { MOST_UNOPTIMISED_MIB };
    ensure!(peak < most, "the manager took {peak} MiB, more than {most}");
    ensure!(seen.too_large > 0, "no ConversionReview of 100 MB was answered with 413 and a reason");
    ensure!(manager.is_ready() && manager.knows(0.0), "the manager is no longer ready, or does not lead");
    Ok(())
}

/// Ends the probes, also where a script panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn locked(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
