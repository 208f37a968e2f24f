//! The content of a drive is recognised, on images made by the real tools and on handmade ones.

use crate::support::folder::Folder;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

const SIZE: u64 = 512 << 20;

fn image(path: &Path, pieces: &[(u64, &[u8])]) {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .unwrap();
    file.set_len(SIZE).unwrap();
    for (offset, bytes) in pieces {
        file.write_all_at(bytes, *offset).unwrap();
    }
}

fn found(path: &Path) -> Option<String> {
    drives::found_on(path.to_str().unwrap()).unwrap()
}

/// Superblock of ext with the three words of features.
fn ext(compatible: u32, incompatible: u32, read_only: u32) -> Vec<u8> {
    let mut block = vec![0; 0x68];
    block[0x38..0x3a].copy_from_slice(&[0x53, 0xef]);
    for (at, word) in [(0x5c, compatible), (0x60, incompatible), (0x64, read_only)] {
        block[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    block
}

/// First sector with one partition of `kind`.
fn mbr(boot: u8, kind: u8) -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[446] = boot;
    sector[450] = kind;
    sector[454..462].copy_from_slice(&[0, 8, 0, 0, 0, 0, 16, 0]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

#[test]
fn bytes_at_their_places_name_the_format() {
    let (md, bcache) = ([0xfc, 0x4e, 0x2b, 0xa9], {
        let start = [0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca];
        let end = [0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81];
        [start, end].concat()
    });
    let lvm = [b"LABELONE".as_slice(), &[0; 16], b"LVM2 001"].concat();
    let uberblock = 0x00ba_b10c_u64;
    let cases: Vec<(u64, Vec<u8>, &str)> = vec![
        (1024, ext(0, 2, 1), "an ext2 file system"),
        (1024, ext(4, 2, 1), "an ext3 file system"),
        (1024, ext(4, 0x42, 1), "an ext4 file system"),
        (0, b"XFSB".to_vec(), "an xfs file system"),
        (0x1_0040, b"_BHRfS_M".to_vec(), "a btrfs file system"),
        (4086, b"SWAPSPACE2".to_vec(), "swap space"),
        (512, lvm.clone(), "an LVM physical volume"),
        (1536, lvm, "an LVM physical volume"),
        (0, b"LUKS\xba\xbe\x00\x02".to_vec(), "LUKS encryption"),
        (512, b"EFI PART".to_vec(), "a GPT partition table"),
        (SIZE - 512, b"EFI PART".to_vec(), "a GPT partition table"),
        (0, mbr(0x80, 0x83), "an MBR partition table"),
        (
            (128 << 10) + 5 * 1024,
            uberblock.to_le_bytes().to_vec(),
            "a member of a ZFS pool",
        ),
        (
            SIZE - (128 << 10),
            uberblock.to_be_bytes().to_vec(),
            "a member of a ZFS pool",
        ),
        (0, md.to_vec(), "a member of a Linux software RAID (md)"),
        (4096, md.to_vec(), "a member of a Linux software RAID (md)"),
        (
            SIZE - 8192,
            md.to_vec(),
            "a member of a Linux software RAID (md)",
        ),
        (
            SIZE - 65_536,
            md.to_vec(),
            "a member of a Linux software RAID (md)",
        ),
        (4096 + 24, bcache, "a bcache device"),
        (3, b"NTFS    ".to_vec(), "an NTFS file system"),
        (54, b"FAT16   ".to_vec(), "a FAT file system"),
        (82, b"FAT32   ".to_vec(), "a FAT file system"),
    ];
    let folder = Folder::new();
    let path = folder.path().join("image");
    for (offset, bytes, name) in cases {
        image(&path, &[(offset, &bytes)]);
        assert_eq!(found(&path).as_deref(), Some(name), "at {offset}");
    }
}

#[test]
fn a_blank_drive_and_random_bytes_bear_nothing() {
    let folder = Folder::new();
    let path = folder.path().join("image");
    image(&path, &[]);
    assert_eq!(found(&path), None);
    let noise: Vec<u8> = (0..2u32 << 20)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    image(&path, &[(0, &noise)]);
    assert_eq!(found(&path), None);
    // The mark of a boot sector without a partition that makes sense.
    image(&path, &[(0, &mbr(0x17, 0x83))]);
    assert_eq!(found(&path), None);
}

#[test]
fn a_file_system_that_begins_with_a_boot_sector_is_no_partition_table() {
    let folder = Folder::new();
    let path = folder.path().join("image");
    image(&path, &[(0, &mbr(0x80, 0x83)), (82, b"FAT32   ")]);
    assert_eq!(found(&path).as_deref(), Some("a FAT file system"));
}

#[test]
fn a_drive_too_small_for_a_mark_is_looked_at_without_error() {
    for size in [0u64, 1, 511, 4096, 70_000] {
        let read = |offset: u64, buf: &mut [u8]| {
            assert!(offset + buf.len() as u64 <= size, "read past the end");
            buf.fill(0);
            Ok(())
        };
        assert_eq!(drives::signature(read, size).unwrap(), None);
    }
}

#[test]
fn a_drive_that_cannot_be_read_is_not_called_blank() {
    let broken = |_: u64, _: &mut [u8]| Err(std::io::Error::from_raw_os_error(libc::EIO));
    assert!(drives::signature(broken, SIZE).is_err());
}

#[test]
fn what_the_real_tools_make_is_named() {
    let cases: [(&str, &[&str], &str); 8] = [
        ("mkfs.ext2", &["-q", "-F"], "an ext2 file system"),
        ("mkfs.ext3", &["-q", "-F"], "an ext3 file system"),
        ("mkfs.ext4", &["-q", "-F"], "an ext4 file system"),
        ("mkfs.xfs", &["-q"], "an xfs file system"),
        ("mkfs.btrfs", &["-q"], "a btrfs file system"),
        ("mkswap", &[], "swap space"),
        ("mkfs.vfat", &[], "a FAT file system"),
        ("mkfs.ntfs", &["-q", "-F", "-f"], "an NTFS file system"),
    ];
    let folder = Folder::new();
    let path = folder.path().join("image");
    let mut seen = 0;
    for (tool, arguments, name) in cases {
        image(&path, &[]);
        let mut command = Command::new(tool);
        command.args(arguments).arg(&path);
        // Administrators' tools are not always on the path of other users.
        command.env(
            "PATH",
            format!(
                "{}:/usr/sbin:/sbin",
                std::env::var("PATH").unwrap_or_default()
            ),
        );
        let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        // A tool that is not installed makes no image; the formats are covered above too.
        let Ok(status) = ended else { continue };
        assert!(status.success(), "{tool} failed");
        assert_eq!(found(&path).as_deref(), Some(name), "{tool}");
        seen += 1;
    }
    println!("{seen} of {} tools are installed", cases.len());
}
