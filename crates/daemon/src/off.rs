//! Settings that may be "off".

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Deserialises a value, or nothing for "off".
///
/// # Errors
/// The error of `parse`, with "off" as an alternative.
pub(crate) fn value_or_off<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text == "off" {
        return Ok(None);
    }
    let value = parse(&text).map_err(|why| D::Error::custom(format!("{why}; or \"off\"")))?;
    Ok(Some(value))
}
