//! Who serves.

use clap::ValueEnum;
use serde::Serialize;

/// The server.
#[derive(ValueEnum, Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum System {
    /// Convect by vhost-user-blk, all on drives in memory
    Convect,
    /// The same with null drives
    ConvectNull,
    /// The same with a mirror of two
    ConvectMirror,
    /// The same with a fast drive that is a file
    ConvectFile,
    /// Convect by NBD
    ConvectNbd,
    /// Convect by FUSE
    ConvectFuse,
    /// A loop device on Convect's FUSE file
    ConvectLoop,
    /// Convect by iSCSI
    ConvectIscsi,
    /// qemu-storage-daemon by vhost-user-blk, io_uring on a file in memory, as the next ones
    QemuVhost,
    /// qemu-storage-daemon by NBD
    QemuStorageNbd,
    /// qemu-storage-daemon by FUSE
    QemuFuse,
    /// A loop device on qemu-storage-daemon's FUSE file
    QemuLoop,
    /// qemu-nbd
    QemuNbd,
    /// nbdkit's memory plugin
    Nbdkit,
    /// nbd-server
    NbdServer,
    /// tgt by iSCSI, on a file in memory
    Tgt,
    /// A file without a server
    RawFile,
}

impl System {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Convect
            | Self::ConvectNbd
            | Self::ConvectFuse
            | Self::ConvectLoop
            | Self::ConvectIscsi => "Convect",
            Self::ConvectNull => "Convect, null drives",
            Self::ConvectMirror => "Convect, mirror",
            Self::ConvectFile => "Convect, file drive",
            Self::QemuVhost | Self::QemuStorageNbd | Self::QemuFuse | Self::QemuLoop => {
                "qemu-storage-daemon"
            }
            Self::QemuNbd => "qemu-nbd",
            Self::Nbdkit => "nbdkit memory",
            Self::NbdServer => "nbd-server",
            Self::Tgt => "tgt",
            Self::RawFile => "the file by io_uring",
        }
    }

    /// Whether it is one of ours.
    pub fn is_convect(self) -> bool {
        matches!(
            self,
            Self::Convect
                | Self::ConvectNull
                | Self::ConvectMirror
                | Self::ConvectFile
                | Self::ConvectNbd
                | Self::ConvectFuse
                | Self::ConvectLoop
                | Self::ConvectIscsi
        )
    }
}
