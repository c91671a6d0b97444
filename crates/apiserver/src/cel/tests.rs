use serde_json::json;

use super::*;

fn names() -> Names {
    let spec = Type::object(
        "selfType.spec",
        [
            ("replicas".to_owned(), Type::Int),
            ("name".to_owned(), Type::Text),
            ("items".to_owned(), Type::list(Type::Text)),
            ("labels".to_owned(), Type::map(Type::Text, Type::Text)),
        ],
    );
    let mut names = Names::default();
    names.add("self", Type::object("selfType", [("spec".to_owned(), spec)]));
    names.add("any", Type::Dyn);
    names
}

fn value(text: &str) -> Result<Value, String> {
    let program = Program::compile(text, &names())?;
    let own = to_dyn(
        &json!({"spec": {"replicas": 3, "name": "web", "items": ["a", "b", "a"], "labels": {"x": "y"}}}),
    );
    let any = to_dyn(&json!({"n": 1, "list": [1, 2], "null": null, "deep": {"a": {"b": "c"}}}));
    let variables = |name: &str| match name {
        "self" => Some(Ok(own.clone())),
        "any" => Some(Ok(any.clone())),
        _ => None,
    };
    program.evaluate(&variables, PER_CALL_LIMIT).0.map_err(|fault| fault.to_string())
}

#[track_caller]
fn holds(text: &str) {
    assert_eq!(value(text), Ok(Value::Bool(true)), "{text}");
}

#[track_caller]
fn wrong(text: &str, error: &str) {
    assert_eq!(value(text).unwrap_err(), error, "{text}");
}

#[test]
fn expressions_come_to_what_they_say() {
    for text in [
        "self.spec.replicas > 2 && self.spec.replicas <= 3",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 % 4 == 3 && -7 / 2 == -3",
        "-(1) == -1 && !(!true) && --1 == 1 && -9223372036854775808 < 0",
        "1 < 1.5 && 2u > 1 && 1.0 == 1.0",
        "'a' + \"b\" == 'ab' && r'\\d' == '\\\\d' && '''x'y''' == \"x'y\"",
        "'\\u00e4' == 'ä' && b'abc' == bytes('abc') && size('äö') == 2",
        "true ? self.spec.name == 'web' : false",
        "self.spec.name in ['db', 'web'] && 'x' in self.spec.labels && !('z' in self.spec.labels)",
        "self.spec.items.all(i, i != 'c') && self.spec.items.exists(i, i == 'b')",
        "self.spec.items.exists_one(i, i == 'b') && !self.spec.items.exists_one(i, i == 'a')",
        "self.spec.items.map(i, i + i) == ['aa', 'bb', 'aa'] && self.spec.items.filter(i, i == 'a').size() == 2",
        "self.spec.items.map(i, i == 'a', 'x') == ['x', 'x'] && self.spec.items.all(n, i, n < 3 && i != '')",
        "self.spec.labels.all(k, k == 'x') && self.spec.labels.exists(k, v, v == 'y')",
        "self.spec.items.transformList(n, i, i + string(n)) == ['a0', 'b1', 'a2']",
        "has(self.spec.name) && !has(any.nothing) && has(any.deep.a)",
        "any.?deep.?a.?b.orValue('') == 'c' && any.?deep.?x.?b.orValue('none') == 'none'",
        "any.deep.a[?'b'].hasValue() && !any.deep.a[?'z'].hasValue() && [1][?5].orValue(9) == 9",
        "optional.of(1).optMap(x, x + 1).value() == 2 && optional.none().or(optional.of(2)).value() == 2",
        "[1, ?optional.none(), 2] == [1, 2] && {'a': 1, ?'b': optional.of(2)}.size() == 2",
        "false && any.nothing == 1 ? false : true",
        "any.nothing == 1 || true",
        "type(1) == int && type('') == string && type(any.list) == list && type(null) == null_type",
        "'a-b-c'.split('-') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'Hello'.lowerAscii() == 'hello' && 'hello'.replace('l', 'L', 1) == 'heLlo' && ' x '.trim() == 'x'",
        "'tacocat'.substring(4) == 'cat' && 'tacocat'.indexOf('c') == 2 && 'tacocat'.lastIndexOf('c') == 4",
        "'web-1'.matches('^[a-z]+-[0-9]$') && 'abc123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "['a', 'b'].join('/') == 'a/b' && '%s has %d, %.2f'.format(['x', 3, 1.5]) == 'x has 3, 1.50'",
        "[1, 3, 2].max() == 3 && [1, 2].isSorted() && [1, 2].sum() == 3 && self.spec.items.distinct() == ['a', 'b']",
        "sets.contains([1, 2, 3], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
        "quantity('1Gi').isGreaterThan(quantity('500Mi')) && quantity('2').add(1).compareTo(quantity('3')) == 0",
        "isQuantity('12k') && !isQuantity('x') && quantity('50k').asInteger() == 50000",
        "duration('1h30m').getMinutes() == 90 && duration('90s') == duration('1m30s') && string(duration('1.5s')) == '1.5s'",
        "timestamp('2026-01-02T03:04:05Z').getFullYear() == 2026 && timestamp('2026-01-04T00:00:00Z').getDayOfWeek() == 0",
        "timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z') == duration('24h')",
        "url('https://user@example.com:80/a/b?x=1').getHost() == 'example.com:80' && isURL('/a') && !isURL('a b')",
        "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('x') && ip('127.0.0.1').isLoopback()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
        "semver('v01.2', true) == semver('1.2.0') && !isSemver('1.2', false) && !isSemver('1-a', true)",
        "isSemver('v1.02.3-rc.1', true) && semver('1.2.00-a', true) == semver('1.2.0-a')",
        "format.named('date').hasValue() && !format.date().validate('2024-02-29').hasValue()",
        "format.uuid().validate('x').value() == ['does not match the UUID format']",
        "!format.byte().validate('aGk=').hasValue() && !format.datetime().validate('2024-01-01T00:00:00Z').hasValue()",
        "!format.uri().validate('https://a.b/c').hasValue() && format.uri().validate('a b').hasValue()",
        "!format.dns1123LabelPrefix().validate('web-').hasValue() && format.dns1035LabelPrefix().validate('-').hasValue()",
        "!format.dns1123Label().validate('web').hasValue() && format.dns1123Label().validate('Web').hasValue()",
        "int('42') == 42 && double(1) == 1.0 && string(1.5) == '1.5' && bool('true') && uint(3) == 3u",
        "any.n == 1 && any.n < 1.5 && any.list[1] == 2 && any['null'] == null",
        "// a comment\n self.spec.replicas == 3",
    ] {
        holds(text);
    }
}

#[test]
fn what_goes_wrong_while_evaluating_is_told() {
    for (text, error) in [
        ("any.nothing", "no such key: nothing"),
        ("any.list[7]", "index out of bounds: 7"),
        ("self.spec.labels['q']", "no such key: q"),
        ("1 / (self.spec.replicas - 3) == 1", "division by zero"),
        ("9223372036854775807 + self.spec.replicas > 0", "integer overflow"),
        ("any.n + 'x' == 'y'", "no such overload"),
        ("any.n && true", "no such overload"),
    ] {
        wrong(text, error);
    }
}

#[test]
fn mistakes_are_shown_where_they_are() {
    wrong(
        "self.spec.foo == 1",
        "ERROR: <input>:1:10: undefined field 'foo'\n | self.spec.foo == 1\n | .........^",
    );
    wrong(
        "slf.spec.replicas > 1",
        "ERROR: <input>:1:1: undeclared reference to 'slf' (in container '')\n | slf.spec.replicas > 1\n | ^",
    );
    wrong(
        "self.spec.replicas == 'x'",
        "ERROR: <input>:1:20: found no matching overload for '_==_' applied to '(int, string)'\n \
         | self.spec.replicas == 'x'\n | ...................^",
    );
    wrong(
        "self.spec.name.foo(1)",
        "ERROR: <input>:1:19: undeclared reference to 'foo' (in container '')\n | self.spec.name.foo(1)\n | ..................^",
    );
    wrong(
        "self.spec.name.contains(1)",
        "ERROR: <input>:1:24: found no matching overload for 'contains' applied to 'string.(int)'\n \
         | self.spec.name.contains(1)\n | .......................^",
    );
    wrong(
        "self.spec.replicas >",
        "ERROR: <input>:1:21: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', \
         'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self.spec.replicas >\n | ....................^",
    );
    wrong(
        "self.spec.replicas.all(x, x)",
        "ERROR: <input>:1:10: expression of type 'int' cannot be range of a comprehension (must be list, map, or \
         dynamic)\n | self.spec.replicas.all(x, x)\n | .........^",
    );
    wrong(
        "a == 1 &&\n\tb",
        "ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n | a == 1 &&\n | ^\n\
         ERROR: <input>:2:2: undeclared reference to 'b' (in container '')\n |  b\n | .^",
    );
}

#[test]
fn nothing_runs_for_ever_or_breaks_the_stack() {
    let nested = "[1,2,3,4,5,6,7,8,9,10]";
    let loops: String = (0..7).map(|n| format!("{nested}.all(x{n}, ")).collect();
    let text = format!("{loops}true{}", ")".repeat(7));
    wrong(&text, "operation cancelled: actual cost limit exceeded");
    for text in [
        "(".repeat(5000),
        "-".repeat(5000),
        "[".repeat(5000),
        format!("1{}", "+1".repeat(5000)),
        "!".repeat(99_999),
    ] {
        assert!(value(&text).is_err());
    }
    let long = vec!["true"; 3000].join(" && ");
    holds(&long);
}

#[test]
fn what_grows_by_itself_is_stopped() {
    let steps = |start: &str, step: &str, times: usize| format!("{start}{}", step.repeat(times));
    // Each step doubles what the value holds, and shares it, so that it takes no memory at first.
    let twins = steps("[1]", ".map(x, [x, x])", 60);
    for text in [
        format!("{twins} == {twins}"),
        format!("'%s'.format([{twins}]) == ''"),
        format!("{twins} in [{twins}]"),
        format!("[{twins}, {twins}].distinct() == []"),
        format!("sets.contains({twins}, {twins})"),
        format!("{} == []", steps("['x']", ".map(x, x + x)", 60)),
        format!("{} == []", steps("[b'x']", ".map(x, x + x)", 60)),
        format!("{} == ''", steps("'ab'", ".replace('', 'abcd', 100000000)", 60)),
        format!("{} == ''", steps("'ab'", ".split('').map(x, 'abcdefgh').join('ab')", 30)),
        "lists.range(100000).all(i, 'a'.matches('[a-z]{500}' + string(i)) || true)".to_owned(),
        "lists.range(1000000).all(i, lists.range(1000000).exists(j, true))".to_owned(),
    ] {
        wrong(&text, "operation cancelled: actual cost limit exceeded");
    }
    // The types must not double either: this is about the time that the check takes.
    assert!(value(&steps("[1]", ".map(x, {x: x})", 60).replace("[1]", "[1].map(y, y == y)")).is_err());
    let pattern = "'a'.matches('[a-z]{10}')";
    holds(&format!("lists.range(1000).all(i, !{pattern})"));
}

#[test]
fn expressions_may_be_as_deep_as_they_may_be() {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let deep = 190;
    holds(&format!("{} == {}", nested("[", "", "]", deep), nested("[", "", "]", deep)));
    holds(&format!("{} == {}", nested("(1 + ", "1", ")", deep), deep + 1));
    holds(&nested("(true ? ", "true", " : false)", deep));
    holds(&nested("[1].all(x, ", "true", ")", deep));
    holds(&format!("size({}) == 1", nested("{'a': ", "1", "}", deep)));
}
