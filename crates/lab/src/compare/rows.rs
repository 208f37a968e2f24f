//! The measurements: one row each.

use super::system::System;
use clap::ValueEnum;
use serde::Serialize;

/// Rows that belong together.
#[derive(ValueEnum, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Copying and checksumming alone: what a core can do
    Limit,
    /// vhost-user-blk
    Vhost,
    /// vhost-user-blk on drives that keep nothing
    Null,
    /// vhost-user-blk on a mirror
    Mirror,
    /// NBD
    Nbd,
    /// FUSE
    Fuse,
    /// A loop device on the FUSE file
    Loop,
    /// iSCSI over the loopback
    Iscsi,
    /// A file drive beside the file itself
    File,
}

/// By what systems are held against each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judged {
    /// Requests a second for each core of the server.
    ByCore,
    /// Requests a second.
    ByRate,
}

/// A row: one load to each of some systems, the first of which is compared with the others.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub group: Group,
    pub systems: &'static [System],
    /// Bytes of a request.
    pub block: u32,
    pub writes: bool,
    /// Places follow one another, instead of lying anywhere.
    pub sequential: bool,
    /// Rings or connections.
    pub queues: u16,
    /// Requests outstanding over all queues.
    pub outstanding: u16,
    pub judged: Judged,
}

const KIB: u32 = 1 << 10;
const MIB: u32 = 1 << 20;

const fn row(group: Group, systems: &'static [System]) -> Row {
    Row {
        group,
        systems,
        block: 4 * KIB,
        writes: false,
        sequential: false,
        queues: 1,
        outstanding: 32,
        judged: Judged::ByCore,
    }
}

impl Row {
    const fn writes(self) -> Self {
        Self {
            writes: true,
            ..self
        }
    }

    const fn at(self, queues: u16, outstanding: u16) -> Self {
        Self {
            queues,
            outstanding,
            ..self
        }
    }

    const fn large(self) -> Self {
        Self {
            block: MIB,
            outstanding: 4,
            ..self
        }
    }

    const fn sequential(self) -> Self {
        Self {
            sequential: true,
            ..self
        }
    }

    const fn by_rate(self) -> Self {
        Self {
            judged: Judged::ByRate,
            ..self
        }
    }

    /// For people.
    pub fn name(&self) -> String {
        let way = match self.group {
            Group::Limit => "copy",
            Group::Vhost => "vhost-user-blk",
            Group::Null => "vhost-user-blk, null",
            Group::Mirror => "vhost-user-blk, mirror",
            Group::Nbd => "NBD",
            Group::Fuse => "FUSE",
            Group::Loop => "loop device on FUSE",
            Group::Iscsi => "iSCSI",
            Group::File => "file",
        };
        let size = match self.block {
            MIB => "1 MiB",
            _ => "4 KiB",
        };
        let order = if self.sequential { " sequential" } else { "" };
        let what = if self.writes { "writes" } else { "reads" };
        let queues = match self.queues {
            1 => String::new(),
            queues => format!(", {queues} queues"),
        };
        format!(
            "{way}: {size}{order} {what}, QD {}{queues}",
            self.outstanding
        )
    }
}

const VHOST: Row = row(Group::Vhost, &[System::Convect, System::QemuVhost]);
const NULL: Row = row(Group::Null, &[System::ConvectNull]);
const MIRROR: Row = row(Group::Mirror, &[System::ConvectMirror, System::Convect]);
const NBD: Row = row(
    Group::Nbd,
    &[
        System::ConvectNbd,
        System::Nbdkit,
        System::QemuNbd,
        System::QemuStorageNbd,
        System::NbdServer,
    ],
);
const FUSE: Row = row(Group::Fuse, &[System::ConvectFuse, System::QemuFuse]);
const LOOP: Row = row(Group::Loop, &[System::ConvectLoop, System::QemuLoop]);
const ISCSI: Row = row(Group::Iscsi, &[System::ConvectIscsi, System::Tgt]);
const FILE: Row = row(Group::File, &[System::ConvectFile, System::RawFile]).by_rate();

/// All rows.
pub const ROWS: [Row; 41] = [
    VHOST.at(1, 1),
    VHOST.at(1, 1).writes(),
    VHOST.at(1, 32),
    VHOST.at(1, 32).writes(),
    VHOST.at(4, 32),
    VHOST.at(4, 32).writes(),
    VHOST.at(1, 128),
    VHOST.at(1, 128).writes(),
    VHOST.at(4, 128),
    VHOST.at(4, 128).writes(),
    NULL.at(1, 1),
    NULL.at(1, 32),
    NULL.at(1, 32).writes(),
    NULL.at(1, 128),
    MIRROR,
    MIRROR.writes(),
    NBD,
    NBD.writes(),
    NBD.large(),
    FUSE,
    FUSE.writes(),
    FUSE.large(),
    LOOP,
    LOOP.writes(),
    LOOP.large(),
    ISCSI.at(1, 1),
    ISCSI,
    ISCSI.writes(),
    ISCSI.at(1, 128),
    ISCSI.at(1, 128).writes(),
    ISCSI.at(4, 128),
    ISCSI.large().sequential(),
    ISCSI.large().sequential().writes(),
    FILE.at(1, 1),
    FILE.at(1, 1).writes(),
    FILE.at(1, 32),
    FILE.at(1, 32).writes(),
    FILE.at(1, 128),
    FILE.at(1, 128).writes(),
    // The writes first: small ones have scattered what lies together in the file beside it.
    FILE.large().writes(),
    FILE.large(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_divides_among_its_queues() {
        let mut names: Vec<String> = ROWS.iter().map(Row::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ROWS.len());
        assert!(
            ROWS.iter()
                .all(|row| row.outstanding.is_multiple_of(row.queues))
        );
    }
}
