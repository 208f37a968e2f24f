//! Many iSCSI sessions: the time until all are logged in, their memory in the server, and a
//! storm in which guests boot by them.
//!
//! Leaves out: the cost of a request, which `compare` measures.

mod run;

pub use run::run;
