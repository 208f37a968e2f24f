//! The contract of every kind of drive: each test runs over every row of the table.

use crate::support::folder::Folder;
use block::{DriveError, DriveIoKind, DriveQueue, DriveQueueExt};
use drives::{DriveKind, OpenDrive, OpenErrorKind};
use reactor::{Handle, Reactor};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

const SIZE: u64 = 64 << 20;

/// Namespaces of NVMe that tests may overwrite, of at least 64 MiB, as numbers: `0n1 1n1`. They are drives of two
/// kinds. Where there are none these kinds are not tried with them: tests/e2e/nvme.sh has some, in a guest.
const NAMESPACES: &str = "CONVECT_TEST_NVME";

fn namespaces() -> Vec<String> {
    let given = std::env::var(NAMESPACES).unwrap_or_default();
    given.split_whitespace().map(str::to_owned).collect()
}

/// Drives of a kind that no other test uses meanwhile, new as from the factory. A new row needs some here.
fn samples(kind: &DriveKind, folder: &Path) -> Vec<String> {
    let unique = folder.file_name().unwrap().to_str().unwrap();
    let mut samples = match kind.name {
        "file" => vec![format!("file:{}/drive?size=64M", folder.display())],
        "nvme" => vec![],
        "ram" => vec![format!("ram:{unique}?size=64M")],
        "null" => vec![format!("null:{unique}?size=64M")],
        "model" => vec![format!("model:ssd-sata,seed=7:ram:{unique}-inner?size=64M")],
        name => panic!("no sample of the kind {name}"),
    };
    for number in namespaces() {
        match kind.name {
            "file" => samples.push(format!("file:/dev/nvme{number}")),
            "nvme" => samples.push(format!("nvme:/dev/ng{number}")),
            _ => continue,
        }
        let node = OpenOptions::new()
            .write(true)
            .open(format!("/dev/nvme{number}"));
        // Zeroes by a command of the drive: written, they would be most of the test's time in an emulated guest.
        let node = node.unwrap();
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the descriptor is open, and the call takes no memory.
        let done = unsafe { libc::fallocate(node.as_raw_fd(), mode, 0, SIZE as i64) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
    samples
}

/// Calls `test` with drives of every kind.
fn for_every_sample(test: impl Fn(&'static DriveKind, &str)) {
    for kind in drives::kinds() {
        let folder = Folder::new();
        for spec in samples(kind, folder.path()) {
            test(kind, &spec);
        }
    }
}

/// Runs `test` with a fresh drive of each kind, its queue and its loop.
fn for_every_kind<F: Future<Output = ()> + 'static>(
    test: impl Fn(&'static DriveKind, Arc<dyn OpenDrive>, Rc<dyn DriveQueue>, Handle) -> F,
) {
    for_every_sample(|kind, spec| {
        let drive = drives::open(spec).unwrap();
        let reactor = Reactor::new(1).unwrap();
        let handle = reactor.handle().clone();
        let queue = drive.queue(&handle).unwrap();
        let future = test(kind, drive, queue, handle);
        reactor
            .block_on(future)
            .unwrap_or_else(|error| panic!("{spec}: {error}"));
    });
}

fn pattern(handle: &Handle, len: usize, seed: u8) -> block::DmaBuf {
    let mut buf = handle.dma().get(len);
    for (index, byte) in buf.iter_mut().enumerate() {
        *byte = (index % 251) as u8 ^ seed;
    }
    buf
}

#[test]
fn the_first_and_the_last_sector_read_back_as_written() {
    for_every_kind(|kind, drive, queue, handle| async move {
        let info = drive.info();
        assert_eq!(info.size, SIZE, "{}", kind.name);
        let sector = info.logical_sector as usize;
        for (offset, seed) in [(0, 3), (SIZE - sector as u64, 99)] {
            let data = pattern(&handle, sector, seed);
            queue.write(offset, data.clone()).await.unwrap();
            let back = queue.read(offset, handle.dma().get(sector)).await.unwrap();
            let expected = if kind.keeps_data {
                data.to_vec()
            } else {
                vec![0; sector]
            };
            assert_eq!(&back[..], &expected[..], "{} at {offset}", kind.name);
        }
    });
}

#[test]
fn sixteen_mebibytes_go_in_one_request() {
    for_every_kind(|kind, _drive, queue, handle| async move {
        let data = pattern(&handle, 16 << 20, 5);
        queue.write(1 << 20, data.clone()).await.unwrap();
        let back = queue.read(1 << 20, handle.dma().get(16 << 20)).await;
        assert!(
            !kind.keeps_data || back.unwrap()[..] == data[..],
            "{}",
            kind.name
        );
    });
}

#[test]
fn a_new_drive_reads_as_zeroes() {
    for_every_kind(|kind, _drive, queue, handle| async move {
        let back = queue.read(8 << 20, pattern(&handle, 65_536, 1)).await;
        assert!(back.unwrap().iter().all(|byte| *byte == 0), "{}", kind.name);
    });
}

#[test]
fn flush_and_discard_end_well_and_leave_the_neighbours_alone() {
    for_every_kind(|kind, _drive, queue, handle| async move {
        let data = pattern(&handle, 12 << 10, 8);
        queue.write(4096, data.clone()).await.unwrap();
        queue.flush().await.unwrap();
        queue.discard(8192, 4096).await.unwrap();
        queue.discard(16 << 20, 32 << 20).await.unwrap();
        let back = queue.read(4096, handle.dma().get(12 << 10)).await.unwrap();
        if kind.keeps_data {
            assert!(back[..4096] == data[..4096], "{}", kind.name);
            assert!(back[8192..] == data[8192..], "{}", kind.name);
        }
    });
}

#[test]
fn requests_outside_or_misaligned_are_refused_and_give_the_buffer_back() {
    for_every_kind(|kind, drive, queue, handle| async move {
        let sector = u64::from(drive.info().logical_sector);
        let cases = [
            (SIZE, sector),
            (SIZE - sector, 2 * sector),
            (u64::MAX - sector + 1, sector),
            (u64::MAX - 4095, 8192),
            (1, sector),
            (0, sector - 1),
            (sector / 2, sector),
            (0, 0),
        ];
        for io in [DriveIoKind::Read, DriveIoKind::Write, DriveIoKind::Discard] {
            for (offset, len) in cases {
                let with_buf = io != DriveIoKind::Discard;
                let buf = with_buf.then(|| handle.dma().get(len as usize));
                let (buf, result) = queue.start(io, offset, len, buf).await.unwrap();
                let what = format!("{} {io:?} {offset}+{len}", kind.name);
                assert_eq!(result, Err(DriveError::Bounds), "{what}");
                assert_eq!(buf.is_some(), with_buf, "{what}");
            }
        }
    });
}

#[test]
fn a_buffer_of_another_length_or_none_is_refused() {
    for_every_kind(|kind, _drive, queue, handle| async move {
        for io in [DriveIoKind::Read, DriveIoKind::Write] {
            for buf in [None, Some(handle.dma().get(4096))] {
                let (_, result) = queue.start(io, 0, 8192, buf).await.unwrap();
                assert_eq!(result, Err(DriveError::Bounds), "{} {io:?}", kind.name);
            }
        }
    });
}

#[test]
fn many_requests_at_once_all_end_and_none_stays_in_flight() {
    for_every_kind(|kind, _drive, queue, handle| async move {
        // More than the ring has entries and than a modelled disk queues.
        let count = 700u64;
        let writes: Vec<_> = (0..count)
            .map(|index| {
                let data = pattern(&handle, 4096, index as u8);
                queue.start(DriveIoKind::Write, index * 8192, 4096, Some(data))
            })
            .collect();
        for write in writes {
            assert_eq!(write.await.unwrap().1, Ok(()), "{}", kind.name);
        }
        let reads: Vec<_> = (0..count)
            .rev()
            .map(|index| {
                let buf = handle.dma().get(4096);
                let wait = queue.start(DriveIoKind::Read, index * 8192, 4096, Some(buf));
                (index, wait)
            })
            .collect();
        for (index, read) in reads {
            let (buf, result) = read.await.unwrap();
            assert_eq!(result, Ok(()), "{}", kind.name);
            let expected = pattern(&handle, 4096, index as u8);
            assert!(
                !kind.keeps_data || buf.unwrap()[..] == expected[..],
                "{} {index}",
                kind.name
            );
        }
        queue.flush().await.unwrap();
        assert_eq!(queue.in_flight(), 0, "{}", kind.name);
    });
}

#[test]
fn a_request_that_nobody_waits_for_still_ends() {
    for_every_kind(|kind, _drive, queue, handle| async move {
        for index in 0..64u64 {
            let buf = handle.dma().get(65_536);
            drop(queue.start(DriveIoKind::Read, index << 16, 65_536, Some(buf)));
        }
        let deadline = handle.now_ns() + 120_000_000_000;
        while queue.in_flight() > 0 {
            assert!(handle.now_ns() < deadline, "{} is stuck", kind.name);
            handle.sleep(1_000_000).await;
        }
    });
}

#[test]
fn a_loop_may_end_with_requests_in_flight() {
    for_every_kind(|_kind, drive, queue, handle| async move {
        for index in 0..64u64 {
            let buf = pattern(&handle, 65_536, 1);
            drop(queue.start(DriveIoKind::Write, index << 16, 65_536, Some(buf)));
        }
        drop((queue, drive));
    });
}

#[test]
fn several_threads_share_a_drive() {
    for_every_sample(|kind, spec| {
        let drive = drives::open(spec).unwrap();
        let threads: Vec<_> = (0..3u64)
            .map(|number| {
                let drive = drive.clone();
                std::thread::spawn(move || {
                    let reactor = Reactor::new(number).unwrap();
                    let handle = reactor.handle().clone();
                    let queue = drive.queue(&handle).unwrap();
                    let keeps = kind.keeps_data;
                    reactor.block_on(async move {
                        for index in 0..50 {
                            let at = (index * 3 + number) * 4096;
                            let data = pattern(&handle, 4096, at as u8);
                            queue.write(at, data.clone()).await.unwrap();
                            let back = queue.read(at, handle.dma().get(4096)).await.unwrap();
                            assert!(!keeps || back[..] == data[..]);
                        }
                    })
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect(kind.name).unwrap();
        }
    });
}

#[test]
fn the_canonical_text_opens_the_same_drive_and_stays_as_it_is() {
    for_every_sample(|kind, spec| {
        let canonical = drives::canonical(spec).unwrap();
        assert_eq!(drives::canonical(&canonical).unwrap(), canonical);
        let first = drives::open(spec).unwrap();
        assert_eq!(first.info().spec, canonical);
        let size = first.info().size;
        drop(first);
        let second = drives::open(&canonical).unwrap();
        assert_eq!(second.info().size, size, "{}", kind.name);
    });
}

#[test]
fn a_drive_that_keeps_data_is_open_once_at_a_time() {
    for_every_sample(|kind, spec| {
        if kind.keeps_data {
            let first = drives::open(spec).unwrap();
            let error = drives::open(spec).unwrap_err();
            assert_eq!(error.kind, OpenErrorKind::Busy, "{spec}: {error}");
            drop(first);
            drives::open(spec).unwrap();
        }
    });
}

#[test]
fn data_is_there_when_the_drive_is_opened_again() {
    for_every_sample(|kind, spec| {
        for write in [true, false].into_iter().filter(|_| kind.keeps_data) {
            let reactor = Reactor::new(1).unwrap();
            let handle = reactor.handle().clone();
            let drive = drives::open(spec).unwrap();
            let queue = drive.queue(&handle).unwrap();
            reactor
                .block_on(async move {
                    let data = pattern(&handle, 4096, 9);
                    if write {
                        queue.write(8192, data).await.unwrap();
                    } else {
                        let back = queue.read(8192, handle.dma().get(4096)).await.unwrap();
                        assert!(back[..] == data[..], "{}", kind.name);
                    }
                })
                .unwrap();
        }
    });
}
