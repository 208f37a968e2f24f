//! Features of a pool's format beyond version 1, as three sets of bits in every label.
//!
//! Responsible for: which bits this version knows, and refusing the others by name. A feature is
//! one bit in one of the sets, a constant here and a row in docs/format.md; code that writes a label
//! sets the bit while the pool needs it and clears it when it does not any longer.

use thiserror::Error;

/// The sets of a label. Bits that no version has given a meaning are clear.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// A version that does not know these may use the pool as if they were not there; it keeps
    /// the bits, and every field at the top of the description that it does not know.
    pub compatible: u64,
    /// A version that does not know these may read the pool and must not write to it.
    pub read_only: u64,
    /// A version that does not know these must not use the pool at all.
    pub incompatible: u64,
}

/// Of [`Features::incompatible`]: volumes have layers, or take writes in one that does not have their
/// number.
pub const LAYERS: u64 = 1;

/// Of [`Features::incompatible`]: the label's description is compressed. It is only in labels: one
/// that is read does not have it any longer.
pub(crate) const PACKED: u64 = 2;

/// Features that this version supports.
pub const KNOWN: Features = Features {
    compatible: 0,
    read_only: 0,
    incompatible: LAYERS | PACKED,
};

/// Why a pool that a newer version made cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Newer {
    /// The label's version.
    #[error(
        "it was written by a newer version of Convect (format version {0}, this program supports 1): use that version"
    )]
    Version(u8),
    /// Unknown bits of [`Features::incompatible`].
    #[error(
        "it was written by a newer version of Convect (with features {0:#x}, which this program does not support): use that version"
    )]
    Incompatible(u64),
    /// Unknown bits of [`Features::read_only`].
    #[error(
        "it was written by a newer version of Convect (with features {0:#x}, without which it may only be read, and a pool cannot be opened read-only): use that version, or copy its volumes out with `convect restore`"
    )]
    ReadOnly(u64),
    /// The checksum is right and the description says what this version cannot follow.
    #[error(
        "its description of the pool is invalid ({0}): it was written by a newer version of Convect, or incorrectly; use the version that wrote it"
    )]
    Description(String),
}

impl Features {
    /// Refuses what this version may not open at all.
    ///
    /// # Errors
    /// [`Newer::Incompatible`].
    pub fn check_readable(self) -> Result<(), Newer> {
        match self.incompatible & !KNOWN.incompatible {
            0 => Ok(()),
            unknown => Err(Newer::Incompatible(unknown)),
        }
    }

    /// Refuses what this version may not write to.
    ///
    /// # Errors
    /// [`Newer::Incompatible`] or [`Newer::ReadOnly`].
    pub fn check_writable(self) -> Result<(), Newer> {
        self.check_readable()?;
        match self.read_only & !KNOWN.read_only {
            0 => Ok(()),
            unknown => Err(Newer::ReadOnly(unknown)),
        }
    }
}
