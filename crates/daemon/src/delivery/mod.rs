//! Delivery of events to notification targets (docs/events.md): webhooks and e-mail.
//!
//! Responsible for: the targets, the progress of each, retries, and the protocols.
//! Leaves out: which events there are (`events`).
//!
//! The queue of a target is the event log after its mark: bounded like the log, and persistent.
//! Nothing ever waits for a target.

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
