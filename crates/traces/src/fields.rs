//! Fields of records: numbers out of text and bytes, and text as errors show it.

use crate::SECTOR;
use crate::input::Fault;

/// Characters of a field that an error shows.
const SHOWN_MAX: usize = 40;

/// A field for an error: short, and with whatever could upset a terminal escaped.
pub(crate) fn shown(field: &str) -> String {
    let short: String = field.chars().take(SHOWN_MAX).collect();
    let more = if short.len() < field.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

/// A whole number without sign out of a text field.
pub(crate) fn number(name: &str, field: &str) -> Result<u64, Fault> {
    let wrong = || Fault::wrong(format!("{name} is {}, not a whole number", shown(field)));
    // `parse` alone would take a plus sign.
    if !field.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    field.parse().map_err(|_| wrong())
}

/// The `N` bytes of a binary record at a place that the record's type has.
pub(crate) fn part<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

/// Bytes of so many sectors.
pub(crate) fn sectors(name: &str, count: u64) -> Result<u64, Fault> {
    let bytes = count.checked_mul(SECTOR);
    bytes.ok_or_else(|| {
        Fault::wrong(format!(
            "{name} is {count}, above the limit of 2^55 sectors"
        ))
    })
}
