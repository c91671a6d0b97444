//! What label keys, label values and DNS names may look like, and what the server says when they do not.
//!
//! Every function returns the list of broken rules; an empty list means that the text is fine.

const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                         an alphanumeric character";
const NAME_EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
const VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
                          or '.', and must start and end with an alphanumeric character";
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                          and must start and end with an alphanumeric character";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
                              '-' or '.', and must start and end with an alphanumeric character";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
                               with an alphabetic character, and end with an alphanumeric character";

/// The key of a label or annotation, or the name of a finalizer: `name` or `example.com/name`.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                broken.push("prefix part must be non-empty".to_owned());
            } else {
                broken.extend(dns_subdomain(prefix).iter().map(|rule| format!("prefix part {rule}")));
            }
            name
        }
        _ => {
            let rule = regex_rule(NAME_RULE, NAME, NAME_EXAMPLES);
            return vec![format!(
                "a qualified name {rule} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        broken.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        broken.push(format!("name part {}", max_bytes(63)));
    }
    if !is_name(name) {
        broken.push(format!("name part {}", regex_rule(NAME_RULE, NAME, NAME_EXAMPLES)));
    }
    broken
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if text.len() > 63 {
        broken.push(max_bytes(63));
    }
    if !text.is_empty() && !is_name(text) {
        broken.push(regex_rule(VALUE_RULE, VALUE, &["MyValue", "my_value", "12345"]));
    }
    broken
}

/// The name of most objects: dots allowed, at most 253 bytes.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if text.len() > 253 {
        broken.push(max_length(253));
    }
    if !text.split('.').all(is_dns_label) {
        broken.push(regex_rule(SUBDOMAIN_RULE, SUBDOMAIN, &["example.com"]));
    }
    broken
}

/// The name of a namespace or container: no dots, at most 63 bytes.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if text.len() > 63 {
        broken.push(max_length(63));
    }
    if !is_dns_label(text) {
        if text.split('.').all(is_dns_label) {
            // The text says what is wrong most often.
            broken.push("must not contain dots".to_owned());
        } else {
            broken.push(regex_rule(LABEL_RULE, LABEL, &["my-name", "123-abc"]));
        }
    }
    broken
}

/// The name of a service, or the plural of a custom resource: a DNS label that starts with a letter.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if text.len() > 63 {
        broken.push(max_length(63));
    }
    if !is_dns_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        broken.push(regex_rule(LABEL_1035_RULE, LABEL_1035, &["my-name", "abc-123"]));
    }
    broken
}

/// The rule about the length of a name.
pub fn max_length(bytes: usize) -> String {
    format!("must be no more than {bytes} characters")
}

/// The rule about the length of a label's key or value, which newer servers count in other words than names.
fn max_bytes(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

/// A rule with examples and the regular expression behind it.
pub fn regex_rule(rule: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{regex}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    framed(text, |b| b.is_ascii_alphanumeric(), inner)
}

fn is_dns_label(text: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    framed(text, edge, |b| edge(b) || b == b'-')
}

/// Not empty, all bytes pass `inner`, the first and the last pass `edge`.
fn framed(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| edge(*b))
        && bytes.last().is_some_and(|b| edge(*b))
        && bytes.iter().all(|b| inner(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_pass() {
        for name in ["a", "A.b_c-1", "example.com/a", "1"] {
            assert_eq!(qualified_name(name), Vec::<String>::new(), "{name}");
        }
        for value in ["", "a", "A.b_c-1"] {
            assert_eq!(label_value(value), Vec::<String>::new(), "{value}");
        }
        assert!(dns_subdomain("a.b-c.1").is_empty());
        assert!(dns_label("1-a").is_empty());
        assert!(dns_1035_label("a-1").is_empty());
    }

    #[test]
    fn broken_rules_read_as_kubernetes_writes_them() {
        assert_eq!(
            qualified_name("a b"),
            [
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                 an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
                 is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ]
        );
        assert_eq!(
            label_value("-"),
            [
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                 regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ]
        );
        assert_eq!(qualified_name("/a"), ["prefix part must be non-empty"]);
        assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(
            dns_subdomain("A"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert!(qualified_name("a/b/c")[0].starts_with("a qualified name must consist"));
        assert!(dns_1035_label("1a")[0].starts_with("a DNS-1035 label"));
    }
}
