//! Revisions: which ReplicaSet has the deployment's template, and its number.

use serde_json::{Value, json};

use super::super::object::{annotate, annotation, condition, controller_reference, number, text};
use super::{
    DESIRED, HASH_LABEL, HISTORY, MAXIMUM, Pass, REVISION, name, numbers, progress, replicas, sum, uid,
};
use crate::status::Status;

/// Annotations that a ReplicaSet does not take over from its deployment.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
];

/// The revision number of a ReplicaSet.
pub(super) fn of(set: &Value) -> i64 {
    annotation(set, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The oldest set whose template is the deployment's.
pub(super) fn find_new(pass: &Pass<'_>) -> Option<Value> {
    let wanted = pass.deployment.pointer("/spec/template")?;
    pass.all.iter().find(|set| same_template(set.pointer("/spec/template"), wanted)).cloned()
}

fn same_template(template: Option<&Value>, wanted: &Value) -> bool {
    let without_hash = |template: &Value| {
        let mut template = template.clone();
        if let Some(meta) = template.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.remove("creationTimestamp");
            if let Some(labels) = meta.get_mut("labels").and_then(Value::as_object_mut) {
                labels.remove(HASH_LABEL);
            }
        }
        template
    };
    template.is_some_and(|template| without_hash(template) == without_hash(wanted))
}

/// The set of the current template, made if asked, with its revision number the highest.
pub(super) async fn new_set(pass: &mut Pass<'_>, make: bool) -> Result<Option<Value>, Status> {
    let found = find_new(pass);
    let found_uid = found.as_ref().map(|set| uid(set).to_owned()).unwrap_or_default();
    let highest = pass.all.iter().filter(|set| uid(set) != found_uid).map(of).max().unwrap_or(0);
    let next = highest + 1;
    match found {
        Some(set) => renew(pass, set, next).await.map(Some),
        None if make => create(pass, next).await.map(Some),
        None => Ok(None),
    }
}

async fn renew(pass: &mut Pass<'_>, set: Value, next: i64) -> Result<Value, Status> {
    let mut changed = set.clone();
    take_annotations(&mut changed, &pass.deployment);
    let before = of(&set);
    if before < next {
        annotate(&mut changed, REVISION, &next.to_string());
        if before > 0 {
            let history = annotation(&set, HISTORY).filter(|text| !text.is_empty());
            let history = history.map_or(before.to_string(), |text| format!("{text},{before}"));
            annotate(&mut changed, HISTORY, &history);
        }
    }
    match pass.deployment.pointer("/spec/minReadySeconds") {
        Some(seconds) => super::super::object::set(&mut changed, "spec", "minReadySeconds", seconds.clone()),
        None => {
            if let Some(spec) = changed.get_mut("spec").and_then(Value::as_object_mut) {
                spec.remove("minReadySeconds");
            }
        }
    }
    let set = if changed == set {
        set
    } else {
        let written = pass.cx.client.update(&pass.sets, None, changed).await?.value();
        pass.remember(&written);
        written
    };
    let missing =
        progress::has_deadline(&pass.deployment) && condition(&pass.deployment, "Progressing").is_none();
    if missing {
        let message = format!("Found new replica set \"{}\"", name(&set));
        tell(pass, "FoundNewReplicaSet", &message).await?;
    }
    number_deployment(pass, of(&set)).await?;
    Ok(set)
}

async fn tell(pass: &mut Pass<'_>, reason: &str, message: &str) -> Result<(), Status> {
    let mut changed = pass.deployment.clone();
    progress::set(&mut changed, "Progressing", "True", reason, message, &pass.cx.now_text());
    pass.put_status(changed).await
}

/// The deployment carries the number of its current revision.
async fn number_deployment(pass: &mut Pass<'_>, revision: i64) -> Result<(), Status> {
    let mut changed = pass.deployment.clone();
    if annotate(&mut changed, REVISION, &revision.to_string()) {
        // With the status: a change of annotations otherwise counts as a new generation.
        pass.deployment = pass.cx.client.update(&pass.deployments, Some("status"), changed).await?.value();
    }
    Ok(())
}

async fn create(pass: &mut Pass<'_>, revision: i64) -> Result<Value, Status> {
    let deployment = pass.deployment.clone();
    let template = deployment.pointer("/spec/template").cloned().unwrap_or_default();
    let collisions = number(&deployment, "/status/collisionCount");
    let hash = hash(&template, collisions);
    let labelled = |mut labels: Value| {
        if let Some(map) = labels.as_object_mut() {
            map.insert(HASH_LABEL.to_owned(), json!(hash));
        }
        labels
    };
    let labels = labelled(template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({})));
    let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or_else(|| json!({}));
    let chosen = selector.get("matchLabels").cloned().unwrap_or_else(|| json!({}));
    if let Some(map) = selector.as_object_mut() {
        map.insert("matchLabels".to_owned(), labelled(chosen));
    }
    let mut template = template;
    super::super::object::set(&mut template, "metadata", "labels", labels.clone());
    let size = numbers::new_size(&deployment, sum(&pass.all, replicas), 0);
    let mut set = json!({
        "metadata": {
            "name": format!("{}-{hash}", name(&deployment)), "namespace": text(&deployment, "/metadata/namespace"),
            "labels": labels, "ownerReferences": [controller_reference(&pass.deployments, &deployment)],
        },
        "spec": {"replicas": size, "selector": selector, "template": template},
    });
    if let Some(seconds) = deployment.pointer("/spec/minReadySeconds") {
        super::super::object::set(&mut set, "spec", "minReadySeconds", seconds.clone());
    }
    take_annotations(&mut set, &deployment);
    annotate(&mut set, REVISION, &revision.to_string());
    annotate(&mut set, DESIRED, &replicas(&deployment).to_string());
    let maximum = replicas(&deployment) + numbers::max_surge(&deployment);
    annotate(&mut set, MAXIMUM, &maximum.to_string());
    let made = pass.cx.client.create(&pass.sets, text(&deployment, "/metadata/namespace"), set).await;
    let made = match made {
        Ok(record) => record.value(),
        Err(status) => return Err(refused(pass, status, collisions).await),
    };
    pass.remember(&made);
    if size > 0 {
        let message = format!("Scaled up replica set {} from 0 to {size}", name(&made));
        pass.event("Normal", "ScalingReplicaSet", &message).await;
    }
    if progress::has_deadline(&pass.deployment) {
        let message = format!("Created new replica set \"{}\"", name(&made));
        tell(pass, "NewReplicaSetCreated", &message).await?;
    }
    number_deployment(pass, revision).await?;
    Ok(made)
}

/// A name that is taken is tried with another hash; other failures are told.
async fn refused(pass: &mut Pass<'_>, status: Status, collisions: Option<i64>) -> Status {
    if status.reason == "AlreadyExists" {
        let mut changed = pass.deployment.clone();
        super::super::object::set(
            &mut changed,
            "status",
            "collisionCount",
            json!(collisions.unwrap_or(0) + 1),
        );
        if let Err(other) = pass.put_status(changed).await {
            return other;
        }
        return status;
    }
    let message = format!("Failed to create new replica set: {}", status.message);
    if progress::has_deadline(&pass.deployment) {
        let mut changed = pass.deployment.clone();
        let now = pass.cx.now_text();
        progress::set(&mut changed, "Progressing", "False", "ReplicaSetCreateError", &status.message, &now);
        if let Err(other) = pass.put_status(changed).await {
            return other;
        }
    }
    pass.event("Warning", "ReplicaSetCreateError", &message).await;
    status
}

fn take_annotations(set: &mut Value, deployment: &Value) {
    let annotations = deployment.pointer("/metadata/annotations").and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        if !OWN.contains(&key.as_str()) {
            annotate(set, key, value.as_str().unwrap_or_default());
        }
    }
}

/// A short name of a template: FNV-1a of its JSON, in letters that spell no words.
pub(in super::super) fn hash(template: &Value, collisions: Option<i64>) -> String {
    let mut bytes = template.to_string().into_bytes();
    if let Some(collisions) = collisions {
        bytes.extend_from_slice(&collisions.to_le_bytes());
    }
    let hash =
        bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    hash.to_string()
        .bytes()
        .map(|digit| char::from(LETTERS.get(usize::from(digit) % LETTERS.len()).copied().unwrap_or(b'b')))
        .collect()
}
