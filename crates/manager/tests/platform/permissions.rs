//! The generated roles are enough, on a cluster that asks for them.

use std::{path::PathBuf, process::Command, time::Duration};

use k8s_openapi::api::{apps::v1::ControllerRevision, core::v1::Pod};
use kruise_api::{gates::Gates, names};
use kruise_core::features::rbac;
use kruise_testkit::wait::{Look, eventually, seen};
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    pods,
    stage::{Stage, network::Door},
};

/// A kubeconfig of a service account in our namespace.
async fn kubeconfig(stage: &Stage, account: &str, folder: &tempfile::TempDir) -> PathBuf {
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/{account}/token", names::NAMESPACE);
    let wanted = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600},
    });
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(wanted.to_string().into_bytes()).unwrap();
    let answer: Value = stage.cluster.client().request(request).await.unwrap();
    let mut config = serde_json::to_value(Kubeconfig::read_from(stage.kubeconfig()).unwrap()).unwrap();
    config["users"][0]["user"] = json!({"token": answer["status"]["token"]});
    let file = folder.path().join(account);
    std::fs::write(&file, config.to_string()).unwrap();
    file
}

/// The manager needs no more than its roles allow: certificates, election, webhooks, events and controllers.
#[test]
#[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
fn the_generated_roles_are_enough_for_the_manager_real() {
    crate::stage::prepared("roles", &[], async |stage: &mut Stage| {
        let sandbox = stage.cluster.sandbox("roles").await;
        let config = json!({"name": names::DAEMON_CONFIG_NAMESPACE});
        stage.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": config})).await;
        for object in rbac::objects(&Gates::default()) {
            stage.put(object).await;
        }
        let folder = tempfile::tempdir().unwrap();
        let account = kubeconfig(stage, rbac::MANAGER_ACCOUNT, &folder).await;
        let door = Door::open().await;
        let flags = ["--leader-election-id=kruise-manager-roles"];
        let manager = stage.launch().flags(&flags).reaching(&account).behind(&door).ready().await;
        manager.until_leads(Instant::now(), Duration::from_secs(30)).await;
        let pod: Pod = sandbox.create(serde_json::to_value(pods::waiting("waits")).unwrap()).await;
        assert!(pod.status.is_some());
        let set = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
            "metadata": {"name": "web", "namespace": sandbox.namespace()},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "main", "image": "app:v1"}]}}},
        });
        stage.create(set.clone()).await.unwrap();
        let worked = eventually("everything is done", Duration::from_secs(30), async || {
            let pods: Vec<Pod> = sandbox.list().await;
            let revisions: Vec<ControllerRevision> = sandbox.list().await;
            let status = stage.api(&set).get("web").await.unwrap().data["status"].clone();
            let done = pods.len() == 3 && revisions.len() == 1 && status["replicas"] == 2;
            seen(done, format!("{} pods, {} revisions, {status}", pods.len(), revisions.len()))
        });
        worked.await.unwrap();
        stage.api(&set).delete("web", &kube::api::DeleteParams::foreground()).await.unwrap();
        // The garbage collector stands still while it learns new kinds, for up to a minute each time.
        let gone = eventually("the set is gone", Duration::from_secs(150), async || {
            match stage.api(&set).get_opt("web").await.unwrap() {
                None => Look::Yes(()),
                Some(set) => Look::No(format!("{:?}", set.metadata.finalizers)),
            }
        });
        gone.await.unwrap();
        let log = manager.log();
        assert!(!log.to_lowercase().contains("forbidden"), "{log}");
        Ok(())
    });
}

/// The command that moves stored objects needs no more than the role of its account.
#[test]
#[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
fn the_generated_role_is_enough_for_the_migration_real() {
    crate::stage::prepared("migration-role", &[], async |stage: &mut Stage| {
        let sandbox = stage.cluster.sandbox("roles").await;
        for object in rbac::migration() {
            stage.put(object).await;
        }
        let folder = tempfile::tempdir().unwrap();
        let account = kubeconfig(stage, "kruise-storage-migration", &folder).await;
        // Whoever leads must not change what is moved.
        let _manager = stage.launch().flags(&["--namespace=kruise-system"]).ready().await;
        let budget = json!({
            "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
            "metadata": {"name": "web", "namespace": sandbox.namespace()},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
        });
        stage.create(budget).await.unwrap();
        let run = |flags: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_kruise-manager"));
            command.args(["migrate-storage", "--settle-seconds=3", "--kubeconfig"]).arg(&account).args(flags);
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
            said
        };
        let name = "podunavailablebudgets.policy.kruise.io";
        let said = run(&["--to", "openkruise-1.9"]);
        assert!(said.contains(&format!("{name}: rewrote 1 objects as v1alpha1")), "{said}");
        let said = run(&["--dry-run"]);
        assert!(said.contains(&format!("{name}: would rewrite 1 objects as v1beta1")), "{said}");
        let said = run(&[]);
        assert!(said.contains(&format!("{name}: rewrote 1 objects as v1beta1")), "{said}");
        assert!(run(&[]).lines().all(|line| line.contains("stored as")), "nothing is left to do");
        Ok(())
    });
}
