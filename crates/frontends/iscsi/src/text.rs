//! Text segments: key-value pairs (RFC 7143, sections 6.1 and 11.10).

/// Maximum length of a key, and of a value (6.1; CHAP's may be longer).
const KEY_MAX: usize = 63;
const VALUE_MAX: usize = 2100;
/// Maximum number of pairs.
const PAIRS_MAX: usize = 64;

/// Ordered pairs.
pub(crate) type Pairs = Vec<(String, String)>;

/// A malformed text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadText;

/// Parses a whole text. A duplicate key is an error.
pub(crate) fn parse(text: &[u8]) -> Result<Pairs, BadText> {
    let mut pairs = Pairs::new();
    for pair in text.split(|byte| *byte == 0) {
        if pair.is_empty() {
            continue;
        }
        let pair = std::str::from_utf8(pair).map_err(|_| BadText)?;
        let (key, value) = pair.split_once('=').ok_or(BadText)?;
        let is_key = |key: &str| {
            let mut bytes = key.bytes();
            bytes
                .next()
                .is_some_and(|byte| byte.is_ascii_uppercase() || byte == b'i')
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || b".-+@_#".contains(&byte))
        };
        let twice = pairs.iter().any(|(known, _)| known == key);
        if !is_key(key)
            || key.len() > KEY_MAX
            || value.len() > VALUE_MAX
            || twice
            || pairs.len() == PAIRS_MAX
        {
            return Err(BadText);
        }
        pairs.push((key.to_owned(), value.to_owned()));
    }
    Ok(pairs)
}

/// Serialises pairs.
pub(crate) fn encode(pairs: &[(String, String)]) -> Vec<u8> {
    let mut text = Vec::new();
    for (key, value) in pairs {
        text.extend(key.as_bytes());
        text.push(b'=');
        text.extend(value.as_bytes());
        text.push(0);
    }
    text
}

/// The value of a key.
pub(crate) fn find<'a>(pairs: &'a Pairs, key: &str) -> Option<&'a str> {
    let mut found = pairs.iter().filter(|(known, _)| known == key);
    found.next().map(|(_, value)| value.as_str())
}

/// The first supported entry of the initiator's list (6.2.1).
pub(crate) fn first_of<'a>(list: &str, known: &[&'a str]) -> Option<&'a str> {
    list.split(',')
        .find_map(|offered| known.iter().find(|known| **known == offered).copied())
}

/// Parses a decimal or hexadecimal number (6.1: numerical-value).
pub(crate) fn number(value: &str) -> Option<u32> {
    let hex = value
        .strip_prefix("0x")
        .or_else(|| value.strip_prefix("0X"));
    match hex {
        Some(hex) if !hex.starts_with('+') => u32::from_str_radix(hex, 16).ok(),
        None if !value.starts_with('+') => value.parse().ok(),
        _ => None,
    }
}

/// Parses hexadecimal or base64 bytes (6.1: large-binary-value), at most `most`.
pub(crate) fn binary(value: &str, most: usize) -> Option<Vec<u8>> {
    let (form, digits) = (value.get(..2)?, value.get(2..)?);
    let bytes = match form {
        "0x" | "0X" => from_hex(digits),
        "0b" | "0B" => from_base64(digits),
        _ => None,
    }?;
    (!bytes.is_empty() && bytes.len() <= most).then_some(bytes)
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let mut nibbles: Vec<u8> = digits.bytes().map(digit).collect::<Option<_>>()?;
    if nibbles.len() % 2 == 1 {
        nibbles.insert(0, 0);
    }
    Some(
        nibbles
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect(),
    )
}

fn from_base64(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.trim_end_matches('=');
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(bytes)
}

/// Bytes in hexadecimal.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = "0x".to_owned();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_round_trip() {
        let text = b"HeaderDigest=CRC32C,None\0InitialR2T=No\0iSCSIProtocolLevel=1\0";
        let pairs = parse(text).unwrap();
        assert_eq!(pairs.len(), 3);
        assert_eq!(find(&pairs, "InitialR2T"), Some("No"));
        assert_eq!(encode(&pairs), text);
    }

    #[test]
    fn malformed_text_is_refused() {
        let many: String = (0..65).map(|n| format!("X-a{n}=1\0")).collect();
        let long = format!("A={}\0", "x".repeat(VALUE_MAX + 1));
        for text in [
            "A",
            "=1",
            "A=1\0A=2\0",
            "a=1",
            "A b=1",
            "\u{ff}=1",
            &many,
            &long,
        ] {
            assert_eq!(parse(text.as_bytes()), Err(BadText), "{text}");
        }
        assert!(parse(b"A=\xff\0").is_err());
        assert_eq!(parse(b""), Ok(vec![]));
    }

    #[test]
    fn numbers_and_binaries_are_parsed_in_every_form() {
        assert_eq!(number("8192"), Some(8192));
        assert_eq!(number("0x2000"), Some(8192));
        for bad in ["", "+1", "-1", "0x", "0x+1", "4294967296", "1 "] {
            assert_eq!(number(bad), None, "{bad}");
        }
        assert_eq!(binary("0x0aff", 2), Some(vec![0x0a, 0xff]));
        assert_eq!(binary("0xaff", 2), Some(vec![0x0a, 0xff]));
        assert_eq!(binary("0bCv8=", 2), Some(vec![0x0a, 0xff]));
        for bad in ["0x", "0xzz", "0b?", "12", "0x010203", "", "é"] {
            assert_eq!(binary(bad, 2), None, "{bad}");
        }
        assert_eq!(to_hex(&[1, 0xab]), "0x01ab");
    }
}
