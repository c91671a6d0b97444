//! Errors about one field of an object, in Kubernetes' words.
//!
//! A rule that looks at an object returns a list of [`Error`]s; [`crate::status::Status::invalid`] turns the
//! list into the `422 Invalid` answer that users see. The texts are part of the contract: people and tools
//! match on them.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Write as _};

use serde_json::Value;

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The value names something that does not exist.
    NotFound,
    /// The value is missing or empty.
    Required,
    /// The value must be unique and is not.
    Duplicate,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value is not one of the allowed ones.
    NotSupported,
    /// The value would be fine elsewhere but is not allowed here.
    Forbidden,
    /// The text is too long.
    TooLong,
    /// The text is too short.
    TooShort,
    /// The list has too many items.
    TooMany,
    /// The value has the wrong type.
    TypeInvalid,
    /// The check itself failed.
    Internal,
}

impl ErrorKind {
    /// The machine-readable reason, as it stands in `details.causes[].reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort | Self::Internal)
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Which field, for example `spec.containers[0].name`.
    pub path: String,
    /// The offending value; not shown for every kind.
    pub value: Value,
    /// The offending value as the real server prints it, where that is not plain JSON sorted by key. Empty: not at all.
    pub shown: Option<String>,
    /// The rule that was broken; may be empty.
    pub detail: String,
    /// Whether the client is only told: the value was wrong before the change and did not change.
    pub only_warns: bool,
}

impl Error {
    /// An error of any kind.
    pub fn new(
        kind: ErrorKind,
        path: impl Display,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            path: path.to_string(),
            value: value.into(),
            shown: None,
            detail: detail.into(),
            only_warns: false,
        }
    }

    /// The same error with the value printed as given.
    #[must_use]
    pub fn shown_as(mut self, text: impl Into<String>) -> Self {
        self.shown = Some(text.into());
        self
    }

    /// The same error without the value.
    #[must_use]
    pub fn without_value(self) -> Self {
        self.shown_as("")
    }

    /// The same error, which is told and does not refuse.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.only_warns = true;
        self
    }

    /// The value is missing or empty. `detail` is usually empty.
    pub fn required(path: impl Display, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, path, "", detail)
    }

    /// The value breaks the rule in `detail`.
    pub fn invalid(path: impl Display, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, path, value, detail)
    }

    /// The value has the wrong type.
    pub fn type_invalid(path: impl Display, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TypeInvalid, path, value, detail)
    }

    /// The value is not one of `supported`, which are listed in the given order.
    pub fn not_supported<S: AsRef<str>>(
        path: impl Display,
        value: impl Into<Value>,
        supported: &[S],
    ) -> Self {
        let mut detail = String::new();
        for (i, name) in supported.iter().enumerate() {
            detail.push_str(if i == 0 { "supported values: " } else { ", " });
            detail.push_str(&quote(name.as_ref()));
        }
        Self::new(ErrorKind::NotSupported, path, value, detail)
    }

    /// The value must be unique and is not.
    pub fn duplicate(path: impl Display, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::Duplicate, path, value, "")
    }

    /// The value may not be set, or not be changed, here.
    pub fn forbidden(path: impl Display, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, path, "", detail)
    }

    /// The value refers to something that does not exist.
    pub fn not_found(path: impl Display, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::NotFound, path, value, "")
    }

    /// The text has more than `max` bytes.
    pub fn too_long(path: impl Display, max: u64) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::new(ErrorKind::TooLong, path, "<value omitted>", format!("may not be more than {max} {unit}"))
    }

    /// The list has `actual` items, more than `max`.
    pub fn too_many(path: impl Display, actual: u64, max: u64) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::new(ErrorKind::TooMany, path, actual, format!("must have at most {max} {unit}"))
    }

    /// The check itself failed.
    pub fn internal(path: impl Display, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, path, Value::Null, detail)
    }

    /// The message without the path, as it stands in `details.causes[].message`.
    pub fn body(&self) -> String {
        let mut out = String::from(self.kind.words());
        if self.kind.shows_value() && self.shown.as_deref() != Some("") {
            out.push_str(": ");
            match &self.shown {
                Some(text) => out.push_str(text),
                None => out.push_str(&show(&self.value)),
            }
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

impl std::error::Error for Error {}

/// Joins errors as Kubernetes does: one stands alone, several stand in brackets, repeats are left out.
pub fn aggregate(errors: &[Error]) -> String {
    let mut seen = BTreeSet::new();
    let texts = errors.iter().map(Error::to_string).filter(|text| seen.insert(text.clone()));
    match texts.collect::<Vec<_>>().as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// The way to a field while walking an object; costs nothing until it is printed.
///
/// ```
/// use kruise_apiserver::field::Path;
/// let spec = Path::new("spec");
/// let list = spec.child("containers");
/// assert_eq!(list.index(0).child("name").to_string(), "spec.containers[0].name");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    /// Nothing, or a path that is already text.
    Text(&'a str),
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The object itself.
    pub const fn root() -> Path<'static> {
        Path { parent: None, step: Step::Text("") }
    }

    /// A path that is given as text already, for example `spec.template`.
    pub const fn new(text: &'a str) -> Self {
        Path { parent: None, step: Step::Text(text) }
    }

    /// The field `name` of the object at this path.
    pub const fn child<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path { parent: Some(self), step: Step::Child(name) }
    }

    /// The item number `index` of the list at this path.
    pub const fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// The entry `key` of the map at this path.
    pub const fn key<'b>(&'b self, key: &'b str) -> Path<'b> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    /// Whether this is the object itself.
    pub fn is_root(&self) -> bool {
        self.parent.is_none() && matches!(self.step, Step::Text(""))
    }
}

impl Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}")?;
        }
        match self.step {
            Step::Text(text) => f.write_str(text),
            Step::Child(name) if self.parent.is_none_or(Path::is_root) => f.write_str(name),
            Step::Child(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

/// A value as Kubernetes prints it in messages: strings quoted, numbers plain, the rest as compact JSON.
pub fn show(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => number_text(number),
        other => go_json(other),
    }
}

/// A number as Go prints it with `%v`: whole floats without a fraction, exponents only from 21 digits on.
fn number_text(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float_text(float),
        _ => number.to_string(),
    }
}

/// A float as Go prints it with `%v`.
pub fn float_text(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{float:e}");
        return match text.split_once('e') {
            Some((mantissa, exponent)) => {
                let (sign, digits) = match exponent.strip_prefix('-') {
                    Some(digits) => ('-', digits),
                    None => ('+', exponent),
                };
                format!("{mantissa}e{sign}{digits:0>2}")
            }
            None => text,
        };
    }
    format!("{float}")
}

/// Compact JSON with `<`, `>` and `&` escaped, as Go's encoder writes it.
pub(crate) fn go_json(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A text in double quotes with Go's escapes (`%q`).
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            // Go escapes what is not printable; control characters and odd spaces are the ones that occur.
            c if c.is_control() || (c.is_whitespace() && c != ' ') || c == '\u{feff}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(error: &Error, expected: &str) {
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn errors_read_as_kubernetes_writes_them() {
        check(
            &Error::invalid("spec.replicas", -1, "must be greater than or equal to 0"),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        );
        check(&Error::required("spec.a", ""), "spec.a: Required value");
        check(&Error::required("spec.a", "must specify one"), "spec.a: Required value: must specify one");
        check(
            &Error::not_supported("spec.policy", "x", &["A", "B"]),
            "spec.policy: Unsupported value: \"x\": supported values: \"A\", \"B\"",
        );
        check(&Error::duplicate("spec.l[1].name", "x"), "spec.l[1].name: Duplicate value: \"x\"");
        check(&Error::forbidden("spec.x", "may not be set"), "spec.x: Forbidden: may not be set");
        check(
            &Error::too_long("metadata.name", 63),
            "metadata.name: Too long: may not be more than 63 bytes",
        );
        check(&Error::too_long("spec.s", 1), "spec.s: Too long: may not be more than 1 byte");
        check(&Error::too_many("spec.l", 2, 1), "spec.l: Too many: 2: must have at most 1 item");
        check(&Error::too_many("spec.l", 3, 2), "spec.l: Too many: 3: must have at most 2 items");
        check(
            &Error::invalid("spec.m", json!({"b": 1, "a": "<"}), "no"),
            "spec.m: Invalid value: {\"a\":\"\\u003c\",\"b\":1}: no",
        );
        check(&Error::invalid("spec.f", 1.5e30, "no"), "spec.f: Invalid value: 1.5e+30: no");
        check(&Error::invalid("spec.f", 2.0, "no"), "spec.f: Invalid value: 2: no");
    }

    #[test]
    fn strings_are_quoted_with_go_escapes() {
        assert_eq!(quote("a\"b\\c\nd\u{1}é\u{a0}"), "\"a\\\"b\\\\c\\nd\\x01é\\u00a0\"");
    }

    #[test]
    fn several_errors_stand_in_brackets_without_repeats() {
        let a = Error::required("a", "");
        let b = Error::required("b", "");
        assert_eq!(aggregate(std::slice::from_ref(&a)), "a: Required value");
        assert_eq!(aggregate(&[a.clone(), b.clone(), a.clone()]), "[a: Required value, b: Required value]");
        assert_eq!(aggregate(&[a.clone(), a]), "a: Required value");
    }

    #[test]
    fn a_path_prints_children_indexes_and_keys() {
        let root = Path::root();
        let spec = root.child("spec");
        let list = spec.child("containers");
        let first = list.index(0);
        assert_eq!(first.child("name").to_string(), "spec.containers[0].name");
        assert_eq!(spec.key("a.b/c").to_string(), "spec[a.b/c]");
        assert_eq!(Path::new("metadata.labels").child("x").to_string(), "metadata.labels.x");
    }
}
