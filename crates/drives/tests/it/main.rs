//! What drives promise, and what is refused as one.

mod contract;
mod model;
mod open;
mod signature;
mod support;
