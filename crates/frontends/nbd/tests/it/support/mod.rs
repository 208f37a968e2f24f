//! Shared support of this protocol's tests.

pub mod certificates;
pub mod client;
pub mod connect;
#[expect(dead_code, reason = "the tests of other front ends use the rest")]
pub mod memory_device;
pub mod server;
