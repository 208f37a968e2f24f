//! An export on event loops and in a directory of its own.

use super::memory_device::MemoryDevice;
use reactor::{Export, ReactorThread, StartExport};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Name of the export in all tests.
pub const NAME: &str = "disk";

static NEXT: AtomicU64 = AtomicU64::new(0);

pub struct Server {
    pub device: Arc<MemoryDevice>,
    pub folder: PathBuf,
    pub export: Option<Box<dyn Export>>,
    pub loops: Vec<ReactorThread>,
    /// Memory budget of requests.
    pub memory: reactor::Budget,
}

/// A unique directory.
pub fn folder() -> PathBuf {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("convect-nbd-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

impl Server {
    pub fn start(device: Arc<MemoryDevice>) -> Self {
        Self::start_with(device, &[])
    }

    pub fn start_with(device: Arc<MemoryDevice>, parameters: &[(&str, &str)]) -> Self {
        let mut server = Self {
            device,
            memory: reactor::Budget::new(64 << 20),
            folder: folder(),
            export: None,
            loops: (0..2)
                .map(|seed| ReactorThread::start("nbd-test", seed).unwrap())
                .collect(),
        };
        let listen = format!("unix:{}", server.socket().display());
        let mut all = vec![("listen", &*listen)];
        all.extend(parameters);
        server.export = Some(server.try_export(&all).unwrap());
        server
    }

    pub fn try_export(&self, parameters: &[(&str, &str)]) -> std::io::Result<Box<dyn Export>> {
        (frontend_nbd::FRONT_END.start)(StartExport {
            name: NAME.to_owned(),
            volume: "pool/volume".to_owned(),
            device: self.device.clone(),
            open_for: None,
            keeper: std::sync::Arc::new(reactor::NoKeeper),
            memory: self.memory.clone(),
            parameters: parameters
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            remotes: self
                .loops
                .iter()
                .map(|each| each.remote().clone())
                .collect(),
        })
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    pub fn uri(&self) -> String {
        format!("nbd+unix:///{NAME}?socket={}", self.socket().display())
    }

    pub fn sessions(&self) -> usize {
        self.export.as_ref().unwrap().sessions()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.export = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Waits until `condition` holds, for a limited time.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "timeout waiting until {what}");
        std::thread::yield_now();
    }
}
