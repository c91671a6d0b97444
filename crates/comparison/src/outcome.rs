//! Answers made comparable.
//!
//! A body becomes lines of `path = value`. What a server makes up becomes a word: `uid1` is the first uid of the
//! story, `v2` the second version of an object, `TIME`, `IP`, `PORT` and `TOKEN` are what they say. The namespace of
//! the story is `$ns`. Managers of fields are a line each, and count only in steps that ask for them: they are about who
//! wrote, not about what happened.

use serde_json::Value;

/// Who manages which fields.
const MANAGED: &str = "managedFields";
/// Stands for a version that no two servers share.
const ANY_VERSION: &str = "VERSION";

/// What was seen in a story so far.
#[derive(Clone, Debug, Default)]
pub struct Words {
    namespace: String,
    uids: Vec<String>,
    versions: Vec<String>,
    names: Vec<(String, String)>,
}

impl Words {
    /// For a story in this namespace.
    pub fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..Self::default() }
    }

    /// The lines of one body.
    pub fn lines(&mut self, mut body: Value) -> Vec<String> {
        self.learn(&body);
        forget_version_of_all(&mut body);
        let mut lines = Vec::new();
        self.flatten("", &body, &mut lines);
        lines
    }

    /// The lines of the events of a watch. Servers send as many bookmarks as they like; only the last one counts.
    pub fn events(&mut self, events: Vec<Value>) -> Vec<String> {
        let is_bookmark = |event: &Value| event.get("type").is_some_and(|kind| kind == "BOOKMARK");
        let mut bookmark = None;
        let mut kept = Vec::new();
        for event in events {
            if is_bookmark(&event) { bookmark = Some(event) } else { kept.push(event) }
        }
        if let Some(mut event) = bookmark {
            if let Some(version) = event.pointer_mut("/object/metadata/resourceVersion") {
                *version = ANY_VERSION.into();
            }
            kept.push(event);
        }
        let mut lines = Vec::new();
        for (index, event) in kept.iter().enumerate() {
            self.learn(event);
            self.flatten(&format!("event[{index}]"), event, &mut lines);
        }
        lines
    }

    /// Remembers names that the server made, so that they read the same everywhere.
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                let text = |key: &str| map.get(key).and_then(Value::as_str);
                if let (Some(prefix), Some(name)) = (text("generateName"), text("name"))
                    && name.strip_prefix(prefix).is_some_and(|suffix| suffix.len() == 5)
                    && !self.names.iter().any(|(known, _)| known == name)
                {
                    self.names.push((name.to_owned(), format!("{prefix}*****")));
                }
                if let Some(uid) = text("uid").filter(|uid| !uid.is_empty()) {
                    label(&mut self.uids, "uid", uid);
                }
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort();
                keys.into_iter().filter_map(|key| map.get(key)).for_each(|value| self.learn(value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }

    fn flatten(&mut self, path: &str, value: &Value, lines: &mut Vec<String>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort();
                for key in keys {
                    if key == MANAGED
                        && let Some(Value::Array(entries)) = map.get(key)
                    {
                        self.managers(path, entries, lines);
                        continue;
                    }
                    let path = join(path, &self.plain(key));
                    if let Some(value) = map.get(key) {
                        self.flatten(&path, value, lines);
                    }
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    self.flatten(&format!("{path}[{index}]"), item, lines);
                }
            }
            Value::String(text) => {
                let word = self.word(path, text);
                lines.push(format!("{path} = {}", Value::String(word)));
            }
            Value::Number(number) if last(path) == "nodePort" && number.as_u64() >= Some(30000) => {
                lines.push(format!("{path} = PORT"));
            }
            other => lines.push(format!("{path} = {other}")),
        }
    }

    /// Who manages what: name, operation, version, place, time and fields.
    fn managers(&self, path: &str, entries: &[Value], lines: &mut Vec<String>) {
        for (index, entry) in entries.iter().enumerate() {
            let text = |key: &str| match entry.get(key).and_then(Value::as_str).unwrap_or_default() {
                "" => "-",
                time if is_time(time) => "TIME",
                text => text,
            };
            let words = ["manager", "operation", "apiVersion", "subresource", "time"].map(text).join(" ");
            let fields = self.plain(&entry.get("fieldsV1").map(Value::to_string).unwrap_or_default());
            lines.push(format!("{} = {words} {fields}", join(path, MANAGED) + &format!("[{index}]")));
        }
    }

    fn word(&mut self, path: &str, text: &str) -> String {
        match last(path) {
            "uid" if !text.is_empty() => return label(&mut self.uids, "uid", text),
            "resourceVersion" if !text.is_empty() && text != ANY_VERSION => {
                return label(&mut self.versions, "v", text);
            }
            "continue" if !text.is_empty() => return "TOKEN".to_owned(),
            _ => {}
        }
        if is_time(text) {
            return "TIME".to_owned();
        }
        if text.starts_with("10.") && text.split('.').count() == 4 && text.split('.').all(is_number) {
            return "IP".to_owned();
        }
        self.plain(text)
    }

    /// A text in which known names, uids and versions are words.
    fn plain(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, word) in &self.names {
            text = text.replace(name, word);
        }
        if !self.namespace.is_empty() {
            text = text.replace(&self.namespace, "$ns");
        }
        for (index, uid) in self.uids.iter().enumerate() {
            text = text.replace(uid, &format!("uid{}", index + 1));
        }
        without_addresses(&without_versions(&text))
    }
}

/// The version of a list is that of the whole cluster, where others write too.
fn forget_version_of_all(body: &mut Value) {
    let is_list = ["items", "rows"].iter().any(|key| body.get(key).is_some());
    if is_list && let Some(version) = body.pointer_mut("/metadata/resourceVersion") {
        *version = ANY_VERSION.into();
    }
}

/// `too old resource version: 1 (123)` ends with a number that no two servers share.
fn without_versions(text: &str) -> String {
    let known = ["too old resource version: ", "current: "];
    let Some((before, after)) = known.iter().find_map(|mark| {
        let at = text.find(mark)? + mark.len();
        Some((text.get(..at)?, text.get(at..)?))
    }) else {
        return text.to_owned();
    };
    let mut out = before.to_owned();
    let mut in_number = false;
    for letter in after.chars() {
        if letter.is_ascii_digit() {
            if !in_number {
                out.push('N');
            }
            in_number = true;
        } else {
            in_number = false;
            out.push(letter);
        }
    }
    out
}

/// Go prints pointers in some messages: `(*bool)(0xc00ce10569)`.
fn without_addresses(text: &str) -> String {
    let mut parts = text.split("(0x");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("(POINTER");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    out
}

fn label(known: &mut Vec<String>, word: &str, text: &str) -> String {
    let index = known.iter().position(|old| old == text).unwrap_or_else(|| {
        known.push(text.to_owned());
        known.len() - 1
    });
    format!("{word}{}", index + 1)
}

fn join(path: &str, key: &str) -> String {
    let simple =
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '$'));
    match (path.is_empty(), simple) {
        (_, false) => format!("{path}[{key:?}]"),
        (true, true) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
    }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or_default()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 3 && text.chars().all(|c| c.is_ascii_digit())
}

/// Whether it looks like `2026-01-01T00:00:00Z`, with or without a fraction.
fn is_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape.len() >= 20 && shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z')
}

/// Whether a line counts only in steps that ask for its part.
pub fn is_optional(line: &str) -> bool {
    line.split(" = ").next().is_some_and(|path| path.contains(MANAGED))
}

/// Whether a line is about this part of the answer; `*name` is any part of this name.
pub fn is_part(line: &str, part: &str) -> bool {
    if let Some(name) = part.strip_prefix('*') {
        return line.split(" = ").next().is_some_and(|path| last(path) == name);
    }
    line.strip_prefix(part).is_some_and(|rest| rest.starts_with([' ', '.', '[']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_makes_up_becomes_words_that_keep_equality() {
        let mut words = Words::new("cmp-1");
        let object = |version: &str| {
            json!({"metadata": {
                "name": "a-x2x4x", "generateName": "a-", "namespace": "cmp-1", "uid": "u-1", "resourceVersion": version,
                "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "me", "fieldsV1": {"f:a": {}}}],
            }})
        };
        let first = words.lines(object("17"));
        assert_eq!(
            first,
            [
                "metadata.creationTimestamp = \"TIME\"",
                "metadata.generateName = \"a-\"",
                "metadata.managedFields[0] = me - - - - {\"f:a\":{}}",
                "metadata.name = \"a-*****\"",
                "metadata.namespace = \"$ns\"",
                "metadata.resourceVersion = \"v1\"",
                "metadata.uid = \"uid1\"",
            ]
        );
        assert_eq!(words.lines(object("17")), first);
        assert!(words.lines(object("18")).contains(&"metadata.resourceVersion = \"v2\"".to_owned()));
    }

    #[test]
    fn only_the_last_bookmark_counts() {
        let bookmark =
            |version: &str| json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}});
        let lines = Words::new("cmp-1").events(vec![bookmark("1"), json!({"type": "ADDED"}), bookmark("2")]);
        assert_eq!(
            lines,
            [
                "event[0].type = \"ADDED\"",
                "event[1].object.metadata.resourceVersion = \"VERSION\"",
                "event[1].type = \"BOOKMARK\"",
            ]
        );
    }

    #[test]
    fn parts_are_whole_names() {
        assert!(is_part("spec.replicas = 1", "spec"));
        assert!(!is_part("special = 1", "spec"));
        assert!(is_part("a[0].description = \"x\"", "*description"));
    }
}
