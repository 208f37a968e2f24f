//! The table of drive kinds: the one place to add one.

use crate::spec::split_kind;
use crate::{OpenError, given, model, null, nvme, ram, uring};
use block::{Drive, DriveQueue};
use reactor::Handle;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// A drive that is open: its lock is held until the last handle and queue are gone.
pub trait OpenDrive: Drive {
    /// A queue for the calling thread, which is `handle`'s.
    ///
    /// # Errors
    /// When the loop cannot serve this kind (a simulated loop has no io_uring).
    fn queue(&self, handle: &Handle) -> io::Result<Rc<dyn DriveQueue>>;
}

impl std::fmt::Debug for dyn OpenDrive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenDrive({})", self.info().spec)
    }
}

/// A kind of drive: one row of the table.
pub struct DriveKind {
    /// Its name before the colon.
    pub name: &'static str,
    /// Description, in a sentence.
    pub about: &'static str,
    /// Its grammar.
    pub grammar: &'static str,
    /// Whether what is written can be read back.
    pub keeps_data: bool,
    /// Opens what follows the colon.
    pub(crate) open: fn(&str) -> Result<Arc<dyn OpenDrive>, OpenError>,
    /// Opens it for reading only: it is never created nor written, and only drives that are open
    /// for writing keep it from being opened.
    pub(crate) open_read_only: fn(&str) -> Result<Arc<dyn OpenDrive>, OpenError>,
    /// The canonical form of what follows the colon, with the kind.
    pub(crate) canonical: fn(&str) -> Result<String, OpenError>,
    /// What the drive already contains.
    pub(crate) found_on: fn(&str) -> Result<Option<String>, OpenError>,
    /// The file or block device in which its data lie, if there is one.
    pub(crate) path: fn(&str) -> Option<PathBuf>,
}

static KINDS: [DriveKind; 5] = [uring::KIND, nvme::KIND, ram::KIND, null::KIND, model::KIND];

/// Every kind, for help texts.
pub fn kinds() -> &'static [DriveKind] {
    &KINDS
}

fn find(spec: &str) -> Result<(&'static DriveKind, &str), OpenError> {
    let (name, rest) = split_kind(spec)?;
    match KINDS.iter().find(|kind| kind.name == name) {
        Some(kind) => Ok((kind, rest)),
        None => {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            Err(OpenError::syntax(format!(
                "'{spec}': unknown kind of drive '{name}': the kinds are {}",
                names.join(", ")
            )))
        }
    }
}

/// Opens a drive and locks it against every other opening.
///
/// # Errors
/// A sentence that says what, why and what to do; nothing is left behind.
pub fn open(spec: &str) -> Result<Arc<dyn OpenDrive>, OpenError> {
    if let Some(drive) = given::find(spec) {
        return Ok(drive);
    }
    let (kind, rest) = find(spec)?;
    (kind.open)(rest)
}

/// Opens a drive read-only. Others may read it, too, but it must not be open for writing.
/// Kinds that live in this process alone are opened as by [`open`].
///
/// # Errors
/// As [`open`]'s; every write to it fails.
pub fn open_read_only(spec: &str) -> Result<Arc<dyn OpenDrive>, OpenError> {
    if let Some(drive) = given::find(spec) {
        return Ok(drive);
    }
    let (kind, rest) = find(spec)?;
    (kind.open_read_only)(rest)
}

/// The text that opens the same drive again and never creates it: a bare path becomes
/// `file:PATH`, a file's size is left out. Memory keeps its size.
///
/// # Errors
/// When the text is not a drive's.
pub fn canonical(spec: &str) -> Result<String, OpenError> {
    if given::find(spec).is_some() {
        return Ok(spec.to_owned());
    }
    let (kind, rest) = find(spec)?;
    (kind.canonical)(rest)
}

/// Recognises the content of a drive (a file system, a partition table, ...), by reading only and without
/// a lock. `None` when nothing known is there, or the drive would be created when opened.
///
/// # Errors
/// When the drive cannot be read.
pub fn found_on(spec: &str) -> Result<Option<String>, OpenError> {
    if given::find(spec).is_some() {
        return Ok(None);
    }
    let (kind, rest) = find(spec)?;
    (kind.found_on)(rest)
}

/// The file or block device in which a drive's data lie.
pub(crate) fn path(spec: &str) -> Option<PathBuf> {
    if given::find(spec).is_some() {
        return None;
    }
    let (kind, rest) = find(spec).ok()?;
    (kind.path)(rest)
}

/// Which drive it is, whatever name it is given: links of `/dev/disk/by-id` and the two nodes of an NVMe namespace are
/// the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DriveIdentity {
    is_device: bool,
    device: u64,
    inode: u64,
    /// Of a block device: what its numbers are given to, which may be another one after it was detached; 0: unknown.
    mark: u64,
}

impl DriveIdentity {
    /// The same in four words, for memory that outlives the process.
    pub fn words(self) -> [u64; 4] {
        let kind = 1 + u64::from(self.is_device);
        [kind, self.device, self.inode, self.mark]
    }
}

/// Whether two identities, as [`DriveIdentity::words`] or zeroes where there is none, are of one drive. A block device that
/// has a name of its own is the same one under another number.
pub fn is_same_drive(one: [u64; 4], other: [u64; 4]) -> bool {
    match (one, other) {
        ([2, .., mark], [2, .., known]) if mark != 0 || known != 0 => mark == known,
        _ => one == other,
    }
}

/// Which drive a specification names; `None` for kinds that are not files, and for missing files.
pub fn identity(spec: &str) -> Option<DriveIdentity> {
    if let Some(inode) = given::number_of(spec) {
        return Some(DriveIdentity {
            is_device: false,
            device: 0,
            inode,
            mark: 0,
        });
    }
    let meta = fs::metadata(path(spec)?).ok()?;
    Some(match meta.file_type().is_block_device() {
        true => DriveIdentity {
            is_device: true,
            device: meta.rdev(),
            inode: 0,
            mark: mark_of(meta.rdev()),
        },
        false => DriveIdentity {
            is_device: false,
            device: meta.dev(),
            inode: meta.ino(),
            mark: 0,
        },
    })
}

/// Identity of a block device's number, as a hash: the name that the device has of its own, else the number of its
/// attachment, which the kernel never gives twice; 0 where the kernel tells neither.
fn mark_of(device: u64) -> u64 {
    // Those of a partition are its disk's.
    const NAMES: [&str; 7] = [
        "dm/uuid",
        "wwid",
        "device/wwid",
        "../wwid",
        "../device/wwid",
        "diskseq",
        "../diskseq",
    ];
    let (major, minor) = (libc::major(device), libc::minor(device));
    let node = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let read = |name: &str| {
        let text = fs::read_to_string(node.join(name)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| format!("{name} {text}"))
    };
    let partition = read("partition").unwrap_or_default();
    let name = NAMES.into_iter().find_map(read);
    name.map_or(0, |name| {
        let bytes = partition.bytes().chain(name.bytes());
        // FNV-1a.
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    })
}
