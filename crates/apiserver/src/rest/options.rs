//! The query of a request, decoded once.

use crate::field;
use crate::rest::{FieldValidation, WriteOptions};
use crate::status::{GroupKind, Status};

/// The parameters of a request, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(key, true), percent_decode(value, true))
        });
        Self(pairs.collect())
    }

    /// The first value of a parameter; empty when it is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    pub(crate) fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A flag, as Kubernetes reads one: present and neither `false` nor `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.text(name), "false" | "0")
    }

    /// A whole number, or a `400`.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let text = self.text(name);
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| {
            Status::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", field::quote(text)))
        })
    }

    /// The options of a create, update or patch. `kind` is the options' kind, for errors.
    pub(crate) fn write_options(&self, kind: &'static str, apply: bool) -> Result<WriteOptions, Status> {
        let dry_run: Vec<&str> = self.all("dryRun").collect();
        let mut errors = Vec::new();
        if apply && self.text("fieldManager").is_empty() {
            errors.push(field::Error::required("fieldManager", "is required for apply patch"));
        }
        errors.extend(dry_run_errors(&dry_run));
        let field_validation = match self.text("fieldValidation") {
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                let known = ["Ignore", "Strict", "Warn"];
                errors.push(field::Error::not_supported("fieldValidation", other, &known));
                FieldValidation::Warn
            }
        };
        errors.extend(manager_errors(self.text("fieldManager")));
        if kind == "PatchOptions" && self.has("force") && !apply {
            let detail = "may not be specified for non-apply patch";
            errors.push(field::Error::forbidden("force", detail));
        }
        if !errors.is_empty() {
            return Err(Status::invalid(GroupKind::new("meta.k8s.io", kind), "", errors));
        }
        Ok(WriteOptions {
            dry_run: !dry_run.is_empty(),
            field_validation,
            field_manager: self.text("fieldManager").to_owned(),
            ..WriteOptions::default()
        })
    }
}

/// The name of who writes is short and can be printed.
fn manager_errors(name: &str) -> Vec<field::Error> {
    const MOST: u64 = 128;
    let mut errors = Vec::new();
    if name.len() as u64 > MOST {
        errors.push(field::Error::too_long("fieldManager", MOST));
    }
    let bad = name.char_indices().filter(|(_, letter)| letter.is_control());
    errors.extend(bad.map(|(at, letter)| {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(letter));
        field::Error::invalid("fieldManager", name, detail)
    }));
    errors
}

/// Only `All` may be asked for.
pub(super) fn dry_run_errors(stages: &[&str]) -> Vec<field::Error> {
    if stages.iter().all(|stage| *stage == "All") {
        return Vec::new();
    }
    let asked: Vec<String> = stages.iter().map(|stage| (*stage).to_owned()).collect();
    vec![field::Error::not_supported("dryRun", asked, &["All"])]
}

/// Decodes `%XX`, and `+` as a blank in queries.
pub(crate) fn percent_decode(text: &str, plus_is_blank: bool) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' if plus_is_blank => out.push(b' '),
            b'%' => {
                let mut ahead = bytes.clone();
                let digits = (ahead.next().and_then(hex), ahead.next().and_then(hex));
                if let (Some(high), Some(low)) = digits {
                    out.push(high * 16 + low);
                    bytes = ahead;
                } else {
                    out.push(b'%');
                }
            }
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_and_bad_escapes_stay() {
        let query = Query::parse(Some("labelSelector=a%3Db%2Cc+in+(d)&watch&x=%zz&limit=5"));
        assert_eq!(query.text("labelSelector"), "a=b,c in (d)");
        assert!(query.flag("watch"));
        assert_eq!(query.text("x"), "%zz");
        assert_eq!(query.number("limit").unwrap(), Some(5));
        assert!(query.number("labelSelector").is_err());
    }
}
