//! Identify data of a namespace (NVM Command Set, 4.1.5.1, and Base, 5.1.13.2.1).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `NVME_IOCTL_ID` of linux/nvme_ioctl.h.
const IOCTL_ID: libc::Ioctl = 0x4e40;
/// `NVME_IOCTL_ADMIN_CMD`: `_IOWR('N', 0x41, struct nvme_passthru_cmd)`.
const IOCTL_ADMIN: libc::Ioctl = 0xc048_4e41;
/// Identify.
const IDENTIFY: u8 = 0x06;
/// Bytes of what a controller or a namespace tells.
const TOLD: usize = 4096;
/// The smallest memory page that a controller may have, which its largest transfer is counted in.
const PAGE: u64 = 4096;

/// The kernel's `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Default)]
struct Passthrough {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    dwords_2_3: [u32; 2],
    metadata: u64,
    data: u64,
    metadata_len: u32,
    data_len: u32,
    dwords_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// A namespace that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Namespace {
    pub id: u32,
    /// In bytes.
    pub size: u64,
    /// Bytes of a logical block.
    pub sector: u32,
    /// Whether it takes dataset management.
    pub deallocates: bool,
    /// Bytes that a command moves at most; none where the controller has no limit.
    pub longest: Option<u64>,
}

impl Namespace {
    /// Asks the drive.
    ///
    /// # Errors
    /// The error of the system or the drive; `Unsupported` for blocks that carry metadata.
    pub fn identify(device: &File) -> io::Result<Self> {
        // SAFETY: a request without memory.
        let id = unsafe { libc::ioctl(device.as_raw_fd(), IOCTL_ID) };
        if id <= 0 {
            return Err(io::Error::last_os_error());
        }
        let namespace = told(device, id as u32, 0)?;
        let controller = told(device, 0, 1)?;
        Self::read(id as u32, &namespace, &controller)
    }

    fn read(id: u32, namespace: &[u8; TOLD], controller: &[u8; TOLD]) -> io::Result<Self> {
        let blocks = u64::from_le_bytes(namespace[..8].try_into().expect("eight bytes"));
        // FLBAS: bits 3:0 and 6:5 of byte 26 are the number of the format in use.
        let format = usize::from((namespace[26] & 15) | (namespace[26] >> 1 & 0x30));
        let at = 128 + 4 * format;
        let metadata = u16::from_le_bytes([namespace[at], namespace[at + 1]]);
        let shift = u32::from(namespace[at + 2]);
        let unsupported = |text| Err(io::Error::new(io::ErrorKind::Unsupported, text));
        if metadata != 0 {
            return unsupported(
                "its blocks carry metadata: format it without, with `nvme format --ms=0`",
            );
        }
        let size = blocks
            .checked_mul(1u64.checked_shl(shift).unwrap_or(0))
            .filter(|size| *size > 0);
        let (Some(size), 9..=12) = (size, shift) else {
            return unsupported("it reports no size, or a block size outside 512 to 4096 bytes");
        };
        Ok(Self {
            id,
            size,
            sector: 1 << shift,
            // ONCS, bit 2.
            deallocates: controller[520] & 4 != 0,
            // MDTS: a power of two of pages; 0 is no limit.
            longest: match controller[77] {
                0 => None,
                power => PAGE.checked_shl(u32::from(power)),
            },
        })
    }
}

/// Identify data of a namespace (`what` 0) or of the controller (1).
fn told(device: &File, namespace: u32, what: u32) -> io::Result<[u8; TOLD]> {
    let mut told = [0u8; TOLD];
    let mut command = Passthrough {
        opcode: IDENTIFY,
        namespace,
        data: told.as_mut_ptr() as u64,
        data_len: TOLD as u32,
        dwords_10_15: [what, 0, 0, 0, 0, 0],
        ..Passthrough::default()
    };
    // SAFETY: the structure is the kernel's, and what it names is ours for the length of the call.
    let status = unsafe { libc::ioctl(device.as_raw_fd(), IOCTL_ADMIN, &raw mut command) };
    match status {
        0 => Ok(told),
        1.. => Err(io::Error::other(format!(
            "it rejects the Identify command: status {status:#x}"
        ))),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(blocks: u64, format: u8, metadata: u16, shift: u8) -> [u8; TOLD] {
        let mut told = [0; TOLD];
        told[..8].copy_from_slice(&blocks.to_le_bytes());
        told[26] = format;
        let at = 128 + 4 * usize::from(format & 15);
        told[at..at + 2].copy_from_slice(&metadata.to_le_bytes());
        told[at + 2] = shift;
        told
    }

    #[test]
    fn a_namespace_is_read_with_its_controllers_limits_or_refused() {
        let mut controller = [0; TOLD];
        controller[77] = 5;
        controller[520] = 4;
        let read = |namespace| Namespace::read(1, &namespace, &controller);
        let found = read(tell(1 << 20, 3, 0, 12)).unwrap();
        assert_eq!((found.size, found.sector), (4 << 30, 4096));
        assert_eq!((found.deallocates, found.longest), (true, Some(128 << 10)));
        for (refused, why) in [
            (tell(1 << 20, 0, 8, 9), "metadata"),
            (tell(0, 0, 0, 9), "size"),
            (tell(1 << 20, 0, 0, 13), "512 to 4096"),
            (tell(1 << 20, 0, 0, 200), "512 to 4096"),
            (tell(u64::MAX, 0, 0, 12), "size"),
        ] {
            let error = read(refused).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
