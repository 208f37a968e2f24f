//! The drive, and its row of the table.

use super::namespace::Namespace;
use super::queue::NvmeQueue;
use crate::spec::{Named, parse_named};
use crate::uring::{Access, Found, LockedFile, open_locked};
use crate::{DriveKind, OpenDrive, OpenError, OpenErrorKind};
use block::{Drive, DriveInfo, DriveQueue};
use reactor::Handle;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const KIND: DriveKind = DriveKind {
    name: "nvme",
    about: "An NVMe namespace, by passthrough commands that bypass the kernel's block layer.",
    grammar: "nvme:/dev/ngXnY",
    keeps_data: true,
    open: |rest| open(rest, Access::Write),
    open_read_only: |rest| open(rest, Access::Read),
    canonical,
    found_on: |rest| crate::found_on(&format!("file:{}", parse(rest)?.block.display())),
    path: |rest| parse(rest).ok().map(|nodes| nodes.block),
};

/// The two nodes of a namespace.
struct Nodes {
    /// Takes commands.
    commands: PathBuf,
    /// Stands for the same namespace in the block layer, which is kept from others by it.
    block: PathBuf,
}

fn parse(rest: &str) -> Result<Nodes, OpenError> {
    let Named { name, size } = parse_named("nvme", rest)?;
    let refused = |why: &str| {
        Err(OpenError::syntax(format!(
            "'nvme:{rest}' {why}: use the character device of the namespace, as in nvme:/dev/ng0n1"
        )))
    };
    if size.is_some() {
        return refused("has a size, which the namespace determines");
    }
    let number = name.strip_prefix("/dev/ng").unwrap_or_default();
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match number.split_once('n') {
        Some((controller, namespace)) if plain(controller) && plain(namespace) => Ok(Nodes {
            block: format!("/dev/nvme{number}").into(),
            commands: name.into(),
        }),
        _ => refused("is not an NVMe namespace"),
    }
}

fn canonical(rest: &str) -> Result<String, OpenError> {
    Ok(format!("nvme:{}", parse(rest)?.commands.display()))
}

fn open(rest: &str, access: Access) -> Result<Arc<dyn OpenDrive>, OpenError> {
    let nodes = parse(rest)?;
    let block = Named {
        name: nodes.block.to_string_lossy().into_owned(),
        size: None,
    };
    // Programs that have the namespace mounted, or opened exclusively, use this node.
    let (block, found) = open_locked(&block, access)?;
    let commands = open_commands(&nodes.commands, access)?;
    let namespace = Namespace::identify(&commands).map_err(|error| {
        let what = format!("cannot use {}", nodes.commands.display());
        match error.kind() {
            io::ErrorKind::Unsupported => {
                OpenError::new(OpenErrorKind::Unsupported, format!("{what}: {error}"))
            }
            _ => OpenError::system(&what, &error),
        }
    })?;
    if (namespace.size, namespace.sector) != (found.size, found.logical_sector) {
        return Err(OpenError::new(
            OpenErrorKind::Unsupported,
            format!(
                "{} reports another size than {}: they are not the same namespace; use file:{} instead",
                nodes.commands.display(),
                nodes.block.display(),
                nodes.block.display()
            ),
        ));
    }
    Ok(Arc::new(Nvme {
        spec: canonical(rest)?,
        longest: longest(&nodes.block, &namespace),
        node: Arc::new(Node {
            commands,
            _block: block,
        }),
        namespace,
        found,
    }))
}

fn open_commands(path: &Path, access: Access) -> Result<File, OpenError> {
    let opened = OpenOptions::new()
        .read(true)
        .write(access == Access::Write)
        .open(path);
    opened.map_err(|error| OpenError::system(&format!("cannot open {}", path.display()), &error))
}

/// Bytes that one command may move: what the controller and the kernel take, however scattered memory is.
fn longest(block: &Path, namespace: &Namespace) -> u64 {
    let name = block.file_name().unwrap_or_default().to_string_lossy();
    let limit = |attribute: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/sys/block/{name}/queue/{attribute}")).ok()?;
        text.trim().parse().ok()
    };
    let page = 4096;
    let by_kernel = limit("max_hw_sectors_kb").map_or(LONGEST, |kib| kib << 10);
    // A transfer that does not begin with a page needs one more.
    let by_segments = limit("max_segments").map_or(LONGEST, |most| most.saturating_sub(1) * page);
    let by_drive = namespace.longest.unwrap_or(LONGEST);
    let least = LONGEST.min(by_kernel).min(by_segments).min(by_drive);
    (least - least % page).max(page)
}

/// Bytes of a command at most, even where more were allowed: others are not kept waiting long.
const LONGEST: u64 = 256 << 10;

/// The open nodes: requests go to one, and the other is kept from others meanwhile.
struct Node {
    commands: File,
    _block: LockedFile,
}

impl AsFd for Node {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.commands.as_fd()
    }
}

struct Nvme {
    spec: String,
    node: Arc<Node>,
    namespace: Namespace,
    longest: u64,
    found: Found,
}

impl Drive for Nvme {
    fn info(&self) -> DriveInfo {
        self.found.info(&self.spec)
    }
}

impl OpenDrive for Nvme {
    fn queue(&self, handle: &Handle) -> io::Result<Rc<dyn DriveQueue>> {
        let ends = match self.found.polled {
            true => reactor::Ends::Polled,
            false => reactor::Ends::Told,
        };
        let node = self.node.clone();
        let queue = NvmeQueue::new(handle, node, ends, self.namespace, self.longest)?;
        Ok(Rc::new(queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_node_that_takes_commands_names_a_namespace() {
        assert_eq!(canonical("/dev/ng10n2").unwrap(), "nvme:/dev/ng10n2");
        assert_eq!(
            parse("/dev/ng10n2").unwrap().block,
            Path::new("/dev/nvme10n2")
        );
        for wrong in [
            "/dev/nvme0n1",
            "/dev/ng0",
            "/dev/ngn1",
            "/dev/ng0n",
            "/dev/ng0n1p1",
            "/dev/ng0n1/../sda",
            "ng0n1",
            "/dev/ng0n1?size=8G",
        ] {
            let error = canonical(wrong).unwrap_err();
            assert!(error.to_string().contains("nvme:/dev/ng0n1"), "{error}");
        }
        let absent = crate::open("nvme:/dev/ng99n99").unwrap_err();
        assert_eq!(absent.kind, OpenErrorKind::NotFound);
    }
}
