//! The program itself: flags, exit codes, endpoints. Needs no cluster where it says so, else a real one.

use std::{process::Command, time::Duration};

use kruise_testkit::{
    Outcome,
    wait::{eventually, seen},
};

use crate::stage::{Stage, get};

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

/// PLATFORM-33 and PLATFORM-38: probes leave no socket behind, and dashboards find their names.
#[test]
#[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
fn probes_leave_no_sockets_and_metrics_have_their_names_real() {
    async fn scenario(stage: &mut Stage) -> Outcome {
        let led = eventually("the manager leads", Duration::from_secs(40), async || {
            let leads = stage.metrics().await.lines().any(|line| line == "kruise_manager_is_leader 1");
            seen(leads, "another one leads")
        });
        led.await.unwrap();
        let text = stage.metrics().await;
        for name in [
            "kruise_manager_is_leader",
            "leader_election_master_status",
            "controller_runtime_max_concurrent_reconciles",
            "controller_runtime_webhook_panics_total",
            "process_resident_memory_bytes",
        ] {
            assert!(text.contains(&format!("# TYPE {name} ")), "{name} is missing:\n{text}");
        }
        let other = stage.process();
        let files = || std::fs::read_dir(format!("/proc/{}/fd", other.child.id())).unwrap().count();
        for _ in 0..20 {
            get(other.health, "/readyz").await.unwrap();
        }
        let before = files();
        for _ in 0..400 {
            assert_eq!(get(other.health, "/readyz").await.unwrap().0, 200);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(files() <= before + 2, "{before} open files before, {} after", files());
        Ok(())
    }
    crate::stage::real("probes", &[], scenario);
}
