//! Many iSCSI sessions: how long it takes until all are logged in at once, what they take of the server's memory, and a
//! storm in which guests boot by them.
//!
//! Leaves out: what a request costs, which `compare` says.

mod run;

pub use run::run;
