//! Helpers of several tests.

pub mod folder;
pub mod virtual_time;
