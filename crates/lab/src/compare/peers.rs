//! The peers, each as a process of its own.

use super::system::System;
use crate::failure::{Failure, Result, While};
use crate::interrupt;
use crate::iscsi::Lun;
use crate::load::Disk;
use crate::nbd::Place;
use crate::process::Process;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a server may take to answer.
const START_TIME: Duration = Duration::from_secs(20);
/// Queues of a vhost-user-blk export.
const QUEUES: u16 = 4;
/// Name of iSCSI targets.
pub(super) const TARGET: &str = "iqn.2026-11.io.convect.lab:disk";
/// Name of NBD exports.
const EXPORT: &str = "disk";

/// A server that has left the process that was started, as `nbd-server` does.
struct Forked(i32);

impl Drop for Forked {
    fn drop(&mut self) {
        // SAFETY: kill takes no pointers; the server wrote this number and runs until it is ended here.
        unsafe { libc::kill(self.0, libc::SIGTERM) };
    }
}

/// State that keeps a server running.
enum Running {
    Child(Process),
    Forked(Forked),
}

/// An unused loopback address.
///
/// # Errors
/// When there is none.
pub(super) fn free_portal() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?)
}

/// A running peer.
pub struct Peer {
    /// The way to it.
    pub disk: Disk,
    running: Running,
}

impl Peer {
    /// Its process.
    pub fn pid(&self) -> u32 {
        match &self.running {
            Running::Child(process) => process.pid(),
            Running::Forked(forked) => forked.0 as u32,
        }
    }
}

/// Where a peer's files are: `memory` holds what it serves, `folder` its sockets.
pub struct Places<'a> {
    pub memory: &'a Path,
    pub folder: &'a Path,
    /// Bytes that it serves.
    pub size: u64,
}

impl Places<'_> {
    fn socket(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.sock"))
    }

    /// A file for a peer to serve.
    fn file(&self, name: &str) -> Result<PathBuf> {
        let path = self.memory.join(format!("{name}.img"));
        File::create(&path)?.set_len(self.size)?;
        Ok(path)
    }

    /// Starts a server and waits until it is `ready`.
    fn start(
        &self,
        program: &str,
        arguments: &[String],
        ready: impl Fn() -> bool,
    ) -> Result<Process> {
        let words = self.folder.join(format!("{program}.err"));
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(File::create(&words)?);
        let mut process = Process::start(program, &mut command)?;
        let mut ended = false;
        let is_ready = interrupt::wait_for(START_TIME, || {
            ended = process.ended()?.is_some();
            Ok(ended || ready())
        })?;
        if is_ready && !ended {
            return Ok(process);
        }
        let words = fs::read_to_string(&words).unwrap_or_default();
        Err(Failure::new(format!(
            "{program} does not serve: {}",
            words.trim()
        )))
    }

    fn nbd(&self, name: &str, export: &str) -> Disk {
        Disk::Nbd(Place {
            export: export.to_owned(),
            socket: self.socket(name),
        })
    }

    fn storage_daemon(&self, name: &str, disk: Disk, export: &[String]) -> Result<Peer> {
        let file = self.file(name)?;
        let mut arguments = vec![
            "--blockdev".to_owned(),
            format!(
                "driver=file,node-name=f,filename={},aio=io_uring,cache.direct=on",
                file.display()
            ),
        ];
        arguments.extend_from_slice(export);
        let (socket, pid_file) = (self.socket(name), self.folder.join(format!("{name}.pid")));
        arguments.extend(["--pidfile".to_owned(), pid_file.display().to_string()]);
        // The number is written when everything is exported.
        let ready = || pid_file.exists() && (socket.exists() || matches!(disk, Disk::File(_)));
        let process = self.start("qemu-storage-daemon", &arguments, ready)?;
        Ok(Peer {
            disk,
            running: Running::Child(process),
        })
    }

    fn forked_nbd_server(&self) -> Result<Peer> {
        let name = "nbd-server";
        let (file, socket) = (self.file(name)?, self.socket(name));
        let (config, pid_file) = (self.folder.join("nbd.conf"), self.folder.join("nbd.pid"));
        let text = format!(
            "[generic]\nunixsock = {}\n[{EXPORT}]\nexportname = {}\n",
            socket.display(),
            file.display()
        );
        fs::write(&config, text)?;
        let mut command = Command::new(name);
        command.arg("-C").arg(&config).arg("-p").arg(&pid_file);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let status = command.status().during(|| format!("cannot start {name}"))?;
        let mut number = None;
        interrupt::wait_for(START_TIME, || {
            let text = fs::read_to_string(&pid_file).unwrap_or_default();
            number = text.trim().parse().ok();
            Ok(number.is_some() && socket.exists())
        })?;
        let number =
            number.ok_or_else(|| Failure::new(format!("{name} does not serve: {status}")))?;
        Ok(Peer {
            disk: self.nbd(name, EXPORT),
            running: Running::Forked(Forked(number)),
        })
    }

    /// Starts tgt's daemon and tells it what to serve.
    fn tgt(&self) -> Result<Peer> {
        let (file, portal) = (self.file("tgt")?, free_portal()?);
        // Its control socket goes by a number, which another daemon of its kind may have.
        let control = (1 + std::process::id() % 32_000).to_string();
        let listen = format!("portal={portal}");
        let arguments = ["-f", "-C", &control, "--iscsi", &listen].map(str::to_owned);
        let process = self.start("tgtd", &arguments, || TcpStream::connect(portal).is_ok())?;
        let file = file.display().to_string();
        let tell = |what: &[&str]| -> Result<()> {
            let mut command = Command::new("tgtadm");
            command.args(["-C", &control, "--lld", "iscsi", "--tid", "1", "--op"]);
            let output = command.args(what).stdin(Stdio::null()).output();
            let output = output.during(|| "cannot run tgtadm".to_owned())?;
            match output.status.success() {
                true => Ok(()),
                false => Err(Failure::new(format!(
                    "tgtadm {}: {}",
                    what.join(" "),
                    String::from_utf8_lossy(&output.stderr).trim()
                ))),
            }
        };
        tell(&["new", "--mode", "target", "-T", TARGET])?;
        tell(&["new", "--mode", "logicalunit", "--lun", "1", "-b", &file])?;
        tell(&["bind", "--mode", "target", "-I", "ALL"])?;
        Ok(Peer {
            disk: Disk::Iscsi(Lun {
                portal,
                target: TARGET.to_owned(),
                number: 1,
            }),
            running: Running::Child(process),
        })
    }

    /// Starts a peer.
    ///
    /// # Errors
    /// When it is not installed or does not serve.
    pub fn serve(&self, system: System) -> Result<Peer> {
        let words = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        let answers = |socket: PathBuf| move || UnixStream::connect(&socket).is_ok();
        match system {
            System::QemuVhost => {
                let socket = self.socket("qsd-vhost");
                let export = format!(
                    "type=vhost-user-blk,id=e,node-name=f,addr.type=unix,addr.path={},writable=on,num-queues={QUEUES}",
                    socket.display()
                );
                let disk = Disk::VhostUserBlk(socket);
                self.storage_daemon("qsd-vhost", disk, &words(&["--export", &export]))
            }
            System::QemuStorageNbd => {
                let socket = self.socket("qsd-nbd");
                let server = format!(
                    "addr.type=unix,addr.path={},max-connections=0",
                    socket.display()
                );
                let export = format!("type=nbd,id=e,node-name=f,name={EXPORT},writable=on");
                let export = words(&["--nbd-server", &server, "--export", &export]);
                self.storage_daemon("qsd-nbd", self.nbd("qsd-nbd", EXPORT), &export)
            }
            System::QemuFuse => {
                let mount = self.folder.join("qsd-fuse.img");
                File::create(&mount)?;
                let export = format!(
                    "type=fuse,id=e,node-name=f,mountpoint={},writable=on",
                    mount.display()
                );
                self.storage_daemon(
                    "qsd-fuse",
                    Disk::File(mount),
                    &words(&["--export", &export]),
                )
            }
            System::QemuNbd => {
                let socket = self.socket("qemu-nbd");
                let mut arguments = words(&[
                    "--persistent",
                    "--cache=none",
                    "--aio=io_uring",
                    "--format=raw",
                ]);
                arguments.push(format!("--socket={}", socket.display()));
                arguments.push(self.file("qemu-nbd")?.display().to_string());
                let process = self.start("qemu-nbd", &arguments, answers(socket))?;
                Ok(Peer {
                    disk: self.nbd("qemu-nbd", ""),
                    running: Running::Child(process),
                })
            }
            System::Nbdkit => {
                let socket = self.socket("nbdkit");
                let path = socket.display().to_string();
                let size = self.size.to_string();
                let arguments = words(&["--foreground", "--unix", &path, "memory", &size]);
                let process = self.start("nbdkit", &arguments, answers(socket))?;
                Ok(Peer {
                    disk: self.nbd("nbdkit", ""),
                    running: Running::Child(process),
                })
            }
            System::NbdServer => self.forked_nbd_server(),
            System::Tgt => self.tgt(),
            _ => Err(Failure::new(format!("{} is no peer", system.name()))),
        }
    }
}
