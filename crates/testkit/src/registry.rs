//! A registry of images on loopback that a test has for itself: with a password, slow, silent, or dying half-way.
//!
//! Container runtimes take addresses of loopback for registries without TLS, so a runtime of this machine pulls from it
//! without being told anything. Its images cannot be run: they hold one file with bytes that no other image has, so that a
//! runtime cannot have them already.

mod image;

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};

use crate::scenario::fail;
use image::{Image, MANIFEST_TYPE};

/// Longer requests are not read.
const MOST_HEAD: usize = 16 * 1024;
/// A slow answer comes in so many pieces.
const PIECES: u32 = 20;

/// How a registry behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    /// It answers.
    #[default]
    Well,
    /// The bytes of a layer take this long.
    Slow(Duration),
    /// It takes requests for layers and never answers.
    Silent,
    /// It sends half of the next layer, and is dead from then on.
    Dying,
    /// It closes every connection at once.
    Dead,
}

/// A registry. It ends with this value.
pub struct Registry {
    port: u16,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    images: Vec<Image>,
    mood: Mood,
    /// The value of the header that lets somebody in.
    key: Option<String>,
    asked: Vec<String>,
}

impl Registry {
    /// One that is empty and lets everybody in.
    pub async fn open() -> Self {
        let (listener, port) = match TcpListener::bind("127.0.0.1:0").await.map(|it| (it.local_addr(), it)) {
            Ok((Ok(address), listener)) => (listener, address.port()),
            Ok((Err(error), _)) | Err(error) => fail(&format!("no port for a registry: {error}")),
        };
        let shared = Arc::new(Shared::default());
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, shared.clone()));
        Self { port, shared, _serving: serving }
    }

    /// Takes in a new image and gives its full name. A tag that is there already then names the new one.
    pub fn put(&self, name: &str, tag: &str) -> String {
        let mut state = self.shared.state();
        state.images.retain(|image| (image.name.as_str(), image.tag.as_str()) != (name, tag));
        state.images.push(Image::new(name, tag));
        format!("{}:{tag}", self.repository(name))
    }

    /// The full name of an image by its digest.
    pub fn digest(&self, name: &str, tag: &str) -> String {
        let state = self.shared.state();
        let found = state.images.iter().find(|image| (&*image.name, &*image.tag) == (name, tag));
        match found {
            Some(image) => format!("{}@{}", self.repository(name), image.manifest.digest),
            None => fail(&format!("the registry has no {name}:{tag}")),
        }
    }

    /// The full name of images without their tags.
    pub fn repository(&self, name: &str) -> String {
        format!("{}/{name}", self.address())
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// From now on only this user gets in.
    pub fn lock(&self, user: &str, password: &str) {
        self.shared.state().key = Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))));
    }

    /// From now on it behaves like this.
    pub fn set(&self, mood: Mood) {
        self.shared.state().mood = mood;
    }

    /// How it behaves: one that was dying may be dead.
    pub fn mood(&self) -> Mood {
        self.shared.state().mood
    }

    /// All requests so far, such as `HEAD /v2/app/manifests/v1 200`.
    pub fn asked(&self) -> Vec<String> {
        self.shared.state().asked.clone()
    }

    /// How many requests for layers there were.
    pub fn layers_asked(&self) -> usize {
        let state = self.shared.state();
        let of_layer = |line: &&String| state.images.iter().any(|image| line.contains(&image.layer.digest));
        state.asked.iter().filter(of_layer).count()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut visits = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        visits.spawn(async move {
            // A visitor who leaves in the middle is none of our business.
            let _ = visit(stream, &shared).await;
        });
        while visits.try_join_next().is_some() {}
    }
}

/// What a request says.
struct Request {
    method: String,
    path: String,
    key: Option<String>,
    /// The first byte that is wanted.
    from: usize,
}

/// What it is answered.
struct Answer {
    code: &'static str,
    headers: String,
    body: Vec<u8>,
    /// Whether it is a layer, which takes time.
    is_layer: bool,
}

async fn visit(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    while let Some(request) = read(&mut stream).await? {
        let (answer, mood) = {
            let mut state = shared.state();
            if state.mood == Mood::Dead {
                return Ok(());
            }
            let answer = state.answer(&request);
            let line = format!("{} {} {}", request.method, request.path, answer.code);
            state.asked.push(line);
            (answer, state.mood)
        };
        let Answer { code, headers, body, is_layer } = answer;
        let head = format!("HTTP/1.1 {code}\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
        stream.write_all(head.as_bytes()).await?;
        if request.method == "HEAD" {
            continue;
        }
        match mood {
            Mood::Slow(time) if is_layer => {
                let piece = body.len().div_ceil(PIECES as usize).max(1);
                for piece in body.chunks(piece) {
                    sleep(time / PIECES).await;
                    stream.write_all(piece).await?;
                }
            }
            Mood::Silent if is_layer => std::future::pending().await,
            Mood::Dying if is_layer => {
                let (half, _) = body.split_at(body.len() / 2);
                stream.write_all(half).await?;
                stream.flush().await?;
                shared.state().mood = Mood::Dead;
                return Ok(());
            }
            _ => stream.write_all(&body).await?,
        }
    }
    Ok(())
}

impl State {
    fn answer(&self, request: &Request) -> Answer {
        let plain = |code, headers: &str| Answer {
            code,
            headers: headers.to_owned(),
            body: Vec::new(),
            is_layer: false,
        };
        if self.key.is_some() && self.key != request.key {
            return plain("401 Unauthorized", "WWW-Authenticate: Basic realm=\"test\"\r\n");
        }
        if request.path.trim_end_matches('/') == "/v2" {
            return plain("200 OK", "");
        }
        let Some((name, kind, wanted)) = split(&request.path) else { return plain("404 Not Found", "") };
        for image in self.images.iter().filter(|image| image.name == name) {
            if kind == "manifests" && (image.tag == wanted || image.manifest.digest == wanted) {
                let mut headers = format!("Content-Type: {MANIFEST_TYPE}\r\n");
                let _ = write!(headers, "Docker-Content-Digest: {}\r\n", image.manifest.digest);
                let body = image.manifest.bytes.clone();
                return Answer { code: "200 OK", headers, body, is_layer: false };
            }
            let blobs = [&image.layer, &image.config];
            if let Some(blob) = blobs.into_iter().find(|blob| kind == "blobs" && blob.digest == wanted) {
                return part(blob, request.from, blob.digest == image.layer.digest);
            }
        }
        plain("404 Not Found", "")
    }
}

/// A blob from some byte on: who was interrupted goes on where they were.
fn part(blob: &image::Blob, from: usize, is_layer: bool) -> Answer {
    let mut headers = "Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n".to_owned();
    let size = blob.bytes.len();
    let code = match from {
        0 => "200 OK",
        _ => {
            let _ = write!(headers, "Content-Range: bytes {from}-{}/{size}\r\n", size.saturating_sub(1));
            "206 Partial Content"
        }
    };
    let body = blob.bytes.get(from..).unwrap_or_default().to_vec();
    Answer { code, headers, body, is_layer }
}

/// Name, kind and wanted part of a path such as `/v2/app/manifests/v1`.
fn split(path: &str) -> Option<(&str, &str, &str)> {
    let (rest, wanted) = path.strip_prefix("/v2/")?.rsplit_once('/')?;
    let (name, kind) = rest.rsplit_once('/')?;
    Some((name, kind, wanted))
}

/// The next request; nothing when there is none. Requests for images have no body.
async fn read(stream: &mut TcpStream) -> std::io::Result<Option<Request>> {
    let (mut head, mut byte) = (Vec::new(), [0_u8]);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > MOST_HEAD || stream.read(&mut byte).await? == 0 {
            return Ok(None);
        }
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let header = |wanted: &str| {
        let mut pairs = head.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim().to_owned())
    };
    let range = header("range").unwrap_or_default();
    let from = range.strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    Ok(Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        key: header("authorization"),
        from: from.and_then(|(from, _)| from.parse().ok()).unwrap_or(0),
    }))
}

#[cfg(test)]
mod tests;
