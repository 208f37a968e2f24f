//! Events on their way to whom they are to be told (docs/events.md): webhooks and e-mail.
//!
//! Responsible for: which targets there are, how far each was told, trying again, and the way to each.
//! Leaves out: what is an event (`events`).
//!
//! What waits for a target is the log of events from its mark on: it is bounded as that is, and outlives the daemon.
//! Nothing else ever waits for a target.

mod addresses;
mod check;
mod deliver;
mod mail;
mod progress;
mod targets;
mod tls;
mod webhook;

pub use deliver::{deliver, deliver_now};
pub use targets::{TARGETS_MAX, Targets};
