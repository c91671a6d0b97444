use std::sync::{Arc, Mutex};

use super::*;

fn fixed() -> Clock {
    Clock::fixed("2026-11-16T00:50:01.5Z".parse().unwrap())
}

/// What `log` writes in a format.
fn written(format: Format, log: impl FnOnce()) -> String {
    let lines = Arc::new(Mutex::new(String::new()));
    let into = lines.clone();
    let write = move |line: &str| into.lock().unwrap().push_str(line);
    let subscriber = tracing_subscriber::registry().with(Lines { format, clock: fixed(), write });
    tracing::subscriber::with_default(subscriber, log);
    lines.lock().unwrap().clone()
}

fn something_happens() {
    let span = tracing::info_span!("reconcile", kind = "CloneSet", namespace = "default", name = "web");
    span.in_scope(|| tracing::info!(created = 2, reason = "too \"few\"", "scaled up"));
}

#[test]
fn text_lines_have_the_header_of_kubernetes_programs() {
    let line = written(Format::Text, something_happens);
    assert!(line.starts_with("I1116 00:50:01.500000 "), "{line}");
    assert!(
        line.ends_with(
            "] \"scaled up\" kind=\"CloneSet\" namespace=\"default\" name=\"web\" created=2 reason=\"too \\\"few\\\"\"\n"
        ),
        "{line}"
    );
    assert!(line.contains(" tests.rs:"), "{line}");
}

#[test]
fn json_lines_carry_the_object_as_a_reference() {
    let line = written(Format::Json, something_happens);
    let object: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(object["ts"], json!(1_794_790_201_500.0));
    assert_eq!(object["msg"], "scaled up");
    assert_eq!(object["v"], 0);
    assert_eq!(object["object"], json!({"name": "web", "namespace": "default"}));
    assert_eq!(object["created"], 2);
}

#[test]
fn a_field_cannot_replace_what_the_line_itself_says() {
    let line = written(Format::Json, || tracing::warn!(msg = "forged", ts = 1, "true message"));
    let object: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(object["msg"], "true message");
    assert_eq!(object["ts"], json!(1_794_790_201_500.0));
}
