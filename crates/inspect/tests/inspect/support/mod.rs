//! Helpers of the tests: pools that the engine made, as images in memory that can be damaged.

pub mod client;
pub mod damage;
pub mod history;
pub mod image;
