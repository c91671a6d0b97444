//! Our own kinds, in all versions, with the conversion that our manager serves.

use std::collections::BTreeMap;
use std::{fs, path::Path};

use kruise_api::{catalogue, convert, names};
use serde_json::{Value, json};

use crate::kit::{Cluster, conditions};

fn examples() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .flat_map(|path| {
            let text = fs::read_to_string(path).unwrap();
            serde_saphyr::from_multiple::<Value>(&text).unwrap()
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_ours_is_served_in_all_versions() {
    let cluster = Cluster::new();
    cluster.serve_at(names::NAMESPACE, names::WEBHOOK_SERVICE, |_, request| {
        let to = request["desiredAPIVersion"].as_str().unwrap().to_owned();
        let objects = request["objects"].as_array().unwrap().clone();
        let converted: Result<Vec<Value>, _> =
            objects.into_iter().map(|object| convert::convert(object, &to)).collect();
        std::future::ready(match converted {
            Ok(objects) => json!({"result": {"status": "Success"}, "convertedObjects": objects}),
            Err(error) => json!({"result": {"status": "Failure", "message": error.to_string()}}),
        })
    });
    for crd in catalogue::CRDS {
        cluster.define(&crd.object()).await.ok();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", crd.name());
        let settled = cluster.get(&path).await.ok();
        assert!(conditions(&settled)[1].starts_with("Established=True"), "{}", crd.kind);
    }
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    for example in examples() {
        let kind = example["kind"].as_str().unwrap();
        let api_version = example["apiVersion"].as_str().unwrap();
        let Some(crd) = catalogue::by_kind(kind).filter(|crd| api_version.starts_with(crd.group)) else {
            continue;
        };
        let group = crd.group;
        let collection = |version: &str| match crd.scope {
            kruise_api::crd::Scope::Namespaced => {
                format!("/apis/{group}/{version}/namespaces/default/{}", crd.plural)
            }
            kruise_api::crd::Scope::Cluster => format!("/apis/{group}/{version}/{}", crd.plural),
        };
        let (_, version) = api_version.split_once('/').unwrap();
        // An example may name a namespace of its own.
        let mut object = example.clone();
        object["metadata"].as_object_mut().unwrap().remove("namespace");
        let reply = cluster.post(&collection(version), &object).await;
        assert!(reply.warnings.is_empty(), "{kind}: {:?}", reply.warnings);
        let stored = reply.ok();
        *made.entry(crd.kind).or_default() += 1;

        let name = stored["metadata"]["name"].as_str().unwrap();
        for version in crd.versions {
            let list = cluster.get(&collection(version.name)).await.ok();
            let items = list["items"].as_array().unwrap();
            let item = items.iter().find(|item| item["metadata"]["name"] == name).unwrap();
            assert_eq!(item["apiVersion"], format!("{group}/{}", version.name), "{kind}");
            let one = cluster.get(&format!("{}/{name}", collection(version.name))).await.ok();
            assert_eq!(&one, item, "{kind}");
            // Written back as it was read, in any version, nothing changes.
            let path = format!("{}/{name}", collection(version.name));
            let again = cluster.put(&path, &one).await.ok();
            assert_eq!(
                again["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"],
                "{kind} {path}"
            );
        }
    }
    assert_eq!(made.len(), catalogue::CRDS.len(), "{made:?}");
}
