//! Which threads may wait. A loop serves volumes of everybody, so its thread never waits for a file system, a peer or
//! another thread; what may wait says so by [`may_wait`], and where it is called from a loop a build with debug
//! assertions ends. `crates/architecture-test/tests/it/blocking.rs` lists all such places.

use std::cell::Cell;

thread_local! {
    static IS_LOOP: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread runs a loop from now on.
pub(crate) fn begin_loop() {
    IS_LOOP.set(true);
}

/// Whether the calling thread runs a loop.
pub fn is_loop() -> bool {
    IS_LOOP.get()
}

/// Says that what follows may wait.
///
/// # Panics
/// On a loop's thread, in builds with debug assertions.
#[track_caller]
pub fn may_wait() {
    debug_assert!(
        !is_loop(),
        "a loop would wait here, and with it all volumes that it serves"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReactorThread;
    use std::sync::mpsc::channel;

    #[test]
    fn a_loop_may_not_wait_and_others_may() {
        may_wait();
        let thread = ReactorThread::start("waits", 1).unwrap();
        let (give, take) = channel();
        thread.remote().run(move |_| {
            let waited = std::panic::catch_unwind(may_wait);
            let _ = give.send((is_loop(), waited.is_err()));
        });
        assert_eq!(take.recv().unwrap(), (true, true));
        assert!(!is_loop());
    }
}
