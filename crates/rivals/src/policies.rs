//! The table of the policies: one more is a row here, and the contract tests run over it.

use crate::{Arc, Cache, Lirs, Lru, Nhit3, S3Fifo, Sieve, TwoQ, WTinyLfu};

/// A policy by name.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name in tables and on command lines.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// An empty cache of so many entries.
    pub make: fn(usize) -> Box<dyn Cache>,
}

/// Every policy that does not have to know the future.
pub const POLICIES: &[Row] = &[
    Row {
        name: "lru",
        about: "evicts the least recently used",
        make: |capacity| Box::new(Lru::new(capacity)),
    },
    Row {
        name: "nhit3",
        about: "Open CAS's NHIT: admitted at the third use once 80 % is filled; LRU",
        make: |capacity| Box::new(Nhit3::new(capacity)),
    },
    Row {
        name: "arc",
        about: "keys seen once and seen again, in shares that adapt",
        make: |capacity| Box::new(Arc::new(capacity)),
    },
    Row {
        name: "lirs",
        about: "by the distance between the last two uses; 1 % for high ones",
        make: |capacity| Box::new(Lirs::new(capacity)),
    },
    Row {
        name: "2q",
        about: "a queue of 25 % before the LRU list, 50 % remembered",
        make: |capacity| Box::new(TwoQ::new(capacity)),
    },
    Row {
        name: "s3-fifo",
        about: "a small queue of 10 %, a main queue, 90 % remembered",
        make: |capacity| Box::new(S3Fifo::new(capacity)),
    },
    Row {
        name: "sieve",
        about: "a queue and a hand that spares what was used",
        make: |capacity| Box::new(Sieve::new(capacity)),
    },
    Row {
        name: "w-tinylfu",
        about: "a window of 1 %, then admitted by estimated frequency",
        make: |capacity| Box::new(WTinyLfu::new(capacity)),
    },
];
