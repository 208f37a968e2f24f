//! Listening Unix sockets: their files are made with the access that was requested, and removed by who made them alone.
//!
//! Responsible for: a path that is free, or that a dead program of the same user left a socket at; never waiting for
//! the current listener; owner and mode before the first connection.
//! Leaves out: connections (`net`), and which paths may be named.

use crate::Parameter;
use crate::files::{FileIdentity, read_regular, remove_file_if};
use crate::{is_loop, may_wait};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Longest path of a Unix socket, in bytes (`sun_path` less its final zero).
const PATH_MAX: usize = 107;
/// Mode of a socket file unless another one is requested.
const MODE_DEFAULT: u32 = 0o660;
/// Connections that may wait to be taken.
const BACKLOG: libc::c_int = 128;
/// Longest file of users or groups that is read, in bytes.
const NAMES_MAX: u64 = 4 << 20;

/// Who may connect to a socket: owner, group and mode of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketAccess {
    /// User id; nothing: the daemon's.
    pub owner: Option<u32>,
    /// Group id; nothing: the daemon's.
    pub group: Option<u32>,
    /// Permission bits; connecting needs the right to write.
    pub mode: u32,
}

impl Default for SocketAccess {
    fn default() -> Self {
        Self {
            owner: None,
            group: None,
            mode: MODE_DEFAULT,
        }
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, message)
}

/// The number of a user or group in `/etc/passwd` or `/etc/group`. Other sources of names (NSS) may ask a network,
/// which could take any time.
fn id_of(what: &str, text: &str, file: &Path) -> io::Result<u32> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let lines = read_regular(file, NAMES_MAX)?;
    let lines = String::from_utf8_lossy(&lines);
    let mut fields = lines.lines().map(|line| line.split(':'));
    let found = fields.find_map(|mut line| (line.next()? == text).then(|| line.nth(1))?);
    found.and_then(|id| id.parse().ok()).ok_or_else(|| {
        invalid(format!(
            "{what} is '{text}', which {} does not contain: use an existing name, or a number",
            file.display()
        ))
    })
}

impl SocketAccess {
    /// The parameters that it is made of, for tables of front ends.
    pub const PARAMETERS: [Parameter; 3] = [
        Parameter {
            name: "mode",
            about: "permissions of a Unix socket's file, octal; connecting requires write permission; default: 0660",
            required: false,
        },
        Parameter {
            name: "owner",
            about: "user of a Unix socket's file, name or number; default: the daemon's",
            required: false,
        },
        Parameter {
            name: "group",
            about: "group of a Unix socket's file, name or number; default: the daemon's",
            required: false,
        },
    ];

    /// Reads the parameters `mode`, `owner` and `group` of an export.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub fn parse(parameters: &BTreeMap<String, String>) -> io::Result<Self> {
        let id = |what: &str, file: &str| {
            let text = parameters.get(what);
            text.map(|text| id_of(what, text, Path::new(file)))
                .transpose()
        };
        let mode = parameters.get("mode").map(|text| {
            let mode = u32::from_str_radix(text, 8).ok();
            mode.filter(|mode| *mode <= 0o777).ok_or_else(|| {
                invalid(format!(
                    "mode is '{text}': use an octal number from 0 to 777, for example 0660"
                ))
            })
        });
        Ok(Self {
            owner: id("owner", "/etc/passwd")?,
            group: id("group", "/etc/group")?,
            mode: mode.transpose()?.unwrap_or(MODE_DEFAULT),
        })
    }
}

/// A listening socket. Its file is removed when it is dropped, if it is still the one that was made.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    made: FileIdentity,
}

/// The address of a path, and its length in bytes.
fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.len() > PATH_MAX || bytes.contains(&0) {
        return Err(invalid(format!(
            "the socket path {} is {} bytes long, and the limit is 1 to {PATH_MAX} without a zero byte: choose a \
             shorter one",
            path.display(),
            bytes.len()
        )));
    }
    // SAFETY: all zeroes are a value of this type.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    Ok((address, length as libc::socklen_t))
}

/// A stream socket that never waits.
fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a system call without pointers.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    match fd {
        ..0 => Err(io::Error::last_os_error()),
        // SAFETY: the descriptor is new, and has no other owner.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

fn checked(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether no program has this socket any longer. It never waits: with a full backlog the answer is `EAGAIN`.
fn is_dead(path: &Path) -> io::Result<bool> {
    let (address, length) = address(path)?;
    let socket = socket()?;
    // SAFETY: the address is valid for its length during the call.
    let result = unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) };
    match checked(result) {
        Ok(()) => Ok(false),
        Err(error) => match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => Ok(true),
            // It listens with a full backlog, or is a socket of another type that a program has.
            Some(libc::EAGAIN | libc::EPROTOTYPE | libc::EINPROGRESS) => Ok(false),
            _ => Err(error),
        },
    }
}

/// Makes a path free: nothing is there, or a socket that a dead program of this user left.
fn make_free(path: &Path, access: &SocketAccess) -> io::Result<()> {
    let shown = path.display();
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let refused = |kind: ErrorKind, why: &str| Err(io::Error::new(kind, format!("{shown} {why}")));
    if !meta.file_type().is_socket() {
        return refused(
            ErrorKind::AlreadyExists,
            "exists and is not a socket: choose another path",
        );
    }
    // SAFETY: a system call without arguments, which cannot fail.
    let own = unsafe { libc::geteuid() };
    if ![own, 0, access.owner.unwrap_or(own)].contains(&meta.uid()) {
        return refused(
            ErrorKind::AlreadyExists,
            "is another user's socket: remove it or choose another path",
        );
    }
    if !is_dead(path)? {
        return refused(
            ErrorKind::AddrInUse,
            "is in use by another program: stop the program or choose another path",
        );
    }
    match remove_file_if(path, FileIdentity::of(&meta))? {
        true => Ok(()),
        false => refused(
            ErrorKind::AddrInUse,
            "is being created by another program: choose another path",
        ),
    }
}

/// Gives a socket file its owner and mode, whatever the umask is. `file` stands for it without following links.
fn give(file: &File, access: &SocketAccess) -> io::Result<()> {
    let at = format!("/proc/self/fd/{}", file.as_raw_fd());
    if access.owner.is_some() || access.group.is_some() {
        std::os::unix::fs::chown(&at, access.owner, access.group)?;
    }
    std::fs::set_permissions(&at, std::fs::Permissions::from_mode(access.mode))
}

impl UnixSocket {
    /// Listens at a path, with the file's owner, group and mode set before clients can connect. It never waits for
    /// another program, but may for the file system: not to be called on an engine loop.
    ///
    /// # Errors
    /// One sentence that says what to do; nothing is left behind.
    pub fn bind(path: &Path, access: &SocketAccess) -> io::Result<Self> {
        let explain = |error: io::Error| {
            let advice = match error.kind() {
                ErrorKind::AddrInUse => {
                    "in use by another program: stop the program or choose another path"
                }
                ErrorKind::PermissionDenied => {
                    "permission denied: choose another path or run as a user with permission"
                }
                ErrorKind::NotFound => "its directory does not exist: create it first",
                _ => "cannot listen there",
            };
            io::Error::new(
                error.kind(),
                format!("unix:{}: {advice} ({error})", path.display()),
            )
        };
        may_wait();
        let (address, length) = address(path)?;
        make_free(path, access)?;
        let socket = socket()?;
        let fd = socket.as_raw_fd();
        // The file gets the socket's mode less the umask: no other user may use it until it has its own.
        // SAFETY: system calls on an open descriptor, with an address that is valid for its length.
        let bound = unsafe {
            libc::fchmod(fd, 0o600);
            libc::bind(fd, (&raw const address).cast(), length)
        };
        checked(bound).map_err(explain)?;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_NOFOLLOW);
        let file = options.open(path)?;
        let made = Self {
            made: FileIdentity::of(&file.metadata()?),
            listener: UnixListener::from(socket),
            path: path.to_owned(),
        };
        give(&file, access).map_err(explain)?;
        // SAFETY: the descriptor is open during the call.
        checked(unsafe { libc::listen(fd, BACKLOG) }).map_err(explain)?;
        Ok(made)
    }

    /// The socket, which does not wait for connections unless requested.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocket {
    /// The socket is open until its file is gone, so that no other file can have its identity.
    fn drop(&mut self) {
        let (path, made) = (self.path.clone(), self.made);
        // Another process may have removed it: nothing is left to do then.
        let remove = move || drop(remove_file_if(&path, made));
        if !is_loop() {
            return remove();
        }
        // A loop that has it last, since its export did not wait any longer. Without a thread the file stays behind, as
        // a dead program's, which the next one to listen there removes.
        let open = self.listener.try_clone();
        let thread = std::thread::Builder::new().name("unlisten".to_owned());
        let _ = thread.spawn(move || {
            remove();
            drop(open);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::sync::mpsc;
    use std::time::Duration;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("cs-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn bind(path: &Path) -> io::Result<UnixSocket> {
        let (give, take) = mpsc::channel();
        let path = path.to_owned();
        std::thread::spawn(move || give.send(UnixSocket::bind(&path, &SocketAccess::default())));
        take.recv_timeout(Duration::from_secs(60))
            .expect("it waits for the program that listens there")
    }

    #[test]
    fn a_socket_that_somebody_has_stays_whatever_kind_it_is() {
        let folder = Folder::new("live");
        let path = folder.0.join("s");
        // A full backlog: connecting clients wait.
        let full = UnixListener::bind(&path).unwrap();
        // SAFETY: the descriptor is open during the call.
        checked(unsafe { libc::listen(full.as_raw_fd(), 0) }).unwrap();
        let waiting: Vec<UnixStream> = std::iter::from_fn(|| {
            let (address, length) = address(&path).unwrap();
            let socket = socket().unwrap();
            let fd = socket.as_raw_fd();
            // SAFETY: the address is valid for its length during the call.
            let result = unsafe { libc::connect(fd, (&raw const address).cast(), length) };
            (result == 0).then(|| UnixStream::from(socket))
        })
        .collect();
        assert!(!waiting.is_empty());
        assert_eq!(bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        assert!(path.exists());
        let datagrams = folder.0.join("d");
        let _other = UnixDatagram::bind(&datagrams).unwrap();
        assert_eq!(bind(&datagrams).unwrap_err().kind(), ErrorKind::AddrInUse);
        assert!(datagrams.exists());
    }

    #[test]
    fn what_a_dead_program_left_is_replaced_and_what_is_no_socket_stays() {
        let folder = Folder::new("dead");
        let path = folder.0.join("s");
        drop(UnixListener::bind(&path).unwrap());
        let socket = bind(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        drop(socket);
        assert!(!path.exists());
        let file = folder.0.join("f");
        std::fs::write(&file, "x").unwrap();
        let link = folder.0.join("l");
        std::os::unix::fs::symlink(folder.0.join("nowhere"), &link).unwrap();
        for path in [&file, &link] {
            assert_eq!(bind(path).unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert!(path.symlink_metadata().is_ok());
        }
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 2);
    }

    #[test]
    fn a_socket_that_another_program_put_in_its_place_stays() {
        let folder = Folder::new("other");
        let path = folder.0.join("s");
        let socket = bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(socket);
        UnixStream::connect(&path).unwrap();
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[test]
    fn the_mode_is_the_one_asked_for() {
        let folder = Folder::new("mode");
        for mode in [0o600, 0o660, 0o666] {
            let path = folder.0.join(format!("{mode:o}"));
            let access = SocketAccess {
                mode,
                ..SocketAccess::default()
            };
            let _socket = UnixSocket::bind(&path, &access).unwrap();
            let seen = path.symlink_metadata().unwrap().mode() & 0o777;
            assert_eq!(seen, mode, "{seen:o}");
        }
    }

    #[test]
    fn the_mode_is_the_same_without_a_umask() {
        let folder = Folder::new("umask");
        let path = folder.0.join("socket");
        // SAFETY: a system call without pointers. What other tests make meanwhile is read by others in the worst case.
        let before = unsafe { libc::umask(0) };
        let socket = UnixSocket::bind(&path, &SocketAccess::default());
        // SAFETY: as above.
        unsafe { libc::umask(before) };
        let _socket = socket.unwrap();
        let seen = path.symlink_metadata().unwrap().mode() & 0o777;
        assert_eq!(seen, 0o660, "{seen:o}");
    }

    #[test]
    fn access_is_read_in_names_and_numbers() {
        let read = |name: &str, text: &str| {
            SocketAccess::parse(&BTreeMap::from([(name.to_owned(), text.to_owned())]))
        };
        assert_eq!(read("owner", "root").unwrap().owner, Some(0));
        assert_eq!(read("group", "7").unwrap().group, Some(7));
        assert_eq!(read("mode", "0600").unwrap().mode, 0o600);
        for (name, text) in [("owner", "no:body"), ("mode", "1777"), ("mode", "rw")] {
            assert!(read(name, text).is_err(), "{name}={text}");
        }
        assert_eq!(SocketAccess::default().mode, 0o660);
    }
}
