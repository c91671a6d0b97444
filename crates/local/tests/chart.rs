//! The chart against the embedded API server, by the real `helm`: install, upgrade, test, uninstall, install again. No image
//! is pulled here and no container runs, so these tests are about what Helm and the API server do with the objects.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use kruise_local::cluster::{self, Settings};
use kruise_local::daemons::When;
use serde_json::{Value, json};

/// A cluster without our manager, and commands on it.
struct Lab {
    home: tempfile::TempDir,
}

impl Lab {
    fn run(&self, program: &str, args: &[&str], input: Option<&str>) -> Output {
        let mut child = Command::new(program)
            .args(args)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts"))
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("kubeconfig"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.unwrap_or_default().as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs a command that must succeed; the answer is what it prints.
    fn ok(&self, program: &str, args: &[&str]) -> String {
        let output = self.run(program, args, None);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {}: {error}", args.join(" "));
        String::from_utf8(output.stdout).unwrap()
    }

    fn helm(&self, args: &[&str]) -> String {
        self.ok("helm", args)
    }

    fn get(&self, args: &[&str]) -> Value {
        let text = self.ok("kubectl", &[&["get", "-o", "json"], args].concat());
        serde_json::from_str(&text).unwrap()
    }

    /// Changes an object with a merge patch.
    fn patch(&self, object: &[&str], patch: &Value) {
        self.ok("kubectl", &[&["patch", "--type", "merge", "-p", &patch.to_string()], object].concat());
    }
}

fn has(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}

/// Plays a scenario where there are `helm` and `kubectl`; elsewhere writes down that it was skipped, as the test kit does.
fn play(test: &str, scenario: impl FnOnce(&Lab)) {
    for (program, args) in [("helm", &["version"][..]), ("kubectl", &["version", "--client"])] {
        if !has(program, args) {
            let line = format!("chart::{test}: needs {program}, which is not installed");
            println!("SKIPPED {line}");
            if let Some(file) = env::var_os("KRUISE_TEST_SKIPS") {
                let mut file = fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
                writeln!(file, "{line}").unwrap();
            }
            return;
        }
    }
    let lab = Lab { home: tempfile::tempdir().unwrap() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let cluster = runtime.block_on(cluster::start(&settings(lab.home.path().join("kubeconfig")))).unwrap();
    scenario(&lab);
    runtime.block_on(cluster.stop()).unwrap();
}

#[allow(clippy::disallowed_methods, reason = "helm compares times with the clock of the machine")]
fn settings(kubeconfig: std::path::PathBuf) -> Settings {
    Settings {
        port: Some(0),
        kubeconfig,
        data_dir: None,
        nodes: 1,
        speed: 1.0,
        seed: 1,
        now: jiff::Timestamp::now(),
        with_manager: false,
        daemons: When::ThereIsWork,
        feature_gates: String::new(),
    }
}

/// Where objects of a kind are created.
fn path(lab: &Lab, object: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap();
    let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let served: Value = serde_json::from_str(&lab.ok("kubectl", &["get", "--raw", &root])).unwrap();
    let resources = served["resources"].as_array().unwrap();
    let is_it =
        |found: &&Value| found["kind"] == object["kind"] && !found["name"].as_str().unwrap().contains('/');
    let found = resources.iter().find(is_it).unwrap_or_else(|| panic!("{} is not served", object["kind"]));
    let name = found["name"].as_str().unwrap();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{name}"),
        None => format!("{root}/{name}"),
    }
}

#[test]
fn every_object_of_the_chart_passes_strict_validation() {
    play("every_object_of_the_chart_passes_strict_validation", |lab| {
        // Kinds that this server does not have.
        let served = ["--set", "flowControl.enabled=false,manager.userNamespace=true,crds.keep=false"];
        let more = ["--set", "networkPolicy.enabled=true,installation.criticalPodsQuota=true"];
        let gates = ["--set", "featureGates=AllAlpha=true\\,AllBeta=true"];
        let template = ["template", "kruise", "kruise", "--no-hooks", "--kube-version", "1.33.0"];
        let text = lab.helm(&[&template[..], &served, &more, &gates].concat());
        let mut accepted = 0;
        for document in text.split("\n---") {
            let object: Value = serde_saphyr::from_str(document.trim_start_matches("---")).unwrap();
            if object.is_null() {
                continue;
            }
            let path = format!("{}?fieldValidation=Strict&dryRun=All", path(lab, &object));
            let output =
                lab.run("kubectl", &["create", "--raw", &path, "-f", "-"], Some(&object.to_string()));
            let error = String::from_utf8_lossy(&output.stderr);
            // What exists already is found after the content was validated.
            assert!(output.status.success() || error.contains("already exists"), "{path}: {error}");
            accepted += 1;
        }
        assert!(accepted > 45, "{accepted}");
    });
}

const MUTATING: &[&str] = &["mutatingwebhookconfiguration", "kruise-mutating-webhook-configuration"];
const SECRET: &[&str] = &["-n", "kruise-system", "secret", "kruise-webhook-certs"];
const CLONE_SETS: &[&str] = &["crd", "clonesets.apps.kruise.io"];

#[test]
fn helm_installs_upgrades_and_uninstalls_without_losing_an_object_or_a_certificate() {
    play("helm_installs_upgrades_and_uninstalls_without_losing_an_object_or_a_certificate", |lab| {
        // The embedded cluster has our CRDs and namespaces already.
        lab.helm(&["install", "kruise", "kruise", "--take-ownership"]);
        let release = lab.get(&["secret", "sh.helm.release.v1.kruise.v1"]);
        let size = release["data"]["release"].as_str().unwrap().len();
        assert!(size < 500_000, "a release of {size} bytes comes near to the limit of 1 MiB");

        // What the manager writes when it runs.
        let mut configuration = lab.get(MUTATING);
        for webhook in configuration["webhooks"].as_array_mut().unwrap() {
            webhook["clientConfig"]["caBundle"] = json!("Q0E=");
        }
        lab.patch(MUTATING, &json!({"webhooks": configuration["webhooks"]}));
        lab.patch(SECRET, &json!({"data": {"tls.crt": "Y2VydA=="}}));
        let bundle = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "Q0E="}}}}});
        lab.patch(CLONE_SETS, &bundle);
        lab.helm(&["upgrade", "kruise", "kruise", "--set", "manager.replicas=3,crds.keep=true"]);
        lab.helm(&["upgrade", "kruise", "kruise", "--force", "--set", "featureGates="]);
        let webhooks = lab.get(MUTATING)["webhooks"].clone();
        let webhooks = webhooks.as_array().unwrap();
        assert!(webhooks.iter().all(|webhook| webhook["clientConfig"]["caBundle"] == "Q0E="), "{webhooks:?}");
        assert_eq!(lab.get(SECRET)["data"]["tls.crt"], "Y2VydA==");
        let conversion = lab.get(CLONE_SETS)["spec"]["conversion"]["webhook"]["clientConfig"].clone();
        assert_eq!(conversion["caBundle"], "Q0E=");

        // Nobody answers the webhooks here, and the test of the chart says so.
        let tested = lab.run("helm", &["test", "kruise"], None);
        let error = String::from_utf8_lossy(&tested.stderr).into_owned();
        assert!(
            !tested.status.success() && error.contains("failed calling webhook \"mcloneset.kb.io\""),
            "{error}"
        );

        // A CRD that leaves the release stays if it is to be kept, and is not deleted by mistake otherwise.
        lab.ok("kubectl", &[&["annotate"], CLONE_SETS, &["helm.sh/resource-policy-"]].concat());
        let upgrade = ["upgrade", "kruise", "kruise", "--set", "crds.managed=false"];
        let refused = lab.run("helm", &upgrade, None);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && error.contains("kubectl annotate crd clonesets"), "{error}");
        lab.ok("kubectl", &[&["annotate"], CLONE_SETS, &["helm.sh/resource-policy=keep"]].concat());
        lab.helm(&upgrade);
        assert_eq!(lab.get(CLONE_SETS)["metadata"]["name"], CLONE_SETS[1]);
        lab.helm(&["upgrade", "kruise", "kruise", "--reset-values"]);

        let uninstalled = lab.helm(&["uninstall", "kruise"]);
        assert!(uninstalled.contains("kept due to the resource policy"), "{uninstalled}");
        assert_eq!(lab.get(CLONE_SETS)["metadata"]["name"], CLONE_SETS[1]);
        let gone = lab.run("kubectl", &[&["get"], MUTATING].concat(), None);
        assert!(!gone.status.success());
    });
}

/// A chart that stands in for an older one: the same objects without what ours adds, with certificates and an address in its
/// own manifest, and CRDs that nobody marked to be kept.
fn older_chart(lab: &Lab) -> String {
    let values = "crds.keep=false,crds.storage=v1alpha1,flowControl.enabled=false,manager.pdb.enabled=false";
    let template =
        ["template", "kruise", "kruise", "--no-hooks", "--kube-version", "1.29.0", "--set", values];
    let text = lab.helm(&template);
    let secret = "kind: Secret\nmetadata:\n  name: kruise-webhook-certs\n";
    assert!(text.contains(secret));
    let text = text.replace(secret, &secret.replace("metadata:", "data:\n  tls.crt: Y2VydA==\nmetadata:"));
    let folder = lab.home.path().join("older");
    fs::create_dir_all(folder.join("templates")).unwrap();
    fs::write(folder.join("Chart.yaml"), "apiVersion: v1\nname: kruise\nversion: 1.9.0\n").unwrap();
    fs::write(folder.join("templates/all.yaml"), text).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn an_older_release_is_taken_over_in_place_and_can_come_back() {
    play("an_older_release_is_taken_over_in_place_and_can_come_back", |lab| {
        lab.helm(&["install", "kruise", &older_chart(lab), "--take-ownership"]);
        let bundle = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "Q0E="}}}}});
        lab.patch(CLONE_SETS, &bundle);
        let manager = ["-n", "kruise-system", "deployment", "kruise-controller-manager"];
        let service = ["-n", "kruise-system", "service", "kruise-webhook-service"];
        let same = || {
            let (manager, service, crd) = (lab.get(&manager), lab.get(&service), lab.get(CLONE_SETS));
            let uids = [&manager, &service, &crd].map(|object| object["metadata"]["uid"].clone());
            let client = crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].clone();
            (uids, service["spec"]["clusterIP"].clone(), lab.get(SECRET)["data"].clone(), client)
        };
        let before = same();

        // Helm would delete the CRDs, and so all objects, because nothing marks them to be kept.
        let refused = lab.run("helm", &["upgrade", "kruise", "kruise", "--set", "crds.managed=false"], None);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && error.contains("helm.sh/resource-policy=keep"), "{error}");

        lab.helm(&["upgrade", "kruise", "kruise", "--reset-values", "--set", "crds.storage=v1alpha1"]);
        assert_eq!(same(), before);
        assert_eq!(lab.get(CLONE_SETS)["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");

        // A rollback renders nothing: what the older manifest lacks, such as authorities, is its manager's to add.
        lab.helm(&["rollback", "kruise"]);
        let after = same();
        assert_eq!((after.0, after.1, after.2), (before.0, before.1, before.2));
        let gone =
            lab.run("kubectl", &["get", "-n", "kruise-system", "pdb", "kruise-controller-manager"], None);
        assert!(!gone.status.success());
    });
}

/// INSTALL-12, INSTALL-13.
#[test]
fn a_release_in_a_namespace_that_it_should_create_is_refused_with_what_to_do() {
    play("a_release_in_a_namespace_that_it_should_create_is_refused_with_what_to_do", |lab| {
        let install = ["install", "kruise", "kruise", "-n", "kruise-system"];
        let refused = lab.run("helm", &install, None);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && error.contains("installation.createNamespace=false"), "{error}");
        let without = ["--set", "installation.createNamespace=false", "--take-ownership"];
        let noted = lab.helm(&[&install[..], &without].concat());
        assert!(!noted.contains("lacks the label control-plane=openkruise"), "{noted}");
        lab.ok("kubectl", &["label", "namespace", "kruise-system", "control-plane-"]);
        let upgrade = ["upgrade", "kruise", "kruise", "-n", "kruise-system", "--reuse-values"];
        let noted = lab.helm(&upgrade);
        assert!(noted.contains("lacks the label control-plane=openkruise"), "{noted}");
    });
}
