//! `scale`: the number of replicas of any workload, as one small kind.

use serde_json::{Map, Value, json};

use super::super::decode::expect_kind;
use super::super::update::{Change, check_name};
use super::super::{Target, WriteOptions, strategy};
use crate::admission::Operation;
use crate::apply;
use crate::field;
use crate::patch::undecodable;
use crate::registry::{Resource, split_api_version};
use crate::selector::Labels;
use crate::server::ApiServer;
use crate::status::{GroupKind, Status};

const SCALE: GroupKind<'static> = GroupKind::new("autoscaling", "Scale");

/// The `Scale` of an object.
pub(super) fn of(resource: &Resource, object: &Value) -> Result<Value, Status> {
    let Some(paths) = &resource.scale else { return Err(Status::resource_not_found()) };
    let number = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or(0);
    if resource.custom && at(object, &paths.spec_replicas).is_none_or(|replicas| !replicas.is_i64()) {
        let path = field::quote(&paths.spec_replicas);
        return Err(Status::internal(format!("the spec replicas field {path} does not exist")));
    }
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.get("metadata").and_then(|m| m.get(key)) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let mut spec = Map::new();
    let replicas = number(&paths.spec_replicas);
    if replicas != 0 {
        spec.insert("replicas".to_owned(), json!(replicas));
    }
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    let selector = paths.selector.as_ref().and_then(|path| match at(object, path)? {
        Value::String(text) => Some(text.clone()),
        // The oldest workload has plain labels.
        labels if resource.kind == "ReplicationController" => {
            let wrapped = json!({"matchLabels": labels});
            Labels::from_object(Some(&wrapped)).ok().map(|labels| labels.to_string())
        }
        selector => Labels::from_object(Some(selector)).ok().map(|labels| labels.to_string()),
    });
    if let (Some(selector), Some(map)) = (selector.filter(|text| !text.is_empty()), status.as_object_mut()) {
        map.insert("selector".to_owned(), Value::String(selector));
    }
    Ok(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status,
    }))
}

/// The number, or why it is none. Clients read 32 bits; a number beyond would make the object unreadable for them.
fn read_replicas(scale: &Value) -> Result<i32, String> {
    let found = match scale.pointer("/spec/replicas") {
        None | Some(Value::Null) => return Ok(0),
        Some(Value::Number(number)) => match number.as_i64().and_then(|number| i32::try_from(number).ok()) {
            Some(number) => return Ok(number),
            None => format!("number {number}"),
        },
        Some(Value::String(_)) => "string".to_owned(),
        Some(Value::Bool(_)) => "bool".to_owned(),
        Some(Value::Array(_)) => "array".to_owned(),
        Some(Value::Object(_)) => "object".to_owned(),
    };
    Err(format!("json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas of type int32"))
}

/// What the client sent must be readable.
fn check_shape(scale: &Value, change: &Change<'_>) -> Result<(), Status> {
    read_replicas(scale).map(drop).map_err(|why| match change {
        Change::Patch(patch) => undecodable(patch.shown(scale), &why),
        _ => Status::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}")),
    })
}

/// What webhooks made of it must be readable, too; that it is not is no fault of the client.
fn check_changed(scale: &Value) -> Result<(), Status> {
    read_replicas(scale).map(drop).map_err(Status::internal)
}

impl ApiServer {
    /// The scale of an object.
    pub(crate) async fn scale(&self, target: &Target) -> Result<Value, Status> {
        let record = self.get(target)?;
        of(&target.resource, &self.read(&target.resource, &record).await?)
    }

    pub(super) async fn change_scale(
        &self,
        target: &Target,
        change: &Change<'_>,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let resource = &target.resource;
        let Some(paths) = &resource.scale else { return Err(Status::resource_not_found()) };
        let record = self.get(target)?;
        let old = of(resource, &self.read(resource, &record).await?)?;
        let mut scale = match change {
            Change::Put(object) => (*object).clone(),
            Change::Patch(patch) => patch.apply(old.clone(), SCALE)?,
            Change::Apply(applying) => merged(&old, &applying.object)?,
        };
        expect_kind(&mut scale, "autoscaling/v1", "Scale", false)?;
        check_name(target, &scale)?;
        check_shape(&scale, change)?;
        self.admit_sub(target, Operation::Update, &mut scale, Some(&old), check_changed, options).await?;
        let number = read_replicas(&scale).map_err(Status::internal)?;
        if number < 0 {
            let error = field::Error::invalid("spec.replicas", number, "must be greater than or equal to 0");
            return Err(Status::invalid(SCALE, &target.name, vec![error]));
        }
        let text = |key: &str| {
            scale.pointer(&format!("/metadata/{key}")).and_then(Value::as_str).unwrap_or_default()
        };
        let (version, uid) = (text("resourceVersion"), text("uid"));
        let pinned = matches!(change, Change::Put(_))
            || old.pointer("/metadata/resourceVersion") != scale.pointer("/metadata/resourceVersion");
        let applied = match change {
            Change::Apply(applying) => Some(applying.force),
            _ => None,
        };
        let written = self
            .rewrite(target, options.dry_run, |object, record| {
                let is = |key: &str| {
                    object.pointer(&format!("/metadata/{key}")).and_then(Value::as_str).unwrap_or_default()
                };
                if (pinned && !version.is_empty() && version != is("resourceVersion"))
                    || (!uid.is_empty() && uid != is("uid"))
                {
                    return Err(Status::modified(resource.group_resource(), &target.name));
                }
                let old = object.clone();
                let changed = at(&old, &paths.spec_replicas) != Some(&json!(number));
                let managed =
                    self.managed_scale(target, record, &paths.spec_replicas, changed, applied, options)?;
                set(object, &paths.spec_replicas, json!(number));
                strategy::prepare_update(self, resource, None, object, &old);
                // The number must suit the schema, too.
                let errors = match resource.custom {
                    true => resource.rules.validate_update(resource, object, &old, None),
                    false => Vec::new(),
                };
                let errors = options.warnings.told(errors);
                match errors.is_empty() {
                    true => Ok(managed),
                    false => Err(Status::invalid(resource.group_kind(), &target.name, errors)),
                }
            })
            .await?;
        of(resource, &self.read(resource, &written).await?)
    }
}

/// The scale with what was applied on top.
fn merged(old: &Value, applied: &Value) -> Result<Value, Status> {
    let text = |key: &str| applied.get(key).and_then(Value::as_str).unwrap_or_default();
    if (text("apiVersion"), text("kind")) != ("autoscaling/v1", "Scale") {
        let (group, version) = split_api_version(text("apiVersion"));
        let why = format!("invalid object type: {group}/{version}, Kind={}", text("kind"));
        return Err(Status::bad_request(why));
    }
    if applied.pointer("/metadata/managedFields").is_some_and(|list| !list.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let kind = apply::Schema::built_in("autoscaling", "v1", "Scale");
    if let Some(why) = apply::errors(kind, applied) {
        let name = |key: &str| at(applied, key).and_then(Value::as_str).unwrap_or_default();
        let name = format!("{}/{}", name("metadata.namespace"), name("metadata.name"));
        let why = format!("failed to create typed patch object ({name}; autoscaling/v1, Kind=Scale): {why}");
        return Err(Status::failure(500, "", why));
    }
    Ok(apply::merge(kind, old, applied))
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|part| !part.is_empty())
}

fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    parts(path).try_fold(object, |value, part| value.get(part))
}

fn set(object: &mut Value, path: &str, value: Value) {
    let mut here = object;
    for part in parts(path) {
        if !here.is_object() {
            *here = json!({});
        }
        let Some(map) = here.as_object_mut() else { return };
        here = map.entry(part).or_insert(Value::Null);
    }
    *here = value;
}
