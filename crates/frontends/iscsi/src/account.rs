//! I/O statistics of a session, written by its own loop only and read by other threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one session.
#[derive(Default)]
pub(crate) struct Account {
    read: AtomicU64,
    written: AtomicU64,
    commands: AtomicU64,
}

/// Adds without an atomic read-modify-write, since there is a single writer.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Account {
    /// Counts bytes read by the initiator.
    pub(crate) fn add_read(&self, bytes: u64) {
        add(&self.read, bytes);
    }

    /// Counts bytes written by the initiator.
    pub(crate) fn add_written(&self, bytes: u64) {
        add(&self.written, bytes);
    }

    /// Sets the number of outstanding commands.
    pub(crate) fn set_commands(&self, commands: usize) {
        self.commands.store(commands as u64, Ordering::Relaxed);
    }

    /// Bytes read, bytes written, and outstanding commands.
    pub(crate) fn all(&self) -> (u64, u64, u64) {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (get(&self.read), get(&self.written), get(&self.commands))
    }
}
