//! JSON that is kept as its difference from another text of the same table.
//!
//! Objects of one kind are much alike: pods of a workload differ in names, times and addresses, and so do the versions of
//! one object. A table remembers a few whole texts ([`Texts`]), and a record says what to copy from one of them and what
//! comes in between. That takes a sixth of the memory, and copying is nothing beside parsing.
//!
//! Which text a record stands on is a matter of memory only: what is read is what was written, byte for byte.

use std::borrow::Cow;
use std::sync::Arc;

/// How many texts a table remembers.
const REMEMBERED: usize = 16;
/// Longer texts are kept whole: places in a text are numbers of 16 bits.
const LONGEST: usize = 60_000;
/// Where a hash is asked, so many bytes must be the same.
const WORD: usize = 8;
/// Where a text goes on as expected, so many bytes are worth a step.
const SHORT: usize = 4;
/// How many places of a text are looked up to find one that is like it.
const SAMPLES: usize = 32;
/// A difference of so many bytes is small in any case.
const SMALL: usize = 224;

/// A text, whole or as the difference from another one. Never changes.
#[derive(Clone, Debug)]
pub(super) enum Packed {
    /// The text itself.
    Whole(Arc<[u8]>),
    /// Steps that make the text from another one.
    Steps {
        /// The other text.
        base: Arc<[u8]>,
        /// Each step is a number of new bytes, these bytes, how far the place to copy from is from the expected one, and
        /// how many bytes to copy.
        steps: Box<[u8]>,
        /// How long the text is.
        length: u32,
    },
}

impl Packed {
    /// A text that stands on no other.
    pub(super) fn whole(text: &[u8]) -> Self {
        Self::Whole(text.into())
    }

    /// How long the text is.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Whole(text) => text.len(),
            Self::Steps { length, .. } => *length as usize,
        }
    }

    /// How many bytes are kept for this text alone.
    pub(super) fn kept(&self) -> usize {
        match self {
            Self::Whole(text) => text.len(),
            Self::Steps { steps, .. } => steps.len(),
        }
    }

    /// The text.
    pub(super) fn text(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Whole(text) => Cow::Borrowed(text),
            Self::Steps { base, steps, length } => {
                let mut text = Vec::with_capacity(*length as usize);
                follow(base, steps, &mut text);
                Cow::Owned(text)
            }
        }
    }
}

/// Makes a text again.
fn follow(base: &[u8], mut steps: &[u8], text: &mut Vec<u8>) {
    let mut expected: usize = 0;
    while !steps.is_empty() {
        let new = take(&mut steps);
        let (literal, rest) = steps.split_at_checked(new).unwrap_or((steps, &[]));
        text.extend_from_slice(literal);
        steps = rest;
        if steps.is_empty() {
            return;
        }
        let place = (expected + new).wrapping_add_signed(unfold(take(&mut steps)));
        let same = take(&mut steps);
        text.extend_from_slice(base.get(place..place + same).unwrap_or_default());
        expected = place + same;
    }
}

/// The whole texts of a table that were used last.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// The last one that was used comes first.
    recent: Vec<Known>,
}

impl Texts {
    /// Packs a text.
    pub(super) fn pack(&mut self, text: &Arc<[u8]>) -> Packed {
        if text.len() > LONGEST {
            return Packed::Whole(text.clone());
        }
        if let Some(at) = self.most_alike(text)
            && let Some(known) = self.recent.get(at)
        {
            let steps = known.steps(text);
            if steps.len() <= SMALL.max(text.len() / 5).min(text.len() / 2) {
                let base = known.text.clone();
                let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
                if let Some(used) = self.recent.get_mut(..=at) {
                    used.rotate_right(1);
                }
                return Packed::Steps { base, steps: steps.into(), length };
            }
        }
        self.recent.truncate(REMEMBERED - 1);
        self.recent.insert(0, Known::new(text.clone()));
        Packed::Whole(text.clone())
    }

    /// The text that has most of the words of this one; none if no text has a quarter of them.
    fn most_alike(&self, text: &[u8]) -> Option<usize> {
        let stride = (text.len() / SAMPLES).max(1);
        let samples: Vec<u64> = (0..text.len()).step_by(stride).filter_map(|at| word(text, at)).collect();
        let score = |known: &Known| samples.iter().filter(|sample| known.find(**sample).is_some()).count();
        let scores = self.recent.iter().enumerate().map(|(at, known)| (score(known), at));
        // Of equals the one that was used last.
        let best = scores.max_by_key(|(score, at)| (*score, usize::MAX - at))?;
        (best.0 * 4 > samples.len()).then_some(best.1)
    }
}

/// A whole text and where its words are.
#[derive(Debug)]
struct Known {
    text: Arc<[u8]>,
    /// By the hash of a word its place and one; zero for none. Of several words with one hash the first is known.
    places: Box<[u16]>,
}

impl Known {
    fn new(text: Arc<[u8]>) -> Self {
        let mut places = vec![0; text.len().next_power_of_two()].into_boxed_slice();
        for (at, next) in (0..text.len()).zip(1..) {
            let Some(word) = word(&text, at) else { break };
            let slot = slot(word, places.len());
            if let Some(place @ 0) = places.get_mut(slot) {
                *place = next;
            }
        }
        Self { text, places }
    }

    /// Where the text has this word.
    fn find(&self, wanted: u64) -> Option<usize> {
        let place = *self.places.get(slot(wanted, self.places.len()))?;
        let place = usize::from(place).checked_sub(1)?;
        (word(&self.text, place)? == wanted).then_some(place)
    }

    /// The steps from this text to another.
    fn steps(&self, text: &[u8]) -> Vec<u8> {
        let mut steps = Vec::with_capacity(SMALL);
        // From `new` on nothing is written yet; a text of which only bytes were replaced would go on at `expected`.
        let (mut at, mut new, mut expected) = (0, 0, 0);
        while at < text.len() {
            let straight = expected + (at - new);
            let Some(place) = self.place(text, at, straight) else {
                at += 1;
                continue;
            };
            let same = common(self.text.get(place..).unwrap_or_default(), text.get(at..).unwrap_or_default());
            put(&mut steps, at - new);
            steps.extend_from_slice(text.get(new..at).unwrap_or_default());
            put(&mut steps, fold(place.wrapping_sub(straight).cast_signed()));
            put(&mut steps, same);
            at += same;
            (new, expected) = (at, place + same);
        }
        if new < text.len() {
            put(&mut steps, text.len() - new);
            steps.extend_from_slice(text.get(new..).unwrap_or_default());
        }
        steps
    }

    /// From where to copy what stands at a place of another text.
    fn place(&self, text: &[u8], at: usize, straight: usize) -> Option<usize> {
        let short = text.get(at..at + SHORT)?;
        if self.text.get(straight..straight + SHORT) == Some(short) {
            return Some(straight);
        }
        self.find(word(text, at)?)
    }
}

fn word(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk::<WORD>().map(|bytes| u64::from_le_bytes(*bytes))
}

/// A place in a table whose size is a power of two.
fn slot(word: u64, size: usize) -> usize {
    let mixed = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> 40).unwrap_or_default() & (size.wrapping_sub(1))
}

/// How many bytes both begin with.
fn common(a: &[u8], b: &[u8]) -> usize {
    let words = a.chunks_exact(WORD).zip(b.chunks_exact(WORD)).take_while(|(a, b)| a == b).count() * WORD;
    let rest = a.iter().skip(words).zip(b.iter().skip(words));
    words + rest.take_while(|(a, b)| a == b).count()
}

/// Small distances in both directions as small numbers.
fn fold(distance: isize) -> usize {
    ((distance << 1) ^ (distance >> (isize::BITS - 1))).cast_unsigned()
}

fn unfold(number: usize) -> isize {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Writes a number, seven bits to a byte.
pub(super) fn put(out: &mut Vec<u8>, mut number: usize) {
    while let low @ 0x80.. = number {
        out.push((low & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// Reads a number and goes behind it.
pub(super) fn take(bytes: &mut &[u8]) -> usize {
    let mut number = 0;
    let mut shift = 0;
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 || shift >= usize::BITS {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pod(number: u32, second: u32) -> String {
        format!(
            "{{\"metadata\":{{\"name\":\"web-{number:x}\",\"uid\":\"{:032x}\",\"resourceVersion\":\"{number}\"}},{}\
             \"status\":{{\"startTime\":\"2026-01-01T00:00:{second:02}Z\",\"podIP\":\"10.0.{}.{}\"}}}}",
            u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            "\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"registry.example/web:v1\"}]},"
                .repeat(8),
            number / 250,
            number % 250,
        )
    }

    #[test]
    fn what_is_alike_takes_little_more_than_its_difference() {
        let mut texts = Texts::default();
        texts.pack(&pod(1, 0).into_bytes().into());
        for number in 2..1_000 {
            let text = pod(number, number % 60);
            let packed = texts.pack(&text.as_bytes().into());
            assert_eq!(packed.text(), text.as_bytes());
            assert_eq!(packed.len(), text.len());
            assert!(packed.kept() < 80, "{} of {} bytes", packed.kept(), text.len());
        }
    }

    #[test]
    fn each_of_several_kinds_of_texts_finds_its_own() {
        let mut texts = Texts::default();
        for number in 0..200_u32 {
            let kinds = [
                "app",
                "a-container-with-a-name-that-is-rather-long",
                "another-name-of-a-container-that-is-long",
            ];
            let text = pod(number, 0).replace("main", kinds[number as usize % 3]);
            let packed = texts.pack(&text.as_bytes().into());
            assert_eq!(packed.text(), text.as_bytes());
            assert!(number < 3 || packed.kept() <= SMALL, "{} of {} bytes", packed.kept(), text.len());
        }
    }

    #[test]
    fn a_text_that_is_like_no_other_is_kept_whole_and_remembered() {
        let mut texts = Texts::default();
        let word = |seed: u64| format!("{:x}", (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for number in 0..100 {
            let text: String = (0..50).map(|part| word(number * 50 + part)).collect();
            assert!(matches!(texts.pack(&text.as_bytes().into()), Packed::Whole(_)));
            assert_eq!(texts.pack(&text.as_bytes().into()).kept(), 4, "the same once more is one step");
        }
        assert_eq!(texts.recent.len(), REMEMBERED);
    }

    proptest! {
        /// Whatever was packed before, a text comes back as it was.
        #[test]
        fn texts_come_back(all in proptest::collection::vec(proptest::collection::vec(0_u8..4, 0..300), 1..20)) {
            let mut texts = Texts::default();
            for text in all {
                let packed = texts.pack(&text.as_slice().into());
                prop_assert_eq!(packed.text().into_owned(), text);
            }
        }
    }
}
