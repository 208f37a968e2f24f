//! Recognises the content of a drive by the signatures of formats at known places.
//!
//! Leaves out: Convect's own labels, which the engine recognises.

use std::io;

/// Where a mark is, in bytes.
#[derive(Clone, Copy)]
enum Place {
    /// From the first byte.
    Start(u64),
    /// Before the end.
    End(u64),
}

struct Mark {
    name: &'static str,
    place: Place,
    bytes: &'static [u8],
}

const fn mark(name: &'static str, place: Place, bytes: &'static [u8]) -> Mark {
    Mark { name, place, bytes }
}

use Place::{End, Start};

const LUKS: &str = "LUKS encryption";
const GPT: &str = "a GPT partition table";
const SWAP: &str = "swap space";
const RAID: &str = "a member of a Linux software RAID (md)";
const FAT: &str = "a FAT file system";

/// Formats that one mark tells. The first that is there names the drive, so that what contains
/// others comes before them.
static MARKS: &[Mark] = &[
    mark(LUKS, Start(0), b"LUKS\xba\xbe"),
    mark(LUKS, Start(0x4000), b"SKUL\xba\xbe"),
    mark("a bcache device", Start(4096 + 24), BCACHE),
    mark("a bcachefs file system", Start(4096 + 24), BCACHEFS),
    mark(RAID, Start(0), MD),
    mark(RAID, Start(4096), MD),
    mark(GPT, Start(512), b"EFI PART"),
    mark(GPT, Start(4096), b"EFI PART"),
    mark("an xfs file system", Start(0), b"XFSB"),
    mark("a btrfs file system", Start(0x1_0040), b"_BHRfS_M"),
    mark(
        "an f2fs file system",
        Start(1024),
        &[0x10, 0x20, 0xf5, 0xf2],
    ),
    mark("an NTFS file system", Start(3), b"NTFS    "),
    mark("an exFAT file system", Start(3), b"EXFAT   "),
    mark(FAT, Start(54), b"FAT12   "),
    mark(FAT, Start(54), b"FAT16   "),
    mark(FAT, Start(82), b"FAT32   "),
    mark("an ISO 9660 file system", Start(32_769), b"CD001"),
    mark(SWAP, Start(4096 - 10), b"SWAPSPACE2"),
    mark(SWAP, Start(16_384 - 10), b"SWAPSPACE2"),
    mark(SWAP, Start(65_536 - 10), b"SWAPSPACE2"),
    mark(SWAP, Start(4096 - 10), b"SWAP-SPACE"),
    mark("a Ceph OSD", Start(0), b"bluestore block device"),
    mark(GPT, End(512), b"EFI PART"),
    mark(GPT, End(4096), b"EFI PART"),
];

const BCACHE: &[u8] = &[
    0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81,
];
const BCACHEFS: &[u8] = &[
    0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef,
];
/// Magic of a Linux software RAID superblock, 0xa92b4efc.
const MD: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];

type Probe = fn(&Reader) -> io::Result<Option<&'static str>>;

/// Formats that take a closer look. Those that only a partition table would be mistaken for come
/// before it.
static PROBES: &[Probe] = &[lvm, md_at_the_end, zfs, ext];

/// A drive that is examined; reads past its end find nothing.
struct Reader<'a> {
    read: &'a dyn Fn(u64, &mut [u8]) -> io::Result<()>,
    size: u64,
}

impl Reader<'_> {
    fn bytes(&self, offset: u64, len: usize) -> io::Result<Option<Vec<u8>>> {
        if offset
            .checked_add(len as u64)
            .is_none_or(|end| end > self.size)
        {
            return Ok(None);
        }
        let mut bytes = vec![0; len];
        (self.read)(offset, &mut bytes)?;
        Ok(Some(bytes))
    }

    fn has(&self, offset: u64, wanted: &[u8]) -> io::Result<bool> {
        Ok(self
            .bytes(offset, wanted.len())?
            .is_some_and(|found| found == wanted))
    }
}

/// Names what a drive of `size` bytes has; `read` fills a buffer from an offset in bytes.
/// `None` when nothing known is there.
///
/// # Errors
/// When `read` fails: what the drive has is then not known.
pub fn signature(
    read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
    size: u64,
) -> io::Result<Option<String>> {
    let reader = Reader { read: &read, size };
    for mark in MARKS {
        let offset = match mark.place {
            Start(offset) => Some(offset),
            End(back) => size.checked_sub(back),
        };
        if let Some(offset) = offset
            && reader.has(offset, mark.bytes)?
        {
            return Ok(Some(mark.name.to_owned()));
        }
    }
    for probe in PROBES {
        if let Some(name) = probe(&reader)? {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(mbr(&reader)?.map(str::to_owned))
}

/// An LVM label is in one of the first four sectors.
fn lvm(reader: &Reader) -> io::Result<Option<&'static str>> {
    for sector in 0..4 {
        let at = sector * 512;
        if reader.has(at, b"LABELONE")? && reader.has(at + 24, b"LVM2 001")? {
            return Ok(Some("an LVM physical volume"));
        }
    }
    Ok(None)
}

/// Superblocks of version 1.0 and 0.90 lie near the end.
fn md_at_the_end(reader: &Reader) -> io::Result<Option<&'static str>> {
    let version_1_0 = (reader.size / 512)
        .checked_sub(16)
        .map(|at| (at & !7) * 512);
    let version_0_90 = (reader.size & !0xffff).checked_sub(0x1_0000);
    for at in [version_1_0, version_0_90].into_iter().flatten() {
        if reader.has(at, MD)? {
            return Ok(Some(RAID));
        }
    }
    Ok(None)
}

/// Four labels of 256 KiB, two at each end; uberblocks fill the second half of each.
fn zfs(reader: &Reader) -> io::Result<Option<&'static str>> {
    const LABEL: u64 = 256 << 10;
    const HALF: u64 = LABEL / 2;
    const MAGIC: u64 = 0x00ba_b10c;
    let whole = reader.size / LABEL * LABEL;
    let labels = [
        Some(0),
        Some(LABEL),
        whole.checked_sub(2 * LABEL),
        whole.checked_sub(LABEL),
    ];
    for label in labels.into_iter().flatten() {
        let Some(blocks) = reader.bytes(label + HALF, HALF as usize)? else {
            continue;
        };
        let found = blocks.chunks_exact(1024).any(|block| {
            let magic = u64::from_le_bytes(block[..8].try_into().expect("eight bytes"));
            magic == MAGIC || magic.swap_bytes() == MAGIC
        });
        if found {
            return Ok(Some("a member of a ZFS pool"));
        }
    }
    Ok(None)
}

/// The superblock's features tell the generation.
fn ext(reader: &Reader) -> io::Result<Option<&'static str>> {
    const SUPERBLOCK: u64 = 1024;
    const HAS_JOURNAL: u32 = 0x4;
    const EXT4_INCOMPATIBLE: u32 = 0x2c0; // extents, 64 bit, flexible groups
    const EXT4_READ_ONLY: u32 = 0x478; // huge files, group checksums, links, sizes, checksums
    let Some(block) = reader.bytes(SUPERBLOCK, 0x68)? else {
        return Ok(None);
    };
    if block[0x38..0x3a] != [0x53, 0xef] {
        return Ok(None);
    }
    let word = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"));
    let (compatible, incompatible, read_only) = (word(0x5c), word(0x60), word(0x64));
    Ok(Some(
        if incompatible & EXT4_INCOMPATIBLE != 0 || read_only & EXT4_READ_ONLY != 0 {
            "an ext4 file system"
        } else if compatible & HAS_JOURNAL != 0 {
            "an ext3 file system"
        } else {
            "an ext2 file system"
        },
    ))
}

/// The mark alone is also on boot sectors of other things: one entry has to make sense.
fn mbr(reader: &Reader) -> io::Result<Option<&'static str>> {
    let Some(sector) = reader.bytes(0, 512)? else {
        return Ok(None);
    };
    let entries = || sector[446..510].chunks_exact(16);
    let sound = entries().all(|entry| matches!(entry[0], 0 | 0x80));
    let used = entries().any(|entry| entry[4] != 0 && entry[12..16] != [0; 4]);
    let found = sector[510..] == [0x55, 0xaa] && sound && used;
    Ok(found.then_some("an MBR partition table"))
}
