//! Self-describing content that hosts write: each sector has its version, a fill that follows from it, and its
//! address. Version 0 is zeroes.

use format::crc32c;
use std::sync::LazyLock;
use units::BLOCK;

/// Bytes of a sector, the smallest LBA.
pub const SECTOR: usize = 512;
/// Sectors of a block.
pub const SECTORS: usize = BLOCK / SECTOR;

/// The content of a block, determined once for all states that have it.
#[derive(Debug)]
pub struct Facts {
    /// Its checksum.
    pub crc: u32,
    /// Whose content it is; none when it is no host's.
    pub sectors: Option<Sectors>,
}

/// A block of a host's content.
#[derive(Clone, Debug)]
pub struct Sectors {
    /// The volume that the content names.
    fill: u32,
    /// The block of that volume.
    block: u64,
    /// Content of the sectors.
    pub versions: [u32; SECTORS],
}

impl Facts {
    /// Of a block of zeroes.
    pub fn of_zeroes() -> &'static Self {
        static ZEROES: LazyLock<Facts> = LazyLock::new(|| Facts::of(&[0; BLOCK]));
        &ZEROES
    }

    /// Of a block that holds this.
    pub fn of(bytes: &[u8; BLOCK]) -> Self {
        Self::with(crc32c(bytes), bytes)
    }

    /// The same where the checksum is known.
    pub fn with(crc: u32, bytes: &[u8; BLOCK]) -> Self {
        Self {
            crc,
            sectors: Sectors::of(bytes),
        }
    }
}

impl Sectors {
    /// Of a block that holds this; none when it is no host's.
    pub fn of(bytes: &[u8; BLOCK]) -> Option<Self> {
        let (fill, first) = named_by(bytes).unwrap_or_default();
        let block = first / SECTORS as u64;
        let mut versions = [0; SECTORS];
        let sectors = (block * SECTORS as u64..).zip(bytes.chunks_exact(SECTOR));
        for (version, (at, bytes)) in versions.iter_mut().zip(sectors) {
            *version = version_of(fill, at, bytes)?;
        }
        Some(Self {
            fill,
            block,
            versions,
        })
    }

    /// Whether it is content of this block of the volume that content names `fill`.
    pub fn is_of(&self, fill: u32, block: u64) -> bool {
        (self.fill, self.block) == (fill, block) || self.versions == [0; SECTORS]
    }

    /// The first eight bytes of each sector.
    pub fn heads(&self) -> impl Iterator<Item = u64> {
        let head = |version: &u32| match version {
            0 => 0,
            version => word_of(self.fill, 0, *version, 0),
        };
        self.versions.iter().map(head)
    }
}

/// The content of sectors of a volume with a version, from `first` on.
pub fn fill(volume: u32, first: u64, version: u32, bytes: &mut [u8]) {
    for (at, bytes) in (first..).zip(bytes.chunks_exact_mut(SECTOR)) {
        for (word, into) in (0u64..).zip(bytes.chunks_exact_mut(8)) {
            into.copy_from_slice(&word_of(volume, at, version, word).to_le_bytes());
        }
    }
}

fn word_of(volume: u32, sector: u64, version: u32, word: u64) -> u64 {
    match word {
        0 => u64::from(version) << 32 | u64::from(volume),
        1 => sector,
        _ => (u64::from(version) ^ sector << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word,
    }
}

/// The volume and the block that a block's content belongs to; none when it has no content of a
/// host, or only zeroes.
pub fn owner_of(block: &[u8]) -> Option<(u32, u64)> {
    let (volume, sector) = named_by(block)?;
    let at = block.chunks_exact(SECTOR).position(is_written)?;
    let written = &block[at * SECTOR..][..SECTOR];
    version_of(volume, sector, written).map(|_| (volume, sector / SECTORS as u64))
}

fn is_written(sector: &[u8]) -> bool {
    sector[..8] != [0; 8]
}

/// The volume and the sector that a block's first sector which is not zeroes names.
fn named_by(block: &[u8]) -> Option<(u32, u64)> {
    let written = block
        .chunks_exact(SECTOR)
        .find(|sector| is_written(sector))?;
    let word = |at: usize| u64::from_le_bytes(written[at * 8..][..8].try_into().expect("8 bytes"));
    Some((word(0) as u32, word(1)))
}

/// The version that a sector holds; none when it is nothing that was ever written there.
///
/// # Panics
/// When the bytes are not a sector's.
pub fn version_of(volume: u32, sector: u64, bytes: &[u8]) -> Option<u32> {
    let (words, _) = bytes.as_chunks::<8>();
    let words: &[[u8; 8]; SECTOR / 8] = words.try_into().expect("a sector");
    let word = |at: usize| u64::from_le_bytes(words[at]);
    let version = (word(0) >> 32) as u32;
    if version == 0 {
        let sum = (0..SECTOR / 8).fold(0, |sum, at| sum | word(at));
        return (sum == 0).then_some(0);
    }
    // Without a way out at the first difference: nearly all sectors are right.
    let head = [0, 1].map(|at| word(at as usize) ^ word_of(volume, sector, version, at));
    let seed = word_of(volume, sector, version, 2) ^ 2;
    let body = (2..SECTOR / 8).fold(0, |sum, at| sum | (word(at) ^ seed ^ at as u64));
    (head == [0, 0] && body == 0).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(of: (u32, u64), versions: [u32; SECTORS]) -> [u8; BLOCK] {
        let mut bytes = [0; BLOCK];
        let first = of.1 * SECTORS as u64;
        for ((at, version), bytes) in (first..).zip(versions).zip(bytes.chunks_exact_mut(SECTOR)) {
            if version != 0 {
                fill(of.0, at, version, bytes);
            }
        }
        bytes
    }

    #[test]
    fn a_block_says_whose_it_is_and_what_its_sectors_have() {
        let versions = [0, 7, 7, 9, 0, 0, 9, 1];
        let bytes = block((3, 5), versions);
        let facts = Facts::of(&bytes);
        let sectors = facts.sectors.expect("a host's");
        assert_eq!(sectors.versions, versions);
        assert!(sectors.is_of(3, 5) && !sectors.is_of(3, 6) && !sectors.is_of(2, 5));
        let heads = bytes
            .chunks_exact(SECTOR)
            .map(|sector| u64::from_le_bytes(sector[..8].try_into().expect("8 bytes")));
        assert!(sectors.heads().eq(heads));
        assert_eq!(owner_of(&bytes), Some((3, 5)));
    }

    #[test]
    fn zeroes_are_anybodys_and_other_bytes_nobodys() {
        let zeroes = Facts::of(&[0; BLOCK]).sectors.expect("zeroes");
        assert!(zeroes.is_of(3, 5) && zeroes.is_of(1, 0));
        assert_eq!(owner_of(&[0; BLOCK]), None);
        let mut bytes = block((3, 5), [4; SECTORS]);
        bytes[BLOCK - 1] ^= 1;
        assert!(
            Facts::of(&bytes).sectors.is_none(),
            "a bit of the last sector"
        );
        let mut bytes = block((3, 5), [0; SECTORS]);
        bytes[100] = 1;
        assert!(Facts::of(&bytes).sectors.is_none(), "a bit among zeroes");
    }
}
