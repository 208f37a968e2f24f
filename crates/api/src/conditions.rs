//! Conditional requests (RFC 9110, section 13) and idempotency keys: which operations support them.

use crate::{Method, Operation};

/// Objects with an `ETag`, on which changes can be made conditional (`If-Match`). The tag
/// represents an object's configuration; statistics, such as the used space, do not change it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tagged {
    /// A pool.
    Pool,
    /// A volume.
    Volume,
    /// A snapshot.
    Snapshot,
    /// An export.
    Export,
}

impl Operation {
    /// The tagged object that the operation shows or changes.
    pub fn tagged(self) -> Option<Tagged> {
        match self {
            Self::PoolShow
            | Self::PoolChange
            | Self::PoolDestroy
            | Self::PoolHoldPromotion
            | Self::PoolWarnAt => Some(Tagged::Pool),
            Self::VolumeShow
            | Self::VolumeChange
            | Self::VolumeDelete
            | Self::VolumeResize
            | Self::VolumeRollBack => Some(Tagged::Volume),
            Self::SnapshotShow | Self::SnapshotChange | Self::SnapshotDelete => {
                Some(Tagged::Snapshot)
            }
            Self::ExportShow
            | Self::ExportSet
            | Self::ExportDisable
            | Self::ExportEnable
            | Self::ExportDelete => Some(Tagged::Export),
            _ => None,
        }
    }

    /// The tagged object that the operation changes, and whose tag `If-Match` is compared with.
    pub fn changes_tagged(self) -> Option<Tagged> {
        self.tagged().filter(|_| self.route().method != Method::Get)
    }

    /// Whether a successful response may have an `ETag`.
    pub fn tells_tag(self) -> bool {
        let makes = matches!(
            self,
            Self::PoolCreate
                | Self::PoolImport
                | Self::VolumeCreate
                | Self::SnapshotClone
                | Self::ExportCreate
        );
        makes || (self.tagged().is_some() && self.route().status == 200)
    }

    /// Whether the operation creates or starts something and accepts an `Idempotency-Key`, with
    /// which that happens only once. Tokens accept none: their secrets are shown once and not
    /// stored.
    pub fn takes_key(self) -> bool {
        matches!(
            self,
            Self::PoolCreate
                | Self::PoolScrub
                | Self::VdriveAdd
                | Self::DriveOnline
                | Self::DriveReplace
                | Self::VolumeCreate
                | Self::SnapshotCreate
                | Self::SnapshotClone
                | Self::ExportCreate
                | Self::TargetCreate
                | Self::ServerCreate
        )
    }
}
