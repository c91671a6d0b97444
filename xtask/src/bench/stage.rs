//! Benchmarks of kinds that need no real node: the manager as a process beside an embedded cluster. A stage is a change
//! and the wait for its end; it prints seconds, CPU seconds, requests by verb and code, and reconciles.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use std::{env, thread};

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::local::http::Connection;
use super::local::{Clock, Cluster, ready_nodes};
use super::manager::{Manager, configurations};
use crate::test::cargo;

/// A cluster with so many nodes and a manager that leads.
pub(super) struct Stage {
    pub(super) connection: Connection,
    manager: Manager,
    _cluster: Cluster,
    figures: Map<String, Value>,
}

impl Stage {
    pub(super) fn start(root: &Path, nodes: usize) -> Result<Self> {
        let build =
            ["build", "--quiet", "--release", "--package", "kruise-local", "--package", "kruise-manager"];
        cargo(root, &build, None, None)?;
        let program = env::current_exe()?;
        let (cluster, mut connection, _) =
            Cluster::start_with(&program.with_file_name("kruise-local"), nodes, &["--no-manager"])?;
        let kubeconfig = cluster.folder.join("kubeconfig");
        Clock::new().until(|| Ok(ready_nodes(&mut connection)? == nodes))?;
        configurations(root, &mut connection, "POST")?;
        let program = program.with_file_name("kruise-manager");
        let manager = Manager::start_with(&program, &kubeconfig, &cluster.folder, &[])?;
        Clock::new().until(|| Ok(manager.is_ready()))?;
        // This cluster calls no webhooks over the network; `bench webhook` measures what they cost.
        configurations(root, &mut connection, "DELETE")?;
        Clock::new().until(|| Ok(manager.leads_with("nodes", nodes as f64)))?;
        println!("{nodes} nodes are ready, and the manager leads");
        Ok(Self { connection, manager, _cluster: cluster, figures: Map::new() })
    }

    /// Makes a change, waits until it is done, and records what it cost.
    pub(super) fn measure(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Connection) -> Result<()>,
        mut is_done: impl FnMut(&mut Connection) -> Result<bool>,
    ) -> Result<()> {
        let before = Counters::read(&self.manager)?;
        let clock = Clock::new();
        change(&mut self.connection)?;
        clock.until(|| is_done(&mut self.connection))?;
        let seconds = clock.elapsed().as_secs_f64();
        // Writes that are still on their way belong to this stage.
        thread::sleep(Duration::from_secs(3));
        self.record(name, seconds, &before)
    }

    /// Records what the manager does in this time when nothing changes.
    pub(super) fn idle(&mut self, time: Duration) -> Result<()> {
        let before = Counters::read(&self.manager)?;
        thread::sleep(time);
        self.record("idle", time.as_secs_f64(), &before)
    }

    fn record(&mut self, name: &str, seconds: f64, before: &Counters) -> Result<()> {
        let after = Counters::read(&self.manager)?;
        let cpu = after.cpu - before.cpu;
        let requests = difference(&before.requests, &after.requests);
        let reconciles = difference(&before.reconciles, &after.reconciles);
        println!(
            "{name}: {seconds:.1} s, {cpu:.2} CPU seconds, requests {requests:?}, reconciles {reconciles:?}"
        );
        self.figures.insert(format!("{name}_seconds"), json!(seconds));
        self.figures.insert(format!("{name}_cpu_seconds"), json!(cpu));
        self.figures.insert(format!("{name}_requests"), json!(requests));
        self.figures.insert(format!("{name}_reconciles"), json!(reconciles));
        Ok(())
    }

    /// All that was measured, with the memory of the manager.
    pub(super) fn end(mut self) -> Result<Value> {
        for (name, field) in [("rss_mib", "VmRSS"), ("rss_peak_mib", "VmHWM")] {
            let mib = self.manager.memory(field)? as f64 / f64::from(1 << 20);
            println!("{name} {mib:.1}");
            self.figures.insert(name.to_owned(), json!(mib));
        }
        Ok(Value::Object(self.figures))
    }
}

struct Counters {
    cpu: f64,
    requests: BTreeMap<String, u64>,
    reconciles: BTreeMap<String, u64>,
}

impl Counters {
    fn read(manager: &Manager) -> Result<Self> {
        Ok(Self { cpu: manager.cpu()?, requests: manager.requests()?, reconciles: manager.reconciles()? })
    }
}

fn difference(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    after
        .iter()
        .map(|(key, count)| (key.clone(), count - before.get(key).copied().unwrap_or(0)))
        .filter(|(_, count)| *count > 0)
        .collect()
}
