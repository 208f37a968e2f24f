//! Conversion of errors to the protocol's error values ("Error values").

use block::ErrorKind;

pub(crate) const EPERM: u32 = 1;
pub(crate) const EIO: u32 = 5;
pub(crate) const EINVAL: u32 = 22;
pub(crate) const ENOSPC: u32 = 28;
pub(crate) const ENOTSUP: u32 = 95;
pub(crate) const ESHUTDOWN: u32 = 108;

/// The error value for an error kind.
pub(crate) fn code(kind: ErrorKind) -> u32 {
    match kind {
        ErrorKind::Invalid => EINVAL,
        ErrorKind::NoSpace => ENOSPC,
        ErrorKind::ReadOnly => EPERM,
        ErrorKind::Medium | ErrorKind::Device => EIO,
        ErrorKind::Gone => ESHUTDOWN,
        ErrorKind::Unsupported => ENOTSUP,
    }
}
