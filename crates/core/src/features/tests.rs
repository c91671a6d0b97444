use std::collections::{BTreeMap, BTreeSet};

use kruise_api::{catalogue::CRDS, gates, names};
use serde_json::{Value, json};

use super::{webhooks::Options, *};

fn parse(flag: &str) -> Gates {
    Gates::parse(flag, &gates::Options::default()).unwrap().0
}

fn hook_names(configuration: &Value) -> Vec<&str> {
    let webhooks = configuration["webhooks"].as_array().unwrap();
    let mut names: Vec<&str> = webhooks.iter().map(|webhook| webhook["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

/// The names that the original registers with its default gates, seen running, and one of our own that keeps nodes from
/// asking strangers.
#[test]
fn default_gates_register_the_webhooks_that_clusters_know() {
    let [mutating, validating] = webhooks::configurations(&Gates::default(), &Options::default());
    assert_eq!(mutating["metadata"]["name"], "kruise-mutating-webhook-configuration");
    assert_eq!(
        hook_names(&mutating),
        [
            "madvancedcronjob.kb.io",
            "mbroadcastjob.kb.io",
            "mcloneset.kb.io",
            "mcontainerrecreaterequest.kb.io",
            "mdaemonset.kb.io",
            "mimagelistpulljob-v1beta1.kb.io",
            "mimagepulljob-v1beta1.kb.io",
            "mnodeimage.kb.io",
            "mpod.kb.io",
            "msidecarset.kb.io",
            "mstatefulset.kb.io",
            "muniteddeployment.kb.io",
        ]
    );
    assert_eq!(validating["metadata"]["name"], "kruise-validating-webhook-configuration");
    assert_eq!(
        hook_names(&validating),
        [
            "vadvancedcronjob.kb.io",
            "vbroadcastjob.kb.io",
            "vbuiltindeployment.kb.io",
            "vbuiltinreplicaset.kb.io",
            "vbuiltinstatefulset.kb.io",
            "vcloneset.kb.io",
            "vcustomresourcedefinition.kb.io",
            "vdaemonset.kb.io",
            "vephemeraljobs.kb.io",
            "vimagelistpulljob-v1beta1.kb.io",
            "vimagepulljob-v1beta1.kb.io",
            "vnamespace.kb.io",
            "vnodeimage.kb.io",
            "vnodepodprobe.kb.io",
            "vpersistentpodstate.kb.io",
            "vpod.kb.io",
            "vpodeviction.kb.io",
            "vpodprobemarker.kb.io",
            "vpodunavailablebudget.kb.io",
            "vresourcedistribution.kb.io",
            "vsidecarset.kb.io",
            "vstatefulset.kb.io",
            "vuniteddeployment.kb.io",
            "vworkloadspread.kb.io",
        ]
    );
}

/// PLATFORM-7: without the gate the pod webhooks are gone, and so are their paths.
#[test]
fn closed_gates_take_their_webhooks_out() {
    let gates = parse("PodWebhook=false");
    let [mutating, validating] = webhooks::configurations(&gates, &Options::default());
    assert!(!hook_names(&mutating).contains(&"mpod.kb.io"));
    for name in ["vpod.kb.io", "vpodeviction.kb.io"] {
        assert!(!hook_names(&validating).contains(&name), "{name}");
    }
    // Another manager beside this one may still have them registered.
    let pods = paths(&gates).into_iter().filter(|path| path.path.ends_with("-pod"));
    assert!(pods.map(|path| path.handler).all(|handler| handler == Handler::Allow));
    // Who tries to make a spread is told why not.
    assert!(hook_names(&validating).contains(&"vworkloadspread.kb.io"));
    let gates = parse("ResourcesDeletionProtection=true");
    let [_, validating] = webhooks::configurations(&gates, &Options::default());
    for name in ["vservice.kb.io", "vingress.kb.io"] {
        assert!(hook_names(&validating).contains(&name), "{name}");
    }
}

#[test]
fn with_certificates_from_outside_closed_paths_let_everything_pass() {
    let gates = parse("PodWebhook=false,EnableExternalCerts=true");
    let handler =
        |wanted: &str| paths(&gates).iter().find(|path| path.path == wanted).map(|path| path.handler);
    assert_eq!(handler("/mutate-pod"), Some(Handler::Allow));
    assert_eq!(handler("/validate-pod"), Some(Handler::Allow));
    assert_eq!(handler("/validate-service"), Some(Handler::Allow));
    assert_eq!(handler("/mutate-apps-kruise-io-cloneset"), Some(Handler::Mutate("CloneSet")));
}

fn webhook<'a>(configuration: &'a Value, name: &str) -> &'a Value {
    let webhooks = configuration["webhooks"].as_array().unwrap();
    webhooks.iter().find(|webhook| webhook["name"] == name).unwrap()
}

/// PLATFORM-28: which pods are sent to us. Also what happens while we are down, and that resizing is seen.
#[test]
fn pods_of_the_system_and_of_ourselves_never_wait_for_us() {
    let [mutating, validating] = webhooks::configurations(&Gates::default(), &Options::default());
    assert_eq!(
        *webhook(&mutating, "mpod.kb.io"),
        json!({
            "name": "mpod.kb.io",
            "clientConfig": {"service":
                {"namespace": "kruise-system", "name": "kruise-webhook-service", "path": "/mutate-pod"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"],
                "scope": "*"}],
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": [
                {"key": "control-plane", "operator": "NotIn", "values": ["openkruise"]},
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kruise-system"]},
            ]},
            "reinvocationPolicy": "Never",
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": 5,
            "admissionReviewVersions": ["v1", "v1beta1"],
        })
    );
    let pod = webhook(&validating, "vpod.kb.io");
    assert_eq!(pod["rules"][1]["resources"], json!(["pods/resize"]));
    assert_eq!(pod["rules"][1]["operations"], json!(["UPDATE"]));
    assert_eq!(pod["sideEffects"], "NoneOnDryRun");
    let deployment = webhook(&validating, "vbuiltindeployment.kb.io");
    assert_eq!(deployment["failurePolicy"], "Ignore");
    assert_eq!(
        deployment["objectSelector"],
        json!({"matchExpressions": [{"key": "policy.kruise.io/delete-protection", "operator": "Exists"}]})
    );
    assert_eq!(webhook(&validating, "vcloneset.kb.io")["failurePolicy"], "Fail");
}

#[test]
fn an_installation_chooses_policies_timeouts_and_places() {
    let options = Options {
        namespace: "tools".to_owned(),
        pod_timeout_seconds: 2,
        policies: BTreeMap::from([("mpod.kb.io".to_owned(), Policy::Ignore)]),
        exempt_namespaces: vec!["storage".to_owned()],
        azure: true,
        ..Options::default()
    };
    let [mutating, validating] = webhooks::configurations(&Gates::default(), &options);
    let pod = webhook(&mutating, "mpod.kb.io");
    assert_eq!(pod["failurePolicy"], "Ignore");
    assert_eq!(pod["timeoutSeconds"], 2);
    assert_eq!(pod["clientConfig"]["service"]["namespace"], "tools");
    let selector = pod["namespaceSelector"]["matchExpressions"].as_array().unwrap();
    assert_eq!(selector[1]["values"], json!(["kube-system", "tools", "storage"]));
    let own = webhook(&validating, "vcloneset.kb.io");
    assert_eq!(own["namespaceSelector"]["matchExpressions"][1]["key"], "kubernetes.azure.com/managedby");
}

/// PLATFORM-25: paths of configurations that older charts left behind reach the same handler.
#[test]
fn every_alias_reaches_the_handler_of_its_kind() {
    let served = paths(&Gates::default());
    let handler = |wanted: &str| served.iter().find(|path| path.path == wanted).map(|path| path.handler);
    let kinds = |words: &str| -> Vec<(String, &'static str)> {
        let kind = |word: &str| CRDS.iter().find(|crd| crd.kind.to_lowercase() == word).unwrap().kind;
        words.split(' ').map(|word| (word.to_owned(), kind(word))).collect()
    };
    let mutated = "advancedcronjob broadcastjob cloneset containerrecreaterequest daemonset imagelistpulljob \
                   imagepulljob nodeimage sidecarset uniteddeployment";
    for (word, kind) in kinds(mutated) {
        for version in ["", "v1alpha1-"] {
            let path = format!("/mutate-apps-kruise-io-{version}{word}");
            assert_eq!(handler(&path), Some(Handler::Mutate(kind)), "{path}");
        }
    }
    let validated = "advancedcronjob broadcastjob cloneset daemonset imagelistpulljob imagepulljob nodeimage \
                     resourcedistribution sidecarset uniteddeployment workloadspread";
    for (word, kind) in kinds(validated) {
        for version in ["", "v1alpha1-"] {
            let path = format!("/validate-apps-kruise-io-{version}{word}");
            assert_eq!(handler(&path), Some(Handler::Validate(kind)), "{path}");
        }
    }
    assert_eq!(
        handler("/validate-apps-kruise-io-v1alpha1-ephemeraljob"),
        Some(Handler::Validate("EphemeralJob"))
    );
}

#[test]
fn every_registered_path_is_served_and_paths_are_unique() {
    for flag in ["", "AllAlpha=true,AllBeta=true", "PodWebhook=false,KruiseDaemon=false"] {
        let gates = parse(flag);
        let served = paths(&gates);
        let unique: BTreeSet<&str> = served.iter().map(|path| path.path).collect();
        assert_eq!(unique.len(), served.len());
        for side in [Side::Mutating, Side::Validating] {
            for webhook in webhooks::registered(&gates, side) {
                let found = served.iter().find(|path| path.path == webhook.path);
                assert_eq!(found.map(|path| path.handler), Some(webhook.handler), "{}", webhook.name);
            }
        }
    }
}

/// Rules of webhooks of our kinds name resources and versions that exist.
#[test]
fn webhooks_of_our_kinds_agree_with_the_catalogue() {
    for webhook in ALL.iter().flat_map(|feature| feature.webhooks) {
        let (Handler::Mutate(kind) | Handler::Validate(kind)) = webhook.handler else { continue };
        let crd = kruise_api::catalogue::by_kind(kind).unwrap();
        for rule in webhook.rules {
            assert_eq!((rule.group, rule.resource), (crd.group, crd.plural), "{}", webhook.name);
            let versions: Vec<&str> = crd.versions.iter().map(|version| version.name).collect();
            assert_eq!(rule.versions, versions, "{}", webhook.name);
        }
    }
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> Option<&'a Value> {
    objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
}

fn allowed(role: &Value, group: &str, resource: &str, verb: &str) -> bool {
    role["rules"].as_array().unwrap().iter().any(|rule| {
        let has = |member: &str, wanted: &str| rule[member].as_array().unwrap().contains(&json!(wanted));
        has("apiGroups", group) && has("resources", resource) && has("verbs", verb)
    })
}

#[test]
fn the_manager_may_watch_what_it_watches() {
    for flag in ["", "AllAlpha=true,AllBeta=true", "PodWebhook=false,KruiseDaemon=false"] {
        let gates = parse(flag);
        let objects = rbac::objects(&gates);
        let role = find(&objects, "ClusterRole", "kruise-manager-role").unwrap();
        for resource in watches(&gates) {
            for verb in ["get", "list", "watch"] {
                assert!(allowed(role, resource.group, resource.plural, verb), "{verb} {}", resource.plural);
            }
        }
    }
}

#[test]
fn nobody_may_do_more_than_the_features_need() {
    let objects = rbac::objects(&Gates::default());
    for object in &objects {
        let text = object.to_string();
        assert!(!text.contains("\"*\""), "{text}");
    }
    let role = find(&objects, "ClusterRole", "kruise-manager-role").unwrap();
    assert!(!allowed(role, "", "secrets", "get"));
    assert!(!allowed(role, "", "pods/resize", "patch"));
    assert!(!allowed(role, names::APPS_GROUP, "imagepulljobs", "create"));
    assert!(allowed(role, "", "pods", "delete"), "CloneSets do");
    assert!(allowed(role, "", "configmaps", "create"), "start orders need barriers");
    assert!(!allowed(role, "", "configmaps", "list"), "and nobody looks at all of them");
    let everything: Vec<&Feature> = ALL.iter().collect();
    let gates = parse("InPlaceWorkloadVerticalScaling=true,PreDownloadImageForInPlaceUpdate=true");
    let objects = rbac::objects_of(&everything, &gates);
    let role = find(&objects, "ClusterRole", "kruise-manager-role").unwrap();
    assert!(allowed(role, "", "pods/resize", "patch"));
    assert!(allowed(role, names::APPS_GROUP, "imagepulljobs", "create"));
}

/// Every definition that our manager converts, and only those, and the two configurations by name.
#[test]
fn certificates_are_published_where_they_must_be_and_nowhere_else() {
    let objects = rbac::objects(&Gates::default());
    let role = find(&objects, "ClusterRole", "kruise-certs-role").unwrap();
    assert_eq!(
        role["rules"],
        json!([
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["mutatingwebhookconfigurations"],
                "resourceNames": ["kruise-mutating-webhook-configuration"], "verbs": ["patch", "update"]},
            {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["validatingwebhookconfigurations"],
                "resourceNames": ["kruise-validating-webhook-configuration"], "verbs": ["patch", "update"]},
            {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
                "resourceNames": [
                    "advancedcronjobs.apps.kruise.io", "clonesets.apps.kruise.io",
                    "containerrecreaterequests.apps.kruise.io", "daemonsets.apps.kruise.io",
                    "persistentpodstates.apps.kruise.io", "resourcedistributions.apps.kruise.io",
                    "sidecarsets.apps.kruise.io", "statefulsets.apps.kruise.io",
                    "uniteddeployments.apps.kruise.io", "workloadspreads.apps.kruise.io",
                    "podunavailablebudgets.policy.kruise.io",
                ],
                "verbs": ["patch", "update"]},
        ])
    );
    let objects = rbac::objects(&parse("EnableExternalCerts=true"));
    assert!(find(&objects, "ClusterRole", "kruise-certs-role").is_none());
    let own = find(&objects, "Role", "kruise-webhook-role").unwrap();
    assert!(allowed(own, "", "secrets", "get"));
    assert!(!allowed(own, "", "secrets", "update"));
}

/// The migration writes definitions of kinds with two versions and their objects, and nothing else.
#[test]
fn the_migration_has_its_own_account_and_role() {
    let objects = rbac::migration();
    let role = find(&objects, "ClusterRole", "kruise-storage-migration").unwrap();
    let definitions = "customresourcedefinitions";
    assert!(allowed(role, "apiextensions.k8s.io", definitions, "get"));
    assert!(allowed(role, "apiextensions.k8s.io", &format!("{definitions}/status"), "patch"));
    let named: Vec<&Value> = role["rules"][1]["resourceNames"].as_array().unwrap().iter().collect();
    assert_eq!(named.len(), 15);
    for crd in CRDS {
        let moves = crd.versions.len() > 1;
        assert_eq!(named.contains(&&json!(crd.name())), moves, "{}", crd.name());
        assert_eq!(allowed(role, crd.group, crd.plural, "patch"), moves, "{}", crd.name());
        assert!(!allowed(role, crd.group, crd.plural, "delete"));
    }
    let [account, _, binding] = objects.as_slice() else { panic!("three objects") };
    assert_eq!(binding["subjects"][0]["name"], account["metadata"]["name"]);
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
}

#[test]
fn fail_open_is_about_pods_and_nothing_else() {
    let [mutating, validating] = webhooks::configurations(&Gates::default(), &Options::default().fail_open());
    for name in ["mpod.kb.io", "vpod.kb.io", "vpodeviction.kb.io"] {
        let side = if name.starts_with('m') { &mutating } else { &validating };
        assert_eq!(webhook(side, name)["failurePolicy"], "Ignore", "{name}");
    }
    assert_eq!(webhook(&mutating, "mcloneset.kb.io")["failurePolicy"], "Fail");
    assert_eq!(webhook(&validating, "vcloneset.kb.io")["failurePolicy"], "Fail");
}

#[test]
fn every_role_is_bound_to_an_account_that_exists() {
    let built: Vec<&Feature> = ALL.iter().collect();
    let objects = rbac::objects_of(&built, &parse("AllAlpha=true"));
    let bindings: Vec<&Value> =
        objects.iter().filter(|object| object["kind"].as_str().unwrap().ends_with("Binding")).collect();
    assert_eq!(bindings.len(), 7);
    for binding in bindings {
        let role = &binding["roleRef"];
        assert!(find(&objects, role["kind"].as_str().unwrap(), role["name"].as_str().unwrap()).is_some());
        let subject = &binding["subjects"][0];
        assert!(find(&objects, "ServiceAccount", subject["name"].as_str().unwrap()).is_some());
    }
    let secrets = find(&objects, "Role", "kruise-daemon-secret-role").unwrap();
    assert_eq!(secrets["metadata"]["namespace"], "kruise-daemon-config");
}

#[test]
fn a_feature_without_its_gate_or_its_code_needs_nothing() {
    let with = |gates: &Gates| rbac::objects_of(&ALL.iter().collect::<Vec<_>>(), gates);
    assert!(find(&with(&Gates::default()), "ClusterRole", "kruise-daemon-role").is_some());
    assert!(find(&with(&parse("KruiseDaemon=false")), "ClusterRole", "kruise-daemon-role").is_none());
    assert!(find(&rbac::objects(&Gates::default()), "ServiceAccount", "kruise-daemon").is_some());
    // Tags that people write by hand name secrets, with pull jobs or without.
    assert!(find(&with(&Gates::default()), "Role", "kruise-daemon-secret-role").is_some());
    assert!(find(&with(&Gates::default()), "Role", "kruise-pull-secret-role").is_none());
    let running: Vec<&str> = controllers(&Gates::default()).map(|(_, controller)| controller.name).collect();
    assert_eq!(
        running,
        [
            "webhook-controller",
            "pod-readiness-controller",
            "cloneset-controller",
            "statefulset-controller",
            "daemonset-controller",
            "broadcastjob-controller",
            "advancedcronjob-controller",
            "sidecarset-controller",
            "uniteddeployment-controller",
            "workloadspread-controller",
            "podunavailablebudget-controller",
            "containerrecreaterequest-controller",
            "nodeimage-controller",
            "PodProbeMarker-controller",
            "NodePodProbe-controller",
            "persistentpodstate-controller",
            "ephemeraljob-controller",
            "container-launch-priority-controller",
        ]
    );
}

#[test]
fn users_get_our_kinds_with_the_roles_they_have() {
    let roles = rbac::user_roles();
    let role = |name: &str| find(&roles, "ClusterRole", name).unwrap();
    let (view, edit, admin) =
        (role("aggregate-kruise-view"), role("aggregate-kruise-edit"), role("aggregate-kruise-admin"));
    assert_eq!(view["metadata"]["labels"], json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"}));
    for (group, resource) in
        [(names::APPS_GROUP, "ephemeraljobs"), (names::POLICY_GROUP, "podunavailablebudgets")]
    {
        assert!(allowed(view, group, resource, "watch"));
        assert!(!allowed(view, group, resource, "delete"));
        assert!(allowed(edit, group, resource, "delete"));
    }
    assert!(!allowed(view, names::APPS_GROUP, "resourcedistributions", "get"));
    assert!(!allowed(edit, names::APPS_GROUP, "resourcedistributions", "create"));
    assert!(allowed(admin, names::APPS_GROUP, "resourcedistributions", "create"));
    assert!(allowed(edit, names::APPS_GROUP, "clonesets/scale", "patch"));
}

#[test]
fn controllers_and_flags_have_names_of_their_own() {
    let controllers: Vec<&Controller> = ALL.iter().flat_map(|feature| feature.controllers).collect();
    assert_eq!(controllers.len(), 23);
    let names: BTreeSet<&str> = controllers.iter().map(|controller| controller.name).collect();
    assert_eq!(names.len(), controllers.len());
    let flags: Vec<&str> = controllers.iter().filter_map(|controller| controller.workers_flag).collect();
    assert_eq!(flags.iter().collect::<BTreeSet<_>>().len(), flags.len());
    for controller in controllers {
        let known = controller.needs_kind.is_none_or(|kind| kruise_api::catalogue::by_kind(kind).is_some());
        assert!(known, "{}", controller.name);
    }
}

/// A daemon that could write for other nodes would own the cluster with its node.
#[test]
fn whatever_daemons_write_is_bound_to_their_node() {
    let gates = Gates::default();
    let objects = rbac::objects(&gates);
    let role = find(&objects, "ClusterRole", "kruise-daemon-role").unwrap();
    let [policy, binding]: [Value; 2] = policy::objects(&gates).try_into().unwrap();
    assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
    let rules = policy["spec"]["matchConstraints"]["resourceRules"].as_array().unwrap();
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut bound: Vec<String> = rules.iter().flat_map(|rule| texts(&rule["resources"])).collect();
    bound.sort();
    let mut written: Vec<String> = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        if texts(&rule["verbs"]).iter().any(|verb| !["get", "list", "watch"].contains(&verb.as_str())) {
            written.extend(texts(&rule["resources"]));
        }
    }
    written.retain(|resource| resource != "events");
    written.sort();
    assert_eq!(bound, written);
    // The policy knows the node of these; a new one needs a thought.
    assert_eq!(
        bound,
        ["containerrecreaterequests/status", "nodeimages/status", "nodepodprobes/status", "pods/status"]
    );
    assert!(policy::objects(&parse("KruiseDaemon=false")).is_empty());
}
