//! Commands of the NVM command set and the meaning of their status codes (NVM Express, Base and NVM Command Set specifications).

use block::DriveError;
use reactor::Answer;

/// `NVME_URING_CMD_IO` of linux/nvme_ioctl.h: `_IOWR('N', 0x80, struct nvme_uring_cmd)`.
pub(super) const URING_CMD_IO: u32 = 0xc048_4e80;

/// Bytes of a command in an entry of the ring; the kernel's structure is 72 of them.
pub(super) const COMMAND: usize = 80;

/// Opcodes (NVM Command Set, 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Opcode {
    Flush = 0x00,
    Write = 0x01,
    Read = 0x02,
    /// Dataset management.
    Manage = 0x09,
}

/// A command, as the kernel's `struct nvme_uring_cmd` has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub opcode: Opcode,
    pub namespace: u32,
    /// Address of the data and its length in bytes.
    pub data: (u64, u32),
    /// Command dwords 10, 11 and 12.
    pub dwords: [u32; 3],
}

impl Command {
    /// A command without data.
    pub fn plain(opcode: Opcode, namespace: u32) -> Self {
        Self {
            opcode,
            namespace,
            data: (0, 0),
            dwords: [0; 3],
        }
    }

    /// A transfer of `blocks` logical blocks (1 to 65,536) from block `first` on.
    pub fn transfer(
        opcode: Opcode,
        namespace: u32,
        first: u64,
        blocks: u32,
        data: (u64, u32),
    ) -> Self {
        Self {
            data,
            // The number of blocks is one less than how many (3.2.4, 3.2.6).
            dwords: [first as u32, (first >> 32) as u32, blocks - 1],
            ..Self::plain(opcode, namespace)
        }
    }

    /// Deallocation of the range that the data names (3.2.3).
    pub fn deallocate(namespace: u32, data: (u64, u32)) -> Self {
        Self {
            data,
            dwords: [0, 1 << 2, 0],
            ..Self::plain(Opcode::Manage, namespace)
        }
    }

    /// The bytes of an entry.
    pub fn encode(&self) -> [u8; COMMAND] {
        let mut bytes = [0; COMMAND];
        bytes[0] = self.opcode as u8;
        bytes[4..8].copy_from_slice(&self.namespace.to_ne_bytes());
        bytes[24..32].copy_from_slice(&self.data.0.to_ne_bytes());
        bytes[36..40].copy_from_slice(&self.data.1.to_ne_bytes());
        for (index, dword) in self.dwords.iter().enumerate() {
            bytes[40 + 4 * index..][..4].copy_from_slice(&dword.to_ne_bytes());
        }
        bytes
    }
}

/// A range of a deallocation: 16 bytes (3.2.3, figure "Range Definition").
pub(super) fn range(first: u64, blocks: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&blocks.to_le_bytes());
    bytes[8..16].copy_from_slice(&first.to_le_bytes());
    bytes
}

/// The command may be tried no more.
const DO_NOT_RETRY: i32 = 0x4000;

/// Translates a command's result: an error of the system, or the status of its completion (Base, 4.2.3).
pub(super) fn answer(result: i32, _: u32) -> Answer {
    if result == -libc::EAGAIN {
        return Answer::Again;
    }
    if result <= 0 {
        return Answer::Ended(match result {
            0 => Ok(()),
            error => Err(DriveError::Os(-error)),
        });
    }
    let (kind, code) = (result >> 8 & 7, result & 0xff);
    let error = match (kind, code) {
        // LBA out of range.
        (0, 0x80) => DriveError::Bounds,
        // Capacity exceeded.
        (0, 0x81) => DriveError::Os(libc::ENOSPC),
        // The namespace is write protected.
        (0, 0x20) => DriveError::Os(libc::EROFS),
        // Errors of the medium and of data integrity: the error that the block layer gives for those.
        (2, _) => DriveError::Os(libc::ENODATA),
        _ if result & DO_NOT_RETRY == 0 => return Answer::Again,
        _ => DriveError::Os(libc::EIO),
    };
    Answer::Ended(Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_lies_where_the_kernels_structure_has_it() {
        let data = (0x1122_3344_5566_7788, 8192);
        let bytes = Command::transfer(Opcode::Read, 7, 5 << 32 | 9, 16, data).encode();
        let mut wanted = [0; COMMAND];
        wanted[0] = 2;
        wanted[4] = 7;
        wanted[24..32].copy_from_slice(&0x1122_3344_5566_7788u64.to_le_bytes());
        wanted[36..40].copy_from_slice(&8192u32.to_le_bytes());
        wanted[40] = 9;
        wanted[44] = 5;
        wanted[48] = 15;
        assert_eq!(bytes, wanted);
        assert_eq!(
            Command::deallocate(1, (0, 16)).encode()[40..48],
            [0, 0, 0, 0, 4, 0, 0, 0]
        );
        assert_eq!(range(3, 2)[4..9], [2, 0, 0, 0, 3]);
    }

    #[test]
    fn an_end_is_an_error_of_the_medium_or_of_the_command_or_asks_for_another_try() {
        let failed = |code| Answer::Ended(Err(DriveError::Os(code)));
        for (result, wanted) in [
            (0, Answer::Ended(Ok(()))),
            (-libc::ENODEV, failed(libc::ENODEV)),
            (-libc::EAGAIN, Answer::Again),
            (0x4080, Answer::Ended(Err(DriveError::Bounds))),
            (0x4281, failed(libc::ENODATA)),
            (0x0281, failed(libc::ENODATA)),
            (0x4081, failed(libc::ENOSPC)),
            (0x4020, failed(libc::EROFS)),
            // Aborted by a reset, with and without leave to try again.
            (0x0008, Answer::Again),
            (0x4008, failed(libc::EIO)),
        ] {
            assert_eq!(answer(result, 0), wanted, "{result:#x}");
        }
    }
}
