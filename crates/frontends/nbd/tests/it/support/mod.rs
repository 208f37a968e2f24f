//! Shared support of this protocol's tests.

pub mod certificates;
pub mod client;
pub mod connect;
#[expect(dead_code, reason = "used by the tests of other protocols")]
pub mod memory_device;
pub mod server;
