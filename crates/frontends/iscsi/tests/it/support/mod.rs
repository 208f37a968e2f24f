//! Shared support of this protocol's tests.

pub mod chap;
pub mod client;
#[path = "../../../../nbd/tests/it/support/connect.rs"]
pub mod connect;
#[expect(dead_code, reason = "used by the tests of other protocols")]
#[path = "../../../../nbd/tests/it/support/memory_device.rs"]
pub mod memory_device;
pub mod server;
