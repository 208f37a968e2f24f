//! How a command ends other than well.

use std::fmt;

/// Why a command did not end well: a sentence for people.
#[derive(Debug)]
pub struct Failure {
    message: String,
    interrupt: bool,
}

/// Result of most functions here.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// With a sentence that says what, why and what to do.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            interrupt: false,
        }
    }

    /// A person or the system asked for the end.
    pub fn interrupted() -> Self {
        Self {
            message: "interrupted".to_owned(),
            interrupt: true,
        }
    }

    /// Whether a person or the system asked for the end.
    pub fn is_interrupt(&self) -> bool {
        self.interrupt
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Says what was being done when something failed.
pub trait While<T> {
    /// Puts `doing` before the error.
    fn during(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> While<T> for std::result::Result<T, E> {
    fn during(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::new(format!("{}: {error}", doing())))
    }
}
