//! One connection with HTTP/1.1 over TLS, by the token of a kubeconfig: as little as a benchmark needs, so that its own
//! work does not hide that of the server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

/// Answers come as tables, since those are the shortest.
const ACCEPT: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

pub(in crate::bench) struct Connection {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    token: String,
}

impl Connection {
    pub(in crate::bench) fn open(kubeconfig: &Path) -> Result<Self> {
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
    pub(in crate::bench) fn to(
        address: &str,
        authority: CertificateDer<'static>,
        token: &str,
    ) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(authority)?;
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost")?;
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let stream = StreamOwned::new(ClientConnection::new(Arc::new(tls), name)?, socket);
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), token: token.to_owned() })
    }

    /// Sends a request and reads its answer; anything but a success is an error.
    pub(in crate::bench) fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let token = &self.token;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nAccept: {ACCEPT}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let stream = self.stream.get_mut();
        stream.write_all(request.as_bytes())?;
        stream.flush()?;
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
        let mut bytes = vec![0; length.context("an answer without a length")?];
        self.stream.read_exact(&mut bytes)?;
        if !status.starts_with("HTTP/1.1 20") {
            bail!("{method} {path}: {} {}", status.trim_end(), String::from_utf8_lossy(&bytes));
        }
        Ok(serde_json::from_slice(&bytes)?)
    }
}

/// A certificate from the base64 of its PEM. The outer base64 is the body of a PEM of its own.
fn authority(data: &str) -> Result<CertificateDer<'static>> {
    let wrapped = format!("-----BEGIN CERTIFICATE-----\n{data}\n-----END CERTIFICATE-----\n");
    let pem = CertificateDer::from_pem_slice(wrapped.as_bytes()).context("cannot decode the authority")?;
    CertificateDer::from_pem_slice(pem.as_ref()).context("cannot read the authority")
}
