//! What holds for every kind and every version, tried on objects made from the schemas themselves.

mod arbitrary;
mod conversion;
mod defaults;
mod schemas;
mod types;
