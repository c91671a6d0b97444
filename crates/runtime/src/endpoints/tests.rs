use super::{health::Checks, *};

async fn get(handler: &Handler, path: &str) -> (u16, String) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let answer = handler(path.to_owned(), query.to_owned()).await;
    (answer.status.as_u16(), answer.body)
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
async fn addresses_are_written_as_flags_write_them() {
    assert!(bind("0").await.unwrap().is_none());
    assert!(bind("").await.unwrap().is_none());
    let listener = bind("127.0.0.1:0").await.unwrap().unwrap();
    assert!(listener.local_addr().unwrap().ip().is_loopback());
    let any = bind(":0").await.unwrap().unwrap();
    assert!(any.local_addr().unwrap().ip().is_unspecified());
    assert!(bind(":http").await.unwrap_err().to_string().contains("write it like :8080"));
}

/// More clients than places, half of them silent: everyone who asks is answered once the silent ones are cut off.
#[tokio::test]
async fn silent_clients_do_not_lock_out_others() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = bind("127.0.0.1:0").await.unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let handler = Checks::new().handler();
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, handler, async {
        let _ = stopped.await;
    }));
    let mut silent = Vec::new();
    for _ in 0..MOST_CONNECTIONS / 2 {
        silent.push(tokio::net::TcpStream::connect(address).await.unwrap());
    }
    for _ in 0..MOST_CONNECTIONS {
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
    }
    stop.send(()).unwrap();
    tasks.join_next().await.unwrap().unwrap();
}
