//! `replay --live`: a trace against a daemon, or another NBD server, instead of a model.
//!
//! Responsible for: where a trace's requests go on one volume, playing them, and the results. Leaves out: the
//! policies beside it, which only the model can have in the same place.

mod layout;
mod player;
mod row;
mod run;

pub use run::{elsewhere, pools};
