//! Schedule of automatic scrubs.

use crate::Span;
use crate::off::value_or_off;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// When and how fast pools are scrubbed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScrubSchedule {
    /// Interval; none disables the schedule.
    pub every: Option<Span>,
    /// Hour of the day (UTC), 0 to 23; ignored for intervals below a day.
    pub at: u8,
    /// Maximum read rate of a scrub, in bytes per second.
    pub rate: u64,
}

impl Default for ScrubSchedule {
    fn default() -> Self {
        Self {
            every: Some(Span(std::time::Duration::from_secs(30 * DAY))),
            at: 2,
            rate: 64 << 20,
        }
    }
}

impl ScrubSchedule {
    /// Whether a scrub is due at `now_s`, given the start of the last one (or of the schedule) at
    /// `last_s`; both in seconds since 1970. A missed scrub stays due.
    pub fn is_due(&self, last_s: u64, now_s: u64) -> bool {
        let Some(every) = self.every else {
            return false;
        };
        let every = every.0.as_secs();
        if every < DAY {
            return now_s >= last_s.saturating_add(every);
        }
        // Round down to the hour, so that the start does not drift.
        let from = (last_s / HOUR * HOUR).saturating_add(every);
        let at = u64::from(self.at) * HOUR;
        let today = from / DAY * DAY + at;
        let due = if today >= from { today } else { today + DAY };
        now_s >= due
    }
}

/// The form in the configuration file.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScrubFile {
    every: Option<Every>,
    at: Option<Hour>,
    rate: Option<Rate>,
}

impl ScrubFile {
    pub(crate) fn schedule(self) -> ScrubSchedule {
        let default = ScrubSchedule::default();
        ScrubSchedule {
            every: self.every.map_or(default.every, |every| every.0),
            at: self.at.map_or(default.at, |hour| hour.0),
            rate: self.rate.map_or(default.rate, |rate| rate.0),
        }
    }
}

struct Every(Option<Span>);

impl<'de> Deserialize<'de> for Every {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| Span::parse(text).and_then(|span| span.within("1h", "3650d"));
        value_or_off(deserializer, parse).map(Self)
    }
}

struct Hour(u8);

impl<'de> Deserialize<'de> for Hour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hour = i64::deserialize(deserializer)?;
        let fits = u8::try_from(hour).ok().filter(|hour| *hour < 24);
        fits.map(Self)
            .ok_or_else(|| D::Error::custom(format!("{hour} is not an hour: write 0 to 23")))
    }
}

struct Rate(u64);

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let rate = units::parse_bytes(&text).map_err(D::Error::custom)?;
        if rate < 1 << 20 {
            let told = format!("{text} per second is too slow: set it to at least 1M");
            return Err(D::Error::custom(told));
        }
        Ok(Self(rate))
    }
}
