//! Quantities, URLs, versions and formats.

use std::collections::BTreeMap;
use std::sync::Arc;

use kruise_api::kubernetes::quantity::Quantity;

use super::super::eval::{Fault, Outcome};
use super::super::value::{Key, Semver, Value};
use crate::rest::percent_decode;
use crate::schema::Format;
use crate::selector::syntax;

pub(super) fn call(name: &str, is_method: bool, args: &[Value]) -> Option<Outcome> {
    quantity(name, args)
        .or_else(|| url(name, args))
        .or_else(|| semver(name, args))
        .or_else(|| format(name, is_method, args))
}

fn quantity(name: &str, args: &[Value]) -> Option<Outcome> {
    let number =
        |value: i128| i64::try_from(value).map(Value::Int).map_err(|_| Fault::error("integer overflow"));
    let is_whole = |quantity: &Quantity| quantity.nanos() % 1_000_000_000 == 0;
    let outcome = match (name, args) {
        ("isQuantity", [Value::Text(text)]) => Ok(Value::Bool(Quantity::parse(text).is_ok())),
        ("quantity", [Value::Text(text)]) => {
            Quantity::parse(text).map(Value::Quantity).map_err(|error| Fault::error(error.to_string()))
        }
        ("sign", [Value::Quantity(quantity)]) => number(quantity.nanos().signum()),
        ("isInteger", [Value::Quantity(quantity)]) => Ok(Value::Bool(is_whole(quantity))),
        ("asInteger", [Value::Quantity(quantity)]) if is_whole(quantity) => number(quantity.value()),
        ("asInteger", [Value::Quantity(_)]) => Err(Fault::error("cannot convert value to integer")),
        ("asApproximateFloat", [Value::Quantity(quantity)]) => {
            Ok(Value::Double(quantity.nanos() as f64 / 1e9))
        }
        ("isGreaterThan", [Value::Quantity(a), Value::Quantity(b)]) => Ok(Value::Bool(a.nanos() > b.nanos())),
        ("isLessThan", [Value::Quantity(a), Value::Quantity(b)]) => Ok(Value::Bool(a.nanos() < b.nanos())),
        ("compareTo", [Value::Quantity(a), Value::Quantity(b)]) => {
            Ok(Value::Int(a.nanos().cmp(&b.nanos()) as i64))
        }
        ("add" | "sub", [Value::Quantity(a), other]) => {
            let other = match other {
                Value::Quantity(other) => *other,
                Value::Int(other) => Quantity::from_integer(*other),
                _ => return None,
            };
            Ok(Value::Quantity(if name == "add" { a.plus(&other) } else { a.minus(&other) }))
        }
        _ => return None,
    };
    Some(outcome)
}

fn url(name: &str, args: &[Value]) -> Option<Outcome> {
    if let [Value::Text(text)] = args {
        let valid = split(text).is_some();
        return match name {
            "isURL" => Some(Ok(Value::Bool(valid))),
            "url" if valid => Some(Ok(Value::Url(text.clone()))),
            "url" => {
                let why = format!(
                    "URL parse error during conversion from string: parse \"{text}\": invalid URI for request"
                );
                Some(Err(Fault::error(why)))
            }
            _ => None,
        };
    }
    let [Value::Url(text)] = args else { return None };
    let parts = split(text)?;
    let (hostname, port) = match parts.host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port.strip_prefix(':').unwrap_or_default()),
        None => parts.host.split_once(':').unwrap_or((parts.host, "")),
    };
    let found = match name {
        "getScheme" => parts.scheme,
        "getHost" => parts.host,
        "getHostname" => hostname,
        "getPort" => port,
        "getEscapedPath" => parts.path,
        "getQuery" => return Some(Ok(query(parts.query))),
        _ => return None,
    };
    Some(Ok(Value::text(found)))
}

struct Parts<'t> {
    scheme: &'t str,
    host: &'t str,
    path: &'t str,
    query: &'t str,
}

/// The parts of an absolute URL or of a path.
fn split(text: &str) -> Option<Parts<'_>> {
    let plain = text.split('#').next().unwrap_or_default();
    if plain.is_empty() || plain.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return None;
    }
    let (front, query) = plain.split_once('?').unwrap_or((plain, ""));
    if let Some((scheme, rest)) = front.split_once("://") {
        let good = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        let slash = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(slash);
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        return good.then_some(Parts { scheme, host, path, query });
    }
    front.starts_with('/').then_some(Parts { scheme: "", host: "", path: front, query })
}

fn query(text: &str) -> Value {
    let mut all: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text: &str| percent_decode(text, true);
        all.entry(Key::Text(decoded(key).as_str().into())).or_default().push(Value::text(decoded(value)));
    }
    Value::Map(Arc::new(all.into_iter().map(|(key, values)| (key, Value::list(values))).collect()))
}

fn semver(name: &str, args: &[Value]) -> Option<Outcome> {
    let part = |version: &Semver, at: usize| {
        let number = version.numbers.get(at).copied().unwrap_or(0);
        Ok(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
    };
    let order = || match args {
        [one @ Value::Semver(_), other @ Value::Semver(_)] => one.compared(other),
        _ => None,
    };
    let outcome = match (name, args) {
        ("isSemver", [Value::Text(text)]) => Ok(Value::Bool(parse_semver(text).is_some())),
        ("isSemver", [Value::Text(text), Value::Bool(lenient)]) => {
            Ok(Value::Bool(lenient_semver(text, *lenient).is_ok()))
        }
        ("semver", [Value::Text(text)]) => lenient_semver(text, false),
        ("semver", [Value::Text(text), Value::Bool(lenient)]) => lenient_semver(text, *lenient),
        ("major", [Value::Semver(version)]) => part(version, 0),
        ("minor", [Value::Semver(version)]) => part(version, 1),
        ("patch", [Value::Semver(version)]) => part(version, 2),
        ("isGreaterThan", [Value::Semver(_), _]) => Ok(Value::Bool(order()?.is_gt())),
        ("isLessThan", [Value::Semver(_), _]) => Ok(Value::Bool(order()?.is_lt())),
        ("compareTo", [Value::Semver(_), _]) => Ok(Value::Int(order()? as i64)),
        _ => return None,
    };
    Some(outcome)
}

/// A version, which may be written carelessly if somebody allows it: with a `v`, with zeros in front of its numbers, or
/// with fewer than three of them.
fn lenient_semver(text: &str, is_lenient: bool) -> Outcome {
    let plain = |part: &str| {
        let rest = part.trim_start_matches('0');
        if rest.starts_with(|c: char| c.is_ascii_digit()) { rest.to_owned() } else { format!("0{rest}") }
    };
    let mut settled = text.to_owned();
    if is_lenient {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text
            .splitn(3, '.')
            .map(|part| if part.len() > 1 { plain(part) } else { part.to_owned() })
            .collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err(Fault::error("short version cannot contain PreRelease/Build meta data"));
        }
        parts.resize(3, "0".to_owned());
        settled = parts.join(".");
    }
    parse_semver(&settled)
        .map(|version| Value::Semver(Arc::new(version)))
        .ok_or_else(|| Fault::error("No Major.Minor.Patch elements found"))
}

fn parse_semver(text: &str) -> Option<Semver> {
    let text = text.split('+').next().unwrap_or_default();
    let (numbers, before) =
        text.split_once('-').map_or((text, None), |(numbers, before)| (numbers, Some(before)));
    let mut parsed = Vec::new();
    for part in numbers.split('.') {
        let plain = part == "0" || (!part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit()));
        parsed.push(part.parse().ok().filter(|_| plain)?);
    }
    let before: Vec<String> =
        before.map(|before| before.split('.').map(ToOwned::to_owned).collect()).unwrap_or_default();
    let good = |word: &String| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let numbers = parsed.try_into().ok().filter(|_| before.iter().all(good))?;
    Some(Semver { numbers, before })
}

/// What is wrong with a text that should be of a format.
type Faults = fn(&str) -> Vec<String>;

/// The formats.
const FORMATS: [(&str, Faults); 13] = [
    ("dns1123Label", syntax::dns_label),
    ("dns1123Subdomain", syntax::dns_subdomain),
    ("dns1035Label", syntax::dns_1035_label),
    ("qualifiedName", syntax::qualified_name),
    ("labelValue", syntax::label_value),
    ("dns1123LabelPrefix", |text| syntax::dns_label(&continued(text))),
    ("dns1123SubdomainPrefix", |text| syntax::dns_subdomain(&continued(text))),
    ("dns1035LabelPrefix", |text| syntax::dns_1035_label(&continued(text))),
    ("uri", |text| {
        told(split(text).is_some(), &format!("parse {}: invalid URI for request", crate::field::quote(text)))
    }),
    ("uuid", |text| told(Format::Uuid(None).accepts(text), "does not match the UUID format")),
    ("byte", |text| told(Format::Byte.accepts(text), "invalid base64")),
    ("date", |text| told(Format::Date.accepts(text), "invalid date")),
    ("datetime", |text| told(Format::DateTime.accepts(text), "invalid datetime")),
];

fn told(is_good: bool, why: &str) -> Vec<String> {
    if is_good { Vec::new() } else { vec![why.to_owned()] }
}

/// A prefix as if more followed, as it may end in a dash.
fn continued(prefix: &str) -> String {
    match prefix.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        Some(rest) => {
            let kept: String = rest.chars().take(rest.chars().count() - 1).collect();
            format!("{kept}a")
        }
        None => prefix.to_owned(),
    }
}

fn format(name: &str, is_method: bool, args: &[Value]) -> Option<Outcome> {
    let known = |wanted: &str| FORMATS.iter().find(|(name, _)| *name == wanted);
    match args {
        [Value::Text(wanted)] if name == "format.named" => Some(Ok(
            known(wanted).map_or(Value::Optional(None), |(name, _)| Value::some(Value::Format(name)))
        )),
        [] => known(name.strip_prefix("format.")?).map(|(name, _)| Ok(Value::Format(name))),
        [Value::Format(wanted), Value::Text(text)] if name == "validate" && is_method => {
            let (_, check) = known(wanted)?;
            let wrong: Vec<Value> = check(text).iter().map(Value::text).collect();
            Some(Ok(if wrong.is_empty() { Value::Optional(None) } else { Value::some(Value::list(wrong)) }))
        }
        _ => None,
    }
}
