//! An export: one file of a mount.

use crate::file::File;
use crate::mount::{self, Mount};
use crate::parameters::parse;
use reactor::{Export, StartExport};
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long what is in flight may take when the export ends.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Exports take turns with the loops.
static NEXT: AtomicUsize = AtomicUsize::new(0);

struct FuseExport {
    mount: Arc<Mount>,
    file: Arc<File>,
}

/// Starts an export; the folder is mounted if it is not yet.
pub(crate) fn start(export: StartExport) -> Result<Box<dyn Export>> {
    let parameters = parse(&export.name, &export.parameters)?;
    if export.remotes.is_empty() {
        return Err(Error::other("an export needs a loop to run on"));
    }
    let turn = NEXT.fetch_add(1, Ordering::Relaxed) % export.remotes.len();
    let remote = export.remotes[turn].clone();
    mount::with_mount(&parameters, |mount| {
        let added = mount.folder.add(&export.name, |number| {
            File::new(number, export.name.clone(), export.device.clone(), remote)
        });
        let file = added.ok_or_else(|| {
            Error::new(
                ErrorKind::AlreadyExists,
                format!(
                    "{} has a file '{}' already: choose another name or another folder",
                    mount.path.display(),
                    export.name
                ),
            )
        })?;
        let mount = mount.clone();
        Ok(Box::new(FuseExport { mount, file }) as Box<dyn Export>)
    })
}

impl Export for FuseExport {
    fn address(&self) -> String {
        self.mount.path.join(&self.file.name).display().to_string()
    }

    fn hints(&self) -> Vec<String> {
        let path = self.address();
        vec![
            format!("losetup --find --show --direct-io=on {path}"),
            format!("mkfs.ext4 {path} && mount -o loop {path} /mnt"),
            format!("qemu-system-x86_64 ... -drive file={path},format=raw,cache=none,if=virtio"),
        ]
    }

    fn sessions(&self) -> usize {
        self.file.opened.load(Ordering::Relaxed)
    }
}

impl Drop for FuseExport {
    /// Takes the file away and waits, for a bounded time, for what is in flight.
    fn drop(&mut self) {
        self.file.ended.store(true, Ordering::Release);
        mount::remove(&self.mount, self.file.number);
        self.file.flight.wait_idle(ANSWER_MAX);
    }
}
