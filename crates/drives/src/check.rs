//! Checks that every drive makes before it executes a request.

use block::{DriveError, DriveIo, DriveIoKind};

/// Longest read or write in bytes.
pub(crate) const TRANSFER_MAX: u64 = 64 << 20;

/// Refuses a request that is outside of a drive of `size` bytes, is not aligned to `sector`,
/// is empty or too long, or whose buffer has another length.
///
/// # Panics
/// When others share the buffer of a read: they could see it change.
pub(crate) fn check(io: &DriveIo, size: u64, sector: u32) -> Result<(), DriveError> {
    if io.kind == DriveIoKind::Flush {
        return Ok(());
    }
    let sector = u64::from(sector);
    let inside = io.offset.checked_add(io.len).is_some_and(|end| end <= size);
    let aligned = io.offset.is_multiple_of(sector) && io.len.is_multiple_of(sector);
    let with_data = matches!(io.kind, DriveIoKind::Read | DriveIoKind::Write);
    let fits = !with_data
        || (io.len <= TRANSFER_MAX
            && io
                .buf
                .as_ref()
                .is_some_and(|buf| buf.len() as u64 == io.len));
    if !inside || !aligned || !fits || io.len == 0 {
        return Err(DriveError::Bounds);
    }
    if io.kind == DriveIoKind::Read {
        let unique = io.buf.as_ref().is_some_and(block::DmaBuf::is_unique);
        assert!(unique, "a drive reads into a buffer that nobody shares");
    }
    Ok(())
}

/// Whether a drive of `size` bytes has this range.
pub(crate) fn is_within(offset: u64, len: usize, size: u64) -> bool {
    let end = offset.checked_add(len as u64);
    end.is_some_and(|end| end <= size)
}
