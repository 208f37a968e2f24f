//! A connection to an export, as a monitor makes it.

use crate::memory::{GUEST_BASE, SharedMemory};
use crate::queue::ClientQueue;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vhost::vhost_user::message::{
    VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserInflight, VhostUserProtocolFeatures,
    VhostUserVirtioFeatures,
};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo};
use virtio_bindings::virtio_blk::VIRTIO_BLK_F_FLUSH;
use virtio_bindings::virtio_config::{
    VIRTIO_F_ACCESS_PLATFORM, VIRTIO_F_IN_ORDER, VIRTIO_F_RING_PACKED, VIRTIO_F_VERSION_1,
};
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

const CONFIG_BYTES: u32 = 60;
const WRITEBACK_AT: u32 = 32;

/// How a client drives the disk.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Rings.
    pub queues: u16,
    /// Entries of each ring, a power of two.
    pub queue_size: u16,
    /// Bytes of data that each request can have.
    pub slot_bytes: usize,
    /// Most segments of a request's data.
    pub segments: usize,
    /// Uses indirect descriptors: as many requests as entries, else a third.
    pub indirect: bool,
    /// Uses event indexes.
    pub event_idx: bool,
    /// Negotiates the write cache and its flush.
    pub flush: bool,
    /// Keeps in-flight memory.
    pub inflight: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queues: 1,
            queue_size: 256,
            slot_bytes: 4096,
            segments: 200,
            indirect: true,
            event_idx: true,
            flush: true,
            inflight: true,
        }
    }
}

/// A connected disk with the memory of its guest.
pub struct Client {
    path: PathBuf,
    options: Options,
    frontend: Frontend,
    memory: Arc<SharedMemory>,
    queues: Vec<ClientQueue>,
    inflight: Option<(VhostUserInflight, File)>,
    notifications: UnixStream,
    features: u64,
}

fn failed(error: vhost::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// A connection with its features negotiated.
struct Negotiated {
    frontend: Frontend,
    notifications: UnixStream,
    features: u64,
    inflight: bool,
}

/// What this side knows of the protocol.
fn known() -> VhostUserProtocolFeatures {
    VhostUserProtocolFeatures::MQ
        | VhostUserProtocolFeatures::CONFIG
        | VhostUserProtocolFeatures::REPLY_ACK
        | VhostUserProtocolFeatures::BACKEND_REQ
        | VhostUserProtocolFeatures::INFLIGHT_SHMFD
}

fn negotiate(path: &Path, options: &Options) -> io::Result<Negotiated> {
    let stream = UnixStream::connect(path)?;
    let mut frontend = Frontend::from_stream(stream, u64::from(options.queues));
    frontend.set_owner().map_err(failed)?;
    let mut features = frontend.get_features().map_err(failed)?;
    for (wanted, bit) in [
        (options.indirect, VIRTIO_RING_F_INDIRECT_DESC),
        (options.event_idx, VIRTIO_RING_F_EVENT_IDX),
        (options.flush, VIRTIO_BLK_F_FLUSH),
        // What changes the rings or the memory in ways that this side does not know.
        (false, VIRTIO_F_ACCESS_PLATFORM),
        (false, VIRTIO_F_RING_PACKED),
        (false, VIRTIO_F_IN_ORDER),
    ] {
        if !wanted {
            features &= !(1 << bit);
        }
    }
    features &= !VhostUserVirtioFeatures::LOG_ALL.bits();
    // The crate wants the bit acknowledged before it sends messages of the protocol's features, and
    // libvhost-user takes no features without that of the version.
    let first = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() | 1 << VIRTIO_F_VERSION_1;
    frontend.set_features(features & first).map_err(failed)?;
    let protocol = frontend.get_protocol_features().map_err(failed)? & known();
    frontend.set_protocol_features(protocol).map_err(failed)?;
    if protocol.contains(VhostUserProtocolFeatures::REPLY_ACK) {
        frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
    }
    frontend.set_features(features).map_err(failed)?;
    let most = match protocol.contains(VhostUserProtocolFeatures::MQ) {
        true => frontend.get_queue_num().map_err(failed)?,
        false => 1,
    };
    if most < u64::from(options.queues) {
        return Err(io::Error::other(format!("the disk has only {most} queues")));
    }
    let (notifications, theirs) = UnixStream::pair()?;
    if protocol.contains(VhostUserProtocolFeatures::BACKEND_REQ) {
        frontend.set_backend_request_fd(&theirs).map_err(failed)?;
    }
    Ok(Negotiated {
        frontend,
        notifications,
        features,
        inflight: protocol.contains(VhostUserProtocolFeatures::INFLIGHT_SHMFD),
    })
}

impl Client {
    /// Connects and starts the rings.
    ///
    /// # Errors
    /// When there is no such export, or it refuses something.
    pub fn connect(path: &Path, options: Options) -> io::Result<Self> {
        let negotiated = negotiate(path, &options)?;
        let offered = |bit: u32| negotiated.features & 1 << bit != 0;
        let options = Options {
            indirect: options.indirect && offered(VIRTIO_RING_F_INDIRECT_DESC),
            event_idx: options.event_idx && offered(VIRTIO_RING_F_EVENT_IDX),
            inflight: options.inflight && negotiated.inflight,
            ..options
        };
        let part = ClientQueue::bytes(&options);
        let memory = Arc::new(SharedMemory::new(part * usize::from(options.queues))?);
        let queues = (0..usize::from(options.queues))
            .map(|index| ClientQueue::new(memory.clone(), part * index, &options))
            .collect::<io::Result<_>>()?;
        let mut client = Self {
            path: path.to_owned(),
            options,
            frontend: negotiated.frontend,
            memory,
            queues,
            inflight: None,
            notifications: negotiated.notifications,
            features: negotiated.features,
        };
        client.start()?;
        Ok(client)
    }

    /// Connects again, with the same memory and rings and the in-flight memory kept, as a monitor
    /// does whose storage daemon was started again.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn reconnect(&mut self) -> io::Result<()> {
        let negotiated = negotiate(&self.path, &self.options)?;
        self.frontend = negotiated.frontend;
        self.notifications = negotiated.notifications;
        self.start()
    }

    fn start(&mut self) -> io::Result<()> {
        if self.options.inflight {
            match &self.inflight {
                Some((info, file)) => self
                    .frontend
                    .set_inflight_fd(info, file.as_raw_fd())
                    .map_err(failed)?,
                None => {
                    let (queues, size) = (self.options.queues, self.options.queue_size);
                    let wanted = VhostUserInflight::new(0, 0, queues, size);
                    let given = self.frontend.get_inflight_fd(&wanted).map_err(failed)?;
                    self.inflight = Some(given);
                }
            }
        }
        self.share_memory()?;
        for index in 0..self.queues.len() {
            self.start_queue(index).map_err(failed)?;
        }
        Ok(())
    }

    fn share_memory(&mut self) -> io::Result<()> {
        let region = VhostUserMemoryRegionInfo {
            guest_phys_addr: GUEST_BASE,
            memory_size: self.memory.len() as u64,
            userspace_addr: self.memory.user(0),
            mmap_offset: 0,
            mmap_handle: self.memory.fd(),
        };
        self.frontend.set_mem_table(&[region]).map_err(failed)?;
        Ok(())
    }

    fn start_queue(&mut self, index: usize) -> vhost::Result<()> {
        let queue = &self.queues[index];
        let [kick, call, error] = queue.events();
        let frontend = &mut self.frontend;
        frontend.set_vring_num(index, queue.size())?;
        frontend.set_vring_base(index, queue.used_index())?;
        frontend.set_vring_addr(index, &queue.addresses())?;
        frontend.set_vring_kick(index, kick)?;
        frontend.set_vring_call(index, call)?;
        frontend.set_vring_err(index, error)?;
        frontend.set_vring_enable(index, true)
    }

    /// Returns the memory to the other side again while the rings run.
    ///
    /// # Errors
    /// When it is refused.
    pub fn exchange_memory(&mut self) -> io::Result<()> {
        self.share_memory()
    }

    /// Cuts the memory off its file behind everything but the data of the last queue's slots, or with `rings` all of it,
    /// wrongly. What was cut off must not be touched any longer.
    ///
    /// # Errors
    /// When the file is sealed.
    pub fn cut_memory(&mut self, rings: bool) -> io::Result<()> {
        let last = self.queues.last().map_or(0, ClientQueue::data_start);
        self.memory.cut(if rings { 0 } else { last })
    }

    /// Stops a ring; returns the next entry of its available ring.
    ///
    /// # Errors
    /// When the connection broke, as it does when requests do not end.
    pub fn stop_queue(&mut self, index: usize) -> io::Result<u32> {
        self.frontend.get_vring_base(index).map_err(failed)
    }

    /// A ring.
    pub fn queue(&mut self, index: usize) -> &mut ClientQueue {
        &mut self.queues[index]
    }

    /// Takes the rings, for threads of their own. The client must outlive their use.
    pub fn take_queues(&mut self) -> Vec<ClientQueue> {
        std::mem::take(&mut self.queues)
    }

    /// The feature bits that were negotiated.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// The configuration space (virtio 1.2, section 5.2.4).
    ///
    /// # Errors
    /// When the connection broke.
    pub fn config(&mut self) -> io::Result<Vec<u8>> {
        let room = [0; CONFIG_BYTES as usize];
        let flags = VhostUserConfigFlags::empty();
        let answer = self.frontend.get_config(0, CONFIG_BYTES, flags, &room);
        Ok(answer.map_err(failed)?.1)
    }

    /// Size of the disk in sectors of 512 bytes.
    ///
    /// # Errors
    /// When the connection broke.
    pub fn capacity(&mut self) -> io::Result<u64> {
        let config = self.config()?;
        Ok(u64::from_le_bytes(
            config[..8].try_into().expect("eight bytes"),
        ))
    }

    /// Switches the write cache.
    ///
    /// # Errors
    /// When the connection broke.
    pub fn set_writeback(&mut self, on: bool) -> io::Result<()> {
        let flags = VhostUserConfigFlags::WRITABLE;
        self.frontend
            .set_config(WRITEBACK_AT, flags, &[u8::from(on)])
            .map_err(failed)
    }

    /// Waits until the disk says that its configuration has changed.
    ///
    /// # Errors
    /// When it does not in time.
    pub fn wait_for_change(&mut self, timeout: Duration) -> io::Result<()> {
        self.notifications.set_read_timeout(Some(timeout))?;
        let mut message = [0; 12];
        self.notifications.read_exact(&mut message)?;
        let request = u32::from_ne_bytes(message[..4].try_into().expect("four bytes"));
        if request == 2 {
            return Ok(());
        }
        Err(io::Error::other(format!("unknown notification {request}")))
    }
}
