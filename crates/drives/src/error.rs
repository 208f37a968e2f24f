//! Why a drive could not be opened.

use std::fmt;
use std::io;

/// Kinds of errors, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum OpenErrorKind {
    /// The text is not a drive's.
    Syntax,
    /// There is no such file, device or named memory.
    NotFound,
    /// The system does not let this user open it.
    Permission,
    /// It is in use: by another pool, another program, a mounted file system.
    Busy,
    /// It is too small, or smaller than the size asked for.
    TooSmall,
    /// It exists and cannot be a drive: a folder, say, or a size that the system cannot give.
    Unsupported,
    /// The system failed.
    Io,
}

/// Why a drive could not be opened: the kind for a program, a sentence for a person that says
/// what, why and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenError {
    /// The kind, for programs.
    pub kind: OpenErrorKind,
    /// The message, for people.
    pub message: String,
}

impl OpenError {
    /// An error of `kind`.
    pub fn new(kind: OpenErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::new(OpenErrorKind::Syntax, message)
    }

    /// The system's refusal to do `what` (e.g. `cannot open /dev/sdb`), with advice by its kind.
    pub(crate) fn system(what: &str, error: &io::Error) -> Self {
        let (kind, advice) = match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => (
                OpenErrorKind::NotFound,
                "check the path, or add ?size=8G to create a file there",
            ),
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => (
                OpenErrorKind::Permission,
                "run as a user with read and write permission, or change its mode",
            ),
            Some(libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM) => (
                OpenErrorKind::NotFound,
                "the device has disappeared: check its cable and the kernel log",
            ),
            Some(libc::EBUSY) => (
                OpenErrorKind::Busy,
                "another program is using it: stop the program or choose another drive",
            ),
            Some(libc::ENOSPC | libc::EFBIG | libc::EDQUOT) => (
                OpenErrorKind::Unsupported,
                "the file system has no room for a file of that size: choose a smaller size or another file system",
            ),
            _ => (OpenErrorKind::Io, "see the kernel log for the cause"),
        };
        Self::new(kind, format!("{what}: {error}; {advice}"))
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OpenError {}
