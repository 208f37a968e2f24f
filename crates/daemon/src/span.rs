//! Durations in the configuration: `30s`, `10m`, `12h`, `30d`.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A duration in whole seconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Span(pub Duration);

impl Span {
    /// Parses a number with its unit.
    ///
    /// # Errors
    /// One sentence that says how to write it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("'{text}' is not a duration: write it as \"30s\", \"10m\", \"12h\" or \"30d\"")
        };
        let unit = text.chars().next_back().ok_or_else(wrong)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let number = &text[..text.len() - 1];
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let seconds = number.checked_mul(seconds).ok_or_else(wrong)?;
        Ok(Self(Duration::from_secs(seconds)))
    }

    /// Checks the duration against limits.
    ///
    /// # Errors
    /// One sentence with the limits.
    pub fn within(self, least: &str, most: &str) -> Result<Self, String> {
        let fits = Self::parse(least)? <= self && self <= Self::parse(most)?;
        if fits {
            return Ok(self);
        }
        let seconds = self.0.as_secs();
        Err(format!(
            "{seconds} s is out of range: it can be {least} to {most}"
        ))
    }
}

/// In the largest unit that gives a whole number.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let units = [(86_400, 'd'), (3600, 'h'), (60, 'm')];
        let whole = |(unit, _): &&(u64, char)| seconds > 0 && seconds.is_multiple_of(*unit);
        let (unit, letter) = units.iter().find(whole).unwrap_or(&(1, 's'));
        write!(f, "{}{letter}", seconds / unit)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}
