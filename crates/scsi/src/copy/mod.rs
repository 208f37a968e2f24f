//! EXTENDED COPY(LID1) (SPC-4 6.3) and RECEIVE COPY RESULTS (6.26, 6.27), among the units that the
//! session may reach: a unit that was not granted cannot be named.

mod parameters;
mod run;

pub(crate) use run::{CopyEnded, extended_copy, parameters, status};
