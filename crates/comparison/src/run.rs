//! Running a story.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use kruise_apiserver::protobuf;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::outcome::{Words, is_optional, is_part};
use crate::story::{Behaviour, Step};

/// How long a step may wait for its line.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// The server could not be asked, or a story asks for what is not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer at all.
    #[error("{request}: the server does not answer: {source}")]
    Server {
        /// What was asked.
        request: String,
        /// What went wrong.
        source: kube::Error,
    },
    /// The story cannot be sent.
    #[error("{request}: this is no request: {source}")]
    Request {
        /// What was asked.
        request: String,
        /// What is wrong with it.
        source: http::Error,
    },
    /// The answer broke off or lacks something.
    #[error("{request}: {problem}")]
    Answer {
        /// What was asked.
        request: String,
        /// What is wrong.
        problem: String,
    },
}

struct Answer {
    code: u16,
    headers: HeaderMap,
    text: String,
}

/// A story on its way.
struct Run<'c> {
    client: &'c Client,
    variables: BTreeMap<String, String>,
    words: Words,
}

/// What a server answers to a behaviour: the lines of each step.
pub async fn run(client: &Client, behaviour: &Behaviour) -> Result<Vec<Vec<String>>, Error> {
    let mut run = Run { client, variables: BTreeMap::new(), words: Words::default() };
    let namespace = run.namespace().await?;
    run.words = Words::new(&namespace);
    run.variables.insert("ns".to_owned(), namespace.clone());
    let mut outcomes = Vec::new();
    let mut failed = None;
    for step in &behaviour.steps {
        match run.step(step).await {
            Ok(lines) => outcomes.push(lines),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    run.ask("DELETE", &format!("/api/v1/namespaces/{namespace}"), &[], "").await?;
    failed.map_or(Ok(outcomes), Err)
}

impl Run<'_> {
    /// A new namespace in which pods can be made.
    async fn namespace(&self) -> Result<String, Error> {
        let body = json!({"metadata": {"generateName": "cmp-"}}).to_string();
        let answer = self.ask("POST", "/api/v1/namespaces", &[], &body).await?;
        let made: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        let Some(name) = made.pointer("/metadata/name").and_then(Value::as_str) else {
            return Err(Error::Answer { request: "a namespace".to_owned(), problem: answer.text });
        };
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        let end = Instant::now() + PATIENCE;
        while self.ask("GET", &account, &[], "").await?.code != 200 {
            if Instant::now() > end {
                return Err(Error::Answer { request: account, problem: "does not come".to_owned() });
            }
            sleep(PAUSE).await;
        }
        Ok(name.to_owned())
    }

    async fn step(&mut self, step: &Step) -> Result<Vec<String>, Error> {
        let path = self.fill(&step.path);
        let body = self.fill(&step.body);
        let headers: Vec<(String, String)> =
            step.headers.iter().map(|(name, value)| (name.clone(), self.fill(value))).collect();
        let end = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(&step.method, &path, &headers, &body).await?;
            let words = self.words.clone();
            let lines = self.lines(&path, &answer);
            let seen = step.until.as_ref().is_none_or(|until| {
                lines.iter().any(|line| line == until)
                    || lines.first().is_some_and(|line| line.starts_with(until))
            });
            // Old servers make a token for each service account first, and pods wait for it.
            let is_early = answer.code == 500 && answer.text.contains("\"ServerTimeout\"");
            if (!seen || is_early) && Instant::now() < end {
                // How many versions a slow server goes through on the way is not part of the outcome.
                self.words = words;
                sleep(PAUSE).await;
                continue;
            }
            self.capture(step, &answer)?;
            let counts = |index: usize, line: &String| {
                index == 0
                    || (step.only.is_empty() && !is_optional(line)
                        || step
                            .only
                            .iter()
                            .any(|part| is_part(line, part) && (!is_optional(line) || is_optional(part))))
                        && !step.without.iter().any(|part| is_part(line, part))
            };
            let mut kept: Vec<String> = lines
                .into_iter()
                .enumerate()
                .filter(|(index, line)| counts(*index, line))
                .map(|(_, line)| line)
                .collect();
            for name in &step.answer_headers {
                let value = answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("-");
                let namespace = self.variables.get("ns").map_or("", String::as_str);
                kept.push(format!("{name}: {}", value.replace(namespace, "$ns")));
            }
            if !seen {
                kept.push(format!("waited in vain for {}", step.until.as_deref().unwrap_or_default()));
            }
            return Ok(kept);
        }
    }

    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &str,
    ) -> Result<Answer, Error> {
        let request_line = || format!("{method} {path}");
        let has = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let mut request = Request::builder().method(method).uri(path);
        if !has(ACCEPT.as_str()) {
            request = request.header(ACCEPT, "application/json");
        }
        if !has(CONTENT_TYPE.as_str()) && !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let is_protobuf = |value: &str| value.starts_with(protobuf::CONTENT_TYPE);
        let content_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str()));
        let bytes = match content_type.is_some_and(|(_, value)| is_protobuf(value)) {
            true => {
                in_protobuf(body).map_err(|problem| Error::Answer { request: request_line(), problem })?
            }
            false => body.as_bytes().to_vec(),
        };
        let request = request
            .body(Body::from(bytes))
            .map_err(|source| Error::Request { request: request_line(), source })?;
        let answer = self
            .client
            .send(request)
            .await
            .map_err(|source| Error::Server { request: request_line(), source })?;
        let (head, body) = answer.into_parts();
        let bytes = body
            .collect()
            .await
            .map_err(|source| Error::Server { request: request_line(), source })?
            .to_bytes();
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let text = match content_type.filter(|value| is_protobuf(value)) {
            Some(content_type) => from_protobuf(content_type, &bytes)
                .map_err(|fault| Error::Answer { request: request_line(), problem: fault.to_string() })?,
            None => String::from_utf8_lossy(&bytes).into_owned(),
        };
        Ok(Answer { code: head.status.as_u16(), headers: head.headers, text })
    }

    fn lines(&mut self, path: &str, answer: &Answer) -> Vec<String> {
        let documents: Vec<Value> =
            serde_json::Deserializer::from_str(&answer.text).into_iter().map_while(Result::ok).collect();
        let is_watch = answer.code == 200 && (path.contains("watch=1") || path.contains("watch=true"));
        let reason = documents.first().and_then(|body| body.get("reason")).and_then(Value::as_str);
        let first = match reason.filter(|_| answer.code >= 300) {
            Some(reason) => format!("{} {reason}", answer.code),
            None => answer.code.to_string(),
        };
        let mut lines = vec![first];
        lines.extend(match <[Value; 1]>::try_from(documents) {
            _ if answer.text.is_empty() => Vec::new(),
            Ok([event]) if is_watch => self.words.events(vec![event]),
            Ok([body @ Value::Object(_)]) => self.words.lines(body),
            Err(events) if is_watch => self.words.events(events),
            _ => match serde_saphyr::from_str::<Value>(&answer.text) {
                Ok(body @ Value::Object(_)) => self.words.lines(body),
                _ => answer.text.lines().map(|line| format!("text: {line}")).collect(),
            },
        });
        lines
    }

    fn capture(&mut self, step: &Step, answer: &Answer) -> Result<(), Error> {
        if step.captures.is_empty() {
            return Ok(());
        }
        let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        for (name, pointer) in &step.captures {
            let text = match body.pointer(pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => {
                    let problem = format!("the answer has no {pointer}: {} {}", answer.code, answer.text);
                    return Err(Error::Answer { request: step.path.clone(), problem });
                }
            };
            self.variables.insert(name.clone(), text);
        }
        Ok(())
    }

    /// Puts variables in. Longer names come first, for `$rv2` is not `$rv` and a two.
    fn fill(&self, text: &str) -> String {
        let mut variables: Vec<_> = self.variables.iter().collect();
        variables.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        variables
            .into_iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }
}

/// What a story writes as JSON, or byte by byte behind `hex:`.
fn in_protobuf(body: &str) -> Result<Vec<u8>, String> {
    if let Some(digits) = body.trim().strip_prefix("hex:") {
        let digits: Vec<char> = digits.chars().filter(|letter| !letter.is_whitespace()).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
        return digits.chunks(2).map(byte).collect::<Result<_, _>>().map_err(|error| error.to_string());
    }
    let object: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    protobuf::encode(&object).map_err(|error| error.to_string())
}

/// The same answer as JSON.
fn from_protobuf(content_type: &str, bytes: &[u8]) -> Result<String, protobuf::Fault> {
    if content_type == protobuf::WATCH_CONTENT_TYPE {
        let events = protobuf::watch_events(bytes)?;
        return Ok(events.iter().map(|event| format!("{event}\n")).collect());
    }
    protobuf::decode(bytes, "", "").map(|object| object.to_string())
}
