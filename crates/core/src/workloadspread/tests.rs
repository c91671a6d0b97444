//! Spreads in tables, as they were recorded from the original, and under many hands at once.

mod admission;
mod adoption;
mod counting;
mod input;
mod kit;
mod moving;
mod race;
mod takeover;
