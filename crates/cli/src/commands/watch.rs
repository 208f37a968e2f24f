//! Repeated output of `--watch`.

use crate::Failure;
use crate::show::print_styled;
use std::io::IsTerminal;
use std::time::Duration;

/// Limits of the `--watch` period, in seconds.
const PERIOD_MIN: f64 = 0.1;
const PERIOD_MAX: f64 = 86_400.0;

/// The interval of repeated output.
pub struct ReportInterval(Option<Duration>);

impl ReportInterval {
    /// One report, or one every `seconds`.
    ///
    /// # Errors
    /// When the period is out of range.
    pub fn new(seconds: Option<f64>) -> Result<Self, Failure> {
        match seconds {
            None => Ok(Self(None)),
            Some(seconds) if (PERIOD_MIN..=PERIOD_MAX).contains(&seconds) => {
                Ok(Self(Some(Duration::from_secs_f64(seconds))))
            }
            Some(seconds) => Err(Failure::Usage(format!(
                "--watch {seconds} is out of range: write {PERIOD_MIN} to {PERIOD_MAX} seconds"
            ))),
        }
    }

    /// Waits for the next report; false after the last one.
    pub fn next(&self) -> bool {
        match self.0 {
            Some(period) => {
                std::thread::sleep(period);
                true
            }
            None => false,
        }
    }
}

/// Clears the terminal before a repeated report.
///
/// # Errors
/// When the output is closed.
pub fn clear(pace: &ReportInterval) -> Result<(), Failure> {
    match pace.0.is_some() && std::io::stdout().is_terminal() {
        true => print_styled("\x1b[H\x1b[2J"),
        false => Ok(()),
    }
}
