//! An export: one file of a mount.

use crate::file::File;
use crate::mount::{self, Mount};
use crate::parameters::parse;
use reactor::{Export, Space, StartExport};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Time limit for operations in flight when the export stops.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Exports are assigned to loops in turn.
static NEXT: AtomicUsize = AtomicUsize::new(0);

struct FuseExport {
    mount: Arc<Mount>,
    file: Arc<File>,
    /// Parameters at the start.
    parameters: BTreeMap<String, String>,
}

/// Parameters that can change while programs have the file open.
const CHANGEABLE: [&str; 3] = ["mode", "owner", "group"];

/// Starts an export; mounts the directory unless it is mounted.
pub(crate) fn start(export: StartExport) -> Result<Box<dyn Export>> {
    let parameters = parse(&export.name, &export.parameters)?;
    if export.remotes.is_empty() {
        return Err(Error::other("no event loop available for the export"));
    }
    let turn = NEXT.fetch_add(1, Ordering::Relaxed) % export.remotes.len();
    let remote = export.remotes[turn].clone();
    mount::with_mount(&parameters, |mount| {
        let added = mount.folder.add(&export.name, |number| {
            let (name, device) = (export.name.clone(), export.device.clone());
            let memory = export.memory.clone();
            File::new(number, name, device, remote, (parameters.access, memory))
        });
        let file = added.ok_or_else(|| {
            Error::new(
                ErrorKind::AlreadyExists,
                format!(
                    "{} already contains a file '{}': choose another name or another directory",
                    mount.path.display(),
                    export.name
                ),
            )
        })?;
        Ok(Box::new(FuseExport {
            mount: mount.clone(),
            file,
            parameters: export.parameters.clone(),
        }) as Box<dyn Export>)
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

    fn hosts(&self) -> Vec<String> {
        match self.sessions() {
            0 => Vec::new(),
            _ => vec![format!("programs that have {} open", self.address())],
        }
    }

    fn note_space(&self, space: Space, _warns: bool) {
        let mut known = self
            .file
            .space
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *known = Some(space);
    }

    fn note_stored(&self, bytes: u64) {
        self.file.note_stored(bytes);
    }

    fn change(&self, parameters: &BTreeMap<String, String>) -> Result<()> {
        let mut names = self.parameters.keys().chain(parameters.keys());
        let fixed = names.find(|name| {
            !CHANGEABLE.contains(&name.as_str())
                && self.parameters.get(*name) != parameters.get(*name)
        });
        if let Some(name) = fixed {
            let text = format!(
                "{name} cannot be changed while the file exists: delete the export and create it \
                 again; changeable parameters: {}",
                CHANGEABLE.join(", ")
            );
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        let wanted = parse(&self.file.name, parameters)?;
        self.file.set_access(wanted.access);
        Ok(())
    }
}

impl Drop for FuseExport {
    /// Removes the file and waits, for a limited time, for operations in flight.
    fn drop(&mut self) {
        self.file.ended.store(true, Ordering::Release);
        mount::remove(&self.mount, self.file.number);
        self.file.flight.wait_idle(ANSWER_MAX);
    }
}
