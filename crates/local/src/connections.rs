//! Connections that leave HTTP: commands, terminals and ports of pods.
//!
//! The API server decides whether a connection may be and who is at its other end; here is how it looks on the wire.
//!
//! | asked for | commands and terminals | ports |
//! | --- | --- | --- |
//! | WebSocket | `v5.channel.k8s.io`, `v4.channel.k8s.io` ([`channels`]) | `SPDY/3.1+portforward.k8s.io` ([`tunnel`]), `v4.channel.k8s.io` ([`channels`]) |
//! | SPDY/3.1 | `v4.channel.k8s.io` ([`streams`]) | `portforward.k8s.io` ([`streams`]) |

mod channels;
mod spdy;
mod streams;
mod tunnel;
mod websocket;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Fuse};
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use kruise_apiserver::ApiServer;
use kruise_apiserver::body::ApiBody;
use kruise_apiserver::connect::{Connection, Output, Run, Wish};
use kruise_apiserver::status::Status;
use tokio::sync::mpsc;

/// How many pieces wait on the way.
const QUEUE: usize = 16;

const PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");
const ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Messages that begin with the number of a channel.
    Channels(Channels),
    /// SPDY inside a WebSocket.
    Tunnel,
    /// SPDY.
    Streams,
}

/// The versions of the protocol of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channels {
    V4,
    /// With a way to say that a channel has ended.
    V5,
}

/// Why nothing is agreed on, in words for a client that expected no object.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    code: StatusCode,
    text: String,
}

/// Whether a client wants to leave HTTP.
pub(crate) fn wants_upgrade(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(CONNECTION).iter().filter_map(|line| line.to_str().ok());
    let mut words = lines.flat_map(|line| line.split(','));
    words.any(|word| word.trim().eq_ignore_ascii_case("upgrade")) && headers.contains_key(UPGRADE)
}

/// Answers a request for a connection. What is then to be carried, if anything, is carried by the future, once HTTP has
/// ended.
pub(crate) async fn open<B>(
    server: &ApiServer,
    mut request: Request<B>,
) -> (Response<ApiBody>, Option<BoxFuture<'static, ()>>) {
    let upgrade = hyper::upgrade::on(&mut request);
    let (mut head, _) = request.into_parts();
    let connection = match server.connect(&mut head).await {
        Ok(connection) => connection,
        Err(status) => return (refused(&status), None),
    };
    let (code, headers, text, carry) = match agree(&head.headers, &connection.wish) {
        Ok((way, headers)) => {
            let carry: BoxFuture<'static, ()> = Box::pin(carry(upgrade, way, connection));
            (StatusCode::SWITCHING_PROTOCOLS, headers, String::new(), Some(carry))
        }
        Err(refusal) => (refusal.code, HeaderMap::new(), refusal.text, None),
    };
    let mut response = Response::new(ApiBody::full(text));
    *response.status_mut() = code;
    *response.headers_mut() = headers;
    (response, carry)
}

/// A refusal by the API server.
pub(crate) fn refused(status: &Status) -> Response<ApiBody> {
    let mut response = Response::new(ApiBody::full(status.to_json()));
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

/// What to speak, and the headers that say so.
fn agree(headers: &HeaderMap, wish: &Wish) -> Result<(Way, HeaderMap), Refusal> {
    let wanted = headers.get(UPGRADE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut answer = HeaderMap::new();
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if wanted.eq_ignore_ascii_case("websocket") {
        let key = headers.get(KEY).and_then(|key| key.to_str().ok());
        let accept = key.and_then(|key| HeaderValue::from_str(&websocket::accept(key)).ok());
        let accept = accept.ok_or_else(|| Refusal {
            code: StatusCode::BAD_REQUEST,
            text: "a WebSocket needs a key".to_owned(),
        })?;
        let (way, protocol) = agree_on(&websocket::offered(headers), wish, by_websocket)?;
        answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
        answer.insert(ACCEPT, accept);
        answer.insert(PROTOCOL, protocol);
        return Ok((way, answer));
    }
    if wanted.eq_ignore_ascii_case("SPDY/3.1") {
        let lines = headers.get_all(STREAM_PROTOCOL).iter().filter_map(|line| line.to_str().ok());
        let offered: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
        let (way, protocol) = agree_on(&offered, wish, by_spdy)?;
        answer.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
        answer.insert(STREAM_PROTOCOL, protocol);
        return Ok((way, answer));
    }
    Err(Refusal {
        code: StatusCode::BAD_REQUEST,
        text: "unable to upgrade: expected 'SPDY/3.1' or 'websocket'".to_owned(),
    })
}

fn agree_on(
    offered: &[&str],
    wish: &Wish,
    ways: impl Fn(&str, &Wish) -> Option<Way>,
) -> Result<(Way, HeaderValue), Refusal> {
    let found = offered.iter().find_map(|name| Some((ways(name, wish)?, HeaderValue::from_str(name).ok()?)));
    found.ok_or_else(|| Refusal {
        code: StatusCode::FORBIDDEN,
        text: format!("unable to upgrade: none of the protocols is known here: {}", offered.join(", ")),
    })
}

fn by_websocket(protocol: &str, wish: &Wish) -> Option<Way> {
    match (protocol, wish) {
        ("v5.channel.k8s.io", Wish::Exec(_) | Wish::Attach(_)) => Some(Way::Channels(Channels::V5)),
        ("v4.channel.k8s.io", _) => Some(Way::Channels(Channels::V4)),
        ("SPDY/3.1+portforward.k8s.io", Wish::Forward(_)) => Some(Way::Tunnel),
        _ => None,
    }
}

fn by_spdy(protocol: &str, wish: &Wish) -> Option<Way> {
    match (protocol, wish) {
        ("v4.channel.k8s.io", Wish::Exec(_) | Wish::Attach(_)) => Some(Way::Streams),
        ("portforward.k8s.io", Wish::Forward(_)) => Some(Way::Streams),
        _ => None,
    }
}

async fn carry(upgrade: OnUpgrade, way: Way, connection: Connection) {
    let stream = match upgrade.await {
        Ok(stream) => TokioIo::new(stream),
        Err(error) => return tracing::debug!(%error, "a connection did not leave HTTP"),
    };
    match way {
        Way::Channels(version) => channels::carry(stream, version, connection).await,
        Way::Tunnel => tunnel::carry(stream, connection).await,
        Way::Streams => streams::carry(stream, connection).await,
    }
}

/// Something that runs: what it reads goes in, what it says comes out, and how it ended is told at the end.
struct Process {
    run: Run,
    /// Gone when nothing more can be read.
    input: Option<mpsc::Sender<Bytes>>,
    output: mpsc::Receiver<Output>,
    running: BoxFuture<'static, Result<i32, String>>,
}

/// What a connection is for.
enum Job {
    Process(Process),
    Ports(Vec<u16>, Connection),
}

/// Begins what is wished.
fn begin(connection: Connection) -> Job {
    let (input, reads) = mpsc::channel(QUEUE);
    let (says, output) = mpsc::channel(QUEUE);
    let (run, running) = match &connection.wish {
        Wish::Exec(run) => {
            (run.clone(), connection.end.exec(connection.pod.clone(), run.clone(), reads, says))
        }
        Wish::Attach(run) => {
            (run.clone(), connection.end.attach(connection.pod.clone(), run.clone(), reads, says))
        }
        Wish::Forward(ports) => return Job::Ports(ports.clone(), connection),
    };
    let input = Some(input).filter(|_| run.stdin);
    Job::Process(Process { run, input, output, running })
}

/// Something on its way to somebody who may be busy.
type Handing = Fuse<BoxFuture<'static, ()>>;

/// Hands something over, while others go on. Nobody waits for somebody who is gone.
fn hand(to: Option<&mpsc::Sender<Bytes>>, bytes: Bytes) -> Handing {
    let Some(to) = to.cloned() else { return Fuse::terminated() };
    let sending: BoxFuture<'static, ()> = Box::pin(async move { drop(to.send(bytes).await) });
    sending.fuse()
}

/// What a server says of problems that it did not expect.
const INTERNAL: &str = "Internal error occurred: ";

/// How a command ended, as clients read it. What the server itself has to tell is introduced by `by_server`.
fn verdict(outcome: &Result<i32, String>, by_server: &str) -> serde_json::Value {
    use serde_json::json;
    match outcome {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(why) => {
            let message = format!("{by_server}{why}");
            json!({
                "metadata": {}, "status": "Failure", "reason": "InternalError", "message": message, "code": 500,
                "details": {"causes": [{"message": why}]},
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    fn exec() -> Wish {
        Wish::Exec(Run::default())
    }

    /// What is agreed on by a WebSocket that offers some protocols.
    fn socket(wish: &Wish, protocols: &str) -> Result<(Way, String), u16> {
        let lines = headers(&[
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", protocols),
        ]);
        assert!(wants_upgrade(&lines));
        let (way, answer) = agree(&lines, wish).map_err(|refusal| refusal.code.as_u16())?;
        assert_eq!(answer[ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        Ok((way, answer[PROTOCOL].to_str().unwrap().to_owned()))
    }

    #[test]
    fn the_first_known_protocol_of_the_client_is_spoken() {
        let agreed = |way: Way, protocol: &str| Ok((way, protocol.to_owned()));
        let (v4, v5) = (Way::Channels(Channels::V4), Way::Channels(Channels::V5));
        assert_eq!(socket(&exec(), "v5.channel.k8s.io"), agreed(v5, "v5.channel.k8s.io"));
        assert_eq!(
            socket(&exec(), "x, v4.channel.k8s.io,v5.channel.k8s.io"),
            agreed(v4, "v4.channel.k8s.io")
        );
        assert_eq!(socket(&exec(), "SPDY/3.1+portforward.k8s.io"), Err(403));
        let ports = Wish::Forward(vec![]);
        let tunnel = "SPDY/3.1+portforward.k8s.io";
        assert_eq!(socket(&ports, tunnel), agreed(Way::Tunnel, tunnel));
        assert_eq!(socket(&ports, "v5.channel.k8s.io"), Err(403));
    }

    #[test]
    fn spdy_is_spoken_with_those_who_ask_for_it() {
        let lines = headers(&[
            ("connection", "Upgrade"),
            ("upgrade", "SPDY/3.1"),
            ("x-stream-protocol-version", "v5.channel.k8s.io"),
            ("x-stream-protocol-version", "v4.channel.k8s.io"),
        ]);
        let (way, answer) = agree(&lines, &exec()).unwrap();
        assert_eq!(way, Way::Streams);
        assert_eq!(answer[STREAM_PROTOCOL], "v4.channel.k8s.io");
        assert_eq!(agree(&lines, &Wish::Forward(vec![])).unwrap_err().code, 403);
        let other = headers(&[("connection", "Upgrade"), ("upgrade", "h2c")]);
        assert_eq!(agree(&other, &exec()).unwrap_err().code, 400);
        let keyless = headers(&[("connection", "Upgrade"), ("upgrade", "websocket")]);
        assert_eq!(agree(&keyless, &exec()).unwrap_err().code, 400);
    }

    #[test]
    fn only_who_says_so_twice_wants_to_leave() {
        assert!(!wants_upgrade(&headers(&[("upgrade", "websocket")])));
        assert!(!wants_upgrade(&headers(&[("connection", "upgrade")])));
    }

    #[test]
    fn ends_are_told_as_clients_read_them() {
        assert_eq!(verdict(&Ok(0), INTERNAL)["status"], "Success");
        let failed = verdict(&Ok(3), INTERNAL);
        assert_eq!(failed["reason"], "NonZeroExitCode");
        assert_eq!(failed["details"]["causes"][0]["message"], "3");
        assert_eq!(verdict(&Err("gone".to_owned()), INTERNAL)["message"], "Internal error occurred: gone");
    }
}
