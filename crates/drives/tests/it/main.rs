//! The contract of drives, and invalid specifications.

mod contract;
mod model;
mod open;
mod signature;
mod support;
