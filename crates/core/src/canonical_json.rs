//! JSON exactly as Go's encoder writes a map: compact, keys sorted, and with the characters escaped that Go escapes.
//!
//! Hashes and names are made of such bytes, so they must not depend on who wrote them.

use serde_json::Value;

/// The text of a value.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => quote(text, out),
        Value::Array(items) => list(items, out, write),
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(key, _)| key.as_bytes());
            out.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                quote(key, out);
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
    }
}

/// A list whose items are written so.
pub fn list(items: &[Value], out: &mut String, write: impl Fn(&Value, &mut String)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

/// A text in quotes, as Go writes it.
pub fn quote(text: &str, out: &mut String) {
    use std::fmt::Write as _;
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{0}'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_and_letters_escaped_as_go_does() {
        assert_eq!(
            text(&json!({"b": [1, true, null], "a": "<&>\u{2028}é\"\\\n\u{1}"})),
            r#"{"a":"\u003c\u0026\u003e\u2028é\"\\\n\u0001","b":[1,true,null]}"#
        );
    }
}
