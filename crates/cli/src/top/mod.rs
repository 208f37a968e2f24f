//! A full screen of what the daemon does, again and again, from its stream of live data.

mod events;
mod screen;
mod watched;

pub use events::told;
pub use screen::{Size, screen};
pub use watched::Watched;
