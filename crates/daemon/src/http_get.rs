//! One HTTP request to a pod, as hooks and probes send it: no proxy, no keep-alive, no look at certificates.
//!
//! Whoever calls bounds the time. Errors are in the words that users know from the kubelet.

mod trust;

use std::{io, net::IpAddr};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderName, HeaderValue, Request, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
};

/// How much of a page is read.
const MOST_BODY: usize = 10 * 1024;
/// How many times a page may send us on.
const MOST_REDIRECTS: usize = 10;
/// What we say that we are.
const USER_AGENT: &str = "kube-probe";

/// What to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether through TLS.
    pub https: bool,
    /// The address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// Headers; `Host` among them names another virtual host.
    pub headers: Vec<(String, String)>,
}

impl Target {
    fn url(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.rooted_path())
    }

    /// Address and port as URLs write them.
    pub fn authority(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]:{}", self.port),
            _ => format!("{}:{}", self.host, self.port),
        }
    }

    fn rooted_path(&self) -> String {
        if self.path.starts_with('/') { self.path.clone() } else { format!("/{}", self.path) }
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The status code.
    pub status: u16,
    /// The first part of the body.
    pub body: Vec<u8>,
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
#[error("Get {url:?}: {problem}")]
pub struct Error {
    url: String,
    problem: String,
    /// Whether somebody is there who does not speak TLS.
    pub is_plain: bool,
}

/// A connection to a pod.
pub trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}

/// How pods are reached.
pub trait Network: Send + Sync {
    /// Opens a connection to an address.
    fn open<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Connection>>>;
}

/// Through the sockets of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Sockets;

impl Network for Sockets {
    fn open<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Connection>>> {
        async move {
            let stream = TcpStream::connect((host, port)).await?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        }
        .boxed()
    }
}

/// Opens a connection.
pub async fn connect(target: &Target, network: &dyn Network) -> Result<Box<dyn Connection>, String> {
    let authority = target.authority();
    network.open(&target.host, target.port).await.map_err(|error| {
        let problem = match error.kind() {
            io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
            io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
            io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
            io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
            _ => error.to_string(),
        };
        format!("dial tcp {authority}: {problem}")
    })
}

/// Asks, and follows pages that send us on within the same host. One that sends us elsewhere is the answer.
pub async fn fetch(target: &Target, network: &dyn Network) -> Result<Page, Error> {
    let mut target = target.clone();
    for _ in 0..=MOST_REDIRECTS {
        let failed = |(problem, is_plain)| Error { url: target.url(), problem, is_plain };
        let (page, location) = once(&target, network).await.map_err(failed)?;
        let sends_on = matches!(page.status, 301 | 302 | 303 | 307 | 308);
        let next = location.filter(|_| sends_on).and_then(|location| follow(&target, &location));
        match next {
            Some(next) => target = next,
            None => return Ok(page),
        }
    }
    let problem = format!("stopped after {MOST_REDIRECTS} redirects");
    Err(Error { url: target.url(), problem, is_plain: false })
}

/// Where a page sends us, if that is the same host. Another port, and TLS, are still the pod.
fn follow(target: &Target, location: &str) -> Option<Target> {
    let location = location.split('#').next().filter(|place| !place.is_empty())?;
    let mut next = target.clone();
    let scheme = if target.https { "https" } else { "http" };
    let whole = match location.strip_prefix("//") {
        Some(rest) => format!("{scheme}://{rest}"),
        None => location.to_owned(),
    };
    let names_scheme = whole.split(['/', '?']).next().is_some_and(|start| start.contains(':'));
    if !names_scheme {
        next.path = joined(&target.rooted_path(), &whole);
        return Some(next);
    }
    let uri: Uri = whole.parse().ok()?;
    next.https = match uri.scheme_str()? {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    let authority = uri.authority()?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    if !host.eq_ignore_ascii_case(&target.host) {
        return None;
    }
    next.port = authority.port_u16().unwrap_or(if next.https { 443 } else { 80 });
    next.path = uri.path_and_query().map_or_else(|| "/".to_owned(), |path| path.as_str().to_owned());
    // The page names the host itself, so the virtual host that was asked for is left.
    next.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("host"));
    Some(next)
}

/// Where a place is that is named as seen from a page of the same server.
fn joined(here: &str, place: &str) -> String {
    let path = here.split('?').next().unwrap_or_default();
    let (place, query) = place.find('?').map_or((place, ""), |at| place.split_at(at));
    if place.is_empty() {
        return format!("{path}{query}");
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let whole = if place.starts_with('/') { place.to_owned() } else { format!("{folder}/{place}") };
    let mut parts = Vec::new();
    for part in whole.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}{query}", parts.join("/"))
}

type Failure = (String, bool);

async fn once(target: &Target, network: &dyn Network) -> Result<(Page, Option<String>), Failure> {
    let request = request(target).map_err(|problem| (problem, false))?;
    let stream = connect(target, network).await.map_err(|problem| (problem, false))?;
    if !target.https {
        return exchange(stream, request).await.map_err(|problem| (problem, false));
    }
    match trust::wrap(stream, &target.host).await {
        Ok(stream) => exchange(stream, request).await.map_err(|problem| (problem, false)),
        Err(error) => Err((error.to_string(), trust::is_plain(&error))),
    }
}

fn request(target: &Target) -> Result<Request<Empty<Bytes>>, String> {
    let path: Uri = target.rooted_path().parse().map_err(|_| format!("invalid path {:?}", target.path))?;
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = path;
    let headers = request.headers_mut();
    for (name, value) in &target.headers {
        let name: HeaderName = name.parse().map_err(|_| format!("invalid header name {name:?}"))?;
        let value = HeaderValue::from_str(value).map_err(|_| format!("invalid value of header {name}"))?;
        headers.append(name, value);
    }
    let mut unless_given = |name: HeaderName, value: &str| {
        if let (false, Ok(value)) = (headers.contains_key(&name), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    };
    unless_given(header::HOST, &target.authority());
    unless_given(header::USER_AGENT, USER_AGENT);
    unless_given(header::ACCEPT, "*/*");
    unless_given(header::CONNECTION, "close");
    Ok(request)
}

async fn exchange<S>(stream: S, request: Request<Empty<Bytes>>) -> Result<(Page, Option<String>), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
    // Dropped with this call: nobody else needs the connection.
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _ = connection.await;
    });
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let status = response.status().as_u16();
    let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
    let location = location.map(ToOwned::to_owned);
    let mut incoming = response.into_body();
    let mut body = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        if let Some(data) = frame.data_ref() {
            let room = MOST_BODY.saturating_sub(body.len());
            body.extend(data.iter().take(room));
        }
        if body.len() >= MOST_BODY {
            break;
        }
    }
    Ok((Page { status, body }, location))
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    async fn fetch(target: &Target) -> Result<Page, Error> {
        super::fetch(target, &Sockets).await
    }

    /// Answers each connection with the next text and tells what was asked.
    async fn server(answers: Vec<String>) -> (u16, JoinSet<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut text = [0; 4096];
                let read = stream.read(&mut text).await.unwrap();
                asked.push(String::from_utf8_lossy(&text[..read]).into_owned());
                let answer = answer.replace("PORT", &port.to_string());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            asked
        });
        (port, tasks)
    }

    fn target(port: u16, path: &str) -> Target {
        Target {
            https: false,
            host: "127.0.0.1".to_owned(),
            port,
            path: path.to_owned(),
            headers: Vec::new(),
        }
    }

    fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn a_page_is_asked_for_with_the_headers_of_the_kubelet() {
        let (port, mut tasks) = server(vec![ok("hello\n")]).await;
        let mut target = target(port, "x?a=b");
        target.headers.push(("Host".to_owned(), "shop".to_owned()));
        let page = fetch(&target).await.unwrap();
        assert_eq!((page.status, page.body), (200, b"hello\n".to_vec()));
        let asked = tasks.join_next().await.unwrap().unwrap().remove(0).to_lowercase();
        assert!(asked.starts_with("get /x?a=b http/1.1\r\n"), "{asked}");
        for line in
            ["host: shop\r\n", "user-agent: kube-probe\r\n", "accept: */*\r\n", "connection: close\r\n"]
        {
            assert!(asked.contains(line), "{line} in {asked}");
        }
    }

    #[tokio::test]
    async fn we_are_sent_on_within_a_host_and_not_to_another() {
        let redirect =
            |to: &str| format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
        let (port, _tasks) = server(vec![
            redirect("/b"),
            redirect("http://127.0.0.1:PORT/c"),
            ok("c"),
            redirect("http://192.0.2.1/"),
        ])
        .await;
        assert_eq!(fetch(&target(port, "/a")).await.unwrap().body, b"c");
        assert_eq!(fetch(&target(port, "/a")).await.unwrap().status, 302);
    }

    /// DAEMON-9: only another host is an answer by itself; the pod at another port, or behind TLS, is still the pod.
    #[tokio::test]
    async fn the_same_host_is_asked_at_another_port() {
        let (other, _others) = server(vec!["HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned()]).await;
        let to = format!("http://127.0.0.1:{other}/healthz");
        let answer = format!("HTTP/1.1 301 Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
        let (port, _tasks) = server(vec![answer]).await;
        assert_eq!(fetch(&target(port, "/")).await.unwrap().status, 500);
    }

    #[test]
    fn places_are_followed_within_the_host_alone() {
        let mut from = target(8080, "/a/b?x=1");
        from.headers.push(("Host".to_owned(), "shop".to_owned()));
        let to = |location: &str| follow(&from, location).map(|next| (next.url(), next.headers.len()));
        let at = |url: &str, headers| Some((url.to_owned(), headers));
        for (location, url) in [
            ("login", "/a/login"),
            ("/login?y=2#top", "/login?y=2"),
            ("?y=2", "/a/b?y=2"),
            ("../c/./d", "/c/d"),
            ("../../../e", "/e"),
        ] {
            assert_eq!(to(location), at(&format!("http://127.0.0.1:8080{url}"), 1), "{location}");
        }
        assert_eq!(to("https://127.0.0.1:8443/x"), at("https://127.0.0.1:8443/x", 0));
        assert_eq!(to("HTTPS://127.0.0.1"), at("https://127.0.0.1:443/", 0));
        assert_eq!(to("//127.0.0.1/x"), at("http://127.0.0.1:80/x", 0));
        for elsewhere in
            ["//192.0.2.1/x", "http://192.0.2.1:8080/", "ftp://127.0.0.1/", "mailto:me", "#top", ""]
        {
            assert_eq!(to(elsewhere), None, "{elsewhere}");
        }
    }

    #[tokio::test]
    async fn a_closed_port_is_told_as_the_kubelet_does() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let error = fetch(&target(port, "/")).await.unwrap_err().to_string();
        let expected = format!(
            "Get \"http://127.0.0.1:{port}/\": dial tcp 127.0.0.1:{port}: connect: connection refused"
        );
        assert_eq!(error, expected);
    }

    #[tokio::test]
    async fn a_long_page_is_cut() {
        let (port, _tasks) = server(vec![ok(&"x".repeat(20_000))]).await;
        assert_eq!(fetch(&target(port, "/")).await.unwrap().body.len(), MOST_BODY);
    }

    #[tokio::test]
    async fn tls_is_spoken_without_a_look_at_the_certificate() {
        let certified = rcgen::generate_simple_self_signed(vec!["nobody".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let mut text = [0; 1024];
            let _ = stream.read(&mut text).await.unwrap();
            stream.write_all(ok("safe").as_bytes()).await.unwrap();
        });
        let secure = Target { https: true, ..target(port, "/") };
        assert_eq!(fetch(&secure).await.unwrap().body, b"safe");
    }

    #[tokio::test]
    async fn a_server_without_tls_is_recognised() {
        let (port, _tasks) = server(vec!["HTTP/1.1 400 Bad Request\r\n\r\n".to_owned()]).await;
        let error = fetch(&Target { https: true, ..target(port, "/") }).await.unwrap_err();
        assert!(error.is_plain, "{error}");
    }

    #[test]
    fn addresses_of_both_families_are_written_as_urls_do() {
        let mut target = target(80, "/");
        assert_eq!(target.authority(), "127.0.0.1:80");
        target.host = "fd00::7".to_owned();
        assert_eq!(target.url(), "http://[fd00::7]:80/");
    }
}
