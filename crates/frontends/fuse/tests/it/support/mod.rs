//! Shared support of this protocol's tests.

#[expect(dead_code, reason = "the tests of other front ends use the rest")]
#[path = "../../../../nbd/tests/it/support/memory_device.rs"]
pub mod memory_device;
pub mod volume;
