//! Deflate (RFC 1951, inside RFC 1950), as far as header blocks of SPDY need it: one stream for the whole connection, cut
//! where the sender flushed.

use super::Broken;

/// How far back a stream may point.
const WINDOW: usize = 32 << 10;
/// The most that one block may become.
const MOST: usize = 64 << 10;

/// A stream so far.
pub(super) struct Inflate {
    /// What was said before, which later blocks point into.
    window: Vec<u8>,
    has_begun: bool,
}

impl Inflate {
    /// A stream that begins with both sides knowing `dictionary`.
    pub(super) fn new(dictionary: Vec<u8>) -> Self {
        Self { window: dictionary, has_begun: false }
    }

    /// What the next bytes of the stream, up to a flush, stand for.
    pub(super) fn block(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Broken> {
        let bytes = if self.has_begun { bytes } else { after_head(bytes)? };
        self.has_begun = true;
        let before = self.window.len();
        let mut bits = Bits { bytes, at: 0 };
        while bits.has_more() {
            let is_last = bits.take(1)? == 1;
            match bits.take(2)? {
                0 => self.stored(&mut bits, before)?,
                1 => self.coded(&mut bits, &Code::fixed_letters(), &Code::fixed_distances(), before)?,
                2 => {
                    let (letters, distances) = described(&mut bits)?;
                    self.coded(&mut bits, &letters, &distances, before)?;
                }
                _ => return Err(Broken),
            }
            if is_last {
                break;
            }
        }
        let out = self.window.get(before..).unwrap_or_default().to_vec();
        self.window.drain(..self.window.len().saturating_sub(WINDOW));
        Ok(out)
    }

    fn push(&mut self, byte: u8, before: usize) -> Result<(), Broken> {
        if self.window.len() - before >= MOST {
            return Err(Broken);
        }
        self.window.push(byte);
        Ok(())
    }

    fn stored(&mut self, bits: &mut Bits<'_>, before: usize) -> Result<(), Broken> {
        bits.at = bits.at.next_multiple_of(8);
        let (length, inverse) = (bits.take(16)?, bits.take(16)?);
        if length != !inverse & 0xffff {
            return Err(Broken);
        }
        for _ in 0..length {
            let byte = u8::try_from(bits.take(8)?).map_err(|_| Broken)?;
            self.push(byte, before)?;
        }
        Ok(())
    }

    fn coded(
        &mut self,
        bits: &mut Bits<'_>,
        letters: &Code,
        distances: &Code,
        before: usize,
    ) -> Result<(), Broken> {
        loop {
            let letter = letters.read(bits)?;
            if let Ok(byte) = u8::try_from(letter) {
                self.push(byte, before)?;
                continue;
            }
            let Some(place) = letter.checked_sub(257) else { return Ok(()) };
            let length = extended(&LENGTHS, place, bits)?;
            let distance = extended(&DISTANCES, distances.read(bits)?, bits)?;
            for _ in 0..length {
                let from = self.window.len().checked_sub(distance).ok_or(Broken)?;
                let byte = self.window.get(from).copied().ok_or(Broken)?;
                self.push(byte, before)?;
            }
        }
    }
}

/// What follows the head of a stream: two bytes, and four more where a dictionary is named.
fn after_head(bytes: &[u8]) -> Result<&[u8], Broken> {
    const NAMES_DICTIONARY: u8 = 0x20;
    match bytes {
        [_, flags, _, _, _, _, rest @ ..] if flags & NAMES_DICTIONARY != 0 => Ok(rest),
        [_, _, rest @ ..] => Ok(rest),
        _ => Err(Broken),
    }
}

/// Bits, the lowest of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn has_more(&self) -> bool {
        self.at < self.bytes.len() * 8
    }

    fn take(&mut self, count: usize) -> Result<usize, Broken> {
        let mut number = 0;
        for place in 0..count {
            let byte = self.bytes.get(self.at / 8).ok_or(Broken)?;
            number |= usize::from(byte >> (self.at % 8) & 1) << place;
            self.at += 1;
        }
        Ok(number)
    }
}

/// A code in which frequent symbols are short. Symbols of one length follow each other.
struct Code {
    /// How many symbols there are of each length.
    counts: [usize; 16],
    /// The symbols, short ones first.
    symbols: Vec<usize>,
}

impl Code {
    fn new(lengths: &[usize]) -> Self {
        let mut counts = [0; 16];
        let mut symbols = Vec::new();
        for (length, count) in counts.iter_mut().enumerate().skip(1) {
            let of_it = lengths.iter().enumerate().filter(|(_, one)| **one == length);
            let before = symbols.len();
            symbols.extend(of_it.map(|(symbol, _)| symbol));
            *count = symbols.len() - before;
        }
        Self { counts, symbols }
    }

    fn fixed_letters() -> Self {
        let lengths = [(144, 8), (112, 9), (24, 7), (8, 8)];
        Self::new(&lengths.iter().flat_map(|(many, length)| vec![*length; *many]).collect::<Vec<_>>())
    }

    fn fixed_distances() -> Self {
        Self::new(&[5; 30])
    }

    fn read(&self, bits: &mut Bits<'_>) -> Result<usize, Broken> {
        // Codes of one length are numbers in a row, which begin where those of the length before ended, doubled.
        let (mut code, mut first, mut before) = (0, 0, 0);
        for count in self.counts.iter().skip(1) {
            code |= bits.take(1)?;
            if code < first + count {
                return self.symbols.get(before + code - first).copied().ok_or(Broken);
            }
            before += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        Err(Broken)
    }
}

/// The codes that a block describes before it uses them.
fn described(bits: &mut Bits<'_>) -> Result<(Code, Code), Broken> {
    const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    let (letters, distances, given) = (bits.take(5)? + 257, bits.take(5)? + 1, bits.take(4)? + 4);
    let mut lengths = [0; 19];
    for place in ORDER.iter().take(given) {
        let length = bits.take(3)?;
        lengths.iter_mut().skip(*place).take(1).for_each(|one| *one = length);
    }
    let code = Code::new(&lengths);
    let mut lengths: Vec<usize> = Vec::new();
    while lengths.len() < letters + distances {
        let (length, times) = match code.read(bits)? {
            16 => (*lengths.last().ok_or(Broken)?, 3 + bits.take(2)?),
            17 => (0, 3 + bits.take(3)?),
            18 => (0, 11 + bits.take(7)?),
            length => (length, 1),
        };
        lengths.extend(std::iter::repeat_n(length, times));
    }
    let (first, second) = lengths.split_at_checked(letters).ok_or(Broken)?;
    Ok((Code::new(first), Code::new(second)))
}

/// Numbers that begin at a base and go on with some bits: the bits of each symbol, and the base of the first.
struct Extended {
    bits: &'static [usize],
    base: usize,
    /// The one number that does not follow from the others.
    last: Option<usize>,
}

const LENGTHS: Extended = Extended {
    bits: &[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0],
    base: 3,
    last: Some(258),
};
const DISTANCES: Extended = Extended {
    bits: &[0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13],
    base: 1,
    last: None,
};

fn extended(of: &Extended, place: usize, bits: &mut Bits<'_>) -> Result<usize, Broken> {
    let own = *of.bits.get(place).ok_or(Broken)?;
    let before: usize = of.bits.iter().take(place).map(|bits| 1 << bits).sum();
    let base = of.last.filter(|_| place + 1 == of.bits.len()).unwrap_or(of.base + before);
    Ok(base + bits.take(own)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    fn text(inflate: &mut Inflate, hex: &str) -> String {
        String::from_utf8(inflate.block(&bytes(hex)).unwrap()).unwrap()
    }

    // The streams of these tests were written by zlib.

    #[test]
    fn a_stream_points_into_its_dictionary_and_into_earlier_blocks() {
        let mut inflate = Inflate::new(b"hello there, general".to_vec());
        let first = "78f94e740777ca008b4148a8104405000000ffff";
        assert_eq!(text(&mut inflate, first), "hello hello general there");
        let second = "c229a190989e989907000000ffff";
        assert_eq!(text(&mut inflate, second), "hello hello general there again");
    }

    #[test]
    fn blocks_are_stored_or_coded() {
        let fresh = || Inflate::new(Vec::new());
        assert_eq!(text(&mut fresh(), "7801000500faff706c61696e000000ffff"), "plain");
        assert_eq!(text(&mut fresh(), "78daaaaa1a05c40200000000ffff"), "z".repeat(300));
        let described = "78da84d0bb0d02311444d1565e01042c9f997139ac6444606169b144fb74c08d4f765aab7dae35faa7e6b3f6de8f9aef\
                         5aaf5edfc718a76a0137b8c0efe037f02bf8057c033ffff7c05fe02ff017f80bfc05fe027f81bfc05fe0cff067f833fc\
                         19fe0c7f863fc39fe1cff067f813fc09fe047f823fc19fe04ff027f813fcfd000000ffff";
        let bottles: String = (61..100).rev().map(|n| format!("{n} bottles of beer on the wall, ")).collect();
        assert_eq!(text(&mut fresh(), described), bottles);
    }

    #[test]
    fn what_makes_no_sense_or_too_much_is_refused() {
        // Lengths that disagree, a kind that is none, an end too early, a pointer before the beginning.
        for hex in ["7801000500faf0706c61696e", "780107", "7801000500faff70", "78da0a02", ""] {
            assert_eq!(Inflate::new(Vec::new()).block(&bytes(hex)), Err(Broken), "{hex}");
        }
        // Two hundred thousand times the same letter.
        let bomb = format!("78daecc13101000000c2a0de4b6f067fa0{}80d7000000ffff", "0".repeat(386));
        assert_eq!(Inflate::new(Vec::new()).block(&bytes(&bomb)), Err(Broken));
    }
}
