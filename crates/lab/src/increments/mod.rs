//! Data integrity by iSCSI: initiators that count in overlapping blocks, each step one COMPARE AND WRITE with digests, while
//! connections are cut at random. In the end every sum is exact.

mod count;
mod run;

pub use run::run;
