//! Sizes as people write them: `4096`, `64k`, `8GiB`, `1.5T`.

use std::fmt;

/// Why a size could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeError {
    text: String,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a size: write a number of bytes or one like 512M, 8GiB, 1.5T",
            self.text
        )
    }
}

impl std::error::Error for SizeError {}

const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];

/// Reads a size in bytes. Suffixes are powers of 1024 in either case (`k`, `KiB`, `G`, `GiB`);
/// a fraction is allowed with a suffix and is rounded down to whole bytes.
///
/// # Errors
/// When the text is no such number, or the size passes 2^64 - 1.
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    let error = || SizeError {
        text: text.to_owned(),
    };
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(digits);
    let suffix = suffix.trim().to_ascii_uppercase();
    let unit = suffix
        .strip_suffix("IB")
        .or_else(|| suffix.strip_suffix('B'))
        .unwrap_or(&suffix);
    let shift = match UNITS.iter().position(|known| *known == unit) {
        Some(index) => 10 * (index as u32 + 1),
        None if unit.is_empty() => 0,
        None => return Err(error()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift).ok_or_else(error);
    }
    let fraction: f64 = number.parse().map_err(|_| error())?;
    let bytes = fraction * (1u64 << shift) as f64;
    if shift == 0 || bytes >= u64::MAX as f64 {
        return Err(error());
    }
    Ok(bytes as u64)
}

/// Writes a size in bytes for people: at most four digits and a binary unit.
pub fn format_bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let exponent = (63 - bytes.leading_zeros()) / 10;
    let value = bytes as f64 / (1u64 << (10 * exponent)) as f64;
    let unit = UNITS[exponent as usize - 1];
    if value.fract() == 0.0 {
        format!("{value:.0} {unit}iB")
    } else {
        format!("{value:.1} {unit}iB")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 65_536),
            ("8GiB", 8 << 30),
            ("8 GB", 8 << 30),
            ("1.5T", 3 << 39),
            ("256TiB", 256 << 40),
            ("12B", 12),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "G",
            "-1",
            "1.5",
            "8X",
            "1..2G",
            "99999999999999999999",
            "17E",
        ] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (256 << 40, "256 TiB"),
        ] {
            assert_eq!(format_bytes(bytes), text);
        }
    }
}
