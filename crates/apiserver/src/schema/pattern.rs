//! Regular expressions as Go reads them.
//!
//! The two dialects are close. Go's `\d`, `\w`, `\s` and `\b` mean ASCII; Go takes a `{` that starts no repetition
//! and a `[` inside a class literally; it knows `\Q...\E`. All that is rewritten before compiling.

use regex::Regex;

/// Compiles a Go expression.
pub(super) fn compile(text: &str) -> Result<Regex, String> {
    Regex::new(&translate(text)).map_err(|error| {
        // The last line of the report says what is wrong; the lines before it draw a picture.
        error.to_string().lines().last().unwrap_or_default().trim().to_owned()
    })
}

/// The expression as our library reads it.
pub(crate) fn translate(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.chars();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str("[\\t\\n\\f\\r ]"),
                Some('S') => out.push_str("[^\\t\\n\\f\\r ]"),
                Some('b') if !in_class => out.push_str("(?-u:\\b)"),
                Some('Q') if !in_class => {
                    let tail = rest.as_str();
                    let (literal, after) = tail.split_once("\\E").unwrap_or((tail, ""));
                    out.push_str(&regex::escape(literal));
                    rest = after.chars();
                }
                Some(escaped) => {
                    out.push('\\');
                    out.push(escaped);
                }
                None => out.push('\\'),
            },
            '[' if in_class => out.push_str(if rest.as_str().starts_with(':') { "[" } else { "\\[" }),
            '[' => {
                in_class = true;
                out.push('[');
                if let Some(after) = rest.as_str().strip_prefix('^') {
                    out.push('^');
                    rest = after.chars();
                }
                // A bracket that comes first is a member of the class.
                if let Some(after) = rest.as_str().strip_prefix(']') {
                    out.push_str("\\]");
                    rest = after.chars();
                }
            }
            ']' if in_class => {
                // The end of `[:alpha:]` does not end the class.
                in_class = out.ends_with(':') && out.rfind("[:").is_some_and(|at| at + 2 < out.len());
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '{' if !in_class && !is_repetition(rest.as_str()) => out.push_str("\\{"),
            c => out.push(c),
        }
    }
    out
}

/// Whether the text after `{` is `n}`, `n,}` or `n,m}`.
fn is_repetition(text: &str) -> bool {
    let Some((inside, _)) = text.split_once('}') else { return false };
    let (low, high) = inside.split_once(',').unwrap_or((inside, "0"));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(compile(pattern).unwrap().is_match(text), expected, "{pattern} on {text}");
    }

    #[test]
    fn go_expressions_mean_the_same() {
        check(r"^\d+$", "123", true);
        check(r"^\d+$", "\u{661}", false);
        check(r"^[\w-]+$", "a_b-c", true);
        check(r"^a{2}$", "aa", true);
        check(r"^a{$", "a{", true);
        check(r"^a{,2}$", "a{,2}", true);
        check(r"^[[]$", "[", true);
        check(r"^[]]$", "]", true);
        check(r"^[[:alpha:]]+x$", "abx", true);
        check(r"^[a&&b]+$", "&", true);
        check(r"^\Qa.b\E$", "a.b", true);
        check(r"^\Qa.b\E$", "axb", false);
        check(r"\bfoo\b", "a foo b", true);
        check(r"^([0-9]+|[0-9]+%)$", "10%", true);
        check("^.{3}$", "äöü", true);
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for pattern in ["(", "a(?=b)", "[a", "*"] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
