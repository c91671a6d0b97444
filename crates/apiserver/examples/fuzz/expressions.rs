//! Random expressions that are almost right.

use crate::make::Maker;

const VALUES: [&str; 22] = [
    "self",
    "oldSelf",
    "self.wheels",
    "self.name",
    "self.parts",
    "self.size",
    "object",
    "request.name",
    "variables.a",
    "x",
    "y",
    "0",
    "-9223372036854775808",
    "1.5",
    "2u",
    "true",
    "null",
    "'a'",
    "b'\\xff'",
    "[1, 2, 3]",
    "{'a': 1}",
    "optional.none()",
];
const OPERATORS: [&str; 14] = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"];
const METHODS: [&str; 24] = [
    "size",
    "contains",
    "matches",
    "find",
    "findAll",
    "split",
    "join",
    "replace",
    "substring",
    "indexOf",
    "format",
    "sort",
    "distinct",
    "flatten",
    "slice",
    "sum",
    "min",
    "orValue",
    "value",
    "hasValue",
    "getHours",
    "isGreaterThan",
    "containsIP",
    "charAt",
];
const FUNCTIONS: [&str; 20] = [
    "size",
    "string",
    "int",
    "uint",
    "double",
    "bytes",
    "bool",
    "type",
    "dyn",
    "duration",
    "timestamp",
    "quantity",
    "url",
    "ip",
    "cidr",
    "semver",
    "isQuantity",
    "lists.range",
    "optional.of",
    "sets.contains",
];
const MACROS: [&str; 8] =
    ["all", "exists", "exists_one", "map", "filter", "transformList", "optMap", "transformMap"];

/// An expression with so many levels at most.
pub(crate) fn any(maker: &mut Maker, depth: usize) -> String {
    if depth == 0 || maker.one_in(6) {
        return match maker.one_in(8) {
            true => format!("{:?}", maker.text()),
            // Of which nothing is known gets further.
            false => format!("dyn({})", maker.pick(&VALUES, "self")),
        };
    }
    let inner = |maker: &mut Maker| any(maker, depth - 1);
    match maker.below(9) {
        0 | 1 => {
            let operator = maker.pick(&OPERATORS, "==");
            format!("({} {operator} {})", inner(maker), inner(maker))
        }
        2 => format!("({} ? {} : {})", inner(maker), inner(maker), inner(maker)),
        3 => {
            let method = maker.pick(&METHODS, "size");
            let args: Vec<String> = (0..maker.below(3)).map(|_| inner(maker)).collect();
            format!("{}.{method}({})", inner(maker), args.join(", "))
        }
        4 => {
            let function = maker.pick(&FUNCTIONS, "size");
            let args: Vec<String> = (0..=maker.below(2)).map(|_| inner(maker)).collect();
            format!("{function}({})", args.join(", "))
        }
        5 => {
            let word = maker.pick(&MACROS, "all");
            let names = if maker.one_in(3) { "x, y" } else { "x" };
            format!("{}.{word}({names}, {})", inner(maker), inner(maker))
        }
        6 => format!("[{}, {}]", inner(maker), inner(maker)),
        7 => format!("{}[{}{}]", inner(maker), if maker.one_in(2) { "?" } else { "" }, inner(maker)),
        _ => format!("{}{}", if maker.one_in(2) { "!" } else { "-" }, inner(maker)),
    }
}
