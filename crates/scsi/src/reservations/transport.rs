//! Transport identifiers of iSCSI initiator ports (SPC-4 7.6.4.6, table 390).

use crate::fields::{u8_at, u16_at};

/// Name with initiator port identifier (TPID FORMAT 01b) of iSCSI (protocol 5h).
const PORT_OF_ISCSI: u8 = 0x45;
/// Longest name, in bytes: a name of 223, `,i,0x`, twelve digits and the end.
const NAME_MAX: usize = 241;
/// The separator between the name and the ISID.
const SEPARATOR: &str = ",i,0x";

/// An initiator port as bytes.
pub(super) fn encode(initiator: &str) -> Vec<u8> {
    let mut name = initiator.as_bytes().to_vec();
    name.push(0);
    name.resize(name.len().next_multiple_of(4).max(20), 0);
    let mut id = vec![PORT_OF_ISCSI, 0];
    id.extend((name.len() as u16).to_be_bytes());
    id.extend(name);
    id
}

/// Whether a text is the name of an initiator port: `NAME,i,0x` and twelve hexadecimal digits.
pub(super) fn is_port(name: &str) -> bool {
    let Some((name, isid)) = name.split_once(SEPARATOR) else {
        return false;
    };
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b',' && !byte.is_ascii_uppercase();
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain) && isid.len() == 12 && isid.bytes().all(is_digit)
}

/// The initiator port that bytes begin with, and how many they are. A name alone, without its ISID,
/// names no port and is refused.
pub(super) fn parse(bytes: &[u8]) -> Option<(String, usize)> {
    let len = usize::from(u16_at(bytes, 2));
    if u8_at(bytes, 0) != PORT_OF_ISCSI || len < 20 || !len.is_multiple_of(4) {
        return None;
    }
    let field = bytes.get(4..4 + len)?;
    let end = field.iter().position(|byte| *byte == 0)?;
    if end >= NAME_MAX || field[end..].iter().any(|byte| *byte != 0) {
        return None;
    }
    let name = std::str::from_utf8(&field[..end]).ok()?.to_lowercase();
    is_port(&name).then_some((name, 4 + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_as_it_was_written() {
        for name in [
            "iqn.a,i,0x00023d000001",
            "iqn.2026-11.long:er,i,0x0123456789ab",
        ] {
            let bytes = encode(name);
            assert_eq!(parse(&bytes), Some((name.to_owned(), bytes.len())));
            assert!(bytes.len() >= 24 && bytes.len().is_multiple_of(4));
            assert_eq!(parse(&bytes[..bytes.len() - 1]), None, "cut off");
        }
    }

    #[test]
    fn what_names_no_port_is_refused() {
        for name in [
            "iqn.a",
            ",i,0x00023d000001",
            "iqn.a,i,0x00023d00001",
            "iqn.a,i,0x00023d00000g",
            "iqn. a,i,0x00023d000001",
            "iqn.a\n,i,0x00023d000001",
        ] {
            assert_eq!(parse(&encode(name)), None, "{name}");
        }
        let mut name_alone = encode("iqn.a,i,0x00023d000001");
        name_alone[0] = 0x05;
        assert_eq!(parse(&name_alone), None);
    }
}
