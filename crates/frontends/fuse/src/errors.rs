//! Conversion of errors to errno values.

use block::ErrorKind;
use fuser::Errno;

/// The errno for an error kind.
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
