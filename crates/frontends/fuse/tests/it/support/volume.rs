//! Exports in a directory of their own.

use super::memory_device::MemoryDevice;
use reactor::{Export, ReactorThread, StartExport};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Event loops and a mount point.
pub struct Place {
    pub folder: PathBuf,
    pub loops: Vec<ReactorThread>,
}

impl Place {
    pub fn new() -> Self {
        assert!(
            Path::new("/dev/fuse").exists(),
            "/dev/fuse is missing: run 'modprobe fuse', or add that device to the container"
        );
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("convect-fuse-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self {
            folder,
            loops: vec![ReactorThread::start("fuse-test", 1).unwrap()],
        }
    }

    pub fn export(
        &self,
        name: &str,
        device: &Arc<MemoryDevice>,
        parameters: &[(&str, &str)],
    ) -> std::io::Result<Box<dyn Export>> {
        let mut all: Vec<(String, String)> = parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        all.push(("mount".to_owned(), self.folder.display().to_string()));
        (frontend_fuse::FRONT_END.start)(StartExport {
            name: name.to_owned(),
            volume: "pool/volume".to_owned(),
            device: device.clone(),
            open_for: None,
            keeper: std::sync::Arc::new(reactor::NoKeeper),
            memory: reactor::Budget::new(64 << 20),
            parameters: all.into_iter().collect(),
            remotes: self
                .loops
                .iter()
                .map(|each| each.remote().clone())
                .collect(),
        })
    }

    pub fn is_mounted(&self) -> bool {
        is_mounted(&self.folder)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn is_mounted(folder: &Path) -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let folder = folder.display().to_string();
    table
        .lines()
        .any(|line| line.split(' ').nth(4) == Some(&folder))
}

/// An export and its file, removed on drop.
pub struct Volume {
    pub device: Arc<MemoryDevice>,
    pub export: Option<Box<dyn Export>>,
    pub path: PathBuf,
    pub place: Place,
}

impl Volume {
    pub fn new(size: u64, lba: u32) -> Self {
        let device = MemoryDevice::new(size, lba);
        let place = Place::new();
        let export = Some(place.export("disk", &device, &[]).unwrap());
        Self {
            device,
            export,
            path: place.folder.join("disk"),
            place,
        }
    }

    pub fn open(&self) -> File {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&self.path)
            .unwrap()
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        self.export = None;
    }
}

pub fn read(file: &File, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

pub fn code<T: std::fmt::Debug>(result: std::io::Result<T>) -> i32 {
    result.unwrap_err().raw_os_error().unwrap()
}

pub fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new("timeout")
        .arg("600")
        .arg(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program} cannot be run ({error}): ./dev test installs it"))
}

pub fn good(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Waits until `condition` holds, for a limited time.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "timeout waiting until {what}");
        std::thread::yield_now();
    }
}
