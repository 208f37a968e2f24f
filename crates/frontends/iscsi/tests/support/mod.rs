//! What the tests of this front end share; none uses all of it.
#![expect(dead_code, reason = "each test program uses a part")]

pub mod client;
#[path = "../../../nbd/tests/support/memory_device.rs"]
pub mod memory_device;
pub mod server;
