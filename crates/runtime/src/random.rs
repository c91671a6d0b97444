//! Random numbers, as a value.

use std::{
    fmt::Write as _,
    hash::{BuildHasher as _, Hasher as _},
    sync::{Arc, Mutex, PoisonError},
};

/// A small generator (SplitMix64) for names, identities and jitter; not for secrets. Clones draw from one sequence.
///
/// ```
/// use kruise_runtime::random::Random;
///
/// assert_eq!(Random::seeded(1).uuid(), Random::seeded(1).uuid());
/// ```
#[derive(Clone, Debug)]
pub struct Random(Arc<Mutex<u64>>);

impl Random {
    /// A generator whose whole future follows from `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed ^ 0x7275_6e74_696d_6521)))
    }

    /// A generator that nobody can foretell, for programs.
    pub fn from_entropy() -> Self {
        // The standard library keys its hashers with entropy of the system: enough for names, without a dependency.
        Self::seeded(std::collections::hash_map::RandomState::new().build_hasher().finish())
    }

    /// The next number.
    pub fn next_u64(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; zero for a bound of zero.
    pub fn below(&self, bound: u64) -> u64 {
        u64::try_from((u128::from(self.next_u64()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// A random (version 4) UUID.
    pub fn uuid(&self) -> String {
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
}
