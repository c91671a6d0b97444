//! SPDY/3.1, the server's half, as far as clients of Kubernetes use it: streams with headers, data both ways, pings.
//!
//! Older clients ask for it instead of WebSocket, and for ports newer ones send it through a WebSocket. Nobody uses its
//! windows, pushes or priorities there.

mod dictionary;
mod inflate;

use std::collections::BTreeMap;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use inflate::Inflate;

/// The biggest frame that is taken.
const MOST: usize = 4 << 20;
/// Data of the server goes out in pieces of at most this size.
pub(super) const PIECE: usize = 32 << 10;

const VERSION: u16 = 0x8003;
const ENDS: u8 = 1;

/// A client that does not keep to the protocol, or that is gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A new stream, and whether the client will say nothing on it.
    Open { stream: u32, headers: BTreeMap<String, String>, ends: bool },
    /// Something on a stream, and whether it was the last.
    Data { stream: u32, bytes: Bytes, ends: bool },
    /// A stream is given up.
    Reset(u32),
    /// The client wants this back.
    Ping(u32),
    /// No new streams come.
    GoAway,
}

/// One frame as it is on the wire.
#[derive(Debug, PartialEq, Eq)]
enum Frame {
    Control { kind: u16, flags: u8, payload: Bytes },
    Data { stream: u32, flags: u8, payload: Bytes },
}

/// Takes a frame from the front, if it is there as a whole.
fn take(bytes: &mut BytesMut) -> Result<Option<Frame>, Broken> {
    let &[a, b, c, d, flags, e, f, g, ..] = bytes.as_ref() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes([0, e, f, g])).map_err(|_| Broken)?;
    if length > MOST {
        return Err(Broken);
    }
    if bytes.len() < 8 + length {
        return Ok(None);
    }
    bytes.advance(8);
    let payload = bytes.split_to(length).freeze();
    if a & 0x80 == 0 {
        return Ok(Some(Frame::Data { stream: u32::from_be_bytes([a, b, c, d]), flags, payload }));
    }
    match u16::from_be_bytes([a, b]) {
        VERSION => Ok(Some(Frame::Control { kind: u16::from_be_bytes([c, d]), flags, payload })),
        _ => Err(Broken),
    }
}

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;

/// Reads frames. Whoever stops waiting for one loses nothing.
pub(super) struct Reader<R> {
    from: R,
    bytes: BytesMut,
    inflate: Inflate,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, bytes: BytesMut::new(), inflate: Inflate::new(dictionary::bytes()) }
    }

    /// The next thing that is said; an error when there can be nothing more.
    pub(super) async fn next(&mut self) -> Result<Heard, Broken> {
        loop {
            while let Some(frame) = take(&mut self.bytes)? {
                if let Some(heard) = self.understand(frame)? {
                    return Ok(heard);
                }
            }
            match self.from.read_buf(&mut self.bytes).await {
                Ok(0) | Err(_) => return Err(Broken),
                Ok(_) => {}
            }
        }
    }

    fn understand(&mut self, frame: Frame) -> Result<Option<Heard>, Broken> {
        let (kind, flags, payload) = match frame {
            Frame::Data { stream, flags, payload } => {
                return Ok(Some(Heard::Data { stream, bytes: payload, ends: flags & ENDS != 0 }));
            }
            Frame::Control { kind, flags, payload } => (kind, flags, payload),
        };
        let first = payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        Ok(match kind {
            SYN_STREAM => {
                // Behind the stream: the one it belongs to, a priority and a slot.
                let block = self.inflate.block(payload.get(10..).ok_or(Broken)?)?;
                let stream = first.ok_or(Broken)? & 0x7fff_ffff;
                Some(Heard::Open { stream, headers: headers(&block)?, ends: flags & ENDS != 0 })
            }
            RST_STREAM => Some(Heard::Reset(first.ok_or(Broken)?)),
            PING => Some(Heard::Ping(first.ok_or(Broken)?)),
            GOAWAY => Some(Heard::GoAway),
            _ => None,
        })
    }
}

/// The headers of a stream: their number, then names and values, each with its length.
fn headers(block: &[u8]) -> Result<BTreeMap<String, String>, Broken> {
    let mut rest = block;
    let count = take_number(&mut rest)?;
    let mut found = BTreeMap::new();
    for _ in 0..count {
        let name = take_text(&mut rest)?;
        let value = take_text(&mut rest)?;
        found.insert(name.to_ascii_lowercase(), value);
    }
    Ok(found)
}

fn take_number(rest: &mut &[u8]) -> Result<usize, Broken> {
    let (number, after) = rest.split_first_chunk().ok_or(Broken)?;
    *rest = after;
    usize::try_from(u32::from_be_bytes(*number)).map_err(|_| Broken)
}

fn take_text(rest: &mut &[u8]) -> Result<String, Broken> {
    let length = take_number(rest)?;
    let (text, after) = rest.split_at_checked(length).ok_or(Broken)?;
    *rest = after;
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn control(kind: u16, payload: &[u8]) -> Bytes {
    let mut out = VERSION.to_be_bytes().to_vec();
    out.extend(kind.to_be_bytes());
    // No control frame of the server has a flag or comes near to the longest length.
    out.extend(u32::try_from(payload.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(payload);
    out.into()
}

/// Accepts streams.
#[derive(Default)]
pub(super) struct Replies {
    has_begun: bool,
}

impl Replies {
    /// The answer to a new stream, without any headers.
    pub(super) fn to(&mut self, stream: u32) -> Bytes {
        // Headers are one compressed stream for the whole connection. Its head comes once; this one names no dictionary.
        const HEAD: [u8; 2] = [0x78, 0x01];
        // "No headers" as it is, four bytes long, and an empty piece behind it, which is how a flush looks.
        const NOTHING: [u8; 14] = [0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        let mut payload = stream.to_be_bytes().to_vec();
        if !self.has_begun {
            payload.extend(HEAD);
        }
        self.has_begun = true;
        payload.extend(NOTHING);
        control(SYN_REPLY, &payload)
    }
}

/// Gives a ping back.
pub(super) fn ping(id: u32) -> Bytes {
    control(PING, &id.to_be_bytes())
}

/// Refuses a stream.
pub(super) fn refuse(stream: u32) -> Bytes {
    const REFUSED: u32 = 3;
    control(RST_STREAM, &[stream.to_be_bytes(), REFUSED.to_be_bytes()].concat())
}

/// Something on a stream, no longer than [`PIECE`]; `ends` for the last.
pub(super) fn data(stream: u32, bytes: &[u8], ends: bool) -> Bytes {
    let mut out = stream.to_be_bytes().to_vec();
    let [_, length @ ..] = u32::try_from(bytes.len()).unwrap_or(0).to_be_bytes();
    out.push(if ends { ENDS } else { 0 });
    out.extend(length);
    out.extend_from_slice(bytes);
    out.into()
}

/// A new stream with headers that are compressed by not being so, as a client sends it.
#[cfg(test)]
pub(super) fn open(stream: u32, headers: &[(&str, &str)], is_first: bool) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let mut block = (headers.len() as u32).to_be_bytes().to_vec();
    headers.iter().for_each(|(name, value)| block.extend([text(name), text(value)].concat()));
    let length = block.len() as u16;
    let mut payload = stream.to_be_bytes().to_vec();
    payload.extend([0; 6]);
    if is_first {
        payload.extend([0x78, 0x01]);
    }
    payload.push(0);
    payload.extend(length.to_le_bytes());
    payload.extend((!length).to_le_bytes());
    payload.extend(block);
    payload.extend([0, 0, 0, 0xff, 0xff]);
    control(SYN_STREAM, &payload).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn streams_open_talk_and_end() {
        let bytes = [
            open(1, &[("streamType", "error"), ("port", "80")], true),
            open(3, &[("Streamtype", "data")], false),
            data(3, b"hello", false).to_vec(),
            ping(9).to_vec(),
            // Settings, which say nothing here.
            control(4, &[0; 4]).to_vec(),
            data(3, b"", true).to_vec(),
            refuse(1).to_vec(),
            control(GOAWAY, &[0; 8]).to_vec(),
        ]
        .concat();
        let mut reader = Reader::new(bytes.as_slice());
        let mut all = Vec::new();
        while let Ok(heard) = reader.next().await {
            all.push(heard);
        }
        let open = |stream, headers: &[(&str, &str)]| Heard::Open {
            stream,
            headers: headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            ends: false,
        };
        let expected = [
            open(1, &[("streamtype", "error"), ("port", "80")]),
            open(3, &[("streamtype", "data")]),
            Heard::Data { stream: 3, bytes: Bytes::from_static(b"hello"), ends: false },
            Heard::Ping(9),
            Heard::Data { stream: 3, bytes: Bytes::new(), ends: true },
            Heard::Reset(1),
            Heard::GoAway,
        ];
        assert_eq!(all, expected);
    }

    #[tokio::test]
    async fn what_makes_no_sense_ends_the_connection() {
        let version_two = [&[0x80, 2, 0, 6, 0, 0, 0, 4][..], &[0; 4]].concat();
        let too_long = vec![0, 0, 0, 1, 0, 0xff, 0xff, 0xff];
        let no_headers = control(SYN_STREAM, &[0; 12]).to_vec();
        let cut = data(1, b"abc", false)[..9].to_vec();
        for bytes in [version_two, too_long, no_headers, cut] {
            assert_eq!(Reader::new(bytes.as_slice()).next().await, Err(Broken), "{bytes:?}");
        }
    }

    #[test]
    fn replies_are_one_stream_without_headers() {
        let mut replies = Replies::default();
        let mut inflate = Inflate::new(Vec::new());
        for stream in [1, 3, 5] {
            let reply = replies.to(stream);
            assert_eq!(reply[..4], [0x80, 3, 0, 2]);
            assert_eq!(reply[8..12], u32::to_be_bytes(stream));
            assert_eq!(headers(&inflate.block(&reply[12..]).unwrap()), Ok(BTreeMap::new()));
        }
    }

    #[test]
    fn data_has_its_length_and_its_end() {
        assert_eq!(data(5, b"ab", true)[..], [0, 0, 0, 5, 1, 0, 0, 2, b'a', b'b']);
        assert_eq!(data(5, &vec![0; PIECE], false)[..8], [0, 0, 0, 5, 0, 0, 0x80, 0]);
    }
}
