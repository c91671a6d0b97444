//! Schemas of the built-in types, made once from the types and then kept.

use super::Gvk;
use super::patch_keys::PATCH_KEYS;
use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, authentication::v1 as authentication,
    authorization::v1 as authorization, autoscaling::v1 as autoscaling_v1, autoscaling::v2 as autoscaling_v2,
    batch::v1 as batch, coordination::v1 as coordination, core::v1 as core, discovery::v1 as discovery,
    events::v1 as events, networking::v1 as networking, node::v1 as node, policy::v1 as policy,
    rbac::v1 as rbac, scheduling::v1 as scheduling, storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

struct Schemas {
    by_name: Map<String, Value>,
    names: BTreeMap<Gvk, String>,
}

/// The name of the schema of a built-in kind: `io.k8s.api.core.v1.Pod`.
pub(super) fn schema_name(gvk: &Gvk) -> Option<String> {
    schemas().names.get(gvk).cloned()
}

/// The schema of that name.
pub(super) fn schema(name: &str) -> Option<Value> {
    schemas().by_name.get(name).cloned()
}

/// The kind whose schema has that name.
pub(super) fn kind_of(name: &str) -> Option<Gvk> {
    schemas().names.iter().find(|(_, found)| *found == name).map(|(gvk, _)| gvk.clone())
}

/// The one store of schemas. It is a constant that is too large to write down.
fn schemas() -> &'static Schemas {
    static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
    SCHEMAS.get_or_init(build)
}

struct Builder {
    generator: SchemaGenerator,
    names: BTreeMap<Gvk, String>,
}

impl Builder {
    fn kind<K: JsonSchema + k8s_openapi::Resource>(&mut self) -> &mut Self {
        self.generator.subschema_for::<K>();
        self.names.insert(Gvk::new(K::GROUP, K::VERSION, K::KIND), K::schema_name().into_owned());
        self
    }

    fn part<T: JsonSchema>(&mut self) -> &mut Self {
        self.generator.subschema_for::<T>();
        self
    }
}

fn build() -> Schemas {
    let mut builder = Builder {
        generator: SchemaSettings::openapi3().with(|settings| settings.meta_schema = None).into_generator(),
        names: BTreeMap::new(),
    };
    builder
        .part::<meta::ObjectMeta>()
        .part::<meta::ListMeta>()
        .part::<meta::DeleteOptions>()
        .part::<meta::Status>()
        .part::<meta::Patch>();
    builder
        .kind::<core::Binding>()
        .kind::<core::ConfigMap>()
        .kind::<core::Endpoints>()
        .kind::<core::Event>()
        .kind::<core::LimitRange>()
        .kind::<core::Namespace>()
        .kind::<core::Node>()
        .kind::<core::PersistentVolume>()
        .kind::<core::PersistentVolumeClaim>()
        .kind::<core::Pod>()
        .kind::<core::PodTemplate>()
        .kind::<core::ReplicationController>()
        .kind::<core::ResourceQuota>()
        .kind::<core::Secret>()
        .kind::<core::Service>()
        .kind::<core::ServiceAccount>();
    builder
        .kind::<apps::ControllerRevision>()
        .kind::<apps::DaemonSet>()
        .kind::<apps::Deployment>()
        .kind::<apps::ReplicaSet>()
        .kind::<apps::StatefulSet>()
        .kind::<batch::CronJob>()
        .kind::<batch::Job>()
        .kind::<autoscaling_v1::HorizontalPodAutoscaler>()
        .kind::<autoscaling_v1::Scale>()
        .kind::<autoscaling_v2::HorizontalPodAutoscaler>()
        .kind::<policy::Eviction>()
        .kind::<policy::PodDisruptionBudget>();
    builder
        .kind::<coordination::Lease>()
        .kind::<discovery::EndpointSlice>()
        .kind::<events::Event>()
        .kind::<networking::Ingress>()
        .kind::<networking::IngressClass>()
        .kind::<networking::NetworkPolicy>()
        .kind::<node::RuntimeClass>()
        .kind::<rbac::ClusterRole>()
        .kind::<rbac::ClusterRoleBinding>()
        .kind::<rbac::Role>()
        .kind::<rbac::RoleBinding>()
        .kind::<scheduling::PriorityClass>()
        .kind::<storage::CSIDriver>()
        .kind::<storage::CSINode>()
        .kind::<storage::StorageClass>()
        .kind::<storage::VolumeAttachment>();
    builder
        .kind::<admission::MutatingWebhookConfiguration>()
        .kind::<admission::ValidatingAdmissionPolicy>()
        .kind::<admission::ValidatingAdmissionPolicyBinding>()
        .kind::<admission::ValidatingWebhookConfiguration>()
        .kind::<apiextensions::CustomResourceDefinition>()
        .kind::<apiregistration::APIService>()
        .kind::<authentication::SelfSubjectReview>()
        .kind::<authentication::TokenRequest>()
        .kind::<authentication::TokenReview>()
        .kind::<authorization::LocalSubjectAccessReview>()
        .kind::<authorization::SelfSubjectAccessReview>()
        .kind::<authorization::SelfSubjectRulesReview>()
        .kind::<authorization::SubjectAccessReview>();
    let mut by_name = builder.generator.take_definitions(true);
    add_patch_keys(&mut by_name);
    Schemas { by_name, names: builder.names }
}

fn add_patch_keys(schemas: &mut Map<String, Value>) {
    for (name, member, strategy, key) in PATCH_KEYS {
        let property = schemas
            .get_mut(*name)
            .and_then(|schema| schema.get_mut("properties"))
            .and_then(|properties| properties.get_mut(*member))
            .and_then(Value::as_object_mut);
        let Some(property) = property else { continue };
        property.insert("x-kubernetes-patch-strategy".to_owned(), json!(strategy));
        if !key.is_empty() {
            property.insert("x-kubernetes-patch-merge-key".to_owned(), json!(key));
        }
    }
}
