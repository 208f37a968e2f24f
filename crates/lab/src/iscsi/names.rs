//! Names of sessions: each has one of its own on this machine.

use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The initiator's name (RFC 7143, section 4.2.7), the same for all sessions of this program.
pub fn initiator() -> String {
    format!("iqn.2026-11.io.convect.lab:{}", std::process::id())
}

/// An ISID of the random type (RFC 7143, section 11.12.5) that no other session of this program has.
pub fn next_isid() -> [u8; 6] {
    let number = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    [0x80, number[0], number[1], number[2], number[3], 0]
}
