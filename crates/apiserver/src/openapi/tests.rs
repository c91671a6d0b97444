use super::*;

const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn verbs(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn deployment() -> Resource {
    let gvk = Gvk::new("apps", "v1", "Deployment");
    let change = verbs(&["get", "patch", "update"]);
    Resource {
        subresources: vec![
            Subresource {
                name: "scale".into(),
                gvk: Gvk::new("autoscaling", "v1", "Scale"),
                verbs: change.clone(),
            },
            Subresource { name: "status".into(), gvk: gvk.clone(), verbs: change },
        ],
        gvk,
        plural: "deployments".into(),
        namespaced: true,
        verbs: verbs(&ALL),
        custom_schema: None,
    }
}

fn clone_set(replicas: &Value) -> Resource {
    Resource {
        gvk: Gvk::new("apps.kruise.io", "v1beta1", "CloneSet"),
        plural: "clonesets".into(),
        namespaced: true,
        verbs: verbs(&ALL),
        subresources: Vec::new(),
        custom_schema: Some(json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"replicas": replicas}}, "metadata": {"type": "object"}}})),
    }
}

fn node() -> Resource {
    Resource {
        gvk: Gvk::new("", "v1", "Node"),
        plural: "nodes".into(),
        namespaced: false,
        verbs: verbs(&ALL),
        subresources: Vec::new(),
        custom_schema: None,
    }
}

fn one(resource: Resource) -> Value {
    let documents = documents(&[resource]);
    serde_json::from_slice(&documents[0].json).expect("a document is JSON")
}

#[test]
fn the_index_leads_to_every_document_by_its_hash() {
    let documents = documents(&[deployment(), clone_set(&json!({})), node()]);
    let paths: Vec<&str> = documents.iter().map(|document| document.path.as_str()).collect();
    assert_eq!(paths, ["api/v1", "apis/apps.kruise.io/v1beta1", "apis/apps/v1"]);
    let index = index(&documents);
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().expect("an address");
    assert_eq!(url, format!("/openapi/v3/apis/apps/v1?hash={}", documents[2].hash));
}

#[test]
fn the_hash_changes_with_the_schema_and_only_then() {
    let hash = |replicas: Value| documents(&[clone_set(&replicas)])[0].hash.clone();
    assert_eq!(hash(json!({"type": "integer"})), hash(json!({"type": "integer"})));
    assert_ne!(hash(json!({"type": "integer"})), hash(json!({"type": "string"})));
}

#[test]
fn patches_declare_what_kubectl_looks_for() {
    for (resource, path) in [
        (deployment(), "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
        (clone_set(&json!({})), "/apis/apps.kruise.io/v1beta1/namespaces/{namespace}/clonesets/{name}"),
        (node(), "/api/v1/nodes/{name}"),
    ] {
        let gvk = resource.gvk.to_json();
        let custom = resource.custom_schema.is_some();
        let document = one(resource);
        let patch = &document["paths"][path]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"], gvk);
        assert_eq!(patch["x-kubernetes-action"], "patch");
        let names: Vec<&str> = patch["parameters"]
            .as_array()
            .expect("parameters")
            .iter()
            .filter_map(|p| p["name"].as_str())
            .collect();
        assert!(names.contains(&"fieldValidation") && names.contains(&"dryRun"), "{names:?}");
        let strategic = &patch["requestBody"]["content"]["application/strategic-merge-patch+json"];
        assert_eq!(strategic.is_null(), custom);
    }
}

#[test]
fn built_in_kinds_have_their_known_names_and_full_schemas() {
    let document = one(deployment());
    let schemas = &document["components"]["schemas"];
    let kind = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        kind["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "kind": "Deployment", "version": "v1"}])
    );
    let spec = kind["properties"]["spec"].to_string();
    assert!(spec.contains("#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"), "{spec}");
    assert!(schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"].is_object());
    assert!(schemas["io.k8s.api.autoscaling.v1.Scale"].is_object());
    assert!(schemas["io.k8s.api.apps.v1.DeploymentList"]["properties"]["items"].is_object());
    assert!(schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"].is_object());
}

#[test]
fn lists_say_how_they_merge() {
    let document = one(deployment());
    let containers =
        &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
}

#[test]
fn every_patch_key_names_a_member_that_exists() {
    for (name, member, ..) in patch_keys::PATCH_KEYS {
        if let Some(schema) = builtin::schema(name) {
            assert!(schema["properties"][member].is_object(), "{name}.{member}");
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    for resource in [deployment(), clone_set(&json!({})), node()] {
        let document = one(resource);
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for name in found {
            assert!(document["components"]["schemas"][&name].is_object(), "{name}");
        }
        assert!(!document.to_string().contains("#/definitions"));
        assert!(!document.to_string().contains("#/$defs"));
    }
}

#[test]
fn custom_kinds_keep_their_schema_and_get_metadata() {
    let document = one(clone_set(&json!({"type": "integer", "description": "How many."})));
    let schema = &document["components"]["schemas"]["io.kruise.apps.v1beta1.CloneSet"];
    assert_eq!(schema["properties"]["spec"]["properties"]["replicas"]["description"], "How many.");
    assert!(schema["properties"]["metadata"].to_string().contains("meta.v1.ObjectMeta"));
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "CloneSet");
}

#[test]
fn namespaced_kinds_are_listed_in_one_and_in_all_namespaces() {
    let document = one(deployment());
    assert_eq!(document["paths"]["/apis/apps/v1/deployments"]["get"]["x-kubernetes-action"], "list");
    let in_one = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"];
    assert!(in_one["get"].is_object() && in_one["post"].is_object() && in_one["delete"].is_object());
    let scale = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["patch"];
    assert_eq!(scale["x-kubernetes-group-version-kind"]["kind"], "Scale");
}
