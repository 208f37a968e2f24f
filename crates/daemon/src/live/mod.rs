//! Live data for viewers: changes since the previous second (docs/access.md).
//!
//! Responsible for: the content of updates.
//! Leaves out: scheduling and distribution (`http/hub.rs`), data sources (`manager`).

mod map;
mod state;

pub use map::{Change, MapView, Picture, are_most, changes_text, codes, differences, whole_text};
pub use state::{LiveSnapshot, changes};
