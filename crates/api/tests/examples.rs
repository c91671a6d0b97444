//! The manifests in `examples/` are what they teach: complete, without fields that nobody knows.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends by panicking")]

use std::{collections::BTreeSet, fs, path::Path};

use kruise_api::{catalogue, crd::Version, json};
use serde_json::Value;

/// Every example with its file name.
fn examples() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut examples = Vec::new();
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        examples.extend(documents.into_iter().map(|document| (name.clone(), document)));
    }
    examples
}

/// The kind and version of an example of ours; other objects may stand beside them.
fn version_of(object: &Value) -> Option<(&'static str, &'static Version)> {
    let crd = catalogue::by_kind(json::text(object, &["kind"])?)?;
    let version = json::text(object, &["apiVersion"])?.strip_prefix(crd.group)?.strip_prefix('/')?;
    crd.versions.iter().find(|known| known.name == version).map(|version| (crd.kind, version))
}

#[test]
fn every_field_of_an_example_is_known() {
    for (name, object) in examples() {
        let Some((_, version)) = version_of(&object) else { continue };
        let written =
            (version.read_and_write)(object.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(written["spec"], object["spec"], "{name}");
    }
}

#[test]
fn every_kind_has_an_example_in_its_newest_version() {
    let shown: BTreeSet<(&str, &str)> = examples()
        .iter()
        .filter_map(|(_, object)| version_of(object).map(|(kind, version)| (kind, version.name)))
        .collect();
    let missing: Vec<&str> = catalogue::CRDS
        .iter()
        .filter(|crd| crd.storage().is_none_or(|version| !shown.contains(&(crd.kind, version.name))))
        .map(|crd| crd.kind)
        .collect();
    assert!(missing.is_empty(), "no example of {missing:?}");
}
