//! The program itself: flags, exit codes, endpoints. Needs no cluster where it says so, else a real one.

use std::{collections::BTreeSet, process::Command, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kruise_api::gates::Gates;
use kruise_core::{features, object::Resource};
use kruise_testkit::{
    Outcome,
    wait::{eventually, seen},
};

use tokio::time::Instant;

use crate::{
    pods,
    stage::{Stage, launched, network::Line, process::get},
};

/// What the program says and how it ends.
fn run(flags: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kruise-manager"))
        .args(flags)
        .env_remove("KUBECONFIG")
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// PLATFORM-10
#[test]
fn an_unknown_gate_ends_the_program_with_its_name() {
    let (ok, said) = run(&["--feature-gates=NoSuchGate=true"]);
    assert!(!ok);
    assert!(said.contains("unrecognized feature gate: NoSuchGate"), "{said}");
}

/// PLATFORM-11: it goes on to look for a cluster, and there is none here.
#[test]
fn a_gate_under_its_other_name_is_a_warning() {
    let (_, said) = run(&["--feature-gates=EnhancedLivenessProbeGate=true"]);
    assert!(said.contains("EnhancedLivenessProbeGate"), "{said}");
    assert!(!said.contains("unrecognized feature gate"), "{said}");
    assert!(said.contains("failed to find out how to reach the API server"), "{said}");
}

#[test]
fn help_and_mistakes_are_told_apart() {
    assert!(run(&["--help"]).0);
    let (ok, said) = run(&["--cloneset-worker=3"]);
    assert!(!ok && said.contains("--cloneset-workers"), "{said}");
}

/// PLATFORM-12
#[test]
#[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
fn all_alpha_gates_together_start_real() {
    crate::stage::real(
        "all_alpha_gates_together_start",
        &["--feature-gates=AllAlpha=true"],
        async |_: &mut Stage| Ok(()),
    );
}

/// Whoever asks twice does not want to wait: here for the lease, which cannot be given back.
async fn a_second_signal_ends_the_program_at_once(stage: &mut Stage) -> Outcome {
    let line = Line::lay(&stage.kubeconfig()).await;
    let launch = stage.launch().flags(&["--leader-election-id=kruise-manager-signals"]);
    let mut manager = launch.reaching(&line.kubeconfig).ready().await;
    manager.until_leads(Instant::now(), Duration::from_secs(30)).await;
    line.cut();
    manager.signal("-TERM");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(manager.child.try_wait().unwrap().is_none(), "it still wants to give the lease back");
    manager.signal("-TERM");
    let status = manager.until_ended(Duration::from_secs(2)).await;
    assert!(!status.success(), "{status}");
    assert!(manager.log().contains("asked to end a second time"), "{}", manager.log());
    Ok(())
}
launched!(a_second_signal_ends_the_program_at_once);

/// Features that are off ask for nothing.
#[test]
fn a_manager_reads_only_what_its_features_need() {
    crate::stage::served(&["--enable-leader-election=false"], async |stage: &mut Stage| {
        let before = stage.requests().len();
        let _manager = stage.launch().ready().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let mut needed: Vec<String> = features::watches(&Gates::default())
            .into_iter()
            .map(|Resource { group, version, plural, .. }| match group {
                "" => format!("/api/{version}/{plural}"),
                group => format!("/apis/{group}/{version}/{plural}"),
            })
            .collect();
        let platform = [
            "/version",
            "/api/v1/namespaces/kruise-system",
            "/api/v1/namespaces/kruise-system/secrets",
            "/api/v1/namespaces/kruise-system/configmaps",
            "/apis/admissionregistration.k8s.io/",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        ];
        needed.extend(platform.map(str::to_owned));
        let asked: BTreeSet<String> =
            stage.requests().into_iter().skip(before).map(|(_, path)| path).collect();
        let unneeded: Vec<&String> =
            asked.iter().filter(|path| !needed.iter().any(|needed| path.starts_with(needed))).collect();
        assert_eq!(unneeded, [""; 0], "of {asked:?}");
        assert!(asked.contains("/api/v1/pods"), "{asked:?}");
        Ok(())
    });
}

/// What dashboards for the original show, without Go's own.
const METRICS: &[(&str, &str)] = &[
    ("certwatcher_read_certificate_errors_total", "counter"),
    ("certwatcher_read_certificate_total", "counter"),
    ("controller_runtime_active_workers", "gauge"),
    ("controller_runtime_conversion_webhook_panics_total", "counter"),
    ("controller_runtime_max_concurrent_reconciles", "gauge"),
    ("controller_runtime_reconcile_errors_total", "counter"),
    ("controller_runtime_reconcile_panics_total", "counter"),
    ("controller_runtime_reconcile_time_seconds", "histogram"),
    ("controller_runtime_reconcile_total", "counter"),
    ("controller_runtime_terminal_reconcile_errors_total", "counter"),
    ("controller_runtime_webhook_latency_seconds", "histogram"),
    ("controller_runtime_webhook_panics_total", "counter"),
    ("controller_runtime_webhook_requests_in_flight", "gauge"),
    ("controller_runtime_webhook_requests_total", "counter"),
    ("kruise_manager_is_leader", "gauge"),
    ("leader_election_master_status", "gauge"),
    ("leader_election_slowpath_total", "counter"),
    ("process_cpu_seconds_total", "counter"),
    ("process_max_fds", "gauge"),
    ("process_open_fds", "gauge"),
    ("process_resident_memory_bytes", "gauge"),
    ("process_start_time_seconds", "gauge"),
    ("process_virtual_memory_bytes", "gauge"),
    ("process_virtual_memory_max_bytes", "gauge"),
    ("rest_client_requests_total", "counter"),
    ("workqueue_adds_total", "counter"),
    ("workqueue_depth", "gauge"),
    ("workqueue_longest_running_processor_seconds", "gauge"),
    ("workqueue_queue_duration_seconds", "histogram"),
    ("workqueue_retries_total", "counter"),
    ("workqueue_unfinished_work_seconds", "gauge"),
    ("workqueue_work_duration_seconds", "histogram"),
];

/// PLATFORM-33 and PLATFORM-38: probes leave no socket behind, and dashboards find their names.
async fn probes_leave_no_sockets_and_metrics_have_their_names(stage: &mut Stage) -> Outcome {
    let manager = stage.launch().flags(&["--leader-election-id=kruise-manager-probes"]).ready().await;
    let led = eventually("the manager leads", Duration::from_secs(40), async || {
        seen(manager.leads().await, "another one leads")
    });
    led.await.unwrap();
    // Families appear with their first value: something must happen.
    let sandbox = stage.cluster.sandbox("metrics").await;
    sandbox.create::<Pod>(serde_json::to_value(pods::waiting("waits")).unwrap()).await;
    sandbox
        .eventually("the pod has its condition", async || {
            let pod: Pod = sandbox.get("waits").await;
            let text = serde_json::to_string(&pod.status).unwrap();
            seen(text.contains("KruisePodReady"), text)
        })
        .await;
    // A pass is counted when it ends, which is after others see what it wrote.
    let complete = eventually("every metric is there", Duration::from_secs(10), async || {
        let text = manager.metrics().await;
        let here = |&&(name, kind): &&(&str, &str)| text.contains(&format!("# TYPE {name} {kind}\n"));
        let missing: Vec<_> = METRICS.iter().filter(|metric| !here(metric)).collect();
        seen(missing.is_empty(), format!("{missing:?} of {text}"))
    });
    complete.await.unwrap();
    for _ in 0..20 {
        get(manager.health, "/readyz").await.unwrap();
    }
    let before = manager.open_files();
    let mut most = 0;
    for poll in 0..3000 {
        assert_eq!(get(manager.health, "/readyz").await.unwrap().0, 200);
        if poll % 100 == 0 {
            most = most.max(manager.open_files());
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("open files: {before} before, at most {most}, {} after 3000 polls", manager.open_files());
    assert!(manager.open_files() <= before + 2 && most <= before + 10, "{before} became {most}");
    Ok(())
}
launched!(probes_leave_no_sockets_and_metrics_have_their_names);
