//! The file of a volume, through system calls.

use crate::support;
use crate::support::memory_device::Seen;
use crate::support::volume::{Volume, code, read, wait_until};
use block::{ErrorKind, OpKind};
use std::fs::OpenOptions;
use std::io::Seek;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

const MIB: u64 = 1 << 20;

/// Position-dependent bytes.
fn pattern(offset: u64, len: usize) -> Vec<u8> {
    (offset..offset + len as u64)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}

fn fallocate(file: &std::fs::File, mode: i32, offset: u64, len: u64) -> std::io::Result<()> {
    // SAFETY: a system call on an open descriptor.
    match unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, len as i64) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn seek(file: &std::fs::File, offset: i64, whence: i32) -> std::io::Result<i64> {
    // SAFETY: a system call on an open descriptor.
    match unsafe { libc::lseek(file.as_raw_fd(), offset, whence) } {
        -1 => Err(std::io::Error::last_os_error()),
        found => Ok(found),
    }
}

#[test]
fn write_is_submitted_before_reply_and_fsync_flushes() {
    let volume = Volume::new(16 * MIB, 512);
    let file = volume.open();
    let data = pattern(0, 256 << 10);
    file.write_all_at(&data, 8192).unwrap();
    assert!(volume.device.content(8192, data.len()) == data);
    assert!(
        volume
            .device
            .seen()
            .iter()
            .all(|seen| seen.kind == OpKind::Write)
    );
    file.sync_all().unwrap();
    assert_eq!(volume.device.seen()[0].kind, OpKind::Flush);
    assert!(read(&file, 8192, data.len()) == data);
}

#[test]
fn synchronous_write_is_durable_before_reply() {
    let volume = Volume::new(MIB, 512);
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_DSYNC)
        .open(&volume.path)
        .unwrap();
    // Whole and partial LBAs.
    for (offset, len) in [(0, 4096), (700, 100), (511, 2000)] {
        file.write_all_at(&vec![1; len], offset).unwrap();
        let seen = volume.device.seen();
        let is_durable = |seen: &Seen| seen.kind == OpKind::Flush || seen.flags.fua;
        let writes = seen.iter().filter(|seen| seen.kind == OpKind::Write);
        assert!(
            seen.last().is_some_and(is_durable) && writes.count() == 1,
            "{offset}: {seen:?}"
        );
    }
}

#[test]
fn unaligned_io_changes_only_its_bytes() {
    for lba in [512, 4096] {
        let volume = Volume::new(MIB, lba);
        let file = volume.open();
        let mut expected = pattern(0, MIB as usize);
        file.write_all_at(&expected, 0).unwrap();
        for (number, (offset, len)) in [
            (1, 1),
            (511, 2),
            (4095, 2),
            (4000, 5000),
            (8192, 100),
            (8000, 192),
            (100_000, 77_777),
            (MIB as usize - 1, 1),
        ]
        .into_iter()
        .enumerate()
        {
            let bytes = vec![number as u8; len];
            file.write_all_at(&bytes, offset as u64).unwrap();
            expected[offset..offset + len].copy_from_slice(&bytes);
            assert_eq!(read(&file, offset as u64, len), bytes);
        }
        assert!(read(&file, 0, MIB as usize) == expected, "LBA of {lba}");
        assert!(volume.device.content(0, MIB as usize) == expected);
    }
}

#[test]
fn long_write_from_unaligned_memory() {
    let volume = Volume::new(8 * MIB, 4096);
    let data = pattern(0, 5 << 20);
    volume.open().write_all_at(&data[3..], 12_345).unwrap();
    assert!(volume.device.content(12_345, data.len() - 3) == data[3..]);
    let mut back = vec![0; data.len()];
    volume.open().read_exact_at(&mut back[3..], 12_345).unwrap();
    assert!(back[3..] == data[3..]);
}

#[test]
fn concurrent_writes_to_one_block_are_not_lost() {
    let volume = Volume::new(MIB, 4096);
    volume.device.backwards();
    let threads: Vec<_> = (0..8u8)
        .map(|number| {
            let file = volume.open();
            std::thread::spawn(move || {
                for round in 0..50u64 {
                    let at = round * 1024 + u64::from(number) * 128;
                    file.write_all_at(&[number + 1; 128], at).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let expected: Vec<u8> = (0..50 * 1024)
        .map(|at| (at % 1024 / 128) as u8 + 1)
        .collect();
    assert!(volume.device.content(0, expected.len()) == expected);
}

#[test]
fn whole_write_is_not_undone_by_a_concurrent_partial_write() {
    let volume = Volume::new(MIB, 4096);
    let together = std::sync::Arc::new(std::sync::Barrier::new(2));
    let (partial, begin) = (volume.open(), together.clone());
    let other = std::thread::spawn(move || {
        for round in 0..300 {
            begin.wait();
            partial.write_all_at(&[round as u8; 10], 0).unwrap();
            begin.wait();
        }
    });
    let whole = volume.open();
    for round in 0..300 {
        together.wait();
        whole.write_all_at(&[round as u8; 4096], 0).unwrap();
        together.wait();
        assert_eq!(
            volume.device.content(0, 4096),
            [round as u8; 4096],
            "round {round}"
        );
    }
    other.join().unwrap();
}

#[test]
fn end_of_volume_is_end_of_file() {
    let volume = Volume::new(MIB, 4096);
    let mut file = volume.open();
    assert_eq!(file.seek(std::io::SeekFrom::End(0)).unwrap(), MIB);
    assert_eq!(file.read_at(&mut [0; 100], MIB - 10).unwrap(), 10);
    assert_eq!(file.read_at(&mut [0; 100], MIB).unwrap(), 0);
    assert_eq!(file.write_at(&[7; 100], MIB - 10).unwrap(), 10);
    assert_eq!(code(file.write_at(&[7; 100], MIB)), libc::ENOSPC);
    assert_eq!(volume.device.content(MIB - 10, 10), [7; 10]);
}

#[test]
fn file_size_follows_the_volume() {
    let volume = Volume::new(MIB, 512);
    let file = volume.open();
    assert_eq!(code(file.set_len(0)), libc::EPERM);
    assert_eq!(code(file.set_len(2 * MIB)), libc::EPERM);
    file.set_len(MIB).unwrap();
    volume.device.resize(4 * MIB);
    file.write_all_at(&[5; 512], 3 * MIB).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 4 * MIB);
    assert_eq!(std::fs::metadata(&volume.path).unwrap().len(), 4 * MIB);
    assert_eq!(read(&file, 3 * MIB, 512), [5; 512]);
    volume.device.resize(2 * MIB);
    assert_eq!(file.metadata().unwrap().len(), 2 * MIB);
    assert_eq!(code(file.write_at(&[5; 512], 3 * MIB)), libc::ENOSPC);
}

#[test]
fn punched_and_zeroed_ranges_read_as_zeroes() {
    let keep = libc::FALLOC_FL_KEEP_SIZE;
    for (mode, kind) in [
        (libc::FALLOC_FL_PUNCH_HOLE | keep, OpKind::WriteZeroes),
        (libc::FALLOC_FL_ZERO_RANGE | keep, OpKind::WriteZeroes),
    ] {
        let volume = Volume::new(MIB, 4096);
        let file = volume.open();
        let mut expected = pattern(0, MIB as usize);
        file.write_all_at(&expected, 0).unwrap();
        volume.device.seen();
        for (offset, len) in [(8192, 8192), (100, 50), (4000, 200), (20_000, 30_000)] {
            fallocate(&file, mode, offset as u64, len as u64).unwrap();
            expected[offset..offset + len].fill(0);
        }
        assert!(read(&file, 0, MIB as usize) == expected);
        let cleared: Vec<(u64, u64)> = volume
            .device
            .seen()
            .iter()
            .filter(|seen| seen.kind == kind)
            .map(|seen| (seen.offset, seen.len))
            .collect();
        assert_eq!(cleared, [(8192, 8192), (20_480, 28_672)]);
    }
}

#[test]
fn punching_holes_allocates_nothing_and_frees_whole_blocks() {
    let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let volume = Volume::new(MIB, 4096);
    let file = volume.open();
    for (offset, len) in [(100, 50), (4000, 200), (20_000, 30_000)] {
        fallocate(&file, punch, offset, len).unwrap();
    }
    let writes = |seen: &Seen| seen.kind == OpKind::Write;
    assert!(!volume.device.seen().iter().any(writes));
    file.write_all_at(&[1; 4096], 8192).unwrap();
    for part in 0..8 {
        assert_eq!(seek(&file, 0, libc::SEEK_DATA).unwrap(), 8192, "{part}");
        fallocate(&file, punch, 8192 + part * 512, 512).unwrap();
    }
    assert_eq!(code(seek(&file, 0, libc::SEEK_DATA)), libc::ENXIO);
}

#[test]
fn zeroed_range_stays_allocated_and_is_written_in_steps() {
    let zero = libc::FALLOC_FL_ZERO_RANGE;
    for mode in [zero, zero | libc::FALLOC_FL_KEEP_SIZE] {
        let volume = Volume::new(128 * MIB, 512);
        let file = volume.open();
        fallocate(&file, mode, MIB, 64 * MIB).unwrap();
        for seen in volume.device.seen() {
            assert!(
                seen.flags.no_unmap && seen.len <= 16 * MIB,
                "{mode}: {seen:?}"
            );
        }
        let found = [libc::SEEK_DATA, libc::SEEK_HOLE].map(|whence| {
            let from = if whence == libc::SEEK_DATA { 0 } else { MIB };
            seek(&file, from as i64, whence).unwrap() as u64
        });
        assert_eq!(found, [MIB, 65 * MIB]);
    }
}

#[test]
fn space_cannot_be_preallocated() {
    let volume = Volume::new(MIB, 512);
    let file = volume.open();
    assert_eq!(code(fallocate(&file, 0, 0, 4096)), libc::EOPNOTSUPP);
    let zero = libc::FALLOC_FL_ZERO_RANGE;
    assert_eq!(code(fallocate(&file, zero, MIB, 4096)), libc::ENOSPC);
}

#[test]
fn seek_finds_data_and_holes() {
    let volume = Volume::new(8 * MIB, 512);
    let file = volume.open();
    file.write_all_at(&[1; 8192], 4 * MIB).unwrap();
    let (data, hole) = (libc::SEEK_DATA, libc::SEEK_HOLE);
    let start = 4 * MIB as i64;
    assert_eq!(seek(&file, 0, data).unwrap(), start);
    assert_eq!(seek(&file, start + 100, data).unwrap(), start + 100);
    assert_eq!(seek(&file, start, hole).unwrap(), start + 8192);
    assert_eq!(seek(&file, 5, hole).unwrap(), 5);
    assert_eq!(code(seek(&file, start + 8192, data)), libc::ENXIO);
    assert_eq!(code(seek(&file, 8 * MIB as i64, hole)), libc::ENXIO);
    file.write_all_at(&[1; 4096], 8 * MIB - 4096).unwrap();
    assert_eq!(
        seek(&file, 8 * MIB as i64 - 1, hole).unwrap(),
        8 * MIB as i64
    );
}

#[test]
fn volume_errors_become_errno() {
    let volume = Volume::new(MIB, 512);
    let file = volume.open();
    for (error, expected) in [
        (ErrorKind::NoSpace, libc::ENOSPC),
        (ErrorKind::ReadOnly, libc::EROFS),
        (ErrorKind::Medium, libc::EIO),
        (ErrorKind::Device, libc::EIO),
        (ErrorKind::Gone, libc::ENODEV),
        (ErrorKind::Invalid, libc::EINVAL),
        (ErrorKind::Unsupported, libc::EOPNOTSUPP),
    ] {
        volume.device.fail(OpKind::Write, error);
        assert_eq!(code(file.write_at(&[1; 512], 0)), expected, "{error:?}");
        assert_eq!(
            code(file.write_at(&[1; 5], 0)),
            expected,
            "{error:?}, a part"
        );
        volume.device.fail(OpKind::Read, error);
        assert_eq!(code(file.read_at(&mut [1; 512], 0)), expected, "{error:?}");
        volume.device.fail(OpKind::Flush, error);
        assert_eq!(code(file.sync_all()), expected, "{error:?}");
    }
    volume.device.heal();
    file.write_all_at(&[1; 512], 0).unwrap();
}

#[test]
fn rejected_operations_are_resubmitted() {
    let volume = Volume::new(MIB, 512);
    volume.device.limit(1);
    volume.device.hold();
    let threads: Vec<_> = (0..8u64)
        .map(|number| {
            let file = volume.open();
            std::thread::spawn(move || {
                for round in 0..20 {
                    let at = number * 20_000 + round * 1000;
                    file.write_all_at(&[number as u8 + 1; 1000], at).unwrap();
                }
            })
        })
        .collect();
    wait_until("one was rejected", || volume.device.given_back() > 0);
    volume.device.go_on();
    for thread in threads {
        thread.join().unwrap();
    }
    let expected: Vec<u8> = (0..160_000).map(|at| (at / 20_000) as u8 + 1).collect();
    assert!(volume.device.content(0, expected.len()) == expected);
}

#[test]
fn read_only_volume_opens_read_only() {
    let volume = Volume::new(MIB, 512);
    let other = support::memory_device::MemoryDevice::new(MIB, 512);
    other.read_only();
    let _export = volume.place.export("fixed", &other, &[]).unwrap();
    let path = volume.place.folder.join("fixed");
    let error = OpenOptions::new().write(true).open(&path);
    assert_eq!(code(error), libc::EROFS);
    assert_eq!(read(&std::fs::File::open(&path).unwrap(), 0, 10), [0; 10]);
}

#[test]
fn shared_memory_map_is_written_back() {
    let volume = Volume::new(MIB, 4096);
    let file = volume.open();
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of an open file, accessed within its length only and removed below.
    unsafe {
        let base = libc::mmap(
            std::ptr::null_mut(),
            8192,
            protection,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(
            base,
            libc::MAP_FAILED,
            "{}",
            std::io::Error::last_os_error()
        );
        base.cast::<u8>().add(5000).write(42);
        assert_eq!(libc::msync(base, 8192, libc::MS_SYNC), 0);
        libc::munmap(base, 8192);
    }
    assert_eq!(volume.device.content(5000, 1), [42]);
}

#[test]
fn owner_and_mode_follow_the_export() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let volume = Volume::new(MIB, 512);
    let access = |path: &std::path::Path| {
        let meta = std::fs::metadata(path).unwrap();
        (meta.uid(), meta.gid(), meta.mode() & 0o7777)
    };
    let own = access(&volume.path);
    assert_eq!(own.2, 0o600);
    let other = support::memory_device::MemoryDevice::new(MIB, 512);
    let given = [("owner", "1"), ("group", "2"), ("mode", "0640")];
    let export = volume.place.export("given", &other, &given).unwrap();
    let path = volume.place.folder.join("given");
    assert_eq!(access(&path), (1, 2, 0o640));
    // Changes that would be lost are refused; those without effect are not.
    assert_eq!(code(chown(&path, Some(3), None)), libc::EPERM);
    let set_mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode));
    assert_eq!(code(set_mode(0o777)), libc::EPERM);
    chown(&path, Some(1), Some(2)).unwrap();
    set_mode(0o640).unwrap();
    let mount = ("mount", volume.place.folder.to_str().unwrap());
    let change = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().copied().chain([mount]);
        export.change(
            &pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    };
    change(&[("group", "9"), ("mode", "0664")]).unwrap();
    assert_eq!(access(&path), (own.0, 9, 0o664));
    assert!(change(&[("mode", "0666"), ("allow-other", "yes")]).is_err());
    assert!(change(&[("mode", "rw")]).is_err());
    assert_eq!(access(&path), (own.0, 9, 0o664));
}

/// Total and free blocks of 4 KiB from `statvfs(3)`.
fn blocks(path: &std::path::Path) -> (u64, u64) {
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: all zeroes are a valid value of this type.
    let mut told: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a zero-terminated path, and a valid pointer for the result.
    let result = unsafe { libc::statvfs(path.as_ptr(), &raw mut told) };
    assert_eq!(
        (result, told.f_frsize, told.f_bfree),
        (0, 4096, told.f_bavail)
    );
    (told.f_blocks, told.f_bfree)
}

#[test]
fn file_reports_stored_blocks_and_free_space_of_the_pool() {
    let volume = Volume::new(64 * MIB, 512);
    let export = volume.export.as_ref().unwrap();
    let taken = || std::fs::metadata(&volume.path).unwrap().blocks() * 512;
    // Not known yet: fully allocated, in a file system without space of its own.
    assert_eq!(taken(), 64 * MIB);
    assert_eq!(blocks(&volume.path), (0, 0));
    for (stored, expected) in [(3 * MIB, 3 * MIB), (100 * MIB, 64 * MIB), (0, 4096)] {
        export.note_stored(stored);
        assert_eq!(taken(), expected);
    }
    let space = |used, capacity| reactor::Space {
        used,
        capacity,
        warn_at: None,
    };
    export.note_space(space(300 * MIB, 1024 * MIB), false);
    assert_eq!(blocks(&volume.path), (256 * 1024, 256 * 724));
    assert_eq!(blocks(&volume.place.folder), (256 * 1024, 256 * 724));
    export.note_space(space(2 * MIB, MIB), false);
    assert_eq!(blocks(&volume.path), (256, 0));
}
