//! Detects hosts with the same name and ISID: each login of one ends the session of the other (RFC
//! 7143, section 6.3.5), which neither can diagnose.
//!
//! A reconnecting host ends its own session in the same way. Two hosts are assumed if logins come
//! from different addresses, or repeatedly within a short time. Pure: time is passed in.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Maximum number of names tracked per target, the newest.
const TWINS_MAX: usize = 64;
/// Time without recurrence after which a conflict is over.
const OVER: Duration = Duration::from_secs(600);
/// Minimum interval of log messages about a name.
const PAUSE: Duration = Duration::from_secs(60);
/// Maximum age of an ended session that indicates a conflict.
const SHORT: Duration = Duration::from_secs(60);
/// Number of occurrences from which an alert is raised.
const OFTEN: u32 = 3;

struct Twin {
    port: String,
    addresses: (IpAddr, IpAddr),
    times: u32,
    last: Instant,
    logged: Option<Instant>,
}

impl Twin {
    fn is_told(&self) -> bool {
        self.addresses.0 != self.addresses.1 || self.times >= OFTEN
    }

    fn sentence(&self) -> String {
        let (before, now) = self.addresses;
        let port = &self.port;
        match before == now {
            true => format!(
                "{port} logs in repeatedly from {now}, ending its own session each time: if these \
                 are two hosts, give each a unique InitiatorName"
            ),
            false => format!(
                "{port} logs in from {before} and {now}, each login ending the other's session: \
                 if these are two hosts, give each a unique InitiatorName"
            ),
        }
    }
}

/// Conflicts at one target.
#[derive(Default)]
pub(crate) struct Twins(VecDeque<Twin>);

impl Twins {
    /// Records that a login from `now` has ended the session of the same port from `before`, which
    /// was `age` old. Returns a message to log.
    pub(crate) fn note(
        &mut self,
        port: &str,
        (before, now): (IpAddr, IpAddr),
        age: Duration,
        at: Instant,
    ) -> Option<String> {
        if before == now && age >= SHORT {
            return None;
        }
        let is_over = |twin: &Twin| at.saturating_duration_since(twin.last) >= OVER;
        self.0.retain(|twin| !is_over(twin));
        let known = self.0.iter().position(|twin| twin.port == port);
        let mut twin = known.and_then(|at| self.0.remove(at)).unwrap_or(Twin {
            port: port.to_owned(),
            addresses: (before, now),
            times: 0,
            last: at,
            logged: None,
        });
        twin.addresses = (before, now);
        twin.times = twin.times.saturating_add(1);
        twin.last = at;
        let is_due = twin
            .logged
            .is_none_or(|logged| at.saturating_duration_since(logged) >= PAUSE);
        let line = (twin.is_told() && is_due).then(|| twin.sentence());
        if line.is_some() {
            twin.logged = Some(at);
        }
        if self.0.len() == TWINS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(twin);
        line
    }

    /// Present conflicts: those that occurred repeatedly and recently.
    pub(crate) fn told(&self, at: Instant) -> Vec<String> {
        let known = self.0.iter();
        let now = known.filter(|twin| {
            twin.times > 1 && twin.is_told() && at.saturating_duration_since(twin.last) < OVER
        });
        now.map(Twin::sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn ip(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn name_conflict_is_logged_once_a_minute_and_reported_while_it_lasts() {
        let (mut twins, start) = (Twins::default(), Instant::now());
        let first = twins.note("iqn.a", (ip(1), ip(2)), LONG, start).unwrap();
        assert!(
            first.contains("192.0.2.1") && first.contains("192.0.2.2"),
            "{first}"
        );
        assert!(
            twins.told(start).is_empty(),
            "once it may be a host that has moved"
        );
        let soon = start + Duration::from_secs(2);
        assert_eq!(twins.note("iqn.a", (ip(2), ip(1)), SHORT / 30, soon), None);
        assert_eq!(twins.told(soon).len(), 1);
        assert!(
            twins
                .note("iqn.a", (ip(1), ip(2)), LONG, start + PAUSE)
                .is_some()
        );
        assert!(twins.told(start + PAUSE + OVER).is_empty());
    }

    #[test]
    fn reconnecting_host_is_no_conflict_unless_constant() {
        let (mut twins, start) = (Twins::default(), Instant::now());
        for _ in 0..100 {
            assert_eq!(twins.note("iqn.a", (ip(1), ip(1)), LONG, start), None);
        }
        assert!(twins.told(start).is_empty());
        let lines = (0..10).filter_map(|_| twins.note("iqn.a", (ip(1), ip(1)), SHORT / 2, start));
        assert_eq!(lines.count(), 1);
        assert_eq!(twins.told(start).len(), 1);
    }

    #[test]
    fn tracked_names_are_bounded() {
        let (mut twins, start) = (Twins::default(), Instant::now());
        for number in 0..1000 {
            twins.note(&format!("iqn.{number}"), (ip(1), ip(2)), LONG, start);
        }
        assert_eq!(twins.0.len(), TWINS_MAX);
    }
}
