//! Hostile peers, one kind after the other, against a daemon that serves others meanwhile.
//!
//! Responsible for: victims with a steady load by every protocol, a table of attackers, what each of them costs the victims
//! and the daemon, and whether that is within the limits.
//! Leaves out: the correct response to a single invalid message, which the tests of the front ends check.

mod arguments;
mod attackers;
mod doors;
mod judge;
mod peers;
mod phase;
mod report;
mod run;
mod scene;
mod stage;
mod victims;
mod watch;

pub use arguments::Hostile;
pub use run::run;
