//! Properties of the replacement policies of the table.

mod contract;
mod scan;
mod sequences;
