//! WebSocket (RFC 6455), the server's half: the handshake, and messages both ways.

use bytes::{Buf as _, Bytes, BytesMut};
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::kubeconfig::base64;

/// The biggest message that is taken.
const MOST: usize = 4 << 20;
/// What the standard adds to the key of a client.
const ADDED: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// What proves to a client that its key was read.
pub(super) fn accept(key: &str) -> String {
    let text = format!("{}{ADDED}", key.trim());
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    base64(digest.as_ref())
}

/// The protocols that a client offers, in its order.
pub(super) fn offered(headers: &HeaderMap) -> Vec<&str> {
    let lines = headers.get_all("sec-websocket-protocol").iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|name| !name.is_empty()).collect()
}

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Something for whoever is connected.
    Data(Bytes),
    /// It wants this back.
    Ping(Bytes),
    /// It got something back.
    Pong,
    /// It has said everything.
    Close,
}

/// A client that does not keep to the standard, or that says too much at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// One piece of a message, as it is on the wire.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    is_last: bool,
    kind: u8,
    payload: Bytes,
}

/// Takes a frame from the front, if it is there as a whole.
fn take(bytes: &mut BytesMut) -> Result<Option<Frame>, Broken> {
    let &[first, second, ref rest @ ..] = bytes.as_ref() else { return Ok(None) };
    // Only clients mask what they send, and they all must. Extensions were not agreed on.
    if second & 0x80 == 0 || first & 0x70 != 0 {
        return Err(Broken);
    }
    let (wide, length) = match second & 0x7f {
        126 => (2, number(rest.get(..2))),
        127 => (8, number(rest.get(..8))),
        length => (0, Some(u64::from(length))),
    };
    let Some(length) = length else { return Ok(None) };
    let length = usize::try_from(length).ok().filter(|length| *length <= MOST).ok_or(Broken)?;
    let head = 2 + wide;
    if bytes.len() < head + 4 + length {
        return Ok(None);
    }
    bytes.advance(head);
    let mask = bytes.split_to(4);
    let mut payload = bytes.split_to(length);
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    Ok(Some(Frame { is_last: first & 0x80 != 0, kind: first & 0x0f, payload: payload.freeze() }))
}

fn number(bytes: Option<&[u8]>) -> Option<u64> {
    Some(bytes?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// A message of the server in one frame.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80 | kind];
    match payload.len() {
        short @ ..126 => out.push(u8::try_from(short).unwrap_or(0)),
        long => match u16::try_from(long) {
            Ok(long) => {
                out.push(126);
                out.extend(long.to_be_bytes());
            }
            Err(_) => {
                out.push(127);
                out.extend((long as u64).to_be_bytes());
            }
        },
    }
    out.extend_from_slice(payload);
    out
}

/// Reads messages. Whoever stops waiting for one loses nothing.
pub(super) struct Reader<R> {
    from: R,
    bytes: BytesMut,
    /// A message whose end has not come.
    begun: Option<BytesMut>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, bytes: BytesMut::new(), begun: None }
    }

    /// The next message; an error when there can be no more.
    pub(super) async fn next(&mut self) -> Result<Message, Broken> {
        loop {
            while let Some(frame) = take(&mut self.bytes)? {
                if let Some(message) = self.join(frame)? {
                    return Ok(message);
                }
            }
            match self.from.read_buf(&mut self.bytes).await {
                Ok(0) | Err(_) => return Err(Broken),
                Ok(_) => {}
            }
        }
    }

    /// Puts the pieces of a message together.
    fn join(&mut self, frame: Frame) -> Result<Option<Message>, Broken> {
        match (frame.kind, self.begun.as_mut()) {
            (CLOSE, _) => Ok(Some(Message::Close)),
            (PING, _) => Ok(Some(Message::Ping(frame.payload))),
            (PONG, _) => Ok(Some(Message::Pong)),
            (TEXT | BINARY, None) if frame.is_last => Ok(Some(Message::Data(frame.payload))),
            (TEXT | BINARY, None) => {
                self.begun = Some(BytesMut::from(frame.payload.as_ref()));
                Ok(None)
            }
            (CONTINUATION, Some(begun)) if begun.len() + frame.payload.len() <= MOST => {
                begun.extend_from_slice(&frame.payload);
                match frame.is_last {
                    true => Ok(self.begun.take().map(|whole| Message::Data(whole.freeze()))),
                    false => Ok(None),
                }
            }
            _ => Err(Broken),
        }
    }
}

/// Writes messages.
pub(super) struct Writer<W>(pub(super) W);

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(super) async fn data(&mut self, payload: &[u8]) -> std::io::Result<()> {
        self.send(BINARY, payload).await
    }

    pub(super) async fn pong(&mut self, payload: &[u8]) -> std::io::Result<()> {
        self.send(PONG, payload).await
    }

    /// Says that nothing more comes.
    pub(super) async fn close(&mut self) {
        const ALL_IS_WELL: u16 = 1000;
        let _ = self.send(CLOSE, &ALL_IS_WELL.to_be_bytes()).await;
        let _ = self.0.shutdown().await;
    }

    async fn send(&mut self, kind: u8, payload: &[u8]) -> std::io::Result<()> {
        self.0.write_all(&frame(kind, payload)).await?;
        self.0.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as a client sends it.
    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = frame(0, payload);
        out[0] = first;
        out[1] |= 0x80;
        let head = out.len() - payload.len();
        let mask = [1, 2, 3, 4];
        out.splice(head..head, mask);
        for (at, byte) in out[head + 4..].iter_mut().enumerate() {
            *byte ^= mask[at % 4];
        }
        out
    }

    /// What is read of some bytes, however they come in pieces.
    async fn read(bytes: &[u8]) -> Vec<Result<Message, Broken>> {
        let mut seen = Vec::new();
        for piece in [1, 7, bytes.len().max(1)] {
            let (near, mut far) = tokio::io::duplex(piece);
            let mut reader = Reader::new(near);
            // A reader that has seen enough hangs up.
            let writing = async move { drop(far.write_all(bytes).await) };
            let reading = async move {
                let mut all = Vec::new();
                loop {
                    all.push(reader.next().await);
                    if matches!(all.last(), Some(Err(_) | Ok(Message::Close))) {
                        return all;
                    }
                }
            };
            let ((), all) = tokio::join!(writing, reading);
            assert!(seen.is_empty() || seen == all, "{piece}");
            seen = all;
        }
        seen
    }

    #[test]
    fn the_key_of_the_standards_example_is_answered_as_there() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[tokio::test]
    async fn messages_come_whole_and_pings_in_between() {
        let long = vec![7; 70_000];
        let bytes = [
            masked(0x82, b"one"),
            masked(0x02, b"be"),
            masked(0x89, b"there?"),
            masked(0x00, b"gi"),
            masked(0x80, b"n"),
            masked(0x82, &[5; 200]),
            masked(0x82, &long),
            masked(0x8a, b""),
            masked(0x88, b""),
        ]
        .concat();
        let data = |bytes: &[u8]| Ok(Message::Data(Bytes::copy_from_slice(bytes)));
        let expected = [
            data(b"one"),
            Ok(Message::Ping(Bytes::from_static(b"there?"))),
            data(b"begin"),
            data(&[5; 200]),
            data(&long),
            Ok(Message::Pong),
            Ok(Message::Close),
        ];
        assert_eq!(read(&bytes).await, expected);
    }

    #[tokio::test]
    async fn what_the_standard_forbids_ends_the_connection() {
        // Without a mask, with an extension, the end of nothing, a beginning within another, far too long.
        let unmasked = frame(BINARY, b"x");
        let twice = [masked(0x02, b"a"), masked(0x02, b"b")].concat();
        let long = [vec![0x82, 0xff], (1_u64 << 40).to_be_bytes().to_vec()].concat();
        for bytes in [unmasked, masked(0xc2, b"x"), masked(0x80, b"x"), twice, long] {
            assert_eq!(read(&bytes).await, [Err(Broken)], "{bytes:?}");
        }
    }

    #[test]
    fn lengths_take_as_much_room_as_they_need() {
        assert_eq!(frame(BINARY, b"ab"), [0x82, 2, b'a', b'b']);
        assert_eq!(frame(BINARY, &[0; 126])[..4], [0x82, 126, 0, 126]);
        assert_eq!(frame(BINARY, &vec![0; 1 << 16])[..10], [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }
}
