use serde_json::{Value, json};

use super::super::Structural;
use crate::field::Path;

/// A schema with `properties` under `spec`, and rules for `spec`.
fn schema(properties: Value, rules: Value) -> Structural {
    let spec = json!({"type": "object", "properties": properties, "x-kubernetes-validations": rules});
    Structural::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

fn shown(errors: &[crate::field::Error]) -> Vec<String> {
    errors.iter().map(|error| format!("{}{error}", if error.only_warns { "warning: " } else { "" })).collect()
}

/// A new object.
#[track_caller]
fn created(schema: &Structural, spec: Value, expected: &[&str]) {
    assert_eq!(shown(&schema.validate(&json!({"spec": spec}), &Path::root())), expected);
}

#[track_caller]
fn changed(schema: &Structural, old: Value, new: Value, expected: &[&str]) {
    let found = schema.validate_update(&json!({"spec": new}), &json!({"spec": old}), &Path::root());
    assert_eq!(shown(&found), expected);
}

#[track_caller]
fn refused(properties: Value, rules: Value, expected: &[&str]) {
    let found = schema(properties, rules).rule_errors(&Path::new("s"));
    assert_eq!(shown(&found), expected);
}

fn numbers() -> Value {
    json!({"min": {"type": "integer"}, "max": {"type": "integer"}})
}

#[test]
fn a_broken_rule_is_told_with_its_message_reason_and_place() {
    let plain = schema(numbers(), json!([{"rule": "self.min <= self.max"}]));
    created(&plain, json!({"min": 1, "max": 2}), &[]);
    created(&plain, json!({"min": 3, "max": 2}), &["spec: Invalid value: failed rule: self.min <= self.max"]);
    let told = schema(
        numbers(),
        json!([
            {"rule": "self.min <= self.max", "message": " too large ", "fieldPath": ".min"},
            {"rule": "self.min <= self.max", "reason": "FieldValueForbidden", "message": "never"},
            {"rule": "self.min <= self.max", "reason": "FieldValueRequired", "message": "more"},
            {"rule": "self.min <= self.max", "reason": "FieldValueDuplicate"},
            {"rule": "self.min <= self.max", "messageExpression": "'%d is too much'.format([self.min])"},
            {"rule": "self.min <= self.max", "messageExpression": "self.min > 2 ? '' : 'x'", "message": "so"},
        ]),
    );
    created(
        &told,
        json!({"min": 3, "max": 2}),
        &[
            "spec.min: Invalid value: too large",
            "spec: Forbidden: never",
            "spec: Required value: more",
            "spec: Duplicate value",
            "spec: Invalid value: 3 is too much",
            "spec: Invalid value: so",
        ],
    );
}

#[test]
fn values_are_shown_unless_they_are_large() {
    let leaf = schema(
        json!({"x": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}}),
        json!([]),
    );
    created(&leaf, json!({"x": 0}), &["spec.x: Invalid value: 0: failed rule: self > 1"]);
    created(&leaf, json!({}), &[]);
}

#[test]
fn the_object_itself_shows_its_name_and_kind() {
    let root = Structural::parse(&json!({
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('a') && self.kind == 'K'"}],
    }))
    .unwrap();
    assert_eq!(shown(&root.rule_errors(&Path::new("s"))), Vec::<String>::new());
    let object = |name: &str| json!({"kind": "K", "metadata": {"name": name, "labels": {"x": "y"}}});
    assert_eq!(root.validate(&object("ab"), &Path::root()), []);
    assert_eq!(
        shown(&root.validate(&object("b"), &Path::root())),
        ["<nil>: Invalid value: failed rule: self.metadata.name.startsWith('a') && self.kind == 'K'"]
    );
}

#[test]
fn mistakes_of_a_rule_while_it_runs_are_told() {
    let missing = schema(numbers(), json!([{"rule": "self.min == 1"}]));
    created(
        &missing,
        json!({}),
        &["spec: Invalid value: \"object\": no such key: min evaluating rule: self.min == 1"],
    );
    let either = schema(
        json!({"x": {"x-kubernetes-int-or-string": true}}),
        json!([{"rule": "self.x > 1", "message": "more"}]),
    );
    created(&either, json!({"x": 2}), &[]);
    created(
        &either,
        json!({"x": "a"}),
        &[
            "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported operator, \
             function or macro signature for rule: more",
        ],
    );
}

#[test]
fn rules_rely_on_an_object_that_is_well_formed() {
    let numbers = schema(numbers(), json!([{"rule": "self.min <= self.max"}]));
    created(
        &numbers,
        json!({"min": "a", "max": 1}),
        &[
            "spec.min: Invalid value: \"string\": spec.min in body must be of type integer: \"string\"",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct \
             the existing errors to complete validation",
        ],
    );
}

#[test]
fn rules_about_changes_need_an_old_value() {
    let fixed = schema(numbers(), json!([{"rule": "self.min >= oldSelf.min", "message": "only up"}]));
    created(&fixed, json!({"min": 1}), &[]);
    changed(&fixed, json!({"min": 1}), json!({"min": 2}), &[]);
    changed(&fixed, json!({"min": 2}), json!({"min": 1}), &["spec: Invalid value: only up"]);
    let optional = schema(
        numbers(),
        json!([{"rule": "oldSelf.hasValue() || self.min == 0", "message": "starts at 0", "optionalOldSelf": true}]),
    );
    created(&optional, json!({"min": 1}), &["spec: Invalid value: starts at 0"]);
    changed(&optional, json!({"min": 2}), json!({"min": 1}), &[]);
}

#[test]
fn what_was_broken_before_and_did_not_change_warns() {
    let item = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"},
        "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]},
    }});
    let properties = json!({
        "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]},
        "b": {"type": "integer"},
        "map": {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "plain": {"type": "array", "items": item},
    });
    let schema = schema(properties, json!([]));
    let old = json!({"a": 0, "b": 1, "map": [{"name": "x", "n": 0}, {"name": "y", "n": 5}], "plain": [{"name": "z", "n": 0}]});
    let with = |key: &str, value: Value| {
        let mut new = old.clone();
        new[key] = value;
        new
    };
    let [a, map, plain] = [
        "spec.a: Invalid value: 0: failed rule: self > 1",
        "spec.map[0].n: Invalid value: 0: failed rule: self > 1",
        "spec.plain[0].n: Invalid value: 0: failed rule: self > 1",
    ];
    let warning = |text: &str| format!("warning: {text}");
    changed(&schema, old.clone(), with("b", json!(2)), &[&warning(a), &warning(map), &warning(plain)]);
    // One item of a list with keys changes; the others stay what they were.
    let other = json!([{"name": "x", "n": 0}, {"name": "y", "n": 6}]);
    changed(&schema, old.clone(), with("map", other), &[&warning(a), &warning(map), &warning(plain)]);
    let changed_item = json!([{"name": "x", "n": 1}, {"name": "y", "n": 5}]);
    changed(
        &schema,
        old.clone(),
        with("map", changed_item),
        &[&warning(a), "spec.map[0].n: Invalid value: 1: failed rule: self > 1", &warning(plain)],
    );
    // A list without keys changes as a whole.
    let longer = json!([{"name": "z", "n": 0}, {"name": "w"}]);
    changed(&schema, old.clone(), with("plain", longer), &[&warning(a), &warning(map), plain]);
}

#[test]
fn definitions_with_rules_that_are_wrong_are_refused() {
    let text = |rule: &str, message: &str| {
        format!(
            "{{\"Rule\":\"{rule}\",\"Message\":\"{message}\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}}"
        )
    };
    let rules = "s.properties[spec].x-kubernetes-validations";
    refused(
        numbers(),
        json!([{"rule": "self.mn > 1", "message": "m"}]),
        &[&format!(
            "{rules}[0].rule: Invalid value: {}: compilation failed: ERROR: <input>:1:5: undefined field 'mn'\n | \
             self.mn > 1\n | ....^",
            text("self.mn \\u003e 1", "m")
        )],
    );
    refused(
        numbers(),
        json!([{"rule": "self.min"}]),
        &[&format!(
            "{rules}[0].rule: Invalid value: {}: cel expression must evaluate to a bool",
            text("self.min", "")
        )],
    );
    refused(
        numbers(),
        json!([{"rule": "true", "optionalOldSelf": true}]),
        &[&format!(
            "{rules}[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
        )],
    );
    refused(
        numbers(),
        json!([{"rule": "true", "fieldPath": ".other"}]),
        &[&format!("{rules}[0].fieldPath: Invalid value: \".other\": must be a valid path")],
    );
    let old = json!([{"rule": "self == oldSelf"}]);
    let items = json!({"type": "array", "maxItems": 2, "items": {"type": "integer", "x-kubernetes-validations": old}});
    refused(
        json!({"list": items}),
        json!([]),
        &[
            "s.properties[spec].properties[list].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": \
           oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[spec].properties[list]",
        ],
    );
}

#[test]
fn defaults_must_fulfil_the_rules() {
    refused(
        json!({"x": {"type": "integer", "default": 0, "x-kubernetes-validations": [{"rule": "self > 1"}]}}),
        json!([]),
        &["s.properties[spec].properties[x].default: Invalid value: 0: failed rule: self > 1"],
    );
}

#[test]
fn rules_that_may_be_too_dear_are_refused() {
    let words = json!({"type": "array", "items": {"type": "string"}});
    let rule = json!([{"rule": "self.words.all(a, self.words.all(b, a == b))"}]);
    let budget = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
                  strings are declared)";
    let at = "s.properties[spec].x-kubernetes-validations[0].rule";
    refused(
        json!({"words": words}),
        rule.clone(),
        &[
            &format!(
                "{at}: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {budget}"
            ),
            &format!(
                "{at}: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            ),
            &format!(
                "s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds \
                 budget by factor of more than 100x {budget}"
            ),
        ],
    );
    let few = json!({"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 20}});
    refused(json!({"words": few}), rule, &[]);
}

/// What a message may cost at worst, in budgets; the factors are those that a real server tells.
#[test]
fn messages_that_may_be_too_dear_are_refused() {
    let properties = json!({
        "max": {"type": "integer"}, "name": {"type": "string", "maxLength": 20}, "text": {"type": "string"},
        "names": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 20}},
        "texts": {"type": "array", "items": {"type": "string"}},
        "two": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
        "pair": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "string"}},
        "labels": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 20}},
    });
    let check = |expression: &str, factor: &str| {
        let rules = json!([{"rule": "true", "messageExpression": expression}]);
        let found = shown(&schema(properties.clone(), rules).rule_errors(&Path::new("s")));
        let told = found.first().map_or("", |error| {
            let (_, error) = error.split_once("messageExpression cost exceeds budget by factor of ").unwrap();
            error.split_once(" (try").unwrap().0
        });
        assert_eq!(told, factor, "{expression}");
    };
    let dear = "more than 100x";
    check("'max is ' + string(self.max)", dear);
    check("'%d is too much'.format([self.max])", "");
    check("'name is ' + self.name", "");
    check("self.names.join(', ')", "");
    check("self.texts.join(', ')", dear);
    check("self.names.map(n, n).join(', ')", dear);
    check("self.labels['a'] + '!'", "");
    check("self.labels.a + '!'", dear);
    check("self.?name.orValue('') + '!'", dear);
    check("optional.of(self.text).optMap(t, t + 'x').orValue('y')", dear);
    check("self.?text.optMap(t, size(t)).orValue(3) == 3 ? 'a' : 'b'", "");
    check("self.names.all(n, n.startsWith('a')) ? 'x' : 'y'", "");
    check("self.texts.exists(a, self.texts.exists(b, a == b)) ? 'x' : 'y'", dear);
    check("self.labels.all(k, v, v == k) ? 'a' : 'b'", "");
    check("sets.contains(self.texts, self.texts) ? 'x' : 'y'", dear);
    check("self.name.replace('', self.text) + '!'", "2.5x");
    check("self.names.sort()[0]", "");
    check("self.texts.sort().size() == 1 ? 'a' : 'b'", dear);
    check("self.texts.isSorted() ? 'a' : 'b'", dear);
    check("self.text.matches(self.text) ? 'a' : 'b'", dear);
    check("format.uuid().validate(self.text).hasValue() ? 'a' : 'b'", "1.006634x");
    check("lists.range(3)[0] == 0 ? 'a' : 'b'", "");
    check("lists.range(self.max)[0] == 0 ? 'a' : 'b'", dear);
    check("strings.quote(self.text) + strings.quote(self.text) + strings.quote(self.text)", "");
    check("string(bytes(self.text)) + string(bytes(self.text))", "");
    // Some types are cheap to compare if they shall be equal; if they shall differ, nobody knows how large they are.
    for of in ["quantity", "semver", "ip", "cidr"] {
        check(&format!("{of}(self.name) == {of}(self.name) ? 'a' : 'b'"), "");
        check(&format!("{of}(self.name) != {of}(self.name) ? 'a' : 'b'"), dear);
    }
    // A URL is as large as its text, three times read here.
    let urls = ["url(self.text) == url(self.text)"; 12].join(" && ");
    check(&format!("{urls} ? 'a' : 'b'"), "1.132468x");
    let urls = ["url(self.text) != url(self.text)"; 12].join(" && ");
    check(&format!("{urls} ? 'a' : 'b'"), "1.132468x");
    // Eight texts of any length are just too dear.
    for (text, factor) in [
        ("self.text", "1.101006x"),
        ("[self.text][0]", "1.101015x"),
        ("(self.max > 1 ? self.text : 'x')", "1.101008x"),
        ("self.text.substring(1)", "1.352664x"),
        ("self.text.replace('a', 'b')", "1.6x"),
        ("self.two[0].lowerAscii()", "1.352665x"),
        ("self.two.filter(n, true)[0]", "1.101036x"),
        ("self.two.map(n, n)[0]", "1.101036x"),
        ("self.two.transformList(i, v, v)[0]", "1.101036x"),
        ("self.pair.map(k, self.pair[k])[0]", "1.101041x"),
        // Here the real server loses its way.
        ("self.two.filter(n, true).map(n, n)[0]", ""),
        ("self.two.transformMap(i, v, v)[0]", ""),
        ("self.two.reverse()[0]", ""),
        ("self.two.map(a, a.split(','))[0][0]", dear),
    ] {
        check(&[text; 8].join(" + "), factor);
    }
}

#[test]
fn one_request_can_only_spend_so_much() {
    let item = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "[1, 2, 3, 4, 5].all(x, x > self)"}]});
    let schema = schema(json!({"list": {"type": "array", "items": item}}), json!([]));
    let found = schema.validate(&json!({"spec": {"list": vec![0; 1_000_000]}}), &Path::root());
    let texts = shown(&found);
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].ends_with(
        "Invalid value: \"integer\": validation failed due to running out of cost budget, no further validation rules will \
         be run"
    ));
}

#[test]
fn places_of_rules_may_name_keys() {
    let properties = json!({"labels": {"type": "object", "additionalProperties": {"type": "string"}}});
    let schema =
        schema(properties, json!([{"rule": "false", "message": "no", "fieldPath": ".labels['a.b']"}]));
    created(&schema, json!({}), &["spec.labels[a.b]: Invalid value: no"]);
}
