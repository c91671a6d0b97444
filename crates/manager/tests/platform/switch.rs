//! Our files are applied over a running installation, and programs are switched.

use std::time::Duration;

use kruise_api::{
    catalogue::CRDS,
    crd::{Conversion, Crd},
    gates::Gates,
};
use kruise_core::features::webhooks;
use kruise_testkit::{
    Outcome,
    wait::{eventually, seen},
};
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use crate::stage::{Stage, launched};

const CLIENT: &str = "/spec/conversion/webhook/clientConfig";

/// `kubectl apply --server-side --force-conflicts -f FILE`.
async fn apply(stage: &Stage, object: &Value) -> Result<Value, String> {
    let name = object["metadata"]["name"].as_str().unwrap();
    let params = PatchParams::apply("kubectl").force();
    match stage.api(object).patch(name, &params, &Patch::Apply(object)).await {
        Ok(applied) => Ok(serde_json::to_value(applied).unwrap()),
        Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
        Err(error) => Err(error.to_string()),
    }
}

fn converted() -> impl Iterator<Item = &'static Crd> {
    CRDS.iter().copied().filter(|crd| matches!(crd.conversion, Conversion::Webhook(_)))
}

/// Waits until the manager has registered itself by its URL everywhere.
async fn until_registered(stage: &Stage) {
    let registered = eventually("the manager is registered by URL", Duration::from_secs(60), async || {
        let mut others = Vec::new();
        for crd in converted() {
            let object = serde_json::to_value(stage.definitions().get(&crd.name()).await.unwrap()).unwrap();
            let client = object.pointer(CLIENT).cloned().unwrap_or_default();
            if client["url"].is_null() || client["service"].is_object() || client["caBundle"].is_null() {
                others.push(format!("{}: {client}", crd.name()));
            }
        }
        for configuration in webhooks::configurations(&Gates::default(), &webhooks::Options::default()) {
            let name = configuration["metadata"]["name"].as_str().unwrap();
            let object = stage.api(&configuration).get(name).await.unwrap();
            for webhook in object.data["webhooks"].as_array().into_iter().flatten() {
                if webhook["clientConfig"]["url"].is_null() {
                    others.push(webhook["name"].to_string());
                }
            }
        }
        seen(others.is_empty(), others.join(", "))
    });
    registered.await.unwrap();
}

/// Files say where a Service is, and a manager outside of the cluster is registered by a URL: both together are refused.
async fn our_files_can_be_applied_again_over_a_manager_outside(stage: &mut Stage) -> Outcome {
    for crd in CRDS {
        apply(stage, &crd.manifest()).await.unwrap();
    }
    let manager = stage.launch().flags(&["--enable-leader-election=false"]).ready().await;
    until_registered(stage).await;
    for _ in 0..2 {
        for crd in CRDS {
            let applied = apply(stage, &crd.manifest()).await;
            applied.unwrap_or_else(|refused| panic!("{}: {refused}", crd.name()));
        }
        for configuration in webhooks::manifests(&Gates::default(), &webhooks::Options::default()) {
            apply(stage, &configuration).await.unwrap();
        }
        until_registered(stage).await;
    }
    // Another program's files know nothing of the URL, and are refused while it is there.
    drop(manager);
    let crd = converted().next().unwrap();
    let foreign = crd.object();
    let refused = apply(stage, &foreign).await.unwrap_err();
    assert!(refused.contains("exactly one of url or service is required"), "{refused}");
    // Ours first, as the page says: then they are taken.
    let applied = apply(stage, &crd.manifest()).await.unwrap();
    let client = applied.pointer(CLIENT).unwrap();
    assert!(client.get("url").is_none() && client["service"]["path"] == "/convert", "{client}");
    let applied = apply(stage, &foreign).await.unwrap();
    assert!(applied.pointer(CLIENT).unwrap()["service"].is_object());
    Ok(())
}
launched!(our_files_can_be_applied_again_over_a_manager_outside);
