//! `convect top`: full-screen view of the daemon's live data stream.

mod events;
mod screen;
mod watched;

pub use events::told;
pub use screen::{Size, screen};
pub use watched::LiveView;
