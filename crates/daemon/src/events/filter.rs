//! Event filters. Pure functions.

use api::v1::{Event, EventCode, Severity};

/// Filter of events.
#[derive(Clone, Default)]
pub struct Filter {
    /// Only events with a smaller number.
    pub before: Option<u64>,
    /// Minimum severity.
    pub severity: Option<Severity>,
    /// Only these codes; empty: all.
    pub codes: Vec<EventCode>,
    /// Only events of this pool.
    pub pool: Option<String>,
}

impl Filter {
    /// Whether an event matches.
    pub fn takes(&self, event: &Event) -> bool {
        let of_pool = |pool: &String| {
            event.subject.pool.as_ref() == Some(pool) || event.subject.name == *pool
        };
        self.before.is_none_or(|before| event.number < before)
            && self
                .severity
                .is_none_or(|severity| event.severity >= severity)
            && (self.codes.is_empty() || self.codes.contains(&event.code))
            && self.pool.as_ref().is_none_or(of_pool)
    }
}
