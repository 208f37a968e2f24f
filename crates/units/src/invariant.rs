//! Invariants that hold at any time while the engine runs, in whatever order its tasks run: checked where they would be broken, not
//! where a host sees it.
//!
//! A race mostly ends well: what was freed too early is not used again before a read of it ends, a copy that is wrong is
//! not read. An invariant detects each, so that the simulation finds races in seconds. Only threads that requested it
//! ([`watch`]) look, in the builds that can switch known bugs on ([`crate::mutation`]); in all others [`is_watched`] is
//! false for the compiler, and the checks cost nothing. A violation is recorded on the thread where it happened, and
//! changes nothing.

#[cfg(any(debug_assertions, feature = "mutations"))]
thread_local! {
    static WATCHED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static BREACH: std::cell::RefCell<Option<String>> = const { std::cell::RefCell::new(None) };
}

/// Whether the calling thread looks.
#[inline]
pub fn is_watched() -> bool {
    #[cfg(any(debug_assertions, feature = "mutations"))]
    return WATCHED.get();
    #[cfg(not(any(debug_assertions, feature = "mutations")))]
    false
}

/// Whether the calling thread looks from now on; returns whether it did before. In other builds it never does.
pub fn watch(is_watched: bool) -> bool {
    #[cfg(any(debug_assertions, feature = "mutations"))]
    return WATCHED.replace(is_watched);
    #[cfg(not(any(debug_assertions, feature = "mutations")))]
    {
        let _ = is_watched;
        false
    }
}

/// Notes what does not hold, as `breach` tells; the first one counts.
#[inline]
pub fn check(breach: impl FnOnce() -> Option<String>) {
    if !is_watched() {
        return;
    }
    #[cfg(any(debug_assertions, feature = "mutations"))]
    if let Some(text) = breach() {
        BREACH.with_borrow_mut(|first| {
            first.get_or_insert(text);
        });
    }
    #[cfg(not(any(debug_assertions, feature = "mutations")))]
    drop(breach);
}

/// Takes the first breach on the calling thread since it was last asked for.
pub fn take() -> Option<String> {
    #[cfg(any(debug_assertions, feature = "mutations"))]
    return BREACH.take();
    #[cfg(not(any(debug_assertions, feature = "mutations")))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_breach_is_kept_until_it_is_taken() {
        check(|| Some("nobody looks".into()));
        assert_eq!(take(), None);
        assert!(!watch(true));
        check(|| None);
        assert_eq!(take(), None);
        check(|| Some("one".into()));
        check(|| Some("two".into()));
        assert_eq!(take().as_deref(), is_watched().then_some("one"));
        assert_eq!(take(), None);
    }
}
