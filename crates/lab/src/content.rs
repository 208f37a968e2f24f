//! Blocks that say what they are: every byte follows from the block's number and version.

use crate::chance::scatter;

/// Bytes of a block.
pub const BLOCK: usize = units::BLOCK;
const MAGIC: u64 = 0x434f_4e56_4543_5431;

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Zeroes.
    Zero,
    /// The data of a version.
    Data(u32),
}

fn word(block: u64, version: u32, index: usize) -> u64 {
    match index {
        0 => MAGIC,
        1 => block,
        2 => u64::from(version),
        _ => scatter(block << 24 ^ u64::from(version) << 10 ^ index as u64),
    }
}

/// Writes a version's data.
pub fn write(block: u64, version: u32, into: &mut [u8]) {
    for (index, bytes) in into.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&word(block, version, index).to_le_bytes());
    }
}

/// Reads what a block holds, and checks every byte of it.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn read(block: u64, bytes: &[u8]) -> Result<Content, String> {
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        .collect();
    if words.iter().all(|word| *word == 0) {
        return Ok(Content::Zero);
    }
    if words[0] != MAGIC {
        return Err(format!(
            "begins with {:016x}, which was never written",
            words[0]
        ));
    }
    if words[1] != block {
        return Err(format!("holds the data of block {}", words[1]));
    }
    let version = words[2] as u32;
    let broken = (0..words.len()).find(|index| words[*index] != word(block, version, *index));
    match broken {
        Some(index) => Err(format!(
            "holds version {version} only up to byte {}",
            index * 8
        )),
        None => Ok(Content::Data(version)),
    }
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
