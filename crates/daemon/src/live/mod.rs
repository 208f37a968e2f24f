//! What viewers are told once a second, gathered once for all of them (docs/access.md).
//!
//! Responsible for: what is told, what of that changed, and how often.
//! Leaves out: how it travels (`http`), what is known (`manager`).

mod hub;
mod map;
mod state;

pub use hub::{Hub, Viewing, Wish};
pub use map::{Change, MapView, Picture, are_most, changes_text, codes, differences, whole_text};
pub use state::Seen;
