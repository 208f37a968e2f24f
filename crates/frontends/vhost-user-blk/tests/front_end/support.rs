//! An export in a temporary directory, and helpers.

use crate::device::{TestDevice, memory_file};
use block::BlockDevice;
use frontend_vhost_user_blk::FRONT_END;
use reactor::{Export, ReactorThread, StartExport};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vhost_client::{Client, ClientQueue, Command, Done, Options};

pub const TIMEOUT: Duration = Duration::from_secs(120);
pub const OK: u8 = 0;
pub const IO_ERROR: u8 = 1;
pub const UNSUPPORTED: u8 = 2;

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// A directory that is removed on drop.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("convect-vhost-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A served volume.
pub struct Served {
    pub export: Option<Box<dyn Export>>,
    pub device: Arc<TestDevice>,
    pub path: PathBuf,
    pub loops: Vec<ReactorThread>,
    _folder: Folder,
}

/// Starts an export of a device on `loops` event loops.
pub fn start(
    device: Arc<dyn BlockDevice>,
    path: &std::path::Path,
    loops: &[ReactorThread],
) -> io::Result<Box<dyn Export>> {
    let parameters = BTreeMap::from([
        ("path".to_owned(), path.display().to_string()),
        ("queues".to_owned(), "4".to_owned()),
    ]);
    (FRONT_END.start)(StartExport {
        name: "disk".into(),
        volume: "pool/disk".into(),
        device,
        open_for: None,
        keeper: std::sync::Arc::new(reactor::NoKeeper),
        memory: reactor::Budget::new(64 << 20),
        parameters,
        remotes: loops.iter().map(|one| one.remote().clone()).collect(),
    })
}

/// Serves a volume of 64 MiB in memory on two loops.
pub fn serve(device: TestDevice) -> Served {
    let loops: Vec<_> = (0..2)
        .map(|index| ReactorThread::start(&format!("loop-{index}"), index).unwrap())
        .collect();
    let mut served = serve_on(&loops, device);
    served.loops = loops;
    served
}

/// Serves a volume on existing loops.
pub fn serve_on(loops: &[ReactorThread], device: TestDevice) -> Served {
    let folder = Folder::new();
    let path = folder.0.join("disk.sock");
    let device = Arc::new(device);
    let export = Some(start(device.clone(), &path, loops).unwrap());
    Served {
        export,
        device,
        path,
        loops: Vec::new(),
        _folder: folder,
    }
}

pub const SIZE: u64 = 64 << 20;

pub fn volume() -> TestDevice {
    TestDevice::new(memory_file(SIZE), 512, 64, false)
}

impl Served {
    pub fn connect(&self, options: Options) -> Client {
        Client::connect(&self.path, options).unwrap()
    }

    /// Stops the export and starts it again, like a restarted daemon.
    pub fn restart(&mut self) {
        self.export = None;
        self.export = Some(start(self.device.clone(), &self.path, &self.loops).unwrap());
    }
}

/// Waits for a condition.
pub fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timeout waiting until {what}");
        std::thread::yield_now();
    }
}

/// Position-dependent bytes.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|index| (seed.wrapping_mul(31) + index.wrapping_mul(7) + (index >> 9)) as u8)
        .collect()
}

/// Sends one request in a free slot.
pub fn ask(queue: &mut ClientQueue, command: Command) -> Done {
    let slot = queue.take_slot().expect("a free slot");
    queue.call(slot, command, TIMEOUT).unwrap()
}

pub fn write(queue: &mut ClientQueue, sector: u64, bytes: &[u8]) -> u8 {
    let slot = queue.take_slot().expect("a free slot");
    queue.fill(slot, bytes);
    let len = bytes.len();
    let done = queue.call(slot, Command::Write { sector, len }, TIMEOUT);
    done.unwrap().status
}

pub fn read(queue: &mut ClientQueue, sector: u64, len: usize) -> Vec<u8> {
    let done = ask(queue, Command::Read { sector, len });
    assert_eq!((done.status, done.written as usize), (OK, len + 1));
    let mut bytes = vec![0; len];
    queue.fetch(done.slot, &mut bytes);
    bytes
}

/// Keeps `depth` reads and writes of 4 KiB in flight, beginning at a sector, until `count` were
/// sent; returns the number of kicks requested by the device.
pub fn keep_busy(queue: &mut ClientQueue, depth: u64, first: u64, count: u64) -> u64 {
    let (mut sent, mut answered, mut kicks) = (0, 0, 0);
    loop {
        while sent < count && sent - answered < depth {
            let slot = queue.take_slot().expect("a free slot");
            let (sector, len) = (first + sent * 7 % 1024 * 8, 4096);
            queue.push(
                slot,
                match sent % 2 {
                    0 => Command::Read { sector, len },
                    _ => Command::Write { sector, len },
                },
            );
            sent += 1;
        }
        kicks += u64::from(queue.kick());
        if sent == answered {
            return kicks;
        }
        let mut done = Some(queue.wait(TIMEOUT).unwrap());
        while let Some(answer) = done {
            assert_eq!(answer.status, OK);
            answered += 1;
            done = queue.poll();
        }
    }
}
