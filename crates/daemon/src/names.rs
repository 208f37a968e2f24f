//! Names of what users create.

use api::v1::Problem;

/// Longest name of a pool, volume or export, in bytes.
const NAME_MAX: usize = 64;

/// Checks the name of `what`: letters, digits, '-', '_' and '.', a letter first.
///
/// # Errors
/// `Invalid` for any other name.
pub fn check_name(what: &str, name: &str) -> Result<(), Problem> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() <= NAME_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(good)
    {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "'{}' cannot be the name of {what}: use at most {NAME_MAX} letters, digits, '-', '_' \
             and '.', a letter first",
        name.escape_debug()
    )))
}
