use std::{collections::BTreeSet, fs, path::Path, sync::LazyLock};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::admission::Kind;

const EVERYTHING: &[Gate] = &[Gate::ImagePullJobGate, Gate::ResourceDistributionGate];

fn now() -> Timestamp {
    "2026-11-16T01:30:00Z".parse().unwrap()
}

fn request(operation: Operation, object: Value, old_object: Value) -> Request {
    let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    Request {
        kind: Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: object["kind"].as_str().unwrap_or_default().to_owned(),
        },
        operation,
        object,
        old_object,
        ..Request::default()
    }
}

fn create(object: &Value) -> Request {
    request(Operation::Create, object.clone(), Value::Null)
}

fn all_gates() -> Gates {
    EVERYTHING.iter().fold(Gates::default(), |gates, gate| gates.with(*gate))
}

fn context(gates: &Gates) -> Context<'_> {
    Context { gates, allow_privileged: true, now: now(), seed: 7, cluster: &Examples }
}

/// A cluster with the pod that the example of a ContainerRecreateRequest is about.
struct Examples;

impl Cluster for Examples {
    fn whole_pod(&self, key: &ObjectKey) -> Result<Option<Arc<Value>>, String> {
        let pod = json!({"metadata": {"name": "web-0"}, "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
            "status": {"containerStatuses": [{"name": "main", "containerID": "containerd://1"}]}});
        Ok((key.name == "web-0").then(|| Arc::new(pod)))
    }

    fn node(&self, _: &str) -> Result<Pairs, String> {
        Ok(Pairs::default())
    }
}

fn applied(object: &Value, answer: &Answer) -> Value {
    let Answer::Allowed { patch, .. } = answer else { panic!("refused: {answer:?}") };
    let mut object = object.clone();
    if let Some(patch) = patch {
        json_patch::patch(&mut object, patch).unwrap();
    }
    object
}

/// The examples of all kinds, each in all versions of its kind.
fn examples() -> Vec<Value> {
    static EXAMPLES: LazyLock<Vec<Value>> = LazyLock::new(read_examples);
    EXAMPLES.clone()
}

fn read_examples() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        for object in serde_saphyr::from_multiple::<Value>(&fs::read_to_string(&file).unwrap()).unwrap() {
            let Some((group, _)) = object["apiVersion"].as_str().unwrap().split_once('/') else { continue };
            let Some(entry) = entry(group, object["kind"].as_str().unwrap()) else { continue };
            for version in entry.crd.versions {
                let wanted = format!("{group}/{}", version.name);
                found.push(convert::convert(object.clone(), &wanted).unwrap());
            }
        }
    }
    found
}

#[test]
fn every_kind_of_the_catalogue_has_an_entry_and_an_example() {
    let crds: Vec<String> = kruise_api::catalogue::CRDS.iter().map(|crd| crd.name()).collect();
    let entries: Vec<String> = TABLE.iter().map(|entry| entry.crd.name()).collect();
    assert_eq!(crds, entries);
    let kinds: BTreeSet<String> =
        examples().iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds.len(), entries.len());
}

#[test]
fn the_examples_are_accepted_in_every_version_and_settle_after_one_change() {
    let gates = all_gates();
    let context = context(&gates);
    for object in examples() {
        let changed = applied(&object, &mutate(&create(&object), &context));
        assert_eq!(mutate(&create(&changed), &context), Answer::allowed(), "{object}");
        assert_eq!(validate(&create(&changed), &context), Answer::allowed(), "{changed}");
        let update = request(Operation::Update, changed.clone(), changed.clone());
        assert_eq!(mutate(&update, &context), Answer::allowed(), "{object}");
        assert_eq!(validate(&update, &context), Answer::allowed(), "{changed}");
    }
}

/// Drops some members of the spec, as an author who leaves things out.
fn prune(value: &mut Value, choices: &mut dyn Iterator<Item = u8>) {
    match value {
        Value::Object(members) => {
            members.retain(|_, _| choices.next().is_none_or(|choice| choice > 40));
            members.values_mut().for_each(|member| prune(member, choices));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| prune(item, choices)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever was left out: a second look changes nothing more, the patch gives an object of the request's version
    /// that keeps everything the author wrote, and no input makes a rule fail in another way than by an answer.
    #[test]
    fn mutation_settles_and_keeps_what_was_written(
        object in prop::sample::select(examples()),
        choices in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut object = object;
        if let Some(spec) = object.get_mut("spec") {
            prune(spec, &mut choices.into_iter());
        }
        let gates = all_gates();
        let context = context(&gates);
        let answer = mutate(&create(&object), &context);
        if answer.is_allowed() {
            let changed = applied(&object, &answer);
            prop_assert_eq!(&changed["apiVersion"], &object["apiVersion"]);
            prop_assert!(keeps(&object, &changed), "{} became {}", object, changed);
            prop_assert_eq!(mutate(&create(&changed), &context), Answer::allowed());
            // Through the hub and back nothing is lost either.
            let entry = entry(&create(&object).kind.group, changed["kind"].as_str().unwrap()).unwrap();
            let hub = hub(entry, &changed).unwrap();
            let back = convert::convert(hub.clone(), changed["apiVersion"].as_str().unwrap()).unwrap();
            prop_assert_eq!(super::hub(entry, &back).unwrap(), hub);
            validate(&create(&changed), &context);
        }
        validate(&create(&object), &context);
    }
}

/// Replaces the value at a random place.
fn spoil(value: &mut Value, path: &[u8], junk: &Value) {
    let Some((step, rest)) = path.split_first() else {
        *value = junk.clone();
        return;
    };
    let below = match value {
        Value::Object(members) if !members.is_empty() => {
            let index = usize::from(*step) % members.len();
            members.values_mut().nth(index)
        }
        Value::Array(items) if !items.is_empty() => {
            let index = usize::from(*step) % items.len();
            items.get_mut(index)
        }
        _ => None,
    };
    match below {
        Some(below) => spoil(below, rest, junk),
        None => *value = junk.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// One value that does not belong there never makes a rule fail in another way than by an answer.
    #[test]
    fn one_wrong_value_anywhere_gets_an_answer(
        object in prop::sample::select(examples()),
        path in prop::collection::vec(any::<u8>(), 1..8),
        junk in prop::sample::select(vec![json!(null), json!(""), json!(-1), json!(1.5), json!([]), json!({}),
            json!([null]), json!({"": null}), json!(true), json!(i64::MAX), json!("é%")]),
    ) {
        let mut object = object;
        if let Some(spec) = object.get_mut("spec") {
            spoil(spec, &path, &junk);
        }
        let gates = all_gates();
        let context = context(&gates);
        mutate(&create(&object), &context);
        validate(&create(&object), &context);
        let good = example_like(&object);
        validate(&request(Operation::Update, object.clone(), good.clone()), &context);
        validate(&request(Operation::Update, good, object), &context);
    }
}

fn example_like(object: &Value) -> Value {
    let same = |one: &Value| one["apiVersion"] == object["apiVersion"] && one["kind"] == object["kind"];
    examples().into_iter().find(same).unwrap()
}

/// Whether every member of the first object is in the second. Old names may become new ones, and quantities may be
/// rounded up; the examples have neither. Tags of a NodeImage are sorted.
fn keeps(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => first
            .iter()
            .all(|(key, value)| second.get(key).is_some_and(|other| value.is_null() || keeps(value, other))),
        (Value::Array(first), Value::Array(second)) => {
            first.len() == second.len()
                && first.iter().all(|value| second.iter().any(|other| keeps(value, other)))
        }
        (Value::String(text), _) if text.is_empty() => true,
        (first, second) => first == second,
    }
}

#[track_caller]
fn check_refused(answer: Answer, code: u16, text: &str) {
    assert_eq!(answer, Answer::Denied { code, message: text.to_owned() });
}

fn example(api_version: &str, kind: &str) -> Value {
    let found = examples().into_iter().find(|one| one["apiVersion"] == api_version && one["kind"] == kind);
    let gates = all_gates();
    let object = found.unwrap();
    applied(&object, &mutate(&create(&object), &context(&gates)))
}

/// PLATFORM-7, PLATFORM-8: the sentence and the code for each kind whose gate is closed.
#[test]
fn kinds_of_closed_gates_are_refused_by_name() {
    let rows = [
        ("apps.kruise.io/v1beta1", "ContainerRecreateRequest", Gate::KruiseDaemon),
        ("apps.kruise.io/v1beta1", "ImagePullJob", Gate::KruiseDaemon),
        ("apps.kruise.io/v1beta1", "ImagePullJob", Gate::ImagePullJobGate),
        ("apps.kruise.io/v1beta1", "ImageListPullJob", Gate::KruiseDaemon),
        ("apps.kruise.io/v1alpha1", "ImageListPullJob", Gate::ImagePullJobGate),
        ("apps.kruise.io/v1beta1", "NodeImage", Gate::KruiseDaemon),
        ("apps.kruise.io/v1alpha1", "PodProbeMarker", Gate::KruiseDaemon),
        ("apps.kruise.io/v1alpha1", "PodProbeMarker", Gate::PodProbeMarkerGate),
        ("apps.kruise.io/v1beta1", "ResourceDistribution", Gate::ResourceDistributionGate),
        ("apps.kruise.io/v1beta1", "WorkloadSpread", Gate::WorkloadSpread),
    ];
    for (api_version, kind, gate) in rows {
        let object = example(api_version, kind);
        let gates = all_gates().without(gate);
        let text = format!("feature-gate {gate} is not enabled");
        let mut old = object.clone();
        old["metadata"]["labels"] = json!({"before": "this"});
        for operation in [Operation::Create, Operation::Update] {
            let request = request(operation, object.clone(), old.clone());
            check_refused(validate(&request, &context(&gates)), 403, &text);
            check_refused(mutate(&request, &context(&gates)), 403, &text);
        }
    }
}

#[test]
fn a_budget_needs_one_of_its_two_gates() {
    let object = example("policy.kruise.io/v1beta1", "PodUnavailableBudget");
    let gates = Gates::default().without(Gate::PodUnavailableBudgetDeleteGate);
    check_refused(
        validate(&create(&object), &context(&gates)),
        400,
        "feature PodUnavailableBudget is invalid, please open via feature-gate(PodUnavailableBudgetDeleteGate, \
         PodUnavailableBudgetUpdateGate)",
    );
    let gates = gates.with(Gate::PodUnavailableBudgetUpdateGate);
    assert_eq!(validate(&create(&object), &context(&gates)), Answer::allowed());
}

#[test]
fn what_is_on_its_way_out_may_lose_its_finalizers_whatever_the_gates_and_rules_say() {
    let mut old = example("apps.kruise.io/v1beta1", "ImagePullJob");
    old["metadata"]["deletionTimestamp"] = json!("2026-11-16T01:00:00Z");
    old["metadata"]["finalizers"] = json!(["apps.kruise.io/deletion-protection"]);
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    let gates = Gates::default();
    let update = request(Operation::Update, new, old);
    assert_eq!(mutate(&update, &context(&gates)), Answer::allowed());
    assert_eq!(validate(&update, &context(&gates)), Answer::allowed());
}

/// What the original accepted stays movable: to another stored version, and out of the hands of finalizers and owners.
#[test]
fn an_update_that_changes_nothing_is_fine_whatever_the_gates_and_rules_say() {
    let mut odd = web("v1alpha1");
    odd["metadata"]["annotations"] = json!({"apps.kruise.io/image-predownload-parallelism": "50%"});
    let closed = example("apps.kruise.io/v1alpha1", "ResourceDistribution");
    let gates = Gates::default();
    for old in [odd, closed] {
        let refused = validate(&create(&old), &context(&gates));
        assert!(matches!(refused, Answer::Denied { .. }), "{old}");
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!([]);
        let update = request(Operation::Update, new.clone(), old.clone());
        assert_eq!(mutate(&update, &context(&gates)), Answer::allowed(), "{old}");
        assert_eq!(validate(&update, &context(&gates)), Answer::allowed(), "{old}");
        new["metadata"]["labels"] = json!({"changed": "yes"});
        let update = request(Operation::Update, new, old);
        assert_eq!(validate(&update, &context(&gates)), refused);
    }
}

/// PLATFORM-9: the rule between the gates opens what admission asks for.
#[test]
fn pulling_ahead_opens_image_pull_jobs() {
    let flag = "PreDownloadImageForInPlaceUpdate=true,ImagePullJobGate=false";
    let (gates, notices) = Gates::parse(flag, &kruise_api::gates::Options::default()).unwrap();
    assert!(notices.iter().any(|notice| notice.to_string().contains("ImagePullJobGate")));
    let object = example("apps.kruise.io/v1beta1", "ImagePullJob");
    assert_eq!(validate(&create(&object), &context(&gates)), Answer::allowed());
}

fn web(version: &str) -> Value {
    json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": "CloneSet", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "nginx:1"}]}}}})
}

#[test]
fn defaults_come_in_the_version_of_the_request() {
    let gates = Gates::default();
    let old = web("v1alpha1");
    let old = applied(&old, &mutate(&create(&old), &context(&gates)));
    assert_eq!(old["spec"]["updateStrategy"]["type"], "ReCreate");
    assert_eq!(old["spec"]["updateStrategy"]["maxUnavailable"], "20%");
    let new = web("v1beta1");
    let new = applied(&new, &mutate(&create(&new), &context(&gates)));
    assert_eq!(new["spec"]["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"], "ReCreate");
    for object in [old, new] {
        assert_eq!(object["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"], "Always");
        assert_eq!(object["spec"]["template"]["spec"]["restartPolicy"], "Always");
    }
}

#[test]
fn an_unchanged_template_gets_no_defaults_so_that_an_upgrade_makes_no_revision() {
    let gates = Gates::default();
    let old = web("v1beta1");
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(3);
    let update = request(Operation::Update, new.clone(), old.clone());
    let changed = applied(&new, &mutate(&update, &context(&gates)));
    assert_eq!(changed["spec"]["template"], old["spec"]["template"]);
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    let update = request(Operation::Update, new.clone(), old);
    let changed = applied(&new, &mutate(&update, &context(&gates)));
    assert_eq!(changed["spec"]["template"]["spec"]["dnsPolicy"], "ClusterFirst");
}

#[test]
fn templates_stay_as_written_where_the_gate_says_so() {
    let gates = Gates::default().with(Gate::TemplateNoDefaults);
    let object = web("v1beta1");
    let changed = applied(&object, &mutate(&create(&object), &context(&gates)));
    assert_eq!(changed["spec"]["template"], object["spec"]["template"]);
    assert_eq!(changed["spec"]["replicas"], 1);
}

#[test]
fn members_newer_than_this_build_survive() {
    let gates = Gates::default();
    let mut object = web("v1beta1");
    object["spec"]["template"]["spec"]["somethingNew"] = json!({"a": 1});
    let changed = applied(&object, &mutate(&create(&object), &context(&gates)));
    assert_eq!(changed["spec"]["template"]["spec"]["somethingNew"], json!({"a": 1}));
}

#[test]
fn what_cannot_be_read_is_a_bad_request_that_says_why() {
    let gates = Gates::default();
    let check = |change: &dyn Fn(&mut Request), text: &str| {
        let mut request = create(&web("v1beta1"));
        change(&mut request);
        check_refused(mutate(&request, &context(&gates)), 400, text);
        check_refused(validate(&request, &context(&gates)), 400, text);
    };
    check(&|request| request.object = Value::Null, "there is no CloneSet in the request");
    check(&|request| request.object = json!([1]), "there is no CloneSet in the request");
    check(&|request| request.kind.version = "v2".into(), "unsupported version: v2");
    check(
        &|request| request.kind.kind = "Sandwich".into(),
        "Sandwich of apps.kruise.io/v1beta1 is not known here",
    );
    check(
        &|request| request.object["kind"] = json!("StatefulSet"),
        "the request is about apps.kruise.io/v1beta1 CloneSet but the object is apps.kruise.io/v1beta1 StatefulSet",
    );
    check(
        &|request| request.object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(5),
        "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
    );
    check(
        &|request| {
            request.object["spec"]["template"]["spec"]["containers"][0]["resources"] =
                json!({"limits": {"cpu": "a lot"}});
        },
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
    let mut request = create(&web("v1beta1"));
    request.object["spec"]["replicas"] = json!("many");
    let Answer::Denied { code: 400, message } = validate(&request, &context(&gates)) else { panic!() };
    assert!(message.contains("invalid type: string \"many\""), "{message}");
}

fn answer_to(object: Value, old: Option<Value>) -> Answer {
    let gates = all_gates();
    let asked = match old {
        None => create(&object),
        Some(old) => request(Operation::Update, object, old),
    };
    validate(&asked, &context(&gates))
}

/// The text of the refusal, if there is one.
fn judged(object: Value, old: Option<Value>) -> String {
    match answer_to(object, old) {
        Answer::Allowed { .. } => String::new(),
        Answer::Denied { message, .. } | Answer::Held { message, .. } => message,
    }
}

#[track_caller]
fn check(object: Value, expected: &str) {
    match answer_to(object, None) {
        Answer::Allowed { .. } => assert_eq!("", expected),
        Answer::Denied { code, message } | Answer::Held { code, message, .. } => {
            assert_eq!((code, message.as_str()), (422, expected));
        }
    }
}

#[test]
fn selectors_and_templates_are_judged_with_the_path_of_the_field() {
    check(web("v1beta1"), "");
    let mut object = web("v1alpha1");
    object["spec"]["selector"] = json!({});
    check(object, "spec.selector: Invalid value: {}: empty selector is invalid for cloneset");
    let mut object = web("v1beta1");
    object["spec"]["template"]["metadata"]["labels"]["app"] = json!("other");
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("");
    check(
        object,
        "[spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: `selector` does not match template \
         `labels`, spec.template.spec.containers[0].image: Required value]",
    );
    let mut object = example("apps.kruise.io/v1beta1", "StatefulSet");
    object["metadata"]["name"] = json!("a.b");
    check(object, "metadata.name: Invalid value: \"a.b\": must not contain dots");
}

#[test]
fn a_stored_template_that_nobody_touches_is_not_judged_again() {
    let mut old = web("v1beta1");
    old["spec"]["template"]["spec"]["containers"][0]["image"] = json!("");
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(0);
    let gates = Gates::default();
    let update = request(Operation::Update, new.clone(), old.clone());
    assert_eq!(validate(&update, &context(&gates)), Answer::allowed());
    new["spec"]["template"]["metadata"]["labels"]["more"] = json!("x");
    check_refused(
        validate(&request(Operation::Update, new, old), &context(&gates)),
        422,
        "spec.template.spec.containers[0].image: Required value",
    );
}

fn budget(version: &str, annotations: Value, spec: Value) -> Value {
    json!({"apiVersion": format!("policy.kruise.io/{version}"), "kind": "PodUnavailableBudget",
        "metadata": {"name": "web", "annotations": annotations}, "spec": spec})
}

/// PLATFORM-24: an operation that nobody knows is named.
#[test]
fn a_budget_names_the_operation_that_it_does_not_know() {
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1});
    let operations = |text: &str| json!({"kruise.io/pub-protect-operations": text});
    check(budget("v1alpha1", operations("DELETE, EVICT"), spec.clone()), "");
    let text = "metadata.annotations[kruise.io/pub-protect-operations]: Unsupported value: \"FOO\": supported values: \
         \"DELETE\", \"UPDATE\", \"EVICT\", \"RESIZE\"";
    check(budget("v1alpha1", operations("DELETE,FOO"), spec.clone()), text);
    let mut spec = spec;
    spec["protectOperations"] = json!(["DELETE", "FOO"]);
    check(
        budget("v1beta1", json!({}), spec),
        "spec.protectOperations[1]: Unsupported value: \"FOO\": supported values: \"DELETE\", \"UPDATE\", \"EVICT\", \
         \"RESIZE\"",
    );
}

#[test]
fn a_budget_says_whose_pods_and_how_many() {
    let check = |spec: Value, expected: &str| check(budget("v1beta1", json!({}), spec), expected);
    check(
        json!({}),
        "[spec.selector, targetRef: Required value: no selector or targetRef defined in PodUnavailableBudget, \
         spec.maxUnavailable, minAvailable: Required value: no maxUnavailable or minAvailable defined in \
         PodUnavailableBudget]",
    );
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    check(json!({"targetRef": target, "minAvailable": "0%"}), "");
    check(
        json!({"targetRef": target, "selector": {"matchLabels": {"a": "b"}}, "minAvailable": 1, "maxUnavailable": 1}),
        "[spec.selector, targetRef: Required value: selector and targetRef are mutually exclusive, \
         spec.maxUnavailable, minAvailable: Required value: maxUnavailable and minAvailable are mutually exclusive]",
    );
    check(
        json!({"targetRef": target, "maxUnavailable": "101%"}),
        "spec.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%",
    );
    check(
        json!({"targetRef": {"apiVersion": "a/b/c", "kind": "D", "name": ""}, "maxUnavailable": -1}),
        "[spec.targetRef: Invalid value: {\"apiVersion\":\"a/b/c\",\"kind\":\"D\",\"name\":\"\"}: empty targetRef is not \
         valid for PodUnavailableBudget, spec.targetRef: Invalid value: \
         {\"apiVersion\":\"a/b/c\",\"kind\":\"D\",\"name\":\"\"}: unexpected GroupVersion string: a/b/c, \
         spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0]",
    );
    // Recorded of the original.
    let percent = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex \
                   used for validation is '[0-9]+%')";
    for (value, shown, detail) in [
        (json!(-1), "-1", "must be greater than or equal to 0"),
        (json!("101%"), "\"101%\"", "must not be greater than 100%"),
        (json!("abc"), "\"abc\"", percent),
        (json!("5"), "\"5\"", percent),
        (json!("2.5%"), "\"2.5%\"", percent),
    ] {
        for field in ["minAvailable", "maxUnavailable"] {
            let expected = format!("spec.{field}: Invalid value: {shown}: {detail}");
            check(json!({"targetRef": target, field: value}), &expected);
        }
    }
    check(
        json!({"selector": {}, "ignoredPodSelector": {}, "maxUnavailable": 1}),
        "[spec.selector: Invalid value: {}: empty selector is not valid for PodUnavailableBudget., \
         spec.ignoredPodSelector: Invalid value: {}: empty ignoredPodSelector is not valid for PodUnavailableBudget]",
    );
}

#[test]
fn a_budget_keeps_its_target_and_its_annotation_agrees_with_its_field() {
    let spec = |app: &str| json!({"selector": {"matchLabels": {"app": app}}, "maxUnavailable": 1});
    let gates = Gates::default();
    let old = budget("v1beta1", json!({}), spec("web"));
    let update = request(Operation::Update, budget("v1beta1", json!({}), spec("other")), old);
    check_refused(
        validate(&update, &context(&gates)),
        422,
        "spec.selector, targetRef: Required value: selector and targetRef cannot be modified",
    );
    let replicas = |text: &str| json!({"pub.kruise.io/protect-total-replicas": text});
    check(
        budget("v1alpha1", replicas("x"), spec("web")),
        "metadata.annotations[pub.kruise.io/protect-total-replicas]: Invalid value: \"x\": must be a valid int32",
    );
    // Recorded of the original: only the version that has no field for it is validated.
    let operations = json!({"kruise.io/pub-protect-operations": "EVICT, FOO"});
    check(budget("v1beta1", operations.clone(), spec("web")), "");
    check(
        budget("v1alpha1", operations, spec("web")),
        "metadata.annotations[kruise.io/pub-protect-operations]: Unsupported value: \"FOO\": supported values: \
         \"DELETE\", \"UPDATE\", \"EVICT\", \"RESIZE\"",
    );
    let mut both = spec("web");
    both["protectTotalReplicas"] = json!(4);
    check(
        budget("v1beta1", replicas("5"), both),
        "metadata.annotations[pub.kruise.io/protect-total-replicas]: Invalid value: \"5\": must match \
         spec.protectTotalReplicas when both are set",
    );
}

fn cron(version: &str, template: Value) -> Value {
    json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": "AdvancedCronJob", "metadata": {"name": "tick"},
        "spec": {"schedule": "* * * * *", "template": template}})
}

#[test]
fn a_cron_job_has_exactly_one_template_also_after_conversion() {
    let pods = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}});
    let job = json!({"jobTemplate": {"spec": {"template": pods}}});
    check(cron("v1alpha1", job.clone()), "");
    check(
        cron("v1beta1", json!({})),
        "spec.template: Forbidden: spec must have one template, either JobTemplate or BroadcastJobTemplate or \
         ImageListPullJobTemplate should be provided",
    );
    let only_one = "spec.template: Forbidden: spec can have only one template, either JobTemplate or \
         BroadcastJobTemplate or ImageListPullJobTemplate should be provided";
    let both = json!({"jobTemplate": {"spec": {"template": pods}}, "broadcastJobTemplate": {"spec": {"template": pods}}});
    check(cron("v1alpha1", both), only_one);
    // A writer of the older version adds a job to one that pulls images, which that version does not show.
    let images = cron("v1beta1", json!({"imageListPullJobTemplate": {"spec": {"images": ["a:1"]}}}));
    let mut older = convert::convert(images, "apps.kruise.io/v1alpha1").unwrap();
    older["spec"]["template"] = job;
    check(older, only_one);
    let mut broken = cron(
        "v1beta1",
        json!({"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": []}}}}}),
    );
    broken["spec"]["schedule"] = json!("");
    check(
        broken,
        "[spec.template.jobTemplate.spec.template.spec.containers: Required value, spec.schedule: Invalid value: \"\": \
         schedule cannot be empty, please provide valid cron schedule.]",
    );
}

fn cron_of(change: Value) -> Value {
    let pods = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}});
    let mut cron = cron("v1beta1", json!({"broadcastJobTemplate": {"spec": {"template": pods}}}));
    crate::patch_model::merge(&mut cron["spec"], &change);
    cron
}

/// JOBS-49, JOBS-50, JOBS-51
#[test]
fn schedules_and_zones_that_do_not_exist_are_refused() {
    for (schedule, problem) in [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("@reboot", "unrecognized descriptor: @reboot"),
        ("TZ=UTC", "time zone without a schedule: TZ=UTC"),
        ("TZ=Nowhere/City * * * * *", "provided bad location Nowhere/City: unknown time zone Nowhere/City"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
    ] {
        check(
            cron_of(json!({"schedule": schedule})),
            &format!("spec.schedule: Invalid value: {schedule:?}: {problem}"),
        );
    }
    for schedule in
        ["@daily", "? * * * ?", "@every 500ms", "CRON_TZ=UTC 0 9 * * *", "0 0 31 2 *", "* * * * MON-FRI"]
    {
        check(cron_of(json!({"schedule": schedule})), "");
    }
    check(cron_of(json!({"timeZone": "Asia/Shanghai"})), "");
    check(
        cron_of(json!({"timeZone": ""})),
        "spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string",
    );
    check(
        cron_of(json!({"timeZone": "Mars/Base"})),
        "spec.timeZone: Invalid value: \"Mars/Base\": unknown time zone Mars/Base",
    );
    let explicit = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
    check(
        cron_of(json!({"timeZone": "Local"})),
        &format!("spec.timeZone: Invalid value: \"Local\": {explicit}"),
    );
    check(
        cron_of(json!({"timeZone": "local"})),
        &format!(
            "[spec.timeZone: Invalid value: \"local\": {explicit}, spec.timeZone: Invalid value: \"local\": unknown time \
             zone local]"
        ),
    );
    check(
        cron_of(json!({"schedule": "CRON_TZ=UTC 0 9 * * *", "timeZone": "UTC"})),
        "spec.schedule: Invalid value: \"CRON_TZ=UTC 0 9 * * *\": cannot use both timeZone field and TZ or CRON_TZ in schedule",
    );
}

/// JOBS-53
#[test]
fn a_schedule_of_image_pulls_has_the_rules_of_its_jobs() {
    let images = |change: Value, policy: &str| {
        let mut spec = json!({"images": ["a:1", "b:1"], "completionPolicy": {}});
        crate::patch_model::merge(&mut spec, &change);
        cron_of(json!({"concurrencyPolicy": policy, "template": {"broadcastJobTemplate": null,
            "imageListPullJobTemplate": {"spec": spec}}}))
    };
    check(images(json!({}), "Replace"), "");
    check(images(json!({}), "Forbid"), "");
    check(
        images(json!({}), "Allow"),
        "spec.concurrencyPolicy: Invalid value: \"Allow\": concurrencyPolicy should be Replace or Forbid, but current value \
         is: Allow",
    );
    let many: Vec<String> = (0..256).map(|number| format!("a:{number}")).collect();
    for (change, field, problem) in [
        (json!({"images": []}), "images", "image can not be empty"),
        (json!({"images": many}), "images", "the maximum number of images cannot > 255"),
        (json!({"images": ["a:1", "a:1"]}), "images", "images cannot have duplicate values"),
        (
            json!({"images": ["UPPER/x"]}),
            "images",
            "invalid image UPPER/x: invalid reference format: repository name must be lowercase",
        ),
        (json!({"selector": {"names": ["n", "n"]}}), "selector", "duplicated name in selector names"),
        (
            json!({"selector": {"names": ["n"], "matchLabels": {"a": "b"}}}),
            "selector",
            "can not set both names and labelSelector in this spec.selector",
        ),
        (
            json!({"selector": {"names": ["n"]}, "podSelector": {"matchLabels": {"a": "b"}}}),
            "selector",
            "can not set both selector and podSelector",
        ),
        (
            json!({"completionPolicy": {"type": "Never"}}),
            "completionPolicy.type",
            "completionPolicy should be Always, but current value is: Never",
        ),
        (
            json!({"completionPolicy": {"activeDeadlineSeconds": 86401}}),
            "completionPolicy.activeDeadlineSeconds",
            "activeDeadlineSeconds must be less than 86400, current value is: 86401",
        ),
        (
            json!({"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 100}}),
            "completionPolicy.activeDeadlineSeconds",
            "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(600)",
        ),
        (
            json!({"completionPolicy": {"ttlSecondsAfterFinished": 10}}),
            "completionPolicy.ttlSecondsAfterFinished",
            "ttlSecondsAfterFinished is not supported in advancedCronJob",
        ),
    ] {
        let answer = judged(images(change, "Replace"), None);
        assert!(
            answer.starts_with(&format!(
                "spec.template.imageListPullJobTemplate.spec.{field}: Invalid value: "
            )) && answer.ends_with(problem),
            "{answer}"
        );
    }
}

/// JOBS-54, JOBS-63
#[test]
fn only_the_schedule_and_what_belongs_to_it_may_change() {
    let old = cron_of(json!({}));
    let update = |change: Value| {
        let mut new = old.clone();
        crate::patch_model::merge(&mut new["spec"], &change);
        judged(new, Some(old.clone()))
    };
    assert_eq!(
        update(
            json!({"schedule": "@daily", "timeZone": "UTC", "paused": true, "successfulJobsHistoryLimit": 9,
            "failedJobsHistoryLimit": 9, "concurrencyPolicy": "Replace", "startingDeadlineSeconds": 9})
        ),
        ""
    );
    let image = json!({"template": {"broadcastJobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}}}});
    assert!(
        update(image).starts_with("spec: Forbidden: updates to advancedcronjob spec for fields other than")
    );
    let pods = json!({"spec": {"containers": [{"name": "a", "image": "a"}]}});
    let job = cron_of(
        json!({"template": {"broadcastJobTemplate": null, "jobTemplate": {"spec": {"template": pods}}}}),
    );
    check(
        job,
        "spec.template.jobTemplate.spec.template.spec.restartPolicy: Unsupported value: \"Always\": supported values: \
         \"OnFailure\", \"Never\"",
    );
    check(
        cron_of(json!({"template": {"broadcastJobTemplate": {"spec": {"parallelism": -1}}}})),
        "spec.template.broadcastJobTemplate.spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
    );
}

/// JOBS-59
#[test]
fn what_is_accepted_and_will_not_work_well_is_said_to_the_writer() {
    let mut long = cron_of(json!({"startingDeadlineSeconds": 0}));
    long["metadata"]["name"] = json!("a".repeat(60));
    let Answer::Allowed { warnings, .. } = answer_to(long, None) else { panic!("refused") };
    assert_eq!(warnings.len(), 2);
    assert!(warnings[0].contains("child names will exceed 63 characters"), "{warnings:?}");
}

#[test]
fn a_broadcast_job_runs_pods_that_end() {
    let job = |change: &dyn Fn(&mut Value)| {
        let mut job = example("apps.kruise.io/v1beta1", "BroadcastJob");
        job["spec"]["completionPolicy"] = json!({"type": "Always"});
        change(&mut job["spec"]);
        job
    };
    check(job(&|_| {}), "");
    check(
        job(&|spec| spec["template"]["spec"]["restartPolicy"] = json!("Always")),
        "spec.template.spec.restartPolicy: Invalid value: \"Always\": pod restartPolicy can only be Never or OnFailure",
    );
    check(
        job(&|spec| {
            spec["completionPolicy"] =
                json!({"type": "Never", "activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 5});
        }),
        "[spec.completionPolicy.ttlSecondsAfterFinished: Invalid value: 5: ttlSecondsAfterFinished can just work with \
         Always CompletionPolicyType, spec.completionPolicy.activeDeadlineSeconds: Invalid value: 5: \
         activeDeadlineSeconds can just work with Always CompletionPolicyType]",
    );
    check(
        job(&|spec| spec["template"]["metadata"] = json!({"labels": {"broadcastjob-name": "x"}})),
        "spec.template.metadata.labels: Invalid value: {\"broadcastjob-name\":\"x\"}: \"broadcastjob-name\" and \
         \"broadcastjob-controller-uid\" are not allowed to preset in pod labels",
    );
    check(
        job(&|spec| {
            spec["parallelism"] = json!("abc");
            spec["failurePolicy"] = json!({"type": "Sometimes", "restartLimit": -1});
            spec["completionPolicy"] =
                json!({"type": "Sometimes", "activeDeadlineSeconds": 0, "ttlSecondsAfterFinished": -1});
        }),
        "[spec.parallelism: Invalid value: \"abc\": a valid percent string must be a numeric string followed by an ending \
         '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%'), spec.failurePolicy.type: Unsupported value: \
         \"Sometimes\": supported values: \"FailFast\", \"Continue\", \"Pause\", spec.failurePolicy.restartLimit: Invalid \
         value: -1: must be greater than or equal to 0, spec.completionPolicy.type: Unsupported value: \"Sometimes\": \
         supported values: \"Always\", \"Never\", spec.completionPolicy.ttlSecondsAfterFinished: Invalid value: -1: must \
         be greater than or equal to 0, spec.completionPolicy.activeDeadlineSeconds: Invalid value: 0: must be greater \
         than 0]",
    );
}

#[test]
fn tags_of_a_node_image_get_the_time_and_their_order() {
    let gates = Gates::default();
    let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": "n"},
        "spec": {"images": {"ubuntu": {"tags": [{"tag": "b"}, {"tag": "a"}]}}}});
    let changed = applied(&object, &mutate(&create(&object), &context(&gates)));
    let tags = &changed["spec"]["images"]["ubuntu"]["tags"];
    assert_eq!(tags[0]["tag"], "a");
    assert_eq!(tags[0]["createdAt"], "2026-11-16T01:30:00Z");
    assert_eq!(tags[1]["pullPolicy"]["timeoutSeconds"], 600);
}

#[test]
fn containers_of_a_sidecar_set_get_the_defaults_that_the_original_hashes() {
    let gates = Gates::default();
    let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": "log"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "volumes": [{"name": "v"}],
        "containers": [{"name": "log", "image": "log:1", "startupProbe": {"httpGet": {"port": 80}}}]}});
    let changed = applied(&object, &mutate(&create(&object), &context(&gates)));
    let container = &changed["spec"]["containers"][0];
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert_eq!(container["podInjectPolicy"], "BeforeAppContainer");
    assert_eq!(container["startupProbe"], json!({"httpGet": {"port": 80}}));
    assert_eq!(changed["spec"]["volumes"][0]["emptyDir"], json!({}));
}
