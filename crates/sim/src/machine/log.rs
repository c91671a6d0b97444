//! What the process of a container wrote, as far as it is kept.

use std::collections::VecDeque;

use jiff::Timestamp;

/// Older lines than this many are gone, as with real log rotation.
const MOST_LINES: usize = 2_000;
const MOST_BYTES: usize = 256 << 10;

/// The number of the first line that is kept, and the lines with their times.
pub(crate) type Lines = (i64, Vec<(Timestamp, String)>);

#[derive(Debug, Default)]
pub(super) struct Log {
    first: i64,
    lines: VecDeque<(Timestamp, String)>,
    bytes: usize,
    /// Whether the last line goes on.
    is_open: bool,
}

impl Log {
    pub(super) fn write(&mut self, bytes: &[u8], now: Timestamp) {
        let text = String::from_utf8_lossy(bytes);
        for piece in text.split_inclusive('\n') {
            let line = piece.trim_end_matches('\n');
            self.bytes += line.len();
            match self.lines.back_mut().filter(|_| self.is_open) {
                Some((_, last)) => last.push_str(line),
                None => self.lines.push_back((now, line.to_owned())),
            }
            self.is_open = !piece.ends_with('\n');
        }
        while self.lines.len() > MOST_LINES || (self.bytes > MOST_BYTES && self.lines.len() > 1) {
            let Some((_, line)) = self.lines.pop_front() else { return };
            self.bytes -= line.len();
            self.first += 1;
        }
    }

    pub(super) fn lines(&self) -> Lines {
        (self.first, self.lines.iter().cloned().collect())
    }
}
