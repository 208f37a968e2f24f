//! What holds at any time while the engine runs, whatever order its tasks go in: checked where it would be broken, not
//! where a host sees it.
//!
//! A race mostly ends well: what was freed too early is not used again before a read of it ends, a copy that is wrong is
//! not read. An invariant tells of each, so that the simulation finds races in seconds. Only the builds that can switch
//! known bugs on ([`crate::mutation`]) look; in all others [`IS_WATCHED`] is false and the checks cost nothing. A breach
//! is kept for whoever asks, on the thread where it happened, and changes nothing.

/// Whether this build looks.
pub const IS_WATCHED: bool = cfg!(any(debug_assertions, feature = "mutations"));

#[cfg(any(debug_assertions, feature = "mutations"))]
thread_local! {
    static BREACH: std::cell::RefCell<Option<String>> = const { std::cell::RefCell::new(None) };
}

/// Notes what does not hold, as `breach` tells; the first one counts.
#[inline]
pub fn check(breach: impl FnOnce() -> Option<String>) {
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
        check(|| None);
        assert_eq!(take(), None);
        check(|| Some("one".into()));
        check(|| Some("two".into()));
        assert_eq!(take().as_deref(), IS_WATCHED.then_some("one"));
        assert_eq!(take(), None);
    }
}
