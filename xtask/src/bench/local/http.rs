//! One connection with HTTP/1.1 over TLS, by the token of a kubeconfig: as little as a benchmark needs, so that its own
//! work does not hide that of the server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

/// Answers come as tables where only a few cells matter, since those are the shortest.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const WHOLE: &str = "application/json";

pub(crate) struct Connection {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    token: String,
}

impl Connection {
    pub(crate) fn open(kubeconfig: &Path) -> Result<Self> {
        let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(kubeconfig)?)?;
        let text = |path: &str| {
            config
                .pointer(path)
                .and_then(Value::as_str)
                .with_context(|| format!("no {path} in the kubeconfig"))
        };
        let address = text("/clusters/0/cluster/server")?.trim_start_matches("https://");
        let authority = authority(text("/clusters/0/cluster/certificate-authority-data")?)?;
        Self::to(address, authority, text("/users/1/user/token")?)
    }

    /// A connection to an address whose certificate this authority signed.
    pub(crate) fn to(address: &str, authority: CertificateDer<'static>, token: &str) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let stream = tls(socket, authority)?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), token: token.to_owned() })
    }

    /// The same, but an answer that takes longer is an error.
    pub(crate) fn within(self, timeout: Duration) -> Result<Self> {
        self.stream.get_ref().sock.set_read_timeout(Some(timeout))?;
        self.stream.get_ref().sock.set_write_timeout(Some(timeout))?;
        Ok(self)
    }

    /// Sends a request and reads its answer, a table where there can be one; anything but a success is an error.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        self.exchange(method, path, body, TABLE)
    }

    /// The whole of an object or of a list.
    pub(crate) fn get(&mut self, path: &str) -> Result<Value> {
        self.exchange("GET", path, None, WHOLE)
    }

    /// The same, and how many bytes it was.
    pub(crate) fn get_sized(&mut self, path: &str) -> Result<(Value, usize)> {
        let bytes = self.exchange_bytes("GET", path, None, WHOLE)?;
        Ok((serde_json::from_slice(&bytes)?, bytes.len()))
    }

    /// Everything that happens there from now on, and what is there already.
    pub(crate) fn watch(mut self, path: &str) -> Result<Watch> {
        self.ask("GET", &format!("{path}?watch=true&timeoutSeconds=86400"), "", WHOLE)?;
        let (status, _) = self.head()?;
        ensure!(status.starts_with("HTTP/1.1 200"), "watching {path}: {status}");
        Ok(Watch { stream: self.stream, rest: Vec::new() })
    }

    fn ask(&mut self, method: &str, path: &str, body: &str, accept: &str) -> Result<()> {
        let (token, length) = (&self.token, body.len());
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n\
             Content-Type: {content}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let stream = self.stream.get_mut();
        stream.write_all(request.as_bytes())?;
        Ok(stream.flush()?)
    }

    /// The first line of an answer, and the length of its body.
    fn head(&mut self) -> Result<(String, Option<usize>)> {
        let mut status = String::new();
        self.stream.read_line(&mut status)?;
        let mut length = None;
        loop {
            let mut line = String::new();
            ensure!(self.stream.read_line(&mut line)? > 0, "the connection ended inside the headers");
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.trim().parse::<usize>()?);
            }
        }
        Ok((status, length))
    }

    fn exchange(&mut self, method: &str, path: &str, body: Option<&Value>, accept: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&self.exchange_bytes(method, path, body, accept)?)?)
    }

    fn exchange_bytes(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        accept: &str,
    ) -> Result<Vec<u8>> {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.ask(method, path, &body, accept)?;
        let (status, length) = self.head()?;
        let mut bytes = vec![0; length.context("an answer without a length")?];
        self.stream.read_exact(&mut bytes)?;
        if !status.starts_with("HTTP/1.1 20") {
            bail!("{method} {path}: {} {}", status.trim_end(), String::from_utf8_lossy(&bytes));
        }
        Ok(bytes)
    }
}

/// TLS with a server whose certificate this authority signed for `localhost`.
pub(crate) fn tls(
    socket: TcpStream,
    authority: CertificateDer<'static>,
) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(authority)?;
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost")?;
    Ok(StreamOwned::new(ClientConnection::new(Arc::new(tls), name)?, socket))
}

/// An answer that goes on.
pub(crate) struct Watch {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    /// What was read and is not a whole line yet.
    rest: Vec<u8>,
}

impl Watch {
    /// The next event, when there is one.
    pub(crate) fn next(&mut self) -> Result<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(serde_json::from_slice(&line)?);
            }
            let mut size = String::new();
            ensure!(self.stream.read_line(&mut size)? > 0, "the watch broke off");
            let size = usize::from_str_radix(size.trim_end(), 16).context("a chunk without a size")?;
            ensure!(size > 0, "the watch ended");
            // Behind each chunk there is an empty line.
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk)?;
            chunk.truncate(size);
            self.rest.append(&mut chunk);
        }
    }
}

/// A certificate from the base64 of its PEM. The outer base64 is the body of a PEM of its own.
fn authority(data: &str) -> Result<CertificateDer<'static>> {
    let wrapped = format!("-----BEGIN CERTIFICATE-----\n{data}\n-----END CERTIFICATE-----\n");
    let pem = CertificateDer::from_pem_slice(wrapped.as_bytes()).context("cannot decode the authority")?;
    CertificateDer::from_pem_slice(pem.as_ref()).context("cannot read the authority")
}
