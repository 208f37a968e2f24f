//! `convect top`: full-screen view of the daemon's live data stream. What is shown ([`View`]) and how
//! it is drawn ([`screen`]) are pure; `commands/top.rs` has the terminal.

mod events;
mod keys;
mod screen;
mod view;
mod watched;

pub use events::told;
pub use keys::keys;
pub use screen::{Size, screen};
pub use view::{Extent, Outcome, View};
pub use watched::LiveView;
