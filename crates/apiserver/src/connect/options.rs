//! What a client wants of a pod, as the object that policies and webhooks see: `PodExecOptions` and its like.

use serde_json::{Map, Value};

use super::{Run, Wish};
use crate::field::quote;
use crate::rest::Query;
use crate::status::Status;

const FLAGS: [&str; 4] = ["stdin", "stdout", "stderr", "tty"];

/// The options in a query. What is not set is left out, except the command of `exec`.
pub(super) fn of(word: &str, query: &Query) -> Result<Value, Status> {
    let mut options = Map::new();
    let mut set = |key: &str, value: Value| drop(options.insert(key.to_owned(), value));
    set("apiVersion", "v1".into());
    set("kind", kind(word).into());
    if word == "portforward" {
        let ports = query.all("ports").flat_map(|ports| ports.split(',')).map(port);
        let ports = ports.collect::<Result<Vec<Value>, Status>>()?;
        if !ports.is_empty() {
            set("ports", ports.into());
        }
        return Ok(options.into());
    }
    for flag in FLAGS.into_iter().filter(|flag| query.flag(flag)) {
        set(flag, true.into());
    }
    let container = query.text("container");
    if !container.is_empty() {
        set("container", container.into());
    }
    if word == "exec" {
        set("command", query.all("command").map(Value::from).collect());
    }
    Ok(options.into())
}

/// What is wanted after all, as webhooks may have changed the options.
pub(super) fn wish(word: &str, options: &Value) -> Wish {
    let list = |key: &str| options.get(key).and_then(Value::as_array).into_iter().flatten();
    if word == "portforward" {
        let port = |port: &Value| u16::try_from(port.as_u64()?).ok();
        return Wish::Forward(list("ports").filter_map(port).collect());
    }
    let flag = |key: &str| options.get(key).and_then(Value::as_bool).unwrap_or_default();
    let run = Run {
        container: options.get("container").and_then(Value::as_str).unwrap_or_default().to_owned(),
        command: list("command").filter_map(|part| part.as_str().map(str::to_owned)).collect(),
        stdin: flag("stdin"),
        stdout: flag("stdout"),
        stderr: flag("stderr"),
        tty: flag("tty"),
    };
    if word == "attach" { Wish::Attach(run) } else { Wish::Exec(run) }
}

fn kind(word: &str) -> &'static str {
    match word {
        "exec" => "PodExecOptions",
        "attach" => "PodAttachOptions",
        _ => "PodPortForwardOptions",
    }
}

fn port(text: &str) -> Result<Value, Status> {
    let port = text.parse::<u16>();
    port.map(Value::from)
        .map_err(|_| Status::bad_request(format!("unable to parse {} as a port", quote(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, query: &str, expected: &str) {
        let found = of(word, &Query::parse(Some(query)));
        assert_eq!(found.map_or_else(|status| status.message, |options| options.to_string()), expected);
    }

    #[test]
    fn a_query_becomes_the_object_that_hooks_know() {
        check(
            "exec",
            "command=ls&command=-l&stdin=0&stdout=1&tty=true",
            r#"{"apiVersion":"v1","command":["ls","-l"],"kind":"PodExecOptions","stdout":true,"tty":true}"#,
        );
        check(
            "attach",
            "container=c&stderr=1&command=x",
            r#"{"apiVersion":"v1","container":"c","kind":"PodAttachOptions","stderr":true}"#,
        );
        check(
            "portforward",
            "ports=80,443&ports=8080",
            r#"{"apiVersion":"v1","kind":"PodPortForwardOptions","ports":[80,443,8080]}"#,
        );
        check("portforward", "", r#"{"apiVersion":"v1","kind":"PodPortForwardOptions"}"#);
        check("portforward", "ports=x", "unable to parse \"x\" as a port");
    }

    #[test]
    fn what_hooks_leave_is_what_is_wanted() {
        let query = Query::parse(Some("command=sh&stdin=1&tty=1"));
        let mut options = of("exec", &query).unwrap();
        let Some(command) = options.get_mut("command") else { panic!("there is a command") };
        *command = serde_json::json!(["id"]);
        let run = Run { command: vec!["id".to_owned()], stdin: true, tty: true, ..Run::default() };
        assert_eq!(wish("exec", &options), Wish::Exec(run));
        let ports = of("portforward", &Query::parse(Some("ports=1,2"))).unwrap();
        assert_eq!(wish("portforward", &ports), Wish::Forward(vec![1, 2]));
    }
}
