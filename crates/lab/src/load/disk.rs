//! The disk that a load uses.

use super::port::Port;
use super::ports::{FilePort, IscsiPort, NbdPort, VhostPort};
use crate::failure::{Result, While};
use crate::fio::Target;
use crate::iscsi::Lun;
use crate::nbd::Place;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A disk and the way to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Disk {
    /// The socket of a vhost-user-blk export.
    VhostUserBlk(PathBuf),
    /// An NBD export.
    Nbd(Place),
    /// A unit of an iSCSI target.
    Iscsi(Lun),
    /// A file or a block device, by io_uring and O_DIRECT.
    File(PathBuf),
}

impl FromStr for Disk {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let path = |kind: &str| {
            let path = text.strip_prefix(kind).filter(|path| !path.is_empty());
            path.map(PathBuf::from)
        };
        if let Some(path) = path("vhost-user-blk:") {
            return Ok(Self::VhostUserBlk(path));
        }
        if let Some(path) = path("file:") {
            return Ok(Self::File(path));
        }
        let nbd = || text.parse().map(Self::Nbd).ok();
        let iscsi = || text.parse().map(Self::Iscsi).ok();
        nbd().or_else(iscsi).ok_or_else(|| {
            format!(
                "'{text}' is no disk: write vhost-user-blk:SOCKET, nbd+unix:///EXPORT?socket=PATH, \
                 iscsi://ADDRESS:PORT/TARGET/LUN or file:PATH"
            )
        })
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VhostUserBlk(path) => write!(f, "vhost-user-blk:{}", path.display()),
            Self::Nbd(Place { export, socket }) => {
                write!(f, "nbd+unix:///{export}?socket={}", socket.display())
            }
            Self::Iscsi(lun) => lun.fmt(f),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl From<Target> for Disk {
    fn from(target: Target) -> Self {
        match target {
            Target::File(path) => Self::File(path),
            Target::Nbd { export, socket } => Self::Nbd(Place { export, socket }),
        }
    }
}

/// How a disk is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Ports.
    pub queues: u16,
    /// Slots of each.
    pub slots: u16,
    /// Bytes of data of each slot.
    pub slot_bytes: u32,
    /// Answers are looked for all the time.
    pub polling: bool,
    /// Something is written.
    pub writes: bool,
    /// Data read is verified.
    pub looks: bool,
}

impl Disk {
    /// Opens it; returns its ports and its size in bytes.
    ///
    /// # Errors
    /// When it is not there, or refuses something.
    pub fn open(&self, with: &Opening) -> Result<(Vec<Box<dyn Port>>, u64)> {
        let doing = || format!("cannot open {self}");
        let (slots, bytes) = (with.slots, with.slot_bytes as usize);
        let mut ports: Vec<Box<dyn Port>> = Vec::new();
        let mut size = 0;
        match self {
            Self::VhostUserBlk(path) => {
                let connected = VhostPort::connect(path, with.queues, slots, bytes, with.polling);
                let (rings, disk_size) = connected.during(doing)?;
                size = disk_size;
                ports.extend(
                    rings
                        .into_iter()
                        .map(|ring| Box::new(ring) as Box<dyn Port>),
                );
            }
            Self::Nbd(place) => {
                for _ in 0..with.queues {
                    let connected = NbdPort::connect(place, slots, bytes, with.looks);
                    let (port, disk_size) = connected.during(doing)?;
                    size = disk_size;
                    ports.push(Box::new(port));
                }
            }
            Self::Iscsi(lun) => {
                for _ in 0..with.queues {
                    let connected = IscsiPort::connect(lun, slots, bytes, with.looks);
                    let (port, disk_size) = connected.during(doing)?;
                    size = disk_size;
                    ports.push(Box::new(port));
                }
            }
            Self::File(path) => {
                for _ in 0..with.queues {
                    let opened = FilePort::open(path, slots, bytes, with.writes, with.polling);
                    let (port, disk_size) = opened.during(doing)?;
                    size = disk_size;
                    ports.push(Box::new(port));
                }
            }
        }
        Ok((ports, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_written_as_it_is_read() {
        for text in [
            "vhost-user-blk:/run/a.sock",
            "nbd+unix:///disk?socket=/run/b.sock",
            "iscsi://127.0.0.1:3260/iqn.a:b/0",
            "file:/dev/vdb",
        ] {
            let disk: Disk = text.parse().expect(text);
            assert_eq!(disk.to_string(), text);
        }
        for wrong in [
            "",
            "file:",
            "vhost-user-blk:",
            "/dev/vdb",
            "nbd://host/disk",
        ] {
            let refused = wrong.parse::<Disk>().expect_err(wrong);
            assert!(refused.contains("file:PATH"), "{refused}");
        }
    }
}
