//! Rules in tables, what the original did as recorded, and what holds for every input.

mod admission;
mod generating;
mod injecting;
mod kit;
mod properties;
mod recorded;
mod recording;
