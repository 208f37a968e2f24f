//! The interface of all policies.

/// What became of a use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was there.
    Hit,
    /// It was not, and was taken in.
    Admitted,
    /// It was not, and was left out.
    Bypassed,
}

/// A cache of entries of equal size under one policy: which of them stay.
pub trait Cache {
    /// A use of `key`; each use is reported, in order. At no time are there more entries than the
    /// capacity that the cache was made with.
    ///
    /// What leaves for a key that is admitted is appended to `gone`, whatever that holds already;
    /// there may be none, one or, with some policies, more than one at a time. It is never the key
    /// itself. Nothing leaves for a hit or for a key that is bypassed.
    fn access(&mut self, key: u64, gone: &mut Vec<u64>) -> Outcome;

    /// Whether an entry is there now; this is no use of it.
    fn contains(&self, key: u64) -> bool;
}
