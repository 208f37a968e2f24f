//! File attributes.

use crate::file::File;
use crate::folder::{Folder, ROOT};
use fuser::{FileAttr, FileType, INodeNo};
use std::sync::PoisonError;

/// Unit of `st_blocks`, in bytes.
const STAT_BLOCK: u64 = 512;
/// Preferred I/O size, in bytes.
pub(crate) const BLOCK: u32 = 4096;

/// Attributes of a file.
pub(crate) fn file(file: &File) -> FileAttr {
    let owner = *file.owner.lock().unwrap_or_else(PoisonError::into_inner);
    let size = file.current_size();
    FileAttr {
        ino: INodeNo(file.number),
        size,
        blocks: file.stored(size) / STAT_BLOCK,
        atime: owner.changed,
        mtime: owner.changed,
        ctime: owner.changed,
        crtime: owner.changed,
        kind: FileType::RegularFile,
        perm: owner.mode,
        nlink: 1,
        uid: owner.uid,
        gid: owner.gid,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

/// Attributes of the directory.
pub(crate) fn folder(folder: &Folder) -> FileAttr {
    // SAFETY: these calls only read process credentials and cannot fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    FileAttr {
        ino: INodeNo(ROOT),
        size: 0,
        blocks: 0,
        atime: folder.since,
        mtime: folder.since,
        ctime: folder.since,
        crtime: folder.since,
        kind: FileType::Directory,
        perm: 0o755,
        nlink: 2,
        uid,
        gid,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}
