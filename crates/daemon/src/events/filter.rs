//! Which events somebody asks for. Pure.

use api::v1::{Event, EventCode, Severity};

/// Which events are asked for.
#[derive(Clone, Default)]
pub struct Filter {
    /// Only those with a smaller number.
    pub before: Option<u64>,
    /// Only those that matter at least so much.
    pub severity: Option<Severity>,
    /// Only those of these codes; all when there is none.
    pub codes: Vec<EventCode>,
    /// Only those of this pool.
    pub pool: Option<String>,
}

impl Filter {
    /// Whether an event is one of them.
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
