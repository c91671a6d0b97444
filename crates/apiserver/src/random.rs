//! The server's only source of randomness: one seeded generator for uids and generated names.

use std::fmt::Write as _;

/// The letters of generated names: no vowels and no look-alikes, as Kubernetes chose them.
const NAME_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many letters `generateName` gets.
const SUFFIX_LENGTH: usize = 5;
/// The longest base of a generated name, so that base and suffix fit into a DNS label.
const MAX_BASE: usize = 63 - SUFFIX_LENGTH;

/// A small seeded generator (SplitMix64). Good enough for names; not for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator whose whole future follows from `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self { state: seed ^ 0x6b72_7569_7365_2d72 }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound` (which must not be zero).
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of the multiply-shift method is below 2^-50 for the small bounds used here.
        u64::try_from((u128::from(self.next_u64()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// A random (version 4) UUID.
    pub fn uid(&mut self) -> String {
        let high = (self.next_u64() & 0xffff_ffff_ffff_0fff) | 0x4000;
        let low = (self.next_u64() & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
        let mut text = String::with_capacity(36);
        let _ = write!(
            text,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        );
        text
    }

    /// `base` with five random letters behind it, cut so that the whole is at most 63 characters.
    pub fn name(&mut self, base: &str) -> String {
        let mut name: String = base.chars().take(MAX_BASE).collect();
        for _ in 0..SUFFIX_LENGTH {
            let at = usize::try_from(self.below(NAME_LETTERS.len() as u64)).unwrap_or(0);
            name.push(char::from(NAME_LETTERS.get(at).copied().unwrap_or(b'b')));
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let names = |seed| {
            let mut random = Random::seeded(seed);
            (random.uid(), random.name("web-"))
        };
        assert_eq!(names(1), names(1));
        assert_ne!(names(1), names(2));
    }

    #[test]
    fn uids_are_version_four_and_names_use_the_safe_letters() {
        let mut random = Random::seeded(7);
        for _ in 0..100 {
            let uid = random.uid();
            assert_eq!(uid.len(), 36);
            assert_eq!(&uid[14..15], "4");
            assert!("89ab".contains(&uid[19..20]), "{uid}");
            let name = random.name(&"x".repeat(80));
            assert_eq!(name.len(), 63);
            assert!(name[58..].bytes().all(|b| NAME_LETTERS.contains(&b)), "{name}");
        }
    }
}
