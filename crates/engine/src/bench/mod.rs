//! Access of benchmarks to the inside of the engine: a map of any size, a journal that is as full as it gets.

mod journal;
mod translation;

pub use journal::Filled;
pub use translation::Translation;
