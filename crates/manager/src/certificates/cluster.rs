//! What certificates read from a cluster and write to it. Objects stay JSON, so that nothing in them is lost.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{Method, Request, header};
use kruise_webhook::certificates::Mode;
use kruise_webhook::certificates::plan::Conversion;
use kruise_webhook::certificates::registration::{Crd, Kind};
use kruise_webhook::certificates::store::Data;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Error;
use crate::watch::{DEFINITIONS, Watch};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
/// Asks for names and versions only.
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The cluster, as certificates need it.
#[derive(Clone)]
pub(super) struct Cluster {
    client: Client,
    namespace: String,
    secret: String,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cluster").field("secret", &self.secret).finish_non_exhaustive()
    }
}

/// A Secret that was read.
pub(super) struct Secret {
    object: Value,
    pub(super) data: Data,
}

#[derive(Deserialize)]
struct MetadataList {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    resource_version: String,
}

/// Of a CRD only what we need: its schemas are most of it.
#[derive(Deserialize)]
struct Definition {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    conversion: Option<Value>,
}

impl Cluster {
    pub(super) fn new(client: Client, namespace: &str, secret: &str) -> Self {
        Self { client, namespace: namespace.to_owned(), secret: secret.to_owned() }
    }

    /// What wakes us.
    pub(super) fn watches(&self, mode: Mode) -> Vec<Watch> {
        let one = |path: &str, name: &str| {
            Watch::new(&self.client, format!("{path}?fieldSelector=metadata.name%3D{name}"))
        };
        let mut watches: Vec<Watch> = Kind::ALL
            .into_iter()
            .map(|kind| one(&format!("{CONFIGURATIONS}/{}", kind.plural()), kind.name()))
            .collect();
        watches.push(Watch::new(&self.client, DEFINITIONS.to_owned()).only_ours());
        if mode != Mode::Files {
            watches.push(one(&self.secrets(), &self.secret));
        }
        watches
    }

    fn secrets(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    fn secret_name(&self) -> String {
        format!("Secret {}/{}", self.namespace, self.secret)
    }

    pub(super) async fn configuration(&self, kind: Kind) -> Result<Option<Value>, Error> {
        let object = format!("{} {}", kind.kind(), kind.name());
        let path = format!("{CONFIGURATIONS}/{}/{}", kind.plural(), kind.name());
        self.get(&path, "application/json", object).await
    }

    /// Returns false when someone else was faster.
    pub(super) async fn replace_configuration(&self, kind: Kind, object: &Value) -> Result<bool, Error> {
        let path = format!("{CONFIGURATIONS}/{}/{}", kind.plural(), kind.name());
        self.write(Method::PUT, &path, object, format!("{} {}", kind.kind(), kind.name())).await
    }

    /// Names and versions of all CRDs.
    pub(super) async fn crd_versions(&self) -> Result<Vec<(String, String)>, Error> {
        let object = "CustomResourceDefinitions".to_owned();
        let list: Option<MetadataList> = self.get(DEFINITIONS, METADATA_LIST, object).await?;
        let items = list.map(|list| list.items).unwrap_or_default();
        Ok(items.into_iter().map(|item| (item.metadata.name, item.metadata.resource_version)).collect())
    }

    pub(super) async fn crd(&self, name: &str) -> Result<Option<Crd>, Error> {
        let object = format!("CustomResourceDefinition {name}");
        let read: Option<Definition> =
            self.get(&format!("{DEFINITIONS}/{name}"), "application/json", object).await?;
        Ok(read.map(|read| Crd {
            name: read.metadata.name,
            resource_version: read.metadata.resource_version,
            conversion: read.spec.conversion.unwrap_or_else(|| json!({ "strategy": "None" })),
        }))
    }

    /// Returns false when someone else was faster. Replaces instead of patching: the original's role allows no patch.
    pub(super) async fn replace_conversion(&self, change: &Conversion) -> Result<bool, Error> {
        let path = format!("{DEFINITIONS}/{}", change.name);
        let name = format!("CustomResourceDefinition {}", change.name);
        let Some(mut object) = self.get::<Value>(&path, "application/json", name.clone()).await? else {
            return Ok(false);
        };
        let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        if version != Some(change.resource_version.as_str()) {
            return Ok(false);
        }
        kruise_api::json::set(&mut object, &["spec", "conversion"], change.conversion.clone());
        self.write(Method::PUT, &path, &object, name).await
    }

    pub(super) async fn secret(&self) -> Result<Option<Secret>, Error> {
        let path = format!("{}/{}", self.secrets(), self.secret);
        let object: Option<Value> = self.get(&path, "application/json", self.secret_name()).await?;
        Ok(object.map(|object| {
            let entries = object.get("data").and_then(Value::as_object).into_iter().flatten();
            let decode =
                |text: &Value| text.as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
            let data = entries.map(|(key, text)| (key.clone(), decode(text))).collect();
            Secret { object, data }
        }))
    }

    /// Writes the Secret if it is still as it was read, or still missing. Returns false when someone else was faster.
    pub(super) async fn write_secret(&self, read: Option<&Secret>, data: &Data) -> Result<bool, Error> {
        let data: Value =
            data.iter().map(|(key, bytes)| (key.clone(), json!(STANDARD.encode(bytes)))).collect();
        match read {
            Some(Secret { object, .. }) => {
                let mut object = object.clone();
                kruise_api::json::set(&mut object, &["data"], data);
                let path = format!("{}/{}", self.secrets(), self.secret);
                self.write(Method::PUT, &path, &object, self.secret_name()).await
            }
            None => {
                let object = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": { "namespace": self.namespace, "name": self.secret },
                    "data": data,
                });
                self.write(Method::POST, &self.secrets(), &object, self.secret_name()).await
            }
        }
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        accept: &str,
        object: String,
    ) -> Result<Option<T>, Error> {
        let failed =
            |source| Error::Cluster { doing: "read", object: object.clone(), source: Box::new(source) };
        let request = Request::get(path).header(header::ACCEPT, accept).body(Vec::new());
        match self.client.request(request.map_err(|error| failed(kube::Error::HttpError(error)))?).await {
            Ok(read) => Ok(Some(read)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    async fn write(&self, method: Method, path: &str, body: &Value, object: String) -> Result<bool, Error> {
        let doing = if method == Method::POST { "create" } else { "update" };
        let failed = |source| Error::Cluster { doing, object: object.clone(), source: Box::new(source) };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes());
        let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
        match self.client.request::<serde::de::IgnoredAny>(request).await {
            Ok(_) => {
                tracing::info!(object, "wrote what belongs to the certificates of the webhooks");
                Ok(true)
            }
            // Changed, made or removed by someone else meanwhile.
            Err(kube::Error::Api(status))
                if status.is_conflict() || status.is_already_exists() || status.is_not_found() =>
            {
                Ok(false)
            }
            Err(error) => Err(failed(error)),
        }
    }
}
