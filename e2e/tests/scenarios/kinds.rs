//! Our kinds on an API server: the CRDs are taken, the columns are those users know, the examples apply.

use kruise_api::{
    catalogue::CRDS,
    crd::{Crd, Scope},
};
use kruise_testkit::{Cluster, Outcome, scenario};
use serde_json::{Value, json};

/// Every CRD is accepted and served, in every version that needs no conversion, with the columns users know.
async fn every_kind_is_served_with_its_columns(cluster: Cluster) -> Outcome {
    cluster.install_crds().await;
    for crd in CRDS {
        let stored = crd.storage().expect("every kind has a version");
        let path = format!("/apis/{}/{}/{}", crd.group, stored.name, crd.plural);
        let request = http::Request::get(path)
            .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Vec::new())
            .unwrap();
        let table: Value = cluster.client().request(request).await.unwrap();
        let shown: Vec<&str> = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        let mut wanted = vec!["Name"];
        wanted.extend(stored.columns.iter().map(|column| column.name));
        if stored.columns.is_empty() {
            wanted.push("Age");
        }
        assert_eq!(shown, wanted, "columns of {}", crd.kind);
    }
    Ok(())
}
scenario!(every_kind_is_served_with_its_columns);

/// Discovery knows every kind by its plural, its short names and its versions.
async fn every_short_name_is_known_to_discovery(cluster: Cluster) -> Outcome {
    cluster.install_crds().await;
    for crd in CRDS {
        for version in crd.versions {
            let group_version = format!("{}/{}", crd.group, version.name);
            let list = cluster.client().list_api_group_resources(&group_version).await.unwrap();
            let found = list.resources.iter().find(|resource| resource.name == crd.plural);
            let found = found.unwrap_or_else(|| panic!("{} is not in {group_version}", crd.plural));
            assert_eq!(found.short_names.clone().unwrap_or_default(), crd.short_names, "{}", crd.kind);
            assert_eq!(found.namespaced, crd.scope == Scope::Namespaced, "{}", crd.kind);
            let scale =
                list.resources.iter().any(|resource| resource.name == format!("{}/scale", crd.plural));
            assert_eq!(scale, version.scale, "scale of {}", crd.kind);
        }
    }
    Ok(())
}
scenario!(every_short_name_is_known_to_discovery);

/// What stands in `examples/` works: one example for each kind, and the server takes it as it is.
async fn every_kind_has_an_example_that_applies(cluster: Cluster) -> Outcome {
    cluster.install_crds().await;
    let sandbox = cluster.sandbox("examples").await;
    for crd in CRDS {
        let objects = example(crd);
        let own = objects
            .iter()
            .find(|object| object["kind"] == crd.kind && object["apiVersion"] == api_version(crd));
        assert!(own.is_some(), "the example of {} has none in {}", crd.kind, api_version(crd));
        for mut object in objects {
            let cluster_wide = crd.scope == Scope::Cluster && object["kind"] == crd.kind;
            if cluster_wide {
                // Tests share the cluster; the namespace makes the name their own.
                object["metadata"]["name"] = json!(sandbox.namespace());
            }
            if let Err(error) = sandbox.create_any(object.clone()).await {
                panic!("the example of {} was refused: {error}", crd.kind);
            }
            if cluster_wide {
                sandbox.delete_any(object).await;
            }
        }
    }
    Ok(())
}
scenario!(every_kind_has_an_example_that_applies);

/// A wrong type is refused with the field, the value and the rule.
async fn a_wrong_type_is_refused_with_the_field(cluster: Cluster) -> Outcome {
    cluster.install_crds().await;
    let sandbox = cluster.sandbox("refused").await;
    let clonesets = CRDS.iter().find(|crd| crd.kind == "CloneSet").unwrap();
    let mut object = example(clonesets).into_iter().find(|object| object["kind"] == "CloneSet").unwrap();
    object["spec"]["replicas"] = json!("many");
    let error = sandbox.create_any(object).await.unwrap_err();
    assert!(error.contains("spec.replicas"), "{error}");
    assert!(error.contains("must be of type integer"), "{error}");
    Ok(())
}
scenario!(a_wrong_type_is_refused_with_the_field);

fn api_version(crd: &Crd) -> String {
    format!("{}/{}", crd.group, crd.storage().expect("every kind has a version").name)
}

/// All objects of the example of a kind; some kinds need another object beside them.
fn example(crd: &Crd) -> Vec<Value> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let path = format!("{root}/{}.yaml", crd.kind.to_lowercase());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}
