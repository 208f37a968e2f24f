//! What a session has done so far. Its own loop alone counts; others look.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of one session.
#[derive(Default)]
pub(crate) struct Account {
    read: AtomicU64,
    written: AtomicU64,
    commands: AtomicU64,
}

/// Without a locked step: nobody else adds.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Account {
    /// Bytes were read for the initiator.
    pub(crate) fn add_read(&self, bytes: u64) {
        add(&self.read, bytes);
    }

    /// Bytes have come from the initiator.
    pub(crate) fn add_written(&self, bytes: u64) {
        add(&self.written, bytes);
    }

    /// So many commands are not answered yet.
    pub(crate) fn set_commands(&self, commands: usize) {
        self.commands.store(commands as u64, Ordering::Relaxed);
    }

    /// Bytes read, bytes written, and commands that are not answered yet.
    pub(crate) fn all(&self) -> (u64, u64, u64) {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (get(&self.read), get(&self.written), get(&self.commands))
    }
}
