//! The engine as the control plane holds it.

mod engine;
pub mod types;

pub use engine::Engine;
