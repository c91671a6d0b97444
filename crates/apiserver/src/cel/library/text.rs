//! Texts.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::super::eval::{Fault, Outcome, Run};
use super::super::value::Value;
use super::convert::shown;
use super::weight;
use crate::schema::go_pattern;

/// How large a compiled pattern may become.
const PATTERN_LIMIT: usize = 1 << 20;

pub(super) fn call(run: &mut Run<'_>, name: &str, args: &[Value]) -> Option<Outcome> {
    if let ("_+_", [Value::Bytes(one), Value::Bytes(other)]) = (name, args) {
        let both = || Value::Bytes([one.as_ref(), other.as_ref()].concat().into());
        return Some(run.spend_on(one.len() + other.len()).map(|()| both()));
    }
    if let ("join", [Value::List(list), rest @ ..]) = (name, args) {
        let separator = match rest {
            [] => "",
            [Value::Text(separator)] => separator,
            _ => return None,
        };
        let texts: Option<Vec<&str>> = list
            .items
            .iter()
            .map(|item| match item {
                Value::Text(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        let texts = texts?;
        let length = texts.iter().fold(0_usize, |sum, text| sum.saturating_add(text.len() + separator.len()));
        return Some(run.spend_on(length).map(|()| Value::text(texts.join(separator))));
    }
    let [Value::Text(text), rest @ ..] = args else { return None };
    if let Err(fault) = run.spend_on(text.len()) {
        return Some(Err(fault));
    }
    let outcome = match (name, rest) {
        ("_+_", [Value::Text(other)]) => {
            if let Err(fault) = run.spend_on(other.len()) {
                return Some(Err(fault));
            }
            Value::text(format!("{text}{other}"))
        }
        ("contains", [Value::Text(part)]) => Value::Bool(text.contains(part.as_ref())),
        ("startsWith", [Value::Text(part)]) => Value::Bool(text.starts_with(part.as_ref())),
        ("endsWith", [Value::Text(part)]) => Value::Bool(text.ends_with(part.as_ref())),
        ("lowerAscii", []) => Value::text(text.to_ascii_lowercase()),
        ("upperAscii", []) => Value::text(text.to_ascii_uppercase()),
        ("trim", []) => Value::text(text.trim()),
        ("strings.quote", []) => Value::text(crate::field::quote(text)),
        ("matches", [Value::Text(pattern)]) => {
            return Some(searched(run, text, pattern).map(|pattern| Value::Bool(pattern.is_match(text))));
        }
        ("find", [Value::Text(pattern)]) => {
            return Some(
                searched(run, text, pattern)
                    .map(|pattern| Value::text(pattern.find(text).map_or("", |found| found.as_str()))),
            );
        }
        ("findAll", [Value::Text(pattern), rest @ ..]) => {
            let most = match rest {
                [] => usize::MAX,
                [Value::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => return None,
            };
            if let Err(fault) = run.spend(text.len().min(most)) {
                return Some(Err(fault));
            }
            return Some(searched(run, text, pattern).map(|pattern| {
                let found = pattern.find_iter(text).take(most).map(|found| Value::text(found.as_str()));
                Value::list(found.collect())
            }));
        }
        ("replace", [Value::Text(old), Value::Text(new)]) => {
            let count = text.matches(old.as_ref()).count().saturating_mul(new.len());
            if let Err(fault) = run.spend_on(count) {
                return Some(Err(fault));
            }
            Value::text(text.replace(old.as_ref(), new))
        }
        ("replace", [Value::Text(old), Value::Text(new), Value::Int(most)]) => {
            let most = usize::try_from(*most).unwrap_or(usize::MAX);
            let count = text.matches(old.as_ref()).take(most).count().saturating_mul(new.len());
            if let Err(fault) = run.spend_on(count) {
                return Some(Err(fault));
            }
            Value::text(text.replacen(old.as_ref(), new, most))
        }
        ("split", [Value::Text(separator), rest @ ..]) => {
            let most = match rest {
                [] => None,
                [Value::Int(most)] => usize::try_from(*most).ok(),
                _ => return None,
            };
            if let Err(fault) = run.spend(text.len().min(most.unwrap_or(usize::MAX))) {
                return Some(Err(fault));
            }
            Value::list(split(text, separator, most))
        }
        ("format", [Value::List(values)]) => {
            let work = weight(run, &Value::List(values.clone()));
            return Some(run.spend(work).and_then(|()| format(text, &values.items)));
        }
        (_, rest) => return by_index(name, text, rest),
    };
    Some(Ok(outcome))
}

fn split(text: &str, separator: &str, most: Option<usize>) -> Vec<Value> {
    let most = most.unwrap_or(usize::MAX);
    if most == 0 {
        return Vec::new();
    }
    if separator.is_empty() {
        let mut parts: Vec<String> = text.chars().map(String::from).collect();
        if parts.len() > most {
            let rest = parts.split_off(most - 1).concat();
            parts.push(rest);
        }
        return parts.iter().map(Value::text).collect();
    }
    text.splitn(most, separator).map(Value::text).collect()
}

/// A pattern to look for in a text. Repetitions make a pattern larger than it looks.
fn searched(run: &mut Run<'_>, text: &str, pattern: &Arc<str>) -> Outcome<Regex> {
    let repeated = pattern.split('{').skip(1).flat_map(|part| {
        let counts = part.split('}').next().unwrap_or_default();
        counts.split(',').filter_map(|count| count.trim().parse::<usize>().ok())
    });
    let size = repeated.fold(pattern.len(), |size, count| size.saturating_add(count.saturating_mul(4)));
    run.spend(text.len().saturating_mul(size) / 40)?;
    run.pattern(pattern)
}

/// Functions that count characters.
fn by_index(name: &str, text: &str, rest: &[Value]) -> Option<Outcome> {
    let chars: Vec<char> = text.chars().collect();
    let outside = |at: i64| Fault::error(format!("index out of range: {at}"));
    let place = |at: i64| usize::try_from(at).ok().filter(|at| *at <= chars.len()).ok_or_else(|| outside(at));
    let collected =
        |range: Option<&[char]>| Value::text(range.unwrap_or_default().iter().collect::<String>());
    match (name, rest) {
        ("charAt", [Value::Int(at)]) => {
            Some(place(*at).map(|at| collected(chars.get(at..(at + 1).min(chars.len())))))
        }
        ("substring", [Value::Int(from)]) => Some(place(*from).map(|from| collected(chars.get(from..)))),
        ("substring", [Value::Int(from), Value::Int(to)]) => Some(place(*from).and_then(|start| {
            let end = place(*to)?;
            if start > end {
                let why = format!("invalid substring range. start: {from}, end: {to}");
                return Err(Fault::error(why));
            }
            Ok(collected(chars.get(start..end)))
        })),
        ("indexOf" | "lastIndexOf", [Value::Text(part), rest @ ..]) => {
            let part: Vec<char> = part.chars().collect();
            let last = chars.len().checked_sub(part.len());
            let is_at = |at: &usize| chars.get(*at..).is_some_and(|tail| tail.starts_with(&part));
            let bound = match rest {
                [] => None,
                [Value::Int(at)] => match place(*at) {
                    Ok(at) => Some(at),
                    Err(fault) => return Some(Err(fault)),
                },
                _ => return None,
            };
            let found = match (last, name) {
                (None, _) => None,
                (Some(last), "indexOf") => (bound.unwrap_or(0)..=last).find(is_at),
                (Some(last), _) => (0..=last.min(bound.unwrap_or(last))).rev().find(is_at),
            };
            Some(Ok(Value::Int(found.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)))))
        }
        _ => None,
    }
}

pub(in crate::cel) fn compiled(pattern: &str) -> Outcome<Regex> {
    RegexBuilder::new(&go_pattern(pattern))
        .size_limit(PATTERN_LIMIT)
        .build()
        .map_err(|_| Fault::error(format!("error parsing regexp: `{pattern}`")))
}

/// `'%d of %s'.format([1, 'x'])`
fn format(text: &str, values: &[Value]) -> Outcome {
    let mut out = String::with_capacity(text.len());
    let mut values = values.iter();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut precision = None;
        if chars.next_if_eq(&'.').is_some() {
            let mut digits = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            precision = digits.parse::<usize>().ok().map(|digits| digits.min(64));
        }
        let verb = chars.next().unwrap_or(' ');
        let Some(value) = values.next() else {
            return Err(Fault::error("index out of range"));
        };
        let places = precision.unwrap_or(6);
        match (verb, value) {
            ('s', value) => out.push_str(&shown(value)),
            ('d', Value::Int(_) | Value::Uint(_)) => out.push_str(&shown(value)),
            ('d', Value::Double(number)) => out.push_str(&number.to_string()),
            ('f', Value::Double(number)) => out.push_str(&format!("{number:.places$}")),
            ('f', Value::Int(number)) => out.push_str(&format!("{:.places$}", *number as f64)),
            ('e', Value::Double(number)) => out.push_str(&format!("{number:.places$e}")),
            ('b', Value::Int(number)) => out.push_str(&format!("{number:b}")),
            ('b', Value::Bool(value)) => out.push_str(if *value { "1" } else { "0" }),
            ('o', Value::Int(number)) => out.push_str(&format!("{number:o}")),
            ('x', Value::Int(number)) => out.push_str(&format!("{number:x}")),
            ('X', Value::Int(number)) => out.push_str(&format!("{number:X}")),
            ('x' | 'X', Value::Text(text)) => {
                let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
                out.push_str(&if verb == 'X' { hex.to_uppercase() } else { hex });
            }
            ('d' | 'f' | 'e' | 'b' | 'o' | 'x' | 'X', value) => {
                let why = format!(
                    "error during formatting: wrong type for clause '%{verb}': {}",
                    value.type_name()
                );
                return Err(Fault::error(why));
            }
            (other, _) => {
                return Err(Fault::error(format!("unrecognized formatting clause \"{other}\"")));
            }
        }
    }
    Ok(Value::text(out))
}
