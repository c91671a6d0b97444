//! Reads the text of a path.

use serde_json::Value;

use super::{Comparison, Error, Filter, JsonPath, Operand, Step};

/// More steps than any real path has; descending steps multiply, so their number is bounded too.
const MAX_STEPS: usize = 64;
const MAX_DESCENTS: usize = 2;

pub(super) fn path(text: &str) -> Result<JsonPath, Error> {
    let text = text.trim();
    let text = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}').ok_or_else(|| Error("unclosed action".to_owned()))?.trim(),
        None => text,
    };
    steps(text.strip_prefix('$').unwrap_or(text), 0)
}

fn steps(text: &str, level: usize) -> Result<JsonPath, Error> {
    if level > 4 {
        return Err(Error("filters are nested too deeply".to_owned()));
    }
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("..") {
            steps.push(Step::Descend);
            rest = after;
            if !rest.starts_with('[') {
                rest = name(rest, &mut steps)?;
            }
        } else if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = bracket(after)?;
            steps.push(selection(inside.trim(), level)?);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            // `.['name']` means the same as `['name']`; a lone dot is the object itself.
            rest = if after.starts_with('[') || text == "." { after } else { name(after, &mut steps)? };
        } else if steps.is_empty() {
            rest = name(rest, &mut steps)?;
        } else {
            return Err(Error(format!("unexpected text in path: {rest}")));
        }
    }
    let descents = steps.iter().filter(|step| **step == Step::Descend).count();
    if steps.len() > MAX_STEPS || descents > MAX_DESCENTS {
        return Err(Error("the path has too many steps".to_owned()));
    }
    Ok(JsonPath { steps })
}

/// A plain name up to the next dot or bracket; a backslash keeps the character after it.
fn name<'a>(text: &'a str, steps: &mut Vec<Step>) -> Result<&'a str, Error> {
    let mut found = String::new();
    let mut chars = text.char_indices();
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, escaped)) => found.push(escaped),
                None => return Err(Error("the path ends with a backslash".to_owned())),
            },
            '.' | '[' => {
                end = at;
                break;
            }
            c => found.push(c),
        }
    }
    if found.is_empty() {
        return Err(Error(format!("a name is missing in the path before {text:?}")));
    }
    steps.push(if found == "*" { Step::Wildcard } else { Step::Field(found) });
    Ok(text.get(end..).unwrap_or_default())
}

/// The text up to the bracket that closes this one, and the text after it.
fn bracket(text: &str) -> Result<(&str, &str), Error> {
    let mut level = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => level += 1,
            (None, ']') if level > 0 => level -= 1,
            (None, ']') => {
                let after = text.get(at + 1..).unwrap_or_default();
                return Ok((text.get(..at).unwrap_or_default(), after));
            }
            _ => {}
        }
    }
    Err(Error("unterminated array".to_owned()))
}

fn selection(text: &str, level: usize) -> Result<Step, Error> {
    if let Some(filter) = text.strip_prefix("?(") {
        let inside = filter.strip_suffix(')').ok_or_else(|| Error("unterminated filter".to_owned()))?;
        return self::filter(inside, level).map(Step::Filter);
    }
    let parts = split_outside_quotes(text, ',');
    let mut steps = parts.into_iter().map(|part| single(part.trim())).collect::<Result<Vec<_>, _>>()?;
    match steps.len() {
        1 => Ok(steps.remove(0)),
        _ => Ok(Step::Union(steps)),
    }
}

fn single(text: &str) -> Result<Step, Error> {
    if text == "*" {
        return Ok(Step::Wildcard);
    }
    if text.starts_with(['\'', '"']) {
        return Ok(Step::Field(quoted(text)?));
    }
    let number = |text: &str| {
        text.trim().parse::<i64>().map_err(|_| Error(format!("invalid array index {}", text.trim())))
    };
    let optional = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
    match text.split(':').collect::<Vec<_>>().as_slice() {
        [index] => number(index).map(Step::Index),
        [start, end] => Ok(Step::Slice { start: optional(start)?, end: optional(end)?, step: 1 }),
        [start, end, step] => match optional(step)?.unwrap_or(1) {
            step if step < 1 => Err(Error("step must be > 0".to_owned())),
            step => Ok(Step::Slice { start: optional(start)?, end: optional(end)?, step }),
        },
        _ => Err(Error(format!("invalid array index {text}"))),
    }
}

fn filter(text: &str, level: usize) -> Result<Filter, Error> {
    const OPERATORS: [(&str, Comparison); 6] = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, _) => {
                let rest = text.get(at..).unwrap_or_default();
                for (operator, comparison) in OPERATORS {
                    if let Some(right) = rest.strip_prefix(operator) {
                        let left = operand(text.get(..at).unwrap_or_default(), level)?;
                        return Ok(Filter::Compare(left, comparison, operand(right, level)?));
                    }
                }
            }
        }
    }
    operand(text, level).map(Filter::Exists)
}

fn operand(text: &str, level: usize) -> Result<Operand, Error> {
    let text = text.trim();
    if let Some(path) = text.strip_prefix('@') {
        return steps(path, level + 1).map(Operand::Path);
    }
    if text.starts_with(['\'', '"']) {
        return Ok(Operand::Literal(Value::String(quoted(text)?)));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Bool(_) | Value::Number(_) | Value::Null)) => Ok(Operand::Literal(value)),
        _ => Err(Error(format!("unrecognized operand in filter: {text}"))),
    }
}

/// The text between quotes; a backslash keeps the character after it.
fn quoted(text: &str) -> Result<String, Error> {
    let mut chars = text.chars();
    let quote = chars.next().unwrap_or('\'');
    let mut found = String::new();
    loop {
        match chars.next() {
            Some('\\') => found.extend(chars.next()),
            Some(c) if c == quote => break,
            Some(c) => found.push(c),
            None => return Err(Error("unterminated quoted string".to_owned())),
        }
    }
    if chars.next().is_some() {
        return Err(Error(format!("unexpected text after {text}")));
    }
    Ok(found)
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == separator => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + c.len_utf8();
            }
            None => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}
