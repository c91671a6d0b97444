//! The chart, rendered by the real `helm`: recorded output for sets of values, roles and webhooks equal to the list of
//! features, wrong values are refused.
//!
//! `UPDATE_CHART=1 cargo test -p xtask chart` records what is rendered; read the difference before you keep it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use kruise_api::catalogue::CRDS;
use kruise_api::gates::{self, Gates};
use kruise_core::features::{Side, policy, rbac, webhooks};
use kruise_core::migration::Goal;
use serde_json::{Value, json};

/// Kinds whose content is compared with the code instead of with recorded output.
const COMPARED: &[&str] = &[
    "ClusterRole",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "Role",
    "ValidatingAdmissionPolicy",
    "ValidatingWebhookConfiguration",
];

fn chart() -> PathBuf {
    crate::root().unwrap().join("charts/kruise")
}

/// Whether there is a `helm`. Where not, it is written down that the test was skipped, as the test kit does it.
fn has_helm(test: &str) -> bool {
    if Command::new("helm").arg("version").output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    let line = format!("chart::{test}: needs helm, which is not installed");
    println!("SKIPPED {line}");
    if let Some(file) = env::var_os(crate::summary::SKIPS) {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
        writeln!(file, "{line}").unwrap();
    }
    false
}

fn helm(args: &[&str]) -> Output {
    // Nothing is asked of a cluster that happens to be configured here.
    Command::new("helm").args(args).env("KUBECONFIG", "/dev/null").output().unwrap()
}

/// `helm template` with more arguments; the answer is what it prints, or its error.
fn template(more: &[&str]) -> Result<String, String> {
    let chart = chart();
    let args = ["template", "kruise", chart.to_str().unwrap(), "--kube-version", "1.33.0"];
    let output = helm(&[&args[..], more].concat());
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout).unwrap());
    }
    Err(String::from_utf8(output.stderr).unwrap())
}

/// The objects of a rendering.
fn objects(text: &str) -> Vec<Value> {
    let documents = format!("\n{text}");
    let documents =
        documents.split("\n---").map(|document| serde_saphyr::from_str::<Value>(document).unwrap());
    documents.filter(|document| !document.is_null()).collect()
}

fn rendered(more: &[&str]) -> Vec<Value> {
    objects(&template(more).unwrap())
}

fn name(object: &Value) -> (&str, &str) {
    (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
}

fn find<'a>(objects: &'a [Value], kind: &str, wanted: &str) -> Option<&'a Value> {
    objects.iter().find(|object| name(object) == (kind, wanted))
}

/// The sets of values, by name.
fn sets() -> BTreeMap<String, PathBuf> {
    let files = fs::read_dir(chart().join("ci")).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().replace("-values.yaml", "");
    files.map(|path| (name(&path), path)).collect()
}

#[test]
fn every_set_of_values_passes_helm_lint() {
    if !has_helm("every_set_of_values_passes_helm_lint") {
        return;
    }
    for (set, path) in sets() {
        let chart = chart();
        let output = helm(&["lint", "--strict", chart.to_str().unwrap(), "-f", path.to_str().unwrap()]);
        assert!(output.status.success(), "{set}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// INSTALL-2: values files of the original, with each value at its place.
#[test]
fn every_set_of_values_renders_as_recorded() {
    if !has_helm("every_set_of_values_renders_as_recorded") {
        return;
    }
    let folder = crate::root().unwrap().join("xtask/testdata/chart");
    let mut differ = Vec::new();
    for (set, path) in sets() {
        let mut text = String::from(
            "# Recorded by the tests of xtask/src/chart.rs. What is compared with the code instead is only named.\n",
        );
        for object in rendered(&["-f", path.to_str().unwrap()]) {
            let (kind, name) = name(&object);
            if COMPARED.contains(&kind) {
                text.push_str(&format!("--- # {kind} {name}\n"));
            } else {
                text.push_str(&format!("---\n{}\n", serde_saphyr::to_string(&object).unwrap().trim_end()));
            }
        }
        let file = folder.join(format!("{set}.yaml"));
        if env::var_os("UPDATE_CHART").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, &text).unwrap();
        }
        if fs::read_to_string(&file).unwrap_or_default() != text {
            differ.push(set);
        }
    }
    assert!(differ.is_empty(), "read `UPDATE_CHART=1 cargo test -p xtask chart; git diff`: {differ:?}");
}

/// Gates that differ in what they need: none, groups, single ones, ones that others overrule.
const GATES: &[&str] = &[
    "",
    "AllAlpha=true",
    "AllAlpha=true,AllBeta=true",
    "AllBeta=false",
    "PodWebhook=false,ImagePullJobGate=1",
    "KruiseDaemon=false,PreDownloadImageForInPlaceUpdate=true",
    "EnableExternalCerts=true",
    " ResourcesDeletionProtection = true , DeletionProtectionForCRDCascadingGate=true",
    "DeletionProtectionForCRDCascadingGate=true",
    "ResourceDistributionGate=true,SidecarTerminator=true",
    "EnhancedLivenessProbeGate=true,ImagePullJobGate=true,ImagePullJobGate=false",
    "PreDownloadImageForDaemonSetUpdate=T,DaemonWatchingPod=False",
    "PodProbeMarkerGate=false,WorkloadSpread=false,PodUnavailableBudgetDeleteGate=false",
];

/// Everything that the roles of some objects allow, one line for each verb on each resource.
fn allowed(objects: &[Value]) -> BTreeSet<String> {
    let mut allowed = BTreeSet::new();
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        let list = rule[field].as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    for object in objects {
        let (kind, name) = name(object);
        let namespace = &object["metadata"]["namespace"];
        for rule in object["rules"].as_array().into_iter().flatten() {
            let names = Some(texts(rule, "resourceNames")).filter(|names| !names.is_empty());
            for group in texts(rule, "apiGroups") {
                for resource in texts(rule, "resources") {
                    for only in names.clone().unwrap_or_else(|| vec!["*".to_owned()]) {
                        for verb in texts(rule, "verbs") {
                            allowed.insert(format!(
                                "{kind} {name} {namespace}: {verb} {resource}.{group} {only}"
                            ));
                        }
                    }
                }
            }
        }
    }
    allowed
}

/// INSTALL-4.
#[test]
fn roles_and_webhooks_follow_the_gates_as_the_programs_do() {
    if !has_helm("roles_and_webhooks_follow_the_gates_as_the_programs_do") {
        return;
    }
    for flag in GATES {
        let values = tempfile::NamedTempFile::new().unwrap();
        let content = json!({"featureGates": flag, "crds": {"managed": false}}).to_string();
        fs::write(values.path(), content).unwrap();
        let chart = rendered(&["-f", values.path().to_str().unwrap()]);
        let (gates, _) = Gates::parse(flag, &gates::Options::default()).unwrap();
        let mut expected = rbac::objects(&gates);
        let of = |objects: &[Value], kinds: &[&str]| -> Vec<Value> {
            objects.iter().filter(|object| kinds.contains(&name(object).0)).cloned().collect()
        };
        for kind in ["RoleBinding", "ClusterRoleBinding"] {
            assert_eq!(of(&chart, &[kind]), of(&expected, &[kind]), "{flag}");
        }
        let accounts = |objects: &[Value]| -> BTreeSet<String> {
            of(objects, &["ServiceAccount"]).iter().map(|account| name(account).1.to_owned()).collect()
        };
        assert_eq!(accounts(&chart), accounts(&expected), "{flag}");
        expected.extend(rbac::user_roles());
        let names = |objects: &[Value]| -> BTreeSet<String> {
            of(objects, &["Role", "ClusterRole"]).iter().map(|role| name(role).1.to_owned()).collect()
        };
        assert_eq!(names(&chart), names(&expected), "{flag}");
        let (given, needed) = (allowed(&chart), allowed(&expected));
        let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
            one.difference(other).cloned().collect()
        };
        assert_eq!((only(&given, &needed), only(&needed, &given)), (vec![], vec![]), "{flag}");
        for configuration in webhooks::manifests(&gates, &webhooks::Options::default()) {
            let (kind, name) = name(&configuration);
            assert_eq!(find(&chart, kind, name), Some(&configuration), "{flag}");
        }
        for side in [Side::Mutating, Side::Validating] {
            assert!(webhooks::registered(&gates, side).count() > 8, "{flag}");
        }
        let daemon = gates.enabled(gates::Gate::KruiseDaemon);
        assert_eq!(find(&chart, "DaemonSet", "kruise-daemon").is_some(), daemon, "{flag}");
        assert_eq!(
            find(&chart, "ValidatingAdmissionPolicy", "kruise-daemon-own-node").is_some(),
            daemon,
            "{flag}"
        );
        let external = gates.enabled(gates::Gate::EnableExternalCerts);
        assert_eq!(find(&chart, "Secret", "kruise-webhook-certs").is_none(), external, "{flag}");
    }
}

#[test]
fn the_policy_of_daemons_names_everything_that_any_gate_lets_them_write() {
    if !has_helm("the_policy_of_daemons_names_everything_that_any_gate_lets_them_write") {
        return;
    }
    let all = gates::TABLE.iter().fold(Gates::default(), |gates, entry| gates.with(entry.gate));
    for expected in policy::objects(&all) {
        let chart = rendered(&["--set", "crds.managed=false,featureGates=DaemonWatchingPod=false"]);
        let (kind, name) = name(&expected);
        assert_eq!(find(&chart, kind, name), Some(&expected));
        let elsewhere = rendered(&["--set", "crds.managed=false,installation.namespace=ops"]);
        let text = expected.to_string().replace("kruise-system", "ops");
        assert_eq!(find(&elsewhere, kind, name).unwrap().to_string(), text);
    }
}

#[test]
fn webhooks_follow_their_values() {
    if !has_helm("webhooks_follow_their_values") {
        return;
    }
    let chart = rendered(&[
        "--set=webhookConfiguration.aksIntegration=true,webhookConfiguration.podFailurePolicy=Ignore",
        "--set=webhookConfiguration.timeoutSeconds=7,installation.namespace=ops,featureGates=",
    ]);
    let options = webhooks::Options {
        namespace: "ops".to_owned(),
        pod_timeout_seconds: 7,
        timeout_seconds: 7,
        azure: true,
        ..webhooks::Options::default()
    };
    for configuration in webhooks::manifests(&Gates::default(), &options.fail_open()) {
        let (kind, name) = name(&configuration);
        assert_eq!(find(&chart, kind, name), Some(&configuration));
    }
}

/// INSTALL-2.
#[test]
fn an_old_failure_policy_counts_unless_ours_is_set() {
    if !has_helm("an_old_failure_policy_counts_unless_ours_is_set") {
        return;
    }
    let policy = |sets: &str| -> Value {
        let chart = rendered(&["--set", sets]);
        let found = find(&chart, "MutatingWebhookConfiguration", "kruise-mutating-webhook-configuration");
        found.unwrap()["webhooks"][0]["failurePolicy"].clone()
    };
    assert_eq!(policy("crds.managed=false"), "Fail");
    assert_eq!(policy("webhookConfiguration.failurePolicy.pods=Ignore"), "Ignore");
    let both = "webhookConfiguration.failurePolicy.pods=Ignore,webhookConfiguration.podFailurePolicy=Fail";
    assert_eq!(policy(both), "Fail");
}

#[test]
fn crds_are_those_of_the_code_and_are_kept() {
    if !has_helm("crds_are_those_of_the_code_and_are_kept") {
        return;
    }
    let chart = rendered(&[]);
    let text = |value: &Value| value.to_string();
    for crd in CRDS {
        let found = find(&chart, "CustomResourceDefinition", &crd.name()).unwrap();
        let mut expected = crd.manifest();
        expected["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
        assert_eq!(text(found), text(&expected), "{}", crd.kind);
    }
}

#[test]
fn crds_follow_their_values() {
    if !has_helm("crds_follow_their_values") {
        return;
    }
    let values = chart().join("ci/other-namespace-values.yaml");
    let chart = rendered(&["-f", values.to_str().unwrap(), "--set", "externalCerts.annotations.inject=yes"]);
    for (crd, version) in Goal::OpenKruise19.kinds() {
        let found = find(&chart, "CustomResourceDefinition", &crd.name());
        if ["UnitedDeployment", "EphemeralJob"].contains(&crd.kind) {
            assert_eq!(found, None);
            continue;
        }
        let spec = &found.unwrap()["spec"];
        let stored: Vec<&Value> = spec["versions"].as_array().unwrap().iter().collect();
        let stored: Vec<&Value> = stored
            .into_iter()
            .filter(|version| version["storage"] == true)
            .map(|found| &found["name"])
            .collect();
        assert_eq!(stored, [version], "{}", crd.kind);
        let converted = spec["conversion"]["strategy"] == "Webhook";
        let annotations = &found.unwrap()["metadata"]["annotations"];
        assert_eq!(
            annotations,
            &if converted { json!({"inject": "yes"}) } else { Value::Null },
            "{}",
            crd.kind
        );
        if converted {
            assert_eq!(spec["conversion"]["webhook"]["clientConfig"]["service"]["namespace"], "ops");
        }
    }
}

/// INSTALL-2.
#[test]
fn wrong_values_are_refused_by_name() {
    if !has_helm("wrong_values_are_refused_by_name") {
        return;
    }
    let refused = [
        ("manager.replica=3", ["manager", "replica"]),
        ("managr.replicas=3", ["(root)", "managr"]),
        ("manager.replicas=many", ["manager.replicas", "integer"]),
        ("webhookConfiguration.timeoutSeconds=31", ["webhookConfiguration.timeoutSeconds", "30"]),
        ("webhookConfiguration.podFailurePolicy=Never", ["webhookConfiguration.podFailurePolicy", "Ignore"]),
        ("crds.enabled.Cloneset=false", ["crds.enabled", "Cloneset"]),
        ("daemon.socketLocation=run", ["daemon.socketLocation", "^/"]),
        ("daemon.credentialProvider.enable=true", ["daemon.credentialProvider.hostPath", "absolute"]),
        ("featureGates=PodWebhok=true", ["featureGates", "PodWebhok"]),
        ("featureGates=PodWebhook=maybe", ["featureGates", "PodWebhook"]),
    ];
    for (set, expected) in refused {
        let error = template(&["--set", set]).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{set}: {error}");
        }
    }
}

#[test]
fn old_servers_get_what_they_know() {
    if !has_helm("old_servers_get_what_they_know") {
        return;
    }
    let chart = rendered(&["--kube-version", "1.20.0", "--set", "crds.managed=false"]);
    let budget = find(&chart, "PodDisruptionBudget", "kruise-controller-manager").unwrap();
    assert_eq!(budget["apiVersion"], "policy/v1beta1");
    let newer = ["ValidatingAdmissionPolicy", "FlowSchema", "PriorityLevelConfiguration"];
    assert!(chart.iter().all(|object| !newer.contains(&name(object).0)));
    let manager = find(&chart, "Deployment", "kruise-controller-manager").unwrap().to_string();
    assert!(!manager.contains("matchLabelKeys"));
    let error = template(&["--kube-version", "1.19.0"]).unwrap_err();
    assert!(error.contains(">=1.20.0-0"), "{error}");
}

/// A copy of the chart in which the notes are an object: `helm template` prints no notes, and whatever prints them asks a
/// cluster.
fn copy_with_notes() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let templates = copy.path().join("templates");
    fs::create_dir_all(templates.join("generated")).unwrap();
    let helpers = ["templates/_helpers.tpl", "templates/generated/_gates.tpl"];
    for file in ["Chart.yaml", "values.yaml", "values.schema.json"].iter().chain(&helpers) {
        fs::copy(chart().join(file), copy.path().join(file)).unwrap();
    }
    let notes = fs::read_to_string(chart().join("templates/NOTES.txt")).unwrap();
    fs::write(templates.join("_notes.tpl"), format!("{{{{ define \"notes\" }}}}{notes}{{{{ end }}}}"))
        .unwrap();
    fs::write(templates.join("notes.yaml"), "notes: {{ include \"notes\" . | toJson }}\n").unwrap();
    copy
}

/// INSTALL-27.
#[test]
fn notes_say_what_a_user_must_know() {
    if !has_helm("notes_say_what_a_user_must_know") {
        return;
    }
    let copy = copy_with_notes();
    let notes = |sets: &str| -> String {
        let output =
            helm(&["template", copy.path().to_str().unwrap(), "-s", "templates/notes.yaml", "--set", sets]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        objects(&String::from_utf8(output.stdout).unwrap())[0]["notes"].as_str().unwrap().to_owned()
    };
    let foreign = "names the image of OpenKruise";
    let own = notes("crds.keep=true");
    assert!(own.contains("built from the source") && !own.contains(foreign), "{own}");
    let image = "registry.example:5000/openkruise/kruise-manager";
    let old = notes(&format!("manager.image.repository={image},manager.image.tag=v1.9.0"));
    assert!(old.contains(&format!("manager.image {foreign} ({image}:v1.9.0)")), "{old}");
    let mine = notes("manager.image.repository=registry.example/my-openkruise/kruise-manager");
    assert!(!mine.contains(foreign), "{mine}");
    assert!(notes("crds.keep=false").contains("deletes the CRDs, all custom objects"));
    assert!(notes("helmHooks.image.tag=v0.1.0").contains("helmHooks has no effect"));
}

/// INSTALL-26, INSTALL-27.
#[test]
fn pods_have_probes_and_no_cpu_limit_and_the_manager_is_restricted() {
    if !has_helm("pods_have_probes_and_no_cpu_limit_and_the_manager_is_restricted") {
        return;
    }
    let chart = rendered(&["--set", "daemon.image.repository=registry.example/slim"]);
    let pod = |kind: &str, name: &str| find(&chart, kind, name).unwrap()["spec"]["template"]["spec"].clone();
    let manager = pod("Deployment", "kruise-controller-manager");
    let daemon = pod("DaemonSet", "kruise-daemon");
    for pod in [&manager, &daemon] {
        let container = &pod["containers"][0];
        assert_eq!(container["resources"]["limits"]["cpu"], Value::Null);
        assert!(container["resources"]["limits"]["memory"].is_string());
        assert!(container["livenessProbe"].is_object() && container["readinessProbe"].is_object());
        assert_eq!(container["imagePullPolicy"], "IfNotPresent");
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
        assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    }
    assert_eq!(manager["securityContext"]["runAsNonRoot"], true);
    assert_eq!(manager["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let volumes = manager["volumes"].as_array().unwrap();
    assert!(volumes.iter().all(|volume| volume["emptyDir"].is_object()), "{volumes:?}");
    assert_eq!(daemon["containers"][0]["image"], "registry.example/slim:0.1.0");
    assert_eq!(manager["containers"][0]["image"], "kruise-rs/kruise-manager:0.1.0");
}

/// What a command line of a rendered container says to our own programs: every flag and variable must exist.
#[test]
fn programs_know_every_flag_of_their_pods() {
    if !has_helm("programs_know_every_flag_of_their_pods") {
        return;
    }
    let root = crate::root().unwrap();
    for path in sets().values() {
        for object in rendered(&["-f", path.to_str().unwrap()]) {
            let options = match name(&object) {
                ("Deployment", _) => "crates/manager/src/options.rs",
                ("DaemonSet", _) => "crates/daemon/src/options.rs",
                _ => continue,
            };
            let options = fs::read_to_string(root.join(options)).unwrap();
            let arguments = object["spec"]["template"]["spec"]["containers"][0]["args"].clone();
            for argument in arguments.as_array().unwrap() {
                let flag = argument.as_str().unwrap().trim_start_matches('-');
                let flag = flag.split('=').next().unwrap();
                let field = flag.replace('-', "_");
                let known = flag == "v"
                    || options.contains(&format!("pub {field}: "))
                    || options.contains(&format!("    {field}, "));
                assert!(known, "--{flag}");
            }
        }
    }
}

/// Every path of a document that is no list and no empty object.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value.as_object().filter(|object| !object.is_empty()) {
        Some(object) => {
            for (key, value) in object {
                leaves(value, &format!("{path}/properties/{key}"), found);
            }
        }
        None => found.push(path.to_owned()),
    }
}

#[test]
fn the_schema_knows_every_value_and_every_kind() {
    let read = |file: &str| fs::read_to_string(chart().join(file)).unwrap();
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).unwrap();
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let mut paths = Vec::new();
    leaves(&values, "", &mut paths);
    assert!(paths.len() > 60, "{paths:?}");
    // Content of Kubernetes' own types.
    let free = |path: &str| path.contains("affinity/") || path.contains("resources/");
    for path in paths.iter().filter(|path| !free(path)) {
        assert!(schema.pointer(path).is_some(), "values.schema.json lacks {path}");
    }
    let kinds = &schema["properties"]["crds"]["properties"]["enabled"]["properties"];
    let kinds: BTreeSet<&str> = kinds.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(kinds, CRDS.iter().map(|crd| crd.kind).collect());
}

#[test]
fn the_chart_has_the_version_of_the_programs() {
    let chart: Value =
        serde_saphyr::from_str(&fs::read_to_string(chart().join("Chart.yaml")).unwrap()).unwrap();
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}
