//! What comes in on a connection, by the byte. At a terminal, Ctrl-C and Ctrl-D are bytes like others, and nothing else
//! tells what a person wants to end.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::mpsc;

pub(super) const INTERRUPT: u8 = 3;
pub(super) const END: u8 = 4;
/// How much is kept of what is typed while nobody reads, as in a real terminal.
const MOST_AHEAD: usize = 4096;
/// The most that a command reads before it is told that it is too much.
const MOST: usize = 8 << 20;

pub(super) struct Keys {
    input: mpsc::Receiver<Bytes>,
    /// What came and was not read yet.
    ahead: VecDeque<u8>,
}

impl Keys {
    pub(super) fn new(input: mpsc::Receiver<Bytes>) -> Self {
        Self { input, ahead: VecDeque::new() }
    }

    /// The next byte; none when nothing more comes.
    pub(super) async fn next(&mut self) -> Option<u8> {
        while self.ahead.is_empty() {
            self.ahead.extend(self.input.recv().await?);
        }
        self.ahead.pop_front()
    }

    /// All that comes in until its end. At a terminal, Ctrl-D at the beginning of a line is the end, and after Ctrl-C
    /// there is nothing.
    pub(super) async fn all(&mut self, is_terminal: bool) -> Result<Option<Vec<u8>>, String> {
        let mut whole = Vec::new();
        while let Some(byte) = self.next().await {
            match byte {
                INTERRUPT if is_terminal => return Ok(None),
                END if is_terminal && matches!(whole.last(), None | Some(b'\n')) => break,
                END if is_terminal => {}
                b'\r' if is_terminal => whole.push(b'\n'),
                byte => whole.push(byte),
            }
            if whole.len() > MOST {
                return Err("the simulated container takes no more input".to_owned());
            }
        }
        Ok(Some(whole))
    }

    /// Waits for Ctrl-C, which takes with it what was typed before. Everything else stays for who reads next.
    pub(super) async fn interrupted(&mut self) {
        loop {
            if let Some(at) = self.ahead.iter().position(|byte| *byte == INTERRUPT) {
                self.ahead.drain(..=at);
                return;
            }
            self.ahead.truncate(MOST_AHEAD);
            match self.input.recv().await {
                Some(bytes) => self.ahead.extend(bytes),
                // Who says nothing more does not press it.
                None => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that were pressed, in pieces.
    fn pressed(pieces: &[&'static [u8]]) -> Keys {
        let (sender, input) = mpsc::channel(pieces.len());
        pieces.iter().for_each(|piece| sender.try_send(Bytes::from_static(piece)).unwrap());
        Keys::new(input)
    }

    #[tokio::test]
    async fn a_program_reads_to_the_end_and_a_person_says_where_that_is() {
        let read = async |is_terminal, pieces: &[&'static [u8]]| {
            pressed(pieces).all(is_terminal).await.unwrap().map(|read| String::from_utf8(read).unwrap())
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(read(false, &[b"a\r\x03", b"\x04b"]).await, text("a\r\x03\x04b"));
        assert_eq!(read(true, &[b"a\r", b"\x04b"]).await, text("a\n"));
        assert_eq!(read(true, &[b"a\x04b\r\x04"]).await, text("ab\n"));
        assert_eq!(read(true, &[b"\x04"]).await, text(""));
        assert_eq!(read(true, &[b"a", b"b\x03c"]).await, None);
    }

    #[tokio::test]
    async fn what_is_typed_ahead_stays_and_an_interrupt_takes_it() {
        let mut keys = pressed(&[b"ab", b"c\x03d"]);
        assert_eq!(keys.next().await, Some(b'a'));
        keys.interrupted().await;
        assert_eq!(keys.next().await, Some(b'd'));
        assert_eq!(keys.next().await, None);
        let mut keys = pressed(&[b"ab"]);
        let waited = futures::future::select(Box::pin(keys.interrupted()), std::future::ready(())).await;
        assert!(matches!(waited, futures::future::Either::Right(_)));
        drop(waited);
        assert_eq!(keys.next().await, Some(b'a'));
    }
}
