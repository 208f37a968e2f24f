//! Why something was not measured.

use std::fmt::Display;

/// One sentence for people.
pub type Failure = String;
/// What was wanted, or why not.
pub type Result<T> = std::result::Result<T, Failure>;

/// Says what was being done when something failed.
pub fn while_doing<E: Display>(what: &str) -> impl FnOnce(E) -> Failure {
    move |failed| format!("{what}: {failed}")
}
