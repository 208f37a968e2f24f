//! Logical blocks that a CDB names, checked (SBC-3 4.5 and 5).

use crate::fields::{u8_at, u16_at, u24_at, u32_at, u64_at};
use crate::nexus::Nexus;
use crate::sense::Sense;
use std::ops::Range;

/// Longest transfer of data by one command, in bytes (VPD B0h).
pub(crate) const TRANSFER_MAX: u64 = 8 << 20;

/// Most that one command may ask to be examined without data, or to be changed without data for each block, in
/// bytes.
pub(crate) const LONG_MAX: u64 = 256 << 20;

/// Blocks, as the CDB has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocks {
    pub lba: u64,
    pub count: u64,
}

impl Blocks {
    /// Of a command that has them where its group has them.
    pub(crate) fn parse(cdb: &[u8; 16]) -> Self {
        match cdb[0] >> 5 {
            0 => Self {
                lba: u64::from(u24_at(cdb, 1) & 0x001f_ffff),
                count: match u8_at(cdb, 4) {
                    0 => 256,
                    count => u64::from(count),
                },
            },
            1 | 2 => Self {
                lba: u64::from(u32_at(cdb, 2)),
                count: u64::from(u16_at(cdb, 7)),
            },
            5 => Self {
                lba: u64::from(u32_at(cdb, 2)),
                count: u64::from(u32_at(cdb, 6)),
            },
            _ => Self {
                lba: u64_at(cdb, 2),
                count: u64::from(u32_at(cdb, 10)),
            },
        }
    }

    /// COMPARE AND WRITE has one byte for the count (SBC-3 5.2).
    pub(crate) fn parse_compare(cdb: &[u8; 16]) -> Self {
        Self {
            lba: u64_at(cdb, 2),
            count: u64::from(u8_at(cdb, 13)),
        }
    }

    /// WRITE ATOMIC(16) has a boundary before the count (SBC-4 5.46).
    pub(crate) fn parse_atomic(cdb: &[u8; 16]) -> Self {
        Self {
            lba: u64_at(cdb, 2),
            count: u64::from(u16_at(cdb, 12)),
        }
    }
}

/// Flags of reads and writes, checked (no protection information is there).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flags {
    pub fua: bool,
    /// BYTCHK of VERIFY and WRITE AND VERIFY.
    pub compare: u8,
}

impl Flags {
    pub(crate) fn parse(cdb: &[u8; 16]) -> Result<Self, Sense> {
        if cdb[0] >> 5 == 0 {
            return Ok(Self {
                fua: false,
                compare: 0,
            });
        }
        if cdb[1] >> 5 != 0 {
            return Err(Sense::INVALID_FIELD_IN_CDB);
        }
        Ok(Self {
            fua: cdb[1] & 0x08 != 0,
            compare: cdb[1] >> 1 & 0x03,
        })
    }
}

impl Nexus {
    pub(crate) fn block_size(&self) -> u64 {
        self.unit.lba_size()
    }

    /// The bytes of blocks that are all there.
    pub(crate) fn range(&self, blocks: Blocks) -> Result<Range<u64>, Sense> {
        let size = self.block_size();
        let all = self.unit.size() / size;
        let end = blocks.lba.checked_add(blocks.count);
        if blocks.lba >= all || end.is_none_or(|end| end > all) {
            return Err(Sense::LBA_OUT_OF_RANGE);
        }
        Ok(blocks.lba * size..(blocks.lba + blocks.count) * size)
    }

    /// The same for blocks whose data one command carries.
    pub(crate) fn transfer(&self, blocks: Blocks) -> Result<Range<u64>, Sense> {
        let range = self.range(blocks)?;
        if range.end - range.start > TRANSFER_MAX {
            return Err(Sense::INVALID_FIELD_IN_CDB);
        }
        Ok(range)
    }

    /// The same for blocks that one command has examined.
    pub(crate) fn looked_at(&self, blocks: Blocks) -> Result<Range<u64>, Sense> {
        let range = self.range(blocks)?;
        if range.end - range.start > LONG_MAX {
            return Err(Sense::INVALID_FIELD_IN_CDB);
        }
        Ok(range)
    }

    /// Refuses a change of what may only be read.
    pub(crate) fn check_writable(&self) -> Result<(), Sense> {
        if self.unit.is_write_protected() || self.is_read_only() {
            return Err(Sense::WRITE_PROTECTED);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cdb(bytes: &[u8]) -> [u8; 16] {
        let mut cdb = [0; 16];
        cdb[..bytes.len()].copy_from_slice(bytes);
        cdb
    }

    #[test]
    fn blocks_are_read_from_every_length_of_cdb() {
        for (bytes, lba, count) in [
            (&[0x08, 0xff, 1, 2, 0, 0][..], 0x1f_0102, 256),
            (&[0x08, 0, 1, 2, 3, 0], 0x102, 3),
            (&[0x28, 0, 1, 2, 3, 4, 0, 5, 6, 0], 0x0102_0304, 0x506),
            (
                &[0xa8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0],
                0x0102_0304,
                0x0506_0708,
            ),
            (
                &[0x88, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 0, 0],
                0x0102_0304_0506_0708,
                0x0901_0203,
            ),
        ] {
            assert_eq!(Blocks::parse(&cdb(bytes)), Blocks { lba, count });
        }
    }

    #[test]
    fn protection_is_refused_but_in_short_cdbs() {
        assert!(Flags::parse(&cdb(&[0x28, 0x20])).is_err());
        assert!(Flags::parse(&cdb(&[0x08, 0x20])).is_ok());
        assert!(Flags::parse(&cdb(&[0x28, 0x18])).unwrap().fua);
    }
}
