//! `binding`: how a scheduler gives a pod its node.

use kruise_api::json::pointer as at;
use serde_json::{Value, json};

use super::super::decode::expect_kind;
use super::super::{Target, WriteOptions, plugins};
use super::set_condition;
use crate::admission::Operation;
use crate::field;
use crate::server::ApiServer;
use crate::status::{GroupResource, Status};

const BINDING: GroupResource<'static> = GroupResource::new("", "pods/binding");

impl ApiServer {
    pub(super) async fn bind(
        &self,
        target: &Target,
        mut binding: Value,
        options: &WriteOptions,
    ) -> Result<(), Status> {
        expect_kind(&mut binding, "v1", "Binding", false)?;
        if at(&binding, "/target/kind").and_then(Value::as_str) == Some("Node") {
            let node = at(&binding, "/target/name").and_then(Value::as_str).unwrap_or_default().to_owned();
            plugins::topology_labels(self, &node, &mut binding);
        }
        self.admit_sub(target, Operation::Create, &mut binding, None, |_| Ok(()), options).await?;
        let text = |path: &str| at(&binding, path).and_then(Value::as_str).unwrap_or_default();
        let mut errors = Vec::new();
        if !matches!(text("/target/kind"), "" | "Node") {
            errors.push(field::Error::not_supported(
                "target.kind",
                text("/target/kind"),
                &["Node", "<empty>"],
            ));
        }
        if text("/target/name").is_empty() {
            errors.push(field::Error::required("target.name", ""));
        }
        if !errors.is_empty() {
            // The real server lets this escape without a reason.
            return Err(Status::failure(500, "", field::aggregate(&errors)));
        }
        let node = text("/target/name");
        let uid = text("/metadata/uid");
        let now = self.clock().now_text();
        let name = &target.name;
        self.rewrite(target, options.dry_run, |pod, record| {
            let is = |path: &str| at(pod, path).and_then(Value::as_str).unwrap_or_default();
            let conflict = |why: String| Status::conflict(BINDING, name, why);
            if !uid.is_empty() && uid != is("/metadata/uid") {
                let why = format!(
                    "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                    is("/metadata/uid")
                );
                return Err(conflict(why));
            }
            if at(pod, "/metadata/deletionTimestamp").is_some() {
                return Err(conflict(format!("pod {name} is being deleted, cannot be assigned to a host")));
            }
            if !is("/spec/nodeName").is_empty() {
                return Err(conflict(format!("pod {name} is already assigned to node \"{}\"", is("/spec/nodeName"))));
            }
            let gates = at(pod, "/spec/schedulingGates").and_then(Value::as_array);
            if gates.is_some_and(|gates| !gates.is_empty()) {
                return Err(conflict(format!("pod {name} has non-empty .spec.schedulingGates")));
            }
            if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
                spec.insert("nodeName".to_owned(), json!(node));
            }
            // Where the pod might have gone says nothing any more.
            if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
                status.remove("nominatedNodeName");
            }
            for part in ["annotations", "labels"] {
                let added = binding.get("metadata").and_then(|meta| meta.get(part)).and_then(Value::as_object);
                if let Some(added) = added.filter(|added| !added.is_empty())
                    && let Some(meta) = pod.get_mut("metadata").and_then(Value::as_object_mut)
                    && let Some(own) = meta.entry(part).or_insert_with(|| json!({})).as_object_mut()
                {
                    own.extend(added.clone());
                }
            }
            set_condition(
                pod,
                json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
            );
            Ok(record.managed.clone())
        })
        .await?;
        Ok(())
    }
}
