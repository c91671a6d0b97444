//! The program of a pod that answers with pages.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::{Deed, Machine};

/// How much is read of a request.
const MOST: usize = 16 * 1024;

/// What somebody begins with who speaks TLS, which nobody here does.
const TLS: u8 = 0x16;

/// The near end of a connection to such a program. It answers one request and lives no longer than its caller.
pub(super) fn serve(machine: Machine, authority: String, is_ready: bool) -> DuplexStream {
    let (near, far) = duplex(MOST);
    let station = machine.station.clone();
    let mut tasks = station.pages();
    while tasks.try_join_next().is_some() {}
    tasks.spawn(answer(far, machine, authority, is_ready));
    near
}

async fn answer(mut stream: DuplexStream, machine: Machine, authority: String, is_ready: bool) {
    let mut asked = Vec::new();
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") && asked.len() < MOST {
        match stream.read_buf(&mut asked).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if asked.first() == Some(&TLS) {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            return;
        }
    }
    let text = String::from_utf8_lossy(&asked).into_owned();
    let path = text.split_whitespace().nth(1).unwrap_or("/").to_owned();
    let status = status(&path, is_ready);
    machine.note(Deed::Page { authority, path });
    let body = if status == 200 { "ok" } else { "" };
    let page =
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn status(path: &str, is_ready: bool) -> u16 {
    let last = path.rsplit('/').next().unwrap_or_default();
    let named = last.parse::<u16>().ok().filter(|status| (200..600).contains(status));
    named.unwrap_or(if is_ready { 200 } else { 503 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_name_its_status() {
        assert_eq!([status("/", true), status("/", false), status("/a/500", true)], [200, 503, 500]);
        assert_eq!(status("/7", true), 200);
    }
}
