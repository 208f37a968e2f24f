//! The protocol's entry in the daemon's table, and exports.

use crate::control::{self, Shared};
use crate::notify;
use crate::polling::Polling;
use crate::volume::Volume;
use reactor::{Export, FrontEnd, Parameter, SocketAccess, StartExport, UnixSocket};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

const QUEUES_DEFAULT: u16 = 4;
const QUEUES_MAX: u16 = 16;

/// Virtio disks for virtual machines.
pub const FRONT_END: FrontEnd = FrontEnd {
    name: "vhost-user-blk",
    about: "virtio disk for a virtual machine, over a Unix socket and shared memory",
    parameters: &[
        Parameter {
            name: "path",
            about: "path of the Unix socket for the virtual machine monitor",
            required: true,
        },
        Parameter {
            name: "queues",
            about: "maximum number of request queues, 1 to 16; default: 4",
            required: false,
        },
        Parameter {
            name: "polling",
            about: "queue polling: adaptive (poll while requests are in flight and waits are \
             short; default), busy (never sleep) or interrupt (never poll)",
            required: false,
        },
        SocketAccess::PARAMETERS[0],
        SocketAccess::PARAMETERS[1],
        SocketAccess::PARAMETERS[2],
    ],
    start,
};

struct VhostUserBlk {
    path: PathBuf,
    shared: Arc<Shared>,
    listener: Arc<UnixSocket>,
    control: Option<JoinHandle<()>>,
    watcher: Option<JoinHandle<()>>,
}

fn queues(text: Option<&String>) -> Result<u16> {
    let Some(text) = text else {
        return Ok(QUEUES_DEFAULT);
    };
    text.parse()
        .ok()
        .filter(|count| (1..=QUEUES_MAX).contains(count))
        .ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("queues is '{text}': write a number from 1 to {QUEUES_MAX}"),
            )
        })
}

fn polling(text: Option<&String>) -> Result<Polling> {
    let Some(text) = text else {
        return Ok(Polling::Adaptive);
    };
    Polling::parse(text).ok_or_else(|| {
        let names: Vec<_> = Polling::ALL.iter().map(|(name, _)| *name).collect();
        let why = format!("polling is '{text}': write one of {}", names.join(", "));
        Error::new(ErrorKind::InvalidInput, why)
    })
}

fn start(request: StartExport) -> Result<Box<dyn Export>> {
    let path = request.parameters.get("path").ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidInput,
            "vhost-user-blk requires path: the Unix socket that the monitor connects to",
        )
    })?;
    let queues = queues(request.parameters.get("queues"))?;
    let polling = polling(request.parameters.get("polling"))?;
    let path = std::path::absolute(path)?;
    let access = SocketAccess::parse(&request.parameters)?;
    let listener = Arc::new(UnixSocket::bind(&path, &access)?);
    // The control thread blocks in accept.
    listener.listener().set_nonblocking(false)?;
    let shared = Shared::new(
        request.name,
        Arc::new(Volume::new(request.device)),
        request.remotes,
        queues,
        polling,
    );
    // Dropping a partly started export removes its socket and stops its threads.
    let mut export = VhostUserBlk {
        path,
        shared: shared.clone(),
        listener: listener.clone(),
        control: None,
        watcher: None,
    };
    let for_watcher = shared.clone();
    export.watcher = Some(
        std::thread::Builder::new()
            .name("vhost-watch".into())
            .spawn(move || notify::watch(&for_watcher))?,
    );
    export.control = Some(
        std::thread::Builder::new()
            .name("vhost-control".into())
            .spawn(move || control::run(&shared, listener.listener()))?,
    );
    Ok(Box::new(export))
}

impl Export for VhostUserBlk {
    fn address(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    fn hints(&self) -> Vec<String> {
        let (path, queues) = (self.path.display(), self.shared.queues);
        let name = &self.shared.name;
        vec![
            "Attach it to QEMU (guest memory must be shared) with these options:".into(),
            "-object memory-backend-memfd,id=mem,size=2G,share=on -m 2G -numa node,memdev=mem"
                .into(),
            format!("-chardev socket,id={name},path={path},reconnect=1"),
            format!("-device vhost-user-blk-pci,chardev={name},num-queues={queues}"),
        ]
    }

    fn sessions(&self) -> usize {
        self.shared.sessions()
    }

    fn hosts(&self) -> Vec<String> {
        self.shared.monitor().into_iter().collect()
    }

    fn change(&self, parameters: &BTreeMap<String, String>) -> Result<()> {
        let path = parameters
            .get("path")
            .map(std::path::absolute)
            .transpose()?;
        let same = path.as_ref() == Some(&self.path)
            && queues(parameters.get("queues"))? == self.shared.queues;
        if !same {
            let why =
                "only polling can be changed in a running export: delete it and create it again";
            return Err(Error::new(ErrorKind::InvalidInput, why));
        }
        self.shared.polling.set(polling(parameters.get("polling"))?);
        Ok(())
    }
}

impl Drop for VhostUserBlk {
    fn drop(&mut self) {
        self.shared.stop();
        // SAFETY: a system call on a descriptor owned by `listener`; it ends the accept of the
        // control thread.
        unsafe { libc::shutdown(self.listener.listener().as_raw_fd(), libc::SHUT_RDWR) };
        if let Some(watcher) = self.watcher.take() {
            watcher.thread().unpark();
            let _ = watcher.join();
        }
        if let Some(control) = self.control.take() {
            let _ = control.join();
        }
    }
}
