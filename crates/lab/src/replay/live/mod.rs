//! `replay --live`: a trace against a daemon, or whatever else serves NBD, and not against a model.
//!
//! Responsible for: where a trace's requests go on one volume, playing them, and what came of it. Leaves out: the
//! policies beside it, which only the model can have in the same place.

mod layout;
mod player;
mod row;
mod run;

pub use run::{elsewhere, pools};
