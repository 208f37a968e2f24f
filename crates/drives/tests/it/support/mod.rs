//! What several of the tests use.

pub mod folder;
pub mod virtual_time;
