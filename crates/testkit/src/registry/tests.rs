//! What a container runtime sees of the registry.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::*;

/// Sends a request and reads until the registry closes the connection, or has said all it promised.
async fn ask(registry: &Registry, method: &str, path: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(registry.address()).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |at| at + 4);
    let body = bytes.split_off(end);
    (String::from_utf8(bytes).unwrap(), body)
}

fn digest_of(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

async fn layer(registry: &Registry, name: &str) -> (String, u64) {
    let (_, manifest) = ask(registry, "GET", &format!("/v2/{name}/manifests/v1"), "").await;
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let layer = &manifest["layers"][0];
    (format!("/v2/{name}/blobs/{}", layer["digest"].as_str().unwrap()), layer["size"].as_u64().unwrap())
}

#[tokio::test]
async fn an_image_is_what_its_digests_say() {
    let registry = Registry::open().await;
    let image = registry.put("team/app", "v1");
    assert_eq!(image, format!("{}/team/app:v1", registry.address()));
    let (head, manifest) = ask(&registry, "GET", "/v2/team/app/manifests/v1", "").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let by_digest = format!("{}/team/app@{}", registry.address(), digest_of(&manifest));
    assert_eq!(registry.digest("team/app", "v1"), by_digest);
    let (path, size) = layer(&registry, "team/app").await;
    let (_, bytes) = ask(&registry, "GET", &path, "").await;
    assert_eq!(bytes.len() as u64, size);
    assert!(path.ends_with(&digest_of(&bytes)));
    let (head, rest) = ask(&registry, "GET", &path, "Range: bytes=100-\r\n").await;
    assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
    assert_eq!(rest.as_slice(), bytes.get(100..).unwrap());
    assert!(ask(&registry, "HEAD", "/v2/team/app/manifests/v2", "").await.0.starts_with("HTTP/1.1 404 "));
    assert_eq!(registry.layers_asked(), 2);
    let other = Registry::open().await;
    other.put("team/app", "v1");
    let digest =
        |registry: &Registry| registry.digest("team/app", "v1").split_once('@').unwrap().1.to_owned();
    assert_ne!(digest(&other), digest(&registry), "no two images are the same");
}

#[tokio::test]
async fn who_has_no_password_is_asked_for_one() {
    let registry = Registry::open().await;
    registry.put("app", "v1");
    registry.lock("me", "secret");
    let (head, _) = ask(&registry, "GET", "/v2/app/manifests/v1", "").await;
    assert!(head.starts_with("HTTP/1.1 401 ") && head.contains("Basic realm"), "{head}");
    let key = format!("Authorization: Basic {}\r\n", STANDARD.encode("me:secret"));
    assert!(ask(&registry, "GET", "/v2/app/manifests/v1", &key).await.0.starts_with("HTTP/1.1 200 "));
    let asked = ["GET /v2/app/manifests/v1 401 Unauthorized", "GET /v2/app/manifests/v1 200 OK"];
    assert_eq!(registry.asked(), asked);
}

#[tokio::test]
async fn a_dying_registry_sends_half_a_layer_and_nothing_after_that() {
    let registry = Registry::open().await;
    registry.put("app", "v1");
    let (path, size) = layer(&registry, "app").await;
    registry.set(Mood::Dying);
    let (head, half) = ask(&registry, "GET", &path, "").await;
    assert!(head.contains(&format!("Content-Length: {size}\r\n")), "{head}");
    assert_eq!(half.len() as u64, size / 2);
    assert_eq!(registry.mood(), Mood::Dead);
    assert_eq!(ask(&registry, "GET", "/v2/", "").await, (String::new(), Vec::new()));
    registry.set(Mood::Well);
    assert_eq!(ask(&registry, "GET", &path, "").await.1.len() as u64, size);
}
