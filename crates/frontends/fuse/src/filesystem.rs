//! FUSE operations of a mount.

use crate::directory::{self, BLOCK};
use crate::file::File;
use crate::folder::{Folder, ROOT};
use crate::requests;
use fuser::{
    BsdFileFlags, Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

/// Entries and attributes are not cached, so that a resize is visible immediately.
const NOT_CACHED: Duration = Duration::ZERO;
/// Maximum size of a write by the kernel, in bytes.
const WRITE_MAX: u32 = 1 << 20;
/// Maximum number of background requests of the kernel.
const BACKGROUND: u16 = 256;
const LONGEST_NAME: u32 = 255;
/// Permission bits of a mode.
const MODE_BITS: u32 = 0o7777;

/// One mount.
pub(crate) struct Volumes(pub(crate) Arc<Folder>);

impl Volumes {
    fn file(&self, number: INodeNo) -> Result<Arc<File>, Errno> {
        if number.0 == ROOT {
            return Err(Errno::EISDIR);
        }
        self.0.get(number.0).ok_or(Errno::ESTALE)
    }
}

/// Whether a write must be durable when it is answered.
fn is_synchronous(flags: OpenFlags) -> bool {
    flags.0 & libc::O_DSYNC != 0
}

impl Filesystem for Volumes {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wanted in [
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
            InitFlags::FUSE_PARALLEL_DIROPS,
        ] {
            // Older kernels lack these capabilities.
            let _ = config.add_capabilities(wanted);
        }
        let _ = config.set_max_write(WRITE_MAX);
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = (parent.0 == ROOT)
            .then(|| name.to_str().and_then(|name| self.0.named(name)))
            .flatten();
        match found {
            Some(file) => reply.entry(&NOT_CACHED, &directory::file(&file), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        if number.0 == ROOT {
            return reply.attr(&NOT_CACHED, &directory::folder(&self.0));
        }
        match self.file(number) {
            Ok(file) => reply.attr(&NOT_CACHED, &directory::file(&file)),
            Err(error) => reply.error(error),
        }
    }

    /// Times can be changed until the export stops. Owner and mode are parameters of the export,
    /// which are persistent and changed by `convect export set`; size is that of the volume.
    fn setattr(
        &self,
        _request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let file = match self.file(number) {
            Ok(file) => file,
            Err(error) => return reply.error(error),
        };
        let changes_access = {
            let owner = file.owner.lock().unwrap_or_else(PoisonError::into_inner);
            mode.is_some_and(|mode| mode & MODE_BITS != u32::from(owner.mode))
                || uid.is_some_and(|uid| uid != owner.uid)
                || gid.is_some_and(|gid| gid != owner.gid)
        };
        if changes_access || size.is_some_and(|size| size != file.current_size()) {
            return reply.error(Errno::EPERM);
        }
        if let Some(time) = mtime {
            let mut owner = file.owner.lock().unwrap_or_else(PoisonError::into_inner);
            owner.changed = match time {
                TimeOrNow::SpecificTime(time) => time,
                TimeOrNow::Now => SystemTime::now(),
            };
        }
        reply.attr(&NOT_CACHED, &directory::file(&file));
    }

    fn open(&self, _request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let file = match self.file(number) {
            Ok(file) => file,
            Err(error) => return reply.error(error),
        };
        if file.device.is_gone() {
            return reply.error(Errno::ENODEV);
        }
        if file.read_only && flags.acc_mode() != OpenAccMode::O_RDONLY {
            return reply.error(Errno::EROFS);
        }
        file.opened.fetch_add(1, Ordering::Relaxed);
        reply.opened(
            FileHandle(0),
            FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES,
        );
    }

    fn release(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if let Ok(file) = self.file(number) {
            file.opened.fetch_sub(1, Ordering::Relaxed);
        }
        reply.ok();
    }

    fn read(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.file(number) {
            Ok(file) => requests::read(&file, offset, size, reply),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.file(number) {
            Ok(file) => requests::write(&file, offset, data, is_synchronous(flags), reply),
            Err(error) => reply.error(error),
        }
    }

    /// Writes have already been passed to the engine.
    fn flush(
        &self,
        _request: &Request,
        _number: INodeNo,
        _handle: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        match self.file(number) {
            Ok(file) => requests::flush(&file, reply),
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        match self.file(number) {
            Ok(file) => requests::allocate(&file, offset, length, mode, reply),
            Err(error) => reply.error(error),
        }
    }

    fn lseek(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.file(number) {
            Ok(file) => requests::seek(&file, offset, whence, reply),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if number.0 != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        // The offset of an entry is its file's number; the entries of the directory itself come
        // first.
        let mut full = false;
        if offset < 1 {
            full = reply.add(INodeNo(ROOT), 1, FileType::Directory, ".");
        }
        if offset < 2 && !full {
            full = reply.add(INodeNo(ROOT), 2, FileType::Directory, "..");
        }
        for file in self.0.after(offset.saturating_sub(1).max(ROOT)) {
            full = full
                || reply.add(
                    INodeNo(file.number),
                    file.number + 1,
                    FileType::RegularFile,
                    &file.name,
                );
        }
        reply.ok();
    }

    /// Fill level of the pool of the file's volume; for the directory, that of its first file. Zero
    /// blocks until it is known, as on file systems without space of their own.
    fn statfs(&self, _request: &Request, number: INodeNo, reply: ReplyStatfs) {
        let files = self.0.after(ROOT);
        let asked = files.iter().find(|file| file.number == number.0);
        let space = asked.or(files.first()).and_then(|file| {
            let space = file.space.lock().unwrap_or_else(PoisonError::into_inner);
            *space
        });
        let (blocks, free) = space.map_or((0, 0), |space| {
            let free = space.capacity.saturating_sub(space.used);
            let block = u64::from(BLOCK);
            (space.capacity / block, free / block)
        });
        let count = files.len() as u64;
        reply.statfs(blocks, free, free, count, 0, BLOCK, LONGEST_NAME, BLOCK);
    }

    fn create(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::EPERM);
    }

    fn mknod(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _device: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn mkdir(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _request: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rmdir(&self, _request: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn symlink(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _target: &Path,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _new_parent: INodeNo,
        _new_name: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }

    fn link(
        &self,
        _request: &Request,
        _number: INodeNo,
        _new_parent: INodeNo,
        _new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }
}
