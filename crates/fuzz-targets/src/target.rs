//! The registry of the targets, one table for each libFuzzer binary.

use crate::targets;

/// One fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also that of its folders in `fuzz/corpus` and `fuzz/regressions`.
    pub name: &'static str,
    /// What its input is.
    pub about: &'static str,
    /// Runs it on one input. Panics when the input shows a bug.
    pub run: fn(&[u8]),
}

/// Decoders of what is on drives and in snapshot streams. A new target is a file in `src/targets`, a
/// row here or in [`PROTOCOL`], and a seed in `examples/seeds.rs`.
pub const DRIVE: &[Target] = &[
    Target {
        name: "label",
        about: "superblock of a drive: header, features, checksum",
        run: targets::label::run,
    },
    Target {
        name: "config",
        about: "JSON description of a pool within a valid superblock",
        run: targets::config::run,
    },
    Target {
        name: "node",
        about: "inner node of a map tree",
        run: targets::node::run,
    },
    Target {
        name: "chunk",
        about: "map page of one chunk",
        run: targets::chunk::run,
    },
    Target {
        name: "volume",
        about: "directory entry of a volume",
        run: targets::volume::run,
    },
    Target {
        name: "slots",
        about: "bitmap of a group that is allocated in blocks",
        run: targets::slots::run,
    },
    Target {
        name: "homes",
        about: "bitmaps of groups that are allocated in chunks",
        run: targets::homes::run,
    },
    Target {
        name: "checkpoint",
        about: "checkpoint block of a shard",
        run: targets::checkpoint::run,
    },
    Target {
        name: "journal",
        about: "journal page with its records",
        run: targets::journal::run,
    },
    Target {
        name: "record",
        about: "single journal record of any kind",
        run: targets::record::run,
    },
    Target {
        name: "stream",
        about: "snapshot stream, in pieces of several sizes",
        run: targets::stream::run,
    },
];

/// Decoders of what clients send.
pub const PROTOCOL: &[Target] = &[
    Target {
        name: "nbd_option",
        about: "data of an NBD handshake option",
        run: targets::nbd_option::run,
    },
    Target {
        name: "nbd_request",
        about: "header of an NBD request",
        run: targets::nbd_request::run,
    },
    Target {
        name: "iscsi_login",
        about: "iSCSI PDU header, login text and address ranges",
        run: targets::iscsi_login::run,
    },
    Target {
        name: "iscsi_session",
        about: "iSCSI PDUs of the full feature phase, over one or two connections",
        run: targets::iscsi_session::run,
    },
    Target {
        name: "scsi_reservations",
        about: "reservation commands of three initiators",
        run: targets::scsi_reservations::run,
    },
    Target {
        name: "scsi_commands",
        about: "SCSI commands with their data",
        run: targets::scsi_commands::run,
    },
    Target {
        name: "reservations",
        about: "stored persistent reservations, and commands that change them",
        run: targets::reservations::run,
    },
];

impl Target {
    /// Every target. A libFuzzer binary uses the table of one subject instead: libFuzzer reads all
    /// coverage counters of its binary after each input, which takes several times as long as decoding a
    /// small record if those of the protocols are among them.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        DRIVE.iter().chain(PROTOCOL)
    }
}

#[cfg(test)]
mod tests;
