//! What a CloneSet or a StatefulSet costs: pods created, updated in place, replaced and removed, on a cluster with hollow
//! nodes.
//!
//! The original's CloneSet with a thousand pods on such a machine (Kubernetes 1.35, 10 hollow nodes, 30 requests per second): create 136 s and 16.3 CPU
//! seconds, in place 160 s and 13.2, recreate 181 s and 17.2, scale to zero 32 s and 4.0, peak memory 142 MB. Bars: a
//! third of its CPU and memory, half of its time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, thread};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::local::Clock;
use crate::installation::Installation;
use crate::test::cargo;

const NAMESPACE: &str = "bench-rollout";
const PATIENCE: Duration = Duration::from_secs(900);

/// Which workload is measured.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Kind {
    /// A CloneSet, a quarter of its pods at once.
    Cloneset,
    /// A StatefulSet with the Parallel policy, a tenth of its pods at once.
    Statefulset,
    /// A StatefulSet with the OrderedReady policy, a tenth of its pods at once.
    StatefulsetOrdered,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Cloneset => "CloneSet",
            Self::Statefulset | Self::StatefulsetOrdered => "StatefulSet",
        }
    }

    /// With the group, because Kubernetes has a StatefulSet too.
    fn resource(self) -> String {
        format!("{}s.apps.kruise.io/bench", self.name().to_lowercase())
    }

    /// What the kinds say in different ways.
    fn spec(self, policy: &str) -> Value {
        let parallel = if self == Self::StatefulsetOrdered { "OrderedReady" } else { "Parallel" };
        match self {
            Self::Cloneset => json!({
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": policy, "maxUnavailable": "25%"}},
            }),
            Self::Statefulset | Self::StatefulsetOrdered => json!({
                "serviceName": "bench", "podManagementPolicy": parallel,
                "scaleStrategy": {"maxUnavailable": "10%"},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": policy, "maxUnavailable": "10%"}},
            }),
        }
    }
}

pub(super) fn run(root: &Path, kind: Kind, replicas: u32) -> Result<Value> {
    cargo(root, &["build", "--quiet", "--release", "--package", "kruise-manager"], None, None)?;
    let own = env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let kubeconfig = own.context("KUBECONFIG names no cluster; `cargo xtask cluster up` starts one")?;
    let mut bench =
        Bench { installation: Installation::start(root, &kubeconfig)?, kind, replicas, figures: Map::new() };
    let outcome = bench.stages();
    let _ = bench.installation.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"], None);
    bench.installation.end(outcome.is_ok());
    outcome?;
    Ok(Value::Object(bench.figures))
}

struct Bench {
    installation: Installation,
    kind: Kind,
    replicas: u32,
    figures: Map<String, Value>,
}

impl Bench {
    fn stages(&mut self) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.installation.apply(&namespace)?;
        let (kind, replicas) = (self.kind, self.replicas);
        self.stage("create", &set(kind, replicas, "v1", "InPlaceIfPossible"))?;
        self.stage("in_place", &set(kind, replicas, "v2", "InPlaceIfPossible"))?;
        self.stage("recreate", &set(kind, replicas, "v3", "ReCreate"))?;
        self.stage("scale_to_zero", &set(kind, 0, "v3", "ReCreate"))?;
        let peak = self.installation.manager.memory("VmHWM")? as f64 / 1e6;
        println!("peak memory {peak:.0} MB");
        self.figures.insert("peak_memory_megabytes".to_owned(), json!(peak));
        Ok(())
    }

    fn stage(&mut self, name: &str, object: &Value) -> Result<()> {
        let (cpu, requests, clock) =
            (self.installation.manager.cpu()?, self.installation.manager.requests()?, Clock::new());
        self.installation.apply(object)?;
        while !self.is_done()? {
            ensure!(clock.elapsed() < PATIENCE, "{name} was not done after {PATIENCE:?}");
            thread::sleep(Duration::from_millis(500));
        }
        let seconds = clock.elapsed().as_secs_f64();
        // What is still under way belongs to this stage.
        thread::sleep(Duration::from_secs(3));
        let cpu = self.installation.manager.cpu()? - cpu;
        let after = self.installation.manager.requests()?;
        let made: BTreeMap<&String, u64> = after
            .iter()
            .map(|(kind, count)| (kind, count - requests.get(kind).copied().unwrap_or(0)))
            .filter(|(_, count)| *count > 0)
            .collect();
        println!("{name}: {seconds:.1} s, {cpu:.2} CPU seconds, requests {made:?}");
        self.figures.insert(format!("{name}_seconds"), json!(seconds));
        self.figures.insert(format!("{name}_cpu_seconds"), json!(cpu));
        self.figures.insert(format!("{name}_requests"), json!(made));
        Ok(())
    }

    /// Whether every pod is updated and available, and no other is left.
    fn is_done(&self) -> Result<bool> {
        let resource = self.kind.resource();
        let text = self.installation.kubectl(&["get", &resource, "-n", NAMESPACE, "-o", "json"], None)?;
        let set: Value = serde_json::from_str(&text)?;
        let number = |path: &str| set.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let wanted = number("/spec/replicas");
        Ok(number("/status/observedGeneration") == number("/metadata/generation")
            && number("/status/replicas") == wanted
            && number("/status/updatedAvailableReplicas") == wanted
            && set.pointer("/status/currentRevision") == set.pointer("/status/updateRevision"))
    }
}

fn set(kind: Kind, replicas: u32, version: &str, policy: &str) -> Value {
    let mut set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": kind.name(),
        "metadata": {"name": "bench", "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "bench"}},
            "template": {
                "metadata": {"labels": {"app": "bench"}},
                "spec": {
                    "nodeSelector": {"kruise-rs.io/node-type": "hollow"},
                    "terminationGracePeriodSeconds": 1,
                    // Pulled once for each node. By default every pod pulls, and nodes refuse more than a few pulls per
                    // second and then wait for up to minutes, which is their time and not the manager's.
                    "containers": [{
                        "name": "main", "image": format!("registry.example/app:{version}"), "imagePullPolicy": "IfNotPresent",
                    }],
                },
            },
        },
    });
    if let (Some(spec), Value::Object(own)) =
        (set.get_mut("spec").and_then(Value::as_object_mut), kind.spec(policy))
    {
        spec.extend(own);
    }
    // Updates in place need it, and only CloneSets add it by themselves.
    if kind != Kind::Cloneset
        && let Some(template) = set.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut)
    {
        template.insert("readinessGates".to_owned(), json!([{"conditionType": "InPlaceUpdateReady"}]));
    }
    set
}
