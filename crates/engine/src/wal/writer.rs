//! The writer of a shard's journal: who writes to its ring and commits, and when it does so by itself.
//!
//! Owns no records (`wal/journal.rs` has them), only the turns: one write to the ring and one commit at a time
//! ([`SingleFlight`]; concurrent commits are joined by it, which is group commit), and the timer of the **durable mark**
//! (`wal/durable_mark.rs`). The commit loop sleeps on [`WalWriter::until_asked`]; a task with a reason to commit early
//! (many records, a drive with much to flush, a mark that is due) calls [`WalWriter::ask`], which never waits.
//!
//! Invariants: `commits` is held over the whole of a commit, flushes included; a mark that is due is written by the commit
//! loop alone, and never while a commit runs, for its pages carry the mark.

use super::single_flight::SingleFlight;
use reactor::Event;
use std::cell::Cell;

/// Time from a commit to its mark, in nanoseconds, if no other commit comes meanwhile: its pages carry the mark.
const MARK_NS: u64 = 25_000_000;

/// Turns and timers of one journal's writer.
#[derive(Default)]
pub(crate) struct WalWriter {
    writes: SingleFlight,
    commits: SingleFlight,
    asked: Event,
    /// When the last commit ended that the shard made by itself, in nanoseconds.
    committed_ns: Cell<u64>,
    /// When the mark is due, in nanoseconds, and whether the commit loop looks for that moment.
    mark_ns: Cell<u64>,
    is_marking: Cell<bool>,
}

impl WalWriter {
    /// The turn to write to the ring.
    pub(super) fn writes(&self) -> &SingleFlight {
        &self.writes
    }

    /// The turn to commit.
    pub(super) fn commits(&self) -> &SingleFlight {
        &self.commits
    }

    /// Wakes waiters for a commit, then those for a write: the shard has failed.
    pub fn wake(&self) {
        self.commits.wake();
        self.writes.wake();
    }

    /// A commit may be due: the commit loop looks.
    pub fn ask(&self) {
        self.asked.notify();
    }

    /// Waits until a commit may be due, from this call on.
    pub fn until_asked(&self) -> impl Future<Output = ()> + use<> {
        self.asked.wait()
    }

    /// The shard has made a commit by itself.
    pub fn committed(&self, now_ns: u64) {
        self.committed_ns.set(now_ns);
    }

    /// Time since it last did, in nanoseconds.
    pub(super) fn since_commit_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.committed_ns.get())
    }

    /// A commit that made records durable has ended: its mark is due in a while.
    pub fn mark_soon(&self, now_ns: u64) {
        self.mark_ns.set(now_ns + MARK_NS);
        if !self.is_marking.replace(true) {
            self.ask();
        }
    }

    /// Time until the next look at whether a mark is due, in nanoseconds; `None` while there is nothing to mark.
    pub fn until_mark(&self, now_ns: u64) -> Option<u64> {
        let left = self.mark_ns.get().saturating_sub(now_ns).max(1);
        self.is_marking.get().then_some(left)
    }

    /// Whether the mark is to be written now. Not while a commit runs, the end of which says when the next one is due.
    pub(super) fn is_mark_due(&self, now_ns: u64) -> bool {
        if !self.is_marking.get() || now_ns < self.mark_ns.get() {
            return false;
        }
        if self.commits.is_running() {
            self.mark_ns.set(now_ns + MARK_NS);
            return false;
        }
        true
    }

    /// The mark is being written: the task that writes it no longer waits for its time.
    pub(super) fn begin_mark(&self) {
        self.is_marking.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_mark_is_due_a_while_after_the_last_commit() {
        let writer = WalWriter::default();
        assert_eq!(writer.until_mark(5), None);
        let asked = writer.until_asked();
        writer.mark_soon(10);
        assert!(
            asked.now_or_never().is_some(),
            "the commit loop sets its timer"
        );
        assert_eq!(writer.until_mark(10), Some(MARK_NS));
        assert!(!writer.is_mark_due(9 + MARK_NS));
        writer.mark_soon(20);
        assert!(!writer.is_mark_due(10 + MARK_NS), "another commit came");
        assert!(writer.is_mark_due(20 + MARK_NS));
        writer.begin_mark();
        assert!(!writer.is_mark_due(20 + MARK_NS));
    }

    #[test]
    fn no_mark_is_due_while_a_commit_runs() {
        let writer = WalWriter::default();
        writer.mark_soon(0);
        assert!(writer.commits().begin());
        assert!(!writer.is_mark_due(MARK_NS));
        writer.commits().end();
        assert!(!writer.is_mark_due(MARK_NS), "its end says when");
        assert!(writer.is_mark_due(2 * MARK_NS));
    }
}
