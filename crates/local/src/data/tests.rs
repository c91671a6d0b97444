use std::sync::Arc;

use kruise_apiserver::ApiServer;
use serde_json::json;

use super::*;

fn server(data: &Arc<Data>) -> ApiServer {
    ApiServer::builder().seed(data.version()).journal(data.clone()).build()
}

#[tokio::test]
async fn what_was_safe_is_there_after_a_restart_and_versions_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = Arc::new(Data::open(folder.path()).unwrap());
    let first = server(&data);
    let local = first.local();
    let maps = local.resource("", "configmaps").unwrap();
    for name in ["stays", "changes", "goes"] {
        local.create(&maps, "default", json!({"metadata": {"name": name}})).await.unwrap();
    }
    let mut changed = local.get(&maps, "default", "changes").unwrap().value();
    changed["data"] = json!({"a": "b"});
    local.update(&maps, None, changed).await.unwrap();
    local.delete(&maps, "default", "goes", &Default::default()).await.unwrap();
    first.store().safe().await.unwrap();
    let before = first.store().version();
    let names = |server: &ApiServer| {
        let (_, records) = server.store().list("/configmaps", None);
        records.iter().map(|record| (record.name.to_string(), record.value())).collect::<Vec<_>>()
    };
    let known = names(&first);
    assert_eq!(known.len(), 2);
    drop((local, first));
    data.close();
    drop(data);

    let data = Arc::new(Data::open(folder.path()).unwrap());
    let second = server(&data);
    assert_eq!(names(&second), known, "with their versions and uids");
    assert!(second.store().version() > before);
    let old = second.store().watch("/configmaps", before).take();
    assert!(old.is_err(), "nobody can tell what happened in between");
    let gone = second.store().watch("/secrets", before).take();
    assert!(gone.is_err(), "also where nothing is left");
}

#[tokio::test]
async fn definitions_are_served_again_and_their_objects_selected_by_their_fields() {
    let folder = tempfile::tempdir().unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "fruits.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "fruits", "singular": "fruit", "kind": "Fruit", "listKind": "FruitList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "selectableFields": [{"jsonPath": ".spec.colour"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"colour": {"type": "string"}}}}}}}]},
    });
    let apple = json!({"apiVersion": "example.com/v1", "kind": "Fruit", "metadata": {"name": "apple"},
        "spec": {"colour": "red"}});
    {
        let data = Arc::new(Data::open(folder.path()).unwrap());
        let local = server(&data).local();
        let definitions = local.resource("apiextensions.k8s.io", "customresourcedefinitions").unwrap();
        local.create(&definitions, "", definition).await.unwrap();
        let fruits = local.resource("example.com", "fruits").unwrap();
        local.create(&fruits, "default", apple).await.unwrap();
        local.server().store().safe().await.unwrap();
    }
    let data = Arc::new(Data::open(folder.path()).unwrap());
    let local = server(&data).local();
    let fruits = local.resource("example.com", "fruits").unwrap();
    assert_eq!(local.get(&fruits, "default", "apple").unwrap().field("spec.colour"), "red");
}

#[test]
fn a_folder_that_cannot_be_used_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let said = |folder: &Path| Data::open(folder).unwrap_err().to_string();
    let data = Data::open(folder.path()).unwrap();
    assert!(said(folder.path()).contains("in use by another process"), "{}", said(folder.path()));
    let write = data.database.begin_write().unwrap();
    write.open_table(ABOUT).unwrap().insert("format", "7").unwrap();
    write.commit().unwrap();
    drop(data);
    assert!(said(folder.path()).contains("has format 7, and this build reads format 1"));
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join(FILE), vec![b'x'; 10_000]).unwrap();
    assert!(said(other.path()).contains("is no data of a local cluster"), "{}", said(other.path()));
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(said(&file).contains("cannot use the data folder"), "{}", said(&file));
}

#[tokio::test]
async fn what_is_kept_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::open(folder.path()).unwrap();
    assert_eq!(data.kept("token").unwrap(), None);
    data.keep(&[("token", b"secret".to_vec())]).unwrap();
    drop(data);
    let data = Data::open(folder.path()).unwrap();
    assert_eq!(data.kept("token").unwrap().unwrap(), b"secret");
    assert_eq!(data.version(), 0, "no object was ever written");
}
