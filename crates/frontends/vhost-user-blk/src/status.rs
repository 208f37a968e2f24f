//! Conversion of errors to virtio-blk status codes (virtio 1.2, section 5.2.6).

use block::{ErrorKind, IoError};
use virtio_bindings::virtio_blk::{VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP};

/// Success.
pub(crate) const OK: u8 = VIRTIO_BLK_S_OK as u8;
/// Failure.
pub(crate) const IO_ERROR: u8 = VIRTIO_BLK_S_IOERR as u8;
/// Unknown request type or flag.
pub(crate) const UNSUPPORTED: u8 = VIRTIO_BLK_S_UNSUPP as u8;

/// Status of a completed operation. None if no response must be sent: the volume is gone, and the
/// guest resends the request after reconnecting.
pub(crate) fn of(result: &Result<(), IoError>) -> Option<u8> {
    let Err(error) = result else { return Some(OK) };
    match error.kind {
        ErrorKind::Unsupported => Some(UNSUPPORTED),
        // The protocol has no specific status for these.
        ErrorKind::Invalid
        | ErrorKind::NoSpace
        | ErrorKind::ReadOnly
        | ErrorKind::Medium
        | ErrorKind::Device => Some(IO_ERROR),
        ErrorKind::Gone => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_status_except_a_gone_volume() {
        for (kind, status) in [
            (ErrorKind::Invalid, Some(IO_ERROR)),
            (ErrorKind::NoSpace, Some(IO_ERROR)),
            (ErrorKind::ReadOnly, Some(IO_ERROR)),
            (ErrorKind::Medium, Some(IO_ERROR)),
            (ErrorKind::Device, Some(IO_ERROR)),
            (ErrorKind::Unsupported, Some(UNSUPPORTED)),
            (ErrorKind::Gone, None),
        ] {
            assert_eq!(of(&Err(IoError::new(kind, ""))), status, "{kind:?}");
        }
        assert_eq!(of(&Ok(())), Some(OK));
    }
}
