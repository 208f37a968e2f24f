//! Debounces findings into alerts: each is raised and cleared once, even if the condition flaps.
//! Pure: time is passed in.

use api::v1::{EventCode, Subject};
use std::collections::{BTreeMap, BTreeSet};

/// Key of an alert: condition and subject.
pub type Key = (EventCode, Subject);

/// A condition found by a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Kind of the condition.
    pub code: EventCode,
    /// With what.
    pub subject: Subject,
    /// Degree of the condition, if it has any; else 0.
    pub grade: u8,
    /// What is wrong, and why.
    pub message: String,
    /// What to do.
    pub advice: String,
}

impl Finding {
    /// Key of its alert.
    pub fn key(&self) -> Key {
        (self.code, self.subject.clone())
    }
}

/// Changes of alerts after a check.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct AlertChanges {
    /// Raised or worsened alerts.
    pub raised: Vec<Finding>,
    /// Cleared alerts.
    pub cleared: Vec<Key>,
}

/// Seconds that a condition must persist before it is raised, and must be absent before it is
/// cleared. Conditions that are observed only while they occur need a long absence.
fn patience(code: EventCode) -> (u64, u64) {
    const HOUR: u64 = 3600;
    match code {
        EventCode::DriveSlow => (0, 60),
        EventCode::DriveFailing => (0, HOUR),
        EventCode::DriveCorrupt => (0, 24 * HOUR),
        EventCode::LoginFailed => (0, HOUR / 6),
        EventCode::HostsCollide => (0, 60),
        EventCode::PoolAbsent | EventCode::PoolFailed | EventCode::PoolFull => (0, 10),
        EventCode::TargetUnmet | EventCode::PromiseUnmet => (0, 300),
        EventCode::FlashWearing => (HOUR / 6, HOUR),
        _ => (0, 0),
    }
}

/// Findings not raised yet and alerts no longer found, with the time of the change: seconds of a
/// monotonic clock.
#[derive(Default)]
pub struct Watch {
    found: BTreeMap<Key, u64>,
    away: BTreeMap<Key, u64>,
}

impl Watch {
    /// Changes after a check at `up_s`, given the `open` alerts and their grades. The worst grade
    /// counts if a condition is found twice.
    pub fn look(
        &mut self,
        up_s: u64,
        open: &BTreeMap<Key, u8>,
        findings: impl IntoIterator<Item = Finding>,
    ) -> AlertChanges {
        let mut now: BTreeMap<Key, Finding> = BTreeMap::new();
        for finding in findings {
            match now.get(&finding.key()) {
                Some(known) if known.grade >= finding.grade => {}
                _ => drop(now.insert(finding.key(), finding)),
            }
        }
        let keys: BTreeSet<Key> = now.keys().cloned().collect();
        self.found
            .retain(|key, _| keys.contains(key) && !open.contains_key(key));
        self.away
            .retain(|key, _| open.contains_key(key) && !keys.contains(key));
        let mut told = AlertChanges::default();
        for (key, finding) in now {
            let worse = match open.get(&key) {
                Some(grade) => finding.grade > *grade,
                None => {
                    let since_s = *self.found.entry(key).or_insert(up_s);
                    up_s.saturating_sub(since_s) >= patience(finding.code).0
                }
            };
            if worse {
                told.raised.push(finding);
            }
        }
        for key in open.keys().filter(|key| !keys.contains(key)) {
            let since_s = *self.away.entry(key.clone()).or_insert(up_s);
            if up_s.saturating_sub(since_s) >= patience(key.0).1 {
                told.cleared.push(key.clone());
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::v1::SubjectKind;

    fn finding(code: EventCode, grade: u8) -> Finding {
        Finding {
            code,
            subject: Subject {
                kind: SubjectKind::Drive,
                pool: Some("tank".to_owned()),
                name: "file:/a".to_owned(),
            },
            grade,
            message: String::new(),
            advice: String::new(),
        }
    }

    /// Runs one check per second with the finding of `found` and records changes: `+` or `-` with
    /// the second.
    fn lived(code: EventCode, seconds: u64, found: impl Fn(u64) -> Option<u8>) -> Vec<(u64, char)> {
        let (mut watch, mut open, mut all) = (Watch::default(), BTreeMap::new(), Vec::new());
        for up_s in 0..seconds {
            let told = watch.look(up_s, &open, found(up_s).map(|grade| finding(code, grade)));
            for raised in told.raised {
                all.push((up_s, '+'));
                open.insert(raised.key(), raised.grade);
            }
            for key in told.cleared {
                all.push((up_s, '-'));
                open.remove(&key);
            }
        }
        all
    }

    #[test]
    fn alert_is_raised_once_and_cleared_once() {
        let found = |up_s: u64| (5..20).contains(&up_s).then_some(0);
        let told = lived(EventCode::LegOut, 100, found);
        assert_eq!(told, [(5, '+'), (20, '-')]);
    }

    #[test]
    fn flapping_condition_is_one_alert() {
        // Slow in every other second for five minutes.
        let found = |up_s: u64| (up_s < 300 && up_s.is_multiple_of(2)).then_some(0);
        let told = lived(EventCode::DriveSlow, 1000, found);
        assert_eq!(told, [(0, '+'), (359, '-')]);
        // Errors every half hour belong to one alert.
        let found = |up_s: u64| (up_s < 7200 && up_s.is_multiple_of(1800)).then_some(0);
        let told = lived(EventCode::DriveFailing, 20_000, found);
        assert_eq!(told, [(0, '+'), (5401 + 3600, '-')]);
    }

    #[test]
    fn debounced_condition_is_not_raised_early() {
        let found = |up_s: u64| (!up_s.is_multiple_of(700)).then_some(0);
        assert_eq!(lived(EventCode::FlashWearing, 600, found), []);
        assert_eq!(lived(EventCode::FlashWearing, 650, found), [(601, '+')]);
        let often = |up_s: u64| (!up_s.is_multiple_of(100)).then_some(0);
        assert_eq!(lived(EventCode::FlashWearing, 10_000, often), []);
    }

    #[test]
    fn only_a_worse_grade_is_reported_again() {
        let found = |up_s: u64| match up_s {
            10..20 => Some(80),
            20..30 => Some(90),
            30..40 => Some(80),
            40..50 => Some(95),
            _ => None,
        };
        let told = lived(EventCode::PoolFilling, 100, found);
        assert_eq!(told, [(10, '+'), (20, '+'), (40, '+'), (50, '-')]);
        let mut watch = Watch::default();
        let twice = [
            finding(EventCode::PoolFilling, 90),
            finding(EventCode::PoolFilling, 80),
        ];
        let told = watch.look(0, &BTreeMap::new(), twice);
        assert_eq!(told.raised, [finding(EventCode::PoolFilling, 90)]);
    }
}
