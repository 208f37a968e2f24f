//! Validation of the names of objects.

use api::v1::Problem;

/// Maximum length of the name of a pool, volume or export, in bytes.
const NAME_MAX: usize = 64;

/// Validates the name of `what`: letters, digits, '-', '_' and '.', beginning with a letter.
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
        "'{}' is not a valid name for {what}: use at most {NAME_MAX} letters, digits, '-', '_' \
         and '.', beginning with a letter",
        name.escape_debug()
    )))
}
