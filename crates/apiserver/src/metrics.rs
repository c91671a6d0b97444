//! `metrics.k8s.io`: how much nodes and pods use now. Objects of this group are worked out when they are asked for.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::clock::seconds_text;
use crate::registry::{BuiltIn, Resource, StatusPart};
use crate::rest::{ListOptions, Page, Target};
use crate::server::ApiServer;
use crate::status::{GroupResource, Status};
use crate::store::{Draft, Record};
use crate::table::Printer;

/// The group.
pub const GROUP: &str = "metrics.k8s.io";
const VERSION: &str = "v1beta1";
/// Over how many seconds usage is measured.
pub const WINDOW_SECONDS: i64 = 15;

/// What something uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Billionths of a processor.
    pub cpu_nanos: i64,
    /// Bytes.
    pub memory_bytes: i64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu_nanos: self.cpu_nanos.saturating_add(other.cpu_nanos),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
        }
    }

    fn to_json(self) -> Value {
        json!({"cpu": format!("{}n", self.cpu_nanos), "memory": format!("{}Ki", self.memory_bytes / 1024)})
    }
}

/// What the containers of a pod use, in the order of its spec.
pub type PodUsage = Vec<(String, Usage)>;

/// Who knows what nodes and pods use.
pub trait Source: Send + Sync {
    /// The usage of each pod; nothing for those that do not run.
    fn pods(&self, pods: &[Arc<Record>]) -> Vec<Option<PodUsage>>;

    /// The usage of each node; nothing for those that do not answer.
    fn nodes(&self, nodes: &[Arc<Record>]) -> Vec<Option<Usage>>;
}

/// The two resources of the group.
pub(crate) fn resources() -> [Resource; 2] {
    [resource("NodeMetrics", "nodes", false), resource("PodMetrics", "pods", true)]
}

fn resource(kind: &'static str, plural: &'static str, namespaced: bool) -> Resource {
    Resource {
        group: GROUP.into(),
        version: VERSION.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        plural: plural.into(),
        singular: "".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced,
        verbs: vec!["get", "list"],
        subresources: Vec::new(),
        table: Arc::from(format!("{GROUP}/{plural}")),
        storage_api_version: format!("{GROUP}/{VERSION}").into(),
        status: StatusPart::None,
        generation: false,
        create_on_update: false,
        unconditional_update: false,
        returns_deleted: false,
        scale: None,
        deprecation: None,
        selectable: Arc::default(),
        custom: false,
        printer: Printer::built_in(GROUP, kind),
        schema: None,
        rules: Arc::new(BuiltIn),
    }
}

impl ApiServer {
    /// The metrics of one node or pod.
    pub(crate) fn metrics(&self, target: &Target) -> Result<Arc<Record>, Status> {
        let missing = || {
            let (kind, name) = match target.namespace.as_str() {
                "" => ("nodemetrics", target.name.clone()),
                namespace => ("podmetrics", format!("{namespace}/{}", target.name)),
            };
            Status::not_found(GroupResource::new(GROUP, kind), &name)
        };
        let table = format!("/{}", target.resource.plural);
        let record = self.store().get(&table, &target.namespace, &target.name).ok_or_else(missing)?;
        self.measure(&target.resource, &[record]).pop().ok_or_else(missing)
    }

    /// The metrics of all nodes, or of the pods of a namespace or of all.
    pub(crate) fn list_metrics(&self, target: &Target, options: &ListOptions) -> Page {
        let namespace = Some(target.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let (version, mut records) = self.store().list(&format!("/{}", target.resource.plural), namespace);
        records.retain(|record| options.selection.matches(record));
        let records = self.measure(&target.resource, &records);
        Page { version, records, continuation: None, remaining: None }
    }

    fn measure(&self, resource: &Resource, records: &[Arc<Record>]) -> Vec<Arc<Record>> {
        let Some(source) = self.metrics_source() else { return Vec::new() };
        let now = seconds_text(self.clock().now());
        let object = |record: &Record, key: &str, value: Value| {
            let mut metadata = Map::new();
            metadata.insert("name".to_owned(), json!(&*record.name));
            if !record.namespace.is_empty() {
                metadata.insert("namespace".to_owned(), json!(*record.namespace));
            }
            metadata.insert("creationTimestamp".to_owned(), json!(now));
            let labels: Map<String, Value> =
                record.labels.iter().map(|(key, value)| (key.to_string(), json!(value))).collect();
            if !labels.is_empty() {
                metadata.insert("labels".to_owned(), Value::Object(labels));
            }
            let object = json!({
                "kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata, "timestamp": now,
                "window": format!("{WINDOW_SECONDS}s"), key: value,
            });
            Record::encode(Draft::new(object), None).ok().map(Arc::new)
        };
        let measured: Vec<Option<Value>> = if resource.namespaced {
            let container = |(name, usage): (String, Usage)| json!({"name": name, "usage": usage.to_json()});
            let list = |pod: PodUsage| Value::Array(pod.into_iter().map(container).collect());
            source.pods(records).into_iter().map(|pod| pod.map(list)).collect()
        } else {
            source.nodes(records).into_iter().map(|node| node.map(Usage::to_json)).collect()
        };
        let key = if resource.namespaced { "containers" } else { "usage" };
        records.iter().zip(measured).filter_map(|(record, value)| object(record, key, value?)).collect()
    }
}
