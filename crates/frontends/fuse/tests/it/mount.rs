//! Mounts: creation, contents and removal.

use crate::support::memory_device::MemoryDevice;
use crate::support::volume::{Place, Volume, code, is_mounted, wait_until};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MIB: u64 = 1 << 20;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn exports_share_a_directory_and_the_last_unmounts_it() {
    let place = Place::new();
    let (one, two) = (
        MemoryDevice::new(MIB, 512),
        MemoryDevice::new(2 * MIB, 4096),
    );
    let first = place.export("one", &one, &[]).unwrap();
    let second = place.export("two", &two, &[]).unwrap();
    assert_eq!(names(&place.folder), ["one", "two"]);
    assert_eq!(
        first.address(),
        place.folder.join("one").display().to_string()
    );
    assert_eq!(
        std::fs::metadata(place.folder.join("two")).unwrap().len(),
        2 * MIB
    );
    std::fs::write(place.folder.join("missing"), b"x").unwrap_err();
    let file = OpenOptions::new()
        .write(true)
        .open(place.folder.join("two"))
        .unwrap();
    file.write_all_at(&[2; 4096], 0).unwrap();
    assert_eq!((one.content(0, 1), two.content(0, 1)), (vec![0], vec![2]));
    drop(first);
    assert_eq!(names(&place.folder), ["two"]);
    assert!(place.is_mounted());
    drop(file);
    drop(second);
    assert!(!place.is_mounted());
    drop(place.export("one", &one, &[]).unwrap());
}

#[test]
fn many_files_are_listed() {
    let place = Place::new();
    let device = MemoryDevice::new(MIB, 512);
    let exports: Vec<_> = (0..200)
        .map(|number| {
            place.export(
                &format!("volume-{number:03}-{}", "x".repeat(200)),
                &device,
                &[],
            )
        })
        .collect();
    assert!(exports.iter().all(Result::is_ok));
    assert_eq!(names(&place.folder).len(), 200);
}

#[test]
fn invalid_mount_points_are_refused_with_advice() {
    let place = Place::new();
    let device = MemoryDevice::new(MIB, 512);
    let start = |mount: &Path| {
        let mount = mount.display().to_string();
        (frontend_fuse::FRONT_END.start)(reactor::StartExport {
            name: "disk".to_owned(),
            volume: String::new(),
            device: device.clone(),
            open_for: None,
            keeper: std::sync::Arc::new(reactor::NoKeeper),
            memory: reactor::Budget::new(64 << 20),
            parameters: [("mount".to_owned(), mount)].into(),
            remotes: vec![place.loops[0].remote().clone()],
        })
        .err()
        .unwrap()
        .to_string()
    };
    let (file, full) = (place.folder.join("file"), place.folder.join("full"));
    std::fs::write(&file, b"").unwrap();
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("x"), b"").unwrap();
    for (path, advice) in [
        (place.folder.join("missing"), "create it first"),
        (file, "choose an empty directory"),
        (full, "choose an empty directory"),
    ] {
        let error = start(&path);
        assert!(error.contains(advice), "{error}");
        assert!(!is_mounted(&path));
    }
}

#[test]
fn taken_name_and_different_access_are_refused() {
    let volume = Volume::new(MIB, 512);
    let again = volume
        .place
        .export("disk", &volume.device, &[])
        .err()
        .unwrap();
    assert!(again.to_string().contains("choose another name"), "{again}");
    let other = volume
        .place
        .export("other", &volume.device, &[("allow-other", "yes")]);
    let other = other.err().unwrap();
    assert!(other.to_string().contains("allow-other"), "{other}");
    assert_eq!(names(&volume.place.folder), ["disk"]);
}

#[test]
fn export_stops_although_its_file_is_open() {
    let mut volume = Volume::new(MIB, 512);
    let file = volume.open();
    file.write_all_at(&[1; 512], 0).unwrap();
    assert_eq!(volume.export.as_ref().unwrap().sessions(), 1);
    volume.export = None;
    assert!(!volume.place.is_mounted());
    assert_eq!(code(file.write_at(&[1; 512], 0)), libc::ESTALE);
    let again = volume.place.export("disk", &volume.device, &[]).unwrap();
    assert!(volume.path.exists());
    drop(file);
    drop(again);
    assert!(!volume.place.is_mounted());
}

#[test]
fn export_waits_for_operations_in_flight() {
    let mut volume = Volume::new(MIB, 512);
    let file = volume.open();
    volume.device.hold();
    let writer = std::thread::spawn(move || file.write_all_at(&[9; 512], 0));
    wait_until("the request is in flight", || {
        volume.device.in_flight() == 1
    });
    let device = volume.device.clone();
    let export = volume.export.take();
    let ending = std::thread::spawn(move || drop(export));
    wait_until("the directory is unmounted", || !volume.place.is_mounted());
    device.go_on();
    writer.join().unwrap().unwrap();
    ending.join().unwrap();
    assert_eq!(device.content(0, 1), [9]);
}

#[test]
fn long_request_is_aborted_with_the_export() {
    let mut volume = Volume::new(5 << 30, 512);
    let file = volume.open();
    volume.device.hold();
    let puncher = std::thread::spawn(move || {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: a system call on an open descriptor.
        unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, 5 << 30) }
    });
    wait_until("the request is in flight", || {
        volume.device.in_flight() == 1
    });
    let export = volume.export.take();
    let ending = std::thread::spawn(move || drop(export));
    wait_until("the directory is unmounted", || !volume.place.is_mounted());
    volume.device.go_on();
    assert_eq!(puncher.join().unwrap(), -1);
    ending.join().unwrap();
    assert_eq!(volume.device.seen().len(), 1);
}

#[test]
fn ended_volume_returns_errors() {
    let volume = Volume::new(MIB, 512);
    let file = volume.open();
    volume.device.end();
    assert_eq!(code(file.write_at(&[1; 512], 0)), libc::ENODEV);
    assert_eq!(code(std::fs::File::open(&volume.path)), libc::ENODEV);
}

#[test]
fn the_mount_of_a_killed_daemon_is_cleared_away() {
    let place = Place::new();
    let device = MemoryDevice::new(MIB, 512);
    // The daemon that dies is this test program again, selected by an environment variable.
    let mut daemon = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "mount::serve_until_killed", "--nocapture"])
        .env("CONVECT_FUSE_TEST_FOLDER", &place.folder)
        .spawn()
        .unwrap();
    wait_until("the directory is mounted", || {
        place.folder.join("disk").exists()
    });
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert_eq!(code(std::fs::metadata(&place.folder)), libc::ENOTCONN);
    let export = place.export("disk", &device, &[]).unwrap();
    assert_eq!(names(&place.folder), ["disk"]);
    drop(export);
    assert!(!place.is_mounted());
}

/// Not a test: the daemon that is killed by `the_mount_of_a_killed_daemon_is_cleared_away`.
#[test]
fn serve_until_killed() {
    let Some(folder) = std::env::var_os("CONVECT_FUSE_TEST_FOLDER") else {
        return;
    };
    let mut place = Place::new();
    std::fs::remove_dir(&place.folder).unwrap();
    place.folder = folder.into();
    let device = MemoryDevice::new(MIB, 512);
    let _export = place.export("disk", &device, &[]).unwrap();
    std::thread::park();
}
