//! Device configuration: feature bits and the configuration space (virtio 1.2, sections 5.2.3 and
//! 5.2.4).

use crate::volume::Volume;
use vhost::vhost_user::{VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_CONFIG_WCE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH,
    VIRTIO_BLK_F_MQ, VIRTIO_BLK_F_RO, VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_SIZE_MAX,
    VIRTIO_BLK_F_TOPOLOGY, VIRTIO_BLK_F_WRITE_ZEROES,
};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

/// Sector size of the protocol in bytes, independent of the volume's logical block size.
pub(crate) const SECTOR: u64 = 512;
/// Maximum ring size.
pub(crate) const QUEUE_SIZE_MAX: u16 = 1024;
/// Advertised maximum of data segments per request: a ring of the usual 128 entries minus header
/// and status. Requests with more are also served (`request.rs`).
pub(crate) const SEGMENTS_MAX: u32 = 126;
/// Maximum size of a data segment, in bytes.
const SEGMENT_BYTES_MAX: u32 = 512 << 10;
/// Maximum size of a read or write in bytes; above what the segment limits permit.
pub(crate) const REQUEST_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of a discard in sectors: 2 GiB.
pub(crate) const RANGE_SECTORS_MAX: u32 = 1 << 22;
/// Maximum size of a write-zeroes in sectors: 64 MiB, since without `unmap` it is executed as
/// writes.
pub(crate) const ZEROES_SECTORS_MAX: u32 = 1 << 17;
/// Offset of the write cache switch, in bytes.
pub(crate) const WRITEBACK_OFFSET: u32 = 32;
/// Size of the configuration space in bytes.
const CONFIG_BYTES: usize = 60;

/// Whether `features` contains `bit`.
pub(crate) fn has(features: u64, bit: u32) -> bool {
    features & (1 << bit) != 0
}

/// Offered feature bits.
pub(crate) fn features(volume: &Volume, queues: u16) -> u64 {
    let mut bits = vec![
        VIRTIO_F_VERSION_1,
        VIRTIO_RING_F_INDIRECT_DESC,
        VIRTIO_RING_F_EVENT_IDX,
        VIRTIO_BLK_F_SIZE_MAX,
        VIRTIO_BLK_F_SEG_MAX,
        VIRTIO_BLK_F_BLK_SIZE,
        VIRTIO_BLK_F_TOPOLOGY,
        VIRTIO_BLK_F_FLUSH,
        VIRTIO_BLK_F_CONFIG_WCE,
    ];
    if queues > 1 {
        bits.push(VIRTIO_BLK_F_MQ);
    }
    if volume.read_only {
        bits.push(VIRTIO_BLK_F_RO);
    } else {
        bits.extend([VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_WRITE_ZEROES]);
    }
    bits.into_iter().fold(
        VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits(),
        |all, bit| all | 1 << bit,
    )
}

/// Offered protocol features.
pub(crate) fn protocol_features() -> VhostUserProtocolFeatures {
    VhostUserProtocolFeatures::MQ
        | VhostUserProtocolFeatures::CONFIG
        | VhostUserProtocolFeatures::REPLY_ACK
        | VhostUserProtocolFeatures::BACKEND_REQ
        | VhostUserProtocolFeatures::INFLIGHT_SHMFD
        | VhostUserProtocolFeatures::RESET_DEVICE
        | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
}

/// `size` bytes of the configuration space from `offset`; zeroes beyond its end.
pub(crate) fn read(
    volume: &Volume,
    queues: u16,
    writeback: bool,
    offset: u32,
    size: u32,
) -> Vec<u8> {
    let mut space = [0; CONFIG_BYTES];
    let mut put = |at: usize, bytes: &[u8]| space[at..at + bytes.len()].copy_from_slice(bytes);
    let physical_blocks = volume.block_size / volume.lba_size;
    put(0, &(volume.size() / SECTOR).to_le_bytes());
    put(8, &SEGMENT_BYTES_MAX.to_le_bytes());
    put(12, &SEGMENTS_MAX.to_le_bytes());
    put(20, &volume.lba_size.to_le_bytes());
    put(24, &[physical_blocks.trailing_zeros() as u8]);
    put(26, &(physical_blocks as u16).to_le_bytes());
    put(WRITEBACK_OFFSET as usize, &[u8::from(writeback)]);
    put(34, &queues.to_le_bytes());
    put(36, &RANGE_SECTORS_MAX.to_le_bytes());
    put(40, &1u32.to_le_bytes());
    put(44, &(volume.block_size / SECTOR as u32).to_le_bytes());
    put(48, &ZEROES_SECTORS_MAX.to_le_bytes());
    put(52, &1u32.to_le_bytes());
    put(56, &[1]);
    let from = (offset as usize).min(CONFIG_BYTES);
    let mut bytes = space[from..].to_vec();
    bytes.resize(size as usize, 0);
    bytes
}
