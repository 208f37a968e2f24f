//! What of HTTP's conditional requests (RFC 9110, section 13) and of keys for repeated ones each operation takes.

use crate::{Method, Operation};

/// Objects with a tag of what was chosen of them (`ETag`), on which changes can be made to depend (`If-Match`).
/// Figures that change by themselves, like what is used, do not change it.
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
    /// The object that it shows or changes, if that has a tag.
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
            Self::ExportShow | Self::ExportSet | Self::ExportDelete => Some(Tagged::Export),
            _ => None,
        }
    }

    /// The object on whose tag it can be made to depend.
    pub fn changes_tagged(self) -> Option<Tagged> {
        self.tagged().filter(|_| self.route().method != Method::Get)
    }

    /// Whether its answer may tell an object's tag.
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

    /// Whether it makes or begins something, and takes a key under which that happens once (`Idempotency-Key`). A
    /// token's secret is told once, and nothing keeps it.
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
