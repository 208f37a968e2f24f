//! Identifiers and addresses.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A 4 KiB block of a volume, counted from the volume's first byte.
    BlockNo(u64)
);
number!(
    /// A 1 MiB chunk of a volume, counted from the volume's first byte.
    ChunkNo(u32)
);
number!(
    /// A volume of a pool; never used again after the volume is deleted.
    VolumeId(u32)
);
number!(
    /// A vdrive of a pool. 0 is the metadata region.
    VdriveId(u8)
);
number!(
    /// One of the single-threaded engines that a pool is divided among.
    ShardId(u16)
);

macro_rules! unique {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u128);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:032x})"), self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                u128::from_str_radix(text, 16).map(Self)
            }
        }
    };
}

unique!(
    /// A pool, chosen at random when it is created; 32 hex digits in text.
    PoolId
);
unique!(
    /// A drive of a pool, chosen at random when it is labelled; 32 hex digits in text.
    DriveId
);

/// Identity of a snapshot's content, permanent and the same in every pool that has it: the pool that took it, the epoch of
/// its layer there, which comes only once, and when it was taken, which tells pools apart that were
/// copied drive by drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SnapshotId {
    /// The pool that took it.
    pub pool: PoolId,
    /// The epoch.
    pub epoch: u32,
    /// When it was taken: seconds since 1970.
    pub created_s: u64,
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.pool, self.epoch, self.created_s)
    }
}

impl std::str::FromStr for SnapshotId {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, '-');
        let mut part = || parts.next().unwrap_or_default();
        Ok(Self {
            pool: part().parse()?,
            epoch: part().parse()?,
            created_s: part().parse()?,
        })
    }
}

/// One 4 KiB block of a pool: a vdrive and a block within it, packed in 48 bits.
///
/// `Place::NONE` (all bits clear) is no place: block 0 of vdrive 0 is never allocated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place(u64);

impl Place {
    /// No place.
    pub const NONE: Self = Self(0);
    /// Bits that count blocks within a vdrive: 4 PiB.
    pub const BLOCK_BITS: u32 = 40;

    /// The place of `block` (in 4 KiB blocks) on `vdrive`.
    ///
    /// # Panics
    /// When `block` is 2^40 or more.
    #[inline]
    pub fn new(vdrive: VdriveId, block: u64) -> Self {
        assert!(
            block >> Self::BLOCK_BITS == 0,
            "block {block} is past the end of any vdrive"
        );
        Self(u64::from(vdrive.0) << Self::BLOCK_BITS | block)
    }

    /// From the 48 bits that [`Place::bits`] gave; the upper 16 bits are ignored.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << 48) - 1))
    }

    /// The 48 bits of this place.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The vdrive.
    pub fn vdrive(self) -> VdriveId {
        VdriveId((self.0 >> Self::BLOCK_BITS) as u8)
    }

    /// The block within the vdrive, in 4 KiB blocks.
    pub fn block(self) -> u64 {
        self.0 & ((1 << Self::BLOCK_BITS) - 1)
    }

    /// The place `blocks` further on the same vdrive.
    #[inline]
    pub fn plus(self, blocks: u64) -> Self {
        Self::new(self.vdrive(), self.block() + blocks)
    }

    /// The same of a place that is not known to be one of a pool's; `None` past the end of any vdrive.
    pub fn checked_plus(self, blocks: u64) -> Option<Self> {
        let block = self.block().checked_add(blocks)?;
        (block >> Self::BLOCK_BITS == 0).then(|| Self::new(self.vdrive(), block))
    }

    /// Whether this is no place.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether this is a place.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            f.write_str("Place(none)")
        } else {
            write!(f, "Place({}:{})", self.vdrive(), self.block())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_its_parts() {
        let place = Place::new(VdriveId(255), (1 << 40) - 1);
        assert_eq!(place.vdrive(), VdriveId(255));
        assert_eq!(place.block(), (1 << 40) - 1);
        assert_eq!(Place::from_bits(place.bits()), place);
        assert!(Place::new(VdriveId(0), 0).is_none());
        assert_eq!(
            Place::new(VdriveId(3), 7).plus(5),
            Place::new(VdriveId(3), 12)
        );
        let last = Place::new(VdriveId(3), (1 << 40) - 1);
        assert_eq!(last.checked_plus(0), Some(last));
        assert_eq!(last.checked_plus(1), None);
        assert_eq!(last.checked_plus(u64::MAX), None);
    }

    #[test]
    #[should_panic(expected = "past the end")]
    fn a_place_past_the_end_is_refused() {
        Place::new(VdriveId(1), 1 << 40);
    }

    #[test]
    fn unique_ids_survive_text() {
        let id = PoolId(0x1234 << 64);
        assert_eq!(id.to_string().parse::<PoolId>().unwrap(), id);
        let snapshot = SnapshotId {
            pool: id,
            epoch: u32::MAX,
            created_s: 1_800_000_000,
        };
        let text = snapshot.to_string();
        assert_eq!(text.parse(), Ok(snapshot));
        for bad in ["", &text[..40], "x-1-2"] {
            assert!(bad.parse::<SnapshotId>().is_err(), "{bad}");
        }
    }
}
