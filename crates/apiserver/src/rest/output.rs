//! From records to bytes, in the shape that the client accepts.

use bytes::Bytes;
use serde_json::{Value, json};

use super::list::Page;
use crate::protobuf;
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::status::Status;
use crate::store::Record;
use crate::table::{IncludeObject, Printer};

/// In which form objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As they are.
    Object,
    /// `PartialObjectMetadata` of this version of `meta.k8s.io`.
    Metadata(&'static str),
    /// `Table` of this version of `meta.k8s.io`.
    Table(&'static str, IncludeObject),
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
            Shape::Metadata(version) if resource.rules.is_as_stored(resource, record) || !resource.custom => {
                Ok(partial(record, version))
            }
            Shape::Metadata(version) => Ok(partial_of(&self.shown(resource, record).await?, version)),
            Shape::Table(version, include) => {
                self.table_event(resource, record, version, include, true).await
            }
        }
    }

    /// The JSON of an object that is no record: a scale, or an answer that has one form only.
    pub(crate) fn scale_bytes(&self, value: &Value, shape: Shape) -> Bytes {
        match shape {
            Shape::Object => value.to_string().into(),
            Shape::Metadata(version) => partial_of(value, version),
            Shape::Table(version, include) => {
                let printer = Printer::built_in("autoscaling", "Scale");
                let row = printer.row(value, include, self.clock().now());
                let rv = value.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                let metadata = list_metadata(rv.and_then(|rv| rv.parse().ok()), None, None);
                table(printer.table_of_rows(metadata, vec![row], true), version)
            }
        }
    }

    /// A table of one object. In a watch only the first one carries the columns.
    pub(super) async fn table_event(
        &self,
        resource: &Resource,
        record: &Record,
        version: &str,
        include: IncludeObject,
        headers: bool,
    ) -> Result<Bytes, Status> {
        let value = match include {
            IncludeObject::None => self.read(resource, record).await?,
            _ => self.shown(resource, record).await?,
        };
        let row = resource.printer.row(&value, include, self.clock().now());
        let metadata = list_metadata(Some(record.rv), None, None);
        Ok(table(resource.printer.table_of_rows(metadata, vec![row], headers), version))
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
            let now = self.clock().now();
            let changed = self.read_changed(resource, &page.records).await?;
            let rows = page.records.iter().zip(changed).map(|(record, changed)| {
                let mut value = changed.unwrap_or_else(|| record.value());
                if include != IncludeObject::None {
                    show_managed(&mut value, record);
                }
                resource.printer.row(&value, include, now)
            });
            let rows = rows.collect();
            return Ok(table(resource.printer.table_of_rows(metadata, rows, true), version));
        }
        let (kind, api_version) = list_kind(resource, shape);
        let size: usize = page.records.iter().map(|record| record.size() + 1).sum();
        let mut out = Vec::with_capacity(size + 256);
        out.extend(
            format!(
                "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":["
            )
            .bytes(),
        );
        let plain =
            !resource.custom && (matches!(shape, Shape::Metadata(_)) || serves_stored_bytes(resource));
        let changed = match plain {
            true => vec![None; page.records.len()],
            false => self.read_changed(resource, &page.records).await?,
        };
        for (i, (record, changed)) in page.records.iter().zip(changed).enumerate() {
            if i > 0 {
                out.push(b',');
            }
            match (shape, changed) {
                (Shape::Metadata(version), None) => out.extend_from_slice(&partial(record, version)),
                (Shape::Metadata(version), Some(mut value)) => {
                    show_managed(&mut value, record);
                    out.extend_from_slice(&partial_of(&value, version));
                }
                (_, Some(mut value)) => {
                    show_managed(&mut value, record);
                    out.extend(value.to_string().into_bytes());
                }
                (_, None) if resource.custom => out.extend_from_slice(&record.full()),
                // Items of a built-in list do not repeat their kind.
                _ => {
                    out.push(b'{');
                    record.write_body(&mut out);
                }
            }
        }
        out.extend_from_slice(b"]}");
        Ok(out.into())
    }

    /// A list in protobuf. Objects are read one after the other, so that a long list needs no more room than its bytes.
    pub(crate) async fn list_protobuf(
        &self,
        resource: &Resource,
        page: &Page,
        shape: Shape,
    ) -> Result<Vec<u8>, Status> {
        let (kind, api_version) = list_kind(resource, shape);
        let mut list = protobuf::List::new(&api_version, &kind)
            .ok_or_else(|| Status::internal(format_args!("{kind} has no form in protobuf")))?;
        let metadata_only = matches!(shape, Shape::Metadata(_));
        let plain = !resource.custom && (metadata_only || serves_stored_bytes(resource));
        for record in page.records.iter().rev() {
            let mut value = match plain {
                true => record.value(),
                false => self.read(resource, record).await?,
            };
            show_managed(&mut value, record);
            list.prepend(&value).map_err(Status::internal)?;
        }
        let metadata = list_metadata(Some(page.version), page.continuation.as_deref(), page.remaining);
        list.finish(&metadata).map_err(Status::internal)
    }

    /// A stored object in the version of the resource, as clients see it.
    async fn shown(&self, resource: &Resource, record: &Record) -> Result<Value, Status> {
        let mut value = self.read(resource, record).await?;
        show_managed(&mut value, record);
        Ok(value)
    }

    /// The object in the resource's version.
    async fn native(&self, resource: &Resource, record: &Record) -> Result<Bytes, Status> {
        if resource.rules.is_as_stored(resource, record) {
            return Ok(record.full());
        }
        if resource.rules.same_schema(resource) {
            let mut out = Vec::with_capacity(record.size() + 32);
            out.extend(
                format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", resource.kind, resource.api_version())
                    .bytes(),
            );
            record.write_body(&mut out);
            return Ok(out.into());
        }
        let value = self.shown(resource, record).await?;
        Ok(value.to_string().into())
    }
}

/// Kind and version of a list.
fn list_kind(resource: &Resource, shape: Shape) -> (String, String) {
    match shape {
        Shape::Metadata(version) => {
            ("PartialObjectMetadataList".to_owned(), format!("meta.k8s.io/{version}"))
        }
        _ => (resource.list_kind.to_string(), resource.api_version()),
    }
}

/// Adds who manages what, which is not part of stored objects.
fn show_managed(object: &mut Value, record: &Record) {
    if let Some(managed) = &record.managed
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("managedFields".to_owned(), managed.to_json());
    }
}

fn serves_stored_bytes(resource: &Resource) -> bool {
    !resource.needs_conversion() || resource.rules.same_schema(resource)
}

/// `PartialObjectMetadata` of a record.
fn partial(record: &Record, version: &str) -> Bytes {
    let mut out = Vec::with_capacity(record.metadata().len() + 2048);
    out.extend(
        format!("{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/{version}\",").bytes(),
    );
    record.write_metadata(&mut out);
    out.push(b'}');
    out.into()
}

/// `PartialObjectMetadata` of an object.
fn partial_of(object: &Value, version: &str) -> Bytes {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    let api_version = format!("meta.k8s.io/{version}");
    json!({"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata})
        .to_string()
        .into()
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

fn table(mut table: Value, version: &str) -> Bytes {
    // Old clients ask for v1beta1, which differs in name only.
    if version != "v1"
        && let Some(map) = table.as_object_mut()
    {
        map.insert("apiVersion".to_owned(), json!(format!("meta.k8s.io/{version}")));
    }
    table.to_string().into()
}
