use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(text: &str, expected: Result<&str, &str>) {
    let found = Labels::parse(text).map(|selector| selector.to_string()).map_err(|error| error.to_string());
    assert_eq!(found.as_deref().map_err(String::as_str), expected);
}

/// Labels are written as `a=1 b=2`.
#[track_caller]
fn check_match(selector: &str, labels: &str, expected: bool) {
    let labels = labels.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    assert_eq!(Labels::parse(selector).unwrap().matches(&labels), expected, "{selector}");
}

#[test]
fn every_operator_is_read() {
    check("", Ok(""));
    check(" ", Ok(""));
    check("a", Ok("a"));
    check("!a", Ok("!a"));
    check("a=b", Ok("a=b"));
    check("a == b", Ok("a=b"));
    check("a!=b", Ok("a!=b"));
    check("a=", Ok("a="));
    check("a=,b", Ok("a=,b"));
    check("x in (b, a),!y", Ok("x in (a,b),!y"));
    check("x notin ()", Ok("x notin ()"));
    check("x in (,a)", Ok("x in (,a)"));
    check("x>1,y<2", Ok("x>1,y<2"));
    check("in in (in,notin)", Ok("in in (in,notin)"));
    check("b=1,a=2", Ok("a=2,b=1"));
    check("example.com/a=b", Ok("example.com/a=b"));
}

#[test]
fn bad_selectors_are_refused_in_the_real_servers_words() {
    check("a,", Err("found '', expected: identifier after ','"));
    check("a b", Err("unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"));
    check("=a", Err("found '=', expected: !, identifier, or 'end of string'"));
    check("!", Err("unable to parse requirement: found '', expected: identifier"));
    check("a in b", Err("unable to parse requirement: found 'b' expected: '('"));
    check("a in (b", Err("unable to parse requirement: found '', expected: ',' or ')'"));
    check("!a=b", Err("found '=', expected: ',' or 'end of string'"));
    check("a=b c", Err("found 'c', expected: ',' or 'end of string'"));
    check(
        "x>a",
        Err(
            "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must \
             be an integer",
        ),
    );
    check(
        "a=-",
        Err(
            "unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid label must be an empty string \
             or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
             character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
    );
    check(
        "_a=b",
        Err(
            "unable to parse requirement: <nil>: Invalid value: \"_a\": name part must consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or \
             'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
    );
}

#[test]
fn requirements_hold_as_in_kubernetes() {
    check_match("a", "a=1", true);
    check_match("a", "b=1", false);
    check_match("!a", "b=1", true);
    check_match("a=1", "a=1", true);
    check_match("a=1", "a=2", false);
    check_match("a!=1", "", true);
    check_match("a!=1", "a=1", false);
    check_match("a notin (1,2)", "", true);
    check_match("a notin (1,2)", "a=2", false);
    check_match("a in (1,2),b", "a=2 b=x", true);
    check_match("a in (1,2),b", "a=2", false);
    check_match("a>5", "a=6", true);
    check_match("a>5", "a=5", false);
    check_match("a<5", "a=x", false);
    check_match("a=", "a=", true);
    check_match("a=", "", false);
}

#[test]
fn selector_objects_are_read() {
    let labels = json!({"a": "1", "b": "2"});
    let labels = labels.as_object();
    let selected = |selector: Value| Labels::from_object(Some(&selector)).unwrap().matches_json(labels);
    assert!(!Labels::from_object(None).unwrap().matches_json(labels));
    assert!(selected(json!({})));
    assert!(selected(json!({"matchLabels": {"a": "1"}})));
    assert!(!selected(json!({"matchLabels": {"a": "2"}})));
    assert!(selected(json!({"matchExpressions": [{"key": "b", "operator": "In", "values": ["2", "3"]}]})));
    assert!(!selected(json!({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]})));
    assert_eq!(
        Labels::from_object(Some(&json!({"matchExpressions": [{"key": "b", "operator": "Gt"}]}))),
        Err(Error("\"Gt\" is not a valid label selector operator".to_owned()))
    );
}

#[test]
fn selector_objects_are_validated_field_by_field() {
    let selector = json!({"matchExpressions": [
        {"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["x"]}, {"key": "a", "operator": "Is"},
    ]});
    let errors = validate(&selector, &Path::new("spec.selector"));
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            "spec.selector.matchExpressions[2].operator: Invalid value: \"Is\": not a valid selector operator",
        ]
    );
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(parts in prop::collection::vec(
        ("[a-z]{1,3}", prop::collection::vec("[a-z0-9]{0,3}", 1..4), 0..8_usize), 0..5)) {
        let requirements = parts.into_iter().map(|(key, mut values, operator)| {
            let operator = match operator {
                0 => Operator::In,
                1 => Operator::NotIn,
                2 => Operator::Equals,
                3 => Operator::NotEquals,
                4 => Operator::Exists,
                5 => Operator::DoesNotExist,
                6 => Operator::GreaterThan,
                _ => Operator::LessThan,
            };
            match operator {
                Operator::Exists | Operator::DoesNotExist => values.clear(),
                Operator::GreaterThan | Operator::LessThan => values = vec!["7".to_owned()],
                Operator::Equals | Operator::NotEquals => values.truncate(1),
                Operator::In | Operator::NotIn => {}
            }
            Requirement::new(&key, operator, values).unwrap()
        });
        let mut requirements: Vec<_> = requirements.collect();
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        let selector = Labels { requirements: Some(requirements) };
        prop_assert_eq!(Labels::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn no_text_panics(text in "[a-c!=<>(), \\PC]{0,20}") {
        let _ = Labels::parse(&text);
    }
}
