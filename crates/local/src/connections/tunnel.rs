//! SPDY through a WebSocket: messages are pieces of one stream of bytes.

use kruise_apiserver::connect::Connection;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;

use super::spdy::PIECE;
use super::streams;
use super::websocket::{Message, Reader, Writer};

/// Carries a connection until either side ends it.
pub(super) async fn carry<S: AsyncRead + AsyncWrite>(stream: S, connection: Connection) {
    let (read, write) = tokio::io::split(stream);
    let (mut reader, writer) = (Reader::new(read), Mutex::new(Writer(write)));
    let (near, far) = tokio::io::duplex(2 * PIECE);
    let (mut from, mut to) = tokio::io::split(near);
    let inwards = async {
        loop {
            let carried = match reader.next().await {
                Ok(Message::Data(bytes)) => to.write_all(&bytes).await,
                Ok(Message::Ping(bytes)) => writer.lock().await.pong(&bytes).await,
                Ok(Message::Pong) => Ok(()),
                Ok(Message::Close) | Err(_) => break,
            };
            if carried.is_err() {
                break;
            }
        }
        let _ = to.shutdown().await;
        // The other way ends the connection, when it has said everything.
        std::future::pending::<()>().await;
    };
    let outwards = async {
        let mut bytes = vec![0; PIECE];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            if writer.lock().await.data(bytes.get(..count).unwrap_or_default()).await.is_err() {
                break;
            }
        }
        writer.lock().await.close().await;
    };
    let session = async { tokio::join!(streams::carry(far, connection), outwards) };
    tokio::select! {
        () = inwards => {}
        _ = session => {}
    }
}
