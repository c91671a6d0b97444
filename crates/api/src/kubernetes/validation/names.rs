//! What names, keys and ports may look like. Every function returns the broken rules; none means that all is well.

/// The rule about a text's length.
fn longer_than(text: &str, max: usize) -> Option<String> {
    (text.len() > max).then(|| format!("must be no more than {max} characters"))
}

/// A rule with examples and the regular expression behind it.
fn rule(rule: &str, examples: &[&str], regex: &str) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

fn is_label(text: &str) -> bool {
    let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
        && bytes.iter().all(|b| edge(b) || *b == b'-')
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// A DNS label of RFC 1123: containers, volumes, namespaces, pods of ordered sets.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = longer_than(text, 63).into_iter().collect();
    if !is_label(text) {
        let dotted = text.contains('.') && text.split('.').all(is_label);
        broken.push(match dotted {
            true => "must not contain dots".to_owned(),
            false => rule(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character",
                &["my-name", "123-abc"],
                "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
            ),
        });
    }
    broken
}

/// A DNS label of RFC 1035, which starts with a letter: services.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = longer_than(text, 63).into_iter().collect();
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        broken.push(rule(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            &["my-name", "abc-123"],
            "[a-z]([-a-z0-9]*[a-z0-9])?",
        ));
    }
    broken
}

/// A DNS subdomain: the names of most objects.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = longer_than(text, 253).into_iter().collect();
    if !text.split('.').all(is_label) {
        broken.push(rule(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            &["example.com"],
            "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        ));
    }
    broken
}

/// The key of a label or annotation: `name` or `example.com/name`.
pub fn qualified_name(text: &str) -> Vec<String> {
    let word_rule = || {
        rule(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
             character",
            &["MyName", "my.name", "123-abc"],
            "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
        )
    };
    let mut broken = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>().as_slice() {
        [name] => (*name).to_owned(),
        [prefix, name] => {
            match prefix.is_empty() {
                true => broken.push("prefix part must be non-empty".to_owned()),
                false => {
                    broken
                        .extend(dns_subdomain(prefix).into_iter().map(|rule| format!("prefix part {rule}")));
                }
            }
            (*name).to_owned()
        }
        _ => {
            let rule = word_rule();
            let tail = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a qualified name {rule} {tail}")];
        }
    };
    if name.is_empty() {
        broken.push("name part must be non-empty".to_owned());
    } else {
        broken.extend(longer_than(&name, 63).map(|rule| format!("name part {rule}")));
    }
    if !is_word(&name) {
        broken.push(format!("name part {}", word_rule()));
    }
    broken
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = longer_than(text, 63).into_iter().collect();
    if !text.is_empty() && !is_word(text) {
        broken.push(rule(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &["MyValue", "my_value", "12345"],
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
        ));
    }
    broken
}

/// The name of an environment variable: since Kubernetes 1.32 anything printable but `=`.
pub fn environment_variable(text: &str) -> Vec<String> {
    let allowed = |c: char| (' '..='~').contains(&c) && c != '=';
    match text.chars().all(allowed) {
        true => Vec::new(),
        false => vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned(),
        ],
    }
}

/// The key of a ConfigMap or Secret, which becomes a file name.
pub fn config_key(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = longer_than(text, 253).into_iter().collect();
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    {
        broken.push(rule(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            &["key.name", "KEY_NAME", "key-name"],
            "[-._a-zA-Z0-9]+",
        ));
    }
    match text {
        "." => broken.push("must not be '.'".to_owned()),
        ".." => broken.push("must not be '..'".to_owned()),
        text if text.starts_with("..") => broken.push("must not start with '..'".to_owned()),
        _ => {}
    }
    broken
}

/// The number of a port.
pub fn port_number(port: i64) -> Option<String> {
    (!(1..=65535).contains(&port)).then(|| "must be between 1 and 65535, inclusive".to_owned())
}

/// The name of a port: at most 15 letters, digits and hyphens with at least one letter.
pub fn port_name(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = longer_than(text, 15).into_iter().collect();
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        broken.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        broken.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        broken.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        broken.push("must not begin or end with a hyphen".to_owned());
    }
    broken
}

/// The name of an HTTP header.
pub fn http_header(text: &str) -> Vec<String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    vec![rule(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        &["X-Header-Name"],
        "[-A-Za-z0-9]+",
    )]
}
