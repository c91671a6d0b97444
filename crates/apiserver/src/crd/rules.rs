//! The rules of CustomResourceDefinition objects.

use serde_json::{Map, Value, json};

use super::names;
use crate::apply::{Schema, Typed};
use crate::field;
use crate::registry::{Resource, Rules};
use crate::schema::crd;

/// Defaults and validation of definitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Definitions;

impl Rules for Definitions {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
        if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
            let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
            set_text(names, "singular", &kind.to_lowercase());
            if !kind.is_empty() {
                set_text(names, "listKind", &format!("{kind}List"));
            }
        }
        let conversion = spec.entry("conversion").or_insert(Value::Null);
        if conversion.is_null() {
            *conversion = json!({"strategy": "None"});
        }
        // An explicit null is how a file takes away what others set: nothing of it is stored.
        if let Some(config) = conversion.pointer_mut("/webhook/clientConfig").and_then(Value::as_object_mut) {
            config.retain(|_, value| !value.is_null());
        }
        let service = conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut);
        if let Some(service) = service {
            service.entry("port").or_insert(json!(443));
        }
        // `false` is what everybody writes and no server shows.
        if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
            spec.remove("preserveUnknownFields");
        }
    }

    fn typed(&self, resource: &Resource) -> Typed<'_> {
        Schema::built_in(&resource.group, &resource.version, &resource.kind)
    }

    fn nothing(&self, _resource: &Resource) -> Value {
        let names = json!({"kind": "", "plural": ""});
        json!({
            "metadata": {}, "spec": {"group": "", "names": names, "scope": "", "versions": null},
            "status": {"acceptedNames": names, "conditions": null, "storedVersions": null},
        })
    }

    fn prepare_create(&self, _resource: &Resource, object: &mut Value) {
        if let Some(map) = object.as_object_mut() {
            let status = json!({
                "acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": [],
            });
            map.insert("status".to_owned(), status);
        }
        names::stored_versions(object);
    }

    fn validate_create(&self, _resource: &Resource, object: &Value) -> Vec<field::Error> {
        crd::validate(object)
    }

    fn validate_update(
        &self,
        _resource: &Resource,
        object: &Value,
        old: &Value,
        subresource: Option<&str>,
    ) -> Vec<field::Error> {
        let mut object = object.clone();
        // A new storage version joins the stored ones with the write itself.
        if subresource.is_none() {
            names::stored_versions(&mut object);
        }
        crd::validate_update(&object, old)
    }
}

fn set_text(map: &mut Map<String, Value>, key: &str, text: &str) {
    if map.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() && !text.is_empty() {
        map.insert(key.to_owned(), json!(text));
    }
}
