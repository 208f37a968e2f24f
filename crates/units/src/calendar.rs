//! Seconds since 1970 as the calendar and the clock have them, in UTC.

use std::fmt;

const DAY: u64 = 86_400;

/// A second of the Gregorian calendar, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Utc {
    /// Year, from 1970.
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
    /// 0 to 23.
    pub hour: u64,
    /// 0 to 59.
    pub minute: u64,
    /// 0 to 59.
    pub second: u64,
}

impl Utc {
    /// The date and time from seconds since 1970.
    pub fn from_unix(seconds: u64) -> Self {
        // Days since 0000-03-01: leap days are the last of their years.
        let days = seconds / DAY + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = (month_from_march + 2) % 12 + 1;
        Self {
            year: year_of_era + era * 400 + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            hour: seconds / 3600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
        }
    }
}

/// Without its seconds.
impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            ..
        } = self;
        write!(f, "{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
    }
}

/// Seconds as people say how long something will take, in one unit and rounded down.
pub fn roughly(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_those_of_the_calendar() {
        for (seconds, said) in [
            (0, (1970, 1, 1, 0, 0, 0)),
            (951_782_399, (2000, 2, 28, 23, 59, 59)),
            (951_782_400, (2000, 2, 29, 0, 0, 0)),
            (1_709_251_199, (2024, 2, 29, 23, 59, 59)),
            (1_709_251_200, (2024, 3, 1, 0, 0, 0)),
            (1_735_689_600, (2025, 1, 1, 0, 0, 0)),
        ] {
            let utc = Utc::from_unix(seconds);
            let parts = (
                utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second,
            );
            assert_eq!(parts, said, "{seconds}");
        }
        for (seconds, said) in [
            (119, "119 s"),
            (120, "2 min"),
            (7200, "2 h"),
            (172_799, "47 h"),
            (172_800, "2 days"),
        ] {
            assert_eq!(roughly(seconds), said);
        }
        assert_eq!(
            Utc::from_unix(951_782_399).to_string(),
            "2000-02-28 23:59 UTC"
        );
    }
}
