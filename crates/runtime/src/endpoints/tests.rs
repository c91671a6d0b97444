use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{health::Checks, *};

async fn get(handler: &Handler, path: &str) -> (u16, String) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let answer = handler(path.to_owned(), query.to_owned()).await;
    (answer.status.as_u16(), String::from_utf8(answer.body.to_vec()).unwrap())
}

/// The bodies that the original answers with.
#[tokio::test]
async fn health_answers_as_probes_know_it() {
    let handler = Checks::new().ready("webhook-ready", || async { Ok(()) }).handler();
    for path in ["/healthz", "/healthz/ping", "/healthz/", "/readyz", "/readyz/webhook-ready"] {
        assert_eq!(get(&handler, path).await, (200, "ok".to_owned()), "{path}");
    }
    assert_eq!(
        get(&handler, "/readyz?verbose=1").await,
        (200, "[+]webhook-ready ok\nhealthz check passed\n".to_owned())
    );
    assert_eq!(get(&handler, "/healthz?verbose=1").await.1, "[+]ping ok\nhealthz check passed\n");
    for path in ["/", "/healthzz", "/readyz/nothing", "/metrics"] {
        assert_eq!(get(&handler, path).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn a_failing_check_says_why() {
    let failing = || async { Err("webhook controller has not initialized".to_owned()) };
    let handler = Checks::new().ready("webhook-ready", failing).handler();
    let (status, body) = get(&handler, "/readyz").await;
    assert_eq!(status, 500);
    assert!(body.contains("[-]webhook-ready failed: webhook controller has not initialized"), "{body}");
    assert_eq!(get(&handler, "/healthz").await.0, 200);
}

#[tokio::test]
async fn details_are_shown_to_whoever_asks_and_fail_nothing() {
    let lines = || vec!["cannot list a".to_owned(), "cannot list b".to_owned()];
    let handler = Checks::new().ready("webhook-ready", || async { Ok(()) }).detail("kinds", lines).handler();
    assert_eq!(get(&handler, "/readyz").await, (200, "ok".to_owned()));
    let shown =
        "[+]webhook-ready ok\n[!]kinds: cannot list a\n[!]kinds: cannot list b\nhealthz check passed\n";
    assert_eq!(get(&handler, "/readyz?verbose=1").await, (200, shown.to_owned()));
    assert_eq!(get(&handler, "/healthz?verbose=1").await.1, "[+]ping ok\nhealthz check passed\n");
}

#[tokio::test]
async fn addresses_are_written_as_flags_write_them() {
    assert!(bind("0").await.unwrap().is_none());
    assert!(bind("").await.unwrap().is_none());
    let listener = bind("127.0.0.1:0").await.unwrap().unwrap();
    assert!(listener.local_addr().unwrap().ip().is_loopback());
    let any = bind(":0").await.unwrap().unwrap();
    assert!(any.local_addr().unwrap().ip().is_unspecified());
    assert!(bind(":http").await.unwrap_err().to_string().contains("write it like :8080"));
}

/// A server on loopback that answers with this, for as long as the future runs.
async fn served<T>(handler: Handler, work: impl AsyncFnOnce(SocketAddr) -> T) -> T {
    let listener = bind("127.0.0.1:0").await.unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, handler, async {
        let _ = stopped.await;
    }));
    // Guards against waiting for ever; nothing here takes a second.
    let done = timeout(Duration::from_secs(30), work(address)).await.expect("everyone is answered");
    stop.send(()).unwrap();
    tasks.join_next().await.unwrap().unwrap();
    done
}

async fn ask(address: SocketAddr) -> String {
    let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Issue 19: 64 connections that never read kept `/healthz` from answering.
#[tokio::test]
async fn clients_that_are_silent_or_never_read_do_not_lock_out_others() {
    let large: Handler = Arc::new(|path, _| {
        let body = if path == "/large" { "x".repeat(16 << 20) } else { "ok".to_owned() };
        Box::pin(async move { Answer::text(StatusCode::OK, body) })
    });
    served(large, async |address| {
        let mut held = Vec::new();
        for number in 0..3 * MOST_CONNECTIONS {
            let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
            let head: &[u8] = match number % 3 {
                0 => b"",
                1 => b"GET /healthz HT",
                _ => b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
            };
            client.write_all(head).await.unwrap();
            held.push(client);
            let answer = ask(address).await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
        }
    })
    .await;
}

/// Who sends many requests at once gets one answer: otherwise a client that reads nothing keeps us at work.
#[tokio::test]
async fn a_connection_is_for_one_request() {
    served(Checks::new().handler(), async |address| {
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        client.write_all(&b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3)).await.unwrap();
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        assert_eq!(String::from_utf8_lossy(&answer).matches("HTTP/1.1 200").count(), 1);
    })
    .await;
}

/// A body that is announced and never sent, and heads without end.
#[tokio::test]
async fn what_is_too_long_is_cut_off() {
    served(Checks::new().handler(), async |address| {
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        client
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "it is answered and closed: {answer}");
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!("GET /healthz HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(2 * BUFFER));
        let _ = client.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    })
    .await;
}
