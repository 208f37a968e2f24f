//! What benchmarks need of the engine's inside: a map of any size, a journal as full as it gets.

mod journal;
mod translation;

pub use journal::Filled;
pub use translation::Translation;
