//! Two local registries with the test images: one for everybody, one that asks for a user and a password.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::images::{self, Image, MANIFEST_TYPE};
use super::layout::{Layout, PRIVATE_REGISTRY_PORT, REGISTRY_PORT, text};
use super::packages::Packages;
use super::process::{self, Part, Started};
use super::progress::{Progress, wait_for};
use super::tool;

/// Who may pull from the private registry. Not a secret: it guards test images on the loopback address.
pub(crate) const USER: &str = "kruise";
pub(crate) const PASSWORD: &str = "kruise-secret";
/// User and password as the registry wants to read them, and as HTTP wants to send them.
const HTPASSWD: &str = "kruise:$2b$04$3byGb2IiTkHKVDmMSzFvK.yWA7fvN386zUVh1jhCPvFd4f9uLrehi\n";
const BASIC_CREDENTIALS: &str = "a3J1aXNlOmtydWlzZS1zZWNyZXQ=";

/// The names of the parts.
pub(crate) const PARTS: [&str; 2] = ["registry", "registry-private"];

/// One of the two.
#[derive(Debug, Clone, Copy)]
struct Registry {
    name: &'static str,
    port: u16,
    private: bool,
}

const REGISTRIES: [Registry; 2] = [
    Registry { name: "registry", port: REGISTRY_PORT, private: false },
    Registry { name: "registry-private", port: PRIVATE_REGISTRY_PORT, private: true },
];

/// Starts the registries that do not run.
pub(crate) fn start(layout: &Layout, progress: &Progress, packages: &Packages) -> Result<Started> {
    let mut started = Started::Before;
    for registry in REGISTRIES {
        if process::start(layout, &part(layout, packages, registry)?)? == Started::Now {
            started = Started::Now;
        }
    }
    if started == Started::Now {
        progress.say("starting the registries");
    }
    Ok(started)
}

/// Pushes the test images, once per cluster.
pub(crate) fn fill(layout: &Layout, progress: &Progress, packages: &Packages) -> Result<()> {
    let done = layout.state.join("images-pushed");
    if done.exists() {
        return Ok(());
    }
    let images = images::assemble(packages)?;
    let names: Vec<_> = images.iter().map(|image| format!("{}:{}", image.name, image.tag)).collect();
    progress.say(format!("pushing test images: {}", names.join(", ")));
    for registry in REGISTRIES {
        let part = part(layout, packages, registry)?;
        wait_for(&format!("the start of {}", registry.name), Duration::from_secs(30), || {
            process::check_alive(layout, &part)?;
            Ok(registry.call("GET", "/v2/", None, &[]).is_ok().then_some(()))
        })?;
        for image in &images {
            registry.push(image).with_context(|| {
                format!("failed to push {}:{} to the {}", image.name, image.tag, registry.name)
            })?;
        }
    }
    tool::write_atomically(&done, "")
}

fn part(layout: &Layout, packages: &Packages, registry: Registry) -> Result<Part> {
    let folder = layout.state.join(registry.name);
    let (config, passwords) = (folder.join("config.yml"), folder.join("htpasswd"));
    let mut content = format!(
        "version: 0.1
log: {{ level: warn }}
storage:
  filesystem: {{ rootdirectory: {} }}
  delete: {{ enabled: true }}
http: {{ addr: \"127.0.0.1:{}\" }}
",
        folder.join("data").display(),
        registry.port
    );
    if registry.private {
        tool::write_atomically(&passwords, HTPASSWD)?;
        content
            .push_str(&format!("auth:\n  htpasswd: {{ realm: kruise-rs, path: {} }}\n", passwords.display()));
    }
    tool::write_atomically(&config, content)?;
    Ok(Part {
        name: registry.name.to_owned(),
        program: packages.program("docker-registry")?,
        args: vec!["serve".to_owned(), text(&config)],
        env: BTreeMap::new(),
        tmp: None,
        ports: vec![registry.port],
    })
}

/// What a registry answers.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    location: Option<String>,
}

impl Registry {
    fn push(&self, image: &Image) -> Result<()> {
        let name = image.name;
        for blob in &image.blobs {
            let path = format!("/v2/{name}/blobs/{}", blob.digest);
            if self.call("HEAD", &path, None, &[])?.status == 200 {
                continue;
            }
            let begun = self.call("POST", &format!("/v2/{name}/blobs/uploads/"), None, &[])?;
            let location = begun.location.context("the registry gave no place for the upload")?;
            let place = place_of(&location, &blob.digest);
            self.put(&place, "application/octet-stream", &blob.bytes)?;
        }
        self.put(&format!("/v2/{name}/manifests/{}", image.tag), MANIFEST_TYPE, &image.manifest.bytes)
    }

    fn put(&self, path: &str, media_type: &str, body: &[u8]) -> Result<()> {
        match self.call("PUT", path, Some(media_type), body)?.status {
            201 => Ok(()),
            status => bail!("the registry answered {status} to PUT {path}"),
        }
    }

    /// One plain HTTP request on a connection of its own.
    fn call(&self, method: &str, path: &str, media_type: Option<&str>, body: &[u8]) -> Result<Answer> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n",
            self.port,
            body.len()
        );
        if let Some(media_type) = media_type {
            request.push_str(&format!("Content-Type: {media_type}\r\n"));
        }
        if self.private {
            request.push_str(&format!("Authorization: Basic {BASIC_CREDENTIALS}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes())?;
        stream.write_all(body)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        parse(&String::from_utf8_lossy(&answer)).context("the registry's answer is not HTTP")
    }
}

fn parse(answer: &str) -> Option<Answer> {
    let head = answer.split("\r\n\r\n").next()?;
    let status = head.lines().next()?.split(' ').nth(1)?.parse().ok()?;
    let location = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    Some(Answer { status, location })
}

/// Where the whole blob goes: the path of the begun upload, with the digest.
fn place_of(location: &str, digest: &str) -> String {
    let path = match location.split_once("://") {
        Some((_, rest)) => rest.find('/').and_then(|start| rest.get(start..)).unwrap_or("/"),
        None => location,
    };
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}digest={digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_its_status_and_where_to_go() {
        let answer = parse("HTTP/1.1 202 Accepted\r\nLOCATION: http://h/v2/x?_state=1\r\n\r\nbody: 1");
        assert_eq!(answer, Some(Answer { status: 202, location: Some("http://h/v2/x?_state=1".to_owned()) }));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn an_upload_ends_at_the_place_the_registry_named() {
        assert_eq!(
            place_of("http://127.0.0.1:1/v2/a?_state=x", "sha256:1"),
            "/v2/a?_state=x&digest=sha256:1"
        );
        assert_eq!(place_of("/v2/a", "sha256:1"), "/v2/a?digest=sha256:1");
    }
}
