//! Rate-limited log messages of an export, since monitors and guests can cause them at any rate.

use reactor::LogLimit;
use std::fmt::Display;

/// The log of an export, rate-limited across all of its connections.
#[derive(Debug)]
pub(crate) struct Log {
    export: String,
    limit: LogLimit,
}

impl Log {
    pub(crate) fn new(export: String) -> Self {
        let limit = LogLimit::new();
        Self { export, limit }
    }

    /// A regular event.
    pub(crate) fn info(&self, what: impl Display) {
        if let Some(left_out) = self.limit.admit() {
            tracing::info!(export = self.export, left_out, "{what}");
        }
    }

    /// A fault of a monitor or guest.
    pub(crate) fn warn(&self, what: impl Display) {
        if let Some(left_out) = self.limit.admit() {
            tracing::warn!(export = self.export, left_out, "{what}");
        }
    }

    /// An event that ends a queue or session.
    pub(crate) fn error(&self, what: impl Display) {
        if let Some(left_out) = self.limit.admit() {
            tracing::error!(export = self.export, left_out, "{what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    /// Counts messages.
    struct Counter(Arc<AtomicUsize>);

    impl Subscriber for Counter {
        fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _span: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _span: &Id, _values: &Record<'_>) {}

        fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

        fn event(&self, _event: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn enter(&self, _span: &Id) {}

        fn exit(&self, _span: &Id) {}
    }

    #[test]
    fn peer_cannot_flood_the_log() {
        let logged = Arc::new(AtomicUsize::new(0));
        tracing::subscriber::with_default(Counter(logged.clone()), || {
            let log = Log::new("disk".into());
            for _ in 0..10_000 {
                log.info("monitor connected");
                log.error("queue 0 stopped");
                log.warn("disconnecting the monitor");
            }
        });
        let logged = logged.load(Ordering::Relaxed);
        assert!((1..1000).contains(&logged), "{logged} messages");
    }
}
