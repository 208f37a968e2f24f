//! Properties of a file or device that the system reports: size, sectors, rotation, write cache.

use block::{DriveInfo, Rotation};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Smallest sector in bytes.
const SECTOR_MIN: u32 = 512;
/// Largest sector in bytes that a drive may have here.
const SECTOR_MAX: u32 = 4096;

/// The properties found.
pub(crate) struct Found {
    /// In bytes, a multiple of the logical sector.
    pub size: u64,
    pub logical_sector: u32,
    pub physical_sector: u32,
    pub rotation: Rotation,
    pub write_cache: bool,
    /// Whether the drive has queues whose ends are looked for instead of told.
    pub polled: bool,
}

impl Found {
    /// Properties of the drive that `spec` opens.
    pub(crate) fn info(&self, spec: &str) -> DriveInfo {
        DriveInfo {
            spec: spec.to_owned(),
            size: self.size,
            logical_sector: self.logical_sector,
            physical_sector: self.physical_sector,
            rotation: self.rotation,
            write_cache: self.write_cache,
            persistent: true,
        }
    }
}

/// Asks the system. `direct` says whether transfers go past the page cache.
///
/// # Errors
/// When the system does not tell the size, or sectors are larger than 4 KiB.
pub(super) fn discover(file: &File, direct: bool) -> io::Result<Found> {
    let meta = file.metadata()?;
    let device = meta.file_type().is_block_device();
    let queue = queue_folder(if device { meta.rdev() } else { meta.dev() });
    let (logical_sector, physical_sector) = if device {
        device_sectors(file)?
    } else {
        file_sectors(file, direct, queue.as_deref())
    };
    if logical_sector > SECTOR_MAX || !logical_sector.is_power_of_two() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("its sectors of {logical_sector} bytes are larger than 4096"),
        ));
    }
    let bytes = size(file)?;
    Ok(Found {
        size: bytes - bytes % u64::from(logical_sector),
        logical_sector,
        physical_sector: physical_sector.clamp(logical_sector, SECTOR_MAX),
        rotation: match attribute(queue.as_deref(), "rotational").as_deref() {
            Some("0") => Rotation::Solid,
            Some("1") => Rotation::Spinning,
            _ => Rotation::Unknown,
        },
        polled: device && direct && attribute(queue.as_deref(), "io_poll").as_deref() == Some("1"),
        // A file needs its flush whatever is beneath: the place of new blocks is the file
        // system's to write.
        write_cache: !device
            || attribute(queue.as_deref(), "write_cache").as_deref() != Some("write through"),
    })
}

/// Size in bytes of a file or device.
pub(super) fn size(file: &File) -> io::Result<u64> {
    let meta = file.metadata()?;
    if !meta.file_type().is_block_device() {
        return Ok(meta.len());
    }
    let mut bytes = 0u64;
    // SAFETY: the request writes one u64.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut bytes) };
    if result == 0 {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `_IOR(0x12, 114, size_t)` of linux/fs.h.
const BLKGETSIZE64: libc::Ioctl = 0x8008_1272;

fn device_sectors(file: &File) -> io::Result<(u32, u32)> {
    let (mut logical, mut physical) = (0i32, 0u32);
    // SAFETY: the requests write one int and one unsigned int.
    let result = unsafe {
        libc::ioctl(file.as_raw_fd(), libc::BLKSSZGET, &raw mut logical)
            | libc::ioctl(file.as_raw_fd(), libc::BLKPBSZGET, &raw mut physical)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((logical.unsigned_abs().max(SECTOR_MIN), physical))
}

/// Sectors of a file: what direct transfers have to be aligned to.
fn file_sectors(file: &File, direct: bool, queue: Option<&str>) -> (u32, u32) {
    let best = file
        .metadata()
        .map_or(SECTOR_MAX, |meta| meta.blksize().min(4096) as u32);
    if !direct {
        return (SECTOR_MIN, best);
    }
    let told = direct_alignment(file)
        .or_else(|| attribute(queue, "logical_block_size").and_then(|text| text.parse().ok()))
        .unwrap_or(SECTOR_MAX);
    (told.max(SECTOR_MIN), best)
}

/// The alignment of direct transfers, where the file system tells it (Linux 6.1).
fn direct_alignment(file: &File) -> Option<u32> {
    // SAFETY: all zeroes is a value of this plain structure.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an empty path with AT_EMPTY_PATH means the descriptor itself; the structure is
    // ours to be filled.
    let result = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            &raw mut found,
        )
    };
    let told = result == 0 && found.stx_mask & libc::STATX_DIOALIGN != 0;
    (told && found.stx_dio_offset_align > 0)
        .then(|| found.stx_dio_offset_align.max(found.stx_dio_mem_align))
}

/// The folder of a device's queue in sysfs; a partition's is its disk's.
fn queue_folder(device: u64) -> Option<String> {
    let base = format!(
        "/sys/dev/block/{}:{}",
        libc::major(device),
        libc::minor(device)
    );
    [format!("{base}/queue"), format!("{base}/../queue")]
        .into_iter()
        .find(|path| fs::metadata(path).is_ok())
}

fn attribute(queue: Option<&str>, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("{}/{name}", queue?)).ok()?;
    Some(text.trim().to_owned())
}
