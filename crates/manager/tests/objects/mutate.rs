//! Spoils JSON in all ways that a text can be spoilt and still be JSON.

use kruise_runtime::random::Random;
use serde_json::{Map, Value, json};

/// Stands for a text that no tree can hold; its number follows.
const RAW: &str = "@@raw";
/// Stands before a key that is there already.
const TWICE: &str = "@@twice";

/// Texts that are JSON, though no tree can hold them.
fn raw(number: usize) -> String {
    match number % 6 {
        0 => "1e999".to_owned(),
        1 => "-1e999".to_owned(),
        2 => "9".repeat(400),
        3 => "\"\\ud800\"".to_owned(),
        4 => "[".repeat(300) + &"]".repeat(300),
        _ => "{\"a\":".repeat(300) + "1" + &"}".repeat(300),
    }
}

const TIMES: &[&str] = &[
    "9999-12-31T23:59:59Z",
    "10000-01-01T00:00:00Z",
    "-0001-01-01T00:00:00Z",
    "0000-00-00T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "1970-01-01T00:00:00.999999999Z",
    "2026-01-01T00:00:60Z",
    "2026-01-01 00:00:00",
    "292277026596-12-04T15:30:08Z",
    "now",
];

const TEXTS: &[&str] = &[
    "",
    " ",
    "x",
    "-1",
    "0",
    "100%",
    "1e1000",
    "-5",
    "100Ei",
    "1n",
    "999999999999999999999999Gi",
    "0x10",
    "true",
    "null",
    "../../etc/passwd",
    "a/b/c",
    "::::",
    "\u{0}\u{1f}",
    "\u{1d54f}\u{202e}\u{fffd}",
    "{\"revision\":5,\"updateTimestamp\":\"9999-12-31T23:59:59Z\"}",
    "[{\"name\":1}]",
    "{",
];

/// A number below this.
fn below(random: &Random, limit: usize) -> usize {
    usize::try_from(random.below(limit.max(1) as u64)).unwrap()
}

/// What takes the place of something.
fn garbage(random: &Random, before: &Value) -> Value {
    match below(random, 22) {
        0 => Value::Null,
        1 => json!(random.below(2) == 1),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(1.5),
        5 => json!(i64::MIN),
        6 => json!(u64::MAX),
        7 => json!(1e300),
        8 => json!([]),
        9 => json!({}),
        10 => json!([before]),
        11 => json!({"a": before}),
        12 => json!(before.to_string()),
        13 => json!("x".repeat(100_000)),
        14 => json!(vec![before.clone(); 50]),
        15 => json!((0..500).map(|index| (format!("k{index}"), json!(index))).collect::<Map<_, _>>()),
        16 => json!(format!("{RAW}{}", below(random, 6))),
        17..=19 => json!(TIMES[below(random, TIMES.len())]),
        _ => json!(TEXTS[below(random, TEXTS.len())]),
    }
}

/// The places of a tree, each as the keys that lead there.
fn places(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    if !path.is_empty() {
        found.push(path.clone());
    }
    let mut enter = |key: String, value: &Value| {
        path.push(key);
        places(value, path, found);
        path.pop();
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| enter(key.clone(), value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| enter(index.to_string(), value));
        }
        _ => {}
    }
}

fn at<'v>(value: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, key| match value {
        Value::Object(members) => members.get_mut(key),
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Members that servers write, and that matter where they are wrong.
const EXTRA: &[(&str, &str)] = &[
    ("metadata", "deletionTimestamp"),
    ("metadata", "creationTimestamp"),
    ("metadata", "managedFields"),
    ("metadata", "finalizers"),
    ("metadata", "ownerReferences"),
    ("metadata", "annotations"),
    ("metadata", "labels"),
    ("metadata", "generation"),
    ("status", "conditions"),
    ("status", "startTime"),
    ("status", "phase"),
    ("status", "observedGeneration"),
    ("spec", "replicas"),
    ("spec", "selector"),
];

/// Spoils an object, and says what was done. Its name and its namespace may be lost, but never become others: they are the
/// key under which a server keeps it.
pub(crate) fn mutate(random: &Random, object: &mut Value) -> Vec<String> {
    let before = object["metadata"].clone();
    let done = spoil(random, object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["name", "namespace"] {
            if metadata.get(key).is_some_and(|value| value.is_string() && *value != before[key]) {
                metadata.remove(key);
            }
            metadata.remove(&format!("{TWICE}{key}"));
        }
    }
    done
}

fn spoil(random: &Random, object: &mut Value) -> Vec<String> {
    let mut done = Vec::new();
    for _ in 0..=below(random, 3) {
        let mut found = Vec::new();
        places(object, &mut Vec::new(), &mut found);
        found.retain(|path| {
            let names = ["apiVersion", "kind"].iter().any(|name| path == &[*name]);
            let identity = ["name", "namespace", "uid"].iter().any(|name| path == &["metadata", *name]);
            !names && (!identity || random.below(20) == 0)
        });
        if random.below(5) == 0 {
            let (part, member) = EXTRA[below(random, EXTRA.len())];
            if let Some(members) = object.get_mut(part).and_then(Value::as_object_mut) {
                let value = garbage(random, members.get(member).unwrap_or(&Value::Null));
                done.push(format!("{part}.{member} = {}", shown(&value)));
                members.insert(member.to_owned(), value);
            }
            continue;
        }
        let Some(path) = found.get(below(random, found.len())).cloned() else { break };
        let (last, parents) = path.split_last().unwrap();
        match below(random, 10) {
            0 => {
                if let Some(Value::Object(members)) = at(object, parents) {
                    members.remove(last);
                    done.push(format!("{} removed", path.join(".")));
                }
            }
            1 => {
                if let Some(Value::Object(members)) = at(object, parents) {
                    let value = garbage(random, &Value::Null);
                    done.push(format!("{} twice: {}", path.join("."), shown(&value)));
                    members.insert(format!("{TWICE}{last}"), value);
                }
            }
            _ => {
                if let Some(value) = at(object, &path) {
                    *value = garbage(random, value);
                    done.push(format!("{} = {}", path.join("."), shown(value)));
                }
            }
        }
    }
    done
}

fn shown(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

/// The metadata of an object as a text, and all that stands behind them.
pub(crate) fn written(object: &Value) -> (String, String) {
    let mut rest = String::new();
    let mut metadata = "{}".to_owned();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "metadata" => metadata = finished(value.to_string()),
            "kind" | "apiVersion" => {}
            _ => rest.push_str(&finished(format!(",{}:{value}", json!(key)))),
        }
    }
    (metadata, rest)
}

fn finished(mut text: String) -> String {
    for number in 0..6 {
        text = text.replace(&format!("\"{RAW}{number}\""), &raw(number));
    }
    text.replace(TWICE, "")
}
