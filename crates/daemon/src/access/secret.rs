//! Random secrets and their hashes.

use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::Write as _;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `BYTES` random bytes from the system, in hexadecimal digits.
///
/// # Errors
/// When the system's random number generator fails.
pub fn random_hex<const BYTES: usize>() -> std::io::Result<String> {
    let mut bytes = [0; BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| std::io::Error::other("the system's random number generator failed"))?;
    Ok(hex(&bytes))
}

/// SHA-256 of the concatenated parts, in hexadecimal digits. The secrets hashed here have 256
/// random bits, so a slow password hash is not needed.
pub fn sha256_hex(parts: &[&[u8]]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    parts.iter().for_each(|part| context.update(part));
    hex(context.finish().as_ref())
}

/// Compares two texts in constant time.
pub fn same(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && one
            .bytes()
            .zip(other.bytes())
            .fold(0, |differs, (one, other)| differs | (one ^ other))
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_the_standard() {
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(&[b"a", b"bc"]), abc);
    }

    #[test]
    fn random_secrets_are_long_and_distinct() {
        let words = [random_hex::<32>().unwrap(), random_hex::<32>().unwrap()];
        assert!(words[0].len() == 64 && words[0] != words[1]);
        assert!(same(&words[0], &words[0].clone()) && !same(&words[0], &words[1]));
        assert!(!same("a", ""));
    }
}
