use serde_json::json;

use super::*;

fn crd() -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "conversion": {"strategy": "None"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

/// Sets one place of a good CRD and compares the errors.
#[track_caller]
fn check(pointer: &str, value: Value, expected: &[&str]) {
    let mut crd = crd();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    crd.pointer_mut(parent).unwrap()[name] = value;
    let found: Vec<String> = validate(&crd).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{pointer}");
}

#[test]
fn a_good_definition_passes() {
    assert_eq!(validate(&crd()), []);
}

#[test]
fn names_and_group_are_checked() {
    check(
        "/metadata/name",
        json!("widgets"),
        &["metadata.name: Invalid value: \"widgets\": must be spec.names.plural+\".\"+spec.group"],
    );
    check(
        "/spec/scope",
        json!("Global"),
        &["spec.scope: Unsupported value: \"Global\": supported values: \"Cluster\", \"Namespaced\""],
    );
    check(
        "/spec/names/listKind",
        json!("Widget"),
        &["spec.names.listKind: Invalid value: \"Widget\": kind and listKind may not be the same"],
    );
    check("/spec/names/singular", json!(""), &["spec.names.singular: Required value"]);
    check(
        "/spec/preserveUnknownFields",
        json!(true),
        &["spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
         x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"],
    );
}

#[test]
fn exactly_one_version_is_stored_and_each_has_a_schema() {
    let version = |name: &str, storage: bool| json!({"name": name, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let errors = |versions: Value| {
        let mut crd = crd();
        crd["spec"]["versions"] = versions;
        validate(&crd).iter().map(|error| format!("{}: {}", error.path, error.detail)).collect::<Vec<_>>()
    };
    assert_eq!(errors(json!([version("v1", true), version("v2", false)])), Vec::<String>::new());
    assert_eq!(
        errors(json!([version("v1", true), version("v1", true)])),
        [
            "spec.versions: must contain unique version names",
            "spec.versions: must have exactly one version marked as storage version",
        ]
    );
    assert_eq!(
        errors(json!([{"name": "v1", "storage": true}])),
        ["spec.versions[0].schema.openAPIV3Schema: "]
    );
}

#[test]
fn a_shared_schema_is_named_at_the_top() {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}});
    let mut crd = crd();
    crd["spec"]["versions"][0]["schema"] = schema;
    let found: Vec<String> = validate(&crd).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified \
             object fields"
        ]
    );
}

#[test]
fn columns_scale_and_conversion_are_checked() {
    let mut crd = crd();
    crd["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "A", "type": "text", "jsonPath": "spec"}]);
    crd["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".status.x"}});
    crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let found: Vec<String> = validate(&crd).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "spec.subresources.scale.specReplicasPath: Invalid value: \".status.x\": should be a json path under .spec",
            "spec.subresources.scale.statusReplicasPath: Required value",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of \
             boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec\": must be a simple json path starting \
             with .",
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ]
    );
}

#[test]
fn names_of_an_established_definition_do_not_change() {
    let mut old = crd();
    old["status"] =
        json!({"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v0", "v1"]});
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    let found: Vec<String> = validate_update(&new, &old).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], "spec.scope: Invalid value: \"Cluster\": field is immutable");
    assert!(
        found[1].starts_with("status.storedVersions[0]: Invalid value: \"v0\": missing from spec.versions")
    );
}

#[test]
fn protected_groups_need_an_approval() {
    let mut crd = crd();
    crd["metadata"]["name"] = json!("widgets.apps.k8s.io");
    crd["spec"]["group"] = json!("apps.k8s.io");
    assert_eq!(validate(&crd).len(), 1);
    crd["metadata"]["annotations"] = json!({APPROVED: "unapproved, testing"});
    assert_eq!(validate(&crd), []);
}

#[test]
fn what_users_of_old_versions_are_told_is_printable_and_short() {
    #[track_caller]
    fn check(deprecated: bool, warning: &str, expected: &[&str]) {
        let mut crd = crd();
        crd["spec"]["versions"][0]["deprecated"] = deprecated.into();
        crd["spec"]["versions"][0]["deprecationWarning"] = warning.into();
        let found: Vec<String> = validate(&crd).iter().map(ToString::to_string).collect();
        let shown = |why: &&str| {
            format!(
                "spec.versions[0].deprecationWarning: Invalid value: {}: {why}",
                crate::field::quote(warning)
            )
        };
        assert_eq!(found, expected.iter().map(shown).collect::<Vec<_>>());
    }
    check(true, "use v2 \u{2013} \"caf\u{e9}\" e\u{301} \u{4e2d} \\ '", &[]);
    check(false, "use v2", &["can only be set for deprecated versions"]);
    check(true, "", &["must not be an empty string"]);
    check(true, &"a".repeat(256), &[]);
    check(true, &"a".repeat(257), &["must be <= 256 characters long"]);
    let at = "must only contain printable UTF-8 characters; non-printable character found at index";
    check(true, "\u{e9}\tb", &[&format!("{at} 2")]);
    for hidden in ["\u{a0}", "\u{200b}", "\u{2028}", "\u{e000}", "\u{7f}"] {
        check(true, hidden, &[&format!("{at} 0")]);
    }
}
