//! From records to bytes, in the shape that the client accepts.

use bytes::Bytes;
use serde_json::{Value, json};

use super::list::Page;
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::Status;
use crate::store::Record;

/// How much of each object a table's rows carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// In which form objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As they are.
    Object,
    /// `PartialObjectMetadata` of this version of `meta.k8s.io`.
    Metadata(&'static str),
    /// `Table` of this version of `meta.k8s.io`.
    Table(&'static str, Include),
}

impl ApiServer {
    /// One object's JSON.
    pub(crate) async fn object_bytes(
        &self,
        resource: &Resource,
        record: &Record,
        shape: Shape,
    ) -> Result<Bytes, Status> {
        match shape {
            Shape::Object => self.native(resource, record).await,
            Shape::Metadata(version) => Ok(partial(record, version)),
            Shape::Table(version, include) => {
                let value = self.read(resource, record).await?;
                let head = table_head(resource, version, &list_metadata(Some(record.rv), None, None));
                Ok(close_table(head, vec![self.row(resource, &value, version, include)]))
            }
        }
    }

    /// A list's JSON.
    pub(crate) async fn list_bytes(
        &self,
        resource: &Resource,
        page: &Page,
        shape: Shape,
    ) -> Result<Bytes, Status> {
        let metadata = list_metadata(Some(page.version), page.continuation.as_deref(), page.remaining);
        if let Shape::Table(version, include) = shape {
            let head = table_head(resource, version, &metadata);
            let mut rows = Vec::with_capacity(page.records.len());
            for record in &page.records {
                let value = self.read(resource, record).await?;
                rows.push(self.row(resource, &value, version, include));
            }
            return Ok(close_table(head, rows));
        }
        let (kind, api_version) = match shape {
            Shape::Metadata(version) => {
                ("PartialObjectMetadataList".to_owned(), format!("meta.k8s.io/{version}"))
            }
            _ => (resource.list_kind.to_string(), resource.api_version()),
        };
        let size: usize = page.records.iter().map(|record| record.json.len() + 1).sum();
        let mut out = Vec::with_capacity(size + 256);
        out.extend(
            format!(
                "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":["
            )
            .bytes(),
        );
        for (i, record) in page.records.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            match shape {
                Shape::Metadata(version) => out.extend_from_slice(&partial(record, version)),
                _ if resource.custom || !serves_stored_bytes(resource) => {
                    out.extend_from_slice(&self.native(resource, record).await?);
                }
                // Items of a built-in list do not repeat their kind.
                _ => {
                    out.push(b'{');
                    out.extend_from_slice(record.body());
                }
            }
        }
        out.extend_from_slice(b"]}");
        Ok(out.into())
    }

    /// The object in the resource's version.
    async fn native(&self, resource: &Resource, record: &Record) -> Result<Bytes, Status> {
        if !resource.needs_conversion() {
            return Ok(record.json.clone());
        }
        if resource.rules.same_schema(resource) {
            let mut out = Vec::with_capacity(record.json.len() + 32);
            out.extend(
                format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", resource.kind, resource.api_version())
                    .bytes(),
            );
            out.extend_from_slice(record.body());
            return Ok(out.into());
        }
        let value = self.read(resource, record).await?;
        Ok(value.to_string().into())
    }

    fn row(&self, resource: &Resource, object: &Value, version: &str, include: Include) -> Value {
        let _ = resource;
        let mut row = json!({"cells": []});
        let shown = match include {
            Include::None => None,
            Include::Object => Some(object.clone()),
            Include::Metadata => Some(json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": format!("meta.k8s.io/{version}"),
                "metadata": object.get("metadata"),
            })),
        };
        if let (Some(map), Some(shown)) = (row.as_object_mut(), shown) {
            map.insert("object".to_owned(), shown);
        }
        row
    }
}

fn serves_stored_bytes(resource: &Resource) -> bool {
    !resource.needs_conversion() || resource.rules.same_schema(resource)
}

/// `PartialObjectMetadata` of a record.
fn partial(record: &Record, version: &str) -> Bytes {
    let mut out = Vec::with_capacity(record.metadata().len() + 96);
    out.extend(
        format!("{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/{version}\",").bytes(),
    );
    out.extend_from_slice(record.metadata());
    out.push(b'}');
    out.into()
}

fn list_metadata(version: Option<u64>, continuation: Option<&str>, remaining: Option<usize>) -> Value {
    let mut metadata = json!({});
    if let Some(map) = metadata.as_object_mut() {
        if let Some(version) = version {
            map.insert("resourceVersion".to_owned(), json!(version.to_string()));
        }
        if let Some(token) = continuation {
            map.insert("continue".to_owned(), json!(token));
        }
        if let Some(count) = remaining {
            map.insert("remainingItemCount".to_owned(), json!(count));
        }
    }
    metadata
}

fn table_head(resource: &Resource, version: &str, metadata: &Value) -> Value {
    let _ = resource;
    json!({
        "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata,
        "columnDefinitions": [],
    })
}

fn close_table(mut head: Value, rows: Vec<Value>) -> Bytes {
    if let Some(map) = head.as_object_mut() {
        map.insert("rows".to_owned(), Value::Array(rows));
    }
    head.to_string().into()
}
