//! The random part of names of new objects, from a seed: the same seed gives the same ids in the same order.

use crate::{hash, text::Text};

const LENGTH: usize = 5;

/// A seed of its own for everything that has this name.
pub fn mix(seed: u64, name: &str) -> u64 {
    name.bytes().fold(seed, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Ids of five letters, as Kubernetes makes them.
#[derive(Clone, Debug)]
pub struct Ids {
    state: u64,
}

impl Ids {
    /// Those of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next one.
    pub fn next_id(&mut self) -> Text {
        let letters = hash::safe_letters();
        let mut bits = self.next_bits();
        let mut id = String::with_capacity(LENGTH);
        for _ in 0..LENGTH {
            let count = letters.len() as u64;
            let index = usize::try_from(bits % count).unwrap_or(0);
            id.push(char::from(letters.get(index).copied().unwrap_or(b'b')));
            bits /= count;
        }
        id.into()
    }

    /// SplitMix64.
    fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
