//! The shape that all our kinds share: metadata, spec, status, and a name in the API.

/// Declares one version of a kind: the struct, its (de)serialisation with `apiVersion` and `kind`, and what the
/// client needs to address it.
///
/// `scope` is `Namespaced` or `Cluster`. A missing `spec` reads as an empty one: the API server accepts it, so a
/// watch must not stop at it.
#[macro_export]
macro_rules! kind {
    (
        $(#[$meta:meta])*
        $kind:ident { group: $group:expr, version: $version:literal, plural: $plural:literal, scope: $scope:ident,
            spec: $spec:ty, status: $status:ty $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $kind {
            /// Name, namespace, labels, annotations and what the API server keeps about the object.
            #[serde(default)]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// What is wanted.
            #[serde(default)]
            pub spec: $spec,
            /// What is.
            #[serde(default)]
            pub status: Option<$status>,
        }

        impl $kind {
            /// An object with this name and spec.
            pub fn new(name: &str, spec: $spec) -> Self {
                let metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                    name: Some(name.to_owned()),
                    ..Default::default()
                };
                Self { metadata, spec, status: None }
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct as _;
                let fields = 4 + usize::from(self.status.is_some());
                let mut object = serializer.serialize_struct(stringify!($kind), fields)?;
                object.serialize_field("apiVersion", &<Self as kube::core::Resource>::api_version(&()))?;
                object.serialize_field("kind", stringify!($kind))?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("spec", &self.spec)?;
                if let Some(status) = &self.status {
                    object.serialize_field("status", status)?;
                }
                object.end()
            }
        }

        impl kube::core::Resource for $kind {
            type DynamicType = ();
            type Scope = $crate::kind!(@scope $scope);

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                stringify!($kind).into()
            }

            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }

        impl $crate::crd::KindVersion for $kind {
            const VERSION: &'static str = $version;
            type Spec = $spec;
            type Status = $status;
        }
    };
    (@scope Namespaced) => { kube::core::NamespaceResourceScope };
    (@scope Cluster) => { kube::core::ClusterResourceScope };
}
