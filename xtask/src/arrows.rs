//! The arrows between crates, kept by a test: who may depend on whom, and who must stay free of what.

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, process::Command};

    use serde_json::Value;

    /// Each crate of ours with those of our crates that it may use. A new crate must be added here first.
    const MAY_USE: &[(&str, &[&str])] = &[
        ("kruise-api", &[]),
        ("kruise-core", &["kruise-api"]),
        ("kruise-sockets", &[]),
        ("kruise-runtime", &["kruise-api", "kruise-core", "kruise-sockets"]),
        ("kruise-webhook", &["kruise-api", "kruise-core", "kruise-sockets"]),
        ("kruise-manager", &["kruise-api", "kruise-core", "kruise-runtime", "kruise-webhook"]),
        ("kruise-daemon", &["kruise-api", "kruise-core", "kruise-runtime"]),
        ("kruise-apiserver", &["kruise-api"]),
        ("kruise-sim", &["kruise-api", "kruise-apiserver"]),
        (
            "kruise-local",
            &[
                "kruise-api",
                "kruise-apiserver",
                "kruise-core",
                "kruise-manager",
                "kruise-nodes",
                "kruise-runtime",
                "kruise-sim",
            ],
        ),
        ("kruise-nodes", &["kruise-api", "kruise-core", "kruise-daemon", "kruise-runtime", "kruise-sim"]),
        ("kruise-testkit", &["kruise-api", "kruise-sim"]),
        ("kruise-comparison", &["kruise-api", "kruise-apiserver", "kruise-testkit"]),
        ("e2e", &[]),
        ("xtask", &["kruise-api", "kruise-core"]),
    ];

    /// Crates that decide and never act: no runtime, no client, no sockets.
    const PURE: &[&str] = &["kruise-api", "kruise-core"];
    const IMPURE: &[&str] =
        &["tokio", "hyper", "tower", "kube-client", "kube-runtime", "reqwest", "rustls", "rand"];

    fn manifests() -> BTreeMap<String, Vec<Value>> {
        let output = Command::new("cargo")
            .current_dir(crate::root().unwrap())
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .unwrap();
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        packages
            .iter()
            .map(|package| {
                let name = package["name"].as_str().unwrap().to_owned();
                (name, package["dependencies"].as_array().unwrap().clone())
            })
            .collect()
    }

    fn is_normal(dependency: &Value) -> bool {
        dependency["kind"].is_null()
    }

    #[test]
    fn arrows_between_crates_point_one_way() {
        let manifests = manifests();
        for (name, dependencies) in &manifests {
            let Some((_, allowed)) = MAY_USE.iter().find(|(crate_name, _)| crate_name == name) else {
                panic!("{name} is not in the list of crates and their arrows (xtask/src/arrows.rs)");
            };
            for dependency in dependencies.iter().filter(|dependency| is_normal(dependency)) {
                let used = dependency["name"].as_str().unwrap();
                let ours = manifests.contains_key(used);
                assert!(!ours || allowed.contains(&used), "{name} must not use {used}");
            }
        }
    }

    #[test]
    fn pure_crates_bring_no_runtime_and_no_client() {
        let manifests = manifests();
        for name in PURE {
            for dependency in manifests[*name].iter().filter(|dependency| is_normal(dependency)) {
                let used = dependency["name"].as_str().unwrap();
                assert!(!IMPURE.contains(&used), "{name} must stay pure and uses {used}");
                let features = dependency["features"].as_array().unwrap();
                assert!(
                    !features.contains(&Value::from("client")),
                    "{name} must not use the client of {used}"
                );
            }
        }
    }
}
