//! A file system on a loop device over the file of a volume.

use crate::support::volume::{Volume, good, run};
use std::path::{Path, PathBuf};

const SIZE: u64 = 128 << 20;

/// A loop device, detached on drop.
struct Loop(String);

impl Loop {
    fn new(file: &Path, direct: &str) -> Self {
        let direct = format!("--direct-io={direct}");
        let path = file.to_str().unwrap();
        Self(
            good("losetup", &["--find", "--show", &direct, path])
                .trim()
                .to_owned(),
        )
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.0]);
    }
}

/// A mounted file system, unmounted on drop.
struct Mounted(PathBuf);

impl Mounted {
    fn new(device: &str) -> Self {
        let number = device.trim_start_matches("/dev/loop");
        let name = format!("convect-loop-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        good("mount", &[device, folder.to_str().unwrap()]);
        Self(folder)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &[self.0.to_str().unwrap()]);
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn file_system_survives(direct: &str, lba: u32) {
    let volume = Volume::new(SIZE, lba);
    let files: Vec<(String, Vec<u8>)> = (0..20)
        .map(|number| (format!("file-{number}"), noise(number, 1_234_567)))
        .collect();
    {
        let device = Loop::new(&volume.path, direct);
        good("mkfs.ext4", &["-q", &device.0]);
        let mounted = Mounted::new(&device.0);
        for (name, content) in &files {
            std::fs::write(mounted.0.join(name), content).unwrap();
        }
        std::fs::remove_file(mounted.0.join("file-7")).unwrap();
        good("fstrim", &[mounted.0.to_str().unwrap()]);
    }
    good("e2fsck", &["-f", "-n", volume.path.to_str().unwrap()]);
    let device = Loop::new(&volume.path, direct);
    let mounted = Mounted::new(&device.0);
    for (name, content) in files.iter().filter(|file| file.0 != "file-7") {
        assert!(
            &std::fs::read(mounted.0.join(name)).unwrap() == content,
            "{name}"
        );
    }
}

#[test]
fn ext4_on_a_loop_device_with_direct_io() {
    file_system_survives("on", 512);
}

#[test]
fn ext4_on_a_buffered_loop_device() {
    file_system_survives("off", 512);
}

#[test]
fn ext4_on_a_loop_device_over_large_sectors() {
    file_system_survives("off", 4096);
}
