//! The attacks. Each goes on until its time is over, whatever the manager does to its connections.

use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::probes::Seen;
use super::sockets::{Held, Targets};
use super::{Until, locked};

/// A pause between two connections: attacks are about what is held, not about how fast a machine can connect.
const PAUSE: Duration = Duration::from_millis(2);
/// How many connections an attack holds; more than the manager has places.
const HELD: usize = 300;
const MIB: usize = 1 << 20;

type Script = fn(&Targets, &Mutex<Seen>, &Until);

impl Until {
    /// Rests between two connections.
    fn pause(&self) {
        thread::sleep(PAUSE * self.slower);
    }
}

pub(super) const ALL: &[(&str, Script)] = &[
    ("answers that are never read", never_read),
    ("half a handshake", half_open),
    ("idle connections with TLS", idle),
    ("unfinished bodies", unfinished),
    ("conversions of 100 MB", too_large),
    ("the largest reviews that are taken", largest),
    ("slow senders", slow),
    ("random bytes", random),
];

/// Asks for health and metrics without end and reads nothing.
fn never_read(targets: &Targets, seen: &Mutex<Seen>, until: &Until) {
    let mut held = Held::new(HELD);
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200);
    while !until.is_over() {
        for port in [targets.health, targets.metrics] {
            let Ok(mut stream) = targets.plain(port) else { continue };
            let _ = stream.set_nonblocking(true);
            let _ = stream.write(&request);
            locked(seen).connected();
            held.push(stream);
        }
        until.pause();
    }
}

/// Begins handshakes and does not end them.
fn half_open(targets: &Targets, seen: &Mutex<Seen>, until: &Until) {
    let mut held = Held::new(HELD);
    while !until.is_over() {
        if let Ok(mut stream) = targets.plain(targets.webhooks) {
            let _ = stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
            locked(seen).connected();
            held.push(stream);
        }
        until.pause();
    }
}

/// Ends handshakes and says nothing more.
fn idle(targets: &Targets, seen: &Mutex<Seen>, until: &Until) {
    let mut held = Held::new(HELD);
    while !until.is_over() {
        if let Ok(stream) = targets.tls() {
            locked(seen).connected();
            held.push(stream);
        }
        until.pause();
    }
}

/// Begins bodies without a length, sends much of them, and does not end them.
fn unfinished(targets: &Targets, seen: &Mutex<Seen>, until: &Until) {
    let mut held = Held::new(32);
    let mut chunk = format!("{MIB:x}\r\n").into_bytes();
    chunk.extend(vec![b' '; MIB]);
    chunk.extend(b"\r\n");
    let mut number = 0_usize;
    while !until.is_over() {
        number += 1;
        let (path, chunks) = if number.is_multiple_of(3) { ("/mutate-pod", 6) } else { ("/convert", 11) };
        let Ok(mut stream) = targets.tls() else { continue };
        locked(seen).connected();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let mut sent = stream.write_all(head.as_bytes());
        for _ in 0..chunks {
            sent = sent.and_then(|()| stream.write_all(&chunk));
        }
        if sent.is_ok() {
            held.push(stream);
        }
        until.pause();
    }
}

fn post(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    )
}

fn conversion(objects: &str) -> String {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"u","desiredAPIVersion":"apps.kruise.io/v1beta1","objects":[{objects}]}}}}"#
    )
}

/// Objects that are really converted, of about so many bytes.
fn objects(bytes: usize, filling: &str) -> String {
    let object = format!(
        r#"{{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","metadata":{{"name":"web","namespace":"default","annotations":{{"a":"{}"}}}},"spec":{{"replicas":1,"template":{{"a":[{filling}]}}}}}}"#,
        "x".repeat(2000)
    );
    vec![object.as_str(); (bytes / object.len()).max(1)].join(",")
}

/// Sends a review and reads the answer, with a while for each part of it.
fn exchange(targets: &Targets, path: &str, body: &str) -> Option<String> {
    let mut stream = targets.tls().ok()?;
    let wait = Some(Duration::from_secs(15));
    stream.sock.set_read_timeout(wait).ok()?;
    stream.sock.set_write_timeout(wait).ok()?;
    stream.write_all(post(path, body.len()).as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    stream.flush().ok()?;
    let mut answer = Vec::new();
    // Only the beginning is of interest, and how it ends is not.
    let mut part = [0; 4096];
    while answer.len() < part.len() {
        match stream.read(&mut part) {
            Ok(count) if count > 0 => answer.extend(part.get(..count)?),
            _ => break,
        }
    }
    Some(String::from_utf8_lossy(&answer).into_owned())
}

/// Whole reviews that are far too large.
fn too_large(targets: &Targets, seen: &Mutex<Seen>, until: &Until) {
    let body = conversion(&objects(100 * 1_000_000, "1"));
    while !until.is_over() {
        locked(seen).connected();
        let answer = exchange(targets, "/convert", &body).unwrap_or_default();
        if answer.starts_with("HTTP/1.1 413") && answer.contains("limit is") {
            locked(seen).too_large += 1;
        }
        // Deciphering 100 MB is work in itself, for both sides.
        (0..100).for_each(|_| until.pause());
    }
}

/// Whole reviews that are just small enough, of many objects or of few that take much memory as a tree.
fn largest(targets: &Targets, seen: &Mutex<Seen>, until: &Until) {
    let many = conversion(&objects(11 * MIB, "1"));
    let dense = conversion(&objects(1, &["0"; MIB / 2].join(",")));
    let admission = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"CREATE","resource":{{"version":"v1","resource":"pods"}},"object":{{"spec":[{}]}}}}}}"#,
        ["0"; MIB / 2].join(",")
    );
    while !until.is_over() {
        for (path, body) in [("/convert", &many), ("/convert", &dense), ("/mutate-pod", &admission)] {
            locked(seen).connected();
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| exchange(targets, path, body));
                }
            });
            (0..20).for_each(|_| until.pause());
        }
    }
}

/// Many requests that go on one byte at a time.
fn slow(targets: &Targets, seen: &Mutex<Seen>, until: &Until) {
    let mut held = Held::new(HELD);
    while !until.is_over() {
        for number in 0..10 {
            if held.is_full() {
                break;
            }
            let Ok(mut stream) = targets.tls() else { continue };
            locked(seen).connected();
            let head = post("/mutate-pod", 100_000);
            // Half of them do not even end their head.
            let head = if number % 2 == 0 { head.as_str() } else { "POST /convert HTTP/1.1\r\nX: " };
            if stream.write_all(head.as_bytes()).is_ok() {
                held.push(stream);
            }
        }
        held.each(|stream| stream.write_all(b"x"));
        until.pause();
        until.pause();
    }
}

/// Bytes without a meaning, on every port, inside of TLS and out of it.
fn random(targets: &Targets, seen: &Mutex<Seen>, until: &Until) {
    // Any numbers will do, and the same in every run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = move |count: usize| -> Vec<u8> {
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        (0..count).map(|_| next()).collect()
    };
    let mut held = Held::new(HELD);
    while !until.is_over() {
        for port in [targets.health, targets.metrics, targets.webhooks] {
            if let Ok(mut stream) = targets.plain(port) {
                locked(seen).connected();
                let _ = stream.write_all(&bytes(5_000));
                held.push(stream);
            }
        }
        if let Ok(mut stream) = targets.tls() {
            locked(seen).connected();
            let garbage = bytes(50_000);
            let _ = match garbage.first() {
                Some(first) if first % 3 == 0 => stream.write_all(&garbage),
                Some(first) if first % 3 == 1 => {
                    let preface = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
                    preface.and_then(|()| stream.write_all(&garbage))
                }
                _ => {
                    let head = stream.write_all(post("/convert", garbage.len()).as_bytes());
                    head.and_then(|()| stream.write_all(&garbage))
                }
            };
        }
        until.pause();
    }
}
