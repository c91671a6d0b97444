//! Selectors on fields.

use std::collections::BTreeMap;
use std::fmt;

use super::Error;

/// One condition on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The field, for example `spec.nodeName`.
    pub field: String,
    /// The value it is compared with.
    pub value: String,
    /// Whether the field must equal the value, or must not.
    pub equal: bool,
}

/// A selector: all its terms must hold. A field that is not there counts as empty.
///
/// ```
/// use kruise_apiserver::selector::Fields;
/// let selector = Fields::parse("spec.nodeName=n1,status.phase!=Failed").unwrap();
/// assert_eq!(selector.exact("spec.nodeName"), Some("n1"));
/// assert!(selector.matches_by(|field| if field == "spec.nodeName" { "n1" } else { "Running" }));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    terms: Vec<Term>,
}

impl Fields {
    /// Reads the text of a `fieldSelector` parameter. Whether the resource has such fields is not checked here.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = split(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some(at) = part.find(['=', '!']).and_then(|at| operator_from(part, at)) else {
                return Err(Error(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            let (field, rest) = part.split_at(at);
            let (equal, value) = if let Some(value) = rest.strip_prefix("!=") {
                (false, value)
            } else {
                (true, rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')).unwrap_or_default())
            };
            terms.push(Term { field: field.to_owned(), value: unescape(value)?, equal });
        }
        Ok(Self { terms })
    }

    /// The same with other names of the fields; the first that has none is an error.
    pub(crate) fn renamed<E>(mut self, name: impl Fn(&str) -> Result<String, E>) -> Result<Self, E> {
        for term in &mut self.terms {
            term.field = name(&term.field)?;
        }
        Ok(self)
    }

    /// The terms, in order of their text.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that a field must have, if there is just one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }

    /// Whether an object with these fields is selected.
    pub fn matches(&self, fields: &BTreeMap<String, String>) -> bool {
        self.matches_by(|field| fields.get(field).map_or("", String::as_str))
    }

    /// Whether fields are selected that are looked up one by one.
    pub fn matches_by<'a>(&self, value: impl Fn(&str) -> &'a str) -> bool {
        self.terms.iter().all(|term| (value(&term.field) == term.value) == term.equal)
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Term { field, value, equal }) in self.terms.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let operator = if *equal { "=" } else { "!=" };
            write!(f, "{comma}{field}{operator}{}", escape(value))?;
        }
        Ok(())
    }
}

/// The place of the first operator at or after `at`; a lone `!` belongs to the field's name.
fn operator_from(part: &str, at: usize) -> Option<usize> {
    part.get(at..)?
        .char_indices()
        .map(|(offset, _)| at + offset)
        .find(|at| part.get(*at..).is_some_and(|rest| rest.starts_with('=') || rest.starts_with("!=")))
}

/// Splits at commas that are not escaped.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(text.get(start..i).unwrap_or_default());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}

fn unescape(value: &str) -> Result<String, Error> {
    let bad =
        |sequence: String| Err(Error(format!("invalid field selector: invalid escape sequence: {sequence}")));
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(other) => return bad(format!("\\{other}")),
                None => return bad("\\".to_owned()),
            },
            // The real server prints the character's number.
            ',' | '=' => {
                let number = u32::from(c);
                return Err(Error(format!("invalid field selector: unescaped character in value: {number}")));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let found =
            Fields::parse(text).map(|selector| selector.to_string()).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn terms_are_read_with_their_escapes() {
        check("", Ok(""));
        check("a=b", Ok("a=b"));
        check("a==b,", Ok("a=b"));
        check("b!=c,a=", Ok("a=,b!=c"));
        check(r"a=x\,y\=z\\", Ok(r"a=x\,y\=z\\"));
        check("a!b=c", Ok("a!b=c"));
    }

    #[test]
    fn bad_terms_are_refused_in_the_real_servers_words() {
        check("a", Err("invalid selector: 'a'; can't understand 'a'"));
        check("a=b=c", Err("invalid field selector: unescaped character in value: 61"));
        check(r"a=\x", Err(r"invalid field selector: invalid escape sequence: \x"));
        check(r"a=b\", Err(r"invalid field selector: invalid escape sequence: \"));
    }

    #[test]
    fn a_missing_field_counts_as_empty() {
        let selector = Fields::parse("spec.nodeName=").unwrap();
        assert!(selector.matches(&BTreeMap::new()));
        assert!(!Fields::parse("spec.nodeName=n").unwrap().matches(&BTreeMap::new()));
        assert!(Fields::parse("spec.nodeName!=n").unwrap().matches(&BTreeMap::new()));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(fields in prop::collection::vec(("[a-z.]{1,5}", any::<String>(), any::<bool>()), 0..4)) {
            let terms = fields.into_iter().map(|(field, value, equal)| Term { field, value, equal }).collect();
            let selector = Fields { terms };
            let mut back = Fields::parse(&selector.to_string()).unwrap();
            back.terms.sort_by_key(|term| format!("{term:?}"));
            let mut selector = selector;
            selector.terms.sort_by_key(|term| format!("{term:?}"));
            prop_assert_eq!(back, selector);
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = Fields::parse(&text);
        }
    }
}
