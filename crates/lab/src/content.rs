//! Self-describing blocks: every byte follows from the block's number and version.

use crate::chance::scatter;

/// Bytes of a block.
pub const BLOCK: usize = units::BLOCK;
const MAGIC: u64 = 0x434f_4e56_4543_5431;

/// The content of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Zeroes.
    Zero,
    /// The data of a version.
    Data(u32),
}

/// Head of a block: what it is, where it belongs, its version, and a checksum of the two, from which the rest of
/// its bytes follow.
fn head(block: u64, version: u32) -> [u64; 4] {
    let sum = scatter(scatter(block) ^ u64::from(version));
    [MAGIC, block, u64::from(version), sum]
}

/// What follows the head: a word for each place, other for each checksum.
fn tail(sum: u64, index: usize) -> u64 {
    sum.wrapping_add((index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Writes a version's data.
pub fn write(block: u64, version: u32, into: &mut [u8]) {
    let head = head(block, version);
    for (index, bytes) in into.chunks_exact_mut(8).enumerate() {
        let word = match index {
            0..4 => head[index],
            _ => tail(head[3], index),
        };
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

/// Reads what a block holds, and checks every byte of it.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn read(block: u64, bytes: &[u8]) -> Result<Content, String> {
    let word = |index: usize| {
        let bytes = bytes[8 * index..8 * index + 8].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    };
    let words = bytes.len() / 8;
    if word(0) != MAGIC {
        return match (0..words).all(|index| word(index) == 0) {
            true => Ok(Content::Zero),
            false => Err(format!(
                "begins with {:016x}, which was never written",
                word(0)
            )),
        };
    }
    if word(1) != block {
        return Err(format!("holds the data of block {}", word(1)));
    }
    let version = word(2) as u32;
    let head = head(block, version);
    // All of it in one loop, which the processor vectorises.
    let off = (4..words).fold(0, |off, index| off | (word(index) ^ tail(head[3], index)));
    if off == 0 && word(2) == head[2] && word(3) == head[3] {
        return Ok(Content::Data(version));
    }
    let broken = (2..4).find(|index| word(*index) != head[*index]);
    let broken = broken.or_else(|| (4..words).find(|index| word(*index) != tail(head[3], *index)));
    Err(format!(
        "holds version {version} only up to byte {}",
        8 * broken.unwrap_or(words)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_again() {
        let mut bytes = vec![0; BLOCK];
        assert_eq!(read(7, &bytes), Ok(Content::Zero));
        write(7, 3, &mut bytes);
        assert_eq!(read(7, &bytes), Ok(Content::Data(3)));
    }

    #[test]
    fn damage_is_seen_wherever_it_is() {
        let mut bytes = vec![0; BLOCK];
        write(7, 3, &mut bytes);
        assert!(read(8, &bytes).unwrap_err().contains("block 7"));
        for at in [0, 24, BLOCK / 2, BLOCK - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(read(7, &damaged).is_err(), "byte {at}");
        }
        let mut torn = bytes.clone();
        let mut newer = vec![0; BLOCK];
        write(7, 4, &mut newer);
        torn[..512].copy_from_slice(&newer[..512]);
        assert!(read(7, &torn).unwrap_err().contains("only up to byte 512"));
    }
}
