//! What viewers are told once a second, as what changed since the second before (docs/access.md).
//!
//! Responsible for: what is told, and what of that changed.
//! Leaves out: how often and to whom (`http/hub.rs`), what is known (`manager`).

mod map;
mod state;

pub use map::{Change, MapView, Picture, are_most, changes_text, codes, differences, whole_text};
pub use state::{Seen, changes};
