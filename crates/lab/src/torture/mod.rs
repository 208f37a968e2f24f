//! The daemon is killed at random moments while a verifier writes, discards, flushes and reads;
//! after each restart every block has to hold what was last answered, or something newer; where drives go away
//! meanwhile, what was last flushed.
//!
//! Responsible for: the ledger of valid contents, the load, the kills, the figures.
//! Leaves out: power cuts. A kill keeps what the system was given; that a flush reaches the
//! drive is shown elsewhere, by drives that forget.

mod fio_load;
mod lane;
mod ledger;
mod mirror;
mod run;
mod verify;

pub use run::run;
