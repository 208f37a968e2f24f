//! The one place where an error becomes a number of the system.

use block::ErrorKind;
use fuser::Errno;

/// What the caller of the system call gets.
pub(crate) fn errno(kind: ErrorKind) -> Errno {
    match kind {
        ErrorKind::Invalid => Errno::EINVAL,
        ErrorKind::NoSpace => Errno::ENOSPC,
        ErrorKind::ReadOnly => Errno::EROFS,
        ErrorKind::Medium | ErrorKind::Device => Errno::EIO,
        ErrorKind::Gone => Errno::ENODEV,
        ErrorKind::Unsupported => Errno::EOPNOTSUPP,
    }
}
