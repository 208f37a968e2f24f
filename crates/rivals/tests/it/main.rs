//! What holds for the replacement policies of the table.

mod contract;
mod scan;
mod sequences;
